// `tracker torrent show`.

import ArgumentParser
import Foundation
import Primitives
import Settings
import Torrents
import Wire

/// `tracker torrent show`.
struct TorrentShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show what a .torrent file holds.",
        discussion: """
            JSON: name, version (v1, v2 or hybrid), infoHash, infoHashV2, magnet, totalBytes, pieceBytes, pieces, \
            private, comment, createdBy, createdAt, trackers (tiers of URLs), webSeeds, files (path, bytes, \
            padding). What the file does not say is left out.
            """)

    @Argument(help: ArgumentHelp("A .torrent file.", valueName: "file"))
    var path: String

    @OptionGroup var report: ReportOptions

    func run() throws {
        let metainfo = try readTorrent(path)
        if report.isJSON {
            try report.writeJSON(Document(metainfo))
        } else {
            Terminal.output.write(Self.text(metainfo))
        }
    }

    private static func text(_ metainfo: Metainfo) -> String {
        let info = metainfo.info
        var table = TextTable(.left, .left)
        table.add("name", Terminal.output.styled("\(info.name)", .bold))
        if let infoHash = metainfo.infoHashV1 { table.add("info hash", "\(infoHash)") }
        if let infoHash = metainfo.infoHashV2 { table.add("info hash v2", "\(infoHash)") }
        table.add("size", "\(Figures.bytes(info.totalLength)) (\(Figures.counted(info.totalLength, "byte")))")
        table.add("pieces", "\(Figures.grouped(info.pieceCount)) of \(Figures.bytes(info.pieceLength))")
        if info.isPrivate { table.add("private", "yes") }
        for (index, tier) in metainfo.trackers.enumerated() {
            table.add(metainfo.trackers.count == 1 ? "trackers" : "tier \(index + 1)", tier.joined(separator: " "))
        }
        for url in metainfo.urlList { table.add("web seed", url) }
        if let comment = metainfo.comment { table.add("comment", comment.replacing("\n", with: " ")) }
        if let createdBy = metainfo.createdBy { table.add("made by", createdBy) }
        if let date = metainfo.creationDate { table.add("made at", iso8601(date)) }
        if !info.hasDistinctPaths { table.add("mind", "two files have one path; clients rename one of them") }
        table.add("magnet", magnet(metainfo))
        var files = TextTable(.right, .left)
        let shown = info.files.filter { !$0.isPadding }
        for file in shown { files.add(Figures.bytes(file.length), path(file)) }
        return table.text() + "\n\(Figures.counted(shown.count, "file")):\n" + files.text(indent: "  ")
    }

    static func path(_ file: TorrentFile) -> String {
        file.path.map(\.description).joined(separator: "/")
    }

    private static func iso8601(_ time: WallTime) -> String {
        Date(timeIntervalSince1970: Double(time.milliseconds) / 1000).formatted(.iso8601)
    }

    private struct Document: Encodable {
        struct File: Encodable {
            var path: String
            var bytes: Int
            var padding: Bool?
        }

        var name: String
        var version: String
        var infoHash: String?
        var infoHashV2: String?
        var magnet: String
        var totalBytes: Int
        var pieceBytes: Int
        var pieces: Int
        var `private`: Bool
        var comment: String?
        var createdBy: String?
        var createdAt: String?
        var trackers: [[String]]
        var webSeeds: [String]
        var files: [File]

        init(_ metainfo: Metainfo) {
            let info = metainfo.info
            name = "\(info.name)"
            switch info.version {
            case .v1: version = "v1"
            case .v2: version = "v2"
            case .hybrid: version = "hybrid"
            }
            infoHash = metainfo.infoHashV1.map { "\($0)" }
            infoHashV2 = metainfo.infoHashV2.map { "\($0)" }
            magnet = tracker.magnet(metainfo)
            totalBytes = info.totalLength
            pieceBytes = info.pieceLength
            pieces = info.pieceCount
            `private` = info.isPrivate
            comment = metainfo.comment
            createdBy = metainfo.createdBy
            createdAt = metainfo.creationDate.map { iso8601($0) }
            trackers = metainfo.trackers
            webSeeds = metainfo.urlList
            files = info.files.map {
                File(path: TorrentShowCommand.path($0), bytes: $0.length, padding: $0.isPadding ? true : nil)
            }
        }
    }
}

/// Reads a .torrent file, and checks all that can be checked without the data.
func readTorrent(_ path: String) throws(Failure) -> Metainfo {
    let bytes = try Failure.telling(.system) {
        try BoundedFile.read(path, atMost: BencodeLimits.metainfo.byteCount)
    }
    do throws(MetainfoError) {
        let metainfo = try Metainfo(decoding: bytes)
        try metainfo.checkPieceLayers()
        return metainfo
    } catch {
        throw Failure(.failed, "\(path): \(error)")
    }
}

// What a torrent is made of, and how: for `torrent create` and `torrent share`.

import ArgumentParser
import Foundation
import Primitives
import Torrents
import Wire

/// The flags by which a torrent is made.
struct TorrentMaking: ParsableArguments {
    static let discussion = """
        One path is shared as it is. Several are put side by side into a directory that --name names; on the \
        disk they stay where they are, and their last names must differ.

        Symbolic links and special files in a directory are left out, and named.
        """

    @Argument(help: "The file, or the directory with the files; several need --name.")
    var paths: [String]

    @Option(
        name: [.customShort("o"), .customLong("output")],
        help: ArgumentHelp("Where to write; NAME.torrent here unless told.", valueName: "file"))
    var output: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "A tracker; several are taken for one tracker's addresses (one BEP 12 tier).", valueName: "url"),
        transform: readAnnounceURL)
    var announce: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "A further tier, asked where the trackers before it are silent: URLs with commas between. Repeatable.",
            valueName: "url,…"),
        transform: { text in
            try text.split(separator: ",", omittingEmptySubsequences: false).map { try readAnnounceURL(String($0)) }
        })
    var tier: [[String]] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("A mirror of the data (BEP 19), http:// or https://. Repeatable.", valueName: "url"),
        transform: { text in
            guard text.hasPrefix("http://") || text.hasPrefix("https://") else {
                throw ValidationError("\"\(text.prefix(80))\" is no web seed; write for example https://host/data/")
            }
            return try readAnnounceURL(text)
        })
    var webSeed: [String] = []

    @Option(
        help: ArgumentHelp("Bytes of a piece: a power of two, 16K to 512M; by size unless told.", valueName: "size"),
        transform: { text in
            guard let size = byteCount(text) else {
                throw ValidationError("\"\(text)\" is not a size; write for example 256K, 4M or 262144")
            }
            guard (16 << 10...512 << 20).contains(size), size & (size - 1) == 0 else {
                throw ValidationError("\"\(text)\" is not a power of two from 16K to 512M; write for example 4M")
            }
            return size
        })
    var pieceLength: Int?

    @Option(help: "For people.")
    var comment: String?

    @Option(help: "The torrent's name; that of the file or directory unless told.")
    var name: String?

    @Flag(name: .customLong("private"), help: "Peers may come from the trackers only (BEP 27).")
    var isPrivate = false

    @Flag(help: "Version 2 as well (BEP 52): each file begins a piece, behind padding.")
    var hybrid = false

    @Flag(help: "Leave out the date, so that the same files give the same bytes.")
    var noDate = false

    @Flag(help: "Replace an existing file.")
    var force = false

    /// Checks, hashes and writes the file.
    ///
    /// - Parameter isQuiet: shows no bar.
    /// - Returns: the torrent, whose file has been written.
    /// - Throws: `Failure`, which names what cannot be read or written.
    func make(isQuiet: Bool) async throws -> MadeTorrent {
        if let output { try checkOutput(output) } else { try checkDirectory(of: "x") }
        var maker = TorrentMaker(paths: paths)
        maker.name = name
        maker.pieceLength = pieceLength
        maker.trackers = announce
        maker.furtherTiers = tier
        maker.webSeeds = webSeed
        maker.comment = comment
        maker.isPrivate = isPrivate
        maker.isHybrid = hybrid
        maker.createdBy = "Swarmkeeper \(version)"
        let begin = WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
        maker.creationDate = noDate ? nil : begin
        let result = try await make(maker, isQuiet: isQuiet)
        return MadeTorrent(
            file: try write(result.metainfo), metainfo: result.metainfo, skipped: result.skipped, hashedAt: begin)
    }

    private func make(_ maker: TorrentMaker, isQuiet: Bool) async throws(Failure) -> TorrentMaker.Result {
        do throws(TorrentMakerError) {
            return try await onThread { () throws(TorrentMakerError) in
                var bar = ProgressBar("hashing", isShown: !isQuiet)
                return try maker.make { progress in
                    let share = Double(progress.done) / Double(max(1, progress.total))
                    bar.update(share, note: "\(Figures.bytes(progress.done)) of \(Figures.bytes(progress.total))")
                }
            }
        } catch {
            switch error {
            case .invalid, .cancelled: throw Failure(.failed, error.description)
            case .unreadable: throw Failure(.system, error.description)
            }
        }
    }

    /// Before the long hashing, not after it.
    private func checkOutput(_ file: String) throws(Failure) {
        if FileManager.default.fileExists(atPath: file) {
            guard force else {
                throw Failure(.failed, "\(file) is there already; choose another by -o, or replace it with --force")
            }
            // A new file takes the place of the old one; a directory or device is not to be replaced.
            let type = try? FileManager.default.attributesOfItem(atPath: file)[.type] as? FileAttributeType
            guard type == .typeRegular else {
                throw Failure(.failed, "\(file) is no regular file and will not be replaced; choose another by -o")
            }
        }
        try checkDirectory(of: file)
    }

    private func checkDirectory(of file: String) throws(Failure) {
        let directory = URL(filePath: file).deletingLastPathComponent().path
        guard access(directory, W_OK) != 0 else { return }
        throw Failure(
            .system, "nothing can be written to \(directory): \(String(cString: strerror(errno))); choose another by -o"
        )
    }

    /// - Returns: the file's path.
    private func write(_ metainfo: Metainfo) throws(Failure) -> String {
        let file = output ?? "\(metainfo.info.name).torrent"
        try checkOutput(file)
        do {
            try Data(metainfo.bytes).write(to: URL(filePath: file), options: .atomic)
        } catch {
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? any Error ?? error
            throw Failure(.system, "\(file) cannot be written: \(cause.localizedDescription)")
        }
        return file
    }
}

/// A torrent that has just been made.
struct MadeTorrent: Sendable {
    /// The path of the .torrent file.
    var file: String
    var metainfo: Metainfo
    /// What was left out.
    var skipped: [String]
    /// When the hashing began.
    var hashedAt: WallTime

    /// Without padding.
    var fileCount: Int { metainfo.info.files.reduce(0) { $1.isPadding ? $0 : $0 + 1 } }

    /// For programs.
    var document: Document { Document(self) }

    /// For people.
    func tell() {
        for path in skipped { Terminal.errors.write("left out, for it is no regular file: \(path)\n") }
        let info = metainfo.info
        var table = TextTable(.left, .left)
        table.add("file", file)
        table.add("info hash", metainfo.infoHashV1.map { "\($0)" } ?? "")
        if let infoHash = metainfo.infoHashV2 { table.add("info hash v2", "\(infoHash)") }
        table.add("size", "\(Figures.bytes(info.totalLength)) in \(Figures.counted(fileCount, "file"))")
        table.add("pieces", "\(Figures.grouped(info.pieceCount)) of \(Figures.bytes(info.pieceLength))")
        table.add("magnet", magnet(metainfo))
        Terminal.output.write(table.text())
    }

    struct Document: Encodable {
        var file: String
        var name: String
        var infoHash: String?
        var infoHashV2: String?
        var magnet: String
        var totalBytes: Int
        var pieceBytes: Int
        var pieces: Int
        var files: Int
        var skipped: [String]

        init(_ made: MadeTorrent) {
            let info = made.metainfo.info
            file = made.file
            name = "\(info.name)"
            infoHash = made.metainfo.infoHashV1.map { "\($0)" }
            infoHashV2 = made.metainfo.infoHashV2.map { "\($0)" }
            magnet = tracker.magnet(made.metainfo)
            totalBytes = info.totalLength
            pieceBytes = info.pieceLength
            pieces = info.pieceCount
            files = made.fileCount
            skipped = made.skipped
        }
    }
}

@Sendable
private func readAnnounceURL(_ text: String) throws -> String {
    guard text.utf8.count <= Metainfo.maxURLByteCount, text.contains("://"),
        text.utf8.allSatisfy({ (33...126).contains($0) })
    else {
        throw ValidationError("\"\(text.prefix(80))\" is not a URL; write for example udp://host:6969/announce")
    }
    return text
}

/// Reads `262144`, `256K`, `4M`: powers of 1,024, as pieces have them.
private func byteCount(_ text: String) -> Int? {
    let units: [Character: Int] = ["K": 1 << 10, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30]
    let unit = text.last.flatMap { units[$0] }
    let digits = unit == nil ? text[...] : text.dropLast()
    guard digits.utf8.allSatisfy({ (48...57).contains($0) }), let number = Int(digits) else { return nil }
    let (count, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
    return overflow ? nil : count
}

func magnet(_ metainfo: Metainfo) -> String {
    MagnetLink(metainfo, infoHash: metainfo.infoHashV1, infoHashV2: metainfo.infoHashV2).text
}

// A torrent's source, as the record has it and as people have given it.

import Foundation
import Primitives
import Torrents
import Transfers
import Web
import Wire

/// A torrent's source, read.
struct KnownTorrent: Sendable {
    var infoHash: InfoHash
    var name: String
    /// Of the torrent's own file or folder; nil while the metadata is not known.
    var root: String?
    var byteCount: Int?
    /// Tiers of URLs.
    var trackers: [[String]]
    var source: TorrentSource
    /// As the record keeps it.
    var bytes: [UInt8]
    var isMagnet: Bool

    /// Reads a .torrent file, or a magnet link.
    ///
    /// - Throws: `PeerRefusal`, for what is no torrent, or one of version 2 only.
    init(_ bytes: [UInt8], isMagnet: Bool) throws(PeerRefusal) {
        (self.bytes, self.isMagnet) = (bytes, isMagnet)
        guard !isMagnet else {
            let link: MagnetLink
            do throws(MagnetLinkError) {
                link = try MagnetLink(parsing: String(decoding: bytes, as: UTF8.self))
            } catch {
                throw PeerRefusal(.invalid, error.description)
            }
            let cut = link.infoHashV2.flatMap { Bytes20($0.bytes.prefix(20)) }.map { InfoHash($0) }
            guard let infoHash = link.infoHash ?? cut else {
                throw PeerRefusal(.invalid, "the magnet link names no info hash")
            }
            self.infoHash = infoHash
            name = link.displayName.isEmpty ? "\(infoHash)" : shownText(link.displayName)
            trackers = link.trackers.map { [$0] }
            source = .magnet(link)
            return
        }
        let metainfo: Metainfo
        do throws(MetainfoError) {
            metainfo = try Metainfo(decoding: bytes)
        } catch {
            throw PeerRefusal(.invalid, "this is no torrent file: \(error)")
        }
        guard let infoHash = metainfo.infoHashV1 else {
            throw PeerRefusal(
                .invalid,
                "the torrent is of version 2 only, which is not transferred; use a hybrid torrent, or one of version 1")
        }
        self.infoHash = infoHash
        name = shownText(metainfo.info.name.bytes)
        root = String(decoding: metainfo.info.name.bytes, as: UTF8.self)
        byteCount = metainfo.info.totalLength
        trackers = metainfo.trackers
        source = .metainfo(bytes)
    }

    /// A .torrent file of an info dictionary that peers have given.
    static func file(info: [UInt8], trackers: [[String]]) -> [UInt8] {
        func text(_ value: String) -> [UInt8] { Array("\(value.utf8.count):\(value)".utf8) }
        var file = Array("d".utf8)
        if let first = trackers.first?.first { file += text("announce") + text(first) }
        if trackers.reduce(0, { $0 + $1.count }) > 1 {
            file += text("announce-list") + Array("l".utf8)
            for tier in trackers { file += Array("l".utf8) + tier.flatMap(text) + Array("e".utf8) }
            file += Array("e".utf8)
        }
        return file + text("info") + info + Array("e".utf8)
    }
}

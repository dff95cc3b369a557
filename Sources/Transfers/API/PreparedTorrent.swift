// A torrent's source, read and checked on the caller's thread.

import Client
import Crypto
import PeerLogic
import Primitives
import Torrents
import Wire

/// A torrent's source, read and checked on the caller's thread.
struct PreparedTorrent: Sendable {
    var infoHash: InfoHash
    var name: String
    /// Tiers of URLs.
    var trackers: [[String]]
    var webSeeds: [String] = []
    /// Peers to call, of a magnet link (BEP 9, `x.pe`).
    var peers: [MagnetLink.Peer] = []
    /// The files that a magnet link selects (BEP 53); nil for all.
    var wantedFiles: Set<Int>?
    var content: Content?

    /// An info dictionary that has been read.
    struct Content: Sendable {
        var info: TorrentInfo
        var layout: PieceLayout
        var metadata: [UInt8]
    }

    static let versionTwo = TransferError(
        .usage, "the torrent is of version 2 only, which is not transferred; use a hybrid torrent, or one of version 1")

    init(_ source: TorrentSource) throws(TransferError) {
        switch source {
        case .metainfo(let bytes):
            let metainfo: Metainfo
            do {
                metainfo = try Metainfo(decoding: bytes)
            } catch {
                throw TransferError(.usage, "this is no torrent: \(error)")
            }
            guard let infoHash = metainfo.infoHashV1, let layout = PieceLayout(metainfo.info) else {
                throw Self.versionTwo
            }
            self.infoHash = infoHash
            name = metainfo.info.name.description
            trackers = metainfo.trackers
            webSeeds = metainfo.urlList
            content = Content(info: metainfo.info, layout: layout, metadata: Array(metainfo.infoBytes))
        case .magnet(let link):
            let cut = link.infoHashV2.flatMap { Bytes20($0.bytes.prefix(20)) }.map { InfoHash($0) }
            guard let infoHash = link.infoHash ?? cut else {
                throw TransferError(.usage, "the magnet link names no info hash")
            }
            self.infoHash = infoHash
            name = link.displayName.isEmpty ? infoHash.description : shownText(link.displayName)
            trackers = link.trackers.map { [$0] }
            webSeeds = link.webSeeds
            peers = link.peers
            if !link.selection.isEmpty { wantedFiles = Set(link.selection.joined()) }
        case .infoHash(let infoHash, let trackers):
            self.infoHash = infoHash
            name = infoHash.description
            self.trackers = trackers
        }
    }

    /// Reads an info dictionary that peers have given.
    ///
    /// - Returns: nil where it does not have the hash, or is no info dictionary.
    /// - Throws: what is wrong with the right one, so that no other can help.
    static func content(_ bytes: [UInt8], infoHash: InfoHash) throws(TransferError) -> Content? {
        let isV1 = Insecure.SHA1.hash(data: bytes).elementsEqual(infoHash.bytes.bytes)
        guard isV1 || SHA256.hash(data: bytes).prefix(20).elementsEqual(infoHash.bytes.bytes) else { return nil }
        let info: TorrentInfo
        do {
            info = try TorrentInfo(decoding: bytes)
        } catch {
            throw TransferError(.usage, "the torrent's metadata makes no sense: \(error)")
        }
        guard let layout = PieceLayout(info) else { throw versionTwo }
        return Content(info: info, layout: layout, metadata: bytes)
    }
}

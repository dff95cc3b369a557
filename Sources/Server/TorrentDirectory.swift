// A directory of .torrent files.

import Foundation
import Logging
import Settings
import Torrents
import TrackerLogic
import Wire

/// What a directory of .torrent files holds, as it was when it was read.
package struct TorrentListing: Sendable {
    /// A file that is to be kept whole.
    package struct File: Sendable, Equatable {
        /// The torrent that it is kept for: of a hybrid the one by its v1 hash.
        package var infoHash: InfoHash
        /// Where it is.
        package var path: String
        /// Its length.
        package var byteCount: Int
        /// What it was when it was read.
        package var sha256: Bytes32
    }

    /// All of them, each info hash once.
    package fileprivate(set) var torrents: [FileTorrent] = []
    /// Those that are to be kept whole.
    package fileprivate(set) var files: [File] = []
    /// Why others are not, in a sentence.
    package internal(set) var reasons: [InfoHash: String] = [:]
}

/// A directory of .torrent files, which the tracker registers by name and size, and keeps whole where they fit.
package enum TorrentDirectory {
    /// Bytes of a .torrent file at most: 1 TiB in pieces of 256 KiB takes 80 MiB.
    static let maxFileByteCount = 100 << 20
    /// Files that are told of each by itself, where something is wrong with them; of further ones the number is told.
    static let maxComplaints = 20

    /// Reads all .torrent files of a directory, not of those inside it.
    ///
    /// - Parameters:
    ///   - path: of the directory.
    ///   - limits: how many torrents may be registered, and how large a file may be that is kept whole.
    ///   - logger: is told what is left out, and what is registered by name and size alone.
    /// - Returns: a torrent for each info hash of each file (a hybrid has two), in the order of the files' names; of
    ///   two files of one torrent the first. A file that cannot be read is left out.
    /// - Throws: where the directory itself cannot be read.
    package static func read(_ path: String, _ limits: Limits, logger: Logger) throws -> TorrentListing {
        let names = try FileManager.default.contentsOfDirectory(atPath: path)
            .filter { $0.hasSuffix(".torrent") }.sorted()
        var listing = TorrentListing()
        var seen: Set<InfoHash> = []
        var complaints = 0
        func complain(_ words: String, _ file: String) {
            complaints += 1
            guard complaints <= maxComplaints else { return }
            logger.warning("\(words)", metadata: ["file": "\(file)"])
        }
        for name in names {
            let file = (path as NSString).appendingPathComponent(name)
            do {
                let reason = try take(file, limits, &seen, &listing)
                if let reason { complain("only name and size of a torrent are registered: \(reason)", file) }
            } catch {
                complain("a torrent is not registered: \(error)", file)
            }
            if listing.torrents.count > limits.registeredTorrents {
                logger.warning(
                    "only the first torrents are registered",
                    metadata: ["limit": "\(limits.registeredTorrents)", "directory": "\(path)"])
                listing.torrents.removeLast(listing.torrents.count - limits.registeredTorrents)
                break
            }
        }
        if complaints > maxComplaints {
            logger.warning(
                "more files of the directory are left out, or registered by name and size alone",
                metadata: ["files": "\(complaints - maxComplaints)", "directory": "\(path)"])
        }
        return listing
    }

    /// Adds what a file says.
    ///
    /// - Returns: why it is not kept whole.
    private static func take(
        _ path: String, _ limits: Limits, _ seen: inout Set<InfoHash>, _ listing: inout TorrentListing
    ) throws -> String? {
        let bytes = try BoundedFile.read(path, atMost: maxFileByteCount)
        let metainfo = try Metainfo(decoding: bytes)
        try metainfo.checkPieceLayers()
        let infoHashes = metainfo.trackerInfoHashes.filter { seen.insert($0).inserted }
        guard let first = infoHashes.first else { return nil }
        let isKept = bytes.count <= limits.torrentFileByteCount
        let other = "the file of this torrent is kept under its other info hash, \(first)"
        for infoHash in infoHashes {
            let torrent = RegisteredTorrent(
                infoHash: infoHash, name: metainfo.info.name.description, byteCount: UInt64(metainfo.totalLength))
            listing.torrents.append(FileTorrent(torrent, isKept: isKept && infoHash == first))
            if infoHash != first { listing.reasons[infoHash] = other }
        }
        guard isKept, let hash = Bytes32(sha256(bytes)) else {
            let most = limits.torrentFileByteCount
            let reason =
                "its file has \(bytes.count) bytes, and one that is kept whole has at most \(most) "
                + "(limits.torrent-file-bytes)"
            for infoHash in infoHashes { listing.reasons[infoHash] = reason }
            return reason
        }
        listing.files.append(.init(infoHash: first, path: path, byteCount: bytes.count, sha256: hash))
        return nil
    }
}

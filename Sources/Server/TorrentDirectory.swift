// A directory of .torrent files.

import Foundation
import Logging
import Settings
import Torrents
import TrackerLogic
import Wire

/// A directory of .torrent files, whose torrents the tracker registers by name and size.
package enum TorrentDirectory {
    /// Bytes of a .torrent file at most: 1 TiB in pieces of 256 KiB takes 80 MiB.
    static let maxFileByteCount = 100 << 20

    /// Reads all .torrent files of a directory, not of those inside it.
    ///
    /// - Returns: a torrent for each info hash of each file (a hybrid has two), in the order of the files' names. A
    ///   file that cannot be read is told of in the log and left out.
    /// - Throws: where the directory itself cannot be read.
    package static func read(_ path: String, atMost limit: Int, logger: Logger) throws -> [RegisteredTorrent] {
        let names = try FileManager.default.contentsOfDirectory(atPath: path)
            .filter { $0.hasSuffix(".torrent") }.sorted()
        var torrents: [RegisteredTorrent] = []
        for name in names {
            let file = (path as NSString).appendingPathComponent(name)
            do {
                torrents += try torrent(file)
            } catch {
                logger.warning("a torrent is not registered: \(error)", metadata: ["file": "\(file)"])
            }
            if torrents.count > limit {
                logger.warning(
                    "only the first torrents are registered", metadata: ["limit": "\(limit)", "directory": "\(path)"])
                return Array(torrents.prefix(limit))
            }
        }
        return torrents
    }

    private static func torrent(_ file: String) throws -> [RegisteredTorrent] {
        let metainfo = try Metainfo(decoding: try BoundedFile.read(file, atMost: maxFileByteCount))
        try metainfo.checkPieceLayers()
        return metainfo.trackerInfoHashes.map {
            RegisteredTorrent(
                infoHash: $0, name: metainfo.info.name.description, byteCount: UInt64(metainfo.totalLength))
        }
    }
}

// Giving a torrent to a cluster: for `torrent publish` and `torrent share`.

import Client
import Primitives
import Torrents
import Wire

/// Gives torrents to a cluster, by the first of its consoles that can be reached.
struct TorrentPublishing {
    /// As in `127.0.0.1:6970`.
    var consoles: [String]
    var access: ConsoleAccess
    /// Whether it is an error that the cluster has the torrent already.
    var mustBeNew: Bool

    /// Reads addresses and token, so that what is wrong with them is told at once.
    func check() throws {
        for console in consoles { _ = try access.client(of: console) }
    }

    func publish(_ metainfo: Metainfo) async throws -> PublishedTorrent {
        var failure = Failure(.failed, "no console was named")
        for console in consoles {
            let client = try access.client(of: console)
            do throws(TrackerClientError) {
                return PublishedTorrent(try await client.publish(metainfo.bytes, mustBeNew: mustBeNew), metainfo)
            } catch {
                failure = ConsolePlace.failure(error, at: console)
                guard !error.isAnswer else { break }
            }
        }
        throw failure
    }
}

/// A torrent that a cluster has.
struct PublishedTorrent: Sendable {
    var published: ConsoleClient.Published
    /// The cluster's announce URLs, as far as it tells them.
    var trackers: [String]
    /// Whether the file itself names one of them.
    var namesCluster: Bool

    init(_ published: ConsoleClient.Published, _ metainfo: Metainfo) {
        self.published = published
        // The console's link names the cluster's trackers, and behind them the torrent's own.
        let own = MagnetLink(metainfo, infoHash: metainfo.infoHashV1, infoHashV2: metainfo.infoHashV2).trackers
        let isOrdered = published.trackers.suffix(own.count) == own[...]
        let cluster = isOrdered ? Array(published.trackers.dropLast(own.count)) : published.trackers
        trackers = cluster
        namesCluster = cluster.contains { own.contains($0) }
    }

    /// For programs.
    var document: Document {
        Document(
            infoHash: published.infoHash, name: published.name, magnet: published.magnet, trackers: trackers,
            isNew: published.isNew, namesCluster: namesCluster)
    }

    struct Document: Encodable {
        var infoHash: String
        var name: String
        var magnet: String
        var trackers: [String]
        var isNew: Bool
        var namesCluster: Bool
    }

    /// For people.
    func tell() {
        var table = TextTable(.left, .left)
        table.add("published", published.isNew ? published.name : "\(published.name), which was there already")
        table.add("info hash", published.infoHash)
        for tracker in trackers { table.add("tracker", shownText(tracker.utf8)) }
        if !namesCluster, !trackers.isEmpty {
            table.add("mind", "the file itself names none of these trackers; the magnet link does")
        }
        table.add("magnet", shownText(published.magnet.utf8))
        Terminal.output.write(table.text())
    }
}

// `tracker torrent publish`.

import ArgumentParser
import Client
import Primitives
import Torrents
import Wire

/// `tracker torrent publish`.
struct TorrentPublishCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish",
        abstract: "Give a .torrent file to a cluster.",
        discussion: """
            The cluster registers the torrent, and hands the file to all of its trackers. Publishing again changes \
            nothing, and ends well.

            JSON: infoHash, name, magnet, trackers (the cluster's announce URLs, as far as it tells them), isNew, \
            namesCluster (whether the file itself names one of them).
            """)

    @Argument(help: ArgumentHelp("A .torrent file.", valueName: "torrent"))
    var torrent: String

    @Flag(help: "Fail where the cluster has it already.")
    var new = false

    @OptionGroup var consoles: ClusterConsoles
    @OptionGroup var report: ReportOptions

    func run() async throws {
        let metainfo = try readTorrent(torrent)
        let published = try await publish(metainfo.bytes)
        // The console's link names the cluster's trackers, and behind them the torrent's own.
        let own = MagnetLink(metainfo, infoHash: metainfo.infoHashV1, infoHashV2: metainfo.infoHashV2).trackers
        let isOrdered = published.trackers.suffix(own.count) == own[...]
        let clusterTrackers = isOrdered ? published.trackers.dropLast(own.count) : published.trackers
        let namesCluster = clusterTrackers.contains { own.contains($0) }
        if report.isJSON {
            try report.writeJSON(
                Document(
                    infoHash: published.infoHash, name: published.name, magnet: published.magnet,
                    trackers: clusterTrackers, isNew: published.isNew, namesCluster: namesCluster))
            return
        }
        var table = TextTable(.left, .left)
        table.add("published", published.isNew ? published.name : "\(published.name), which was there already")
        table.add("info hash", published.infoHash)
        for tracker in clusterTrackers { table.add("tracker", shownText(tracker.utf8)) }
        if !namesCluster, !clusterTrackers.isEmpty {
            table.add("mind", "the file itself names none of these trackers; the magnet link does")
        }
        table.add("magnet", shownText(published.magnet.utf8))
        Terminal.output.write(table.text())
    }

    /// By the first console that can be reached.
    private func publish(_ file: [UInt8]) async throws -> ConsoleClient.Published {
        var failure = Failure(.failed, "no console was named")
        for console in consoles.all {
            let client = try consoles.access.client(of: console)
            do throws(TrackerClientError) {
                return try await client.publish(file, mustBeNew: new)
            } catch {
                failure = ConsolePlace.failure(error, at: console)
                guard !error.isAnswer else { break }
            }
        }
        throw failure
    }

    private struct Document: Encodable {
        var infoHash: String
        var name: String
        var magnet: String
        var trackers: [String]
        var isNew: Bool
        var namesCluster: Bool
    }
}

// `tracker torrent publish`.

import ArgumentParser

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
        let publishing = TorrentPublishing(consoles: consoles.all, access: consoles.access, mustBeNew: new)
        let published = try await publishing.publish(metainfo)
        if report.isJSON { try report.writeJSON(published.document) } else { published.tell() }
    }
}

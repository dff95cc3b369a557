// `tracker torrent`.

import ArgumentParser

/// `tracker torrent`: making .torrent files, looking into them, and giving them to a cluster.
struct TorrentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "torrent",
        abstract: "Make .torrent files, look into them, check data, publish, share.",
        subcommands: [
            TorrentCreateCommand.self, TorrentShowCommand.self, TorrentVerifyCommand.self, TorrentPublishCommand.self,
            TorrentShareCommand.self,
        ])
}

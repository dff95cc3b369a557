// `tracker torrent`.

import ArgumentParser

/// `tracker torrent`: making .torrent files and looking into them.
struct TorrentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "torrent",
        abstract: "Make .torrent files, and look into them.",
        subcommands: [TorrentCreateCommand.self, TorrentShowCommand.self])
}

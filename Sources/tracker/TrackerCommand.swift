// `tracker`: the program and what it can do.

import ArgumentParser

/// The version of the program.
let version = "0.1.0"

/// `tracker`: the program and what it can do.
struct TrackerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tracker",
        abstract: "A BitTorrent tracker that does not lose what it has answered.",
        discussion: """
            Run `tracker serve`, and put udp://HOST:6969/announce into your torrents.

            Exit codes:
               0  done
               1  failed, or answered with an error; of doctor: something is wrong
               2  the command line makes no sense
              69  no answer: the host cannot be found or reached, or is silent
              74  the machine says no: a file, a disk or a port
              78  the configuration is wrong
             130  of get: ended by a signal before all was here
            """,
        version: version,
        subcommands: [
            ServeCommand.self, DemoCommand.self, StatusCommand.self, DoctorCommand.self, MembersCommand.self,
            HandoverCommand.self, ElectCommand.self, StopCommand.self, UserCommand.self,
            AnnounceCommand.self, ScrapeCommand.self, LoadCommand.self,
            TorrentCommand.self, GetCommand.self, SeedCommand.self, PeerCommand.self, SimulateCommand.self,
            ReplayCommand.self, ExploreCommand.self,
        ])
}

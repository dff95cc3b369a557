// `tracker torrent share`.

import ArgumentParser
import Foundation
import Transfers
import Wire

/// `tracker torrent share`: `create`, `publish` and `seed` in one.
struct TorrentShareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share",
        abstract: "Make a .torrent file, publish it, and seed.",
        discussion: """
            \(TorrentMaking.discussion)

            With --publish a cluster registers the torrent before it is seeded, and its trackers are told of the \
            seeder, too. It goes on until it is ended (Ctrl-C), or until --seed-ratio is reached. Later on, `tracker \
            seed` goes on with it.

            JSON: an object a line; created (as of torrent create) and published (as of torrent publish) are the first \
            ones.
            """)

    @OptionGroup var making: TorrentMaking

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Give it to a cluster, by the console of one of its trackers; may be given several times.",
            valueName: "host:port"))
    var publish: [String] = []

    @OptionGroup var access: ConsoleAccess

    @Flag(help: "With --publish: fail where the cluster has it already.")
    var new = false

    @OptionGroup var seeding: SeedFlags
    @OptionGroup var flags: TransferFlags

    func validate() throws {
        guard publish.isEmpty, new || access.tokenFile != nil else { return }
        throw ValidationError("\(new ? "--new" : "--token-file") is for --publish; name a console with it")
    }

    func run() async throws {
        let publishing = TorrentPublishing(consoles: publish, access: access, mustBeNew: new)
        try publishing.check()
        let made = try await making.make(isQuiet: flags.isJSON)
        if flags.isJSON { writeJSONLine(Event("created", made.document)) } else { made.tell() }
        var options = flags.transferOptions(directory: directory, trackers: [], targetRatio: seeding.seedRatio)
        options.sources = making.paths
        options.hashedAt = made.hashedAt
        if !publish.isEmpty {
            let published = try await publishing.publish(made.metainfo)
            if flags.isJSON { writeJSONLine(Event("published", published.document)) } else { published.tell() }
            options.extraTrackers = published.trackers
        }
        try await seeding.run(.metainfo(made.metainfo.bytes), options, flags)
    }

    /// Where what is verified is noted: beside the first of what is shared.
    private var directory: String {
        URL(filePath: making.paths[0]).resolvingSymlinksInPath().deletingLastPathComponent().path
    }

    /// What has been done, as an event.
    private struct Event<Body: Encodable>: Encodable {
        private enum Key: CodingKey {
            case event
        }

        let name: String
        let body: Body

        init(_ name: String, _ body: Body) {
            self.name = name
            self.body = body
        }

        func encode(to encoder: any Encoder) throws {
            try body.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(name, forKey: .event)
        }
    }
}

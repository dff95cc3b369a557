// `tracker seed`.

import ArgumentParser
import Transfers

/// `tracker seed`.
struct SeedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "seed",
        abstract: "Give a torrent's data to others.",
        discussion: """
            What lies in --path is checked first, unless it is noted as verified and has not changed since. Nothing is \
            written there, and what is missing is not fetched. It goes on until it is ended (Ctrl-C), or until \
            --seed-ratio is reached.
            """)

    @Argument(help: ArgumentHelp("A .torrent file.", valueName: "torrent"))
    var torrent: String

    @OptionGroup var place: TransferPlace
    @OptionGroup var seeding: SeedFlags
    @OptionGroup var flags: TransferFlags

    func run() async throws {
        let source = try readSource(torrent, trackers: [])
        guard case .metainfo = source else {
            throw Failure(.usage, "a seeder needs the .torrent file; get and --seed take magnet links, too")
        }
        let options = flags.transferOptions(
            directory: place.path, trackers: place.announce, targetRatio: seeding.seedRatio)
        try await seeding.run(source, options, flags)
    }
}

/// The flags of those who give what they have: `seed` and `torrent share`.
struct SeedFlags: ParsableArguments {
    @Option(help: ArgumentHelp("End when so much is given, of the torrent's size.", valueName: "ratio"))
    var seedRatio: Double?

    func validate() throws {
        if let seedRatio, !(0...10_000).contains(seedRatio) { throw ValidationError("--seed-ratio is 0 to 10,000") }
    }

    /// Seeds until it is ended.
    func run(_ source: TorrentSource, _ options: TransferOptions, _ flags: TransferFlags) async throws {
        var options = options
        options.isSeedOnly = true
        let run = TransferRun(
            source: source, engine: flags.engineOptions(), options: options, isJSON: flags.isJSON,
            giveUpAfter: flags.giveUpAfter, endsWhenComplete: false)
        try await run.run()
    }
}

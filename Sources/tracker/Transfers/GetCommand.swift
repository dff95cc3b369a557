// `tracker get`.

import ArgumentParser
import Transfers

/// `tracker get`.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Download a torrent.",
        discussion: """
            It ends when all is here, verified, and each file has been read back; --seed and --seed-ratio go on. No \
            peer, no tracker and a full disk are no reason to end: it waits and says for what. What has come stays \
            when it is ended (Ctrl-C), and is not fetched again.
            """)

    @Argument(help: ArgumentHelp("A .torrent file, a magnet link, or 40 hexadecimal digits.", valueName: "torrent"))
    var torrent: String

    @Option(
        help: ArgumentHelp(
            "Only these files, by their places in the torrent from 0, as in 0,2-4.", valueName: "numbers"),
        transform: readNumbers)
    var files: Set<Int>?

    @Flag(help: "Go on as a seeder when all is here.")
    var seed = false

    @Option(help: ArgumentHelp("Go on as a seeder until so much is given for what was had.", valueName: "ratio"))
    var seedRatio: Double?

    @OptionGroup var flags: TransferFlags

    func validate() throws {
        if let seedRatio, !(0...10_000).contains(seedRatio) { throw ValidationError("--seed-ratio is 0 to 10,000") }
    }

    func run() async throws {
        let source = try readSource(torrent, trackers: [])
        var options = flags.transferOptions(targetRatio: seedRatio)
        options.wantedFiles = files
        let run = TransferRun(
            source: source, engine: flags.engineOptions(), options: options, isJSON: flags.isJSON,
            giveUpAfter: flags.giveUpAfter, endsWhenComplete: !seed && seedRatio == nil)
        try await run.run()
    }
}

/// Reads `0,2-4`.
func readNumbers(_ text: String) throws -> Set<Int> {
    var result: Set<Int> = []
    for part in text.split(separator: ",") {
        let ends = part.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard let first = ends[0], let last = ends.count == 1 ? first : ends[1], ends.count <= 2, first >= 0,
            last >= first, last < 200_000
        else { throw ValidationError("\"\(text)\" names no files; write for example 0,2-4") }
        result.formUnion(first...last)
    }
    guard !result.isEmpty else { throw ValidationError("--files names no file; write for example 0,2-4") }
    return result
}

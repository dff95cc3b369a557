// `tracker explore`.

import ArgumentParser
import Foundation
import Simulator

/// `tracker explore`.
struct ExploreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explore",
        abstract: "Walk over all schedules of a small cluster.",
        discussion: """
            Every order in which messages, writes, requests, elections and restarts can come, over the logic of \
            `tracker serve`. Messages are lost, come late, in any order, and as often as they like. First, states \
            that differ only in the messages under way count as one: no broken promise is missed. Where one is \
            suspected, a second walk tells those states apart, and shows a shortest schedule that leads there.

            With --network inOrder, messages come as over a broker: once, in the order of their sender, and lost only \
            when their receiver dies. That needs much less time and memory for large bounds.

            Ends with 0 when no promise was broken, with 1 when one was. It says whether all states within the bounds \
            were seen (exhausted), or --depth or --max-states came first (bounded).

            JSON: bounds, states, transitions, depth, isExhausted, localStates, localSteps, seconds, invariant, \
            detail, trace.
            """)

    @Option(help: "Trackers, 1 to \(ExplorerOptions.maxNodes).")
    var nodes = 3

    @Option(help: "How often somebody stands for master, at most.")
    var elections = 2

    @Option(help: "Announces of clients.")
    var requests = 1

    @Option(help: "Scrapes of clients.")
    var scrapes = 0

    @Option(help: "How often a tracker dies, to come back with what is on its disk.")
    var restarts = 0

    @Option(help: ArgumentHelp("Only this tracker dies; any unless told.", valueName: "tracker"))
    var mortal: Int?

    @Option(help: "Times that a tracker asks again what was not answered.")
    var waits = 0

    @Option(help: "Writes that fail.")
    var failures = 0

    @Option(help: "led: a master serves already; formed: nobody has ever been master.")
    var start = ExplorerOptions.Start.led

    @Option(help: "quick: writes are durable at once; slow: anything may come between; slowWhereNodesDie.")
    var disks = ExplorerOptions.Disks.quick

    @Option(
        help: """
            again: each message may come as often as it likes; once: at most once; either may be lost, or late. \
            inOrder: each comes once and in order.
            """)
    var network = ExplorerOptions.Network.again

    @Flag(help: "Walk for the shortest schedule at once: slower, and several times as many states.")
    var shortest = false

    @Option(help: ArgumentHelp("Steps of a schedule, at most; all unless told.", valueName: "steps"))
    var depth: Int?

    @Option(help: "States, at most: some 300 to 500 bytes each; in order, 40.")
    var maxStates = 50_000_000

    @OptionGroup var report: ReportOptions

    func validate() throws {
        guard (1...ExplorerOptions.maxNodes).contains(nodes) else {
            throw ValidationError("--nodes is 1 to \(ExplorerOptions.maxNodes)")
        }
        let bounds = [elections, requests, scrapes, restarts, waits, failures]
        guard bounds.allSatisfy({ (0...ExplorerOptions.maxBudget).contains($0) }) else {
            throw ValidationError("of anything, 0 to \(ExplorerOptions.maxBudget) may happen")
        }
        guard depth ?? 1 > 0, maxStates > 0, maxStates < Int(UInt32.max) else {
            throw ValidationError("--depth and --max-states are at least 1")
        }
        if let mortal {
            guard (1...nodes).contains(mortal) else { throw ValidationError("--mortal is one of 1 to \(nodes)") }
            guard restarts > 0 else { throw ValidationError("with --mortal, give --restarts: else nobody dies") }
        }
    }

    private var options: ExplorerOptions {
        var options = ExplorerOptions()
        options.nodes = nodes
        options.elections = elections
        options.requests = requests
        options.scrapes = scrapes
        options.restarts = restarts
        options.waits = waits
        options.failures = failures
        options.start = start
        options.disks = disks
        options.network = network
        options.reduction = shortest ? exact : first
        options.mortal = mortal.map { $0 - 1 }
        options.depth = depth
        options.maxStates = maxStates
        return options
    }

    /// How states are told apart at first, and for a shortest schedule.
    private var first: ExplorerOptions.Reduction { network == .inOrder ? .compact : .joined }
    private var exact: ExplorerOptions.Reduction { network == .inOrder ? .apart : .covered }

    func run() async throws {
        let (options, isShown) = (self.options, !report.isJSON)
        if isShown { Terminal.output.write("all schedules of \(options.bounds)\n") }
        let began = ContinuousClock.now
        let document = await onThread {
            var explorer = ExploreCommand.walk(options, began, isShown: isShown)
            if explorer.fault != nil, options.reduction != exact {
                if isShown { Terminal.output.write("a broken promise is suspected: walking for a schedule of it\n") }
                var again = options
                again.reduction = exact
                explorer = ExploreCommand.walk(again, began, isShown: isShown)
            }
            return Document(explorer, seconds: (ContinuousClock.now - began) / .seconds(1))
        }
        if report.isJSON { try report.writeJSON(document) } else { tell(document) }
        if document.invariant != nil { throw Failure(.failed, nil) }
    }

    private static func walk(
        _ options: ExplorerOptions, _ began: ContinuousClock.Instant, isShown: Bool
    ) -> Explorer {
        var explorer = Explorer(options)
        while explorer.walkLayer() {
            guard isShown else { continue }
            let seconds = (ContinuousClock.now - began) / .seconds(1)
            Terminal.output.write(
                "depth \(explorer.depth): \(Figures.counted(explorer.states, "state")), "
                    + "\(Figures.counted(explorer.transitions, "transition")), \(Figures.decimal(seconds, 1)) s\n")
        }
        return explorer
    }

    private func tell(_ document: Document) {
        let end = document.isExhausted ? "exhausted" : "bounded"
        if let invariant = document.invariant {
            Terminal.output.write("\(Terminal.output.styled(invariant, .bold, .red)): \(document.detail ?? "")\n")
            for line in document.trace { Terminal.output.write("  \(line)\n") }
        } else {
            Terminal.output.write("\(end): \(Terminal.output.styled("no promise broken", .green))\n")
        }
        Terminal.output.write(
            """
            \(Figures.counted(document.states, "state")), \(Figures.counted(document.transitions, "transition")), \
            depth \(document.depth), in \(Figures.decimal(document.seconds, 1)) s
            \(Figures.counted(document.localStates, "state")) of single trackers, \
            \(Figures.counted(document.localSteps, "step")) of theirs

            """)
    }

    private struct Document: Encodable, Sendable {
        var bounds: String
        var states: Int
        var transitions: Int
        var depth: Int
        var isExhausted: Bool
        var localStates: Int
        var localSteps: Int
        var seconds: Double
        var invariant: String?
        var detail: String?
        var trace: [String]

        init(_ explorer: Explorer, seconds: Double) {
            bounds = explorer.options.bounds
            states = explorer.states
            transitions = explorer.transitions
            depth = explorer.depth
            isExhausted = explorer.isExhausted
            localStates = explorer.localStates
            localSteps = explorer.localSteps
            self.seconds = (seconds * 1000).rounded() / 1000
            invariant = explorer.fault?.invariant.rawValue
            detail = explorer.fault?.detail
            trace = explorer.trace()
        }
    }
}

extension ExplorerOptions.Start: ExpressibleByArgument {}
extension ExplorerOptions.Disks: ExpressibleByArgument {}
extension ExplorerOptions.Network: ExpressibleByArgument {}

// What comes before the walk.

import Primitives
import TrackerLogic
import Wire

/// What comes before the walk: the cluster is formed, and perhaps its first master elected, in one order only.
struct ExplorerPrologue {
    private let options: ExplorerOptions
    private(set) var states: [LocalState]
    private(set) var fault: ExplorerFault?
    private var envelopes: [(message: ClusterMessage, receiver: Int)] = []
    /// Ticks of a quarter of a keepalive after which something is wrong.
    private static let maxTicks = 200

    init(_ options: ExplorerOptions) {
        self.options = options
        states = (0..<options.nodes).map { LocalState.blank($0, options) }
    }

    mutating func run() {
        for node in states.indices {
            step(node, .started)
            step(node, .busConnected)
        }
        for _ in 0..<ExplorerPrologue.maxTicks {
            carryAll()
            if isDone { return }
            for node in states.indices {
                states[node].now = states[node].now + ExplorerOptions.keepalive / 4
                step(node, .deadlineReached)
            }
        }
        fault = fault ?? ExplorerFault(.healedIsOne, "the cluster does not come to its \(options.start) start")
    }

    private var isDone: Bool {
        let views = states.map { $0.machine.inspection }
        switch options.start {
        case .formed: return views.allSatisfy { $0.hasFullState && $0.promised == .zero }
        case .led:
            return views.count { $0.leads != nil } == 1
                && views.allSatisfy { $0.isServing && $0.position.index > 0 && $0.position == views[0].position }
        }
    }

    private mutating func step(_ node: Int, _ event: Event) {
        var run = LocalRun(states[node])
        run.step(event)
        run.completeAllWrites()
        states[node] = run.state
        fault = fault ?? run.fault
        for message in run.messages {
            for receiver in states.indices where receiver != node { envelopes.append((message, receiver)) }
        }
    }

    private mutating func carryAll() {
        var place = 0
        while place < envelopes.count {
            step(envelopes[place].receiver, .messageReceived(envelopes[place].message))
            place += 1
        }
        envelopes = []
    }

    /// What a node has come to, for the history.
    func facts(of node: Int) -> LocalFacts {
        var facts = LocalFacts()
        let machine = states[node].machine
        let position = machine.state.position
        guard position.index > 0 else { return facts }
        for index in 1...position.index {
            guard let entry = machine.committedEntry(at: index) else { continue }
            facts.noteApplied(entry.position, entry)
        }
        if let epoch = machine.inspection.leads { facts.claims.append(epoch) }
        return facts
    }
}

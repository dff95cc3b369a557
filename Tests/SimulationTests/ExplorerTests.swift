/// The explorer: small clusters, every schedule of them. (`tracker explore` walks over larger ones.)

import Simulator
import Testing

@Suite("Explorer")
struct ExplorerTests {
    private func explored(_ change: (inout ExplorerOptions) -> Void) -> Explorer {
        var options = ExplorerOptions()
        options.start = .led
        (options.elections, options.requests, options.restarts) = (0, 0, 0)
        change(&options)
        var explorer = Explorer(options)
        explorer.walk()
        return explorer
    }

    /// - Parameter states: so few would be found if moves were forgotten.
    private func expectFaultless(_ explorer: Explorer, states: Int, isExhausted: Bool = true) {
        if let fault = explorer.fault {
            Issue.record("\(fault.invariant): \(fault.detail)\n\(explorer.trace().joined(separator: "\n"))")
        }
        #expect(explorer.isExhausted == isExhausted)
        #expect(explorer.states >= states)
    }

    @Test("two elections break no promise, in whatever order things come")
    func elections() {
        expectFaultless(explored { $0.elections = 2 }, states: 5_000)
    }

    @Test("an announce and a restart break no promise, wherever a write is when the tracker dies")
    func restart() {
        let explorer = explored {
            $0.requests = 1
            $0.restarts = 1
            $0.disks = .slow
        }
        expectFaultless(explorer, states: 1_000)
    }

    @Test("an announce in an election breaks no promise")
    func requestInElection() {
        let explorer = explored {
            $0.elections = 1
            $0.requests = 1
            $0.disks = .slow
            $0.depth = 10
        }
        expectFaultless(explorer, states: 5_000, isExhausted: false)
    }

    @Test("a scrape shows what was answered before it came, also in an election")
    func scrapes() {
        let explorer = explored {
            $0.requests = 1
            $0.scrapes = 1
            $0.elections = 1
            $0.depth = 7
        }
        expectFaultless(explorer, states: 1_000, isExhausted: false)
    }

    @Test("a walk is the same each time")
    func isDeterministic() {
        let walks = (0..<2).map { _ in explored { $0.elections = 1 } }
        #expect(walks[0].states == walks[1].states)
        #expect(walks[0].transitions == walks[1].transitions)
        #expect(walks[0].localSteps == walks[1].localSteps)
    }

    @Test("a failed write aborts an entry for good, in whatever order votes come")
    func failures() {
        let explorer = explored {
            $0.requests = 1
            $0.failures = 2
            $0.disks = .slow
        }
        expectFaultless(explorer, states: 500)
    }
}

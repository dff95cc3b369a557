// The explorer: small clusters, every schedule of them. (`tracker explore` walks over larger ones.)

import Simulator
import Testing

@Suite("Explorer", .computes)
struct ExplorerTests {
    private func explored(_ change: (inout ExplorerOptions) -> Void) -> Explorer {
        var options = ExplorerOptions()
        options.reduction = .joined
        (options.elections, options.requests, options.restarts) = (0, 0, 0)
        change(&options)
        var explorer = Explorer(options)
        explorer.walk()
        return explorer
    }

    /// Walks over all schedules; fewer states than `states` would be found if moves were forgotten.
    private func expectFaultless(_ explorer: Explorer, states: Int, isExhausted: Bool = true) {
        if let fault = explorer.fault {
            Issue.record("\(fault.invariant): \(fault.detail)\n\(explorer.trace().joined(separator: "\n"))")
        }
        #expect(explorer.isExhausted == isExhausted)
        #expect(explorer.states >= states)
    }

    @Test
    func `two elections break no promise, in whatever order things come, and however often`() {
        expectFaultless(explored { $0.elections = 2 }, states: 1_000)
    }

    @Test
    func `an announce and a restart break no promise, wherever a write is when the tracker dies`() {
        expectFaultless(
            explored {
                $0.requests = 1
                $0.restarts = 1
                $0.disks = .slow
            }, states: 1_000)
    }

    @Test
    func `an announce in an election breaks no promise`() {
        expectFaultless(
            explored {
                $0.elections = 1
                $0.requests = 1
            }, states: 5_000)
    }

    @Test
    func `an announce, and a death between any two writes of an election, break no promise`() {
        expectFaultless(
            explored {
                $0.elections = 1
                $0.requests = 1
                $0.restarts = 1
                $0.mortal = 2
            }, states: 20_000)
    }

    @Test
    func `a scrape shows what was answered before it came, also in an election`() {
        expectFaultless(
            explored {
                $0.requests = 1
                $0.scrapes = 1
                $0.elections = 1
                $0.network = .once
                $0.depth = 7
            }, states: 1_000, isExhausted: false)
    }

    @Test
    func `an election, two announces and a death after an answer break no promise`() {
        // The tracker dies in the step that decides and answers: what it applied was once looked up after its death.
        expectFaultless(
            explored {
                $0.elections = 1
                $0.requests = 2
                $0.restarts = 1
                $0.depth = 6
            }, states: 10_000, isExhausted: false)
    }

    @Test
    func `where messages come in order, an election, an announce and a restart break no promise`() {
        let walks = [ExplorerOptions.Reduction.apart, .compact].map { reduction in
            explored {
                ($0.elections, $0.requests, $0.restarts) = (1, 1, 1)
                ($0.network, $0.reduction) = (.inOrder, reduction)
            }
        }
        for walk in walks { expectFaultless(walk, states: 200_000) }
        #expect(walks[0].states == walks[1].states && walks[0].transitions == walks[1].transitions)
    }

    @Test(
        arguments: [(2, 0, 0), (1, 1, 0), (0, 2, 0), (1, 0, 1)])
    func `joining states, or leaving out those that are covered, leaves out nothing that a tracker can come to`(
        elections: Int, requests: Int, restarts: Int
    ) {
        let walks = [ExplorerOptions.Reduction.apart, .covered, .joined].map { reduction in
            explored {
                ($0.elections, $0.requests, $0.restarts) = (elections, requests, restarts)
                $0.reduction = reduction
            }
        }
        for walk in walks {
            #expect(walk.isExhausted && walk.fault == nil)
        }
        // The same states but for the messages under way; joined states may have some more, never fewer.
        #expect(walks[0].kernels == walks[1].kernels)
        #expect(walks[0].localStates == walks[1].localStates)
        #expect(walks[2].kernels >= walks[1].kernels)
        #expect(walks[2].localStates >= walks[1].localStates)
        #expect(walks[2].states < walks[0].states)
    }

    @Test
    func `a walk is the same each time`() {
        let walks = (0..<2).map { _ in explored { $0.elections = 1 } }
        #expect(walks[0].states == walks[1].states)
        #expect(walks[0].transitions == walks[1].transitions)
        #expect(walks[0].localSteps == walks[1].localSteps)
    }

    @Test
    func `a failed write aborts an entry for good, in whatever order votes come`() {
        let explorer = explored {
            $0.requests = 1
            $0.failures = 2
            $0.disks = .slow
        }
        expectFaultless(explorer, states: 500)
    }
}

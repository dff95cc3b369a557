// A walk of one's own through the explorer's choices.

import Primitives
import Simulator
import Testing

@Suite("Walks", .computes)
struct ExplorerWalkTests {
    private func options(_ words: String) throws -> ExplorerOptions { try ExplorerOptions(words: words) }

    /// Goes everywhere.
    private func wholeWalk(_ options: ExplorerOptions) -> ExplorerWalk {
        var walk = ExplorerWalk(options)
        var next = 0
        while next < walk.visitedCount {
            _ = walk.go(to: next)
            for number in walk.choices.indices {
                _ = walk.go(to: next)
                _ = walk.choose(number)
            }
            next += 1
        }
        return walk
    }

    @Test(arguments: [
        "nodes=3&elections=1&requests=0&network=once", "nodes=2&elections=1&requests=1&network=again",
        "nodes=2&elections=1&requests=0&restarts=1&network=again", "nodes=2&elections=1&requests=1&network=inOrder",
        "nodes=2&elections=1&requests=1&disks=slow&failures=1&network=once",
    ])
    func `whoever goes everywhere has seen what the explorer sees`(_ words: String) throws {
        var options = try options(words)
        let walk = wholeWalk(options)
        options.reduction = .apart
        var explorer = Explorer(options)
        explorer.walk()
        #expect(explorer.isExhausted)
        #expect(walk.visitedCount == explorer.states)
        #expect(walk.visitedCount > 20, "\(walk.visitedCount)")
    }

    @Test func `a choice leads to a state, and back to the one before`() throws {
        var walk = ExplorerWalk(try options("nodes=3&elections=2&requests=1&restarts=1"))
        var random = RandomStream(seed: 3, stream: 3)
        var seen: [(choices: [ExplorerWalk.Choice], standings: [String])] = []
        for depth in 0..<12 where !walk.choices.isEmpty {
            #expect(walk.depth == depth && walk.story.count == depth)
            seen.append((walk.choices, walk.standings))
            let number = random.below(walk.choices.count)
            let known = walk.choices[number].state
            let visited = walk.visitedCount
            let isChosen = walk.choose(number)
            #expect(isChosen)
            #expect(known.map { $0 == walk.state } ?? (walk.state == visited))
            #expect(walk.edges.contains { $0.to == walk.state })
        }
        for expected in seen.reversed() {
            let isBack = walk.back()
            #expect(isBack)
            #expect(walk.standings == expected.standings)
            #expect(walk.choices.map(\.text) == expected.choices.map(\.text))
        }
        let isFurtherBack = walk.back()
        let isChosen = walk.choose(walk.choices.count)
        let isElsewhere = walk.go(to: walk.visitedCount)
        #expect(!isFurtherBack && !isChosen && !isElsewhere && walk.state == 0)
        // What was gone is known.
        #expect(walk.choices.contains { $0.state != nil })
    }

    @Test(arguments: [
        ("nodes=6", "from 1 to 5"), ("nodes=x", "from 1 to 5"), ("elections=16", "from 0 to 15"),
        ("network=never", "once, again, inOrder"), ("colour=red", "know nothing of \"colour=red\""),
        ("nodes", "write key=value"), ("nodes=2&mortal=2", "a smaller one"), ("start=late", "formed, led"),
    ])
    func `bounds that nobody understands are refused with a sentence`(_ words: String, _ part: String) {
        do throws(WordsRefused) {
            _ = try ExplorerOptions(words: words)
            Issue.record("\(words) is not refused")
        } catch {
            #expect(error.description.contains(part), "\(error)")
        }
    }
}

@Suite("Shrinking in steps", .computes)
struct ShrinkStepsTests {
    /// All trackers lose their bus by the script when all should be well, so that a promise is broken in any case.
    private static let scenario: @Sendable (Run) -> Scenario = { run in
        var scenario = run.scenario
        let end = scenario.options.coreLength + .seconds(20)
        scenario.options.script = [ScriptedEvent(at: end, .brokerOutage(.seconds(60)))]
        return scenario
    }

    @Test func `a few tries at a time find what all at once find`() throws {
        var run = Run(seed: 8, profile: .paxos)
        run.whatIfs = [
            WhatIf(after: 300, .kill(0, milliseconds: 500)), WhatIf(after: 900, .pause(1, milliseconds: 500)),
        ]
        let result = ShrinkStepsTests.scenario(run).run()
        let broken = try #require(result.violations.first)
        var whole = RunShrinker(run, breaking: broken.invariant, of: ShrinkStepsTests.scenario)
        whole.shrink(result)
        var steps = try #require(ShrinkSteps(run, result, of: ShrinkStepsTests.scenario))
        var (calls, tried) = (0, 0)
        while !steps.isDone {
            let before = steps.tries.count
            tried += steps.next(7).count
            calls += 1
            #expect(steps.tries.count <= before + 7)
        }
        #expect(steps.smallest == whole.run)
        #expect(steps.smallest.whatIfs.isEmpty && steps.smallest.faults == [])
        #expect(calls > 2 && tried == steps.tries.count)
        #expect(steps.tries.contains { $0.isFailing })
        let more = steps.next(7)
        #expect(more.isEmpty)
    }

    @Test func `what breaks no promise is not shrunk`() {
        let run = Run(seed: 8, profile: .paxos)
        let steps = ShrinkSteps(run, run.scenario.run())
        #expect(steps?.invariant == nil)
    }
}

// What people read of a simulated cluster: lines, faults with their ends, the state at a moment, and reasons.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Stories", .computes)
struct StoryTests {
    private func at(_ seconds: Double) -> Instant { Instant(nanoseconds: Int64(seconds * 1e9)) }

    private func quiet(_ profile: Profile, _ script: [ScriptedEvent]) -> Scenario {
        var scenario = Scenario(seed: 1, profile: profile, nodes: 3, seconds: 10)
        var options = ScenarioOptions()
        options.coreLength = .seconds(10)
        options.clientCount = 3
        options.scraperCount = 0
        options.interval = 6
        options.script = script
        scenario.options = options
        return scenario
    }

    // MARK: - Lines

    @Test(arguments: Profile.clusters)
    func `lines are sentences about trackers by their numbers`(_ profile: Profile) {
        for seed: UInt64 in 0..<6 {
            let result = Scenario(seed: seed, profile: profile).run(recordsTrace: true)
            let names = result.names
            for line in result.lines {
                #expect(!line.text.contains("TrackerLogic."))
                #expect(!line.text.contains("Optional("))
                #expect(line.columns.count == names.short.count)
                // A line about one tracker begins with its name, or says who does it harm.
                guard line.trackers.nonzeroBitCount == 1, line.kinds.isDisjoint(with: .faults) else { continue }
                #expect(line.text.hasPrefix("\(names[line.trackers.trailingZeroBitCount]) "), "\(line.text)")
            }
            #expect(result.trace.count == result.lines.count + 1)
        }
    }

    @Test func `heads stand above their columns`() {
        let names = TrackerNames([101, 102, 0])
        #expect(names.short == ["101", "102", "u3"])
        #expect(names.place(of: "u3") == 2)
        #expect(names.place(of: "3") == nil)
        let columns = ["M 2.3 14", "-", "-"]
        let line = TraceLine(time: at(12.5), trackers: 1, kinds: [], columns: columns, text: "tracker 101 x")
        for places in [nil, [0, 2]] as [[Int]?] {
            func bars(_ text: String) -> [Int] { Array(text).indices.filter { Array(text)[$0] == "│" } }
            let head = names.heads(columns: places)[1]
            #expect(bars(head) == bars(line.words(columns: places)))
            #expect(head.contains("│ tracker u3 "))
        }
    }

    @Test func `a part of a trace is shown by time, tracker and kind`() {
        let run = Run(seed: 17, profile: .paxos)
        let result = run.scenario.run(recordsTrace: true)
        func lines(_ filter: TraceFilter) -> [TraceLine] { result.lines.filter { filter.holds($0) } }
        #expect(lines(TraceFilter()) == result.lines)
        let part = lines(TraceFilter(from: at(10), until: at(20)))
        #expect(!part.isEmpty)
        #expect(part == result.lines.filter { $0.time >= at(10) && $0.time <= at(20) })
        let own = lines(TraceFilter(trackers: [1]))
        #expect(own.count > 100)
        #expect(own.allSatisfy { $0.trackers & 2 == 2 || $0.kinds.isEmpty })
        #expect(own.contains { $0.text == "the world is healed" })
        for (name, kinds) in TraceKinds.named {
            #expect(TraceKinds(name: name) == kinds)
            let shown = lines(TraceFilter(kinds: kinds))
            #expect(shown.contains { !$0.kinds.isEmpty } && shown.count < result.lines.count, "\(name)")
        }
        #expect(TraceKinds(name: "vote") == nil)
        let elections = lines(TraceFilter(kinds: .elections)).map(\.text)
        #expect(elections.contains { $0.contains("becomes master") })
        #expect(!elections.contains { $0.contains("hears a stranger") })
    }

    // MARK: - Faults

    @Test(arguments: Profile.clusters)
    func `each fault that lasts is told when it begins and when it ends`(_ profile: Profile) {
        var kinds: [History.Period.Kind] = []
        for seed: UInt64 in 0..<40 {
            let result = Scenario(seed: seed, profile: profile).run(recordsTrace: true, recordsHistory: true)
            guard result.violations.isEmpty else { continue }
            for period in result.history.periods {
                kinds.append(period.kind)
                guard let until = period.until else {
                    Issue.record("seed \(seed): \(period.text) has no end")
                    continue
                }
                #expect(until >= period.from)
                let (cause, text) = split(period.text)
                let begin = result.lines.contains { line in
                    line.time == period.from
                        && (line.text.hasPrefix("\(cause) begins: \(text)")
                            || line.text.contains(": \(cause); is down"))
                }
                let end = result.lines.contains { line in
                    line.time == until && line.text.hasPrefix("\(cause) ") && line.text.hasSuffix(" s: \(text)")
                }
                #expect(begin && end, "seed \(seed): \(period.text)")
            }
        }
        for kind in History.Period.Kind.allCases { #expect(kinds.contains(kind), "no \(kind) was seen") }
    }

    /// Whose doing, and what; injections say at which moment, in brackets.
    private func split(_ text: String) -> (String, String) {
        let parts = text.split(separator: ": ", maxSplits: 1).map(String.init)
        return (parts[0], parts[1])
    }

    @Test func `a partition is told between whom it is`() {
        let result = quiet(.classic, [ScriptedEvent(at: .seconds(4), .partition([2], .milliseconds(2500)))])
            .run(recordsTrace: true, recordsHistory: true)
        let lines = result.lines.filter { $0.kinds.contains(.faults) }
        #expect(
            lines.map(\.text) == [
                "the script begins: partition {3} | {1, 2}, for 2.500 s",
                "the script ends after 2.500 s: partition {3} | {1, 2}",
            ])
        #expect(lines.map(\.time) == [at(4), at(6.5)])
        let svg = result.diagram(of: Run(seed: 1, profile: .classic, nodes: 3)).svg()
        #expect(svg.contains("the script: partition {3} | {1, 2}, 4.000 s to 6.500 s"))
    }

    @Test func `who has no bus, or is held, has a band in the picture`() {
        // What a seed draws may change; that some seeds show each of it may not.
        var wanted = [
            "class=\"band fence\"", " (broker outage): no bus at tracker ", "clock back by ", "class=\"band pause\"",
        ]
        for seed: UInt64 in 0..<60 where !wanted.isEmpty {
            let run = Run(seed: seed, profile: .paxos)
            let kinds = run.scenario.options.faults.kinds
            guard !Set(kinds).isDisjoint(with: [.brokerOutage, .clockStep, .pause]) else { continue }
            let svg = run.scenario.run(recordsHistory: true).diagram(of: run).svg()
            wanted.removeAll(where: svg.contains)
        }
        #expect(wanted.isEmpty)
    }

    // MARK: - A moment

    @Test(arguments: Profile.clusters)
    func `the state at a moment is the one that the trace shows`(_ profile: Profile) {
        let scenario = Scenario(seed: 3, profile: profile)
        let whole = scenario.run(recordsTrace: true)
        for seconds in [0.0, 0.7, 4.2, 11, 19.99, 33] {
            let result = scenario.run(recordsTrace: true, stopsAt: at(seconds))
            let before = whole.lines.filter { $0.time <= at(seconds) }
            guard let last = before.last else {
                // Down, with nothing promised, and nothing on the disk.
                #expect(result.state.count == 4 * result.names.short.count)
                continue
            }
            #expect(result.lines == before)
            let accounts = result.state.split { !$0.hasPrefix(" ") }.map(Array.init)
            #expect(accounts.count == last.columns.count)
            for (column, account) in zip(last.columns, accounts) where column != "-" {
                let words = column.split(separator: " ")
                let index = words.last.map { $0.hasSuffix("+") ? $0.dropLast() : $0 } ?? ""
                let epoch = words[words.count - 2]
                #expect(account.contains { $0.contains("  log ") && $0.contains("through entry \(index);") })
                #expect(account.contains { $0.contains("  promise ") && $0.contains("epoch \(epoch)") })
                #expect(account.contains { $0.contains("  waits for ") })
            }
        }
    }

    @Test func `the state of the trackers that were named is told`() {
        let result = quiet(.paxos, []).run(recordsTrace: true, stopsAt: at(8), telling: [2])
        #expect(result.state.first == "tracker 3 at 8.000 s")
        let text = result.state.joined(separator: "\n")
        for title in ["role", "promise", "log", "pending", "following", "transfer", "voters", "book", "waits for"] {
            #expect(text.contains("\n  \(title) "))
        }
        #expect(text.contains("\n  tracker 1  "))
        #expect(!text.contains("tracker 3  "))
    }

    // MARK: - Reasons

    /// After the faults, when nobody is to lose his bus any more, just before everybody asks anew.
    @Test func `who is not answered learns that nobody has a bus`() {
        let result = quiet(.paxos, [ScriptedEvent(at: .seconds(30), .brokerOutage(.seconds(60)))]).run(
            recordsTrace: true)
        #expect(result.violations.contains { $0.invariant == .healedIsAnswered || $0.invariant == .healedIsOne })
        for id in 1...3 {
            #expect(result.reasons.contains("tracker \(id) has no bus since 30.000 s, the script (broker outage)"))
        }
        #expect(result.reasons.contains { $0.hasPrefix("client ") && $0.contains(" has asked since ") })
        let failure = result.failure(of: Run(seed: 1, profile: .paxos))
        #expect(failure.contains("  why:\n    tracker 1 has no bus"))
    }

    @Test func `who is in a minority says how many miss the master`() throws {
        let result = quiet(.paxos, [ScriptedEvent(at: .seconds(31), .partition([0], .seconds(60)))])
            .run(recordsTrace: true)
        #expect(result.violations.contains { $0.invariant == .healedIsOne })
        let reason = try #require(result.reasons.first { $0.hasPrefix("tracker 1 ") })
        #expect(reason.contains("follows nobody: suspects since 3"))
        #expect(reason.hasSuffix("no quorum: 1 of 3 voters miss the master (1, not 2, 3)"))
        #expect(result.reasons.contains { $0.hasPrefix("tracker 2 serves: ") })
    }

    @Test func `where all is well there is nothing to explain`() {
        let result = quiet(.paxos, []).run(recordsTrace: true)
        #expect(result.violations.isEmpty && result.reasons.isEmpty)
    }
}

// Whoever is left out of a world, or comes in later, moves nobody else's draws.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Chance", .computes)
struct ChanceTests {
    private static let profiles = Profile.clusters

    /// Lines up to the moment at which what was left out would have had its say.
    private func before(_ moment: Instant, _ result: ScenarioResult) -> [TraceLine] {
        result.lines.filter { $0.time < moment }
    }

    /// The lines in which faults by the clock begin that depend on nobody's state, by number.
    private func blindFaults(_ result: ScenarioResult) -> [String: TraceLine] {
        let blind = [" partition ", "one-way partition, ", " deaf links, "]
        var found: [String: TraceLine] = [:]
        for line in result.lines where blind.contains(where: { line.text.contains(" begins:\($0)") }) {
            var line = line
            line.columns = []
            found[line.text.split(separator: " ")[1].description] = line
        }
        return found
    }

    @Test(arguments: profiles)
    func `a fault that is left out leaves the others where, when and what they were`(_ profile: Profile) {
        var compared = 0
        for seed: UInt64 in 0..<60 {
            var run = Run(seed: seed, profile: profile)
            let whole = run.scenario.run(recordsTrace: true)
            let faults = blindFaults(whole)
            guard whole.violations.isEmpty, !faults.isEmpty, whole.tally.faultsDrawn > 3 else { continue }
            for left in [1, whole.tally.faultsDrawn / 2] {
                run.faults = (1...whole.tally.faultsDrawn).filter { $0 != left }.map { ChosenFault($0) }
                let less = run.scenario.run(recordsTrace: true)
                var expected = faults
                expected["\(left)"] = nil
                #expect(blindFaults(less) == expected, "\(run.command)")
                compared += expected.count
                let cause = "fault \(left)"
                guard let began = whole.lines.first(where: { $0.text.contains(cause) })?.time else {
                    // Nobody saw it: it was drawn, and hit nobody.
                    continue
                }
                #expect(before(began, less) == before(began, whole), "\(run.command)")
            }
        }
        #expect(compared > 20)
    }

    @Test(arguments: profiles)
    func `one kind of faults more leaves those of other kinds as they were`(_ profile: Profile) {
        var compared = 0
        for seed: UInt64 in 0..<60 {
            var scenario = Scenario(seed: seed, profile: profile)
            guard !scenario.options.faults.kinds.contains(.clockStep) else { continue }
            let few = blindFaults(scenario.run(recordsTrace: true))
            scenario.options.faults.kinds.append(.clockStep)
            let more = blindFaults(scenario.run(recordsTrace: true))
            // It takes the place of some, and the others stay.
            #expect(more.allSatisfy { few[$0.key] == $0.value }, "seed \(seed)")
            compared += more.count
        }
        #expect(compared > 10)
    }

    /// When each client first comes, for what, and whom it asks.
    private func arrivals(_ result: ScenarioResult) -> [String: TraceLine] {
        var found: [String: TraceLine] = [:]
        for line in result.lines where line.kinds == .clients && line.text.contains(" starts with ") {
            var line = line
            line.columns = []
            let name = line.text.split(separator: " ")[1].description
            found[name] = found[name] ?? line
        }
        return found
    }

    @Test(arguments: profiles)
    func `a client that is left out changes nothing before it comes, and no other's coming`(_ profile: Profile) {
        for seed: UInt64 in 0..<10 {
            var run = Run(seed: seed, profile: profile)
            let whole = run.scenario.run(recordsTrace: true)
            let options = run.scenario.options
            let all = arrivals(whole)
            guard whole.violations.isEmpty,
                let late = all.max(by: { ($0.value.time, $0.key) < ($1.value.time, $1.key) })
            else { continue }
            run.onlyClients = (0..<options.clientCount + options.scraperCount).filter { "\($0)" != late.key }
            let less = run.scenario.run(recordsTrace: true)
            var expected = all
            expected[late.key] = nil
            #expect(arrivals(less) == expected, "\(run.command)")
            #expect(before(late.value.time, less) == before(late.value.time, whole), "\(run.command)")
            #expect(!less.lines.contains { $0.text.hasPrefix("client \(late.key) ") })
        }
    }

    @Test(arguments: profiles)
    func `trackers that are left out leave the others their ids, their starts and their lives`(
        _ profile: Profile
    ) {
        var compared = 0
        for seed: UInt64 in 0..<20 {
            var run = Run(seed: seed, profile: profile, nodes: 5)
            guard run.scenario.options.spareCount == 0, run.scenario.options.unnumberedCount == 0 else { continue }
            // Nobody dies, so that each says something in its first life.
            (run.faults, run.injections) = ([], [])
            let whole = run.scenario.run(recordsHistory: true)
            run.onlyTrackers = [1, 3, 4]
            let less = run.scenario.run(recordsTrace: true, recordsHistory: true)
            #expect(less.violations.isEmpty, "\(run.command): \(less.violations)")
            func firstLives(_ result: ScenarioResult) -> [Int: UInt64] {
                Dictionary(
                    result.history.sentMessages.map { ($0.from, $0.incarnation) }, uniquingKeysWith: { old, _ in old })
            }
            func starts(_ result: ScenarioResult) -> [Int: Instant] {
                let starts = result.transitions.filter { $0.kind == .started }.map { ($0.node, $0.time) }
                return Dictionary(starts, uniquingKeysWith: { old, _ in old })
            }
            let (kept, was) = (starts(less), starts(whole))
            #expect(kept == was.filter { [0, 2, 3].contains($0.key) }, "\(run.command)")
            let lives = firstLives(less)
            #expect(lives == firstLives(whole).filter { [0, 2, 3].contains($0.key) }, "\(run.command)")
            #expect(Set(lives.keys) == [0, 2, 3])
            compared += 1
        }
        #expect(compared > 3)
    }

    /// A bus that loses, repeats, delays and redelivers, so that each message takes several draws.
    private func bus(_ count: Int) -> SimulatedBus {
        var options = SimulatedBusOptions()
        (options.lossPerMille, options.repeatPerMille) = (200, 200)
        (options.stragglerPerMille, options.redeliveredPerMille) = (200, 200)
        return SimulatedBus(count: count, options: options, seed: 9)
    }

    @Test func `what one link carries, holds or blocks changes nothing on the others, nor do further trackers`() {
        let start = Instant(nanoseconds: 0)
        var (still, busy, larger) = (bus(3), bus(3), bus(5))
        busy.clog(from: 0, to: 1, until: start + .seconds(5))
        busy.block(from: 1, to: 2, until: start + .seconds(5))
        var differs = false
        for number in 0..<500 {
            let now = start + .milliseconds(Int64(number))
            for _ in 0..<(number % 3) { _ = busy.carry(from: 0, to: 1, now: now) }
            _ = larger.carry(from: 4, to: 3, now: now)
            for sender in 0..<3 {
                for receiver in 0..<3 where receiver != sender {
                    let fate = still.carry(from: sender, to: receiver, now: now)
                    let fates = [busy, larger].map { bus in
                        var bus = bus
                        return bus.carry(from: sender, to: receiver, now: now)
                    }
                    _ = busy.carry(from: sender, to: receiver, now: now)
                    _ = larger.carry(from: sender, to: receiver, now: now)
                    #expect(isSame(fates[1], fate), "link \(sender) to \(receiver), message \(number)")
                    if (sender, receiver) == (0, 1) || (sender, receiver) == (1, 2) {
                        if !isSame(fates[0], fate) { differs = true }
                    } else {
                        #expect(isSame(fates[0], fate), "link \(sender) to \(receiver), message \(number)")
                    }
                }
            }
        }
        #expect(differs)
    }

    private func isSame(_ left: SimulatedBus.Fate, _ right: SimulatedBus.Fate) -> Bool {
        left.first == right.first && left.second == right.second && left.third == right.third
    }

    /// From then on links and disks are as good as can be.
    private static let healed = Instant(nanoseconds: 5_000_000_000)

    /// How long the first message on each link was under way, where all its copies came.
    private func firstDelays(_ result: ScenarioResult) -> [[Int]: Duration] {
        var sentMessages: [[Int]: (letter: Int, delays: [Duration?])] = [:]
        for copy in result.messages where copy.sentAt < Self.healed {
            let delay = copy.receivedAt.map { $0 - copy.sentAt }
            let known = sentMessages[[copy.from, copy.to]]
            if let known, known.letter < copy.letter { continue }
            let others = known?.letter == copy.letter ? known?.delays ?? [] : []
            sentMessages[[copy.from, copy.to]] = (copy.letter, others + [delay])
        }
        return sentMessages.compactMapValues { $0.delays.contains(nil) ? nil : $0.delays.compactMap { $0 }.min() }
    }

    /// How long each tracker's disk took for what it was first given.
    private func firstWrites(_ result: ScenarioResult) -> [Int: Duration] {
        var (given, found): ([Int: Instant], [Int: Duration]) = ([:], [:])
        let names = result.names.short.indices.map { "\(result.names[$0]) " }
        for line in result.lines where line.time < Self.healed {
            guard let node = names.firstIndex(where: line.text.hasPrefix) else { continue }
            if given[node] == nil {
                if line.text.contains("; writes ") { given[node] = line.time }
            } else if found[node] == nil, line.text.hasSuffix(", and has not been told yet") {
                found[node] = line.time - given[node]!
            }
        }
        return found
    }

    @Test(arguments: profiles)
    func `trackers that are left out leave the others' links and disks as fast as they were`(
        _ profile: Profile
    ) {
        var (links, disks) = (0, 0)
        for seed: UInt64 in 0..<20 {
            var run = Run(seed: seed, profile: profile, nodes: 5, seconds: 5)
            guard run.scenario.options.spareCount == 0, run.scenario.options.unnumberedCount == 0 else { continue }
            (run.faults, run.injections) = ([], [])
            let whole = run.scenario.run(recordsTrace: true, recordsHistory: true)
            run.onlyTrackers = [1, 3, 4]
            let less = run.scenario.run(recordsTrace: true, recordsHistory: true)
            let (delays, writes) = (firstDelays(whole), firstWrites(whole))
            for (link, delay) in firstDelays(less) {
                guard let before = delays[link] else { continue }
                #expect(before == delay, "\(run.command): link \(link)")
                links += 1
            }
            for (node, span) in firstWrites(less) {
                guard let before = writes[node] else { continue }
                #expect(before == span, "\(run.command): disk \(node)")
                disks += 1
            }
        }
        #expect(links > 20 && disks > 10)
    }

    /// An injection is named by the tracker and the moment, so leaving one out renames no other.
    @Test(arguments: profiles)
    func `an injection that is left out leaves all that came before it`(_ profile: Profile) {
        var compared = 0
        for seed: UInt64 in 0..<30 {
            var run = Run(seed: seed, profile: profile)
            let whole = run.scenario.run(recordsTrace: true)
            guard whole.violations.isEmpty, let last = whole.injections.last, whole.injections.count > 1,
                let line = whole.lines.first(where: { $0.text.contains("injection \(last) ") })
            else { continue }
            run.injections = whole.injections.dropLast()
            let less = run.scenario.run(recordsTrace: true)
            #expect(less.injections == run.injections)
            #expect(before(line.time, less) == before(line.time, whole), "\(run.command)")
            #expect(less.traceHash != whole.traceHash)
            compared += 1
        }
        #expect(compared > 5)
    }
}

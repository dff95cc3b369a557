// What is made of simulated runs: pictures, smaller failures, and sums over many runs.

import Foundation
import Primitives
import Simulator
import Testing

@Suite("Space-time diagrams", .computes)
struct DiagramTests {
    private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    private func diagram() -> SpaceTimeDiagram {
        var diagram = SpaceTimeDiagram(title: "seed 7 <paxos> & more", lanes: ["tracker 1", "tracker 2", "\"3\""])
        diagram.changes = [
            .init(at(0), lane: 0, .newcomer), .init(at(0), lane: 1, .newcomer), .init(at(5), lane: 1, .candidate),
            .init(at(9), lane: 1, .master), .init(at(2000), lane: 1, .down),
        ]
        diagram.arrows = [
            .init("ELECTION", .election, from: 1, to: 0, sentAt: at(5), receivedAt: at(7)),
            .init("ANSWER", .election, from: 0, to: 1, sentAt: at(8), receivedAt: at(9)),
            .init("PREPARE", .vote, from: 1, to: 2, sentAt: at(1500), receivedAt: nil),
        ]
        diagram.marks = [
            .init(at(9), lane: 1, .election, "master of 1.2"), .init(at(1600), lane: 1, .commit, "entry 4"),
            .init(at(2000), lane: 1, .crash, "dies"),
            .init(at(2100), lane: 0, .violation, "decidedIsForEver: entry 4 < 5"),
        ]
        return diagram
    }

    /// Elements in their order, with "/" before what ends; nil where tags, quotes or references do not match.
    private func elements(_ document: String) -> [String]? {
        var open: [String] = []
        var names: [String] = []
        for part in document.split(separator: "<").map(String.init) {
            guard let end = part.firstIndex(of: ">"), !part[part.index(after: end)...].contains(">") else { return nil }
            let (tag, text) = (part[..<end], part[part.index(after: end)...])
            guard tag.count(where: { $0 == "\"" }).isMultiple(of: 2) else { return nil }
            for reference in (tag + text).split(separator: "&", omittingEmptySubsequences: false).dropFirst() {
                guard ["amp;", "lt;", "gt;", "quot;"].contains(where: { reference.hasPrefix($0) }) else { return nil }
            }
            let name = String(tag.prefix { $0 != " " && $0 != "/" || tag.first == "/" && $0 != " " })
            names.append(name)
            if tag.hasSuffix("/") { continue }
            if name.hasPrefix("/") {
                guard open.popLast() == String(name.dropFirst()) else { return nil }
            } else {
                open.append(name)
            }
        }
        return open.isEmpty ? names : nil
    }

    @Test func `the document is well-formed`() throws {
        let svg = diagram().svg()
        let names = try #require(elements(svg))
        #expect(names.first == "svg")
        #expect(names.last == "/svg")
        #expect(svg.contains("seed 7 &lt;paxos&gt; &amp; more"))
        #expect(svg.contains("entry 4 &lt; 5"))
        #expect(svg.contains("prefers-color-scheme:dark"))
        #expect(elements(svg + "<g>") == nil)
        #expect(elements(svg + "<a b=\"></a>") == nil)
    }

    @Test func `messages, marks and lines are there`() {
        var diagram = diagram()
        diagram.spans = [.init(from: at(100), until: at(900), lanes: [0, 2], .fence, "fault 3: no bus <anywhere>")]
        let svg = diagram.svg()
        #expect(svg.contains("fault 3: no bus &lt;anywhere&gt;, 0.100 s to 0.900 s"))
        #expect(svg.split(separator: "class=\"band fence\"").count == 3)
        #expect(svg.contains("ELECTION, tracker 2 to tracker 1: 0.005 s, heard 0.007 s"))
        #expect(svg.contains("PREPARE, tracker 2 to &quot;3&quot;: 1.500 s, lost"))
        #expect(svg.contains("arrow lost t-vote"))
        #expect(svg.contains("<circle class=\"mark commit\""))
        #expect(svg.contains("<path class=\"cross crash\""))
        for condition in ["newcomer", "candidate", "master", "down"] {
            #expect(svg.contains("\"lane \(condition)\""))
        }
    }

    /// Several are broken at one moment, as a run ends.
    @Test func `promises that were broken stand below each other`() {
        var diagram = diagram()
        let long = Array(repeating: "word", count: 60).joined(separator: " ")
        for text in ["first: a", "second: b", "third: \(long)"] {
            diagram.marks.append(.init(at(2100), lane: 0, .violation, text))
        }
        diagram.notes = ["tracker 2 has no bus since 1.000 s, fault 3"]
        let lines = diagram.svg().split(separator: "\n").filter { $0.contains("class=\"broken\"") }
        #expect(lines.count >= 5)
        func height(_ line: Substring) -> Substring? {
            line.split(separator: " y=\"").last?.split(separator: "\"").first
        }
        let heights = diagram.svg().split(separator: "\n").filter {
            $0.contains("class=\"broken\"") || $0.contains("class=\"note\"")
        }.compactMap(height).compactMap { Double($0) }
        #expect(heights.count == lines.count + 1)
        #expect(zip(heights, heights.dropFirst()).allSatisfy { $1 - $0 >= 14 })
        #expect(lines.allSatisfy { $0.count < 240 })
        #expect(elements(diagram.svg()) != nil)
    }

    @Test func `an empty picture is one, too`() {
        #expect(elements(SpaceTimeDiagram(title: "", lanes: []).svg()) != nil)
    }

    @Test func `control characters do not spoil the document`() {
        let diagram = SpaceTimeDiagram(title: "a\u{0}b\u{1B}[31m", lanes: ["x\ny"])
        #expect(diagram.svg().contains("a\u{FFFD}b\u{FFFD}[31m"))
    }

    @Test func `a clipped picture keeps what lines were, and says what is left out`() {
        var diagram = diagram()
        diagram.clip(from: nil, until: nil, maxArrows: 1)
        #expect(diagram.arrows.map(\.name) == ["PREPARE"])
        #expect(diagram.caption == "the last 1 of 3 messages, from 1.500 s on")
        #expect(diagram.changes.first { $0.lane == 1 } == .init(at(1500), lane: 1, .master))
        #expect(diagram.changes.first { $0.lane == 0 } == .init(at(1500), lane: 0, .newcomer))
        #expect(!diagram.marks.contains { $0.time < at(1500) })
        var early = self.diagram()
        early.clip(from: at(6), until: at(8), maxArrows: 100)
        #expect(early.arrows.map(\.receivedAt) == [at(8)])
        #expect(early.marks.isEmpty)
        #expect(early.caption.isEmpty)
    }
}

@Suite("Shrinking", .computes)
struct ShrinkerTests {
    @Test func `what is needed stays, and nothing else`() {
        var shrinker = Shrinker(maxTries: 1000)
        let needed = [7, 42, 91]
        let kept = shrinker.fewest(Array(0..<100)) { items in needed.allSatisfy { items.contains($0) } }
        #expect(kept == needed)
        #expect(shrinker.tries < 200)
    }

    @Test func `what needs nothing shrinks to nothing`() {
        var shrinker = Shrinker(maxTries: 10)
        #expect(shrinker.fewest(Array(0..<100)) { _ in true } == [])
        #expect(shrinker.tries == 1)
        #expect(shrinker.fewest([Int]()) { _ in true } == [])
    }

    @Test func `no item of the rest can be left out, even where more may be less`() {
        // Fails for an even number of items with the 3 among them.
        func fails(_ items: [Int]) -> Bool { items.contains(3) && items.count.isMultiple(of: 2) }
        var shrinker = Shrinker(maxTries: 1000)
        let kept = shrinker.fewest(Array(0..<32), stillFails: fails)
        #expect(fails(kept))
        for place in kept.indices {
            var less = kept
            less.remove(at: place)
            #expect(!fails(less))
        }
    }

    @Test func `where the tries run out, what is kept still fails`() {
        for tries in 0..<40 {
            var shrinker = Shrinker(maxTries: tries)
            let kept = shrinker.fewest(Array(0..<64)) { $0.contains(5) && $0.contains(50) }
            #expect(kept.contains(5) && kept.contains(50))
            #expect(shrinker.tries <= tries)
        }
    }

    @Test(arguments: [0, 1, 2, 37, 99, 100])
    func `a number becomes the least that fails`(_ bound: Int) {
        var shrinker = Shrinker(maxTries: 100)
        #expect(shrinker.least(100, downTo: 0) { $0 >= bound } == bound)
        #expect(shrinker.tries < 20)
    }

    @Test func `a number never goes below its floor`() {
        var shrinker = Shrinker(maxTries: 100)
        #expect(shrinker.least(100, downTo: 3) { _ in true } == 3)
        #expect(shrinker.least(3, downTo: 3) { _ in true } == 3)
    }
}

@Suite("Sweeps", .computes)
struct SweepReportTests {
    private func outcome(_ seed: UInt64, _ invariant: String? = nil) -> SweepOutcome {
        SweepOutcome(
            seed: seed, traceHash: seed &* 0x9E37_79B9_7F4A_7C15, events: 10, simulatedSeconds: 60,
            invariant: invariant)
    }

    @Test func `the order in which scenarios end does not show`() {
        var straight = SweepTally()
        for place: UInt64 in 0..<200 { straight.add(outcome(place, place == 30 ? "x" : nil), at: place) }
        var random = RandomStream(seed: 1)
        for _ in 0..<20 {
            var places = Array(UInt64(0)..<200)
            for place in places.indices { places.swapAt(place, random.below(places.count)) }
            var tally = SweepTally()
            for place in places { tally.add(outcome(place, place == 30 ? "x" : nil), at: place) }
            #expect(tally.traceHash == straight.traceHash)
            #expect(tally.failures == straight.failures)
            #expect(tally.scenarios == 200)
        }
        #expect(straight.events == 2000)
        #expect(straight.simulatedSeconds == 12_000)
        #expect(straight.failures.map(\.seed) == [30])
    }

    @Test func `broken promises are counted, the most frequent first`() {
        var tally = SweepTally()
        for (place, invariant) in ["b", nil, "c", "a", "c"].enumerated() {
            tally.add(outcome(UInt64(place), invariant), at: UInt64(place))
        }
        #expect(tally.failuresByInvariant.map(\.invariant) == ["c", "a", "b"])
        #expect(tally.failuresByInvariant.map(\.count) == [2, 1, 1])
    }

    @Test func `another run, or another order of seeds, is another hash`() {
        var (first, second, third) = (SweepTally(), SweepTally(), SweepTally())
        first.add(outcome(1), at: 0)
        first.add(outcome(2), at: 1)
        second.add(outcome(2), at: 0)
        second.add(outcome(1), at: 1)
        third.add(outcome(1), at: 0)
        #expect(first.traceHash != second.traceHash)
        #expect(first.traceHash != third.traceHash)
    }

    @Test func `the report says what the sweep has found`() {
        var tally = SweepTally()
        tally.add(outcome(4), at: 0)
        tally.add(outcome(.max, "decidedIsForEver"), at: 1)
        let report = SweepReport(tally, wallSeconds: 0.5)
        #expect((report.scenarios, report.events, report.simulatedSeconds) == (2, 20, 120))
        #expect(report.failures.map(\.seed) == [.max])
        #expect(report.failures.map(\.invariant) == ["decidedIsForEver"])
        #expect(report.wallSeconds == 0.5)
        #expect(report.traceHash == SweepReport.text(hash: tally.traceHash))
        #expect(report.traceHash.count == 16)
        #expect(SweepReport.text(hash: 0xAB) == "00000000000000ab")
    }

    @Test func `seeds are read as written, and refused with a way out`() throws {
        let range = try SeedRange("17..4000")
        #expect(range.first == 17)
        #expect(range.count == 3984)
        #expect(range[3983] == 4000)
        #expect(try SeedRange("5..5").count == 1)
        #expect(try SeedRange("18446744073709551614..18446744073709551615")[1] == .max)
        #expect(try SeedRange(count: 20) == SeedRange("1..20"))
        #expect(SeedRange(seed: 9).count == 1)
        for text in ["", "5", "5..", "..5", "a..b", "1...3", "+1..2", "1..18446744073709551616", " 1..2", "1..2..3"] {
            #expect(throws: SeedRangeError.notARange(text)) { try SeedRange(text) }
        }
        #expect(throws: SeedRangeError.backwards(4, 3)) { try SeedRange("4..3") }
        #expect(throws: SeedRangeError.tooMany) { try SeedRange("0..18446744073709551615") }
        #expect(throws: SeedRangeError.tooFew) { try SeedRange(count: 0) }
        #expect("\(SeedRangeError.backwards(4, 3))".contains("3..4"))
    }
}

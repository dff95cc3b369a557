/// What is made of simulated runs: captures, pictures, smaller failures, and sums over many runs.

import Foundation
import Primitives
import Simulator
import Testing

@Suite("Captures", .computes)
struct CaptureTests {
    private static let client = SocketAddress(ipv4: 0x0A01_0001, port: 0x4E20)
    private static let node = SocketAddress(ipv4: 0x0A00_0001, port: 6969)
    private static let client6 = SocketAddress(high: 0x2001_0DB8_0000_0002, low: 1, port: 0x4E21)
    private static let node6 = SocketAddress(high: 0x2001_0DB8_0000_0001, low: 1, port: 6969)

    /// The sum of 16-bit words, with its carries; all ones where a checksum within is right (RFC 1071).
    private func sum(_ bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = 0
        for (place, byte) in bytes.enumerated() { sum += UInt32(byte) << (place.isMultiple(of: 2) ? 8 : 0) }
        while sum > 0xFFFF { sum = (sum >> 16) + (sum & 0xFFFF) }
        return sum
    }

    @Test func `a capture begins with its header`() {
        #expect(
            PacketCapture().bytes == [
                0xA1, 0xB2, 0x3C, 0x4D, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 101,
            ])
    }

    @Test func `an IPv4 datagram is a packet with its length and addresses`() {
        var capture = PacketCapture()
        let data = Array("hello".utf8)
        capture.append(at: Instant(nanoseconds: 3_000_000_007), from: Self.client, to: Self.node, data)
        let packet = Array(capture.bytes[24...])
        #expect(Array(packet[..<16]) == [0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 33, 0, 0, 0, 33])
        let ip = Array(packet[16...])
        #expect(ip.count == 33)
        #expect(Array(ip[..<10]) == [0x45, 0, 0, 33, 0, 0, 0x40, 0, 64, 17])
        #expect(Array(ip[12..<20]) == [10, 1, 0, 1, 10, 0, 0, 1])
        #expect(Array(ip[20..<26]) == [0x4E, 0x20, 0x1B, 0x39, 0, 13])
        #expect(Array(ip[28...]) == data)
        #expect(sum(Array(ip[..<20])) == 0xFFFF)
        let pseudoHeader = Array(ip[12..<20]) + [0, 17, 0, 13]
        #expect(sum(pseudoHeader + ip[20...]) == 0xFFFF)
    }

    @Test func `an IPv6 datagram is a packet with its length and addresses`() {
        var capture = PacketCapture()
        let data: [UInt8] = [1, 2, 3, 4]
        capture.append(at: Instant(nanoseconds: 0), from: Self.node6, to: Self.client6, data)
        let ip = Array(capture.bytes[40...])
        #expect(Array(ip[..<8]) == [0x60, 0, 0, 0, 0, 12, 17, 64])
        #expect(Array(ip[8..<16]) == [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 1])
        #expect(Array(ip[40..<46]) == [0x1B, 0x39, 0x4E, 0x21, 0, 12])
        #expect(ip.count == 52)
        let pseudoHeader = Array(ip[8..<40]) + [0, 0, 0, 12, 0, 0, 0, 17]
        #expect(sum(pseudoHeader + ip[40...]) == 0xFFFF)
    }

    /// A checksum of 0 means none in UDP, and is forbidden over IPv6 (RFC 768, RFC 8200).
    @Test func `checksums are right whatever is in a datagram, and never 0`() {
        var random = RandomStream(seed: 5)
        var wasAllOnes = 0
        for round in 0..<70_000 {
            var capture = PacketCapture()
            let data =
                [UInt8(truncatingIfNeeded: round >> 8), UInt8(truncatingIfNeeded: round)]
                + (0..<random.below(3)).map { _ in 0 }
            let isIPv6 = round.isMultiple(of: 5)
            capture.append(
                at: Instant(nanoseconds: 0), from: isIPv6 ? Self.client6 : Self.client,
                to: isIPv6 ? Self.node6 : Self.node, data)
            let ip = Array(capture.bytes[40...])
            let (addresses, payload) = isIPv6 ? (ip[8..<40], ip[40...]) : (ip[12..<20], ip[20...])
            let value = [payload[payload.startIndex + 6], payload[payload.startIndex + 7]]
            if value == [0xFF, 0xFF] { wasAllOnes += 1 }
            guard value != [0, 0], sum(Array(addresses) + [0, 17, 0, UInt8(payload.count)] + payload) == 0xFFFF else {
                Issue.record("round \(round) has a wrong checksum, or none")
                return
            }
        }
        #expect(wasAllOnes > 0)
    }

    @Test func `what UDP cannot carry is left out`() {
        var capture = PacketCapture()
        let long = Array(repeating: UInt8(0), count: PacketCapture.maxByteCount + 1)
        capture.append(at: Instant(nanoseconds: 0), from: Self.client, to: Self.node, long)
        #expect(capture.packetCount == 0)
        capture.append(at: Instant(nanoseconds: 0), from: Self.client, to: Self.node, Array(long.dropLast()))
        #expect(capture.packetCount == 1)
        #expect(Array(capture.bytes[42..<44]) == [0xFF, 0xFF])
    }
}

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
        let svg = diagram().svg()
        #expect(svg.contains("ELECTION, tracker 2 to tracker 1: 0.005 s, heard 0.007 s"))
        #expect(svg.contains("PREPARE, tracker 2 to &quot;3&quot;: 1.500 s, lost"))
        #expect(svg.contains("arrow lost t-vote"))
        #expect(svg.contains("<circle class=\"mark commit\""))
        #expect(svg.contains("<path class=\"cross crash\""))
        for condition in ["newcomer", "candidate", "master", "down"] {
            #expect(svg.contains("\"lane \(condition)\""))
        }
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
struct SweepTests {
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

    @Test func `the report's keys are those that programs rely on`() throws {
        var tally = SweepTally()
        tally.add(outcome(4), at: 0)
        tally.add(outcome(.max, "decidedIsForEver"), at: 1)
        let report = SweepReport(tally, wallSeconds: 0.5)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let json = String(decoding: try encoder.encode(report), as: UTF8.self)
        let hash = SweepReport.text(hash: tally.traceHash)
        #expect(hash.count == 16)
        #expect(
            json == """
                {"events":20,"failures":[{"invariant":"decidedIsForEver","seed":18446744073709551615}],\
                "scenarios":2,"simulated_seconds":120,"trace_hash":"\(hash)","wall_seconds":0.5}
                """)
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

// What a member, or somebody who has recorded one, can draw from a tracker over the bus.

import Bus
import Foundation
import Primitives
import Testing
import Wire

@Suite("Replays on the bus")
struct BusReplayTests {
    typealias Tracker = BusGateTests.Tracker

    /// Both greet until neither has anything to say.
    ///
    /// - Returns: what the left one has sent.
    private func introduce(_ left: inout Tracker, _ right: inout Tracker) -> [[UInt8]] {
        var sent: [[UInt8]] = []
        for _ in 0..<4 {
            if let greeting = left.greeting() {
                sent.append(greeting)
                _ = right.receive(greeting)
            }
            if let greeting = right.greeting() { _ = left.receive(greeting) }
        }
        return sent
    }

    @Test(arguments: [false, true])
    func `who was forgotten and comes back is heard, and what he said before is not`(_ repairs: Bool) {
        var (a, b) = (Tracker(1, repairs: repairs), Tracker(2, repairs: repairs))
        var recording = introduce(&a, &b)
        for byte in 1...3 as ClosedRange<UInt8> {
            recording.append(a.data([byte]))
            #expect(b.receive(recording.last!) == [[byte]])
        }
        for _ in 0..<3 {
            b.now = b.now + .seconds(61)
            _ = b.greeting()
            #expect(b.gate.provenCount == 0)
            for _ in 0..<2 { for frame in recording { #expect(b.receive(frame) == []) } }
        }
        a.now = b.now
        var heard: [[UInt8]] = []
        for byte in 4...6 as ClosedRange<UInt8> {
            if let greeting = b.greeting() { _ = a.receive(greeting) }
            if let greeting = a.greeting() { heard += b.receive(greeting) }
            heard += b.receive(a.data([byte]))
        }
        #expect(heard == [[4], [5], [6]])
    }

    @Test func `a request for frames that is played again later draws nothing`() {
        var (a, b) = (Tracker(1, repairs: true), Tracker(2, repairs: true))
        _ = introduce(&a, &b)
        for byte in 1...3 as ClosedRange<UInt8> { _ = a.data([byte]) }
        func wanted(_ frame: [UInt8]) -> [ClosedRange<UInt64>] {
            var output = BusGate.Output()
            a.gate.receive(frame, now: a.now, into: &output)
            return output.wanted
        }
        let recorded = b.maker.wanted(BusWanted(session: 1, ranges: [1...3]))
        #expect(wanted(recorded) == [1...3])
        for byte in 1...5 as ClosedRange<UInt8> {
            a.now = a.now + .seconds(1)
            _ = a.receive(b.data([byte]))
        }
        #expect(wanted(recorded).isEmpty)
        #expect(wanted(b.maker.wanted(BusWanted(session: 1, ranges: [2...3]))) == [2...3])
    }

    @Test func `a datagram is repeated for the needy, and not for ever`() {
        var ring = RepairRing()
        ring.append([1])
        let count = (1...1_000).count {
            ring.takeForRepeat(1, now: Instant(nanoseconds: Int64($0) * 10_000_000)) != nil
        }
        #expect((16...64).contains(count))
        ring.append([2])
        #expect(ring.takeForRepeat(2, now: Instant(nanoseconds: 0)) == [2])
    }

    @Test func `a part that claims a million others costs no more than itself`() throws {
        var reassembly = Reassembly()
        for message in 1...16 as ClosedRange<UInt64> {
            let part = BusPart(destination: 0, message: message, index: 7, count: 1 << 19, range: 0..<1)
            #expect(try reassembly.receive(part, of: [1], now: Instant(nanoseconds: 0)) == nil)
        }
        #expect(reassembly.slotCount <= 16 * 16)
    }

    @Test func `many parts of one byte cost a tenth of what long messages may`() throws {
        var reassembly = Reassembly()
        var most = 0
        // Sixteen messages, of each all parts but one.
        for message in 1...16 as ClosedRange<UInt64> {
            for index in 1..<100_000 as Range<UInt32> {
                let part = BusPart(destination: 0, message: message, index: index, count: 100_000, range: 0..<1)
                _ = try reassembly.receive(part, of: [1], now: Instant(nanoseconds: Int64(message)))
            }
            most = max(most, reassembly.byteCount)
            #expect(reassembly.partCount <= Reassembly.Limits.parts)
            #expect(reassembly.byteCount == reassembly.partCount * (1 + Reassembly.Limits.overhead))
        }
        #expect(most < Reassembly.Limits.byteCount / 10)
        // The oldest went: of the last five all but one part are there.
        func finish(_ message: UInt64) throws -> [UInt8]? {
            let part = BusPart(destination: 0, message: message, index: 0, count: 100_000, range: 0..<1)
            return try reassembly.receive(part, of: [1], now: Instant(nanoseconds: 20))
        }
        #expect(try finish(12)?.count == 100_000)
        #expect(try finish(11) == nil)
    }

    @Test func `the longest message over multicast is within the bounds of its parts`() {
        let longest = ClusterMessage.Limits.chunkByteCount + 1024
        let heads = BusFrameHead.byteCount + BusFrameHead.macByteCount + BusBody.partOverhead
        let part = MulticastMachine.Limits.datagramByteCount - heads
        let count = (longest + part - 1) / part
        #expect(count <= Reassembly.Limits.parts)
        #expect(longest + count * Reassembly.Limits.overhead <= Reassembly.Limits.byteCount)
    }
}

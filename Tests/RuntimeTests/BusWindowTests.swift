// Which frames have come, which are missing, and how fast to send: the small machines of the buses.

import Bus
import Primitives
import Testing
import Wire

@Suite("Bus windows")
struct BusWindowTests {
    // MARK: Replays

    @Test(arguments: 1...10)
    func `a replay window is a set of the last 32,768 numbers`(_ seed: UInt64) {
        var random = RandomStream(seed: seed)
        var window = ReplayWindow()
        var seen: Set<UInt64> = []
        var greatest: UInt64 = 0
        for _ in 0..<5000 {
            var sequence = greatest + 1
            switch random.below(10) {
            case 0...4: break
            case 5: sequence += UInt64(random.below(65_536))
            default: sequence = UInt64(max(1, Int(greatest) - random.below(49_152)))
            }
            let isNew =
                sequence > greatest || (greatest - sequence < UInt64(ReplayWindow.width) && !seen.contains(sequence))
            #expect(window.receive(sequence) == isNew)
            seen.insert(sequence)
            greatest = max(greatest, sequence)
        }
    }

    // MARK: Repairs

    private let start = Instant(nanoseconds: 1_000_000_000)

    private func due(_ window: inout RepairWindow, after milliseconds: Int64) -> [ClosedRange<UInt64>] {
        var ranges: [ClosedRange<UInt64>] = []
        window.takeDue(now: start + .milliseconds(milliseconds), limit: 64, into: &ranges)
        return ranges
    }

    @Test func `a gap is asked for after a moment, and again with growing patience, and then given up`() {
        var random = RandomStream(seed: 1)
        var window = RepairWindow()
        window.start(at: 10)
        #expect(window.receive(10, now: start, random: &random) == .new)
        #expect(window.receive(14, now: start, random: &random) == .new)
        #expect(due(&window, after: 0) == [])
        var times: [Int64] = []
        for time in 1...2000 as ClosedRange<Int64> where due(&window, after: time) == [11...13] { times.append(time) }
        #expect(times.count == 16)
        #expect(times[0] <= 3)
        #expect((times[1] - times[0], times[2] - times[1], times[3] - times[2]) == (5, 10, 20))
        #expect(times[15] - times[14] == 60)
        #expect(window.gaps.isEmpty && window.nextDue == nil)
        // What comes after that is taken for a repetition.
        #expect(window.receive(12, now: start, random: &random) == .duplicate)
    }

    @Test func `what comes late fills its gap, and what was asked for counts as repaired`() {
        var random = RandomStream(seed: 1)
        var window = RepairWindow()
        window.start(at: 1)
        #expect(window.receive(6, now: start, random: &random) == .new)
        #expect(window.receive(3, now: start, random: &random) == .new)
        #expect(window.gaps.map(\.first) == [1, 4])
        #expect(due(&window, after: 5) == [1...2, 4...5])
        #expect(window.receive(5, now: start, random: &random) == .repaired)
        #expect(window.receive(5, now: start, random: &random) == .duplicate)
        #expect(window.receive(1, now: start, random: &random) == .repaired)
        #expect(window.receive(2, now: start, random: &random) == .repaired)
        #expect(window.receive(4, now: start, random: &random) == .repaired)
        #expect(window.gaps.isEmpty)
    }

    @Test func `who hears another ask waits as if he had asked`() {
        var random = RandomStream(seed: 1)
        var window = RepairWindow()
        window.start(at: 1)
        #expect(window.receive(4, now: start, random: &random) == .new)
        window.noteRequest(1...3, now: start)
        #expect(due(&window, after: 4) == [])
        #expect(due(&window, after: 5) == [1...3])
    }

    @Test func `a sender's word on its next number shows what was lost last, and its oldest what is lost for good`() {
        var random = RandomStream(seed: 1)
        var window = RepairWindow()
        window.start(at: 1)
        window.noteNext(1, oldest: 1, now: start, random: &random)
        #expect(window.gaps.isEmpty)
        window.noteNext(6, oldest: 1, now: start, random: &random)
        #expect(due(&window, after: 5) == [1...5])
        window.noteNext(6, oldest: 4, now: start, random: &random)
        #expect(window.gaps.map(\.first) == [4])
        window.noteNext(6, oldest: 6, now: start, random: &random)
        #expect(window.gaps.isEmpty)
        #expect(window.receive(6, now: start, random: &random) == .new)
    }

    @Test(arguments: 1...20)
    func `each number is new once, and all that is missing is asked for`(_ seed: UInt64) {
        var random = RandomStream(seed: seed)
        var windowRandom = RandomStream(seed: seed, stream: 1)
        var window = RepairWindow()
        window.start(at: 1)
        var now = start
        var received: Set<UInt64> = []
        var asked: Set<UInt64> = []
        var next: UInt64 = 1
        for _ in 0..<3000 {
            now = now + .microseconds(Int64(random.below(500)))
            if random.oneIn(20) {
                window.noteNext(next, oldest: 1, now: now, random: &windowRandom)
            } else if random.oneIn(4), next > 1 {
                // Late, repeated, or repaired.
                let sequence = 1 + UInt64(random.below(Int(min(next - 1, 100)))) + (next > 101 ? next - 101 : 0)
                let isNew = received.insert(sequence).inserted
                let receipt = window.receive(sequence, now: now, random: &windowRandom)
                #expect((receipt != .duplicate) == isNew)
            } else {
                if !random.oneIn(10) {
                    #expect(window.receive(next, now: now, random: &windowRandom) == .new)
                    received.insert(next)
                }
                next += 1
            }
            var ranges: [ClosedRange<UInt64>] = []
            window.takeDue(now: now, limit: 64, into: &ranges)
            for range in ranges {
                asked.formUnion(range)
                #expect(received.isDisjoint(with: range), "what came is not asked for")
            }
            #expect(zip(window.gaps, window.gaps.dropFirst()).allSatisfy { $0.last < $1.first })
        }
        var ranges: [ClosedRange<UInt64>] = []
        window.takeDue(now: now + .seconds(10), limit: .max, into: &ranges)
        for range in ranges { asked.formUnion(range) }
        let missing = Set(1...(window.greatest ?? 1)).subtracting(received)
        #expect(missing.isSubset(of: asked))
        #expect(!missing.isEmpty)
    }

    @Test func `gaps are bounded`() {
        var random = RandomStream(seed: 1)
        var window = RepairWindow()
        window.start(at: 1)
        for sequence in 1...5000 as ClosedRange<UInt64> {
            #expect(window.receive(2 * sequence, now: start, random: &random) == .new)
        }
        #expect(window.gaps.count == RepairWindow.Limits.gaps)
        // A jump further than any sender repeats is no gap.
        #expect(window.receive(1 << 40, now: start, random: &random) == .new)
        #expect(window.gaps.last?.last == 9999)
    }

    // MARK: The ring

    @Test func `the ring repeats the last datagrams, and none twice in a moment`() {
        var ring = RepairRing()
        let count = UInt64(RepairRing.Limits.capacity)
        for sequence in 1...(count + 10) { ring.append([UInt8(truncatingIfNeeded: sequence)]) }
        #expect(ring.oldest == 11 && ring.next == count + 11)
        #expect(ring.takeForRepeat(10, now: start) == nil)
        #expect(ring.takeForRepeat(11, now: start) == [11])
        #expect(ring.takeForRepeat(11, now: start + .milliseconds(2)) == nil)
        #expect(ring.takeForRepeat(11, now: start + .milliseconds(3)) == [11])
        #expect(ring.takeForRepeat(count + 10, now: start) == [UInt8(truncatingIfNeeded: count + 10)])
        #expect(ring.takeForRepeat(count + 11, now: start) == nil)
    }

    // MARK: The pace

    /// Sends as much as is allowed for a while.
    ///
    /// - Returns: bytes sent.
    private func send(_ pace: inout SendPace, from: inout Instant, for span: Duration, repeating share: Int) -> Int {
        let end = from + span
        var sent = 0
        while from < end {
            while pace.allows(now: from) {
                pace.sent(1400, isRepetition: share > 0 && sent / 1400 % share == 0)
                sent += 1400
            }
            from = max(from + .microseconds(10), pace.nextChance(now: from))
        }
        return sent
    }

    @Test func `the pace grows while all of it is used, and halves when most is repeated`() {
        var pace = SendPace()
        var now = start
        let sent = send(&pace, from: &now, for: .milliseconds(15), repeating: 0)
        #expect(abs(sent - SendPace.Limits.burst - SendPace.Limits.initial * 15 / 1000) < 50_000)
        _ = send(&pace, from: &now, for: .seconds(2), repeating: 0)
        #expect(pace.rate == SendPace.Limits.most)
        // One in five is lost: the network's own way.
        _ = send(&pace, from: &now, for: .seconds(1), repeating: 5)
        #expect(pace.rate == SendPace.Limits.most)
        _ = send(&pace, from: &now, for: .milliseconds(30), repeating: 2)
        #expect(pace.rate <= SendPace.Limits.most / 2)
        _ = send(&pace, from: &now, for: .seconds(1), repeating: 2)
        #expect(pace.rate == SendPace.Limits.least)
    }

    @Test func `an idle sender's pace stays, and its bursts pass at once`() {
        var pace = SendPace()
        var now = start
        for _ in 0..<1000 {
            var sent = 0
            while sent < SendPace.Limits.burst, pace.allows(now: now) {
                pace.sent(1400, isRepetition: false)
                sent += 1400
            }
            #expect(sent >= SendPace.Limits.burst - 1400)
            now = now + .milliseconds(50)
        }
        #expect(pace.rate == SendPace.Limits.initial)
    }
}

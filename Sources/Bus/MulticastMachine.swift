// A bus without a broker.

import Primitives
import Wire

/// A bus without a broker: datagrams to a group, with losses repaired (docs/bus.md).
///
///     send ──► queue ──► data frames, numbered ──► ring ──► network ──► gate ──► messages
///                                                   ▲                    │ gaps
///                                                   └──── WANTED ◄───────┘
///
/// Each sender numbers its data frames. Receivers see gaps in the numbers, ask for what is missing after a short while,
/// and the sender repeats it for all. The last frame of a burst has no successor to betray its loss, so marks follow it
/// and tell the next number. Nothing waits for anything: frames are taken in any order, and the logic lives with what
/// is lost for good. `RepairWindow` decides what to ask for, `SendPace` how fast to send, `BusGate` whom to believe.
///
/// Deviation from protocols with a membership: nobody acknowledges, and no receiver can hold up a sender.
package struct MulticastMachine: Sendable {
    package enum Limits {
        /// Bytes of a datagram: with the heads of UDP and IPv6 it passes an Ethernet, and most tunnels over one.
        package static let datagramByteCount = 1400
        /// Datagrams that others lack and that wait to be repeated; they ask again for the rest.
        static let repairs = 2048
        /// After the last data frame, when marks follow it; the greetings of every second mark, too.
        ///
        /// Where three of ten datagrams are lost, one burst in 4,000 loses all of these.
        static let marks: [Duration] = [1, 4, 10, 25, 60, 150, 400].map { .milliseconds($0) }
        /// Frames of one step, so that hearing has its turn.
        package static let framesPerStep = 64
    }

    package struct Output: Sendable {
        /// For the network.
        package var datagrams: [[UInt8]] = []
        /// For the inbox.
        package var messages: [[UInt8]] = []
        /// Authentic frames in another version.
        package var foreigners: [BusFrameOrigin] = []

        package init() {}
    }

    package private(set) var gate: BusGate
    private var maker: FrameMaker
    private var ring = RepairRing()
    private var pace = SendPace()
    private var gated = BusGate.Output()
    /// Numbers to repeat, in the order in which they were asked for.
    private var repairs: [UInt64] = []
    private var repaired = 0
    /// When the last data frame was sent, and how many marks have followed it.
    private var lastData: Instant?
    private var marks = Limits.marks.count
    private var isMarkWanted = false

    package init(key: BusKey, session: UInt64, incarnation: UInt64, seed: UInt64) {
        gate = BusGate(key: key, session: session, incarnation: incarnation, repairs: true, seed: seed)
        maker = FrameMaker(key: key, session: session)
    }

    /// Bytes a second at which we send now, at most.
    package var rate: Int { pace.rate }

    // MARK: What comes

    package mutating func received(
        _ datagram: [UInt8], from source: SocketAddress? = nil, now: Instant, into output: inout Output
    ) {
        gate.receive(datagram, from: source, now: now, into: &gated)
        if !gated.messages.isEmpty {
            output.messages.append(contentsOf: gated.messages)
            gated.messages.removeAll(keepingCapacity: true)
        }
        if !gated.foreigners.isEmpty {
            output.foreigners.append(contentsOf: gated.foreigners)
            gated.foreigners.removeAll(keepingCapacity: true)
        }
        guard !gated.wanted.isEmpty else { return }
        for range in gated.wanted {
            if range.lowerBound < ring.oldest { isMarkWanted = true }
            var sequence = max(range.lowerBound, ring.oldest)
            while sequence <= range.upperBound, sequence < ring.next, repairs.count < Limits.repairs {
                repairs.append(sequence)
                sequence += 1
            }
        }
        gated.wanted.removeAll(keepingCapacity: true)
    }

    // MARK: What goes

    /// Does what is due: greetings, requests, repetitions, marks.
    package mutating func step(now: Instant, into output: inout Output) {
        if let greeting = gate.takeGreeting(now: now, oldest: ring.oldest) {
            output.datagrams.append(maker.greeting(greeting))
        }
        for wanted in gate.takeWanted(now: now) { output.datagrams.append(maker.wanted(wanted)) }
        while repaired < repairs.count, output.datagrams.count < Limits.framesPerStep, pace.allows(now: now) {
            if let frame = ring.takeForRepeat(repairs[repaired], now: now) {
                transmit(frame, isRepetition: true, &output)
            }
            repaired += 1
        }
        if repaired == repairs.count {
            repairs.removeAll(keepingCapacity: true)
            repaired = 0
        }
        if let lastData, marks < Limits.marks.count, now - lastData >= Limits.marks[marks] {
            marks += 1
            isMarkWanted = true
        }
        if isMarkWanted {
            isMarkWanted = false
            output.datagrams.append(maker.mark(oldest: ring.oldest))
        }
    }

    /// Sends the next frame of what waits.
    ///
    /// - Returns: false where nothing waits, or the pace does not allow it now.
    package mutating func sendNext(
        from queue: inout OutgoingQueue, now: Instant, into output: inout Output
    ) -> Bool {
        guard output.datagrams.count < Limits.framesPerStep, !queue.isEmpty, repairs.isEmpty, pace.allows(now: now),
            let (_, frame) = maker.data(from: &queue, limit: Limits.datagramByteCount)
        else { return false }
        ring.append(frame)
        transmit(frame, isRepetition: false, &output)
        lastData = now
        marks = 0
        return true
    }

    private mutating func transmit(_ frame: [UInt8], isRepetition: Bool, _ output: inout Output) {
        pace.sent(frame.count, isRepetition: isRepetition)
        output.datagrams.append(frame)
    }

    /// When `step` or `sendNext` has something to do.
    ///
    /// - Parameters:
    ///   - now: the monotonic clock.
    ///   - hasMessages: whether something waits in the queue.
    /// - Returns: `now` or earlier where there is something already.
    package func nextDeadline(now: Instant, hasMessages: Bool) -> Instant {
        var deadline = gate.nextDeadline(now: now)
        if isMarkWanted { return now }
        if hasMessages || !repairs.isEmpty { deadline = min(deadline, pace.nextChance(now: now)) }
        if let lastData, marks < Limits.marks.count { deadline = min(deadline, lastData + Limits.marks[marks]) }
        return deadline
    }

    /// Greets at once: the network was found again.
    package mutating func greetSoon() { gate.greetSoon() }
}

/// All that happens, as one number and, where wanted, as text.
///
/// The number takes in every transition: what happened, to whom, when, what was sent and written, and the state it led
/// to. Two runs with one hash went the same way. Nothing in it depends on the process, the build or a hash table.

import Primitives
import TrackerLogic

struct Trace: Sendable {
    private(set) var hash: UInt64 = 0x5377_6D6B_5472_6163
    private(set) var lines: [String] = []
    /// Whether lines are kept.
    let isRecording: Bool

    init(isRecording: Bool) { self.isRecording = isRecording }

    mutating func absorb(_ word: UInt64) { hash = mixed(hash ^ word) &+ 0x9E37_79B9_7F4A_7C15 }

    mutating func absorb(_ bytes: [UInt8]) { absorb(checksum(bytes.span.bytes)) }

    /// A step of a node, with all that came of it.
    mutating func absorb(_ step: Checks.Step, _ event: Event, _ machine: TrackerNode, _ effects: Effects) {
        absorb(UInt64(bitPattern: step.time.nanoseconds))
        absorb(UInt64(step.node) << 32 | event.tag)
        absorb(machine.state.index)
        absorb(machine.state.digest)
        let bytes = effects.replies.bytes.span.bytes
        for datagram in effects.replies.datagrams {
            absorb(datagram.remote.low ^ UInt64(datagram.remote.port) << 48)
            let start = Int(datagram.offset)
            absorb(checksum(bytes.extracting(start..<start + Int(datagram.byteCount))))
        }
        for answer in effects.answers { absorb(answer.id) }
        for persist in effects.persists {
            absorb(persist.token.rawValue)
            if case .append(_, let entry) = persist.change { absorb(entry) }
        }
    }

    /// Adds a line; the text is not even made where nobody wants it.
    mutating func line(_ time: Instant, _ who: @autoclosure () -> String, _ what: @autoclosure () -> String) {
        guard isRecording else { return }
        lines.append("\(Trace.text(time)) \(who()) \(what())")
    }

    /// Seconds with six digits behind the point, right-aligned.
    static func text(_ time: Instant) -> String {
        let microseconds = time.nanoseconds / 1000
        let fraction = String(microseconds % 1_000_000)
        let seconds = String(microseconds / 1_000_000)
        return String(repeating: " ", count: max(0, 6 - seconds.count)) + seconds + "."
            + String(repeating: "0", count: 6 - fraction.count) + fraction
    }
}

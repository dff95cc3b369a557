// The last datagrams that were sent.

import Primitives

/// The last datagrams that were sent, so that they can be sent again.
package struct RepairRing: Sendable {
    package enum Limits {
        /// Datagrams kept: 22 MiB at most, two thirds of a second at the pace with which a sender begins.
        ///
        /// Who has not asked by then gets the messages from the logic, which repeats what matters.
        package static let capacity = 16_384
        /// A datagram is not repeated more often: whoever asked twice had not yet got it.
        static let interval = Duration.milliseconds(3)
        /// Nor more often than this in all: whoever loses three of ten has it long before, and whoever plays a recorded
        /// request again and again draws no more.
        static let repeats: UInt8 = 32
    }

    private var frames: [[UInt8]] = []
    private var repeatedAt: [Instant?] = []
    private var repeats: [UInt8] = []
    /// The number of the next datagram.
    package private(set) var next: UInt64 = 1

    package init() {}

    /// The first that is still there.
    package var oldest: UInt64 { next - UInt64(frames.count) }

    /// Keeps the datagram of the next number.
    package mutating func append(_ frame: [UInt8]) {
        if frames.count < Limits.capacity {
            frames.append(frame)
            repeatedAt.append(nil)
            repeats.append(0)
        } else {
            frames[slot(next)] = frame
            repeatedAt[slot(next)] = nil
            repeats[slot(next)] = 0
        }
        next += 1
    }

    /// A datagram to be sent again.
    ///
    /// - Returns: nil where it is not there any more, was not sent yet, was just repeated, or often enough.
    package mutating func takeForRepeat(_ sequence: UInt64, now: Instant) -> [UInt8]? {
        guard sequence >= oldest, sequence < next else { return nil }
        let slot = slot(sequence)
        if let before = repeatedAt[slot], now - before < Limits.interval { return nil }
        guard repeats[slot] < Limits.repeats else { return nil }
        repeats[slot] += 1
        repeatedAt[slot] = now
        return frames[slot]
    }

    /// Numbers begin with 1, and so do slots.
    private func slot(_ sequence: UInt64) -> Int { Int((sequence - 1) % UInt64(Limits.capacity)) }
}

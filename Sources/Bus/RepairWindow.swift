// Which datagrams of a sender have come and which are missing.

import Primitives

/// Which datagrams of a sender have come and which are missing, and when to ask for those again.
///
///     sent:      1 2 3 4 5 6 7 8 9        gaps: 3…4 and 7
///     received:  1 2     5 6   8 9        greatest: 9
///
/// A datagram counts as missing when a later number came, or when the sender said that it sent more. It is asked for
/// after a small random delay (it may only be late, and another receiver may ask first: everybody hears that, and then
/// waits as if he had asked himself), and again with growing patience, until it comes, the sender has it no more, or
/// enough is enough. Scalable Reliable Multicast (Floyd et al., 1997) works so.
///
/// Invariants: gaps rise; all numbers from the first to the greatest that are not in a gap have come or are given up.
package struct RepairWindow: Sendable, Equatable {
    package enum Limits {
        /// Gaps at a time; a network that loses more is as good as cut.
        ///
        /// The oldest are given up.
        package static let gaps = 512
        /// Requests for one gap before it is given up, some 0.8 s after the first.
        ///
        /// Where three of ten datagrams are lost on each way, each of them brings the datagram in every second case.
        static let requests = 16
        /// How long a datagram may be late before it is asked for.
        static let firstDelay = (least: Duration.microseconds(300), most: Duration.milliseconds(2))
        /// Until it is asked for again; doubles with each request, up to the second.
        static let retryDelay = Duration.milliseconds(5)
        static let longestRetryDelay = Duration.milliseconds(60)
        /// A jump by more than any sender keeps for repetition: what lies between is given up at once.
        static let jump: UInt64 = 1 << 16
    }

    package struct Gap: Sendable, Equatable {
        package var first: UInt64
        package var last: UInt64
        var due: Instant
        var requests: Int
    }

    /// The greatest number known to have been sent; nil before the start.
    package private(set) var greatest: UInt64?
    package private(set) var gaps: [Gap] = []
    /// When the next request is due; may be earlier than the truth.
    package private(set) var nextDue: Instant?

    package init() {}

    /// What became of a datagram that came.
    package enum Receipt: Sendable, Equatable {
        case new
        /// It was missing, and had been asked for.
        case repaired
        case duplicate
    }

    /// Begins with this number: what came before is of no interest.
    package mutating func start(at sequence: UInt64) {
        precondition(greatest == nil, "a window begins once")
        greatest = sequence == 0 ? 0 : sequence - 1
    }

    package mutating func receive(_ sequence: UInt64, now: Instant, random: inout RandomStream) -> Receipt {
        guard let greatest else { preconditionFailure("a window begins before it receives") }
        if sequence > greatest {
            if sequence - greatest > 1 { open(greatest + 1, sequence - 1, now, &random) }
            self.greatest = sequence
            return .new
        }
        guard let index = gap(with: sequence) else { return .duplicate }
        let wasWanted = gaps[index].requests > 0
        let last = gaps[index].last
        if gaps[index].first == last {
            gaps.remove(at: index)
        } else if sequence == gaps[index].first {
            gaps[index].first += 1
        } else if sequence == last {
            gaps[index].last -= 1
        } else {
            var upper = gaps[index]
            upper.first = sequence + 1
            gaps[index].last = sequence - 1
            gaps.insert(upper, at: index + 1)
            if gaps.count > Limits.gaps { gaps.removeFirst() }
        }
        if gaps.isEmpty { nextDue = nil }
        return wasWanted ? .repaired : .new
    }

    /// The sender says that its next number will be this one, and that it can repeat from `oldest` on.
    package mutating func noteNext(_ next: UInt64, oldest: UInt64, now: Instant, random: inout RandomStream) {
        guard let greatest else { preconditionFailure("a window begins before it receives") }
        if next > 0, next - 1 > greatest {
            open(greatest + 1, next - 1, now, &random)
            self.greatest = next - 1
        }
        giveUp(below: oldest)
    }

    /// Another receiver has asked for these.
    package mutating func noteRequest(_ range: ClosedRange<UInt64>, now: Instant) {
        for index in gaps.indices
        where gaps[index].requests == 0 && range.contains(gaps[index].first) && range.contains(gaps[index].last) {
            gaps[index].requests = 1
            gaps[index].due = now + Limits.retryDelay
        }
    }

    /// What to ask for now; counts as asked.
    package mutating func takeDue(now: Instant, limit: Int, into ranges: inout [ClosedRange<UInt64>]) {
        guard let nextDue, nextDue <= now else { return }
        var index = 0
        while index < gaps.count {
            guard gaps[index].due <= now, ranges.count < limit else {
                index += 1
                continue
            }
            guard gaps[index].requests < Limits.requests else {
                gaps.remove(at: index)
                continue
            }
            ranges.append(gaps[index].first...gaps[index].last)
            gaps[index].due = now + min(Limits.longestRetryDelay, Limits.retryDelay * (1 << gaps[index].requests))
            gaps[index].requests += 1
            index += 1
        }
        self.nextDue = gaps.map(\.due).min()
    }

    private mutating func open(_ first: UInt64, _ last: UInt64, _ now: Instant, _ random: inout RandomStream) {
        guard last - first < Limits.jump else { return }
        let due = now + random.between(Limits.firstDelay.least, Limits.firstDelay.most)
        gaps.append(Gap(first: first, last: last, due: due, requests: 0))
        if gaps.count > Limits.gaps { gaps.removeFirst() }
        nextDue = earliest(nextDue, due)
    }

    private mutating func giveUp(below oldest: UInt64) {
        var count = 0
        while count < gaps.count, gaps[count].last < oldest { count += 1 }
        gaps.removeFirst(count)
        if let first = gaps.first, first.first < oldest { gaps[0].first = oldest }
        if gaps.isEmpty { nextDue = nil }
    }

    /// Binary search.
    private func gap(with sequence: UInt64) -> Int? {
        var (low, high) = (0, gaps.count)
        while low < high {
            let middle = (low + high) / 2
            if gaps[middle].last < sequence { low = middle + 1 } else { high = middle }
        }
        return low < gaps.count && gaps[low].first <= sequence ? low : nil
    }
}

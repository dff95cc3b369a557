// Single messages that are lost on a bus that is well, or come once more much later.

import Primitives
import Wire

/// Single messages that are lost on a bus that is well, or come once more much later: seconds apart, so that what one
/// of them costs can be told (docs/protocol.md: what is lost is said again).
///
///     waits ── its time has come, and a message of its kind is sent ──► strikes: the next one is drawn
///       └── nothing of its kind is said for a while ──► another kind is drawn
struct Slips: Sendable {
    /// What becomes of a message.
    enum Blow: Sendable, Hashable {
        case lost
        /// It comes so much later.
        case late(Duration)
        /// It comes as it should, and once more so much later.
        case again(Duration)
    }

    /// A slip that waits for its message.
    private struct Slip: Sendable {
        /// The messages that it may hit.
        var kind: Kind
        var blow: Blow
        var from: Instant
        var until: Instant
    }

    /// Messages that somebody waits for.
    enum Kind: Int, Sendable, CaseIterable {
        case forward, answered, prepare, vote, commit, confirm, confirmed, join, election

        func isMeant(_ body: ClusterMessage.Body) -> Bool {
            switch body {
            case .forward: self == .forward
            case .answered: self == .answered
            case .prepare: self == .prepare
            case .ok, .error: self == .vote
            case .commit: self == .commit
            case .confirm: self == .confirm
            case .confirmed: self == .confirmed
            case .hello, .welcome, .welcomeDone, .fetch, .entries, .fetchChunk, .chunk: self == .join
            case .suspect, .election, .answer, .coordinator, .handover: self == .election
            case .keepalive, .refused, .leave, .stop, .report, .order, .ordered: false
            }
        }
    }

    private var random: RandomStream
    private let gap: Duration
    private var next: Slip

    /// - Parameters:
    ///   - gap: between two of them, on average.
    ///   - random: draws which messages are hit.
    init(gap: Duration, random: RandomStream) {
        (self.gap, self.random) = (gap, random)
        next = Slip(kind: .forward, blow: .lost, from: Instant(nanoseconds: 0), until: Instant(nanoseconds: 0))
        draw(after: Instant(nanoseconds: 0) + .seconds(3))
    }

    private mutating func draw(after time: Instant) {
        let from = time + random.between(gap * 1 / 2, gap * 3 / 2)
        // Those for which a client waits, more often than not.
        let kinds = random.oneIn(2) ? [.forward, .answered] : Kind.allCases
        let kind = kinds[random.below(kinds.count)]
        let delay = random.between(.milliseconds(100), .seconds(6))
        let blows = [.lost, .lost, .late(delay), Blow.again(delay)]
        let blow = blows[random.below(blows.count)]
        next = Slip(kind: kind, blow: blow, from: from, until: from + gap)
    }

    /// A message is sent to somebody.
    ///
    /// - Returns: what becomes of it; nil where it arrives as it should.
    mutating func strike(_ message: ClusterMessage, at time: Instant) -> Blow? {
        guard time >= next.from else { return nil }
        if time > next.until { draw(after: time) }
        guard time >= next.from, next.kind.isMeant(message.body) else { return nil }
        defer { draw(after: time) }
        return next.blow
    }
}

// Who is given blocks.

import Primitives

/// Who is given blocks: tit for tat, with one peer let in on trust (Cohen 2003, sections 3.1 to 3.5).
///
/// Every ten seconds the peers that are interested are ranked. A leecher ranks them by what they give; a seeder lets
/// each have its turn of thirty seconds, the one that has waited longest first. One slot is the optimistic one: it goes
/// to the peer that has waited longest, for thirty seconds, whatever it gives. So nobody waits for more than thirty
/// seconds for each interested peer before it.
///
/// Deviation: a free slot is given at once, to whoever becomes interested; a swarm of few peers never waits for a
/// round.
struct Choker: Sendable, Equatable {
    static let round = Duration.seconds(10)
    static let turn = Duration.seconds(30)

    /// What is known of a peer that is interested.
    struct Candidate: Sendable, Equatable {
        var slot: Int
        /// Bytes a second that it gives.
        var rate: Int
        var isUnchoked: Bool
        /// Since when it is unchoked; or since when it waits.
        var since: Instant
        /// It was asked and has given nothing for long.
        var isSnubbing: Bool
    }

    private(set) var nextRound: Instant?
    private var optimistic: Optimistic?

    /// Who is let in on trust.
    private struct Optimistic: Sendable, Equatable {
        let slot: Int
        let since: Instant
    }

    mutating func start(now: Instant) { nextRound = now + Self.round }

    /// A connection has ended, or its peer is interested no more.
    mutating func forget(_ slot: Int) {
        if optimistic?.slot == slot { optimistic = nil }
    }

    /// The slots that are to be unchoked from now on, no more than there are upload slots; all others are choked.
    mutating func chosen(_ candidates: [Candidate], slots: Int, isSeeding: Bool, now: Instant) -> [Int] {
        nextRound = now + Self.round
        guard slots > 0 else { return [] }
        var result: [Int] = []
        if candidates.count > slots || optimistic != nil { chooseOptimistic(candidates, now) }
        if let optimistic { result.append(optimistic.slot) }
        var rest = candidates.filter { $0.slot != optimistic?.slot }
        rest.sort { left, right in
            isSeeding ? Self.isBeforeForSeeder(left, right, now) : Self.isBeforeForLeecher(left, right)
        }
        for candidate in rest where result.count < slots { result.append(candidate.slot) }
        return result
    }

    private mutating func chooseOptimistic(_ candidates: [Candidate], _ now: Instant) {
        if let optimistic, now - optimistic.since < Self.turn,
            candidates.contains(where: { $0.slot == optimistic.slot })
        {
            return
        }
        var longest: Candidate?
        for candidate in candidates where !candidate.isUnchoked {
            if longest.map({ candidate.since < $0.since }) ?? true { longest = candidate }
        }
        optimistic = longest.map { Optimistic(slot: $0.slot, since: now) }
    }

    private static func isBeforeForLeecher(_ left: Candidate, _ right: Candidate) -> Bool {
        if left.isSnubbing != right.isSnubbing { return right.isSnubbing }
        if left.rate != right.rate { return left.rate > right.rate }
        if left.isUnchoked != right.isUnchoked { return left.isUnchoked }
        if left.since != right.since { return left.since < right.since }
        return left.slot < right.slot
    }

    /// Whose turn is not over comes first, then who has waited longest, then who has had the longest turn.
    private static func isBeforeForSeeder(_ left: Candidate, _ right: Candidate, _ now: Instant) -> Bool {
        func rank(_ candidate: Candidate) -> Int {
            candidate.isUnchoked ? (now - candidate.since < turn ? 0 : 2) : 1
        }
        if rank(left) != rank(right) { return rank(left) < rank(right) }
        if left.since != right.since { return rank(left) == 2 ? left.since > right.since : left.since < right.since }
        return left.slot < right.slot
    }
}

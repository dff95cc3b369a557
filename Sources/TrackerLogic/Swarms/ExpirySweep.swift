// Visits the shards one after another and finds those whose silent peers are to be taken out.

import Primitives
import Wire

/// Visits the shards one after another and finds those whose silent peers are to be taken out.
///
/// Only the master sweeps, and what it finds becomes an update of the log (rule 4): no tracker forgets a
/// peer by its own clock.
struct ExpirySweep: Sendable, Hashable {
    /// The longest time in which every shard is visited once.
    static let longestRound = Duration.seconds(60)
    /// The shortest, however soon peers are to go.
    static let shortestRound = Duration.seconds(1)
    /// How long a torrent without peers keeps its count of downloads, in seconds.
    static let emptyLifetime: UInt32 = 30 * 86_400
    /// How long it keeps it while the table is nearly full, in seconds.
    static let emptyLifetimeWhenFull: UInt32 = 3_600
    /// Shortest time between two steps, so that an idle tracker sleeps.
    static let minPace = Duration.milliseconds(200)

    private var nextShard: UInt32 = 0
    private var shardCount: UInt32
    private(set) var deadline: Instant?

    init(shardCount: UInt32) { self.shardCount = shardCount }

    /// How long a round takes: an eighth of a peer's life, so that none stays much longer than that.
    static func round(lifetime: UInt32) -> Duration {
        min(max(Duration.seconds(Int64(lifetime)) / 8, shortestRound), longestRound)
    }

    /// Shards a step, so that a round takes its time.
    private func shardsPerStep(_ round: Duration) -> UInt32 {
        let steps = UInt32(round.nanoseconds / ExpirySweep.minPace.nanoseconds)
        return max(1, (shardCount + steps - 1) / steps)
    }

    mutating func start(now: Instant) { deadline = now + ExpirySweep.minPace }

    /// The expiries that are due, as updates; none for shards where nobody is silent.
    ///
    /// - Parameters:
    ///   - table: the repository, which is only looked at.
    ///   - now: the monotonic clock, for the pace.
    ///   - time: cluster time now, in seconds since 1970.
    ///   - lifetime: seconds after which a silent peer is gone.
    ///   - isNearlyFull: whether torrents without peers are to go sooner.
    /// - Returns: one update for each shard that has somebody to take out; empty before the deadline.
    mutating func step(
        _ table: SwarmTable, now: Instant, time: UInt32, lifetime: UInt32, isNearlyFull: Bool
    ) -> [Update] {
        guard let deadline, deadline <= now else { return [] }
        let round = ExpirySweep.round(lifetime: lifetime)
        let count = shardsPerStep(round)
        // Fewer shards than steps in a round: longer pauses instead.
        self.deadline =
            now
            + max(
                ExpirySweep.minPace,
                Duration(nanoseconds: round.nanoseconds * Int64(count) / Int64(shardCount)))
        let emptyLifetime = isNearlyFull ? ExpirySweep.emptyLifetimeWhenFull : ExpirySweep.emptyLifetime
        let seenBefore = time > lifetime ? time - lifetime : 0
        let emptyBefore = time > emptyLifetime ? time - emptyLifetime : 0
        var updates: [Update] = []
        for _ in 0..<count {
            if table.hasSilent(inShard: nextShard, seenBefore: seenBefore, emptyBefore: emptyBefore) {
                updates.append(.expire(shard: nextShard, seenBefore: seenBefore, emptyBefore: emptyBefore))
            }
            nextShard = (nextShard + 1) % shardCount
        }
        return updates
    }
}

extension SwarmTable {
    /// Whether an expiry of this shard would take anything out.
    func hasSilent(inShard number: UInt32, seenBefore: UInt32, emptyBefore: UInt32) -> Bool {
        let shard = shards[Int(number)]
        if let oldest = shard.mergeData?.tombstones.oldest, oldest < seenBefore { return true }
        for torrent in shard.torrents {
            if torrent.isEmpty {
                if torrent.emptySince < emptyBefore { return true }
                continue
            }
            for position in 0..<Int(torrent.ipv4.count)
            where shard.ipv4.lastSeen(torrent.ipv4, at: position) < seenBefore { return true }
            for position in 0..<Int(torrent.ipv6.count)
            where shard.ipv6.lastSeen(torrent.ipv6, at: position) < seenBefore { return true }
        }
        return false
    }
}

extension ExpirySweep {
    mutating func walk(_ archive: inout Archive) {
        nextShard.walk(&archive)
        shardCount.walk(&archive)
        deadline.walk(&archive)
    }
}

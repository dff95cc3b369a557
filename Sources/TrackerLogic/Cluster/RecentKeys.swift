/// The requests of a group that were settled last, by key: what another tracker hands on late, or the network repeats,
/// is not answered again.

import Primitives

struct RecentKeys: Sendable, Equatable {
    /// BEP 15 has a client ask again after 15 s; what comes sooner is a copy.
    static let memory = Duration.seconds(12)
    /// Enough for twelve seconds at some thousand requests a second, in 200 KB; past that, late copies are answered.
    static let maxCount = 16_384

    private var keys: [UInt64] = []
    private var times: [Instant] = []
    private var index = SlotIndex()
    private var next = 0

    mutating func insert(_ key: UInt64, now: Instant) {
        if let slot = slot(of: key) {
            times[slot] = now
            return
        }
        if keys.count < RecentKeys.maxCount {
            index.insert(UInt32(truncatingIfNeeded: key), slot: keys.count)
            keys.append(key)
            times.append(now)
            return
        }
        index.remove(UInt32(truncatingIfNeeded: keys[next]), slot: next)
        index.insert(UInt32(truncatingIfNeeded: key), slot: next)
        keys[next] = key
        times[next] = now
        next = (next + 1) % RecentKeys.maxCount
    }

    /// When a key was last settled.
    func insertedAt(_ key: UInt64) -> Instant? { slot(of: key).map { times[$0] } }

    private func slot(of key: UInt64) -> Int? {
        index.find(UInt32(truncatingIfNeeded: key)) { keys[$0] == key }
    }
}

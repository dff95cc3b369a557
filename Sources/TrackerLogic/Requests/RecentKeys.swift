// The requests of a group that were settled last, by key.

import Primitives

/// The requests of a group that were settled last, by key: what another tracker forwards late, or the network repeats,
/// is not answered again.
///
/// A copy that comes from a client is told from a new try by time: BEP 15 has a client wait for 15 s. One that a
/// tracker forwards may have been under way for any time, so it comes with the index up to which its sender had applied
/// the log: what was settled behind that index, the sender could not know.
package struct RecentKeys: Sendable, Equatable {
    /// BEP 15 has a client ask again after 15 s; what comes sooner is a copy.
    package static let memory = Duration.seconds(12)
    /// In survivor mode an index may be one of another history and say nothing: there, what another tracker forwards is
    /// told from a new try by time as well, with as much again for the time that it may have waited there.
    package static let memoryOfOthers = Duration.seconds(27)
    /// Enough for twelve seconds at some thousand requests a second, in 600 KB; past that, late copies of clients are
    /// answered.
    package static let maxCount = 16_384

    private var keys: [UInt64] = []
    private var times: [Instant] = []
    private var indices: [UInt64] = []
    private var slots = SlotIndex()
    private var next = 0
    /// All keys are here that entries behind this index have settled.
    package private(set) var completeSince: UInt64 = 0

    package init() {}

    /// Notes a key.
    ///
    /// - Parameters:
    ///   - key: what all trackers of the group call the request.
    ///   - index: of the last entry that was applied then: the one that settled it, or one before.
    ///   - now: the monotonic clock.
    package mutating func insert(_ key: UInt64, at index: UInt64, now: Instant) {
        if let slot = slot(of: key) {
            times[slot] = now
            indices[slot] = max(indices[slot], index)
            return
        }
        if keys.count < RecentKeys.maxCount {
            slots.insert(UInt32(truncatingIfNeeded: key), slot: keys.count)
            keys.append(key)
            times.append(now)
            indices.append(index)
            return
        }
        completeSince = max(completeSince, indices[next])
        slots.remove(UInt32(truncatingIfNeeded: keys[next]), slot: next)
        slots.insert(UInt32(truncatingIfNeeded: key), slot: next)
        keys[next] = key
        times[next] = now
        indices[next] = index
        next = (next + 1) % RecentKeys.maxCount
    }

    /// Notes the keys that came with a state: others may have been settled by the entries before it.
    package mutating func insert(_ settled: [SettledKey], through index: UInt64, now: Instant) {
        for key in settled { insert(key.key, at: index, now: now) }
        completeSince = max(completeSince, index)
    }

    /// Whether a request was settled so lately that no client has asked anew: what comes now is a copy.
    package func isRecent(_ key: UInt64, within memory: Duration = memory, now: Instant) -> Bool {
        slot(of: key).map { now - times[$0] < memory } ?? false
    }

    /// Whether a request was settled behind an index, as far as is known: see `completeSince`.
    package func isSettled(_ key: UInt64, behind index: UInt64) -> Bool {
        slot(of: key).map { indices[$0] > index } ?? false
    }

    private func slot(of key: UInt64) -> Int? {
        slots.find(UInt32(truncatingIfNeeded: key)) { keys[$0] == key }
    }
}

extension RecentKeys {
    mutating func walk(_ archive: inout Archive) {
        keys.walk(&archive)
        times.walk(&archive)
        indices.walk(&archive)
        next.walk(&archive)
        completeSince.walk(&archive)
        guard archive.isReading else { return }
        guard times.count == keys.count, indices.count == keys.count, keys.count <= RecentKeys.maxCount,
            (0..<RecentKeys.maxCount).contains(next)
        else { return archive.refuse() }
        slots = SlotIndex()
        for slot in keys.indices { slots.insert(UInt32(truncatingIfNeeded: keys[slot]), slot: slot) }
    }
}

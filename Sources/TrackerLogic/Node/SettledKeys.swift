// The requests of a group that the last entries have settled, by key.

import Primitives
import Wire

/// A request of a group that is settled.
public struct SettledKey: Sendable, Hashable {
    /// What all trackers of the group call it.
    public var key: UInt64
    /// Cluster time of the entry that settled it, in seconds since 1970.
    public var seconds: UInt32

    /// Takes the fields as they are.
    public init(key: UInt64, seconds: UInt32) {
        self.key = key
        self.seconds = seconds
    }
}

/// The requests of a group that the last entries have settled, by key: part of the replicated state, so that a tracker
/// that restarts from a snapshot, or is sent the state, knows a late copy from a new request.
///
///     entry applied ──► its tickets' keys ──► chunk 0 ──► read back, or fetched ──► `RecentKeys` of that tracker
///
/// The keys are no part of the digest: they are for a minute, and say nothing about swarms.
struct SettledKeys: Sendable, Equatable {
    /// Past that, no tracker has a copy any more: each remembers for `RecentKeys.memory`, and clocks differ.
    static let memory: UInt32 = 60
    /// As many as a tracker remembers.
    static let maxCount = RecentKeys.maxCount

    /// The latest last.
    private var keys: [SettledKey] = []

    var isEmpty: Bool { keys.isEmpty }

    mutating func insert(_ key: SettledKey) {
        // Half of them at a time, so that each moves once.
        if keys.count >= SettledKeys.maxCount * 2 { keys.removeFirst(SettledKeys.maxCount) }
        keys.append(key)
    }

    /// Those that may still matter at a time.
    func recent(at time: WallTime) -> [SettledKey] {
        let now = time.seconds
        var first = max(0, keys.count - SettledKeys.maxCount)
        while first < keys.count, keys[first].seconds &+ SettledKeys.memory < now { first += 1 }
        return Array(keys[first...])
    }
}

extension SettledKey: Archived {
    static var blank: SettledKey { SettledKey(key: 0, seconds: 0) }

    mutating func walk(_ archive: inout Archive) {
        key.walk(&archive)
        seconds.walk(&archive)
    }
}

extension SettledKeys {
    mutating func walk(_ archive: inout Archive) { keys.walk(&archive) }
}

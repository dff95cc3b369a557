// Who spoke on the bus and was refused: told to operators, since a tracker with another key is silent in no other way.

import Primitives

/// A sender on the bus whose frames are refused.
public struct BusRefusal: Sendable, Hashable, Codable {
    /// Why frames are refused.
    public enum Reason: String, Sendable, Hashable, Codable {
        /// The MAC is not right: the sender has another key, or plays with the bus.
        case otherKey
        /// It is of a cluster of another name.
        case otherCluster
    }

    /// Its address, where the bus tells it, else the number of its session on the bus.
    public var sender: String
    /// Why its frames are refused.
    public var reason: Reason
    /// Frames that were refused for that reason.
    public var count: UInt64
    /// Since the last of them.
    public var silentSeconds: Double

    /// Takes the fields as they are.
    public init(sender: String, reason: Reason, count: UInt64, silentSeconds: Double) {
        self.sender = sender
        self.reason = reason
        self.count = count
        self.silentSeconds = silentSeconds
    }

    /// Whether it may still be the case.
    package var isRecent: Bool { silentSeconds < 30 }
}

/// A bounded list of them: who has been silent for longest makes room.
package struct RefusedSenders: Sendable, Equatable {
    package static let maxCount = 16

    private struct Entry: Sendable, Equatable {
        /// Without its port; nil where the bus does not tell.
        var source: SocketAddress?
        var session: UInt64
        var reason: BusRefusal.Reason
        var count: UInt64 = 0
        var lastAt: Instant

        func isOf(_ source: SocketAddress?, _ session: UInt64, _ reason: BusRefusal.Reason) -> Bool {
            guard self.reason == reason, self.source == source else { return false }
            // One address is one sender, however often it begins anew.
            return source != nil || self.session == session
        }
    }

    private var entries: [Entry] = []

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }

    package mutating func note(
        _ source: SocketAddress?, session: UInt64, _ reason: BusRefusal.Reason, now: Instant
    ) {
        var source = source
        source?.port = 0
        if let place = entries.firstIndex(where: { $0.isOf(source, session, reason) }) {
            entries[place].count &+= 1
            entries[place].lastAt = now
            return
        }
        if entries.count >= RefusedSenders.maxCount,
            let oldest = entries.indices.min(by: { entries[$0].lastAt < entries[$1].lastAt })
        {
            entries.remove(at: oldest)
        }
        entries.append(Entry(source: source, session: session, reason: reason, count: 1, lastAt: now))
    }

    package func list(now: Instant) -> [BusRefusal] {
        entries.map { entry in
            BusRefusal(
                sender: entry.source?.host ?? "bus session \(String(entry.session, radix: 16))", reason: entry.reason,
                count: entry.count, silentSeconds: Double((now - entry.lastAt).wholeMilliseconds) / 1000)
        }
    }
}

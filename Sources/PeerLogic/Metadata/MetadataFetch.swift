// The info dictionary, had of peers (BEP 9).

import Primitives
import Wire

/// The info dictionary, had of one peer at a time, part by part (BEP 9, "metadata").
///
/// Deviation: others ask many peers at once. Here all parts come from one, so that where the hash is wrong the culprit
/// is known; a slow peer is left for the next after its time, and one that refuses is asked again after that time at
/// the soonest, where nobody else is there.
struct MetadataFetch: Sendable, Equatable {
    /// Parts are 16 KiB, the last may be shorter.
    static let partByteCount = 16_384
    /// What `Metainfo` reads at most.
    static let maxByteCount = BencodeLimits.metainfo.byteCount
    /// Parts asked for ahead.
    static let maxPendingCount = 4
    /// For the next part.
    static let patience = Duration.seconds(20)

    private static let maxPassedOverCount = 256

    enum Phase: Sendable, Hashable {
        /// Nobody is asked. Can transition to: asking.
        case idle
        /// Parts are awaited. Can transition to: idle, checking.
        case asking
        /// The owner hashes. Can transition to: idle, done.
        case checking
        /// It is here, and right.
        case done
    }

    private(set) var phase: Phase
    /// The peer that is asked, or was: its slot and its entry in the book.
    private(set) var slot = 0
    private(set) var peer: UInt32 = 0
    private var parts: [[UInt8]?] = []
    /// All of it, while the owner hashes.
    private var whole: [UInt8] = []
    private var byteCount = 0
    private var pending: [Int] = []
    private var heardAt = Instant(nanoseconds: 0)
    /// Entries that were too slow, or do not give it, and when they were last heard of.
    private var passedOver: [PassedOver] = []

    private struct PassedOver: Sendable, Equatable {
        let peer: UInt32
        let at: Instant
    }

    init(isDone: Bool) { phase = isDone ? .done : .idle }

    var deadline: Instant? { phase == .asking ? heardAt + Self.patience : nil }

    /// Chooses who is asked; nil where nobody can be.
    mutating func begin(_ candidates: [(slot: Int, peer: UInt32, byteCount: Int)], now: Instant) -> Int? {
        guard phase == .idle else { return nil }
        guard let chosen = candidates.min(by: { triedAt($0.peer) < triedAt($1.peer) }),
            now - triedAt(chosen.peer) >= Self.patience, (1...Self.maxByteCount).contains(chosen.byteCount)
        else { return nil }
        phase = .asking
        (slot, peer, byteCount) = (chosen.slot, chosen.peer, chosen.byteCount)
        parts = Array(repeating: nil, count: (byteCount - 1) / Self.partByteCount + 1)
        pending = []
        heardAt = now
        return chosen.slot
    }

    /// When a peer was passed over; long ago for one that was not.
    private func triedAt(_ peer: UInt32) -> Instant {
        passedOver.first { $0.peer == peer }?.at ?? Instant(nanoseconds: .min / 2)
    }

    /// The next part to ask for; nil where enough is asked for.
    mutating func nextPart() -> Int? {
        guard phase == .asking, pending.count < Self.maxPendingCount,
            let part = parts.indices.first(where: { parts[$0] == nil && !pending.contains($0) })
        else { return nil }
        pending.append(part)
        return part
    }

    /// A part has come.
    ///
    /// - Returns: all of it, where this was the last part.
    mutating func received(_ part: Int, _ bytes: [UInt8], from slot: Int, now: Instant) -> [UInt8]? {
        guard phase == .asking, slot == self.slot, let index = pending.firstIndex(of: part) else { return nil }
        let expected = min(Self.partByteCount, byteCount - part * Self.partByteCount)
        guard bytes.count == expected else {
            passOver(at: now)
            return nil
        }
        pending.remove(at: index)
        parts[part] = bytes
        heardAt = now
        guard parts.allSatisfy({ $0 != nil }) else { return nil }
        phase = .checking
        whole = parts.flatMap { $0 ?? [] }
        parts = []
        return whole
    }

    /// Another is asked: this one was too slow, gives none, or has left.
    ///
    /// `moment` is when it has refused; nil for one that has not.
    mutating func passOver(at moment: Instant? = nil) {
        guard phase == .asking else { return }
        let peer = peer
        passedOver.removeAll { $0.peer == peer }
        if passedOver.count >= Self.maxPassedOverCount { passedOver.removeFirst() }
        passedOver.append(PassedOver(peer: peer, at: moment ?? heardAt))
        phase = .idle
        parts = []
        pending = []
    }

    /// The connection of a slot has ended.
    mutating func left(_ slot: Int) {
        if phase == .asking, slot == self.slot { passOver() }
    }

    /// - Returns: the peer that gave what was wrong.
    mutating func rejected() -> UInt32? {
        guard phase == .checking else { return nil }
        phase = .idle
        whole = []
        return peer
    }

    /// - Returns: all of it, to be given to others; nil where it has not come from a peer.
    mutating func accepted() -> [UInt8]? {
        let accepted = whole
        phase = .done
        whole = []
        return accepted.isEmpty ? nil : accepted
    }
}

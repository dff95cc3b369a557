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

    /// A peer that gives it.
    struct Source: Sendable, Hashable {
        let slot: Int
        /// Its entry in the book.
        let peer: UInt32
        /// Of all of it, as the peer says.
        let byteCount: Int
        var heardAt: Instant
    }

    private enum Phase: Sendable, Hashable {
        /// Nobody is asked. Can transition to: asking, done.
        case idle
        /// Parts are awaited. Can transition to: idle, checking, done.
        case asking(Source)
        /// The owner hashes all of it, which this entry of the book has given. Can transition to: idle, done.
        case checking(peer: UInt32)
        /// It is here, and right.
        case done
    }

    private var phase: Phase
    private var parts: [[UInt8]?] = []
    private var pending: [Int] = []
    private var whole: [UInt8] { parts.flatMap { $0 ?? [] } }
    /// Entries that were too slow, or do not give it, and when they were last heard of.
    private var passedOver: [PassedOver] = []

    private struct PassedOver: Sendable, Equatable {
        let peer: UInt32
        let at: Instant
    }

    init(isDone: Bool) { phase = isDone ? .done : .idle }

    private var source: Source? { if case .asking(let source) = phase { source } else { nil } }
    /// The peer that is asked.
    var slot: Int? { source?.slot }
    var deadline: Instant? { source.map { $0.heardAt + Self.patience } }

    /// Chooses who is asked, where nobody is and somebody can be.
    mutating func begin(_ candidates: [Source], now: Instant) {
        guard phase == .idle, let chosen = candidates.min(by: { triedAt($0.peer) < triedAt($1.peer) }),
            now - triedAt(chosen.peer) >= Self.patience, (1...Self.maxByteCount).contains(chosen.byteCount)
        else { return }
        phase = .asking(chosen)
        parts = Array(repeating: nil, count: (chosen.byteCount - 1) / Self.partByteCount + 1)
        pending = []
    }

    /// When a peer was passed over; long ago for one that was not.
    private func triedAt(_ peer: UInt32) -> Instant {
        passedOver.first { $0.peer == peer }?.at ?? Instant(nanoseconds: .min / 2)
    }

    /// The next part to ask for; nil where enough is asked for.
    mutating func nextPart() -> Int? {
        guard source != nil, pending.count < Self.maxPendingCount,
            let part = parts.indices.first(where: { parts[$0] == nil && !pending.contains($0) })
        else { return nil }
        pending.append(part)
        return part
    }

    /// A part has come.
    ///
    /// - Returns: all of it, where this was the last part.
    mutating func received(_ part: Int, _ bytes: [UInt8], from slot: Int, now: Instant) -> [UInt8]? {
        guard var source, slot == source.slot, let index = pending.firstIndex(of: part) else { return nil }
        let expected = min(Self.partByteCount, source.byteCount - part * Self.partByteCount)
        guard bytes.count == expected else {
            passOver(at: now)
            return nil
        }
        pending.remove(at: index)
        parts[part] = bytes
        source.heardAt = now
        phase = .asking(source)
        guard parts.allSatisfy({ $0 != nil }) else { return nil }
        phase = .checking(peer: source.peer)
        return whole
    }

    /// Another is asked: this one was too slow, gives none, or has left.
    ///
    /// `moment` is when it has refused; nil for one that has not.
    mutating func passOver(at moment: Instant? = nil) {
        guard let source else { return }
        passedOver.removeAll { $0.peer == source.peer }
        if passedOver.count >= Self.maxPassedOverCount { passedOver.removeFirst() }
        passedOver.append(PassedOver(peer: source.peer, at: moment ?? source.heardAt))
        phase = .idle
        parts = []
        pending = []
    }

    /// The connection of a slot has ended.
    mutating func left(_ slot: Int) {
        if slot == self.slot { passOver() }
    }

    /// - Returns: the peer that gave what was wrong.
    mutating func rejected() -> UInt32? {
        guard case .checking(let peer) = phase else { return nil }
        phase = .idle
        return peer
    }

    /// - Returns: all of it, to be given to others; nil where it has not come from a peer.
    mutating func accepted() -> [UInt8]? {
        var accepted: [UInt8]?
        if case .checking = phase { accepted = whole }
        self = MetadataFetch(isDone: true)
        return accepted
    }
}

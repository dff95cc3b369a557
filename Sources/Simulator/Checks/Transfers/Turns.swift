// Whose turn it is to be given blocks.

import PeerLogic
import Primitives

/// Whose turn it is to be given blocks: what the choker promises, worked out from what goes in and out.
///
/// Every ten seconds, and whenever somebody loses interest, limits change or the download is complete, all who are
/// interested are looked at (a round). Where there are slots for all, all have one. Else one slot is given on trust: to
/// whoever has waited longest, for thirty seconds. The others go to those who give most, where pieces are missing; by a
/// seeder to whose turn of thirty seconds is not over, then to who has waited longest. Between rounds nobody is choked,
/// and nobody is unchoked but who becomes interested while a slot is free.
struct Turns: Sendable {
    private static let round = Duration.seconds(10)
    private static let turn = Duration.seconds(30)
    private static let housekeeping = Duration.seconds(1)

    /// One who wants blocks, as it was before a round.
    struct Candidate: Sendable {
        var end: Int
        var isSnubbing: Bool
        /// Bytes a second that it gives.
        var rate: Int
        var wasUnchoked: Bool
        var isUnchoked: Bool
        var since: Instant
    }

    private struct Change: Sendable {
        var end: Int
        var since: Instant
    }

    private struct Peer: Sendable {
        var housekeepingAt: Instant?
        var nextRound = Instant(nanoseconds: 0)
        var trusted: Int?
        var trustedSince = Instant(nanoseconds: 0)
        var isRound = false
        var choked: [Change] = []
        var unchoked: [Change] = []
        /// Ends that gave way in the step under way, after the round.
        var gaveWay: [Int] = []
    }

    private var peers: [Peer]

    init(peerCount: Int) { peers = Array(repeating: Peer(), count: peerCount) }

    mutating func stepBegins(_ peer: Int, _ scene: TransferScene) {
        let local = scene.peers[peer].local
        peers[peer].isRound = false
        switch scene.cause {
        case .started:
            peers[peer].housekeepingAt = local + Self.housekeeping
            peers[peer].nextRound = local + Self.round
            peers[peer].trusted = nil
        case .ended: peers[peer].housekeepingAt = nil
        case .deadline:
            guard let due = peers[peer].housekeepingAt, due <= local else { return }
            peers[peer].housekeepingAt = local + Self.housekeeping
            peers[peer].isRound = peers[peer].nextRound <= local
        case .settings: peers[peer].isRound = peers[peer].housekeepingAt != nil
        case .notInterested(let end):
            peers[peer].isRound = true
            forget(peer, end)
        case .interested, .stored, .storeFailed, .update, .selection, .other: break
        }
    }

    mutating func completed(_ peer: Int) { peers[peer].isRound = true }

    private mutating func forget(_ peer: Int, _ end: Int) {
        if peers[peer].trusted == end { peers[peer].trusted = nil }
    }

    mutating func says(_ end: Int, isChoke: Bool, _ scene: inout TransferScene) {
        let change = Change(end: end, since: scene.ends[end].turnSince)
        let peer = scene.ends[end].peer
        if isChoke { peers[peer].choked.append(change) } else { peers[peer].unchoked.append(change) }
        scene.ends[end].turnSince = scene.local(end)
    }

    mutating func closed(_ end: Int, isFull: Bool, _ scene: TransferScene) {
        let peer = scene.ends[end].peer
        if isFull, peers[peer].isRound, scene.cause == .deadline, scene.ends[end].isAskedFor {
            peers[peer].gaveWay.append(end)
        }
        forget(peer, end)
    }

    // MARK: - The end of a step

    /// Whether more wanted blocks in a round than there are slots, so that `judge` is to be asked.
    func isContested(_ peer: Int, _ scene: TransferScene) -> Bool {
        peers[peer].isRound && peers[peer].gaveWay.isEmpty
            && scene.peers[peer].interestedCount > 0
    }

    /// Ends a step in which there was no round, or one in which there is nothing to choose.
    mutating func stepEnds(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        if peers[peer].isRound {
            peers[peer].nextRound = scene.peers[peer].local + Self.round
            // Who gave way may have had the slot on trust.
            if !peers[peer].gaveWay.isEmpty { peers[peer].trusted = nil }
        } else if scene.cause != .ended {
            betweenRounds(peer, at: now, &scene)
        }
        if !peers[peer].choked.isEmpty { peers[peer].choked.removeAll(keepingCapacity: true) }
        if !peers[peer].unchoked.isEmpty { peers[peer].unchoked.removeAll(keepingCapacity: true) }
        if !peers[peer].gaveWay.isEmpty { peers[peer].gaveWay.removeAll(keepingCapacity: true) }
        peers[peer].isRound = false
    }

    private func betweenRounds(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        var newcomer: Int?
        if case .interested(let end) = scene.cause, scene.ends[end].isOpen, scene.ends[end].peer == peer {
            newcomer = end
        }
        for change in peers[peer].choked where scene.ends[change.end].isOpen {
            blame(change.end, "chokes", "between two rounds", at: now, &scene)
        }
        for change in peers[peer].unchoked where change.end != newcomer && scene.ends[change.end].isOpen {
            blame(change.end, "unchokes", "between two rounds", at: now, &scene)
        }
        guard let newcomer, scene.ends[newcomer].saysChoke || !peers[peer].unchoked.isEmpty else { return }
        let isUnchoked = !scene.ends[newcomer].saysChoke
        let taken = scene.peers[peer].unchokedCount - (isUnchoked ? 1 : 0)
        let isFree = taken < scene.peers[peer].settings.uploadSlots
        guard isFree != isUnchoked else { return }
        blame(newcomer, isFree ? "makes wait" : "unchokes", "and has \(isFree ? "a" : "no") free slot", at: now, &scene)
    }

    // MARK: - A round

    /// Judges a round.
    ///
    /// `all` are those who want blocks, in the order of their places; `isUnchoked` says what has become of them.
    mutating func judge(_ peer: Int, _ all: [Candidate], at now: Instant, _ scene: inout TransferScene) {
        let local = scene.peers[peer].local
        let slots = scene.peers[peer].settings.uploadSlots
        var all = all
        for change in peers[peer].choked + peers[peer].unchoked {
            guard let place = all.firstIndex(where: { $0.end == change.end }) else { continue }
            all[place].wasUnchoked = !all[place].isUnchoked
            all[place].since = change.since
        }
        let chosen = all.filter { $0.isUnchoked }
        let rest = all.filter { !$0.isUnchoked }
        guard slots > 0 else { return }
        if all.count > slots || peers[peer].trusted != nil { trust(peer, all, local) }
        if let choked = rest.first, chosen.count < slots {
            return blame(choked.end, "makes wait", "with \(chosen.count) of \(slots) slots taken", at: now, &scene)
        }
        if rest.isEmpty { return }
        if let trusted = peers[peer].trusted, !chosen.contains(where: { $0.end == trusted }) {
            return blame(trusted, "chokes", "whose turn it is to be trusted", at: now, &scene)
        }
        let isSeeding = scene.isComplete(peer)
        for given in chosen where given.end != peers[peer].trusted {
            for other in rest where isBefore(other, given, isSeeding: isSeeding, local) {
                return blame(
                    other.end, "chokes", "and gives its turn to \(scene.otherName(given.end))", at: now, &scene)
            }
        }
    }

    /// Who is trusted with a slot: for a whole turn, then whoever has waited longest.
    private mutating func trust(_ peer: Int, _ all: [Candidate], _ local: Instant) {
        if let trusted = peers[peer].trusted, local - peers[peer].trustedSince < Self.turn,
            all.contains(where: { $0.end == trusted })
        {
            return
        }
        var longest: Candidate?
        for one in all where !one.wasUnchoked {
            if longest.map({ one.since < $0.since }) ?? true { longest = one }
        }
        peers[peer].trusted = longest?.end
        peers[peer].trustedSince = local
    }

    /// Whether one has clearly more right to a slot than the other.
    private func isBefore(_ left: Candidate, _ right: Candidate, isSeeding: Bool, _ local: Instant) -> Bool {
        if isSeeding {
            func rank(_ one: Candidate) -> Int { one.wasUnchoked ? (local - one.since < Self.turn ? 0 : 2) : 1 }
            if rank(left) != rank(right) { return rank(left) < rank(right) }
            return rank(left) == 2 ? left.since > right.since : left.since < right.since
        }
        if left.isSnubbing != right.isSnubbing { return right.isSnubbing }
        if left.rate != right.rate { return left.rate > right.rate }
        if left.wasUnchoked != right.wasUnchoked { return left.wasUnchoked }
        return left.since < right.since
    }

    private func blame(_ end: Int, _ what: String, _ why: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(
            .chokingIsFair, at: now,
            "\(TransferScene.name(scene.ends[end].peer)) \(what) \(scene.otherName(end)), \(why)")
    }
}

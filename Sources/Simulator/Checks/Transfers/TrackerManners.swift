// How trackers are asked.

import PeerLogic
import Primitives
import Wire

/// How trackers are asked (BEP 3, BEP 12): one at a time; those of the first tier before others, and in a tier the one
/// first that has answered last; not again at once when they are silent or say no; when the interval is over, or sooner
/// where there is no connection; and what each announce says is so: `started` until one has taken it, `completed` once
/// all is here, `stopped` to all that know the peer.
struct TrackerManners: Sendable {
    /// What an announce says.
    struct Announce: Sendable, Equatable {
        var event = AnnounceEvent.none
        var downloaded: UInt64 = 0
        var uploaded: UInt64 = 0
        var left: UInt64 = 0
        var numWant = 0
        var port: UInt16 = 0
    }

    private struct Tracker: Sendable {
        var tier: Int
        var failures = 0
        var nextTry = Instant(nanoseconds: 0)
        var knowsUs = false
        /// Of the end of a session it has been told something, so nobody can tell whether it counts as failed.
        var isUncertain = false
        /// When it last answered, by order: the latest of its tier is first.
        var answeredCount = 0
    }

    private enum Phase: Sendable, Equatable {
        case idle
        case asking(Int)
        case resting
        case leaving
    }

    private struct Peer: Sendable {
        var trackers: [Tracker] = []
        var phase = Phase.idle
        var owesStarted = true
        var owesCompleted = false
        var says = AnnounceEvent.none
        /// When the next announce comes; nil for nobody knows.
        var wakeAt: Instant?
        var starving = 0
        var answers = 0
        var hasAnsweredInStep = false
        var failedInStep = false
        /// All has come that was lacked, in this step.
        var completedInStep = false
        /// All was here at one time: then `completed` is told no more.
        var hasHadAll = false
        var farewells: Farewells?
        /// Something of the above is to be looked at when the step ends.
        var isTouched = false
    }

    private static let least = Duration.seconds(60)
    private static let most = Duration.seconds(86_400)
    private static let firstWait = Duration.seconds(15)
    private static let lateness = Duration.milliseconds(200)

    private var peers: [Peer]
    private let tiers: [Int]

    init(tiers: [Int], peerCount: Int) {
        self.tiers = tiers
        peers = Array(repeating: Peer(), count: peerCount)
    }

    /// A life begins.
    mutating func began(_ peer: Int) {
        peers[peer] = Peer()
        for (tier, count) in tiers.enumerated() {
            for _ in 0..<count { peers[peer].trackers.append(Tracker(tier: tier)) }
        }
    }

    mutating func stepBegins(_ peer: Int, _ scene: TransferScene) {
        switch scene.cause {
        case .started:
            (peers[peer].owesStarted, peers[peer].owesCompleted) = (true, false)
            peers[peer].farewells = nil
            knowsPieces(peer, scene)
            if !peers[peer].trackers.isEmpty { peers[peer].phase = .resting }
            peers[peer].wakeAt = nil
            // As after a failure: somebody is asked at once, or nobody may be.
            peers[peer].failedInStep = true
        case .ended:
            leaves(peer, scene)
            peers[peer].wakeAt = nil
        default: break
        }
    }

    private mutating func leaves(_ peer: Int, _ scene: TransferScene) {
        guard peers[peer].phase != .idle, peers[peer].phase != .leaving else { return }
        peers[peer].phase = .leaving
        let local = scene.peers[peer].local
        let trackers = peers[peer].trackers.map { tracker in
            (
                tier: tracker.tier, knewUs: tracker.knowsUs,
                mayBeAsked: tracker.nextTry <= local && !tracker.isUncertain
            )
        }
        peers[peer].farewells = Farewells(began: local, trackers)
        for number in peers[peer].trackers.indices { peers[peer].trackers[number].knowsUs = false }
    }

    /// The pieces are known, with those that are here.
    mutating func knowsPieces(_ peer: Int, _ scene: TransferScene) {
        if scene.peers[peer].hasMetadata, scene.peers[peer].disk.isFull { peers[peer].hasHadAll = true }
    }

    /// All pieces are here, of a session that goes on.
    mutating func completed(_ peer: Int) {
        guard !peers[peer].hasHadAll else { return }
        peers[peer].hasHadAll = true
        peers[peer].owesCompleted = true
        peers[peer].completedInStep = true
        peers[peer].isTouched = true
    }

    func isAsking(_ peer: Int, _ number: Int) -> Bool { peers[peer].phase == .asking(number) }

    // MARK: - Asked

    /// A tracker is begun to be asked.
    mutating func asks(_ peer: Int, _ number: Int, at now: Instant, _ scene: inout TransferScene) {
        guard peers[peer].trackers.indices.contains(number) else { return }
        guard peers[peer].phase != .leaving else {
            let owes = peers[peer].owesCompleted
            if let fault = peers[peer].farewells?.asks(number, scene.peers[peer].local, owesCompleted: owes) {
                blameEnd(peer, fault, at: now, &scene)
            }
            return
        }
        let local = scene.peers[peer].local
        let tracker = peers[peer].trackers[number]
        if case .asking(let other) = peers[peer].phase {
            blame(peer, "asks tracker \(number) while it asks tracker \(other)", at: now, &scene)
        }
        if local < tracker.nextTry {
            blame(
                peer,
                "asks tracker \(number) after \(tracker.failures) failures, "
                    + "\((tracker.nextTry - local).wholeMilliseconds) ms too soon", at: now, &scene)
        }
        for (other, better) in peers[peer].trackers.enumerated() where other != number && better.nextTry <= local {
            let isBefore =
                better.tier < tracker.tier
                || better.tier == tracker.tier && better.answeredCount > tracker.answeredCount
            guard isBefore, !better.isUncertain else { continue }
            blame(peer, "asks tracker \(number) before tracker \(other)", at: now, &scene)
        }
        if let wakeAt = peers[peer].wakeAt, local < wakeAt, scene.cause != .update, !peers[peer].failedInStep,
            !(peers[peer].owesCompleted && !peers[peer].owesStarted)
        {
            blame(
                peer, "asks tracker \(number) \((wakeAt - local).wholeMilliseconds) ms too soon", at: now, &scene)
        }
        peers[peer].phase = .asking(number)
        peers[peer].wakeAt = nil
        peers[peer].says = peers[peer].owesStarted ? .started : peers[peer].owesCompleted ? .completed : .none
    }

    /// What an announce says; `isNew` where it was made in this step.
    mutating func says(
        _ peer: Int, _ number: Int, _ said: Announce, isNew: Bool, at now: Instant, _ scene: inout TransferScene
    ) {
        guard peers[peer].trackers.indices.contains(number) else { return }
        let record = scene.peers[peer]
        if peers[peer].phase == .leaving {
            farewell(peer, number, said.event, at: now, &scene)
        } else if said.event != peers[peer].says {
            blame(
                peer, "tells tracker \(number) that it has \(words(said.event)), and has \(words(peers[peer].says))",
                at: now, &scene)
        }
        if said.event == .completed, !peers[peer].hasHadAll {
            blame(peer, "says that it has completed what it lacks", at: now, &scene)
        }
        guard isNew else { return }
        var left: UInt64 = 16_384
        if record.hasMetadata {
            left = 0
            for piece in 0..<scene.layout.pieceCount where !record.disk[piece] {
                left += UInt64(scene.layout.length(ofPiece: piece))
            }
        }
        let isSo = Announce(
            event: said.event, downloaded: UInt64(max(0, record.receivedByteCount - record.wrongByteCount)),
            uploaded: UInt64(record.sentByteCount), left: left, numWant: Int(record.settings.numWant),
            port: record.settings.listenPort)
        if said != isSo {
            blame(
                peer,
                "tells tracker \(number) of \(said.downloaded) bytes down, \(said.uploaded) up, \(said.left) left; "
                    + "they are \(isSo.downloaded), \(isSo.uploaded), \(isSo.left)", at: now, &scene)
        }
    }

    private mutating func farewell(
        _ peer: Int, _ number: Int, _ event: AnnounceEvent, at now: Instant, _ scene: inout TransferScene
    ) {
        peers[peer].trackers[number].isUncertain = true
        if let fault = peers[peer].farewells?.says(number, event) { blameEnd(peer, fault, at: now, &scene) }
    }

    // MARK: - Answered

    mutating func answered(_ peer: Int, _ number: Int, interval: UInt32, _ scene: TransferScene) {
        guard peers[peer].trackers.indices.contains(number) else { return }
        if peers[peer].farewells?.answered(number, isGood: true) ?? false { peers[peer].owesCompleted = false }
        guard peers[peer].phase == .asking(number) else { return }
        let local = scene.peers[peer].local
        peers[peer].answers += 1
        peers[peer].trackers[number].failures = 0
        peers[peer].trackers[number].isUncertain = false
        peers[peer].trackers[number].knowsUs = true
        peers[peer].trackers[number].answeredCount = peers[peer].answers
        if peers[peer].says == .completed { peers[peer].owesCompleted = false }
        if peers[peer].says == .started { peers[peer].owesStarted = false }
        peers[peer].starving = min(peers[peer].starving + 1, 8)
        peers[peer].phase = .resting
        peers[peer].wakeAt = local + min(max(.seconds(Int64(interval)), Self.least), Self.most)
        peers[peer].hasAnsweredInStep = true
        peers[peer].isTouched = true
    }

    mutating func failed(_ peer: Int, _ number: Int, _ scene: TransferScene) {
        guard peers[peer].trackers.indices.contains(number) else { return }
        _ = peers[peer].farewells?.answered(number, isGood: false)
        guard peers[peer].phase == .asking(number) else {
            peers[peer].trackers[number].isUncertain = true
            return
        }
        let wait = Self.firstWait * (1 << Int64(min(peers[peer].trackers[number].failures, 8)))
        peers[peer].trackers[number].failures += 1
        peers[peer].trackers[number].nextTry = scene.peers[peer].local + wait
        peers[peer].phase = .resting
        peers[peer].failedInStep = true
        peers[peer].isTouched = true
    }

    /// A connection has ended, or a call.
    mutating func linkEnded(_ peer: Int, _ scene: TransferScene) {
        guard scene.peers[peer].readyCount == 0 else { return }
        starve(peer, scene)
    }

    private mutating func starve(_ peer: Int, _ scene: TransferScene) {
        guard peers[peer].phase == .resting, let wakeAt = peers[peer].wakeAt else { return }
        // After the first announce without a connection, as soon as after one with.
        let wait = Self.least * (1 << Int64(min(max(peers[peer].starving - 1, 0), 6)))
        peers[peer].wakeAt = min(wakeAt, scene.peers[peer].local + wait)
    }

    // MARK: - The end of a step

    mutating func stepEnds(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        if peers[peer].phase == .leaving { return farewellStepEnds(peer, at: now, &scene) }
        guard peers[peer].isTouched || scene.cause == .update || scene.cause == .started else { return }
        defer {
            peers[peer].isTouched = false
            peers[peer].hasAnsweredInStep = false
            peers[peer].failedInStep = false
            peers[peer].completedInStep = false
        }
        if peers[peer].hasAnsweredInStep {
            if scene.peers[peer].readyCount == 0 { starve(peer, scene) } else { peers[peer].starving = 0 }
        }
        let mustTell =
            peers[peer].completedInStep
            || peers[peer].hasAnsweredInStep && peers[peer].owesCompleted && !peers[peer].owesStarted
        guard peers[peer].failedInStep || scene.cause == .update || mustTell, peers[peer].phase == .resting else {
            return
        }
        let local = scene.peers[peer].local
        // Nobody was asked in the place of the one that failed: then none may be.
        if let number = peers[peer].trackers.firstIndex(where: { $0.nextTry <= local && !$0.isUncertain }) {
            blame(peer, "asks nobody, and tracker \(number) may be asked", at: now, &scene)
        }
        var soonest: Instant?
        for tracker in peers[peer].trackers { soonest = earliest(soonest, tracker.nextTry) }
        peers[peer].wakeAt = peers[peer].trackers.contains { $0.isUncertain } ? nil : soonest
    }

    private mutating func farewellStepEnds(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        let owes = peers[peer].owesCompleted
        let fault = peers[peer].farewells?.stepEnds(
            scene.peers[peer].local, owesCompleted: owes, isDeadline: scene.cause == .deadline)
        if let fault { blameEnd(peer, fault, at: now, &scene) }
    }

    private func blameEnd(_ peer: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.trackersAreTold, at: now, "\(TransferScene.name(peer)) \(what)")
    }

    /// Whether a session that is to end says that it has, at the end of a step.
    mutating func isStopped(_ peer: Int, _ isStopped: Bool, at now: Instant, _ scene: inout TransferScene) {
        guard peers[peer].phase == .leaving, let farewells = peers[peer].farewells,
            !farewells.isRight(isStopped)
        else { return }
        blameEnd(peer, isStopped ? "has stopped before all trackers are told" : "does not stop", at: now, &scene)
    }

    /// The next announce has not been forgotten.
    mutating func look(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        if peers[peer].phase == .leaving, let fault = peers[peer].farewells?.look(scene.peers[peer].local) {
            blameEnd(peer, fault, at: now, &scene)
        }
        guard scene.peers[peer].isRunning, peers[peer].phase == .resting, let wakeAt = peers[peer].wakeAt else {
            return
        }
        let local = scene.peers[peer].local
        let late = local - wakeAt
        guard late > Self.lateness,
            peers[peer].trackers.contains(where: { !$0.isUncertain && local - $0.nextTry > Self.lateness })
        else { return }
        scene.violate(
            .trackersAreTold, at: now,
            "\(TransferScene.name(peer)) should have asked a tracker \(late.wholeMilliseconds) ms ago")
    }

    private func words(_ event: AnnounceEvent) -> String {
        switch event {
        case .none: "nothing to say"
        case .completed: "completed"
        case .started: "started"
        case .stopped: "stopped"
        }
    }

    private func blame(_ peer: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.trackersAreSpared, at: now, "\(TransferScene.name(peer)) \(what)")
    }
}

// What people are shown of a transfer.

import PeerLogic
import Primitives
import Wire

/// What people are shown of a transfer is so: of each connection who chokes and who is interested, what has come and
/// gone and how fast, and of the whole what is here and what is lacked; and what happens is observed, once.
struct Shown: Sendable {
    /// What a session says of itself.
    struct Session: Sendable {
        /// By end.
        var links: [(end: Int, view: TorrentSession.LinkView)] = []
        var have: Bitfield?
        var availability: [UInt16]?
        var missingByteCount: Int?
        var knownPeerCount = 0
        var bufferedByteCount = 0
        var received = 0
        var sent = 0
        var wasted = 0
        var waitsForDisk = false
    }

    /// Peers that a session knows of (docs/bounds.md).
    private static let maxKnownCount = 1_000

    /// What was observed in the step under way.
    private struct Observed: Sendable {
        var gained: Int?
        var completedCount = 0
        var trouble = 0
        var mended = 0
        var readyCount = 0
    }

    private struct Peer: Sendable {
        var isComplete = false
        var hasTrouble = false
        var observed = Observed()
    }

    private var peers: [Peer]

    init(peerCount: Int) { peers = Array(repeating: Peer(), count: peerCount) }

    mutating func began(_ peer: Int) { peers[peer] = Peer() }

    // MARK: - What is shown

    func look(_ peer: Int, _ said: Session, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.peers[peer]
        func show(_ what: String, _ shown: Int, _ isSo: Int) {
            if shown != isSo { blame(peer, "says that \(what) is \(shown), and it is \(isSo)", at: now, &scene) }
        }
        for (end, view) in said.links { lookAtLink(end, view, at: now, &scene) }
        show("the number of connections", said.links.count, record.readyCount)
        if said.knownPeerCount > Self.maxKnownCount {
            blame(peer, "knows \(said.knownPeerCount) peers", at: now, &scene)
        }
        show("what has come", said.received, record.receivedByteCount - record.wrongByteCount)
        show("what has gone", said.sent, record.sentByteCount)
        show("what was of no use", said.wasted, record.wastedByteCount)
        guard record.hasMetadata, let have = said.have else { return }
        if let shown = said.availability, !said.links.contains(where: { scene.ends[$0.end].isHasUncertain }) {
            for piece in shown.indices where Int(shown[piece]) != record.availability[piece] {
                show("the number of those who have piece \(piece)", Int(shown[piece]), record.availability[piece])
            }
        }
        show("the number of pieces", have.setCount, record.disk.setCount)
        var missing = 0
        for piece in 0..<scene.layout.pieceCount where scene.isMissing(peer, piece) {
            missing += scene.layout.length(ofPiece: piece)
        }
        show("what is lacked", said.missingByteCount ?? 0, missing)
        if said.waitsForDisk != peers[peer].hasTrouble {
            blame(peer, "\(said.waitsForDisk ? "waits" : "does not wait") for its disk", at: now, &scene)
        }
    }

    private func lookAtLink(
        _ end: Int, _ view: TorrentSession.LinkView, at now: Instant, _ scene: inout TransferScene
    ) {
        let record = scene.ends[end]
        let local = scene.local(end)
        func show(_ what: String, _ shown: Int, _ isSo: Int) {
            if shown != isSo {
                blame(
                    record.peer, "says that \(what) with \(scene.otherName(end)) is \(shown), and it is \(isSo)",
                    at: now,
                    &scene)
            }
        }
        func number(_ condition: Bool) -> Int { condition ? 1 : 0 }
        show("being choked", number(view.isChoked), number(record.saysChoke))
        show("interest of the other", number(view.isInterested), number(record.isAskedFor))
        show("being choked by the other", number(view.chokesUs), number(record.isChoked))
        show("interest", number(view.interestsUs), number(record.saysInterested))
        show("having been called", number(view.isIncoming), end & 1)
        show("the rate down", view.downloadRate, record.down.rate(at: local))
        show("the rate up", view.uploadRate, record.up.rate(at: local))
        show("what has come", view.received, record.down.total)
        show("what has gone", view.sent, record.up.total)
        if !record.isHasUncertain, scene.peers[record.peer].hasMetadata {
            show("the number of its pieces", view.pieceCount, record.has.setCount)
        }
        if !record.isAskedUncertain, !view.isSnubbing {
            show("what it is asked for", view.pendingCount, record.asked.count)
        }
    }

    // MARK: - What is observed

    mutating func observes(_ peer: Int, _ observation: TorrentSession.Observation) {
        switch observation {
        case .pieceGained(let piece): peers[peer].observed.gained = piece
        case .completed: peers[peer].observed.completedCount += 1
        case .diskTrouble: peers[peer].observed.trouble += 1
        case .diskMended: peers[peer].observed.mended += 1
        case .linkReady: peers[peer].observed.readyCount += 1
        case .pieceWasWrong, .banned, .ratioReached, .trackerAnswered, .trackerFailed: break
        }
    }

    /// `greeted` is the end whose handshakes are through in this step.
    mutating func stepEnds(_ peer: Int, greeted: Int?, at now: Instant, _ scene: inout TransferScene) {
        let observed = peers[peer].observed
        peers[peer].observed = Observed()
        func expect(_ what: String, _ count: Int, _ isRight: Bool) {
            if !isRight { blame(peer, "tells \(count) times that \(what)", at: now, &scene) }
        }
        let isReady = greeted.map { scene.ends[$0].isOpen } ?? false
        if isReady { expect("somebody is connected", observed.readyCount, observed.readyCount == 1) }
        var isStored = false
        switch scene.cause {
        case .stored(let piece):
            isStored = true
            expect("it has piece \(piece)", observed.gained == nil ? 0 : 1, observed.gained == piece)
            expect("its disk takes pieces again", observed.mended, observed.mended == (peers[peer].hasTrouble ? 1 : 0))
            peers[peer].hasTrouble = false
            let isComplete = scene.isComplete(peer)
            let isNew = isComplete && !peers[peer].isComplete && scene.peers[peer].isRunning
            expect("all is here", observed.completedCount, observed.completedCount == (isNew ? 1 : 0))
            if isNew { peers[peer].isComplete = true }
        case .storeFailed:
            expect("its disk takes nothing", observed.trouble, observed.trouble == (peers[peer].hasTrouble ? 0 : 1))
            peers[peer].hasTrouble = true
        case .started, .selection: peers[peer].isComplete = scene.isComplete(peer)
        case .ended, .deadline, .settings, .update, .interested, .notInterested, .other: break
        }
        if !isStored { expect("all is here", observed.completedCount, observed.completedCount == 0) }
    }

    /// A piece is here no longer; or the pieces are known now.
    mutating func changed(_ peer: Int, _ scene: TransferScene) { peers[peer].isComplete = scene.isComplete(peer) }

    private func blame(_ peer: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.shownIsTrue, at: now, "\(TransferScene.name(peer)) \(what)")
    }
}

// What sessions say and hear on connections: who looks at it.

import PeerLogic
import Primitives
import Wire

extension TransferChecks {
    // MARK: - Said and heard

    mutating func saysHandshake(_ end: Int, at now: Instant) { bans.says(end, at: now, &scene) }

    mutating func says(_ end: Int, _ message: PeerMessage, at now: Instant) {
        rests(scene.ends[end].peer, "speaks", at: now)
        order.says(end, message, at: now, &scene)
        bans.says(end, at: now, &scene)
        patience.says(end, message, at: now, &scene)
        knowledge.says(end, message, at: now, &scene)
        switch message {
        case .have, .haveAll, .bitfield, .allowedFast: claims.says(end, message, at: now, &scene)
        case .choke:
            slots.says(end, isChoke: true, at: now, &scene)
            turns.says(end, isChoke: true, &scene)
            answers.choked(end, &scene)
        case .unchoke:
            slots.says(end, isChoke: false, at: now, &scene)
            turns.says(end, isChoke: false, &scene)
        case .request(let block):
            knowledge.asks(end, block, at: now, &scene)
            patience.asks(end, &scene)
            lone.asks(end, block, at: now, &scene)
            requests.asks(end, block, at: now, &scene)
            limits.asks(scene.ends[end].peer, Block.maxByteCount, at: now, &scene)
            limits.asked(end, at: now, &scene)
        case .cancel(let block):
            if let number = scene.number(block) { requests.cancels(end, number, &scene) }
        case .reject(let block):
            if chokedEnds.contains(end) { answers.refusesAllowed(end, block, at: now, &scene) }
            answers.answers(end, block, "rejects", isRefusal: true, at: now, &scene)
        case .interested: scene.ends[end].askedAnewAt = scene.local(end)
        case .extended(let id, let payload): saysExtended(end, id, payload, at: now)
        case .keepAlive, .notInterested, .haveNone, .piece, .port, .suggest: break
        }
    }

    mutating func hears(_ end: Int, _ message: PeerMessage, at now: Instant) {
        scene.cause = .other
        scene.ends[end].heardAt = scene.local(end)
        if patience.isBreach(end, message, scene) { breachedEnd = end }
        knowledge.hears(end, message, &scene)
        switch message {
        case .cancel(let block): answers.cancels(end, block, &scene)
        case .choke:
            scene.ends[end].isChoked = true
            isRearranged = true
            if !scene.ends[end].hasFast, !scene.ends[end].asked.isEmpty {
                scene.again.choked += 1
                requests.dropAll(of: end, &scene)
            }
        case .unchoke:
            // Only the first counts as a sign of life.
            if scene.ends[end].isChoked {
                if limits.isSilent(end, scene) { scene.ends[end].leastWindow = 1 }
                requests.heard(end, at: now, &scene)
                scene.ends[end].usefulAt = scene.local(end)
            }
            scene.ends[end].isChoked = false
        case .interested:
            guard !scene.ends[end].isAskedFor else { return }
            scene.cause = .interested(end)
            scene.ends[end].turnSince = scene.local(end)
            slots.hears(end, isInterested: true, at: now, &scene)
        case .notInterested:
            guard scene.ends[end].isAskedFor else { return }
            scene.cause = .notInterested(end)
            slots.hears(end, isInterested: false, at: now, &scene)
        case .request(let block): answers.hears(end, block, &scene)
        case .reject(let block):
            guard scene.ends[end].hasFast, let number = scene.number(block) else { return }
            scene.ends[end].leastWindow = 1
            let isCertain = !scene.ends[end].mayBeGivenUp && scene.ends[end].old.isEmpty
            if requests.rejected(end, number, &scene) {
                scene.again.rejected += 1
                limits.refused(scene.ends[end].peer, Int(block.length))
                knowledge.refused(end, block, isCertain: isCertain, &scene)
            } else if !isCertain {
                scene.ends[end].isHasUncertain = true
            }
        case .extended(let id, let payload): hearsExtended(end, id, payload)
        case .keepAlive, .have, .bitfield, .piece, .port, .suggest, .haveAll, .haveNone, .allowedFast: break
        }
    }

    /// Who rests speaks to nobody but trackers.
    mutating func rests(_ peer: Int, _ what: String, at now: Instant) {
        guard !scene.peers[peer].isRunning, scene.peers[peer].isHonest else { return }
        scene.violate(.contractIsKept, at: now, "\(TransferScene.name(peer)) \(what), and is to rest")
    }

    /// A side chokes the other: at the end of the step its requests are looked at.
    mutating func checkAnswersLater(_ end: Int) { chokedEnds.append(end) }
}

/// Answers over HTTP: to whom, how often, and whether they are true.

import Primitives
import TrackerLogic
import Wire

extension ClusterChecks {
    mutating func checkAnswers(_ effects: Effects, _ step: ClusterStep, _ before: NodeSight) {
        for answer in effects.answers {
            guard let visit = visits.take(answer.id, from: step.node) else {
                violate(
                    .answeredOnce, at: step.time,
                    "\(name(step.node)) answers HTTP request \(answer.id), which nobody waits for")
                continue
            }
            switch answer.content {
            case .announce(let content): check(content, visit, step)
            case .scrape(let counts): check(counts, visit, step, before)
            case .failure(let refusal):
                if let wellSince, visit.askedAt >= wellSince, refusal.isTrouble {
                    violate(
                        .healedIsAnswered, at: step.time,
                        "HTTP at \(name(step.node)), when all is well: \(refusal.text)")
                }
                guard !isJustified(refusal, visit, step, before, effects) else { continue }
                violate(
                    .refusalIsJustified, at: step.time,
                    "\(name(step.node)) tells visitor \(visit.request.source): \(refusal.text)")
            }
        }
    }

    private mutating func check(_ answer: AnnounceAnswer, _ visit: Visit, _ step: ClusterStep) {
        let index = step.sight.position.index
        let place = nodes[step.node].witnesses.firstIndex { witness in
            !witness.isAnswered && witness.place.index <= index && visit.asks(for: witness.announced)
        }
        guard let place, let announce = visit.announce else {
            return violate(
                .answeredOnce, at: step.time,
                "\(name(step.node)) answers HTTP request \(visit.request.id) from no entry that it has applied")
        }
        nodes[step.node].witnesses[place].isAnswered = true
        let fault = AnnounceFault.find(
            in: answer, to: nodes[step.node].witnesses[place], wanted: announce.numWant,
            nodes[step.node].configuration)
        guard let fault else { return }
        violate(.replyIsRight, at: step.time, "\(name(step.node)) to HTTP request \(visit.request.id): \(fault)")
    }

    private mutating func check(
        _ counts: [SwarmCounts], _ visit: Visit, _ step: ClusterStep, _ before: NodeSight
    ) {
        guard counts.count == visit.infoHashes.count else {
            return violate(
                .replyIsRight, at: step.time,
                "\(name(step.node)) answers HTTP request \(visit.request.id), for \(visit.infoHashes.count) swarms, "
                    + "with the counts of \(counts.count)")
        }
        let told = zip(visit.infoHashes, counts).map { (infoHash: $0, counts: $1) }
        if isRight(told, since: visit.decidedBefore, step, before) { return }
        let isStale = promises.repliesAreLinear && history.latest(told, in: 0...visit.decidedBefore) != nil
        violate(
            isStale ? .readsAreFresh : .replyIsRight, at: step.time,
            "\(name(step.node)) tells HTTP request \(visit.request.id) counts that no state since it asked has had")
    }

    private mutating func isJustified(
        _ refusal: Refusal, _ visit: Visit, _ step: ClusterStep, _ before: NodeSight, _ effects: Effects
    ) -> Bool {
        switch refusal {
        case .connectionIDExpired, .malformedAnnounce, .malformedScrape, .unknownAction, .scrapeNeedsPasskey: false
        case .busy: true
        // A tracker alone that serves has no reason to send anybody away.
        case .notServing: !promises.answersAtOnce || !before.isServing || !step.sight.isServing
        case .storageFailed: nodes[step.node].hasFailed || ClusterChecks.failsNow(effects)
        case .notStored: toldRefused(visit, step)
        case .portZero, .infoHashNotAllowed, .infoHashDenied, .passkeyMissing, .passkeyUnknown, .trackerFull,
            .addressFull, .swarmFull:
            if let announce = visit.announce {
                isJustified(
                    refusal, announce.infoHash, port: announce.port, visit.request.source,
                    passkey: visit.request.passkey, since: visit.decidedBefore, step)
            } else {
                !promises.repliesAreLinear || access.wasPrivate(since: visit.decidedBefore)
            }
        }
    }

    /// Requests over HTTP that wait for an answer; those whose tracker has died since have lost their connection.
    ///
    /// - Parameter lives: of the trackers, as the world counts them.
    mutating func openVisits(inLives lives: [Int]) -> [Visit] {
        visits.hangUp { lives[$0.node] != $0.life }
        return visits.open
    }

    /// Whether a tracker loses its disk in a step.
    static func failsNow(_ effects: borrowing Effects) -> Bool {
        effects.observations.contains { if case .storageFailed(.broken, _) = $0 { true } else { false } }
    }

    /// Whether the state of things is a reason to refuse an announce, or was one since it was sent.
    ///
    /// In survivor mode nobody knows from outside what its tracker took for the state.
    func isJustified(
        _ refusal: Refusal, _ infoHash: InfoHash, port: UInt16, _ address: SocketAddress, passkey: [UInt8],
        since index: UInt64, _ step: ClusterStep
    ) -> Bool {
        let limits = nodes[step.node].configuration.limits
        switch refusal {
        case .portZero: return port == 0
        case .infoHashNotAllowed, .infoHashDenied, .passkeyMissing, .passkeyUnknown:
            return !promises.repliesAreLinear
                || access.refused(infoHash, passkey: passkey, with: refusal, since: index)
        case .trackerFull: return !promises.repliesAreLinear || access.wasFull(limits, since: index)
        case .addressFull:
            // In a cluster, peers come and go while the request is on its way to the master.
            return !promises.answersAtOnce
                || model.peers(near: address) >= limits.peersPerAddress(among: model.peerCount)
        case .swarmFull: return !promises.repliesAreLinear || model.peerCount >= limits.peersPerSwarm
        case .connectionIDExpired, .malformedAnnounce, .malformedScrape, .unknownAction, .notStored, .storageFailed,
            .busy, .notServing, .scrapeNeedsPasskey:
            return false
        }
    }

    /// A visitor is told that his request is not stored.
    private mutating func toldRefused(_ visit: Visit, _ step: ClusterStep) -> Bool {
        let place = refused.firstIndex { ticket in
            (ticket.life == Tickets.group || ticket.life == step.sight.life) && visit.asks(for: ticket.announced)
        }
        guard let place else { return false }
        refused.remove(at: place)
        return true
    }
}

extension Refusal {
    /// Whether it tells of trouble at the tracker, and not of rules or limits.
    fileprivate var isTrouble: Bool {
        self == .notStored || self == .storageFailed || self == .busy || self == .notServing
    }
}

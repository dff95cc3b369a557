// Answers over HTTP.

import Primitives
import TrackerLogic
import Wire

/// Answers over HTTP: to whom, how often, and whether they are true.
struct Visits: Sendable {
    private var book = VisitBook()
    /// Since when nobody has a reason to be in trouble.
    var wellSince: Instant?

    /// A visitor asks a tracker.
    mutating func add(_ visit: Visit) { book.add(visit) }

    mutating func checkAnswers(
        _ effects: Effects, _ step: borrowing Step, _ before: NodeView, _ event: Event, _ scene: inout Scene,
        _ aborts: inout Aborts, _ majorities: Majorities
    ) {
        scene.nodes[step.node].answerCount += effects.answers.count
        for answer in effects.answers {
            guard let visit = book.take(answer.id, from: step.node) else {
                scene.violate(
                    .answeredOnce, at: step.time,
                    "\(scene.name(step.node)) answers HTTP request \(answer.id), which nobody waits for")
                continue
            }
            switch answer.content {
            case .announce(let content): check(content, visit, step, before, &scene)
            case .scrape(let counts):
                check(counts, visit, step, before, &scene)
                let words = "HTTP request \(visit.request.id)"
                majorities.checkRead(heardAt: visit.askedAt, words, step, before, event, &scene)
            case .failure(let refusal):
                if let wellSince, visit.askedAt >= wellSince, refusal.isTrouble {
                    scene.violate(
                        .healedIsAnswered, at: step.time,
                        "HTTP at \(scene.name(step.node)), when all is well: \(refusal.text)")
                }
                guard !isJustified(refusal, visit, step, before, effects, scene, &aborts) else { continue }
                scene.violate(
                    .refusalIsJustified, at: step.time,
                    "\(scene.name(step.node)) tells visitor \(visit.request.source): \(refusal.text)")
            }
        }
    }

    /// Judges the answer to an announce.
    ///
    /// Whoever applies an entry answers in that step. What was asked may be in an earlier one as well: in survivor mode
    /// a tracker that takes its own vote for decided answers nobody, and those who wait are asked for anew.
    private mutating func check(
        _ answer: AnnounceAnswer, _ visit: Visit, _ step: borrowing Step, _ before: NodeView, _ scene: inout Scene
    ) {
        func open(after first: UInt64, in replies: [ExpectedReply]) -> Int? {
            replies.firstIndex { expected in
                !expected.isAnswered && expected.place.index > first
                    && expected.place.index <= step.view.position.index && visit.asks(for: expected.announced)
            }
        }
        let place =
            open(after: before.position.index, in: scene.nodes[step.node].expectedReplies)
            ?? open(after: 0, in: scene.nodes[step.node].expectedReplies)
        guard let place, let announce = visit.announce else {
            return scene.violate(
                .answeredOnce, at: step.time,
                "\(scene.name(step.node)) answers HTTP request \(visit.request.id) from no entry that it has applied")
        }
        scene.nodes[step.node].expectedReplies[place].isAnswered = true
        let entry = scene.nodes[step.node].expectedReplies[place].place.index
        if !scene.isAdmitted(
            announce.infoHash, passkey: visit.request.passkey, entry: entry, since: visit.decidedBefore)
        {
            scene.violate(
                .admissionIsJustified, at: step.time,
                "\(scene.name(step.node)) answers HTTP request \(visit.request.id), which no rules let in since it "
                    + "came")
        }
        let fault = AnnounceFault.find(
            in: answer, to: scene.nodes[step.node].expectedReplies[place], wanted: announce.numWant,
            scene.nodes[step.node].configuration)
        guard let fault else { return }
        scene.violate(
            .replyIsRight, at: step.time, "\(scene.name(step.node)) to HTTP request \(visit.request.id): \(fault)")
    }

    private mutating func check(
        _ counts: [SwarmCounts], _ visit: Visit, _ step: borrowing Step, _ before: NodeView, _ scene: inout Scene
    ) {
        guard counts.count == visit.infoHashes.count else {
            return scene.violate(
                .replyIsRight, at: step.time,
                "\(scene.name(step.node)) answers HTTP request \(visit.request.id), for \(visit.infoHashes.count) "
                    + "swarms, "
                    + "with the counts of \(counts.count)")
        }
        if scene.promises.repliesAreLinear,
            !scene.access.mayLook(
                passkey: visit.request.passkey, since: scene.entryKnown(toAll: visit.decidedBefore))
        {
            scene.violate(
                .admissionIsJustified, at: step.time,
                "\(scene.name(step.node)) answers HTTP request \(visit.request.id), a scrape with a passkey of nobody")
        }
        let told = zip(visit.infoHashes, counts).map { (infoHash: $0, counts: $1) }
        if scene.isRight(told, since: visit.decidedBefore, step, before) { return }
        let isStale = scene.promises.repliesAreLinear && scene.history.latest(told, in: 0...visit.decidedBefore) != nil
        scene.violate(
            isStale ? .readsAreFresh : .replyIsRight, at: step.time,
            "\(scene.name(step.node)) tells HTTP request \(visit.request.id) counts that no state since it asked has "
                + "had"
        )
    }

    private mutating func isJustified(
        _ refusal: Refusal, _ visit: Visit, _ step: borrowing Step, _ before: NodeView, _ effects: Effects,
        _ scene: Scene, _ aborts: inout Aborts
    ) -> Bool {
        switch refusal {
        case .connectionIDExpired, .malformedAnnounce, .malformedScrape, .unknownAction, .scrapeNeedsPasskey: false
        case .busy: true
        // A tracker alone that serves has no reason to send anybody away.
        case .notServing: !scene.promises.answersAtOnce || !before.isServing || !step.view.isServing
        case .storageFailed: scene.nodes[step.node].hasFailed || Scene.failsNow(effects)
        case .notStored: aborts.toldRefused(visit, step)
        case .portZero, .infoHashNotAllowed, .infoHashDenied, .passkeyMissing, .passkeyUnknown, .trackerFull,
            .addressFull, .swarmFull:
            if let announce = visit.announce {
                scene.isJustified(
                    refusal, announce.infoHash, port: announce.port, visit.request.source,
                    passkey: visit.request.passkey, since: visit.decidedBefore, step)
            } else {
                !scene.promises.repliesAreLinear
                    || scene.access.wasPrivate(since: scene.entryKnown(toAll: visit.decidedBefore))
            }
        }
    }

    /// Since when the oldest of those waits that came to a tracker in this life.
    func oldest(at node: Int, inLife life: Int) -> Instant? {
        book.open.first { $0.node == node && $0.life == life }?.askedAt
    }

    /// Requests over HTTP that wait for an answer; those whose tracker has died since have lost their connection.
    ///
    /// `lives` are those of the trackers now, as the world counts them.
    mutating func openVisits(inLives lives: [Int]) -> [Visit] {
        book.hangUp { lives[$0.node] != $0.life }
        return book.open
    }
}

extension Refusal {
    /// Whether it tells of trouble at the tracker, and not of rules or limits.
    fileprivate var isTrouble: Bool {
        self == .notStored || self == .storageFailed || self == .busy || self == .notServing
    }
}

// Replies to clients.

import Primitives
import TrackerLogic
import Wire

/// Replies to clients: from whom, to whom, how often, and whether they are true.
struct Replies: Sendable {
    private let speakers = Speakers()
    /// Replies of a group to its clients: by whom.
    private var groupAnswers: [(place: ExpectedReply.Place, answerer: Ask.Answerer)] = []

    mutating func checkReplies(
        _ effects: Effects, _ step: borrowing Step, _ before: NodeView, _ event: Event, _ scene: inout Scene,
        _ requests: inout Requests, _ aborts: inout Aborts, _ majorities: Majorities, _ notes: inout GroupNotes
    ) {
        let replies = effects.replies
        // What a tracker is within a step nobody sees: one that stops has answered before.
        let stops = effects.observations.contains(.drained)
        for number in replies.datagrams.indices {
            let reply = Reply(datagram: replies.datagrams[number], bytes: replies.payload(number))
            if reply.action != 0 { scene.nodes[step.node].answerCount += 1 }
            if reply.action <= 2, !stops { speakers.check(step, before, isAnnounce: reply.action == 1, &scene) }
            guard let client = requests.client(at: reply.datagram.remote) else {
                scene.violate(
                    .replyIsAddressed, at: step.time,
                    "\(scene.name(step.node)) replies to \(reply.datagram.remote), who never asked")
                continue
            }
            let places = requests.books[client].places(reply.transactionID).filter {
                copies(requests.books[client].asks[$0], step.node, scene) > 0
            }
            guard !places.isEmpty else {
                scene.violate(
                    .replyIsAddressed, at: step.time,
                    "\(scene.name(step.node)) replies to client \(client), and has not heard that request")
                continue
            }
            checkSource(reply, client, places, step, &scene, requests)
            if scene.isGroup, reply.action & 1 == 0, places.count == 1 {
                let number = requests.books[client].asks[places[0]].number
                if notes.answers(step.node, client: client, number: number, at: step.time) {
                    scene.violate(
                        .answeredOnce, at: step.time,
                        "\(scene.name(step.node)) answers a request of client \(client) that it knows to be answered")
                }
            }
            switch reply.action {
            case 0: checkConnect(reply, client, places, step, &scene, &requests)
            case 1: checkAnnounce(reply, client, places, step, before, &scene, &requests)
            case 2:
                checkScrape(reply, client, places, step, before, &scene, &requests)
                let heardAt = places.compactMap { requests.books[client].asks[$0].firstHeardAt }.min() ?? step.time
                majorities.checkRead(heardAt: heardAt, "client \(client)", step, before, event, &scene)
            case 3: checkError(reply, client, places, step, effects, &scene, &requests, &aborts)
            default:
                scene.violate(
                    .replyIsRight, at: step.time, "\(scene.name(step.node)) replies with action \(reply.action)")
            }
        }
    }

    /// A reply leaves from where it was asked; one that is given for another tracker of a group, from anywhere.
    private func checkSource(
        _ reply: Reply, _ client: Int, _ places: [Int], _ step: borrowing Step, _ scene: inout Scene,
        _ requests: Requests
    ) {
        let local = reply.datagram.local
        if scene.isGroup, local == .unspecified { return }
        if places.contains(where: { requests.books[client].asks[$0].locals.contains(local) }) { return }
        scene.violate(
            .replyIsAddressed, at: step.time,
            "\(scene.name(step.node)) replies to client \(client) from \(local), where it was not asked")
    }

    private mutating func checkAnnounce(
        _ reply: Reply, _ client: Int, _ places: [Int], _ step: borrowing Step, _ before: NodeView,
        _ scene: inout Scene,
        _ requests: inout Requests
    ) {
        let address = requests.books[client].address
        var asked: [(place: Int, request: AnnounceRequest)] = []
        for place in places {
            if let announce = requests.books[client].asks[place].announce { asked.append((place, announce)) }
        }
        func belongs(_ expected: ExpectedReply) -> Bool {
            asked.contains { expected.announced.isAsked(by: $0.request, from: address) }
        }
        // Requests of one client may be alike: the one meant was sent before it was decided.
        let sentAt = asked.map { requests.books[client].asks[$0.place].sentAt }.min() ?? step.time
        func open(after index: UInt64) -> [Int] {
            scene.nodes[step.node].expectedReplies.indices.filter { place in
                let expected = scene.nodes[step.node].expectedReplies[place]
                return expected.place.index > index && expected.place.index <= step.view.position.index
                    && !expected.isAnswered && expected.decidedAt >= sentAt && belongs(expected)
            }
        }
        // Mostly it is in an entry that was applied in this step; in a group, a new master may answer for an old one.
        var candidates = open(after: before.position.index)
        if candidates.isEmpty { candidates = open(after: 0) }
        guard let first = candidates.first else {
            let why = whyNoAnswer(scene.nodes[step.node].expectedReplies.filter(belongs), sentAt)
            return scene.violate(
                .answeredOnce, at: step.time, "\(scene.name(step.node)) answers an announce of client \(client) \(why)")
        }
        let copies = asked.map { $0.request }
        let configuration = scene.nodes[step.node].configuration
        let found = candidates.first {
            AnnounceFault.find(
                in: reply.bytes, to: scene.nodes[step.node].expectedReplies[$0], asked: copies, from: address,
                configuration) == nil
        }
        let expected = scene.nodes[step.node].expectedReplies[found ?? first]
        scene.nodes[step.node].expectedReplies[found ?? first].isAnswered = true
        noteAnswer(expected, client, asked.map { $0.place }, step, &scene, &requests)
        checkProof(asked.map { $0.place }, client, step, &scene, &requests)
        let told = reply.bytes.count >= 20 ? reply.bytes.span.bytes.u32(at: 8) : 0
        requests.ledger.answered(
            expected.announced, client: client, index: expected.place.index, told: told, time: expected.time,
            at: step.time)
        guard found == nil,
            let fault = AnnounceFault.find(
                in: reply.bytes, to: expected, asked: copies, from: address, configuration)
        else { return }
        scene.violate(
            .replyIsRight, at: step.time,
            "\(scene.name(step.node)) to client \(client), entry \(expected.place.index): \(fault)")
    }

    /// What is wrong with a reply to which no update belongs.
    private func whyNoAnswer(_ expectedReplies: [ExpectedReply], _ sentAt: Instant) -> String {
        if let early = expectedReplies.first(where: { $0.decidedAt >= sentAt }) {
            return early.isAnswered ? "once more" : "before it has applied its entry \(early.place.index)"
        }
        if let old = expectedReplies.last { return "from entry \(old.place.index), which was decided before it asked" }
        return "which is in no entry that it has just applied"
    }

    /// A request is answered once, and by one tracker; by another only when the first is master no longer.
    private mutating func noteAnswer(
        _ expected: ExpectedReply, _ client: Int, _ places: [Int], _ step: borrowing Step, _ scene: inout Scene,
        _ requests: inout Requests
    ) {
        let answerer = Ask.Answerer(node: step.node, life: step.view.life, epoch: step.view.leads)
        if scene.isGroup {
            for earlier in groupAnswers where earlier.place == expected.place {
                checkDeposed(earlier.answerer, client, step, &scene)
            }
            if groupAnswers.count == Scene.groupAnswerCount {
                groupAnswers.removeFirst(Scene.groupAnswerCount / 2)
            }
            groupAnswers.append((expected.place, answerer))
        }
        let open = places.first { isOpen(requests.books[client].asks[$0], step, scene) }
        if open == nil {
            scene.violate(
                .answeredOnce, at: step.time,
                "\(scene.name(step.node)) answers a request of client \(client) more often than it has heard it")
        }
        requests.books[client].answer(open ?? places[0], answerer, at: step.time)
    }

    /// Copies of a request that a tracker may know of: those that it heard; in a group, any that somebody heard.
    private func copies(_ ask: Ask, _ node: Int, _ scene: Scene) -> Int {
        scene.isGroup ? ask.groupCopies : ask.heard[node]
    }

    /// Whether a tracker may answer one more copy.
    ///
    /// A group answers again what was answered before a death, be it by the same tracker, which has come back. Who
    /// alone has heard a request forgets it as it dies.
    private func isOpen(_ ask: Ask, _ step: borrowing Step, _ scene: Scene) -> Bool {
        ask.answerCount(by: step.node, in: life(step, scene)) < copies(ask, step.node, scene)
    }

    /// The life whose answers count; nil for all of a tracker's.
    private func life(_ step: borrowing Step, _ scene: Scene) -> Life? { scene.isGroup ? step.view.life : nil }

    /// Of two masters one is deposed, told or not: the one of the lower epoch, whose last votes may be on their way.
    ///
    /// A second reply is wrong where no other epoch has given it. In survivor mode, on the other side of a partition a
    /// master may go on.
    private mutating func checkDeposed(
        _ earlier: Ask.Answerer, _ client: Int, _ step: borrowing Step, _ scene: inout Scene
    ) {
        guard scene.promises.hasOneHistory, earlier.life != step.view.life else { return }
        guard let view = scene.nodes[earlier.node].view, view.life == earlier.life, let epoch = earlier.epoch,
            view.leads == epoch, step.view.leads.map({ $0 == epoch }) ?? true
        else { return }
        scene.violate(
            .answeredOnce, at: step.time,
            "\(scene.name(step.node)) answers a request of client \(client) that \(scene.name(earlier.node)) has "
                + "answered, who lives and leads")
    }

    /// Connection ids are proof of an address: one that was issued to it, not long ago, must be among them.
    private mutating func checkProof(
        _ places: [Int], _ client: Int, _ step: borrowing Step, _ scene: inout Scene, _ requests: inout Requests
    ) {
        guard !places.contains(where: { requests.books[client].asks[$0].isProven }) else { return }
        scene.violate(
            .onlyProvenAreAnswered, at: step.time,
            "\(scene.name(step.node)) answers client \(client) under a connection id that no tracker has issued to "
                + "it, or "
                + "too long ago")
    }

    private mutating func checkConnect(
        _ reply: Reply, _ client: Int, _ places: [Int], _ step: borrowing Step, _ scene: inout Scene,
        _ requests: inout Requests
    ) {
        let place = places.first { place in
            guard case .connect? = requests.books[client].asks[place].request else { return false }
            return isOpen(requests.books[client].asks[place], step, scene)
        }
        guard let place, reply.bytes.count == 16 else {
            return scene.violate(
                .onlyProvenAreAnswered, at: step.time,
                "\(scene.name(step.node)) gives client \(client) a connection id that it has not asked for")
        }
        let answerer = Ask.Answerer(node: step.node, life: step.view.life, epoch: step.view.leads)
        requests.books[client].answer(place, answerer, at: step.time)
        requests.books[client].issue(ConnectionID(reply.bytes.span.bytes.u64(at: 8)), at: scene.nodes[step.node].wall)
    }

    private mutating func checkScrape(
        _ reply: Reply, _ client: Int, _ places: [Int], _ step: borrowing Step, _ before: NodeView,
        _ scene: inout Scene,
        _ requests: inout Requests
    ) {
        var (isAsked, isOpen) = (false, false)
        var fits: [Ask.Fit] = []
        var stale: UInt64?
        for place in places {
            let ask = requests.books[client].asks[place]
            guard case .scrape(_, _, let hashCount)? = ask.request, reply.bytes.count == 8 + 12 * hashCount else {
                continue
            }
            isAsked = true
            if self.isOpen(ask, step, scene) { isOpen = true }
            let told = Replies.counts(ask.bytes, reply.bytes, hashCount)
            if scene.isRight(told, since: ask.decidedBefore, step, before) {
                fits.append(Ask.Fit(number: ask.number, copies: copies(ask, step.node, scene)))
            } else if scene.promises.repliesAreLinear {
                stale = stale ?? scene.history.latest(told, in: 0...ask.decidedBefore)
            }
        }
        let answerer = Ask.Answerer(node: step.node, life: step.view.life, epoch: step.view.leads)
        let answer = Ask.Answer(answerer: answerer, time: step.time, fits: fits)
        checkLook(client, places, step, &scene, requests)
        if requests.books[client].answer(answer, in: life(step, scene)) {
            return checkProof(places, client, step, &scene, &requests)
        }
        guard isAsked else {
            return scene.violate(
                .replyIsRight, at: step.time,
                "\(scene.name(step.node)) answers a scrape of client \(client) with \(reply.bytes.count) bytes")
        }
        guard isOpen, fits.isEmpty else {
            return scene.violate(
                .answeredOnce, at: step.time,
                "\(scene.name(step.node)) answers a scrape of client \(client) more often than it has heard it")
        }
        guard let stale else {
            return scene.violate(
                .replyIsRight, at: step.time,
                "\(scene.name(step.node)) tells client \(client) counts that no state of the log has had")
        }
        scene.violate(
            .readsAreFresh, at: step.time,
            "\(scene.name(step.node)) tells client \(client) the counts of entry \(stale); later ones were decided "
                + "before "
                + "it asked")
    }

    /// A scrape over UDP has no passkey: where only those are heard who have one, nobody is answered.
    private func checkLook(
        _ client: Int, _ places: [Int], _ step: borrowing Step, _ scene: inout Scene, _ requests: Requests
    ) {
        guard scene.promises.repliesAreLinear else { return }
        let since = places.map { requests.books[client].asks[$0].decidedBefore }.min() ?? scene.model.index
        if scene.access.mayLook(passkey: [], since: scene.entryKnown(toAll: since)) { return }
        scene.violate(
            .admissionIsJustified, at: step.time,
            "\(scene.name(step.node)) answers a scrape of client \(client), who has no passkey, and may not look")
    }

    private static func counts(
        _ asked: [UInt8], _ told: [UInt8], _ hashCount: Int
    ) -> [(infoHash: InfoHash, counts: SwarmCounts)] {
        let (asked, told) = (asked.span.bytes, told.span.bytes)
        return (0..<hashCount).map { number in
            let offset = 8 + 12 * number
            let counts = SwarmCounts(
                seeders: told.u32(at: offset), leechers: told.u32(at: offset + 8),
                completed: told.u32(at: offset + 4))
            return (InfoHash(Bytes20(asked, at: 16 + 20 * number)), counts)
        }
    }

    private mutating func checkError(
        _ reply: Reply, _ client: Int, _ places: [Int], _ step: borrowing Step, _ effects: Effects,
        _ scene: inout Scene,
        _ requests: inout Requests, _ aborts: inout Aborts
    ) {
        let text = reply.bytes[8...]
        let refusal = (UInt8.min...UInt8.max).lazy.compactMap(Refusal.init(rawValue:)).first { refusal in
            refusal.text.withUTF8Buffer { $0.elementsEqual(text) }
        }
        guard let refusal else {
            return scene.violate(
                .replyIsRight, at: step.time, "\(scene.name(step.node)) sends an error with an unknown text")
        }
        if refusal == .connectionIDExpired { return checkExpired(client, places, step, &scene, &requests) }
        let isJustified: Bool
        if refusal == .notStored {
            isJustified = aborts.toldRefused(client, reply.transactionID, step, requests)
        } else {
            isJustified = places.contains {
                self.isJustified(
                    refusal, requests.books[client].asks[$0], requests.books[client].address, step, effects, scene)
            }
        }
        if isJustified { return }
        scene.violate(
            .refusalIsJustified, at: step.time,
            "\(scene.name(step.node)) tells client \(client): \(refusal.text)")
    }

    /// Whether a datagram deserves to be refused like this.
    private func isJustified(
        _ refusal: Refusal, _ ask: Ask, _ address: SocketAddress, _ step: borrowing Step, _ effects: Effects,
        _ scene: Scene
    ) -> Bool {
        switch refusal {
        case .connectionIDExpired, .notStored: return false
        case .malformedAnnounce, .malformedScrape, .unknownAction: return ask.request == nil
        case .storageFailed: return scene.nodes[step.node].hasFailed || Scene.failsNow(effects)
        case .busy, .notServing: return true
        case .scrapeNeedsPasskey:
            guard case .scrape? = ask.request else { return false }
            return !scene.promises.repliesAreLinear
                || scene.access.wasPrivate(since: scene.entryKnown(toAll: ask.decidedBefore))
        case .portZero, .infoHashNotAllowed, .infoHashDenied, .passkeyMissing, .passkeyUnknown, .trackerFull,
            .addressFull, .swarmFull:
            guard let request = ask.announce else { return false }
            let passkey = AskedPasskey.read(AnnounceOptions.urlData(ask.bytes.span.bytes))
            return scene.isJustified(
                refusal, request.infoHash, port: request.port, address, passkey: passkey, since: ask.decidedBefore,
                step)
        }
    }

    /// A connection id that a tracker has issued is good at all of them.
    mutating func checkExpired(
        _ client: Int, _ places: [Int], _ step: borrowing Step, _ scene: inout Scene, _ requests: inout Requests
    ) {
        guard scene.hasGoodClocks || scene.nodes.count == 1 else { return }
        let asks = requests.books[client].asks
        guard places.allSatisfy({ asks[$0].connectionID != nil && asks[$0].isFresh }) else { return }
        scene.violate(
            .connectionIDsLast, at: step.time,
            "\(scene.name(step.node)) refuses the connection id of client \(client), which a tracker has just issued")
    }

    /// A tracker alone answers all of an entry as it applies it.
    mutating func checkAnswered(_ step: borrowing Step, _ scene: inout Scene) {
        let open = scene.nodes[step.node].expectedReplies.first {
            !$0.isAnswered && $0.place.index <= step.view.position.index
        }
        guard let open else { return }
        scene.violate(
            .answeredOnce, at: step.time,
            "\(scene.name(step.node)) does not answer the announce of \(open.announced.address) in entry "
                + "\(open.place.index)"
        )
    }

    /// Who has applied an entry has answered its clients in the same step, or never will; in a group, the next master
    /// may have to.
    mutating func forgetExpectedReplies(_ step: borrowing Step, _ scene: inout Scene) {
        let index = step.view.position.index
        guard let first = scene.nodes[step.node].expectedReplies.first, first.place.index <= index else { return }
        if scene.isGroup {
            let excess = scene.nodes[step.node].expectedReplies.count - Scene.groupAnswerCount
            if excess > 0 { scene.nodes[step.node].expectedReplies.removeFirst(excess) }
        } else {
            scene.nodes[step.node].expectedReplies.removeAll { $0.place.index <= index }
        }
    }
}

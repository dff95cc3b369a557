/// Replies to clients: from whom, to whom, how often, and whether they are true.

import Primitives
import TrackerLogic
import Wire

extension ClusterChecks {
    /// Detection times after which a master that hears no quorum must have noticed, by however slow a clock.
    static let deafFor = 3
    /// Answers of a group that are remembered.
    static let groupAnswerCount = 1024

    mutating func checkReplies(_ effects: Effects, _ step: ClusterStep, _ before: NodeSight) {
        let replies = effects.replies
        // What a tracker is within a step nobody sees: one that stops has answered before.
        let stops = effects.observations.contains(.drained)
        for number in replies.datagrams.indices {
            let reply = Reply(datagram: replies.datagrams[number], bytes: replies.payload(number))
            if reply.action <= 2, !stops { checkSpeaker(step, before, isAnnounce: reply.action == 1) }
            guard let client = client(at: reply.datagram.remote) else { continue }
            let places = books[client].places(reply.transactionID).filter {
                copies(books[client].asks[$0], step.node) > 0
            }
            guard !places.isEmpty else {
                violate(
                    .replyIsAddressed, at: step.time,
                    "\(name(step.node)) replies to client \(client), and has not heard that request")
                continue
            }
            switch reply.action {
            case 0: checkConnect(reply, client, places, step)
            case 1: checkAnnounce(reply, client, places, step, before)
            case 2: checkScrape(reply, client, places, step, before)
            case 3: checkError(reply, client, places, step, effects)
            default: violate(.replyIsRight, at: step.time, "\(name(step.node)) replies with action \(reply.action)")
            }
        }
    }

    // MARK: - Who speaks

    /// Whoever talks to clients must be in good standing.
    ///
    /// Who catches up after a welcome answers the announces that it finds decided.
    private mutating func checkSpeaker(_ step: ClusterStep, _ before: NodeSight, isAnnounce: Bool) {
        let sight = step.sight
        func mayServe(_ sight: NodeSight) -> Bool {
            (sight.isServing || isAnnounce) && sight.isWhole && !sight.isFenced && (!isGroup || sight.leads != nil)
        }
        // With its last entry a tracker may lose its place, and answers those in it.
        let isLast = before.position.index < sight.position.index && mayServe(before)
        if !mayServe(sight), !isLast {
            let why =
                sight.isFenced
                ? "is cut off" : !sight.isWhole ? "lacks the state" : !sight.isServing ? "does not serve" : "is a slave"
            violate(.silentUnlessServing, at: step.time, "\(name(step.node)) \(why), and replies")
        }
        guard promises.minorityIsSilent, sight.leads != nil, members.count > 1,
            let cluster = nodes[step.node].configuration.cluster
        else { return }
        let limit = cluster.detectionTime * ClusterChecks.deafFor
        // Until lately it was another quorum that it had to hear: an entry that was left by an earlier master changes
        // its voters when it is applied.
        for since in [membersSince, nodes[step.node].votersSince] {
            if let since, step.time - since <= limit { return }
        }
        let heard = heardLately(members, by: step.node, at: step.time, within: limit)
        if heard.count > members.count / 2 { return }
        // The entry that changes the members was decided by those before it, and so are the answers to what is in it.
        let deciders = before.voters
        if deciders != sight.voters,
            heardLately(deciders, by: step.node, at: step.time, within: limit).count > deciders.count / 2
        {
            return
        }
        violate(
            .silentUnlessServing, at: step.time,
            "\(name(step.node)) replies as master, and of the members \(members.inBrackets) has heard only "
                + "\(heard.inBrackets) lately")
    }

    private mutating func heardLately(
        _ ids: [UInt32], by node: Int, at time: Instant, within limit: Duration
    ) -> [UInt32] {
        var heard: [UInt32] = []
        for id in ids {
            guard let other = self.node(withID: id) else { continue }
            if other == node || time - nodes[node].heardAt[other] <= limit { heard.append(id) }
        }
        return heard
    }

    // MARK: - Announces

    private mutating func checkAnnounce(
        _ reply: Reply, _ client: Int, _ places: [Int], _ step: ClusterStep, _ before: NodeSight
    ) {
        let address = books[client].address
        var asked: [(place: Int, request: AnnounceRequest)] = []
        for place in places {
            if let announce = books[client].asks[place].announce { asked.append((place, announce)) }
        }
        func belongs(_ witness: Witness) -> Bool {
            asked.contains { witness.announced.isAsked(by: $0.request, from: address) }
        }
        // Requests of one client may be alike: the one meant was sent before it was decided.
        let sentAt = asked.map { books[client].asks[$0.place].sentAt }.min() ?? step.time
        func open(after index: UInt64) -> [Int] {
            nodes[step.node].witnesses.indices.filter { place in
                let witness = nodes[step.node].witnesses[place]
                return witness.place.index > index && witness.place.index <= step.sight.position.index
                    && !witness.isAnswered && witness.decidedAt >= sentAt && belongs(witness)
            }
        }
        // Mostly it is in an entry that was applied in this step; in a group, a new master may answer for an old one.
        var candidates = open(after: before.position.index)
        if candidates.isEmpty { candidates = open(after: 0) }
        guard let first = candidates.first else {
            let why = whyNoAnswer(nodes[step.node].witnesses.filter(belongs), sentAt)
            return violate(
                .answeredOnce, at: step.time, "\(name(step.node)) answers an announce of client \(client) \(why)")
        }
        let requests = asked.map { $0.request }
        let configuration = nodes[step.node].configuration
        let found = candidates.first {
            AnnounceFault.find(
                in: reply.bytes, to: nodes[step.node].witnesses[$0], asked: requests, from: address, configuration)
                == nil
        }
        let witness = nodes[step.node].witnesses[found ?? first]
        nodes[step.node].witnesses[found ?? first].isAnswered = true
        noteAnswer(witness, client, asked.map { $0.place }, step)
        checkProof(asked.map { $0.place }, client, step)
        let told = reply.bytes.count >= 20 ? reply.bytes.span.bytes.u32(at: 8) : 0
        ledger.answered(
            witness.announced, client: client, index: witness.place.index, told: told, time: witness.time,
            at: step.time)
        guard found == nil,
            let fault = AnnounceFault.find(
                in: reply.bytes, to: witness, asked: requests, from: address, configuration)
        else { return }
        violate(
            .replyIsRight, at: step.time,
            "\(name(step.node)) to client \(client), entry \(witness.place.index): \(fault)")
    }

    /// What is wrong with a reply to which no update belongs.
    private func whyNoAnswer(_ witnesses: [Witness], _ sentAt: Instant) -> String {
        if let early = witnesses.first(where: { $0.decidedAt >= sentAt }) {
            return early.isAnswered ? "once more" : "before it has applied its entry \(early.place.index)"
        }
        if let old = witnesses.last { return "from entry \(old.place.index), which was decided before it asked" }
        return "which is in no entry that it has just applied"
    }

    /// A request is answered once, and by one tracker; by another only when the first is master no longer.
    private mutating func noteAnswer(_ witness: Witness, _ client: Int, _ places: [Int], _ step: ClusterStep) {
        let answerer = Ask.Answerer(node: step.node, life: step.sight.life, epoch: step.sight.leads)
        if isGroup {
            for earlier in groupAnswers where earlier.place == witness.place {
                checkDeposed(earlier.answerer, client, step)
            }
            if groupAnswers.count == ClusterChecks.groupAnswerCount {
                groupAnswers.removeFirst(ClusterChecks.groupAnswerCount / 2)
            }
            groupAnswers.append((witness.place, answerer))
        }
        let open = places.first { isOpen(books[client].asks[$0], step) }
        if open == nil {
            violate(
                .answeredOnce, at: step.time,
                "\(name(step.node)) answers a request of client \(client) more often than it has heard it")
        }
        books[client].answer(open ?? places[0], answerer, at: step.time)
    }

    /// Copies of a request that a tracker may know of: those that it heard; in a group, any that somebody heard.
    private func copies(_ ask: Ask, _ node: Int) -> Int { isGroup ? ask.groupCopies : ask.heard[node] }

    /// Whether a tracker may answer one more copy.
    ///
    /// A group answers again what was answered before a death, be it by the same tracker, which has come back. Who
    /// alone has heard a request forgets it as it dies.
    private func isOpen(_ ask: Ask, _ step: ClusterStep) -> Bool {
        let count = ask.answerers.count { $0.node == step.node && (!isGroup || $0.life == step.sight.life) }
        return count < copies(ask, step.node)
    }

    /// Of two masters one is deposed, told or not: the one of the lower epoch, whose last votes may be on their way.
    ///
    /// A second reply is wrong where no other epoch has given it. In survivor mode, on the other side of a partition a
    /// master may go on.
    private mutating func checkDeposed(_ earlier: Ask.Answerer, _ client: Int, _ step: ClusterStep) {
        guard promises.hasOneHistory, earlier.life != step.sight.life else { return }
        guard let sight = nodes[earlier.node].sight, sight.life == earlier.life, let epoch = earlier.epoch,
            sight.leads == epoch, step.sight.leads.map({ $0 == epoch }) ?? true
        else { return }
        violate(
            .answeredOnce, at: step.time,
            "\(name(step.node)) answers a request of client \(client) that \(name(earlier.node)) has answered, "
                + "who lives and leads")
    }

    /// Connection ids are proof of an address: one that was issued to it, not long ago, must be among them.
    private mutating func checkProof(_ places: [Int], _ client: Int, _ step: ClusterStep) {
        guard !places.contains(where: { books[client].asks[$0].isProven }) else { return }
        violate(
            .onlyProvenAreAnswered, at: step.time,
            "\(name(step.node)) answers client \(client) under a connection id that no tracker has issued to it, or "
                + "too long ago")
    }

    // MARK: - Connects, scrapes, errors

    private mutating func checkConnect(
        _ reply: Reply, _ client: Int, _ places: [Int], _ step: ClusterStep
    ) {
        let place = places.first { place in
            guard case .connect? = books[client].asks[place].request else { return false }
            return isOpen(books[client].asks[place], step)
        }
        guard let place, reply.bytes.count == 16 else {
            return violate(
                .onlyProvenAreAnswered, at: step.time,
                "\(name(step.node)) gives client \(client) a connection id that it has not asked for")
        }
        let answerer = Ask.Answerer(node: step.node, life: step.sight.life, epoch: step.sight.leads)
        books[client].answer(place, answerer, at: step.time)
        books[client].issue(ConnectionID(reply.bytes.span.bytes.u64(at: 8)), at: nodes[step.node].wall)
    }

    private mutating func checkScrape(
        _ reply: Reply, _ client: Int, _ places: [Int], _ step: ClusterStep, _ before: NodeSight
    ) {
        var isAsked = false
        var isOpen = false
        var stale: UInt64?
        for place in places {
            let ask = books[client].asks[place]
            guard case .scrape(_, _, let hashCount)? = ask.request, reply.bytes.count == 8 + 12 * hashCount else {
                continue
            }
            isAsked = true
            guard self.isOpen(ask, step) else { continue }
            isOpen = true
            let told = ClusterChecks.counts(ask.bytes, reply.bytes, hashCount)
            if isRight(told, since: ask.decidedBefore, step, before) {
                let answerer = Ask.Answerer(node: step.node, life: step.sight.life, epoch: step.sight.leads)
                books[client].answer(place, answerer, at: step.time)
                return checkProof(places, client, step)
            }
            stale = stale ?? (promises.repliesAreLinear ? history.latest(told, in: 0...ask.decidedBefore) : nil)
        }
        guard isAsked else {
            return violate(
                .replyIsRight, at: step.time,
                "\(name(step.node)) answers a scrape of client \(client) with \(reply.bytes.count) bytes")
        }
        guard isOpen else {
            return violate(
                .answeredOnce, at: step.time,
                "\(name(step.node)) answers a scrape of client \(client) more often than it has heard it")
        }
        guard let stale else {
            return violate(
                .replyIsRight, at: step.time,
                "\(name(step.node)) tells client \(client) counts that no state of the log has had")
        }
        violate(
            .readsAreFresh, at: step.time,
            "\(name(step.node)) tells client \(client) the counts of entry \(stale); later ones were decided before "
                + "it asked")
    }

    /// Whether counts are those of a state that a scrape may see.
    func isRight(
        _ told: [(infoHash: InfoHash, counts: SwarmCounts)], since index: UInt64, _ step: ClusterStep,
        _ before: NodeSight
    ) -> Bool {
        if promises.repliesAreLinear { return history.latest(told, in: index...max(index, model.index)) != nil }
        // Only the master's own table is known, and only where nothing has changed meanwhile.
        guard step.sight.leads != nil, step.sight.position == before.position, let table = step.table else {
            return true
        }
        return told.allSatisfy { table.counts(of: $0.infoHash) == $0.counts }
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
        _ reply: Reply, _ client: Int, _ places: [Int], _ step: ClusterStep, _ effects: Effects
    ) {
        let text = reply.bytes[8...]
        let refusal = (UInt8.min...UInt8.max).lazy.compactMap(Refusal.init(rawValue:)).first { refusal in
            refusal.text.withUTF8Buffer { $0.elementsEqual(text) }
        }
        guard let refusal else {
            return violate(.replyIsRight, at: step.time, "\(name(step.node)) sends an error with an unknown text")
        }
        if refusal == .connectionIDExpired { return checkExpired(client, places, step) }
        let isJustified: Bool
        if refusal == .notStored {
            isJustified = toldRefused(client, reply.transactionID, step)
        } else {
            isJustified = places.contains {
                self.isJustified(refusal, books[client].asks[$0], books[client].address, step, effects)
            }
        }
        if isJustified { return }
        violate(
            .refusalIsJustified, at: step.time,
            "\(name(step.node)) tells client \(client): \(refusal.text)")
    }

    /// Whether a datagram deserves to be refused like this.
    private func isJustified(
        _ refusal: Refusal, _ ask: Ask, _ address: SocketAddress, _ step: ClusterStep, _ effects: Effects
    ) -> Bool {
        switch refusal {
        case .connectionIDExpired, .notStored: return false
        case .malformedAnnounce, .malformedScrape, .unknownAction: return ask.request == nil
        case .storageFailed: return nodes[step.node].hasFailed || ClusterChecks.failsNow(effects)
        case .busy, .notServing: return true
        case .scrapeNeedsPasskey:
            guard case .scrape? = ask.request else { return false }
            return !promises.repliesAreLinear || access.wasPrivate(since: ask.decidedBefore)
        case .portZero, .infoHashNotAllowed, .infoHashDenied, .passkeyMissing, .passkeyUnknown, .trackerFull,
            .addressFull, .swarmFull:
            guard let request = ask.announce else { return false }
            let passkey = Passkey.inURL(AnnounceOptions.urlData(ask.bytes.span.bytes))
            return isJustified(
                refusal, request.infoHash, port: request.port, address, passkey: passkey, since: ask.decidedBefore,
                step)
        }
    }

    // MARK: - Forgetting

    /// A tracker alone answers all of an entry as it applies it.
    mutating func checkAnswered(_ step: ClusterStep) {
        let open = nodes[step.node].witnesses.first {
            !$0.isAnswered && $0.place.index <= step.sight.position.index
        }
        guard let open else { return }
        violate(
            .answeredOnce, at: step.time,
            "\(name(step.node)) does not answer the announce of \(open.announced.address) in entry \(open.place.index)")
    }

    /// Who has applied an entry has answered its clients in the same step, or never will; in a group, the next master
    /// may have to.
    mutating func forgetWitnesses(_ step: ClusterStep) {
        let index = step.sight.position.index
        guard let first = nodes[step.node].witnesses.first, first.place.index <= index else { return }
        if isGroup {
            let excess = nodes[step.node].witnesses.count - ClusterChecks.groupAnswerCount
            if excess > 0 { nodes[step.node].witnesses.removeFirst(excess) }
        } else {
            nodes[step.node].witnesses.removeAll { $0.place.index <= index }
        }
    }
}

/// Replies to everything but announces: connects, scrapes, errors, and the answers of HTTP.

import Primitives
import TrackerLogic
import Wire

extension Checks {
    /// A datagram is about to be handed to a node.
    mutating func heard(_ bytes: [UInt8], from remote: SocketAddress, at local: SocketAddress) {
        guard let place = place(of: remote) else { return }
        correspondents[place].hear(bytes, local: local)
        if case .announce(let request)? = try? TrackerRequest(bytes.span.bytes) {
            var address = remote
            address.port = request.port
            ledger.heard(request, from: place, address)
        }
    }

    mutating func checkOtherReplies(
        _ step: Step, _ status: NodeStatus, _ effects: Effects, _ replies: inout ReplyCursor
    ) {
        for number in effects.replies.datagrams.indices {
            let reply = ReplyCursor.Reply(
                datagram: effects.replies.datagrams[number], bytes: effects.replies.payload(number))
            guard reply.action != 1 || step.indexBefore == model.index else { continue }
            guard let place = place(of: reply.datagram.remote) else {
                violate(.replyIsAddressed, at: step.time, "a reply to \(reply.datagram.remote), who never asked")
                continue
            }
            check(reply, place, step, status)
        }
        while let answer = replies.answer() { checkPlain(answer, step, status) }
    }

    private mutating func check(_ reply: ReplyCursor.Reply, _ place: Int, _ step: Step, _ status: NodeStatus) {
        let heard = correspondents[place].heard.filter { $0.transactionID == reply.transactionID }
        switch reply.action {
        case 0:
            let isAsked = heard.contains { if case .connect? = $0.request { true } else { false } }
            guard isAsked, reply.bytes.count == 16 else {
                return violate(.onlyProvenAreAnswered, at: step.time, "a connection id that was not asked for")
            }
            correspondents[place].issue(ConnectionID(reply.bytes.span.bytes.u64(at: 8)), at: step.reading.wall)
        case 1:
            violate(.answeredOnce, at: step.time, "an announce of \(reply.datagram.remote) is answered from no entry")
        case 2: checkScrape(reply, heard, place, step)
        case 3: checkError(reply, heard, place, step, status)
        default: violate(.replyIsRight, at: step.time, "action \(reply.action)")
        }
        if let local = heard.last?.local, reply.datagram.local != local {
            violate(.replyIsAddressed, at: step.time, "asked at \(local), answered from \(reply.datagram.local)")
        }
    }

    private mutating func checkScrape(
        _ reply: ReplyCursor.Reply, _ heard: [Correspondent.Heard], _ place: Int, _ step: Step
    ) {
        let ids = heard.compactMap { if case .scrape(let id, _, _)? = $0.request { id } else { nil } }
        checkProof(ids, place, step)
        // A scrape over UDP brings no passkey.
        if model.rules.mode == .private {
            violate(.rulesAreInForce, at: step.time, "a scrape of \(reply.datagram.remote) on a private tracker")
        }
        // One copy of the request may have been spoiled on its way; the reply may be to any.
        let isRight = heard.contains { candidate in
            guard case .scrape(_, _, let hashCount)? = candidate.request, reply.bytes.count == 8 + 12 * hashCount
            else { return false }
            let asked = candidate.bytes.span.bytes
            let told = reply.bytes.span.bytes
            return (0..<hashCount).allSatisfy { number in
                let counts = model.counts(of: InfoHash(Bytes20(asked, at: 16 + 20 * number)))
                let offset = 8 + 12 * number
                return told.u32(at: offset) == counts.seeders && told.u32(at: offset + 4) == counts.completed
                    && told.u32(at: offset + 8) == counts.leechers
            }
        }
        if !isRight { violate(.replyIsRight, at: step.time, "a scrape of \(reply.datagram.remote)") }
    }

    private mutating func checkError(
        _ reply: ReplyCursor.Reply, _ heard: [Correspondent.Heard], _ place: Int, _ step: Step, _ status: NodeStatus
    ) {
        let text = reply.bytes[8...]
        guard let refusal = Refusal.all.first(where: { $0.characters.elementsEqual(text) })?.refusal
        else {
            return violate(.replyIsRight, at: step.time, "an error without a text that is known")
        }
        let isJustified = heard.contains { justifies($0, refusal, reply, place, step, status) }
        if !isJustified {
            violate(
                refusal == .connectionIDExpired ? .connectionIDsLast : .refusalIsJustified, at: step.time,
                "\(reply.datagram.remote) is told: \(refusal.text)")
        }
    }

    /// Whether a datagram deserves to be answered like this.
    private func justifies(
        _ heard: Correspondent.Heard, _ refusal: Refusal, _ reply: ReplyCursor.Reply, _ place: Int, _ step: Step,
        _ status: NodeStatus
    ) -> Bool {
        let id = ConnectionID(heard.bytes.count >= 8 ? heard.bytes.span.bytes.u64(at: 0) : 0)
        let age = correspondents[place].age(of: id, at: step.reading.wall)
        if refusal == .connectionIDExpired {
            // "A tracker should accept the connection ID until two minutes after it has been send" (BEP 15).
            let isGood = age.map { (0...120).contains($0) } ?? false
            return !isGood && reply.bytes.count <= heard.bytes.count
        }
        guard age != nil else { return false }
        switch refusal {
        case .connectionIDExpired: return false
        case .malformedAnnounce, .malformedScrape, .unknownAction: return heard.request == nil
        case .notStored: if case .failed(true, true) = step.cause { return true } else { return false }
        case .storageFailed: return status.role == .failed
        case .busy, .notServing: return false
        case .scrapeNeedsPasskey:
            guard case .scrape? = heard.request else { return false }
            return model.rules.mode == .private
        case .portZero, .infoHashNotAllowed, .infoHashDenied, .passkeyMissing, .passkeyUnknown, .trackerFull,
            .addressFull, .swarmFull:
            guard case .announce(let request)? = heard.request else { return false }
            let passkey = Passkey.inURL(AnnounceOptions.urlData(heard.bytes.span.bytes))
            return isJustified(refusal, request.infoHash, port: request.port, reply.datagram.remote, passkey)
        }
    }

    /// Whether the state of things is a reason to refuse an announce.
    private func isJustified(
        _ refusal: Refusal, _ infoHash: InfoHash, port: UInt16, _ address: SocketAddress?, _ passkey: [UInt8]
    ) -> Bool {
        if refusal == .portZero { return port == 0 }
        if refusal == .addressFull {
            guard let address else { return false }
            return model.peers(near: address) >= configuration.limits.peersPerAddress(among: model.peerCount)
        }
        if refusal == .swarmFull { return model.peerCount >= configuration.limits.peersPerSwarm }
        if refusal == .trackerFull {
            return model.swarms.count >= configuration.limits.torrents
                || model.peerCount >= configuration.limits.peers
        }
        return model.refusal(infoHash, passkey: passkey) == refusal
    }

    // MARK: - HTTP

    private mutating func takeVisit(_ answer: Answer) -> Visit? {
        guard let place = visits.firstIndex(where: { $0.id == answer.id }) else { return nil }
        return visits.remove(at: place)
    }

    /// A visitor's announce was applied.
    mutating func visitorAnswered(
        _ announced: Announced, _ swarm: Int?, _ peer: Int?, _ step: Step, _ replies: inout ReplyCursor
    ) {
        guard let answer = replies.answer(), let visit = takeVisit(answer), let asked = visit.announce,
            asked.infoHash == announced.infoHash, asked.peerID == announced.peerID, asked.left == announced.left,
            asked.event == announced.event, asked.port == announced.address.port,
            visit.source.low == announced.address.low
        else {
            return violate(.answeredOnce, at: step.time, "the visitor \(announced.address) is not answered")
        }
        guard case .announce(let content) = answer.content else {
            return violate(.answeredOnce, at: step.time, "the visitor \(announced.address) is refused what is done")
        }
        if let swarm, let peer { model.tell(content.interval, swarm: swarm, peer: peer) }
        let known = swarm.map { model.swarms[$0] } ?? SwarmModel.Swarm(infoHash: announced.infoHash)
        if let fault = fault(of: content, announced, known, wanted: asked.numWant) {
            violate(.replyIsRight, at: step.time, "to the visitor \(announced.address): \(fault)")
        }
    }

    private mutating func fault(
        of answer: AnnounceAnswer, _ announced: Announced, _ swarm: SwarmModel.Swarm, wanted: Int
    ) -> String? {
        if answer.counts != swarm.counts { return "\(answer.counts) of \(swarm.counts)" }
        guard announced.event != .stopped else {
            return answer.ipv4.isEmpty && answer.ipv6.isEmpty ? nil : "peers for one who leaves"
        }
        for (endpoint, peerID) in answer.ipv4 {
            guard let place = swarm.place(of: endpoint.socketAddress), swarm.peers[place].peerID == peerID else {
                return "\(endpoint.socketAddress) with another's id"
            }
        }
        let limit = min(wanted, configuration.maxNumWant)
        // Visitors come over IPv4; the other family fills what is left.
        let others = swarm.peers.filter { !$0.address.isIPv4 && !(announced.left == 0 && $0.left == 0) }.count
        if answer.ipv6.count != min(others, limit - answer.ipv4.count) { return "\(answer.ipv6.count) peers of IPv6" }
        return faultOfPeers(announced, swarm, count: answer.ipv4.count, limit: limit) {
            answer.ipv4[$0].endpoint.socketAddress
        }
    }

    /// An answer that belongs to no update.
    private mutating func checkPlain(_ answer: Answer, _ step: Step, _ status: NodeStatus) {
        guard let visit = takeVisit(answer) else {
            return violate(.answeredOnce, at: step.time, "answer \(answer.id) to nobody")
        }
        switch answer.content {
        case .announce: violate(.answeredOnce, at: step.time, "a visitor's announce is answered from no entry")
        case .scrape(let counts):
            if counts != visit.scrape.map(model.counts(of:)) {
                violate(.replyIsRight, at: step.time, "a visitor's scrape")
            }
        case .failure(let refusal):
            let isDeserved =
                switch refusal {
                case .notServing: !step.isServing
                case .storageFailed: status.role == .failed
                case .notStored: if case .failed(true, true) = step.cause { true } else { false }
                case .busy: true
                case .connectionIDExpired, .malformedAnnounce, .malformedScrape, .unknownAction, .scrapeNeedsPasskey:
                    false
                case .portZero, .infoHashNotAllowed, .infoHashDenied, .passkeyMissing, .passkeyUnknown, .trackerFull,
                    .addressFull, .swarmFull:
                    visit.announce.map { isJustified(refusal, $0.infoHash, port: $0.port, nil, []) }
                        ?? (model.rules.mode == .private)
                }
            if !isDeserved { violate(.refusalIsJustified, at: step.time, "a visitor is told: \(refusal.text)") }
        }
    }

    /// A node has died, and with it the connections of those who waited.
    mutating func hangUp() { visits.removeAll(keepingCapacity: true) }
}

extension Refusal {
    /// All reasons, with their texts as bytes.
    fileprivate static let all: [(refusal: Refusal, characters: [UInt8])] = (UInt8.min...UInt8.max)
        .compactMap(Refusal.init(rawValue:)).map { refusal in
            (refusal, refusal.text.withUTF8Buffer { Array($0) })
        }
}

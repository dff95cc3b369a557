/// Replies to announces: one for each update, and what the swarm then was.

import Primitives
import TrackerLogic
import Wire

/// An announce, as an entry holds it, whichever family it is of.
struct Announced {
    var infoHash: InfoHash
    var peerID: PeerID
    var downloaded: UInt64
    var left: UInt64
    var event: AnnounceEvent
    var address: SocketAddress
    var isIPv4: Bool

    init?(_ update: Update) {
        switch update {
        case .announceIPv4(let announce): self.init(announce, isIPv4: true)
        case .announceIPv6(let announce): self.init(announce, isIPv4: false)
        case .expire, .registerTorrent, .unregisterTorrent, .setAccessMode, .listInfoHash, .unlistInfoHash, .putUser,
            .removeUser, .setMembers, .mergePeer, .mergeStop, .mergeCompleted, .setInterval, .emptyShard:
            return nil
        }
    }

    private init<Endpoint>(_ announce: AnnounceUpdate<Endpoint>, isIPv4: Bool) {
        infoHash = announce.infoHash
        peerID = announce.peerID
        downloaded = announce.downloaded
        left = announce.left
        event = announce.event
        address = announce.endpoint.socketAddress
        self.isIPv4 = isIPv4
    }

    /// Whether a client has asked for just this.
    func isAsked(by request: AnnounceRequest, from source: SocketAddress) -> Bool {
        infoHash == request.infoHash && peerID == request.peerID && downloaded == request.downloaded
            && left == request.left && event == request.event && address.port == request.port
            && address.high == source.high && address.low == source.low
    }
}

extension Checks {
    /// An update was applied by the node that proposed it: whoever waited for it must have been answered.
    mutating func answered(
        _ update: Update, _ outcome: SwarmModel.Outcome, _ step: Step, _ replies: inout ReplyCursor
    ) {
        guard let announced = Announced(update), case .announced(let swarm, let peer) = outcome else { return }
        if AddressPlan.isVisitor(announced.address) {
            return visitorAnswered(announced, swarm, peer, step, &replies)
        }
        guard let reply = replies.nextAnnounce(where: { _ in true }) else {
            return violate(.answeredOnce, at: step.time, "the announce of \(announced.address) is not answered")
        }
        guard let place = place(of: reply.datagram.remote) else {
            return violate(.replyIsAddressed, at: step.time, "a reply to \(reply.datagram.remote), who never asked")
        }
        let requests = asked(announced, reply, place)
        guard !requests.isEmpty else {
            return violate(
                .replyIsAddressed, at: step.time,
                "the announce of \(announced.address) is answered to \(reply.datagram.remote), who did not send it")
        }
        checkProof(requests.map { $0.connectionID }, place, step)
        answeredCount += 1
        let told = reply.bytes.count >= 20 ? reply.bytes.span.bytes.u32(at: 8) : 0
        ledger.answered(
            announced.event, announced.infoHash, peer: place, announced.address, told: told, time: model.time)
        if let swarm, let peer { model.tell(told, swarm: swarm, peer: peer) }
        let known = swarm.map { model.swarms[$0] } ?? SwarmModel.Swarm(infoHash: announced.infoHash)
        // Copies differ where a bit has flipped on the way, and each is answered as it came.
        var firstFault: String?
        for request in requests {
            guard let fault = fault(of: reply.bytes, announced, known, wanted: Int(request.numWant), told: told) else {
                return
            }
            firstFault = firstFault ?? fault
        }
        if let firstFault { violate(.replyIsRight, at: step.time, "to \(announced.address): \(firstFault)") }
    }

    /// The request that a reply belongs to, in all the copies that were heard.
    private func asked(
        _ announced: Announced, _ reply: ReplyCursor.Reply, _ place: Int
    ) -> [AnnounceRequest] {
        let source = correspondents[place].address
        return correspondents[place].heard.compactMap { heard in
            guard heard.transactionID == reply.transactionID, heard.local == reply.datagram.local,
                case .announce(let request)? = heard.request, announced.isAsked(by: request, from: source)
            else { return nil }
            return request
        }
    }

    /// Who has this address.
    func place(of address: SocketAddress) -> Int? {
        let place = AddressPlan.place(of: address)
        guard correspondents.indices.contains(place), correspondents[place].address == address else { return nil }
        return place
    }

    /// Only who has received a connection id at his address, and not long ago, may be told more than that.
    ///
    /// - Parameter ids: those of all copies of the request.
    mutating func checkProof(_ ids: [ConnectionID], _ place: Int, _ step: Step) {
        for id in ids {
            guard let age = correspondents[place].age(of: id, at: step.reading.wall) else { continue }
            // Two minutes, half a minute of skew, and the grain of an id's time; an entry may have waited for the disk.
            if (-45...175).contains(age) { return }
            if case .told = step.cause { return }
        }
        violate(
            .onlyProvenAreAnswered, at: step.time,
            "\(correspondents[place].address) is answered under a connection id that is none of his, or too old")
    }

    /// What is wrong with a reply to an announce; nil where it is right.
    ///
    /// - Parameter swarm: as it is just after the announce.
    private mutating func fault(
        of bytes: [UInt8], _ announced: Announced, _ swarm: SwarmModel.Swarm, wanted: Int, told: UInt32
    ) -> String? {
        let width = announced.isIPv4 ? CompactIPv4.byteCount : CompactIPv6.byteCount
        guard bytes.count >= 20, (bytes.count - 20).isMultiple(of: width) else { return "\(bytes.count) bytes" }
        if !announced.isIPv4, bytes.count > ReplyWriter.maxByteCount { return "\(bytes.count) bytes over IPv6" }
        let span = bytes.span.bytes
        let counts = swarm.counts
        if span.u32(at: 12) != counts.leechers || span.u32(at: 16) != counts.seeders {
            return "\(span.u32(at: 16)) seeders and \(span.u32(at: 12)) leechers of \(counts)"
        }
        let longest = configuration.interval * IntervalPolicy.maxStretch + configuration.intervalJitter
        if told == 0 || told > longest { return "an interval of \(told) s" }
        let count = (bytes.count - 20) / width
        guard announced.event != .stopped else { return count == 0 ? nil : "peers for one who leaves" }
        let limit = min(
            wanted >= 0 ? wanted : configuration.numWant, configuration.maxNumWant, announced.isIPv4 ? .max : 76)
        return faultOfPeers(announced, swarm, count: count, limit: limit) { number in
            announced.isIPv4
                ? CompactIPv4(span, at: 20 + number * 6).socketAddress
                : CompactIPv6(span, at: 20 + number * 18).socketAddress
        }
    }

    /// What is wrong with a choice of peers.
    ///
    /// - Parameter address: of the peer with this number in the reply.
    mutating func faultOfPeers(
        _ announced: Announced, _ swarm: SwarmModel.Swarm, count: Int, limit: Int, address: (Int) -> SocketAddress
    ) -> String? {
        let isSeeder = announced.left == 0
        func isCandidate(_ peer: SwarmModel.Peer) -> Bool {
            peer.address.isIPv4 == announced.isIPv4 && peer.address != announced.address
                && !(isSeeder && peer.left == 0)
        }
        let available = swarm.peers.reduce(0) { $0 + (isCandidate($1) ? 1 : 0) }
        if count != min(available, limit) { return "\(count) peers of \(available), \(limit) wanted" }
        if marks.count < swarm.peers.count { marks = Array(repeating: 0, count: swarm.peers.count + 16) }
        lastMark &+= 1
        for number in 0..<count {
            let address = address(number)
            guard let place = swarm.place(of: address) else { return "\(address), who is not in the swarm" }
            guard isCandidate(swarm.peers[place]) else { return "\(address), who should not be named" }
            if marks[place] == lastMark { return "\(address) twice" }
            marks[place] = lastMark
        }
        return nil
    }
}

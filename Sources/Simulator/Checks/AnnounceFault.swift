// What is wrong with a reply to an announce.

import Primitives
import TrackerLogic
import Wire

/// What is wrong with a reply to an announce, given what the swarm was like right after it.
enum AnnounceFault {
    /// What is wrong with a reply over UDP; nil where it is right as a reply to any of the requests, which are copies
    /// of one that may differ in how many peers they want.
    static func find(
        in bytes: [UInt8], to expected: ExpectedReply, asked requests: [AnnounceRequest], from address: SocketAddress,
        _ configuration: NodeConfiguration
    ) -> String? {
        var first: String?
        for request in requests where expected.announced.isAsked(by: request, from: address) {
            let fault = find(
                in: bytes, to: expected.announced, of: expected.swarm, or: expected.counts, at: expected.interval,
                wanted: Int(request.numWant), configuration)
            guard let fault else { return nil }
            first = first ?? fault
        }
        return first ?? "an announce that is none of its client's"
    }

    /// What is wrong with a reply to a request that wants so many peers; nil where all is right.
    ///
    /// `swarm` is nil where nobody knows what it was like; then only the form can be wrong, and the counts where they
    /// are `known`. `interval` is what was
    /// decided last; nil where nobody knows, or nothing was.
    static func find(
        in bytes: [UInt8], to announced: Announced, of swarm: SwarmModel.Swarm?, or known: SwarmCounts?,
        at interval: UInt32?, wanted: Int, _ configuration: NodeConfiguration
    ) -> String? {
        let width = announced.isIPv4 ? CompactIPv4.byteCount : CompactIPv6.byteCount
        guard bytes.count >= 20, (bytes.count - 20).isMultiple(of: width) else { return "\(bytes.count) bytes" }
        if !announced.isIPv4, bytes.count > ReplyWriter.maxByteCount { return "\(bytes.count) bytes over IPv6" }
        let span = bytes.span.bytes
        if let fault = find(inInterval: span.u32(at: 8), at: interval, configuration) { return fault }
        let count = (bytes.count - 20) / width
        if announced.event == .stopped, count > 0 { return "peers for one who leaves" }
        let limit = min(
            wanted >= 0 ? wanted : configuration.numWant, configuration.maxNumWant, announced.isIPv4 ? .max : 76)
        if count > limit { return "\(count) peers, \(limit) wanted" }
        let named = (0..<count).map { number in
            announced.isIPv4
                ? CompactIPv4(span, at: 20 + number * width).socketAddress
                : CompactIPv6(span, at: 20 + number * width).socketAddress
        }
        for (number, address) in named.enumerated() {
            if address == announced.address { return "the peer itself" }
            if named[..<number].contains(address) { return "\(address) twice" }
        }
        guard let counts = swarm?.counts ?? known else { return nil }
        if span.u32(at: 12) != counts.leechers || span.u32(at: 16) != counts.seeders {
            return "\(span.u32(at: 16)) seeders and \(span.u32(at: 12)) leechers of \(counts)"
        }
        guard let swarm, announced.event != .stopped else { return nil }
        return find(in: named, to: announced, of: swarm, limit: limit)
    }

    /// What is wrong with an answer over HTTP; `wanted` is nil or less than 0 for the default.
    static func find(
        in answer: AnnounceAnswer, to expected: ExpectedReply, wanted: Int?, _ configuration: NodeConfiguration
    ) -> String? {
        if let fault = find(inInterval: answer.interval, at: expected.interval, configuration) { return fault }
        if answer.minInterval != configuration.minInterval { return "a shortest interval of \(answer.minInterval) s" }
        let announced = expected.announced
        let count = answer.ipv4.count + answer.ipv6.count
        if announced.event == .stopped, count > 0 { return "peers for one who leaves" }
        let limit = min(
            wanted.map { $0 >= 0 ? $0 : configuration.numWant } ?? configuration.numWant, configuration.maxNumWant)
        if count > limit { return "\(count) peers, \(limit) wanted" }
        if let counts = expected.swarm?.counts ?? expected.counts, answer.counts != counts {
            return "\(answer.counts) of \(counts)"
        }
        guard let swarm = expected.swarm else { return nil }
        let named =
            answer.ipv4.map { ($0.endpoint.socketAddress, $0.peerID) }
            + answer.ipv6.map { ($0.endpoint.socketAddress, $0.peerID) }
        for (number, (address, peerID)) in named.enumerated() {
            guard let place = swarm.place(of: address) else { return "\(address), who is not in the swarm" }
            let peer = swarm.peers[place]
            if peer.peerID != peerID { return "\(address) with another's id" }
            if address == announced.address || announced.left == 0 && peer.left == 0 {
                return "\(address), who should not be named"
            }
            if named[..<number].contains(where: { $0.0 == address }) { return "\(address) twice" }
        }
        guard announced.event != .stopped else { return nil }
        // His own family first; the other one fills what is left.
        func available(isIPv4: Bool) -> Int {
            swarm.peers.count { peer in
                peer.address.isIPv4 == isIPv4 && peer.address != announced.address
                    && !(announced.left == 0 && peer.left == 0)
            }
        }
        let own = min(limit, available(isIPv4: announced.isIPv4))
        let other = min(limit - own, available(isIPv4: !announced.isIPv4))
        let told = announced.isIPv4 ? (answer.ipv4.count, answer.ipv6.count) : (answer.ipv6.count, answer.ipv4.count)
        return told == (own, other) ? nil : "\(told.0) and \(told.1) peers of \(own) and \(other)"
    }

    /// What is wrong with an interval that was told; `interval` is what was decided last, nil where nobody knows, or
    /// nothing was.
    private static func find(
        inInterval told: UInt32, at interval: UInt32?, _ configuration: NodeConfiguration
    ) -> String? {
        // Four times what is configured, at most (docs/protocol.md).
        let longest = configuration.interval * 4 + configuration.intervalJitter
        if told == 0 || told > longest { return "an interval of \(told) s" }
        if let interval, max(told, interval) - min(told, interval) > configuration.intervalJitter {
            return "an interval of \(told) s, and \(interval) s is decided"
        }
        return nil
    }

    /// What is wrong with a choice of peers.
    private static func find(
        in named: [SocketAddress], to announced: Announced, of swarm: SwarmModel.Swarm, limit: Int
    ) -> String? {
        func isCandidate(_ peer: SwarmModel.Peer) -> Bool {
            peer.address.isIPv4 == announced.isIPv4 && peer.address != announced.address
                && !(announced.left == 0 && peer.left == 0)
        }
        let available = swarm.peers.count(where: isCandidate)
        if named.count != min(available, limit) { return "\(named.count) peers of \(available), \(limit) wanted" }
        for address in named {
            guard let place = swarm.place(of: address) else { return "\(address), who is not in the swarm" }
            guard isCandidate(swarm.peers[place]) else { return "\(address), who should not be named" }
        }
        return nil
    }
}

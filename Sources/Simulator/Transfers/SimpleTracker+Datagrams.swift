// Simple trackers that are asked over UDP.

import PeerLogic
import Primitives
import Wire

/// Simple trackers that are asked over UDP (BEP 15), on a network that loses datagrams, and brings them late or twice.
extension TransferWorld {
    /// A connection id is taken for so long.
    private static let connectionLifetime = Duration.seconds(120)

    /// A session sends a datagram to a simple tracker.
    mutating func datagram(_ peer: Int, _ tracker: Int, _ bytes: [UInt8]) {
        guard simpleTrackers.indices.contains(tracker) else { return }
        checks.sends(peer, tracker, bytes, at: now)
        var random = RandomStream(seed, .trackerDatagram, peer, Int(truncatingIfNeeded: lastDatagram))
        lastDatagram += 1
        let state = peers[peer].isOffline ? .silent : simpleTrackers[tracker].state
        guard state != .silent, random.below(100) >= lossPercent,
            let request = try? TrackerRequest(bytes.span.bytes)
        else { return }
        let roundTrip = peers[peer].traits.latency * 2 + .milliseconds(5) + trackerPause(peer)
        var reply: [UInt8] = []
        switch request {
        case .connect(let transaction):
            reply.append(bigEndian: UInt32(0))
            reply.append(bigEndian: transaction.rawValue)
            reply.append(bigEndian: connectionID(tracker, at: now))
            if state == .fails { reply = error(transaction, "Overloaded") }
        case .announce(let announce):
            tally.announces += 1
            let id = announce.connectionID.rawValue
            let made = Instant(nanoseconds: Int64(id >> 24) * 1_000_000)
            let isKnown =
                id & 0xFF_FFFF == UInt64(simpleTrackers[tracker].secret) && now - made <= Self.connectionLifetime
            if !isKnown {
                reply = error(announce.transactionID, "Connection ID mismatch")
            } else if state == .fails {
                reply = error(announce.transactionID, "Error 503")
            } else {
                reply = answer(peer, announce)
            }
        case .scrape(_, let transaction, _): reply = error(transaction, "No counts here")
        }
        deliver(reply, to: peer, tracker, after: roundTrip, &random)
    }

    private var lossPercent: Int { isHealed ? 0 : options.datagramLossPercent }

    /// Bytes that stand for when it was given and by which secret.
    private func connectionID(_ tracker: Int, at now: Instant) -> UInt64 {
        UInt64(now.nanoseconds / 1_000_000) << 24 | UInt64(simpleTrackers[tracker].secret)
    }

    private func error(_ transaction: TransactionID, _ text: String) -> [UInt8] {
        var reply: [UInt8] = []
        reply.append(bigEndian: UInt32(3))
        reply.append(bigEndian: transaction.rawValue)
        return reply + Array(text.utf8)
    }

    private mutating func answer(_ peer: Int, _ announce: AnnounceRequest) -> [UInt8] {
        let request = HTTPAnnounceRequest(
            infoHash: announce.infoHash, peerID: announce.peerID, port: announce.port, uploaded: announce.uploaded,
            downloaded: announce.downloaded, left: announce.left, event: announce.event, numWant: Int(announce.numWant))
        let addresses = addressesOf(simpleSwarm.announced(peer, request), for: peer)
        var reply: [UInt8] = []
        reply.append(bigEndian: UInt32(1))
        reply.append(bigEndian: announce.transactionID.rawValue)
        reply.append(bigEndian: options.interval)
        reply.append(bigEndian: UInt32(simpleSwarm.peers.count - simpleSwarm.seederCount))
        reply.append(bigEndian: UInt32(simpleSwarm.seederCount))
        for address in addresses {
            reply.append(bigEndian: address.ipv4)
            reply.append(bigEndian: address.port)
        }
        return reply
    }

    /// On the way back: it may be lost, late, twice there, spoilt, or somebody else's.
    private mutating func deliver(
        _ reply: [UInt8], to peer: Int, _ tracker: Int, after roundTrip: Duration, _ random: inout RandomStream
    ) {
        guard random.below(100) >= lossPercent else { return }
        func arrives(_ bytes: [UInt8], _ delay: Duration) {
            queue.put(
                .datagramAtPeer(peer, life: peers[peer].life, tracker: tracker, bytes), at: now + roundTrip + delay)
        }
        let isTroubled = lossPercent > 0
        if isTroubled, random.oneIn(12) {
            // A guess of somebody who does not know the number.
            var strange = reply
            strange[7] ^= UInt8(1 + random.below(255))
            arrives(strange, .zero)
        }
        if isTroubled, random.oneIn(24) { return arrives(Array(reply.prefix(reply.count - 1)), .zero) }
        arrives(reply, isTroubled && random.oneIn(8) ? random.between(.seconds(1), .seconds(50)) : .zero)
        if isTroubled, random.oneIn(8) { arrives(reply, random.between(.milliseconds(1), .seconds(70))) }
    }

    /// Where the peers of a tracker's answer are to be called, and what else it tells: the asker's own address, and
    /// such at which nobody is.
    mutating func addressesOf(_ others: [Int], for peer: Int) -> [SocketAddress] {
        var result = others.map { peers[$0].toldAddress }
        if options.namesAsker { result.append(peers[peer].toldAddress) }
        for _ in 0..<options.staleAddressCount {
            lastStale += 1
            result.insert(
                SocketAddress(ipv4: 0x0B00_0001 + UInt32(truncatingIfNeeded: lastStale), port: 6_881),
                at: lastStale % (result.count + 1))
        }
        return result
    }
}

// What peers ask, checked.

import Primitives
import Wire

/// What peers ask, checked.
///
/// Everything that can be refused is refused here, before the log; what is in the log is applied without question.
extension TrackerNode {
    // MARK: - What cannot be read

    mutating func malformed(
        _ error: TrackerRequestError, _ datagram: Datagram, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard case .answerable(let complaint) = error,
            connectionIDs.isValid(complaint.connectionID, from: datagram.remote, at: now.wall)
        else {
            counters.ignored += 1
            return
        }
        let refusal: Refusal =
            switch complaint.fault {
            case .shortAnnounce: .malformedAnnounce
            case .scrapeLength: .malformedScrape
            case .unknownAction: .unknownAction
            }
        complain(complaint.transactionID, refusal, datagram, now, &effects)
    }

    /// Sends an error, never longer than what was asked, and not too many to one address.
    mutating func complain(
        _ transactionID: TransactionID, _ refusal: Refusal, _ datagram: Datagram, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard errorLimiter.allows(datagram.remote, at: now.monotonic) else {
            counters.errorsWithheld += 1
            return
        }
        counters.errors += 1
        let limit = refusal == .connectionIDExpired ? Int(datagram.byteCount) : 100
        effects.replies.append(to: datagram.remote, from: datagram.local, socket: datagram.socket, limit: limit) {
            ReplyWriter.error(transactionID, refusal.text, into: $0)
        }
    }

    // MARK: - What an announce says

    /// Where a peer is, as far as its tracker believes it: at its sender's address, and the port that it names.
    ///
    /// `claimed` is the address in BEP 15's `ip`, which counts where its sender is trusted; 0 for none. Over IPv6 a
    /// reply has peers of 18 bytes, whatever that field of 4 bytes says, so there it says nothing.
    @inline(__always)
    func peerAddress(_ source: SocketAddress, port: UInt16, claimed: UInt32 = 0) -> SocketAddress {
        var peer = source
        if claimed != 0, peer.isIPv4, isTrusted(peer) { peer = SocketAddress(ipv4: claimed, port: 0) }
        peer.port = port
        peer.scope = 0
        return peer
    }

    /// How many peers an announce asks for: nothing, or less than nothing, is the default; 0 is none.
    ///
    /// `peer` is to whom the answer goes as a datagram; nil where it goes over HTTP, whose answers may be of any
    /// length.
    @inline(__always)
    func numWant(_ announce: Announce, overUDPTo peer: SocketAddress? = nil) -> UInt16 {
        let wanted = announce.numWant ?? -1
        let count = min(wanted < 0 ? configuration.numWant : wanted, configuration.maxNumWant)
        guard let peer, !peer.isIPv4 else { return UInt16(count) }
        return UInt16(min(count, ReplyWriter.maxIPv6Peers))
    }

    // MARK: - Checks

    /// Why an announce may not go into the log; nil where it may.
    @inline(__always)
    func refusal(
        of announce: Announce, by peer: SocketAddress, passkey: () -> [UInt8]
    ) -> Refusal? {
        let (infoHash, event) = (announce.infoHash, announce.event)
        if announce.port == 0 { return .portZero }
        if let refusal = state.access.refusal(infoHash, state.accounts, passkey: passkey) { return refusal }
        let limits = configuration.limits
        let counts = state.table.counts
        // Those that are already here may go on when the table is full.
        if counts.torrents >= limits.torrents, event != .stopped, !state.table.contains(infoHash) {
            return .trackerFull
        }
        if counts.peers >= limits.peers, event != .stopped, !state.table.contains(infoHash, peer) {
            return .trackerFull
        }
        // A look at the swarm costs something, so only where it can be so large.
        if counts.peers >= limits.peersPerSwarm, event != .stopped,
            state.table.counts(of: infoHash).peers >= limits.peersPerSwarm, !state.table.contains(infoHash, peer)
        {
            return .swarmFull
        }
        if event != .stopped, isFull(peer, counts.peers), !state.table.contains(infoHash, peer) { return .addressFull }
        return nil
    }

    /// Whether an address holds all that one may.
    ///
    /// A proxy's own is nobody's in particular; where it tells whose peers it brings, those addresses are bounded.
    @inline(__always)
    private func isFull(_ address: SocketAddress, _ peers: Int) -> Bool {
        state.table.peers(at: address) >= configuration.limits.peersPerAddress(among: peers) && !isTrusted(address)
    }

    @inline(__always)
    func isTrusted(_ address: SocketAddress) -> Bool {
        configuration.trusted.contains { $0.contains(address) }
    }
}

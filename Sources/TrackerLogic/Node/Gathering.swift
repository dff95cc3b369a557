// The entry that is being gathered.

import Primitives
import Wire

/// Somebody who waits for an update to be agreed on.
struct WaitingRequest: Sendable, Hashable {
    /// Where the reply goes; for HTTP, where the request came from.
    var remote: SocketAddress
    /// Where the reply leaves from.
    var local = SocketAddress.unspecified
    var transactionID = TransactionID(0)
    var socket: UInt16 = 0
    /// Peers wanted, within the limits.
    var numWant: UInt16 = 0
    /// The request of `ClientRequest`; nil for a datagram.
    var clientRequest: UInt64?
}

extension WaitingRequest {
    /// Somebody who asks by a datagram.
    @inline(__always)
    init(_ datagram: Datagram, _ transactionID: TransactionID) {
        self.init(
            remote: datagram.remote, local: datagram.local, transactionID: transactionID, socket: datagram.socket)
    }

    /// Somebody who asks over HTTP.
    init(_ request: ClientRequest) {
        self.init(remote: request.source, clientRequest: request.id)
    }
}

/// The entry that is being gathered: updates on their way into the log, and who waits for them.
struct Gathering: Sendable, Hashable {
    /// An entry without its header's contents.
    private(set) var bytes: [UInt8] = []
    private(set) var updateCount = 0
    /// Whether a part of a torrent file is among them: one is enough for an entry.
    private(set) var hasUploadPart = false
    /// Who waits: by number, on this tracker or another.
    private(set) var tickets = Tickets()
    /// Who waits for the entry that was made last, and which one that was.
    private(set) var sealedTickets = Tickets()
    private(set) var sealedPosition = Position.start

    init() { EntryHeader.reserve(in: &bytes) }

    var isEmpty: Bool { updateCount == 0 }

    /// Adds an announce for which a tracker's request waits.
    ///
    /// - Returns: whether the entry had room for that tracker.
    mutating func append(_ announce: Announce, of peer: SocketAddress, life: Life, number: UInt64) -> Bool {
        guard tickets.append(ordinal: UInt32(truncatingIfNeeded: updateCount), life: life, number: number) else {
            return false
        }
        append(announce, of: peer)
        return true
    }

    /// In the form of the log, which has one for each address family.
    @inline(__always)
    private mutating func append(_ announce: Announce, of peer: SocketAddress) {
        if let endpoint = CompactIPv4(peer) {
            AnnounceUpdate(announce, endpoint: endpoint).encode(into: &bytes)
        } else if let endpoint = CompactIPv6(peer) {
            AnnounceUpdate(announce, endpoint: endpoint).encode(into: &bytes)
        }
        updateCount += 1
    }

    mutating func append(_ update: Update) {
        update.encode(into: &bytes)
        updateCount += 1
        if update.isUploadPart { hasUploadPart = true }
    }

    /// Turns what was gathered into an entry and begins anew.
    ///
    /// - Parameters:
    ///   - ballot: index, epoch and attempt of the proposal.
    ///   - isAlone: whether its master is the only voter.
    ///   - time: cluster time, never less than in the entry before.
    ///   - previous: the running hash of the log up to and including the entry before.
    ///   - bearsTickets: whether the entry says who waits, for others may have to answer them.
    /// - Returns: the entry, sealed.
    mutating func seal(
        _ ballot: Ballot, isAlone: Bool, time: WallTime, previous: UInt64, bearsTickets: Bool
    ) -> Entry {
        let updatesEnd = UInt32(bytes.count)
        if bearsTickets { tickets.encode(into: &bytes) }
        let header = EntryHeader(
            index: ballot.index, epoch: ballot.epoch, attempt: ballot.attempt, isAlone: isAlone, time: time,
            updateCount: UInt32(updateCount), ticketsOffset: updatesEnd, previous: previous)
        let chain = header.seal(&bytes)
        let size = bytes.count
        let entry = Entry(sealed: bytes, header, chain: chain)
        // The sealed bytes go to the disk and stay shared; the next entry will be about as long.
        bytes = []
        bytes.reserveCapacity(size + size / 4)
        EntryHeader.reserve(in: &bytes)
        updateCount = 0
        hasUploadPart = false
        swap(&tickets, &sealedTickets)
        tickets.removeAll()
        sealedPosition = entry.position
        return entry
    }

    /// Who waits for an entry: as it was gathered here, or as the entry says.
    func tickets(of entry: Entry) -> Tickets {
        if entry.position == sealedPosition { return sealedTickets }
        return (try? Tickets(entry.bytes, entry.header)) ?? Tickets()
    }
}

extension Gathering {
    mutating func walk(_ archive: inout Archive) {
        archive.walk(bytes: &bytes)
        updateCount.walk(&archive)
        hasUploadPart.walk(&archive)
        tickets.walk(&archive)
        sealedTickets.walk(&archive)
        sealedPosition.walk(&archive)
    }
}

extension WaitingRequest: Archived {
    static var blank: WaitingRequest { WaitingRequest(remote: .unspecified) }

    mutating func walk(_ archive: inout Archive) {
        remote.walk(&archive)
        local.walk(&archive)
        transactionID.walk(&archive)
        socket.walk(&archive)
        numWant.walk(&archive)
        clientRequest.walk(&archive)
    }
}

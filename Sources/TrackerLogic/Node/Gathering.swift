/// The entry that is being gathered: updates on their way into the log, and the requests that wait for them.

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
    /// Which update of the entry it is.
    var ordinal: UInt32 = 0
    /// The request of `ClientRequest`; nil for a datagram.
    var clientRequest: UInt64?
}

extension WaitingRequest {
    /// Somebody who asks over HTTP.
    init(_ request: ClientRequest, numWant: UInt16 = 0) {
        self.init(remote: request.source, numWant: numWant, clientRequest: request.id)
    }
}

struct Gathering: Sendable, Hashable {
    /// An entry without its header's contents.
    private(set) var bytes: [UInt8] = []
    private(set) var updateCount = 0
    /// Who waits, on a tracker that is alone.
    private(set) var waiting: [WaitingRequest] = []
    /// Who waits, in a cluster: by number, on this tracker or another.
    private(set) var tickets = Tickets()

    init() { EntryHeader.reserve(in: &bytes) }

    var isEmpty: Bool { updateCount == 0 }

    @inline(__always)
    mutating func append(_ announce: Announce, of peer: SocketAddress, for request: WaitingRequest) {
        var request = request
        request.ordinal = UInt32(truncatingIfNeeded: updateCount)
        waiting.append(request)
        append(announce, of: peer)
    }

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
    }

    /// Turns what was gathered into an entry and begins anew.
    ///
    /// - Parameters:
    ///   - isAlone: whether its master is the only voter.
    ///   - previous: what the history before it comes to.
    ///   - spare: room for the requests of the next entry, from one that is done.
    mutating func seal(
        _ ballot: Ballot, isAlone: Bool, time: WallTime, previous: UInt64, spare: inout [WaitingRequest]
    ) -> Proposal {
        let updatesEnd = UInt32(bytes.count)
        tickets.encode(into: &bytes)
        let header = EntryHeader(
            index: ballot.index, epoch: ballot.epoch, attempt: ballot.attempt, isAlone: isAlone, time: time,
            updateCount: UInt32(updateCount), ticketsOffset: updatesEnd, previous: previous)
        let chain = header.seal(&bytes)
        let size = bytes.count
        let proposal = Proposal(header: header, bytes: bytes, chain: chain, waiting: waiting)
        // The sealed bytes go to the disk and stay shared; the next entry will be about as long.
        bytes = []
        bytes.reserveCapacity(size + size / 4)
        EntryHeader.reserve(in: &bytes)
        updateCount = 0
        tickets.removeAll()
        spare.removeAll(keepingCapacity: true)
        swap(&waiting, &spare)
        return proposal
    }
}

/// An entry that is under way.
struct Proposal: Sendable, Hashable {
    var header: EntryHeader
    var bytes: [UInt8]
    /// What the history with it comes to.
    var chain: UInt64
    var waiting: [WaitingRequest]
}

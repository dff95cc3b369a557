/// What reached a node from one address, and which connection ids went back there.

import Primitives
import Wire

struct Correspondent: Sendable {
    /// A datagram that reached a node.
    struct Heard: Sendable {
        var transactionID: TransactionID
        var bytes: [UInt8]
        /// The address of the node that was asked.
        var local: SocketAddress

        /// nil for what is no request.
        var request: TrackerRequest? { try? TrackerRequest(bytes.span.bytes) }
    }

    struct Issued: Sendable {
        var id: ConnectionID
        /// The issuing node's wall clock.
        var wall: WallTime
    }

    /// Datagrams that are remembered: many more than a client has on its way at once.
    private static let heardCount = 24
    private static let issuedCount = 16

    let address: SocketAddress
    private(set) var heard: [Heard] = []
    private var oldestHeard = 0
    private(set) var issued: [Issued] = []
    private var oldestIssued = 0

    init(address: SocketAddress) { self.address = address }

    mutating func hear(_ bytes: [UInt8], local: SocketAddress) {
        let transactionID = bytes.count >= 16 ? bytes.span.bytes.u32(at: 12) : 0
        let new = Heard(transactionID: TransactionID(transactionID), bytes: bytes, local: local)
        if heard.count < Correspondent.heardCount {
            heard.append(new)
        } else {
            heard[oldestHeard] = new
            oldestHeard = (oldestHeard + 1) % Correspondent.heardCount
        }
    }

    mutating func issue(_ id: ConnectionID, at wall: WallTime) {
        let new = Issued(id: id, wall: wall)
        if issued.count < Correspondent.issuedCount {
            issued.append(new)
        } else {
            issued[oldestIssued] = new
            oldestIssued = (oldestIssued + 1) % Correspondent.issuedCount
        }
    }

    /// The age of a connection id by a node's wall clock, in seconds; nil for one that was never issued here.
    func age(of id: ConnectionID, at wall: WallTime) -> Int64? {
        issued.last { $0.id == id }.map { (wall.milliseconds - $0.wall.milliseconds) / 1000 }
    }
}

/// The requests of those who ask over HTTP.
struct Visit: Sendable {
    var id: UInt64
    var source: SocketAddress
    var announce: Announcement?
    var scrape: [InfoHash] = []

    struct Announcement: Sendable {
        var infoHash: InfoHash
        var peerID: PeerID
        var downloaded: UInt64
        var left: UInt64
        var event: AnnounceEvent
        var numWant: Int
        var port: UInt16
    }
}

// One client of the workload.

import PeerLogic
import Primitives
import Wire

/// One client of the workload: a real BEP 15 announcer, and the person who uses it.
struct SimulatedClient: Sendable {
    enum Kind: Sendable, Hashable {
        /// Comes, downloads, leaves.
        case peer
        /// Asks for counts, again and again.
        case scraper
    }

    /// Where in its announce URL the passkey stands.
    enum URLForm: Int, Sendable, CaseIterable {
        case query, before, behind, laterInQuery
    }

    enum Stage: Sendable, Hashable {
        /// Can transition to: present.
        case absent
        /// Can transition to: leaving (says so), absent (vanishes).
        case present
        /// Has said that it leaves, and waits to be heard. Can transition to: absent.
        case leaving
    }

    /// What a person does.
    enum Act: Sendable, Hashable {
        case arrive
        case progress
        case complete
        case stop
        case vanish
        case scrape
    }

    let kind: Kind
    let address: SocketAddress
    /// The node that it asks.
    var home: Int
    let passkey: [UInt8]
    var urlForm = URLForm.query
    var announcer: Announcer
    var stage = Stage.absent
    /// Counts the person's changes of mind, so that what was planned before one is forgotten.
    var resolve = 0
    var infoHash = InfoHash(.zero)
    var peerID = PeerID.zero
    var numWant: Int32 = -1
    var progress = Announcer.Progress()
    /// When the world is to wake it.
    var wakeAt: Instant?
    /// When the request under way was first sent.
    var askedAt: Instant?
    /// Whether its last announce was granted.
    var isGranted = false

    init(kind: Kind, address: SocketAddress, home: Int, passkey: [UInt8], random: RandomStream) {
        self.kind = kind
        self.address = address
        self.home = home
        self.passkey = passkey
        var patience = Announcer.RetryTimeouts()
        // Scenarios are short, so their intervals are.
        patience.minInterval = .seconds(5)
        announcer = Announcer(isIPv6: !address.isIPv4, random: random, patience: patience)
    }

    var listeningPort: UInt16 { address.port + AddressPlan.listeningOffset }

    /// The endpoint that other peers are told.
    var endpoint: SocketAddress {
        var endpoint = address
        endpoint.port = listeningPort
        return endpoint
    }

    /// Path and query of its announce URL.
    private var url: [UInt8] {
        switch urlForm {
        case .query: Array("/announce?passkey=".utf8) + passkey
        case .laterInQuery: Array("/announce?a=b&passkey=".utf8) + passkey
        case .before: [UInt8(ascii: "/")] + passkey + Array("/announce".utf8)
        case .behind: Array("/announce/".utf8) + passkey
        }
    }

    var subject: Announcer.Subject {
        Announcer.Subject(
            infoHash: infoHash, peerID: peerID, port: listeningPort, key: UInt32(address.port), numWant: numWant,
            urlData: passkey.isEmpty ? [] : url)
    }
}

// How a peer is started, and why it is not.

import Glibc
import Logging
import Primitives

/// How a peer is started.
public struct PeerHostOptions: Sendable {
    /// Where the page is served.
    public struct Console: Sendable {
        /// With the port; 0 lets the system choose.
        public var address: SocketAddress
        /// Whoever knows it may ask; without one, only those on this machine may.
        public var token: String?
        /// The certificate chain and its private key, as PEM files; nil for no TLS.
        public var tls: (certificates: String, key: String)?

        /// This machine's alone.
        public init(address: SocketAddress) { self.address = address }
    }

    /// Where all torrents lie, and the record of them.
    public var directory: String
    /// Where other peers may call.
    public var listen: [SocketAddress]
    /// Nil for no page.
    public var console: Console?
    /// Bytes a second for all transfers together; nil for what the record says.
    public var maxDown: Int?
    /// Bytes a second for all transfers together; nil for what the record says.
    public var maxUp: Int?
    /// Connections of a transfer, unless it has a limit of its own.
    public var maxPeers = 50
    /// Whether the local network is told of torrents (BEP 14).
    public var announcesLocally = false
    /// Whether peers tell each other of others (BEP 11).
    public var exchangesPeers = true
    /// Of the program.
    public var version: String
    /// For what happens.
    public var logger = Logger(label: "swarmkeeper.peer")

    /// A peer without a page.
    public init(directory: String, listen: [SocketAddress], version: String) {
        (self.directory, self.listen, self.version) = (directory, listen, version)
    }
}

/// Why a peer cannot be started: a file, a disk or a port; what, why and the way out, in a sentence.
public struct PeerHostError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A sentence for people.
    public var description: String

    init(_ description: String) { self.description = description }
}

/// How much a peer takes on, by how many files its process may open: a quarter of them for what torrents keep open,
/// three eighths for connections to peers, the rest for the page, the record and what comes and goes.
struct PeerLimits: Sendable, Equatable {
    var transfers: Int
    var openFilesPerTransfer: Int
    var connections: Int

    /// What nobody needs more of.
    static let maxTransfers = 1_000

    init(fileCount: Int) {
        transfers = max(16, min(Self.maxTransfers, fileCount / 16))
        openFilesPerTransfer = max(3, min(64, fileCount / 4 / transfers))
        connections = max(64, min(2_000, fileCount * 3 / 8))
    }

    /// Asks the system for as many files as it grants.
    ///
    /// - Returns: how many the process may open.
    static func raisedFileCount() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
        let wanted = min(limit.rlim_max, 65_536)
        if limit.rlim_cur < wanted {
            limit.rlim_cur = wanted
            _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            _ = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        return Int(clamping: limit.rlim_cur)
    }
}

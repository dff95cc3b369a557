// What people are shown of a session.

import Primitives
import Wire

extension TorrentSession {
    /// A connection, for people.
    public struct LinkView: Sendable, Equatable {
        /// As in the actions about it.
        public var id: LinkID
        /// Where the connection comes from or goes to.
        public var address: SocketAddress
        /// What the peer calls itself.
        public var peerID: PeerID
        /// What the peer says it is (`v`, BEP 10); empty where it says nothing.
        public var client: String
        /// Whether the peer has called us.
        public var isIncoming: Bool
        /// Whether we give it no blocks.
        public var isChoked: Bool
        /// Whether it wants blocks of us.
        public var isInterested: Bool
        /// Whether it gives us no blocks.
        public var chokesUs: Bool
        /// Whether we want blocks of it.
        public var interestsUs: Bool
        /// Whether it gives nothing though it was asked.
        public var isSnubbing: Bool
        /// Pieces that it has.
        public var pieceCount: Int
        /// Bytes a second that it gives.
        public var downloadRate: Int
        /// Bytes a second that it is given.
        public var uploadRate: Int
        /// Bytes of blocks that have come from it.
        public var received: Int
        /// Bytes of blocks that have gone to it.
        public var sent: Int
        /// Blocks that it is asked for.
        public var pendingCount: Int
    }

    /// All connections that are through their handshakes.
    public func links(now: Instant) -> [LinkView] {
        links.indices.filter { links[$0].isReady }.map { slot in
            let link = links[slot]
            var (down, up) = (link.down, link.up)
            return LinkView(
                id: name(slot), address: link.address, peerID: link.peerID, client: link.theirs.client,
                isIncoming: link.isIncoming, isChoked: link.weChoke, isInterested: link.peerIsInterested,
                chokesUs: link.peerChokes, interestsUs: link.weAreInterested, isSnubbing: link.isSnubbed,
                pieceCount: link.has.setCount, downloadRate: down.rate(at: now), uploadRate: up.rate(at: now),
                received: link.down.total, sent: link.up.total, pendingCount: link.requests.activeCount)
        }
    }

    /// How many peers that we are connected to have each piece; nil while the layout is not known.
    public var availability: [UInt16]? { picker?.availability }

    /// Bytes of wanted pieces that are not on the disk; nil while the layout is not known.
    public var missingByteCount: Int? { picker?.missingByteCount }

    /// Peers that are known: connected or not.
    public var knownPeerCount: Int { book.entries.count }

    /// Whether pieces wait for the disk.
    public var waitsForDisk: Bool { storeFailures > 0 }
}

// What a peer announces, whichever protocol brought it.

/// An announce, freed of the protocol that brought it: what a tracker is told of a peer, and asked for.
///
/// `AnnounceRequest` (BEP 15) and `HTTPAnnounceRequest` (BEP 3) are read into it; `AnnounceUpdate` is for the log.
@frozen
public struct Announce: Sendable, Hashable {
    public var infoHash: InfoHash
    public var peerID: PeerID
    /// Bytes.
    public var downloaded: UInt64
    /// Bytes.
    public var left: UInt64
    public var event: AnnounceEvent
    /// Peers wanted at most, of which 0 is none; nil or negative for the default.
    ///
    /// It stays with the tracker that answers: no message between trackers carries it.
    public var numWant: Int?
    /// The port on which the peer listens.
    public var port: UInt16

    @inlinable
    public init(
        infoHash: InfoHash, peerID: PeerID, downloaded: UInt64 = 0, left: UInt64, event: AnnounceEvent = .none,
        numWant: Int? = nil, port: UInt16
    ) {
        self.infoHash = infoHash
        self.peerID = peerID
        self.downloaded = downloaded
        self.left = left
        self.event = event
        self.numWant = numWant
        self.port = port
    }
}

extension AnnounceRequest {
    /// What it says, without what is BEP 15's alone.
    @inlinable
    public var announce: Announce {
        Announce(
            infoHash: infoHash, peerID: peerID, downloaded: downloaded, left: left, event: event,
            numWant: Int(numWant), port: port)
    }
}

extension AnnounceUpdate {
    /// - Parameter endpoint: the peer's, as the tracker believes it.
    @inlinable
    public init(_ announce: Announce, endpoint: Endpoint) {
        self.init(
            infoHash: announce.infoHash, peerID: announce.peerID, downloaded: announce.downloaded,
            left: announce.left, event: announce.event, endpoint: endpoint)
    }
}

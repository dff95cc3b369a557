// What a peer announces, whichever protocol brought it.

/// An announce, freed of the protocol that brought it: what a tracker is told of a peer, and asked for.
///
/// `AnnounceRequest` (BEP 15) and `HTTPAnnounceRequest` (BEP 3) are read into it; `AnnounceUpdate` is what the log
/// keeps.
@frozen
public struct Announce: Sendable, Hashable {
    /// Of the swarm that is announced to.
    public var infoHash: InfoHash
    /// As the client sent it.
    public var peerID: PeerID
    /// Bytes downloaded since the client sent `started`, as it says.
    public var downloaded: UInt64
    /// Bytes still to be downloaded; 0 makes a seeder.
    public var left: UInt64
    /// What has happened at the client.
    public var event: AnnounceEvent
    /// Peers wanted at most, of which 0 is none; nil or negative for the default.
    ///
    /// It stays with the tracker that answers: no message between trackers carries it.
    public var numWant: Int?
    /// The port on which the peer listens.
    public var port: UInt16

    /// Takes the fields as they are.
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
    /// What the log keeps of an announce.
    ///
    /// - Parameters:
    ///   - announce: found valid.
    ///   - endpoint: the peer's, as the tracker believes it.
    @inlinable
    public init(_ announce: Announce, endpoint: Endpoint) {
        self.init(
            infoHash: announce.infoHash, peerID: announce.peerID, downloaded: announce.downloaded,
            left: announce.left, event: announce.event, endpoint: endpoint)
    }
}

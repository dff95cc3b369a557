// One session, and strangers who say to it what they like.

import PeerLogic
import Primitives
import Wire

/// One session, and strangers who say to it what they like: they have no session of their own that would mind.
struct Stage {
    private(set) var session: TorrentSession
    var now = Instant(nanoseconds: 1_000_000_000)
    /// All that the session wanted done, in order.
    private(set) var actions: [TorrentSession.Action] = []
    private var strangers: UInt32 = 0
    let layout = PieceLayout(pieceLength: 32_768, totalLength: 10 * 32_768)

    /// - Parameters:
    ///   - metadata: what is given to those who ask.
    ///   - isMagnet: whether the session knows nothing but the info hash.
    ///   - have: of a session that knows its pieces; nothing unless told.
    ///   - trackers: by tier; none unless told.
    ///   - webSeedCount: web seeds, which are asked for what is missing.
    init(
        metadata: [UInt8]? = nil, isMagnet: Bool = false, have: Bitfield? = nil, trackers: [[TrackerKind]] = [],
        webSeedCount: Int = 0
    ) {
        var torrent = TorrentSession.Torrent(infoHash: Self.infoHash)
        torrent.trackers = trackers
        torrent.webSeedCount = webSeedCount
        if !isMagnet {
            torrent.layout = layout
            torrent.metadata = metadata
        }
        session = TorrentSession(
            torrent, peerID: PeerID(Bytes20(Array(repeating: 1, count: 20))!), settings: SessionSettings(),
            random: RandomStream(seed: 1))
        step(.started(have: isMagnet ? nil : have ?? Bitfield(count: layout.pieceCount)))
    }

    static let infoHash = InfoHash(Bytes20(Array(repeating: 7, count: 20))!)

    mutating func step(_ event: TorrentSession.Event) { session.step(event, now: now, into: &actions) }

    /// A stranger calls, from a host of its own.
    mutating func join(_ capabilities: PeerHandshake.Capabilities = [.extensions, .fast]) -> LinkID {
        strangers += 1
        let link = session.newLink(now: now, into: &actions)!
        var id: [UInt8] = Array(repeating: 2, count: 16)
        id.append(bigEndian: strangers)
        step(
            .accepted(
                link, SocketAddress(ipv4: 0x0A00_0000 + strangers, port: 50_000),
                PeerHandshake(capabilities: capabilities, infoHash: Self.infoHash, peerID: PeerID(Bytes20(id)!))))
        return link
    }

    /// A stranger calls and says what it can, of extensions, with its own numbers 11 (metadata) and 12 (exchange).
    mutating func join(metadataByteCount: Int?) -> LinkID {
        let link = join()
        var handshake = ExtensionHandshake()
        handshake.metadataID = 11
        handshake.peerExchangeID = 12
        handshake.metadataByteCount = metadataByteCount
        say(link, .extended(id: 0, payload: handshake.encoded()))
        return link
    }

    mutating func say(_ link: LinkID, _ message: PeerMessage) { step(.messageReceived(link, message)) }

    /// Goes on to a later time, with all deadlines between.
    mutating func pass(_ span: Duration) {
        let end = now + span
        while let next = session.nextDeadline, next <= end {
            now = max(now, next)
            step(.deadlineReached)
        }
        now = end
    }

    /// What was said to a connection as an extension's message.
    func heard(_ link: LinkID, id: UInt8) -> [[UInt8]] {
        actions.compactMap { action in
            if case .send(link, .extended(id, let payload)) = action { payload } else { nil }
        }
    }

    /// Why a connection was closed; nil where it is open.
    func closed(_ link: LinkID) -> CloseReason? {
        for case .close(link, let reason) in actions { return reason }
        return nil
    }

    var isBreached: (LinkID) -> Bool {
        { link in if case .breach = closed(link) { true } else { false } }
    }

    /// Metadata that was to be checked.
    var checked: [[UInt8]] {
        actions.compactMap { if case .checkMetadata(let bytes) = $0 { bytes } else { nil } }
    }
}

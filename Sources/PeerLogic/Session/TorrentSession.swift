// One torrent at one peer: what is asked of whom, what is given to whom, and who is spoken to.

import Primitives
import Wire

/// How a tracker of a torrent is asked; its URL is the owner's to know.
public enum TrackerKind: Sendable, Hashable {
    /// BEP 15. `urlData` is path and query of the URL (BEP 41).
    case udp(urlData: [UInt8])
    /// BEP 3.
    case http
}

/// One torrent at one peer: what is asked of whom, what is given to whom, and who is spoken to.
///
///               started                      paused, stopped
///     idle ─────────────────► running ─────────────────────────► idle
///
/// It is made of machines that each keep one rule: `PiecePicker` (which block is asked for next), `Choker` (who is
/// given blocks), `PeerBook` (who may be called), `TrackerSet` (which tracker is asked), `MetadataFetch` (the info
/// dictionary). Files beside this one have the session's parts: `+Links` (connections), `+Messages` (what peers say),
/// `+Requests` (blocks to us), `+Uploads` (blocks to others), `+Pieces` (hash and disk), `+Extensions` (BEP 9, 10, 11,
/// 54), `+Timers`, `+Trackers`, `+WebSeeds`.
///
/// Invariants: a block is asked of one peer, but in the endgame; what is asked for fits into `maxBufferedByteCount`;
/// only pieces that are verified and on the disk are told to others; nothing is said to a connection that is closed.
public struct TorrentSession: Sendable, Equatable {
    /// What a session knows of its torrent when it begins.
    public struct Torrent: Sendable, Equatable {
        /// What the swarm is named by.
        public var infoHash: InfoHash
        /// How the bytes are cut; nil where there is only a magnet link yet.
        public var layout: PieceLayout?
        /// The raw info dictionary, to be given to peers (BEP 9); nil where there is none yet.
        public var metadata: [UInt8]?
        /// BEP 27: peers come from trackers only.
        public var isPrivate = false
        /// Tiers (BEP 12); a tracker's number counts through all of them, in this order.
        public var trackers: [[TrackerKind]] = []
        /// How many web seeds there are (BEP 19).
        public var webSeedCount = 0

        /// A torrent of which nothing else is known.
        public init(infoHash: InfoHash) { self.infoHash = infoHash }
    }

    /// What is wanted of the session as a whole.
    enum Phase: Sendable, Hashable {
        /// Nothing. Can transition to: running.
        case idle
        /// Traffic. Can transition to: idle.
        case running
    }

    var torrent: Torrent
    let peerID: PeerID
    var settings: SessionSettings
    var random: RandomStream
    var phase = Phase.idle
    var isEnding = false

    var picker: PiecePicker?
    var links: [PeerLink] = []
    var book = PeerBook()
    var choker = Choker()
    var trackers: TrackerSet
    var metadata: MetadataFetch
    var webSeeds: [WebSeed]
    var suspicions = Suspicions()

    var downloadLimit = TokenBucket()
    var uploadLimit = TokenBucket()
    /// When one of them lets something go that waits.
    var limitOpensAt: Instant?
    /// Where the next round of refilling or uploading begins, so that no connection is always the first.
    var turn = 0

    /// Pieces in the order in which they were gained: each connection has been told so many of them.
    var gained: [UInt32] = []
    /// When those who have not been told are.
    var haveDeadline: Instant?
    var housekeepingAt: Instant?
    var localAnnounceAt: Instant?
    var storeRetryAt: Instant?
    var storeFailures = 0
    var hasCompleted = false
    var hasReachedRatio = false
    /// Whether all wanted pieces were here at the start.
    var beganComplete = false
    /// Whether all pieces were here at one time, wanted or not: nothing is told to trackers as completed any more.
    var wasWhole = false

    /// Bytes of blocks that have come and were kept, since the session was made.
    public internal(set) var received = 0
    /// Bytes of blocks that have gone, since the session was made.
    public internal(set) var sent = 0
    /// Bytes of blocks that have come and were of no use, since the session was made.
    public internal(set) var wasted = 0

    /// - Parameters:
    ///   - torrent: what is known of it.
    ///   - peerID: what we call ourselves, the same for as long as the session lives.
    ///   - settings: limits, slots and ratio.
    ///   - random: for picks, ties and transaction ids: seeded by a secret where strangers could gain by guessing.
    public init(_ torrent: Torrent, peerID: PeerID, settings: SessionSettings, random: RandomStream) {
        var random = random
        self.torrent = torrent
        self.peerID = peerID
        self.settings = settings
        metadata = MetadataFetch(isDone: torrent.layout != nil)
        let subject = Announcer.Subject(
            infoHash: torrent.infoHash, peerID: peerID, port: settings.listenPort,
            key: UInt32(truncatingIfNeeded: random.next()), numWant: settings.numWant)
        trackers = TrackerSet(torrent.trackers, subject: subject, random: RandomStream(seed: random.next()))
        #if PLANTED_BUGS
            trackers.plantedBug = settings.plantedBug
        #endif
        webSeeds = Array(repeating: WebSeed(), count: torrent.webSeedCount)
        self.random = random
    }

    // MARK: - The step

    /// Takes one event, and says what is to be done about it.
    ///
    /// - Parameters:
    ///   - event: what has happened. Events of connections that are closed are passed over.
    ///   - now: the monotonic clock, read just before.
    ///   - actions: appended to; the caller carries them out in order and empties the buffer.
    public mutating func step(_ event: Event, now: Instant, into actions: inout [Action]) {
        switch event {
        case .started(let have): start(have, now, &actions)
        case .paused: end(isForGood: false, now, &actions)
        case .stopped: end(isForGood: true, now, &actions)
        case .metadataAccepted(let layout, let isPrivate, let have):
            metadataAccepted(layout, isPrivate, have, now, &actions)
        case .metadataRejected: metadataRejected(now, &actions)
        case .wantedChanged(let wanted): wantedChanged(wanted, now, &actions)
        case .settingsChanged(let settings): settingsChanged(settings, now, &actions)
        case .updateWanted: trackers.update(progress, now: now, &actions)
        case .peersFound(let addresses, let source): peersFound(addresses, source, now, &actions)
        case .dialled(let link): if let slot = slot(link) { dialled(slot, now) }
        case .handshakeReceived(let link, let handshake):
            if let slot = slot(link) { handshakeReceived(slot, handshake, now, &actions) }
        case .accepted(let link, let address, let handshake):
            if let slot = slot(link) { accepted(slot, address, handshake, now, &actions) }
        case .messageReceived(let link, let message):
            if let slot = slot(link) { messageReceived(slot, message, now, &actions) }
        case .blockReceived(let link, let block):
            if let slot = slot(link) { blockReceived(slot, block, now, &actions) }
        case .blockSkipped(let link, let block):
            if let slot = slot(link) { blockSkipped(slot, block, now, &actions) }
        case .blockSent(let link, let block, let isSent):
            if let slot = slot(link) { blockSent(slot, block, isSent, now, &actions) }
        case .linkClosed(let link, let end): if let slot = slot(link) { linkClosed(slot, end, now, &actions) }
        case .pieceVerified(let piece, let digests): pieceVerified(piece, digests, now, &actions)
        case .pieceFailed(let piece, let digests): pieceFailed(piece, digests, now, &actions)
        case .pieceStored(let piece): pieceStored(piece, now, &actions)
        case .storeFailed(let piece, let problem): storeFailed(piece, problem, now, &actions)
        case .pieceLost(let piece): pieceLost(piece, now, &actions)
        case .trackerDatagram(let tracker, let bytes, let isIPv6):
            let outcomes = trackers.datagram(tracker, bytes, isIPv6: isIPv6, progress, now: now, &actions)
            trackersHaveSaid(outcomes, now, &actions)
        case .trackerAnswered(let tracker, let answer):
            let outcomes = trackers.answer(tracker, answer, progress, now: now, &actions)
            trackersHaveSaid(outcomes, now, &actions)
        case .webPieceReceived(let seed, let piece): webPiece(seed, piece, nil, now, &actions)
        case .webPieceFailed(let seed, let piece, let problem): webPiece(seed, piece, problem, now, &actions)
        case .deadlineReached: deadlineReached(now, &actions)
        }
        if phase == .running, settings.maxUploadRate != nil || settings.maxDownloadRate != nil {
            // What it was to let go goes when it is due, though others may go already.
            limitOpensAt = earliest(limitOpensAt, waitsForLimit(now))
        }
    }

    private mutating func start(_ have: Bitfield?, _ now: Instant, _ actions: inout [Action]) {
        guard phase == .idle else { return }
        phase = .running
        isEnding = false
        downloadLimit.setRate(settings.maxDownloadRate, now: now)
        uploadLimit.setRate(settings.maxUploadRate, now: now)
        if let layout = torrent.layout {
            let count = layout.pieceCount
            let have = have ?? Bitfield(count: count)
            if picker?.hasBegun ?? false {
                picker?.resume(have: have)
            } else {
                let wanted = picker?.wanted ?? Bitfield(count: count, isFull: true)
                picker = PiecePicker(layout: layout, have: have, wanted: wanted)
            }
            beganComplete = picker?.isComplete ?? false
            wasWhole = wasWhole || isWholly
            hasCompleted = beganComplete
        }
        choker.start(now: now)
        trackers.start(progress, now: now, &actions)
        housekeepingAt = now + Self.housekeepingInterval
        if settings.announcesLocally, !torrent.isPrivate { localAnnounceAt = now }
        connect(now, &actions)
        fetchFromWeb(now, &actions)
        checkRatio(&actions)
    }

    /// Ends all traffic; for good, or until the next start.
    private mutating func end(isForGood: Bool, _ now: Instant, _ actions: inout [Action]) {
        isEnding = isEnding || isForGood
        guard phase == .running else { return }
        for slot in links.indices where links[slot].phase != .free { close(slot, .ended, now, &actions) }
        phase = .idle
        for piece in picker?.giveUp() ?? [] { actions.append(.releaseBuffer(piece: piece)) }
        metadata.passOver()
        trackers.stop(progress, now: now, &actions)
        haveDeadline = nil
        localAnnounceAt = nil
        gained.removeAll()
    }

    private mutating func settingsChanged(_ new: SessionSettings, _ now: Instant, _ actions: inout [Action]) {
        settings = new
        downloadLimit.setRate(new.maxDownloadRate, now: now)
        uploadLimit.setRate(new.maxUploadRate, now: now)
        guard phase == .running else { return }
        localAnnounceAt = new.announcesLocally && !torrent.isPrivate ? localAnnounceAt ?? now : nil
        hasReachedRatio = false
        rechoke(now, &actions)
        connect(now, &actions)
        refillAll(now, &actions)
        upload(now, &actions)
        checkRatio(&actions)
    }

    private mutating func wantedChanged(_ wanted: Bitfield, _ now: Instant, _ actions: inout [Action]) {
        guard let layout = torrent.layout, wanted.count == layout.pieceCount else { return }
        if picker == nil {
            picker = PiecePicker(layout: layout, have: Bitfield(count: wanted.count), wanted: wanted)
            return
        }
        let givenUp = picker?.setWanted(wanted) ?? []
        for piece in givenUp { actions.append(.releaseBuffer(piece: piece)) }
        if !givenUp.isEmpty { cancelRequests(of: givenUp, now, &actions) }
        guard phase == .running else { return }
        hasCompleted = picker?.isComplete ?? false
        for slot in links.indices where links[slot].isReady { interestChanged(slot, now, &actions) }
        refillAll(now, &actions)
        fetchFromWeb(now, &actions)
        // Nothing more may be wanted.
        checkRatio(&actions)
    }

    // MARK: - What people ask

    /// What we say first on every connection.
    public var handshake: PeerHandshake {
        PeerHandshake(capabilities: [.extensions, .fast], infoHash: torrent.infoHash, peerID: peerID)
    }

    /// The pieces that are verified and on the disk; nil while the layout is not known.
    public var have: Bitfield? { picker?.have }
    /// The pieces that are wanted; nil while the layout is not known.
    public var wanted: Bitfield? { picker?.wanted }
    /// How the torrent is cut into pieces; nil while it is not known.
    public var layout: PieceLayout? { torrent.layout }
    /// Whether all wanted pieces are on the disk.
    public var isComplete: Bool { picker?.isComplete ?? false }
    /// Whether every wanted block is here or asked for, so that blocks are asked of a second peer.
    public var isEndgame: Bool { picker?.isEndgame ?? false }
    /// Bytes of pieces that are begun and not on the disk yet: at most `maxBufferedByteCount`, or one piece.
    public var bufferedByteCount: Int { picker?.bufferedByteCount ?? 0 }
    /// Whether `stopped` has come and all is told that was to be told.
    public var isStopped: Bool { isEnding && phase == .idle && trackers.isIdle }

    /// How far the session is, for trackers.
    var progress: Announcer.Progress {
        let left = picker.map { UInt64($0.left) } ?? UInt64(MetadataFetch.partByteCount)
        return Announcer.Progress(downloaded: UInt64(received), left: left, uploaded: UInt64(sent))
    }
}

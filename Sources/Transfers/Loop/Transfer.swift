// One torrent: its session, and what carries out what the session wants.

import Client
import Datagrams
import PeerLogic
import Primitives
import Wire

/// One torrent: its session, and what carries out what the session wants.
///
///     paused ──► checking ──► running ──► paused …      stopping ends it; failed waits for `resume`
///
/// Belongs to the loop's thread. Its parts: `+Actions`, `+Pieces`, `+Suspects`, `+Views`, `TrackerBook`.
final class Transfer {
    enum Mode {
        /// Can transition to: checking, running (without metadata), stopping.
        case paused
        /// Can transition to: running, paused, failed, stopping.
        case checking(CheckRun?)
        /// Can transition to: paused, checking, failed, stopping.
        case running
        /// Can transition to: checking, stopping.
        case failed(String)
        /// Can transition to: nothing.
        case stopping
    }

    let id: TransferID
    unowned let loop: EngineLoop
    let infoHash: InfoHash
    var name: String
    var options: TransferOptions
    var settings: SessionSettings
    var session: TorrentSession
    var mode = Mode.paused
    var content: PreparedTorrent.Content?
    var store: FileStore?
    var trackers: TrackerBook
    var webSeeds: WebSeedBook
    /// Peers that a magnet link names, by names or addresses.
    let namedPeers: [MagnetLink.Peer]

    var connections: [Connection?] = []
    var buffers: [Int: PieceBuffer] = [:]
    var diskProblem: String?
    /// Told of when the read-back at the end is done.
    var verification: CheckRun?
    /// Stored pieces that the record does not have yet.
    var unrecorded: [Int] = []
    /// What the record says of a torrent that rests since it was added: for people.
    var noted: Bitfield?
    var resumeRecord: ResumeRecord?
    /// Why an empty file that is wanted is not there, for people; it is tried again.
    var emptyFileProblem: String?
    var emptyFilesRetryAt: Instant?
    /// The read-back at the end, which is told once the empty files are there, too.
    var heldVerification: Verification?
    var suspects = Suspects()
    var downRate = SmoothedRate()
    var upRate = SmoothedRate()
    /// The stop is not waited for any longer.
    var stopDeadline: Instant?

    private var waiting: [TorrentSession.Event] = []
    private var isStepping = false

    init(_ id: TransferID, _ torrent: PreparedTorrent, _ options: TransferOptions, loop: EngineLoop) {
        self.id = id
        self.loop = loop
        self.options = options
        infoHash = torrent.infoHash
        name = torrent.name
        content = torrent.content
        trackers = TrackerBook(
            options.asksTrackers ? torrent.trackers + options.extraTrackers.map { [$0] } : [])
        webSeeds = WebSeedBook(torrent.webSeeds)
        namedPeers = torrent.peers
        if options.wantedFiles == nil { self.options.wantedFiles = torrent.wantedFiles }
        settings = options.settings
        settings.listenPort = loop.listenPort
        settings.announcesLocally = loop.options.announcesLocally
        var subject = TorrentSession.Torrent(infoHash: torrent.infoHash)
        subject.layout = torrent.content?.layout
        subject.metadata = torrent.content?.metadata
        subject.isPrivate = torrent.content?.info.isPrivate ?? false
        subject.trackers = trackers.kinds
        subject.webSeedCount = options.isSeedOnly ? 0 : webSeeds.count
        session = TorrentSession(
            subject, peerID: loop.newPeerID(), settings: settings, random: RandomStream(seed: .random(in: 0...(.max))))
    }

    // MARK: - Life

    /// Opens the files, and begins unless it is to be paused.
    func open() throws(TransferError) {
        for (url, reason) in trackers.unusable + webSeeds.unusable {
            loop.tell(.unusable(id, url: url, reason: reason))
        }
        if let content { try openFiles(content) }
        if !options.isPaused { try resume() } else { lookUpRecord() }
    }

    func openFiles(_ content: PreparedTorrent.Content) throws(TransferError) {
        try checkWanted(options.wantedFiles, content)
        store = try FileStore(
            content.info, layout: content.layout, options, maxOpenCount: loop.options.maxOpenFileCount)
        name = content.info.name.description
        step(.wantedChanged(wantedPieces(content)))
    }

    func resume() throws(TransferError) {
        switch mode {
        case .paused, .failed: break
        case .checking, .running: return
        case .stopping: throw TransferError(.unknown, "the transfer \(id) is being removed")
        }
        if content == nil {
            mode = .running
            loop.shareLimits()
            step(.started(have: nil))
            begin()
        } else {
            check(trustsRecord: !options.rechecks)
        }
    }

    func pause() throws(TransferError) {
        switch mode {
        case .stopping, .paused: return
        case .checking(let run): run?.cancel()
        case .running: step(.paused)
        case .failed: break
        }
        mode = .paused
        forgetSuspects()
        record()
        loop.shareLimits()
    }

    func recheck() throws(TransferError) {
        guard content != nil else {
            throw TransferError(.usage, "the transfer \(id) has no metadata yet, so there is nothing to check")
        }
        try pause()
        check(trustsRecord: false)
    }

    func setWanted(_ files: Set<Int>?) throws(TransferError) {
        if let content { try checkWanted(files, content) }
        options.wantedFiles = files
        if let content {
            step(.wantedChanged(wantedPieces(content)))
            makeEmptyFiles()
        }
    }

    private func checkWanted(_ files: Set<Int>?, _ content: PreparedTorrent.Content) throws(TransferError) {
        let count = content.layout.files.count
        guard let files, let wrong = files.filter({ $0 < 0 || $0 >= count }).min() else { return }
        throw TransferError(.usage, "the torrent has no file \(wrong); its files are 0 to \(count - 1)")
    }

    func setSettings(_ new: SessionSettings) throws(TransferError) {
        options.settings = new
    }

    /// Gives the session its share of the limits.
    func applySettings(download: Int?, upload: Int?, buffered: Int) {
        settings = options.settings
        settings.maxDownloadRate = [settings.maxDownloadRate, download].compactMap { $0 }.min()
        settings.maxUploadRate = [settings.maxUploadRate, upload].compactMap { $0 }.min()
        settings.maxBufferedByteCount = min(settings.maxBufferedByteCount, buffered)
        settings.listenPort = loop.listenPort
        settings.announcesLocally = loop.options.announcesLocally
        step(.settingsChanged(settings))
    }

    func stop(now: Instant) {
        if case .checking(let run) = mode { run?.cancel() }
        verification?.cancel()
        forgetSuspects()
        mode = .stopping
        stopDeadline = now + .seconds(6)
        step(.stopped)
        record()
    }

    /// Whether trackers know that it goes, or have had their time.
    func isTold(now: Instant) -> Bool { session.isStopped || stopDeadline.map { $0 <= now } ?? true }

    var isRunning: Bool {
        if case .running = mode { return true }
        return false
    }

    /// Whether nobody who calls can be answered soon.
    var isAway: Bool {
        switch mode {
        case .checking, .running: false
        case .paused, .failed, .stopping: true
        }
    }

    func fail(_ reason: String) {
        if case .stopping = mode { return }
        if isRunning { step(.paused) }
        forgetSuspects()
        mode = .failed(reason)
        loop.tell(.failed(id, reason))
    }

    /// What a session that has just begun is told besides.
    func begin() {
        trackers.resolveAll(for: self)
        if !options.peers.isEmpty { step(.peersFound(options.peers, .person)) }
        for peer in namedPeers {
            let (inbox, id) = (loop.inbox, id)
            loop.resolvers.add {
                // One that has no address is none.
                guard let found = try? SocketAddress.lookUp(peer.host, port: peer.port) else { return }
                inbox.post { loop in loop.transfers[id]?.step(.peersFound(found, .person)) }
            }
        }
    }

    func wantedPieces(_ content: PreparedTorrent.Content) -> Bitfield {
        let layout = content.layout
        var wanted = Bitfield(count: layout.pieceCount)
        guard !options.isSeedOnly else { return wanted }
        guard let files = options.wantedFiles else { return Bitfield(count: layout.pieceCount, isFull: true) }
        for file in files where layout.files.indices.contains(file) {
            for piece in layout.pieces(ofFile: file) { wanted.insert(piece) }
        }
        return wanted
    }

    // MARK: - Steps

    /// Tells the session what has happened, and does what it wants; from within, after what is under way.
    func step(_ event: TorrentSession.Event) {
        waiting.append(event)
        guard !isStepping else { return }
        isStepping = true
        defer { isStepping = false }
        var index = 0
        while index < waiting.count {
            let next = waiting[index]
            index += 1
            var actions = loop.borrowActions()
            session.step(next, now: loop.now, into: &actions)
            for action in actions { perform(action) }
            loop.giveBack(&actions)
        }
        waiting.removeAll(keepingCapacity: true)
    }

    /// The buffer for a block whose head has come; nil where nobody wants it.
    func place(of block: Block, on link: LinkID) -> PieceBuffer? {
        guard session.blockBegins(block, on: link, now: loop.now) == .keep, let layout = content?.layout,
            layout.holds(block)
        else { return nil }
        return buffer(Int(block.piece), layout)
    }

    func buffer(_ piece: Int, _ layout: PieceLayout) -> PieceBuffer {
        if let buffer = buffers[piece] { return buffer }
        let buffer = loop.pool.take(layout.length(ofPiece: piece))
        buffers[piece] = buffer
        return buffer
    }

    func connection(_ link: LinkID) -> Connection? {
        guard Int(link.slot) < connections.count, let connection = connections[Int(link.slot)],
            connection.link == link
        else { return nil }
        return connection
    }

    func adopt(_ connection: Connection, _ link: LinkID) {
        connection.transfer = self
        connection.link = link
        while connections.count <= Int(link.slot) { connections.append(nil) }
        connections[Int(link.slot)] = connection
    }

    /// A connection has ended by itself.
    func ended(_ connection: Connection, _ end: LinkEnd) {
        guard let link = connection.link else { return }
        let address = connection.address
        connection.close()
        if Int(link.slot) < connections.count, connections[Int(link.slot)] === connection {
            connections[Int(link.slot)] = nil
        }
        step(.linkClosed(link, end))
        loop.tell(.peerLeft(id, address, reason: end.description))
    }
}

/// Bytes a second, smoothed over some five seconds.
struct SmoothedRate {
    private var total = 0
    private var rate = 0.0

    /// Takes the total, once a second.
    mutating func sample(_ total: Int, seconds: Double) {
        guard seconds > 0 else { return }
        let now = Double(max(0, total - self.total)) / seconds
        self.total = total
        rate = rate == 0 ? now : rate * 0.75 + now * 0.25
        if rate < 1 { rate = 0 }
    }

    var bytesPerSecond: Int { Int(rate) }
}

// A peer with many transfers: its engine, its record, and what it is told to do.

import Datagrams
import Foundation
import Logging
import PeerLogic
import Primitives
import Torrents
import Transfers
import Web
import Wire

/// A peer with many transfers, which survives its restart: what it has answered is in its record.
///
/// A transfer is in the record before anybody hears that it was added, and out of it before its data goes. The engine
/// knows nothing of the record: at the start each torrent is handed to it as it was the last time.
public actor PeerHost {
    /// A transfer as this process knows it.
    struct Entry {
        var row: TransferRow
        /// Nil where the engine would not take it.
        var id: TransferID?
        var name: String
        /// Of the torrent's own file or folder; nil while the metadata is not known.
        var root: String?
        /// Bytes of all files; nil while the metadata is not known.
        var byteCount: Int?
        /// Tiers of URLs.
        var trackers: [[String]]
        /// Why the engine would not take it.
        var problem: PeerRefusal?
        /// Whether it rests since its ratio is reached.
        var hasReachedRatio = false
    }

    /// How often ratios are looked at.
    private static let ratioPace = Swift.Duration.seconds(2)
    /// After how many looks the totals are noted.
    private static let looksPerNote = 30

    nonisolated let options: PeerHostOptions
    nonisolated let directory: PeerDirectory
    nonisolated let limits: PeerLimits
    nonisolated let record: PeerRecord
    nonisolated let engine: TransferEngine
    nonisolated let creations: Creations
    /// Where peers may call; known once the engine listens.
    var listenAddresses: [SocketAddress] = []
    var maxDown: Int?
    var maxUp: Int?
    var entries: [InfoHash: Entry] = [:]
    /// In the order in which they were added.
    var order: [InfoHash] = []
    /// Those that are just being added or removed.
    var busy: Set<InfoHash> = []
    /// Those whose data is being deleted, by the engine's name for them.
    var leaving: [TransferID: InfoHash] = [:]
    private var tasks: [Task<Void, Never>] = []
    private var isStopping = false

    // MARK: - Start

    /// Opens the record and the sockets, and begins with all transfers that there were.
    ///
    /// - Throws: `PeerHostError`.
    public static func start(_ options: PeerHostOptions) async throws(PeerHostError) -> PeerHost {
        let (events, event) = AsyncStream.makeStream(of: TransferEvent.self, bufferingPolicy: .unbounded)
        let host = try PeerHost(options) { if Self.concerns($0) { event.yield($0) } }
        do throws(PeerRefusal) {
            try await host.begin(events)
        } catch {
            await host.engine.stop()
            throw PeerHostError(error.words)
        }
        return host
    }

    private init(
        _ options: PeerHostOptions, _ onEvent: @escaping @Sendable (TransferEvent) -> Void
    ) throws(PeerHostError) {
        self.options = options
        limits = PeerLimits(fileCount: PeerLimits.raisedFileCount())
        directory = try PeerDirectory(options.directory)
        record = try PeerRecord(directory: directory.path)
        creations = Creations(directory: directory, version: options.version)
        do throws(PeerRefusal) {
            (maxDown, maxUp) = try record.limits()
        } catch {
            throw PeerHostError(error.words)
        }
        if let given = options.maxDown { maxDown = given }
        if let given = options.maxUp { maxUp = given }
        var engine = EngineOptions()
        engine.listenAddresses = options.listen
        engine.announcesLocally = options.announcesLocally
        engine.maxTransferCount = limits.transfers * 2
        engine.maxConnectionCount = limits.connections
        engine.maxOpenFileCount = limits.openFilesPerTransfer
        engine.maxDownloadRate = maxDown
        engine.maxUploadRate = maxUp
        engine.userAgent = "Swarmkeeper/\(options.version)"
        do throws(TransferError) {
            self.engine = try TransferEngine(engine, onEvent: onEvent)
        } catch {
            throw PeerHostError(error.description)
        }
    }

    /// The few events that change what is kept: all others are for those who look at a transfer closely.
    private static func concerns(_ event: TransferEvent) -> Bool {
        switch event {
        case .checked, .metadataReceived, .removed, .fileChanged, .failed: true
        case .observed(_, .completed), .observed(_, .diskTrouble), .observed(_, .diskMended): true
        case .listening, .added, .observed, .unusable, .peerLeft, .verified: false
        }
    }

    private func begin(_ events: AsyncStream<TransferEvent>) async throws(PeerRefusal) {
        if options.maxDown != nil || options.maxUp != nil { try record.setLimits(maxDown: maxDown, maxUp: maxUp) }
        listenAddresses = await engine.listenAddresses()
        for row in try record.transfers().prefix(limits.transfers) {
            var entry = Entry(row: row, name: "\(row.infoHash)", trackers: [])
            await begin(&entry, source: try record.source(row.infoHash) ?? [])
            entries[row.infoHash] = entry
            order.append(row.infoHash)
        }
        tasks = [
            Task { for await event in events { await self.heard(event) } },
            Task { await self.lookAfter() },
            Task { await self.creations.run(for: self) },
        ]
    }

    /// Hands a transfer to the engine; what is in its way is kept in the entry.
    func begin(_ entry: inout Entry, source: [UInt8]) async {
        do throws(PeerRefusal) {
            let torrent = try KnownTorrent(source, isMagnet: entry.row.isMagnet)
            (entry.name, entry.trackers) = (torrent.name, torrent.trackers)
            (entry.root, entry.byteCount) = (torrent.root, torrent.byteCount)
            entry.id = try await engaged(entry.row, torrent)
            entry.problem = nil
        } catch {
            entry.problem = error
        }
    }

    private func engaged(_ row: TransferRow, _ torrent: KnownTorrent) async throws(PeerRefusal) -> TransferID {
        let parts = try PeerDirectory.parts(row.directory)
        var transfer = TransferOptions(directory: directory.absolute(parts))
        transfer.stateDirectory = directory.hiddenFolder
        transfer.wantedFiles = row.files.map { Set($0) }
        transfer.isPaused = row.isPaused
        transfer.isSeedOnly = row.isSeedOnly
        transfer.extraTrackers = row.extraTrackers
        transfer.settings = settings(of: row)
        do throws(TransferError) {
            return try await engine.add(torrent.source, transfer)
        } catch {
            throw PeerRefusal(error)
        }
    }

    /// The ratio is not the engine's: it counts over restarts.
    func settings(of row: TransferRow) -> SessionSettings {
        var settings = SessionSettings()
        settings.maxLinks = row.maxPeers ?? options.maxPeers
        settings.maxDownloadRate = row.maxDown
        settings.maxUploadRate = row.maxUp
        settings.exchangesPeers = options.exchangesPeers
        return settings
    }

    // MARK: - What happens

    /// The transfer that the engine has under this name.
    func hash(of id: TransferID) -> InfoHash? { order.first { entries[$0]?.id == id } }

    private func heard(_ event: TransferEvent) async {
        switch event {
        case .checked(let id, _, _):
            guard let hash = hash(of: id) else { return }
            // A check that somebody wanted of a transfer that rests is no reason to begin with it.
            if entries[hash]?.row.isPaused == true { try? await engine.pause(id) }
            if let snapshot = try? await engine.snapshot(id), snapshot.missing == 0 { completed(hash) }
        case .observed(let id, .completed): if let hash = hash(of: id) { completed(hash) }
        case .metadataReceived(let id, let name, let totalLength):
            guard let hash = hash(of: id) else { return }
            entries[hash]?.name = name
            entries[hash]?.byteCount = totalLength
            await keepMetadata(hash, id)
        case .removed(let id):
            guard let hash = leaving.removeValue(forKey: id), entries[hash] == nil else { return }
            directory.forgetProgress(hash)
        case .fileChanged(let id, let path):
            warn(id, "another program has changed \(quoted(path)), which is looked at again")
        case .failed(let id, let reason): warn(id, "does not go on by itself: \(reason)")
        case .observed(let id, .diskTrouble(let problem)): warn(id, "waits for the disk: \(problem.description)")
        case .observed(let id, .diskMended): warn(id, "goes on: the disk takes data again")
        case .listening, .added, .observed, .unusable, .peerLeft, .verified: break
        }
    }

    private func warn(_ id: TransferID, _ words: String) {
        guard let hash = hash(of: id), let entry = entries[hash] else { return }
        options.logger.warning("\(quoted(entry.name)) (\(hash)): \(words)")
    }

    private func completed(_ hash: InfoHash) {
        guard entries[hash]?.row.completedAt == nil else { return }
        entries[hash]?.row.completedAt = Clock.read().wall.milliseconds
        if let row = entries[hash]?.row { note { () throws(PeerRefusal) in try record.update(row) } }
    }

    /// What peers have given is not to be had from them again at the next start.
    private func keepMetadata(_ hash: InfoHash, _ id: TransferID) async {
        guard let info = try? await engine.metadata(id), let entry = entries[hash] else { return }
        let file = KnownTorrent.file(info: info, trackers: entry.trackers)
        guard let torrent = try? KnownTorrent(file, isMagnet: false), torrent.infoHash == hash else { return }
        entries[hash]?.row.isMagnet = false
        entries[hash]?.root = torrent.root
        note { () throws(PeerRefusal) in try record.setFile(hash, file) }
    }

    /// What the disk does not take now is told in the log: nobody waits for an answer.
    private func note(_ body: () throws(PeerRefusal) -> Void) {
        do throws(PeerRefusal) {
            try body()
        } catch {
            options.logger.warning("\(error.words)")
        }
    }

    /// Pauses what has reached its ratio, and notes the totals now and then.
    private func lookAfter() async {
        var looks = 0
        while !isStopping {
            try? await Task.sleep(for: Self.ratioPace)
            guard !isStopping, !Task.isCancelled else { return }
            looks += 1
            if entries.values.contains(where: { $0.row.ratio != nil && !$0.row.isPaused }) { await checkRatios() }
            if looks.isMultiple(of: Self.looksPerNote) { await noteTotals() }
        }
    }

    private func checkRatios() async {
        for snapshot in await engine.summaries() {
            guard case .seeding = snapshot.state, let hash = hash(of: snapshot.id), let entry = entries[hash],
                let wanted = entry.row.ratio, let ratio = Self.ratio(entry, snapshot), ratio >= wanted
            else { continue }
            entries[hash]?.row.isPaused = true
            entries[hash]?.hasReachedRatio = true
            if let row = entries[hash]?.row { note { () throws(PeerRefusal) in try record.update(row) } }
            try? await engine.pause(snapshot.id)
            options.logger.notice("\(hash) has reached its ratio, and rests")
        }
    }

    /// Sent for received; where nothing was received, for the size.
    static func ratio(_ entry: Entry, _ snapshot: TransferSnapshot?) -> Double? {
        let received = entry.row.received + (snapshot?.received ?? 0)
        let sent = entry.row.sent + (snapshot?.sent ?? 0)
        let base = received > 0 ? received : entry.byteCount ?? 0
        return base > 0 ? Double(sent) / Double(base) : nil
    }

    private func noteTotals() async {
        var totals: [(hash: InfoHash, received: Int, sent: Int)] = []
        for snapshot in await engine.summaries() where snapshot.received + snapshot.sent > 0 {
            guard let hash = hash(of: snapshot.id), let row = entries[hash]?.row else { continue }
            totals.append((hash, row.received + snapshot.received, row.sent + snapshot.sent))
        }
        let noted = totals
        if !noted.isEmpty { note { () throws(PeerRefusal) in try record.setTotals(noted) } }
    }

    // MARK: - Stop

    /// Ends all transfers in good order: trackers are told within some seconds, what is verified is noted.
    public func stop() async {
        guard !isStopping else { return }
        isStopping = true
        creations.stop()
        for task in tasks { task.cancel() }
        await noteTotals()
        await engine.stop()
        record.close()
    }
}

extension PeerRefusal {
    init(_ error: TransferError) {
        let kind: Kind =
            switch error.kind {
            case .usage: .invalid
            case .duplicate: .conflict
            case .unknown: .unknown
            case .disk, .network: .disk
            case .stopped: .stopped
            }
        self.init(kind, error.description)
    }
}

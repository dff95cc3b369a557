// What the page asks of the peer.

import Client
import Datagrams
import Primitives
import Transfers
import Web
import Wire

extension PeerHost: TransferProvider {
    /// Bytes a second.
    private static let rates = 1_024...1 << 40
    private static let peerCounts = 1...1_000
    private static let ratios = 0.0...10_000.0

    private static func unknown(_ hash: InfoHash) -> PeerRefusal {
        PeerRefusal(.unknown, "there is no transfer of the info hash \(hash) here")
    }

    private func entry(_ hash: InfoHash) throws(PeerRefusal) -> Entry {
        guard let entry = entries[hash] else { throw Self.unknown(hash) }
        return entry
    }

    private func snapshot(_ entry: Entry) async -> TransferSnapshot? {
        guard let id = entry.id else { return nil }
        return try? await engine.snapshot(id)
    }

    private func shown(_ hash: InfoHash) async throws(PeerRefusal) -> PeerTransfer {
        let entry = try entry(hash)
        return PeerTransfer(entry, await snapshot(entry))
    }

    // MARK: - Looking

    /// How all is.
    public func state() async -> PeerState {
        var snapshots: [TransferID: TransferSnapshot] = [:]
        for snapshot in await engine.summaries() { snapshots[snapshot.id] = snapshot }
        let transfers = order.compactMap { hash in
            entries[hash].map { entry in PeerTransfer(entry, entry.id.flatMap { snapshots[$0] }) }
        }
        return PeerState(transfers: transfers, creations: creations.all, settings: settings)
    }

    private var settings: PeerSettings {
        var settings = PeerSettings(
            listen: listenAddresses.map { "\($0)" }, directory: directory.path,
            localDiscovery: options.announcesLocally, version: options.version)
        (settings.maxDown, settings.maxUp) = (maxDown, maxUp)
        return settings
    }

    /// One transfer.
    public func transfer(_ hash: InfoHash) async throws(PeerRefusal) -> PeerTransferDetail {
        let entry = try entry(hash)
        return PeerTransferDetail(
            entry, await snapshot(entry), maxPeers: entry.row.maxPeers ?? options.maxPeers, now: Clock.read())
    }

    /// The .torrent file of a transfer.
    public func file(_ hash: InfoHash) async throws(PeerRefusal) -> [UInt8] {
        let entry = try entry(hash)
        guard !entry.row.isMagnet else {
            throw PeerRefusal(
                .conflict, "only the magnet link is known of this torrent; its file can be had once a peer has given it"
            )
        }
        guard let bytes = try record.source(hash) else { throw Self.unknown(hash) }
        return bytes
    }

    /// What is in a folder below the peer's directory.
    public func folder(_ path: String) async throws(PeerRefusal) -> PeerFolder {
        let directory = directory
        return try await onOwnThread { () throws(PeerRefusal) in try directory.list(path) }
    }

    // MARK: - Adding

    /// Adds a torrent; one that is there already stays as it is.
    public func add(_ addition: PeerAddition) async throws(PeerRefusal) -> (transfer: PeerTransfer, isNew: Bool) {
        let torrent = try await onOwnThread { () throws(PeerRefusal) in
            switch addition.source {
            case .file(let bytes): try KnownTorrent(bytes, isMagnet: false)
            case .magnet(let text): try KnownTorrent(Array(text.utf8), isMagnet: true)
            }
        }
        var row = TransferRow(infoHash: torrent.infoHash)
        (row.directory, row.isPaused) = (addition.directory, addition.isPaused)
        return try await add(torrent, row)
    }

    /// Seeds a torrent that was made of a path: nothing is fetched and nothing written.
    func seed(_ file: [UInt8], at path: String, extraTrackers: [String]) async throws(PeerRefusal) {
        let torrent = try KnownTorrent(file, isMagnet: false)
        var row = TransferRow(infoHash: torrent.infoHash)
        row.directory = path.split(separator: "/").dropLast().joined(separator: "/")
        (row.isSeedOnly, row.extraTrackers) = (true, extraTrackers)
        _ = try await add(torrent, row)
    }

    private func add(
        _ torrent: KnownTorrent, _ wanted: TransferRow
    ) async throws(PeerRefusal) -> (transfer: PeerTransfer, isNew: Bool) {
        let hash = torrent.infoHash
        let parts = try PeerDirectory.parts(wanted.directory)
        if entries[hash] != nil { return (try await shown(hash), false) }
        guard !busy.contains(hash), !leaving.values.contains(hash) else {
            throw PeerRefusal(.conflict, "the torrent is just being added or removed; try again in a moment")
        }
        guard entries.count + busy.count < limits.transfers else {
            throw PeerRefusal(.full, "there are \(limits.transfers) transfers, as many as may be; remove one")
        }
        busy.insert(hash)
        defer { busy.remove(hash) }
        try directory.make(parts)
        var row = wanted
        (row.isMagnet, row.addedAt) = (torrent.isMagnet, Clock.read().wall.milliseconds)
        var entry = Entry(row: row, name: torrent.name, trackers: torrent.trackers)
        await begin(&entry, source: torrent.bytes)
        if let problem = entry.problem { throw problem }
        do throws(PeerRefusal) {
            try record.insert(row, source: torrent.bytes)
        } catch {
            if let id = entry.id { try? await engine.remove(id) }
            throw error
        }
        entries[hash] = entry
        order.append(hash)
        return (try await shown(hash), true)
    }

    // MARK: - Changing

    /// Changes what holds for one transfer.
    public func change(
        _ hash: InfoHash, _ change: PeerTransferChange
    ) async throws(PeerRefusal) -> PeerTransferDetail {
        var row = try entry(hash).row
        if case .set(let value) = change.maxDown { row.maxDown = try Self.rate(value, "maxDown") }
        if case .set(let value) = change.maxUp { row.maxUp = try Self.rate(value, "maxUp") }
        if case .set(let value) = change.maxPeers {
            guard value.map(Self.peerCounts.contains) ?? true else {
                throw PeerRefusal(.invalid, "maxPeers is 1 to \(Self.peerCounts.upperBound)")
            }
            row.maxPeers = value
        }
        if case .set(let value) = change.ratio {
            guard value.map(Self.ratios.contains) ?? true else {
                throw PeerRefusal(.invalid, "ratio is 0 to \(Int(Self.ratios.upperBound)), or null to seed for ever")
            }
            row.ratio = value
        }
        if case .set(let files) = change.files {
            guard files?.isEmpty != true else {
                throw PeerRefusal(.invalid, "choose one file at least, or pause the transfer")
            }
            row.files = files.map { Array(Set($0)).sorted() }
            try await choose(row.files, hash)
        }
        if let id = try entry(hash).id {
            do throws(TransferError) {
                try await engine.setSettings(id, settings(of: row))
            } catch {
                throw PeerRefusal(error)
            }
        }
        // What has changed meanwhile stays.
        var current = try entry(hash).row
        (current.maxDown, current.maxUp, current.maxPeers) = (row.maxDown, row.maxUp, row.maxPeers)
        (current.ratio, current.files) = (row.ratio, row.files)
        try record.update(current)
        entries[hash]?.row = current
        entries[hash]?.hasReachedRatio = false
        return try await transfer(hash)
    }

    private func choose(_ files: [Int]?, _ hash: InfoHash) async throws(PeerRefusal) {
        let entry = try entry(hash)
        guard !entry.row.isMagnet, let id = entry.id else {
            throw PeerRefusal(
                .conflict, "the torrent's files are not known yet; choose among them once its metadata has come")
        }
        guard !entry.row.isSeedOnly else {
            throw PeerRefusal(.conflict, "this transfer only gives what is here, so there is nothing to choose")
        }
        do throws(TransferError) {
            try await engine.setWanted(id, files: files.map { Set($0) })
        } catch {
            throw PeerRefusal(error)
        }
    }

    private static func rate(_ value: Int?, _ name: String) throws(PeerRefusal) -> Int? {
        guard value.map(rates.contains) ?? true else {
            throw PeerRefusal(
                .invalid, "\(name) is \(rates.lowerBound) to \(rates.upperBound) bytes a second, or null for no limit")
        }
        return value
    }

    /// Changes the limits for all transfers together.
    public func change(
        maxDown down: PeerChange<Int>, maxUp up: PeerChange<Int>
    ) async throws(PeerRefusal) -> PeerSettings {
        var wanted = (down: maxDown, up: maxUp)
        if case .set(let value) = down { wanted.down = try Self.rate(value, "maxDown") }
        if case .set(let value) = up { wanted.up = try Self.rate(value, "maxUp") }
        try record.setLimits(maxDown: wanted.down, maxUp: wanted.up)
        (maxDown, maxUp) = wanted
        do throws(TransferError) {
            try await engine.setLimits(download: maxDown, upload: maxUp)
        } catch {
            throw PeerRefusal(error)
        }
        return settings
    }

    // MARK: - Orders

    /// Has a transfer do something.
    public func order(_ hash: InfoHash, _ action: PeerAction) async throws(PeerRefusal) -> PeerTransfer {
        var entry = try entry(hash)
        switch action {
        case .pause: try setPaused(hash, true)
        case .resume:
            if entry.hasReachedRatio {
                throw PeerRefusal(.conflict, "the transfer has reached its ratio; set a higher one, or none, first")
            }
            try setPaused(hash, false)
        case .announce:
            guard !entry.row.isPaused else {
                throw PeerRefusal(.conflict, "the transfer is paused, so no tracker is asked; resume it first")
            }
        case .recheck: break
        }
        if entry.id == nil, action != .pause {
            // Whatever was in the way may be gone.
            entry.row = try self.entry(hash).row
            await begin(&entry, source: try record.source(hash) ?? [])
            entries[hash] = entry
            if let problem = entry.problem { throw PeerRefusal(.conflict, problem.words) }
        }
        guard let id = entry.id else { return try await shown(hash) }
        do throws(TransferError) {
            switch action {
            case .pause: try await engine.pause(id)
            case .resume: try await engine.resume(id)
            case .recheck: try await engine.recheck(id)
            case .announce: try await engine.update(id)
            }
        } catch {
            throw PeerRefusal(error)
        }
        return try await shown(hash)
    }

    private func setPaused(_ hash: InfoHash, _ isPaused: Bool) throws(PeerRefusal) {
        var row = try entry(hash).row
        guard row.isPaused != isPaused else { return }
        row.isPaused = isPaused
        try record.update(row)
        entries[hash]?.row = row
    }

    /// Names a peer of a torrent.
    public func addPeer(_ hash: InfoHash, _ address: SocketAddress) async throws(PeerRefusal) -> PeerTransfer {
        let entry = try entry(hash)
        guard let id = entry.id, !entry.row.isPaused else {
            throw PeerRefusal(.conflict, "the transfer rests, so no peer is called; resume it first")
        }
        do throws(TransferError) {
            try await engine.addPeers(id, [address])
        } catch {
            throw PeerRefusal(error)
        }
        return try await shown(hash)
    }

    // MARK: - Removing

    /// Forgets a transfer, and deletes the torrent's own files where that is wanted.
    public func remove(_ hash: InfoHash, deletingData: Bool) async throws(PeerRefusal) {
        let entry = try entry(hash)
        if deletingData {
            guard let root = entry.root else {
                // Nothing is known of its files, so there are none.
                return try await forget(hash, entry, deletingData: false)
            }
            let twin = entries.values.first { other in
                other.row.infoHash != hash && other.root == root && other.row.directory == entry.row.directory
            }
            if let twin {
                throw PeerRefusal(
                    .conflict,
                    "\(quoted(twin.name)) (\(twin.row.infoHash)) has its files at the same place; remove that one "
                        + "first, or this one without its data")
            }
        }
        try await forget(hash, entry, deletingData: deletingData)
    }

    private func forget(_ hash: InfoHash, _ entry: Entry, deletingData: Bool) async throws(PeerRefusal) {
        guard !deletingData || entry.id != nil else {
            throw PeerRefusal(
                .conflict,
                "the data cannot be deleted: \(entry.problem?.words ?? "nobody knows where it is"); "
                    + "remove the transfer without its data")
        }
        try record.delete(hash)
        entries[hash] = nil
        order.removeAll { $0 == hash }
        guard let id = entry.id else { return }
        leaving[id] = hash
        busy.insert(hash)
        defer { busy.remove(hash) }
        do throws(TransferError) {
            try await engine.remove(id, deletingData: deletingData)
        } catch {
            leaving[id] = nil
            throw PeerRefusal(error)
        }
    }

    // MARK: - Torrents that are made

    /// Begins to make a torrent.
    public func create(_ order: PeerCreationOrder) async throws(PeerRefusal) -> PeerCreation {
        let creations = creations
        return try await onOwnThread { () throws(PeerRefusal) in try creations.begin(order) }
    }

    /// Cancels a torrent that is being made, or forgets one that is done.
    public func endCreation(_ id: String) async throws(PeerRefusal) { try creations.end(id) }

    /// The .torrent file that was made.
    public func creationFile(_ id: String) async throws(PeerRefusal) -> [UInt8] {
        let creations = creations
        return try await onOwnThread { () throws(PeerRefusal) in try creations.bytes(of: id) }
    }
}

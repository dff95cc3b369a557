// All that the trackers of a cluster agree on.

import Primitives
import Wire

/// All that the trackers of a cluster agree on: swarms, access rules, registered torrents, accounts, torrent files.
///
/// Changed by entries of the log alone, in order, and by nothing else: no clock, no chance, no configuration. So equal
/// logs make equal states.
///
/// Each update touches one *chunk* only: chunk 0 is access rules, registry and accounts, chunk s+1 is shard s of the
/// swarms, and those behind are torrent files. That is why chunks that were written down at different indices are one
/// state together with the log.
public struct ReplicatedState: Sendable {
    /// The cluster's, as of when this state was begun: the keys of all tables derive from it.
    let secret: ClusterSecret
    /// The swarms.
    public private(set) var table: SwarmTable
    /// The access rules in force.
    public private(set) var access: AccessControl
    /// The torrents that are known by name.
    public private(set) var registry: TorrentRegistry
    /// The ids that vote, in rising order; empty before the cluster is formed, and in survivor mode.
    public private(set) var members: [UInt32] = []
    /// The interval that clients are told.
    public private(set) var told = ToldInterval()
    /// Accounts and sessions of the console.
    public internal(set) var accounts: Accounts
    /// Torrent files that were uploaded there.
    public internal(set) var files: TorrentFiles
    /// Requests of a group that the last entries have settled.
    private var settledKeys = SettledKeys()
    /// The last entry that was applied.
    public private(set) var index: UInt64 = 0
    /// The running hash of the log up to and including that entry.
    public private(set) var chain: UInt64 = 0
    /// The cluster time of that entry.
    public private(set) var time = WallTime(milliseconds: 0)
    /// The cluster time of the entry that is being applied: earlier than `time` where a chunk that was read back is
    /// ahead of the log.
    private(set) var entryTime = WallTime(milliseconds: 0)
    /// Its index: what is changed at the console is told by it.
    private(set) var entryIndex: UInt64 = 0
    /// The id of the master that made it.
    private var entryOrigin: UInt32 = 0
    /// Chunks that have changed since they were last written down.
    private var changed: [Bool]
    /// The number of the first chunk of torrent files: those below are chunk 0 and the shards.
    let firstFileChunk: Int

    /// The state before the first entry.
    ///
    /// - Parameters:
    ///   - secret: the cluster's; the keys of all tables derive from it.
    ///   - shardCount: into how many shards the swarm table is cut: a power of two.
    ///   - keepsMergeData: whether to remember what a merge with another repository needs: survivor mode.
    public init(secret: ClusterSecret, shardCount: UInt32, keepsMergeData: Bool = false) {
        self.secret = secret
        let keys = SipHash(key0: secret.w0, key1: secret.w1)
        table = SwarmTable(
            key: keys.mac(Array("swarm table".utf8)), shardCount: shardCount, keepsMergeData: keepsMergeData)
        access = AccessControl(secret: keys.mac(Array("access".utf8)))
        registry = TorrentRegistry(secret: keys.mac(Array("registry".utf8)))
        accounts = Accounts(secret: keys.mac(Array("accounts".utf8)), keepsMergeData: keepsMergeData)
        files = TorrentFiles(
            secret: keys.mac(Array("files".utf8)), chunkCount: TorrentFiles.chunkCount(shardCount: shardCount),
            keepsMergeData: keepsMergeData)
        firstFileChunk = Int(shardCount) + 1
        changed = Array(repeating: false, count: ReplicatedState.chunkCount(shardCount: shardCount))
    }

    /// Chunks of a snapshot whose swarms are cut into so many shards: one for each, chunk 0, and torrent files.
    static func chunkCount(shardCount: UInt32) -> Int {
        Int(shardCount) + 1 + TorrentFiles.chunkCount(shardCount: shardCount)
    }

    /// Chunks of a snapshot.
    public var chunkCount: Int { changed.count }

    /// The state's fingerprint: equal for equal contents, in whatever order they lie.
    @inline(__always)
    public var digest: UInt64 {
        table.digest &+ access.digest &+ registry.digest &+ membersDigest &+ told.digest &+ accounts.digest
            &+ files.digest
    }

    /// The last entry that was applied, with its history.
    public var position: Position { Position(index: index, chain: chain) }

    @inline(__always)
    private var membersDigest: UInt64 {
        members.isEmpty ? 0 : members.reduce(0x4D65_6D62_6572_7321) { mixed($0 ^ UInt64($1)) }
    }

    // MARK: Applying

    /// The outcome of an update that was applied, for the answer and the counters.
    enum Outcome {
        case announced(SwarmTable.Place)
        case expired(peers: Int)
        case accessChanged
        case registryChanged
        case membersChanged
        case intervalChanged
        case merged
        case consoleChanged
    }

    /// Begins an entry: its updates follow, then nothing else until the next.
    ///
    /// - Parameters:
    ///   - header: the entry's.
    ///   - chain: the running hash of the log up to and including it.
    mutating func begin(_ header: EntryHeader, chain: UInt64) {
        if header.index > index {
            index = header.index
            self.chain = chain
        }
        time = max(time, header.time)
        entryTime = header.time
        entryIndex = header.index
        entryOrigin = header.origin
    }

    /// Notes the requests of a group that the entry settles: those that it answers, or that were refused.
    mutating func note(_ tickets: Tickets) {
        for ticket in tickets.tickets where tickets.life(of: ticket) == Tickets.group {
            settledKeys.insert(SettledKey(key: ticket.number, seconds: entryTime.seconds))
            changed[0] = true
        }
    }

    /// The requests of a group that were settled lately.
    public var settled: [SettledKey] { settledKeys.isEmpty ? [] : settledKeys.recent(at: time) }

    /// Applies a whole entry, for whoever keeps a state without a node.
    public mutating func apply(entry bytes: [UInt8]) throws(EntryDamaged) {
        let entry = try Entry(bytes)
        begin(entry.header, chain: entry.chain)
        var cursor = UpdateCursor(entry.header)
        while let update = try cursor.next(bytes) { apply(update) }
    }

    /// Applies one update of the entry that was begun.
    @discardableResult
    mutating func apply(_ update: Update) -> Outcome {
        switch update {
        case .announceIPv4(let announce):
            let place = table.apply(announce, time: entryTime.seconds, origin: entryOrigin)
            changed[place.shard + 1] = true
            return .announced(place)
        case .announceIPv6(let announce):
            let place = table.apply(announce, time: entryTime.seconds, origin: entryOrigin)
            changed[place.shard + 1] = true
            return .announced(place)
        case .expire(let shard, let seenBefore, let emptyBefore):
            if shard < firstFileChunk - 1 { changed[Int(shard) + 1] = true }
            return .expired(peers: table.expire(shard: shard, seenBefore: seenBefore, emptyBefore: emptyBefore))
        case .emptyShard(let shard):
            if shard < firstFileChunk - 1 { changed[Int(shard) + 1] = true }
            return .expired(peers: table.empty(shard: shard))
        case .registerTorrent(let infoHash, let byteCount, let name):
            let name = String(decoding: name, as: UTF8.self)
            registry.put(RegisteredTorrent(infoHash: infoHash, name: name, byteCount: byteCount))
            changed[0] = true
            return .registryChanged
        case .unregisterTorrent(let infoHash):
            registry.remove(infoHash)
            changed[0] = true
            return .registryChanged
        case .setAccessMode, .listInfoHash, .unlistInfoHash, .putUser, .removeUser:
            applyAccess(update)
            changed[0] = true
            return .accessChanged
        case .setMembers(let members):
            self.members = members
            changed[0] = true
            return .membersChanged
        case .setInterval(let seconds):
            told.change(to: seconds, at: entryTime.seconds)
            changed[0] = true
            return .intervalChanged
        case .mergePeer, .mergeStop, .mergeCompleted:
            changed[chunk(of: update)] = true
            merge(update)
            return .merged
        case .console(let update):
            apply(update)
            return .consoleChanged
        }
    }

    private mutating func merge(_ update: Update) {
        switch update {
        case .mergePeer(let peer): table.merge(peer)
        case .mergeStop(let infoHash, let address, let time):
            table.mergeStop(infoHash, address, at: time, time: entryTime.seconds)
        case .mergeCompleted(let infoHash, let origin, let count):
            table.mergeCompleted(
                CompletedCount(infoHash: infoHash, origin: origin, count: count), time: entryTime.seconds)
        case .announceIPv4, .announceIPv6, .expire, .registerTorrent, .unregisterTorrent, .setAccessMode,
            .listInfoHash, .unlistInfoHash, .putUser, .removeUser, .setMembers, .setInterval, .emptyShard, .console:
            preconditionFailure("not an update of a merge")
        }
    }

    private mutating func applyAccess(_ update: Update) {
        switch update {
        case .setAccessMode(let mode): access.setMode(AccessMode(rawValue: mode) ?? .open)
        case .listInfoHash(let infoHash): access.list(infoHash)
        case .unlistInfoHash(let infoHash): access.unlist(infoHash)
        case .putUser(let name, let passkey):
            access.put(User(name: String(decoding: name, as: UTF8.self), passkey: passkey))
        case .removeUser(let name): access.removeUser(named: String(decoding: name, as: UTF8.self))
        case .announceIPv4, .announceIPv6, .expire, .registerTorrent, .unregisterTorrent, .setMembers, .mergePeer,
            .mergeStop, .mergeCompleted, .setInterval, .emptyShard, .console:
            preconditionFailure("not an update of the access rules")
        }
    }

    /// The chunk that an update touches; one that is not there where the update names what no tracker has.
    func chunk(of update: Update) -> Int {
        switch update {
        case .announceIPv4(let announce): Int(table.shard(of: announce.infoHash)) + 1
        case .announceIPv6(let announce): Int(table.shard(of: announce.infoHash)) + 1
        case .expire(let shard, _, _), .emptyShard(let shard):
            shard < firstFileChunk - 1 ? Int(shard) + 1 : .max
        case .registerTorrent, .unregisterTorrent, .setAccessMode, .listInfoHash, .unlistInfoHash, .putUser,
            .removeUser, .setMembers, .setInterval:
            0
        case .mergePeer(let peer): Int(table.shard(of: peer.infoHash)) + 1
        case .mergeStop(let infoHash, _, _), .mergeCompleted(let infoHash, _, _):
            Int(table.shard(of: infoHash)) + 1
        case .console(let update): chunk(of: update)
        }
    }

    // MARK: Writing down

    /// Whether a chunk has changed since it was last taken.
    func hasChanged(chunk: Int) -> Bool { changed[chunk] }

    /// A chunk that was taken has not been saved.
    mutating func markChanged(chunk: Int) { changed[chunk] = true }

    /// Writes a chunk down as it is now; it counts as unchanged from here on.
    mutating func takeChunk(_ number: Int) -> SnapshotChunk {
        changed[number] = false
        return chunk(number)
    }

    /// A chunk as it is now, 0..<chunkCount.
    public func chunk(_ number: Int) -> SnapshotChunk {
        let mark =
            number == 0
            ? SnapshotCodec.registryMark
            : number < firstFileChunk ? SnapshotCodec.swarmsMark : SnapshotCodec.filesMark
        var bytes = SnapshotCodec.begin(number, mark: mark, index: index, time: time, chain: chain)
        if number == 0 {
            var image = RegistryImage(
                access: access.rules, torrents: registry.all, members: members, settled: settled, told: told)
            image.accounts = AccountsImage(accounts)
            image.encode(into: &bytes)
        } else if number < firstFileChunk {
            table.encode(shard: number - 1, into: &bytes)
        } else {
            files.encode(chunk: number - firstFileChunk, into: &bytes)
        }
        SnapshotCodec.seal(&bytes)
        return SnapshotChunk(number: UInt32(number), index: index, bytes: bytes)
    }

    // MARK: Reading back

    /// Puts a chunk back into a state that does not have it yet.
    public mutating func restore(_ chunk: SnapshotChunk) throws(ChunkDamaged) {
        guard chunk.number < changed.count else { throw ChunkDamaged(number: chunk.number) }
        if chunk.number == 0 {
            let image = try chunk.registry()
            access.setMode(image.access.mode)
            for infoHash in image.access.infoHashes { access.list(infoHash) }
            for user in image.access.users { access.put(user) }
            for torrent in image.torrents { registry.put(torrent) }
            members = image.members
            told = image.told
            for key in image.settled { settledKeys.insert(key) }
            accounts.restore(image.accounts)
        } else if chunk.number < firstFileChunk {
            table.restore(Int(chunk.number) - 1, try chunk.shard())
        } else {
            files.restore(try chunk.files(), in: Int(chunk.number) - firstFileChunk)
        }
        if chunk.index > index {
            index = chunk.index
            chain = chunk.chain
        }
        time = max(time, chunk.time)
    }
}

extension ReplicatedState: Equatable {
    /// Equal contents after the same entry, in whatever order they lie.
    public static func == (left: ReplicatedState, right: ReplicatedState) -> Bool {
        left.index == right.index && left.time == right.time && left.table == right.table
            && left.digest == right.digest
    }
}

extension ReplicatedState {
    mutating func walk(_ archive: inout Archive) {
        table.walk(&archive)
        access.walk(&archive)
        registry.walk(&archive)
        members.walk(&archive)
        told.walk(&archive)
        accounts.walk(&archive)
        files.walk(&archive)
        settledKeys.walk(&archive)
        index.walk(&archive)
        chain.walk(&archive)
        time.walk(&archive)
        entryTime.walk(&archive)
        entryIndex.walk(&archive)
        entryOrigin.walk(&archive)
        let chunkCount = changed.count
        changed.walk(&archive)
        if changed.count != chunkCount { archive.refuse() }
    }
}

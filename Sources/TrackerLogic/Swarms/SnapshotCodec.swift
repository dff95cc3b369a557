// The bytes of snapshot chunks.

import Primitives
import Wire

/// The bytes of snapshot chunks: how the state is written down, shard by shard, and read back.
///
///     every chunk: version, "R", "S" or "F", number, index, cluster time, chain, contents, checksum
///     chunk 0:     access mode, info hashes, users, torrents, members, settled keys of a group, the interval told,
///                  accounts and sessions of the console
///     chunk s + 1: torrents with their peers; counts of downloads by master; tombstones
///     the others:  torrent files that were uploaded, and parts of those under way; removals (`TorrentFiles`)
///
/// A count names its torrent by its place in the chunk, from 0. Outside of survivor mode there are no counts by master,
/// and no tombstones.
///
/// Number and index stand under the checksum too, so that no chunk is taken for another. The time is that of the last
/// entry: with the log cut, nothing else would tell a new life below which time it may not go.
///
/// Reading never traps: a chunk comes from a disk, or from another tracker.
enum SnapshotCodec {
    static let version: UInt8 = 2
    static let registryMark = UInt8(ascii: "R")
    static let swarmsMark = UInt8(ascii: "S")
    static let filesMark = UInt8(ascii: "F")
    static let checksumByteCount = 8

    /// Version, mark, number, index, time and chain.
    static let headerByteCount = 30

    static func begin(_ number: Int, mark: UInt8, index: UInt64, time: WallTime, chain: UInt64) -> [UInt8] {
        var bytes = [version, mark]
        bytes.append(bigEndian: UInt32(number))
        bytes.append(bigEndian: index)
        bytes.append(bigEndian: time.milliseconds)
        bytes.append(bigEndian: chain)
        return bytes
    }

    static func seal(_ bytes: inout [UInt8]) {
        let sum = checksum(bytes.span.bytes)
        bytes.append(bigEndian: sum)
    }

    /// Checks everything but the contents.
    ///
    /// - Returns: a reader at the contents, without the checksum behind them.
    static func open(_ chunk: SnapshotChunk, mark: UInt8) throws(ChunkDamaged) -> ByteReader {
        let end = chunk.bytes.count - checksumByteCount
        let span = chunk.bytes.span.bytes
        guard end >= headerByteCount, chunk.bytes[0] == version, chunk.bytes[1] == mark,
            span.u32(at: 2) == chunk.number, span.u64(at: 6) == chunk.index, chunk.index <= NumberBounds.index,
            span.u64(at: 14) <= UInt64(NumberBounds.time),
            span.u64(at: end) == checksum(span.extracting(0..<end))
        else { throw ChunkDamaged(number: chunk.number) }
        return ByteReader(Array(chunk.bytes[..<end]), from: headerByteCount)
    }
}

// MARK: - Swarms

extension SwarmTable {
    /// Writes one shard down, as it is.
    func encode(shard number: Int, into bytes: inout [UInt8]) {
        let shard = shards[number]
        bytes.reserveCapacity(shard.snapshotCapacity)
        bytes.append(bigEndian: UInt32(shard.torrents.count))
        for torrent in shard.torrents {
            bytes.append(torrent.infoHash.bytes)
            bytes.append(bigEndian: torrent.completed)
            bytes.append(bigEndian: torrent.emptySince)
            bytes.append(bigEndian: torrent.ipv4.count)
            bytes.append(bigEndian: torrent.ipv6.count)
            for position in 0..<Int(torrent.ipv4.count) {
                shard.ipv4.peer(torrent.ipv4, at: position).encode(into: &bytes)
            }
            for position in 0..<Int(torrent.ipv6.count) {
                shard.ipv6.peer(torrent.ipv6, at: position).encode(into: &bytes)
            }
        }
        shard.encodeMergeData(into: &bytes)
    }
}

extension Shard {
    /// About as many bytes as it has when it is written down.
    fileprivate var snapshotCapacity: Int {
        let peerCount = torrents.reduce(0) { $0 + Int($1.ipv4.count) + Int($1.ipv6.count) }
        let extras = mergeData.map { $0.counters.count * 12 + $0.tombstones.count * 46 } ?? 0
        return 64 + torrents.count * 36 + peerCount * 60 + extras
    }

    fileprivate func encodeMergeData(into bytes: inout [UInt8]) {
        bytes.append(bigEndian: UInt32(mergeData?.counters.count ?? 0))
        if let counters = mergeData?.counters {
            for (place, torrent) in torrents.enumerated() where torrent.completed != 0 {
                for held in counters.all(torrent.infoHash) {
                    bytes.append(bigEndian: UInt32(place))
                    bytes.append(bigEndian: held.origin)
                    bytes.append(bigEndian: held.count)
                }
            }
        }
        let tombstones = mergeData?.tombstones.all ?? []
        bytes.append(bigEndian: UInt32(tombstones.count))
        for stop in tombstones {
            bytes.append(stop.infoHash.bytes)
            bytes.append(bigEndian: stop.address.high)
            bytes.append(bigEndian: stop.address.low)
            bytes.append(bigEndian: stop.address.port)
            bytes.append(bigEndian: stop.time)
        }
    }
}

extension Peer {
    fileprivate func encode(into bytes: inout [UInt8]) {
        bytes.append(bigEndian: downloaded)
        bytes.append(bigEndian: left)
        bytes.append(peerID.bytes)
        bytes.append(bigEndian: lastSeen)
        bytes.append(isCounted ? 1 : 0)
        Swift.withUnsafeBytes(of: endpoint) { bytes.append(contentsOf: $0) }
    }
}

extension SnapshotChunk {
    /// The cluster time of its last entry; read only of a sound chunk.
    var time: WallTime { WallTime(milliseconds: Int64(bitPattern: bytes.span.bytes.u64(at: 14))) }

    /// Whether its bytes are what was written: a chunk comes from a disk, or from another tracker.
    var isSound: Bool {
        let swarms = holdsFiles ? SnapshotCodec.filesMark : SnapshotCodec.swarmsMark
        let mark = number == 0 ? SnapshotCodec.registryMark : swarms
        return (try? SnapshotCodec.open(self, mark: mark)) != nil
    }

    /// Whether it says that it holds torrent files; how many chunks of swarms stand before them is its state's affair.
    var holdsFiles: Bool { bytes.count > 1 && bytes[1] == SnapshotCodec.filesMark }

    /// The running hash of the log up to and including its last entry; read only of a sound chunk.
    var chain: UInt64 { bytes.span.bytes.u64(at: 22) }

    /// The swarms of a chunk other than 0.
    ///
    /// - Returns: in the order of the chunk, which means nothing; none of a chunk of torrent files.
    /// - Throws: `ChunkDamaged` where the bytes are not what was written, or of chunk 0.
    public func swarms() throws(ChunkDamaged) -> [SwarmImage] {
        if holdsFiles {
            _ = try files()
            return []
        }
        return try shard().swarms.map { $0.image }
    }

    /// Since when each of the same swarms has had no peers, in seconds since 1970 of cluster time; 0 where it has some.
    package func emptyTimes() throws(ChunkDamaged) -> [UInt32] {
        holdsFiles ? [] : try shard().swarms.map { $0.emptySince }
    }

    /// All that a chunk of torrent files says.
    func files() throws(ChunkDamaged) -> FilesImage {
        var reader = try SnapshotCodec.open(self, mark: SnapshotCodec.filesMark)
        do throws(OutOfBytes) {
            return try FilesImage(&reader)
        } catch {
            throw ChunkDamaged(number: number)
        }
    }

    /// All that a chunk other than 0 says.
    func shard() throws(ChunkDamaged) -> ShardImage {
        var reader = try SnapshotCodec.open(self, mark: SnapshotCodec.swarmsMark)
        do throws(OutOfBytes) {
            var shard = ShardImage()
            for _ in 0..<(try reader.u32()) { shard.swarms.append(try SnapshotChunk.swarm(&reader)) }
            for _ in 0..<(try reader.u32()) {
                let place = Int(clamping: try reader.u32())
                guard place < shard.swarms.count else { throw OutOfBytes() }
                shard.swarms[place].counts.append(
                    CompletedCount(
                        infoHash: shard.swarms[place].image.infoHash, origin: try reader.u32(),
                        count: try reader.u32()))
            }
            for _ in 0..<(try reader.u32()) {
                let infoHash = InfoHash(try reader.bytes20())
                let address = SocketAddress(high: try reader.u64(), low: try reader.u64(), port: try reader.u16())
                shard.tombstones.append(Tombstone(infoHash: infoHash, address: address, time: try reader.u32()))
            }
            return shard
        } catch {
            throw ChunkDamaged(number: number)
        }
    }

    private static func swarm(_ reader: inout ByteReader) throws(OutOfBytes) -> TimedSwarm {
        var image = SwarmImage(infoHash: InfoHash(try reader.bytes20()), completed: try reader.u32(), peers: [])
        let emptySince = try reader.u32()
        let ipv4Count = try reader.u32()
        let ipv6Count = try reader.u32()
        for _ in 0..<ipv4Count { image.peers.append(try peer(&reader, CompactIPv4.self)) }
        for _ in 0..<ipv6Count { image.peers.append(try peer(&reader, CompactIPv6.self)) }
        return TimedSwarm(image: image, emptySince: emptySince)
    }

    private static func peer<Endpoint: CompactEndpoint>(
        _ reader: inout ByteReader, _: Endpoint.Type
    ) throws(OutOfBytes) -> PeerImage {
        let downloaded = try reader.u64()
        let left = try reader.u64()
        let peerID = PeerID(try reader.bytes20())
        let lastSeen = try reader.u32()
        let isCounted = try reader.u8() != 0
        let endpoint = Array(try reader.take(Endpoint.byteCount))
        return PeerImage(
            address: Endpoint(endpoint.span.bytes, at: 0).socketAddress, peerID: peerID, downloaded: downloaded,
            left: left, lastSeen: lastSeen, isCounted: isCounted)
    }
}

// MARK: - Registry

extension RegistryImage {
    /// Writes everything but the swarms down.
    func encode(into bytes: inout [UInt8]) {
        bytes.append(access.mode.rawValue)
        bytes.append(bigEndian: UInt32(access.infoHashes.count))
        for infoHash in access.infoHashes { bytes.append(infoHash.bytes) }
        bytes.append(bigEndian: UInt32(access.users.count))
        for user in access.users {
            bytes.append(counted: user.name.utf8)
            bytes.append(counted: user.passkey)
        }
        bytes.append(bigEndian: UInt32(torrents.count))
        for torrent in torrents {
            bytes.append(torrent.infoHash.bytes)
            bytes.append(bigEndian: torrent.byteCount)
            bytes.append(counted: torrent.name.utf8)
        }
        bytes.append(UInt8(truncatingIfNeeded: members.count))
        for member in members { bytes.append(bigEndian: member) }
        bytes.append(bigEndian: UInt32(settled.count))
        for settled in settled {
            bytes.append(bigEndian: settled.key)
            bytes.append(bigEndian: settled.seconds)
        }
        for number in [told.seconds, told.longestBefore, told.toldUntil] { bytes.append(bigEndian: number) }
        if accounts != AccountsImage() { accounts.encode(into: &bytes) }
    }

    init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(access: AccessRules(), torrents: [])
        guard let mode = AccessMode(rawValue: try reader.u8()) else { throw OutOfBytes() }
        access.mode = mode
        for _ in 0..<(try reader.u32()) { access.infoHashes.append(InfoHash(try reader.bytes20())) }
        for _ in 0..<(try reader.u32()) {
            let name = String(decoding: try reader.counted(), as: UTF8.self)
            access.users.append(User(name: name, passkey: Array(try reader.counted())))
        }
        for _ in 0..<(try reader.u32()) {
            let infoHash = InfoHash(try reader.bytes20())
            let byteCount = try reader.u64()
            let name = String(decoding: try reader.counted(), as: UTF8.self)
            torrents.append(RegisteredTorrent(infoHash: infoHash, name: name, byteCount: byteCount))
        }
        for _ in 0..<(try reader.u8()) { members.append(try reader.u32()) }
        // Records of before there were groups end here.
        guard reader.remaining > 0 else { return }
        for _ in 0..<(try reader.u32()) {
            settled.append(SettledKey(key: try reader.u64(), seconds: try reader.u32()))
        }
        // Records of before the interval was a part of the state end here.
        guard reader.remaining > 0 else { return }
        told = ToldInterval(
            seconds: try reader.u32(), longestBefore: try reader.u32(), toldUntil: try reader.u32())
        // Where there are no accounts, and in records of before there were any, it ends here.
        guard reader.remaining > 0 else { return }
        accounts = try AccountsImage(&reader)
    }
}

extension SnapshotChunk {
    /// What chunk 0 says.
    ///
    /// - Returns: access rules, torrents, members, settled requests, the interval told, and accounts.
    /// - Throws: `ChunkDamaged` where the bytes are not what was written, or of another chunk.
    public func registry() throws(ChunkDamaged) -> RegistryImage {
        var reader = try SnapshotCodec.open(self, mark: SnapshotCodec.registryMark)
        do throws(OutOfBytes) {
            return try RegistryImage(&reader)
        } catch {
            throw ChunkDamaged(number: number)
        }
    }
}

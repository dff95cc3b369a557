// Updates: what an entry of the log says, one thing after another.

import Primitives

/// One update of the log, read.
///
/// Every replica applies the updates of all entries in the same order and comes to the same state; nothing in them
/// depends on who applies them, or when.
public enum Update: Sendable, Hashable {
    /// A peer with an IPv4 address has announced.
    case announceIPv4(AnnounceUpdate<CompactIPv4>)
    /// A peer with an IPv6 address has announced.
    case announceIPv6(AnnounceUpdate<CompactIPv6>)
    /// Takes the silent out of one shard: peers that were last seen, and torrents that have been without peers since,
    /// before these cluster times (seconds since 1970).
    case expire(shard: UInt32, seenBefore: UInt32, emptyBefore: UInt32)
    /// The tracker knows a torrent by name; `byteCount` is the sum of its files.
    case registerTorrent(InfoHash, byteCount: UInt64, name: [UInt8])
    /// The tracker no longer knows the torrent by name; its swarm stays.
    case unregisterTorrent(InfoHash)
    /// Another rule of access is in force: the number of an `AccessMode`.
    case setAccessMode(UInt8)
    /// Puts an info hash on the list that the access modes `allow` and `deny` read.
    case listInfoHash(InfoHash)
    /// Takes an info hash off that list.
    case unlistInfoHash(InfoHash)
    /// Gives a user a passkey, in place of the one he had.
    case putUser(name: [UInt8], passkey: [UInt8])
    /// Takes a user's passkey away.
    case removeUser(name: [UInt8])
    /// The ids that vote from here on, in rising order (quorum mode).
    case setMembers([UInt32])
    /// The interval that clients are told from here on, in seconds.
    case setInterval(UInt32)
    /// Takes everything out of one shard: the cluster had stopped in good order, and begins anew without its swarms.
    case emptyShard(UInt32)
    /// What the other side of a healed partition knew of a peer (survivor mode).
    case mergePeer(MergedPeer)
    /// There, a peer had said that it stops; `at` is cluster time in seconds.
    case mergeStop(InfoHash, SocketAddress, at: UInt32)
    /// There, the master `origin` had counted so many completed downloads in all.
    case mergeCompleted(InfoHash, origin: UInt32, count: UInt32)
    /// What people keep at the console changes: accounts, sessions, torrent files.
    case console(ConsoleUpdate)
}

/// A peer as another repository holds it.
public struct MergedPeer: Sendable, Hashable {
    /// Of the peer's swarm.
    public var infoHash: InfoHash
    /// As its client sent it.
    public var peerID: PeerID
    /// Bytes.
    public var downloaded: UInt64
    /// Bytes.
    public var left: UInt64
    /// Where it is reached; a zone means nothing.
    public var address: SocketAddress
    /// Cluster time of its last announce, in seconds since 1970.
    public var lastSeen: UInt32
    /// Whether its download has been counted as completed.
    public var isCounted: Bool

    /// Takes the fields as they are.
    public init(
        infoHash: InfoHash, peerID: PeerID, downloaded: UInt64, left: UInt64, address: SocketAddress,
        lastSeen: UInt32, isCounted: Bool
    ) {
        self.infoHash = infoHash
        self.peerID = peerID
        self.downloaded = downloaded
        self.left = left
        self.address = address
        self.lastSeen = lastSeen
        self.isCounted = isCounted
    }
}

/// A peer has announced, and the announce has been found valid.
///
/// 64 bytes over IPv4, 76 over IPv6: kind, event, info hash, peer id, downloaded, left, endpoint.
@frozen
public struct AnnounceUpdate<Endpoint: CompactEndpoint>: Sendable, Hashable {
    /// Of the swarm that is announced to.
    public var infoHash: InfoHash
    /// As the client sent it.
    public var peerID: PeerID
    /// Bytes.
    public var downloaded: UInt64
    /// Bytes.
    public var left: UInt64
    /// What has happened at the client.
    public var event: AnnounceEvent
    /// Where the peer is reached: the address that the request came from, or one that a trusted sender claims.
    public var endpoint: Endpoint

    /// Takes the fields as they are.
    @inlinable
    public init(
        infoHash: InfoHash, peerID: PeerID, downloaded: UInt64, left: UInt64, event: AnnounceEvent, endpoint: Endpoint
    ) {
        self.infoHash = infoHash
        self.peerID = peerID
        self.downloaded = downloaded
        self.left = left
        self.event = event
        self.endpoint = endpoint
    }

    /// Bytes of the update in an entry, with its kind: 64 over IPv4, 76 over IPv6.
    @inlinable
    public static var byteCount: Int { 58 + Endpoint.byteCount }

    /// Reads what follows the kind byte at `offset`; the caller has checked the length.
    @inlinable
    init(_ bytes: RawSpan, at offset: Int) {
        event = AnnounceEvent(rawValue: UInt32(bytes.u8(at: offset + 1))) ?? .none
        infoHash = InfoHash(Bytes20(bytes, at: offset + 2))
        peerID = PeerID(Bytes20(bytes, at: offset + 22))
        downloaded = bytes.u64(at: offset + 42)
        left = bytes.u64(at: offset + 50)
        endpoint = Endpoint(bytes, at: offset + 58)
    }

    /// Appends the update to an entry's bytes, in one piece.
    @inlinable
    public func encode(into bytes: inout [UInt8]) {
        let kind: UpdateKind = Endpoint.byteCount == CompactIPv4.byteCount ? .announceIPv4 : .announceIPv6
        withUnsafeTemporaryAllocation(byteCount: AnnounceUpdate.byteCount, alignment: 8) { room in
            room.storeBytes(of: kind.rawValue, toByteOffset: 0, as: UInt8.self)
            room.storeBytes(of: UInt8(truncatingIfNeeded: event.rawValue), toByteOffset: 1, as: UInt8.self)
            room.storeBytes(of: infoHash.bytes, toByteOffset: 2, as: Bytes20.self)
            room.storeBytes(of: peerID.bytes, toByteOffset: 22, as: Bytes20.self)
            room.storeBytes(of: downloaded.bigEndian, toByteOffset: 42, as: UInt64.self)
            room.storeBytes(of: left.bigEndian, toByteOffset: 50, as: UInt64.self)
            room.storeBytes(of: endpoint, toByteOffset: 58, as: Endpoint.self)
            bytes.append(contentsOf: UnsafeRawBufferPointer(room))
        }
    }
}

@frozen
@usableFromInline
enum UpdateKind: UInt8 {
    case announceIPv4 = 1
    case announceIPv6 = 2
    case expire = 3
    case registerTorrent = 4
    case unregisterTorrent = 5
    case setAccessMode = 6
    case listInfoHash = 7
    case unlistInfoHash = 8
    case putUser = 9
    case removeUser = 10
    case setMembers = 11
    case mergePeer = 12
    case mergeStop = 13
    case mergeCompleted = 14
    case setInterval = 15
    case emptyShard = 16
    case console = 17
}

extension Update {
    /// Appends the update to an entry's bytes.
    public func encode(into bytes: inout [UInt8]) {
        switch self {
        case .announceIPv4(let announce): announce.encode(into: &bytes)
        case .announceIPv6(let announce): announce.encode(into: &bytes)
        case .expire(let shard, let seenBefore, let emptyBefore):
            bytes.append(UpdateKind.expire.rawValue)
            bytes.append(bigEndian: shard)
            bytes.append(bigEndian: seenBefore)
            bytes.append(bigEndian: emptyBefore)
        case .registerTorrent(let infoHash, let byteCount, let name):
            bytes.append(UpdateKind.registerTorrent.rawValue)
            bytes.append(infoHash.bytes)
            bytes.append(bigEndian: byteCount)
            bytes.append(counted: name)
        case .unregisterTorrent(let infoHash):
            bytes.append(UpdateKind.unregisterTorrent.rawValue)
            bytes.append(infoHash.bytes)
        case .setAccessMode(let mode):
            bytes.append(UpdateKind.setAccessMode.rawValue)
            bytes.append(mode)
        case .listInfoHash(let infoHash):
            bytes.append(UpdateKind.listInfoHash.rawValue)
            bytes.append(infoHash.bytes)
        case .unlistInfoHash(let infoHash):
            bytes.append(UpdateKind.unlistInfoHash.rawValue)
            bytes.append(infoHash.bytes)
        case .putUser(let name, let passkey):
            bytes.append(UpdateKind.putUser.rawValue)
            bytes.append(counted: name)
            bytes.append(counted: passkey)
        case .removeUser(let name):
            bytes.append(UpdateKind.removeUser.rawValue)
            bytes.append(counted: name)
        case .setMembers(let members):
            bytes.append(UpdateKind.setMembers.rawValue)
            bytes.append(UInt8(truncatingIfNeeded: members.count))
            for member in members { bytes.append(bigEndian: member) }
        case .setInterval(let seconds):
            bytes.append(UpdateKind.setInterval.rawValue)
            bytes.append(bigEndian: seconds)
        case .emptyShard(let shard):
            bytes.append(UpdateKind.emptyShard.rawValue)
            bytes.append(bigEndian: shard)
        case .mergePeer(let peer): peer.encode(into: &bytes)
        case .mergeStop(let infoHash, let address, let time):
            bytes.append(UpdateKind.mergeStop.rawValue)
            bytes.append(infoHash.bytes)
            bytes.append(address)
            bytes.append(bigEndian: time)
        case .mergeCompleted(let infoHash, let origin, let count):
            bytes.append(UpdateKind.mergeCompleted.rawValue)
            bytes.append(infoHash.bytes)
            bytes.append(bigEndian: origin)
            bytes.append(bigEndian: count)
        case .console(let update):
            bytes.append(UpdateKind.console.rawValue)
            update.encode(into: &bytes)
        }
    }
}

/// Walks over the updates of an entry.
public struct UpdateCursor: Sendable {
    /// Where the next update begins, in bytes from the start of the entry.
    public private(set) var offset: Int
    /// Where the updates end and the tickets begin.
    private let end: Int

    /// Begins at the first update.
    public init(_ header: EntryHeader) {
        offset = EntryHeader.byteCount
        end = Int(header.ticketsOffset)
    }

    /// Whether the announce at the cursor has an event that there is: one update has one spelling.
    @inline(__always)
    private func hasEvent(_ bytes: [UInt8]) -> Bool { AnnounceEvent(rawValue: UInt32(bytes[offset + 1])) != nil }

    /// Reads the update at the cursor, and goes on to the next.
    ///
    /// - Parameter bytes: the same entry at each call.
    /// - Returns: nil at the end.
    /// - Throws: `EntryDamaged` where the bytes are no update.
    public mutating func next(_ bytes: [UInt8]) throws(EntryDamaged) -> Update? {
        guard offset < end else { return nil }
        guard let kind = UpdateKind(rawValue: bytes[offset]) else { throw EntryDamaged() }
        let span = bytes.span.bytes
        switch kind {
        case .announceIPv4:
            let next = offset + AnnounceUpdate<CompactIPv4>.byteCount
            guard next <= end, end <= bytes.count, hasEvent(bytes) else { throw EntryDamaged() }
            defer { offset = next }
            return .announceIPv4(AnnounceUpdate(span, at: offset))
        case .announceIPv6:
            let next = offset + AnnounceUpdate<CompactIPv6>.byteCount
            guard next <= end, end <= bytes.count, hasEvent(bytes) else { throw EntryDamaged() }
            defer { offset = next }
            return .announceIPv6(AnnounceUpdate(span, at: offset))
        case .expire, .registerTorrent, .unregisterTorrent, .setAccessMode, .listInfoHash, .unlistInfoHash, .putUser,
            .removeUser, .setMembers, .mergePeer, .mergeStop, .mergeCompleted, .setInterval, .emptyShard,
            .console:
            var reader = ByteReader(bytes, from: offset + 1)
            do throws(OutOfBytes) {
                let update = try UpdateCursor.rare(kind, &reader)
                guard reader.offset <= end else { throw OutOfBytes() }
                offset = reader.offset
                return update
            } catch {
                throw EntryDamaged()
            }
        }
    }

    private static func rare(_ kind: UpdateKind, _ reader: inout ByteReader) throws(OutOfBytes) -> Update {
        switch kind {
        case .announceIPv4, .announceIPv6: throw OutOfBytes()  // read by the caller
        case .expire: .expire(shard: try reader.u32(), seenBefore: try reader.u32(), emptyBefore: try reader.u32())
        case .registerTorrent:
            .registerTorrent(
                InfoHash(try reader.bytes20()), byteCount: try reader.u64(), name: Array(try reader.counted()))
        case .unregisterTorrent: .unregisterTorrent(InfoHash(try reader.bytes20()))
        case .setAccessMode: .setAccessMode(try reader.u8())
        case .listInfoHash: .listInfoHash(InfoHash(try reader.bytes20()))
        case .unlistInfoHash: .unlistInfoHash(InfoHash(try reader.bytes20()))
        case .putUser: .putUser(name: Array(try reader.counted()), passkey: Array(try reader.counted()))
        case .removeUser: .removeUser(name: Array(try reader.counted()))
        case .setMembers: try members(&reader)
        case .setInterval: .setInterval(try reader.u32())
        case .emptyShard: .emptyShard(try reader.u32())
        case .mergePeer: .mergePeer(try MergedPeer(&reader))
        case .mergeStop: .mergeStop(InfoHash(try reader.bytes20()), try reader.address(), at: try reader.u32())
        case .mergeCompleted:
            .mergeCompleted(InfoHash(try reader.bytes20()), origin: try reader.u32(), count: try reader.u32())
        case .console: .console(try ConsoleUpdate(&reader))
        }
    }

    private static func members(_ reader: inout ByteReader) throws(OutOfBytes) -> Update {
        var members: [UInt32] = []
        for _ in 0..<(try reader.u8()) { members.append(try reader.u32()) }
        return .setMembers(members)
    }
}

extension MergedPeer {
    fileprivate func encode(into bytes: inout [UInt8]) {
        bytes.append(UpdateKind.mergePeer.rawValue)
        bytes.append(infoHash.bytes)
        bytes.append(peerID.bytes)
        bytes.append(bigEndian: downloaded)
        bytes.append(bigEndian: left)
        bytes.append(address)
        bytes.append(bigEndian: lastSeen)
        bytes.append(isCounted ? 1 : 0)
    }

    fileprivate init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(
            infoHash: InfoHash(try reader.bytes20()), peerID: PeerID(try reader.bytes20()),
            downloaded: try reader.u64(), left: try reader.u64(), address: try reader.address(),
            lastSeen: try reader.u32(), isCounted: try reader.u8() != 0)
    }
}

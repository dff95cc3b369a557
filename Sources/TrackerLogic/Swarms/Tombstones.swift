// Stops that are remembered.

import Primitives
import Wire

/// A peer of a swarm has said that it stops.
struct Tombstone: Sendable, Hashable {
    var infoHash: InfoHash
    /// Without a zone, as peers are kept.
    var address: SocketAddress
    /// Cluster time, in seconds since 1970.
    var time: UInt32
}

/// Stops that are remembered: in survivor mode, the other side of a partition may still believe in a peer that has said
/// here that it stops, and a merge must not bring it back (rule 12).
///
/// A heap with the oldest at its root beside an index by key, so that finding one is O(1), and forgetting the oldest
/// O(log n). Where they lie never shows.
struct Tombstones: Sendable {
    /// Tombstones of one shard at most; beyond, the oldest goes.
    ///
    /// About 70 bytes each. With 1,024 shards this is a stop of every fourth peer of a full table within the life of a
    /// silent peer: a client that sends more of them only makes stopped peers come back after a merge, until they
    /// expire.
    static let maxCount = 4_096

    /// 56 bytes.
    fileprivate struct Record: Sendable {
        var high: UInt64
        var low: UInt64
        /// Of info hash and address, under the table's key.
        var hash: UInt64
        var infoHash: InfoHash
        var time: UInt32
        var port: UInt16

        var place: UInt32 { UInt32(truncatingIfNeeded: hash &>> 32) }
        var fingerprint: UInt64 { folded(hash ^ 0x5851_F42D_4C95_7F2D, UInt64(time) | UInt64(1) << 32) }
        var tombstone: Tombstone {
            Tombstone(
                infoHash: infoHash, address: SocketAddress(high: high, low: low, port: port), time: time)
        }

        func isSame(_ infoHash: InfoHash, _ address: SocketAddress) -> Bool {
            low == address.low && high == address.high && port == address.port && self.infoHash == infoHash
        }

        /// By time, then by contents: no two are equal, and no secret or history decides which goes first.
        func isOlder(than other: Record) -> Bool {
            if time != other.time { return time < other.time }
            if (high, low, port) != (other.high, other.low, other.port) {
                return (high, low, port) < (other.high, other.low, other.port)
            }
            return infoHash.bytes.precedes(other.infoHash.bytes)
        }
    }

    private var heap: [Record] = []
    private var index = SlotIndex()
    /// The sum of all fingerprints, in no order.
    private(set) var digest: UInt64 = 0

    var count: Int { heap.count }

    /// The time of the oldest.
    var oldest: UInt32? { heap.first?.time }

    /// In an order that means nothing.
    var all: [Tombstone] { heap.map { $0.tombstone } }

    /// A hash of info hash and address, the same for each spelling of an address.
    ///
    /// - Parameters:
    ///   - torrent: the hash of the info hash, under the table's key.
    ///   - address: the peer's; its zone is ignored.
    ///   - key: the table's.
    /// - Returns: well spread over 64 bits.
    private static func hash(_ torrent: UInt64, _ address: SocketAddress, key: UInt64) -> UInt64 {
        if let endpoint = CompactIPv4(address) { return mixed(endpoint.hash(key: key) ^ torrent) }
        return mixed((CompactIPv6(address)?.hash(key: key) ?? 0) ^ torrent)
    }

    /// How many the index holds; where in the heap one is, and of which digest, for who looks whether all is in order.
    var indexCount: Int { index.count }
    func isOlder(_ slot: Int, than other: Int) -> Bool { heap[slot].isOlder(than: heap[other]) }
    func fingerprint(at slot: Int) -> UInt64 { heap[slot].fingerprint }

    private func slot(_ infoHash: InfoHash, _ address: SocketAddress, hash: UInt64) -> Int? {
        index.find(UInt32(truncatingIfNeeded: hash &>> 32)) { heap[$0].isSame(infoHash, address) }
    }

    /// When this peer of this swarm has stopped; nil where that is not known.
    func time(_ infoHash: InfoHash, _ address: SocketAddress, torrent: UInt64, key: UInt64) -> UInt32? {
        guard !heap.isEmpty else { return nil }
        return slot(infoHash, address, hash: Tombstones.hash(torrent, address, key: key)).map { heap[$0].time }
    }

    /// Remembers a stop; of two of one peer, the later.
    mutating func put(_ stop: Tombstone, torrent: UInt64, key: UInt64) {
        let hash = Tombstones.hash(torrent, stop.address, key: key)
        if let slot = slot(stop.infoHash, stop.address, hash: hash) {
            guard heap[slot].time < stop.time else { return }
            remove(at: slot)
        }
        let record = Record(
            high: stop.address.high, low: stop.address.low, hash: hash, infoHash: stop.infoHash, time: stop.time,
            port: stop.address.port)
        if heap.count == Tombstones.maxCount {
            guard heap[0].isOlder(than: record) else { return }
            remove(at: 0)
        }
        if heap.count == heap.capacity { heap.reserveCapacity(heap.count + heap.count / 4 + 4) }
        heap.append(record)
        digest &+= record.fingerprint
        settle(record, at: heap.count - 1)
    }

    /// Forgets a stop that a later announce supersedes.
    ///
    /// - Returns: its time; nil where there was none.
    @discardableResult
    mutating func remove(
        _ infoHash: InfoHash, _ address: SocketAddress, torrent: UInt64, key: UInt64
    ) -> UInt32? {
        guard !heap.isEmpty,
            let slot = slot(infoHash, address, hash: Tombstones.hash(torrent, address, key: key))
        else { return nil }
        let time = heap[slot].time
        remove(at: slot)
        return time
    }

    /// Forgets those from before a time.
    mutating func expire(before time: UInt32) {
        while let oldest, oldest < time { remove(at: 0) }
    }

    private mutating func remove(at slot: Int) {
        digest &-= heap[slot].fingerprint
        index.remove(heap[slot].place, slot: slot)
        let last = heap.removeLast()
        guard slot < heap.count else { return }
        index.remove(last.place, slot: heap.count)
        settle(last, at: slot)
    }

    /// Finds the place of a record that is in no place yet, from a hole on; the index learns of all that moves.
    private mutating func settle(_ record: Record, at start: Int) {
        var hole = start
        while hole > 0, record.isOlder(than: heap[(hole - 1) / 2]) {
            move((hole - 1) / 2, to: hole)
            hole = (hole - 1) / 2
        }
        while true {
            var child = 2 * hole + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].isOlder(than: heap[child]) { child += 1 }
            guard heap[child].isOlder(than: record) else { break }
            move(child, to: hole)
            hole = child
        }
        heap[hole] = record
        index.insert(record.place, slot: hole)
    }

    private mutating func move(_ slot: Int, to hole: Int) {
        index.move(heap[slot].place, from: slot, to: hole)
        heap[hole] = heap[slot]
    }

    var byteCount: Int { heap.capacity * MemoryLayout<Record>.stride + index.byteCount }
}

extension Bytes20 {
    /// Whether these bytes come before others, the first byte being the most significant.
    func precedes(_ other: Bytes20) -> Bool {
        for offset in 0..<Bytes20.byteCount where self[offset] != other[offset] {
            return self[offset] < other[offset]
        }
        return false
    }
}

extension Tombstones {
    mutating func walk(_ archive: inout Archive) {
        heap.walk(&archive)
        digest.walk(&archive)
        guard archive.isReading else { return }
        index = SlotIndex()
        for slot in heap.indices { index.insert(heap[slot].place, slot: slot) }
    }
}

extension Tombstones.Record: Archived {
    static var blank: Tombstones.Record {
        Tombstones.Record(high: 0, low: 0, hash: 0, infoHash: .blank, time: 0, port: 0)
    }

    mutating func walk(_ archive: inout Archive) {
        high.walk(&archive)
        low.walk(&archive)
        hash.walk(&archive)
        infoHash.walk(&archive)
        time.walk(&archive)
        port.walk(&archive)
    }
}

// All peers of one shard and one address family.

import Primitives
import Wire

/// All peers of one shard and one address family: small swarms in a pool of blocks, larger ones each on their own.
///
/// Whatever the size, a swarm's peers have positions 0..<count, leechers before seeders.
struct PeerStore<Endpoint: CompactEndpoint>: Sendable {
    /// A large swarm becomes small again at this size, well below the 16 at which it grew large, so that one peer
    /// that comes and goes does not move all the others.
    static var shrinkCount: Int { 8 }

    private(set) var pool = BlockPool<Peer<Endpoint>>()
    private(set) var large: [LargeSwarm<Endpoint>] = []
    private var freeLarge: [UInt32] = []

    // MARK: Looking

    func peer(_ list: PeerList, at position: Int) -> Peer<Endpoint> {
        list.isLarge ? large[number(list)].peer(at: position) : pool[Int(list.place) + position]
    }

    func position(of endpoint: Endpoint, in list: PeerList, key: UInt64) -> Int? {
        guard list.count > 0 else { return nil }
        if list.isLarge { return large[number(list)].position(of: endpoint, key: key) }
        let start = Int(list.place)
        for position in 0..<Int(list.count) where pool.records[start + position].endpoint == endpoint {
            return position
        }
        return nil
    }

    func lastSeen(_ list: PeerList, at position: Int) -> UInt32 {
        list.isLarge
            ? large[number(list)].details[position].lastSeen : pool.records[Int(list.place) + position].lastSeen
    }

    /// Whether the peers of a list are here.
    func holds(_ list: PeerList) -> Bool {
        guard list.seeders <= list.count else { return false }
        if list.count == 0 { return true }
        if !list.isLarge { return Int(list.place) + Int(list.count) <= pool.records.count }
        return number(list) < large.count && large[number(list)].count == Int(list.count)
    }

    // MARK: Changing

    /// Adds a peer that the list does not hold.
    ///
    /// - Returns: its position.
    mutating func insert(_ peer: Peer<Endpoint>, into list: inout PeerList, key: UInt64) -> Int {
        makeRoom(&list, filler: peer, key: key)
        let last = Int(list.count)
        list.count += 1
        if list.isLarge {
            large[number(list)].append(peer, key: key)
        } else {
            pool[Int(list.place) + last] = peer
        }
        if peer.isSeeder {
            list.seeders += 1
            return last
        }
        // Among the leechers: the first seeder makes room at the border.
        swap(list, last, list.leechers - 1, key: key)
        return list.leechers - 1
    }

    /// Replaces a peer by a later state of itself, and moves it where it has become a seeder, or a leecher again.
    ///
    /// - Returns: its position.
    mutating func replace(_ peer: Peer<Endpoint>, at position: Int, in list: inout PeerList, key: UInt64) -> Int {
        let wasSeeder = position >= list.leechers
        if list.isLarge {
            large[number(list)].update(peer, at: position)
        } else {
            pool[Int(list.place) + position] = peer
        }
        guard wasSeeder != peer.isSeeder else { return position }
        let border = peer.isSeeder ? list.leechers - 1 : list.leechers
        swap(list, position, border, key: key)
        list.seeders = peer.isSeeder ? list.seeders + 1 : list.seeders - 1
        return border
    }

    mutating func remove(at position: Int, from list: inout PeerList, key: UInt64) {
        let last = Int(list.count) - 1
        if position < list.leechers {
            let lastLeecher = list.leechers - 1
            swap(list, position, lastLeecher, key: key)
            swap(list, lastLeecher, last, key: key)
        } else {
            swap(list, position, last, key: key)
            list.seeders -= 1
        }
        list.count -= 1
        if list.isLarge {
            large[number(list)].removeLast(key: key)
            if Int(list.count) <= PeerStore.shrinkCount { becomeSmall(&list) }
        } else {
            shrinkBlock(&list, from: last + 1)
        }
    }

    private mutating func swap(_ list: PeerList, _ left: Int, _ right: Int, key: UInt64) {
        guard left != right else { return }
        if list.isLarge {
            large[number(list)].swapAt(left, right, key: key)
        } else {
            let start = Int(list.place)
            let peer = pool[start + left]
            pool[start + left] = pool[start + right]
            pool[start + right] = peer
        }
    }

    private func number(_ list: PeerList) -> Int { Int(list.place & ~PeerList.largeBit) }

    // MARK: Room

    private mutating func makeRoom(_ list: inout PeerList, filler: Peer<Endpoint>, key: UInt64) {
        guard !list.isLarge else { return }
        let count = Int(list.count)
        if count == 0 {
            list.place = UInt32(pool.allocate(0, filler: filler))
            return
        }
        let old = BlockPool<Peer<Endpoint>>.sizeClass(count)
        guard count == BlockPool<Peer<Endpoint>>.capacity(old) else { return }
        guard count < BlockPool<Peer<Endpoint>>.largest else { return becomeLarge(&list, key: key) }
        moveBlock(&list, count: count, from: old, to: old + 1, filler: filler)
    }

    private mutating func moveBlock(
        _ list: inout PeerList, count: Int, from old: Int, to new: Int, filler: Peer<Endpoint>
    ) {
        let start = Int(list.place)
        let place = pool.allocate(new, filler: filler)
        for position in 0..<count { pool[place + position] = pool[start + position] }
        pool.release(start, old)
        list.place = UInt32(place)
    }

    private mutating func shrinkBlock(_ list: inout PeerList, from oldCount: Int) {
        let count = Int(list.count)
        let old = BlockPool<Peer<Endpoint>>.sizeClass(oldCount)
        if count == 0 {
            pool.release(Int(list.place), old)
            list.place = 0
            return
        }
        let new = BlockPool<Peer<Endpoint>>.sizeClass(count)
        if new != old { moveBlock(&list, count: count, from: old, to: new, filler: pool[Int(list.place)]) }
    }

    private mutating func becomeLarge(_ list: inout PeerList, key: UInt64) {
        var swarm = LargeSwarm<Endpoint>()
        let count = Int(list.count)
        let start = Int(list.place)
        for position in 0..<count { swarm.append(pool[start + position], key: key) }
        pool.release(start, BlockPool<Peer<Endpoint>>.sizeClass(count))
        if let number = freeLarge.popLast() {
            large[Int(number)] = swarm
            list.place = number | PeerList.largeBit
        } else {
            list.place = UInt32(large.count) | PeerList.largeBit
            large.append(swarm)
        }
    }

    private mutating func becomeSmall(_ list: inout PeerList) {
        let number = number(list)
        let count = Int(list.count)
        let swarm = large[number]
        large[number] = LargeSwarm()
        freeLarge.append(UInt32(number))
        let place = pool.allocate(BlockPool<Peer<Endpoint>>.sizeClass(count), filler: swarm.peer(at: 0))
        for position in 0..<count { pool[place + position] = swarm.peer(at: position) }
        list.place = UInt32(place)
    }

    /// Whether the pool has so much free room that it should be rewritten rather than grown.
    var wantsCompaction: Bool { pool.isSparse }

    /// Copies the block of one list into a fresh store; large swarms come along whole.
    mutating func adopt(_ list: inout PeerList, from other: PeerStore) {
        guard !list.isLarge, list.count > 0 else { return }
        let count = Int(list.count)
        let start = Int(list.place)
        let place = pool.allocate(BlockPool<Peer<Endpoint>>.sizeClass(count), filler: other.pool[start])
        for position in 0..<count { pool[place + position] = other.pool[start + position] }
        list.place = UInt32(place)
    }

    /// An empty store that keeps the large swarms: where compaction begins.
    func emptiedOfBlocks() -> PeerStore {
        var fresh = self
        fresh.pool = BlockPool()
        return fresh
    }

    var byteCount: Int { pool.byteCount + large.reduce(0) { $0 + $1.byteCount } }
}

extension PeerStore where Endpoint: Archived {
    /// Walks over the store; `key` is the table's.
    mutating func walk(_ archive: inout Archive, key: UInt64) {
        pool.walk(&archive)
        let count = archive.count(large.count)
        if archive.isReading { large = [] }
        for number in 0..<count {
            var swarm = archive.isReading ? LargeSwarm() : large[number]
            swarm.walk(&archive, key: key)
            if archive.isDamaged { return }
            if archive.isReading { large.append(swarm) }
        }
        freeLarge.walk(&archive)
    }
}

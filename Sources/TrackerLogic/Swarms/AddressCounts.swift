// How many peers of all swarms stand at each address.

import Primitives

/// How many peers of all swarms stand at each address: what one address may take from all others is bounded by it.
///
/// IPv4 by the address; IPv6 by its first 64 bits, since whoever has one IPv6 address has 2^64 (RFC 4291, 2.5.4).
/// Twelve bytes a place, open addressing with linear probing, in parts that grow one at a time. It follows from the
/// swarms, so it is neither in the snapshot nor in the digest: every tracker counts what it applies, and a new master
/// knows what the old one knew.
///
/// Invariant: a count is the number of peers in the table with that address; addresses without peers have no place.
struct AddressCounts: Sendable {
    fileprivate struct Place: Sendable {
        // Two halves, so that a place has 12 bytes and not 16.
        var high: UInt32
        var low: UInt32
        /// 0 where nobody is.
        var count: UInt32

        var name: UInt64 { UInt64(high) << 32 | UInt64(low) }
    }

    fileprivate struct Part: Sendable {
        var places: [Place] = []
        var used = 0
    }

    private var parts: [Part]
    private let key: UInt64
    private let shift: UInt64

    /// - Parameters:
    ///   - key: secret: strangers choose their IPv6 networks.
    ///   - partCount: a power of two.
    init(key: UInt64, partCount: UInt32) {
        self.key = key ^ 0x6164_6472_6573_7365
        parts = Array(repeating: Part(), count: Int(partCount))
        shift = UInt64(64 - partCount.trailingZeroBitCount)
    }

    /// Peers at an address.
    func count(of address: SocketAddress) -> Int {
        let name = AddressCounts.name(address)
        let hash = hash(name)
        let number = part(hash)
        guard let place = parts[number].find(name, hash) else { return 0 }
        return Int(parts[number].places[place].count)
    }

    mutating func add(_ address: SocketAddress) {
        let name = AddressCounts.name(address)
        let hash = hash(name)
        let number = part(hash)
        if let place = parts[number].find(name, hash) {
            parts[number].places[place].count += 1
            return
        }
        if (parts[number].used + 1) * 5 > parts[number].places.count * 4 { grow(number) }
        parts[number].insert(Place(high: UInt32(name >> 32), low: UInt32(truncatingIfNeeded: name), count: 1), hash)
        parts[number].used += 1
    }

    mutating func remove(_ address: SocketAddress) {
        let name = AddressCounts.name(address)
        let hash = hash(name)
        let number = part(hash)
        guard let place = parts[number].find(name, hash) else {
            preconditionFailure("a peer leaves from an address that was counted")
        }
        parts[number].places[place].count -= 1
        if parts[number].places[place].count == 0 { close(place, number) }
    }

    var byteCount: Int {
        var sum = 0
        for number in parts.indices { sum += parts[number].places.capacity * MemoryLayout<Place>.stride }
        return sum
    }

    // MARK: Places

    /// IPv4 addresses lie in `ffff:ffff::/32`, where no IPv6 network is.
    private static func name(_ address: SocketAddress) -> UInt64 {
        address.isIPv4 ? 0xFFFF_FFFF_0000_0000 | UInt64(address.ipv4) : address.high
    }

    private func hash(_ name: UInt64) -> UInt64 {
        folded(folded(name ^ key, 0xE703_7ED1_A0B4_28DB) ^ key, 0x8EBC_6AF0_9C88_C6E3)
    }

    private func part(_ hash: UInt64) -> Int { shift == 64 ? 0 : Int(hash &>> shift) }

    private mutating func grow(_ number: Int) {
        let old = parts[number].places
        parts[number].places = Array(
            repeating: Place(high: 0, low: 0, count: 0), count: max(8, old.count + old.count / 4))
        for index in old.indices where old[index].count > 0 {
            parts[number].insert(old[index], hash(old[index].name))
        }
    }

    /// Closes the gap that a place leaves, so that no search ends too early.
    ///
    /// - SeeAlso: Knuth, vol. 3, algorithm 6.4R.
    private mutating func close(_ place: Int, _ number: Int) {
        var hole = place
        var next = place
        while true {
            next += 1
            if next == parts[number].places.count { next = 0 }
            let held = parts[number].places[next]
            if held.count == 0 { break }
            let wanted = parts[number].home(hash(held.name))
            let isBetween = hole <= next ? (hole < wanted && wanted <= next) : (hole < wanted || wanted <= next)
            if !isBetween {
                parts[number].places[hole] = held
                parts[number].places[next].count = 0
                hole = next
            }
        }
        parts[number].used -= 1
    }
}

extension AddressCounts.Part {
    /// The low half of the hash; the high one has chosen the part.
    fileprivate func home(_ hash: UInt64) -> Int {
        Int(((hash & 0xFFFF_FFFF) &* UInt64(truncatingIfNeeded: places.count)) &>> 32)
    }

    fileprivate func find(_ name: UInt64, _ hash: UInt64) -> Int? {
        guard used > 0 else { return nil }
        var place = home(hash)
        while places[place].count > 0 {
            if places[place].name == name { return place }
            place += 1
            if place == places.count { place = 0 }
        }
        return nil
    }

    fileprivate mutating func insert(_ held: AddressCounts.Place, _ hash: UInt64) {
        var place = home(hash)
        while places[place].count > 0 {
            place += 1
            if place == places.count { place = 0 }
        }
        places[place] = held
    }
}

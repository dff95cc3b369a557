// Chooses the peers of a reply: an unbiased sample without repeats, in O(numWant), without memory of its own.

import Primitives
import Wire

/// Which positions of a swarm may be drawn: `0..<count` without `excluded`.
///
/// The sample is unbiased and without repeats, drawn in O(numWant) and without memory of its own. Where more peers
/// stand to choose from than are wanted, the ring of positions is turned by a random amount and cut into as many equal
/// pieces as peers are wanted, and one position is drawn from each. Every position is equally likely to be drawn (the
/// random turn makes it so even where pieces differ by one), none twice, and memory is walked in order. The price
/// against a textbook sample: two neighbours in the table are rarely drawn together, and neighbours in the table have
/// nothing in common but the time at which they came.
struct Candidates {
    /// Positions, before one is left out.
    var count: Int
    /// The announcer's own position, where it has one in the range.
    var excluded: Int?

    /// Whom an announcer may be told of.
    ///
    /// - Parameters:
    ///   - list: the swarm's peers of one family.
    ///   - isSeeder: seeders get leechers only, who stand first.
    ///   - own: the announcer's position; nil where it has none in the list.
    init(_ list: PeerList, isSeeder: Bool, own: Int?) {
        count = isSeeder ? list.leechers : Int(list.count)
        excluded = own.flatMap { [count] in $0 < count ? $0 : nil }
    }

    /// Calls `visit` with up to `wanted` distinct positions.
    @inline(__always)
    func draw(_ wanted: Int, _ random: inout RandomStream, _ visit: (Int) -> Void) {
        let available = excluded == nil ? count : count - 1
        let hole = excluded ?? Int.max
        guard available > 0, wanted > 0 else { return }
        if available <= wanted {
            for draw in 0..<available { visit(draw >= hole ? draw + 1 : draw) }
            return
        }
        // All in unsigned 32.32 fixed point, so that nothing in the loop can overflow or needs a branch.
        let ring = UInt64(truncatingIfNeeded: available)
        let turn = random.below(ring)
        let width = (ring &<< 32) / UInt64(truncatingIfNeeded: wanted)
        let skipped = UInt64(truncatingIfNeeded: hole)
        var bits: UInt64 = 0
        var edge: UInt64 = 0
        for piece in 1...wanted {
            let nextEdge = piece == wanted ? ring &<< 32 : edge &+ width
            let start = edge &>> 32
            bits = piece & 1 == 1 ? random.next() : bits &>> 32
            let step = ((bits & 0xFFFF_FFFF) &* ((nextEdge &>> 32) &- start)) &>> 32
            var draw = start &+ step &+ turn
            draw = draw >= ring ? draw &- ring : draw
            draw = draw >= skipped ? draw &+ 1 : draw
            visit(Int(truncatingIfNeeded: draw))
            edge = nextEdge
        }
    }
}

extension PeerStore {
    /// Writes up to `wanted` compact peers of a swarm.
    ///
    /// - Parameters:
    ///   - wanted: peers wanted, at least 0; the room must hold that many.
    ///   - list: the swarm's peers of this family.
    ///   - own: the announcer's position, which is left out.
    ///   - isSeeder: whether the announcer is a seeder, who gets leechers only.
    ///   - random: the node's stream; equal streams choose equally.
    ///   - room: filled from its start.
    /// - Returns: how many were written.
    /// - Complexity: O(wanted), no allocation.
    func choose(
        _ wanted: Int, from list: PeerList, own: Int?, isSeeder: Bool, random: inout RandomStream,
        into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        precondition(room.count >= wanted * Endpoint.byteCount, "the room is too small for the peers wanted")
        guard let base = room.baseAddress else { return 0 }
        let candidates = Candidates(list, isSeeder: isSeeder, own: own)
        var target = base
        if list.isLarge {
            large[Int(list.place & ~PeerList.largeBit)].endpoints.withUnsafeBufferPointer { endpoints in
                candidates.draw(wanted, &random) { position in
                    target.storeBytes(of: endpoints[position], as: Endpoint.self)
                    target += Endpoint.byteCount
                }
            }
        } else {
            pool.records.withUnsafeBufferPointer { records in
                let start = Int(list.place)
                candidates.draw(wanted, &random) { position in
                    target.storeBytes(of: records[start + position].endpoint, as: Endpoint.self)
                    target += Endpoint.byteCount
                }
            }
        }
        return (target - base) / Endpoint.byteCount
    }

    /// As `choose`, with the peers' ids, for HTTP.
    func chooseWithIDs(
        _ wanted: Int, from list: PeerList, own: Int?, isSeeder: Bool, random: inout RandomStream
    ) -> [(endpoint: Endpoint, peerID: PeerID)] {
        var chosen: [(endpoint: Endpoint, peerID: PeerID)] = []
        Candidates(list, isSeeder: isSeeder, own: own).draw(wanted, &random) { position in
            let peer = peer(list, at: position)
            chosen.append((peer.endpoint, peer.peerID))
        }
        return chosen
    }
}

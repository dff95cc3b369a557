// Who announces what.

import Primitives

/// Who announces what: torrents and peers by number.
///
/// Everything about them is a function of the seed, so that a second run finds the swarms of the first, and nothing
/// needs to be kept.
package struct LoadPopulation: Sendable {
    /// Peers do not listen on the ports of system services.
    static let firstPort = 1024
    package static let portsPerSource = 65_536 - firstPort

    let torrents: Int
    let peers: Int
    /// The addresses that requests come from; a lone `.unspecified` leaves it to the kernel.
    package let sources: [SocketAddress]

    // Bijections of numbers, so that no two torrents share a hash; one for each use.
    private let torrentBase: UInt64
    private let peerBase: UInt64
    private let roleBase: UInt64
    private let firstPeerPort: Int
    private let seederBound: UInt64

    package init(_ options: LoadOptions) {
        torrents = options.torrents
        peers = options.peers
        sources = options.sources == 1 ? [.unspecified] : (0..<options.sources).map(Self.source)
        torrentBase = mixed(options.seed ^ 0x746F_7272_656E_7473)  // "torrents"
        peerBase = mixed(options.seed ^ 0x7065_6572_7065_6572)  // "peerpeer"
        roleBase = mixed(options.seed ^ 0x726F_6C65_726F_6C65)  // "rolerole"
        firstPeerPort = Int(mixed(peerBase) % UInt64(Self.portsPerSource))
        seederBound = UInt64(options.seederShare * 4_294_967_296)
    }

    /// 127.1.0.1 and up; neither 0 nor 255 ends an address, which would look like a network's own.
    static func source(_ index: Int) -> SocketAddress {
        SocketAddress(ipv4: 0x7F01_0000 + UInt32(index / 250) << 8 + UInt32(index % 250 + 1), port: 0)
    }

    /// The first twenty bytes of three mixed numbers, most significant byte first.
    ///
    /// `Benchmarks/run` repeats this, to write opentracker's whitelist.
    package func infoHash(_ torrent: Int) -> Bytes20 {
        let first = torrentBase &+ UInt64(torrent) &* 4
        let bytes = (
            mixed(first).bigEndian, mixed(first &+ 1).bigEndian, mixed(first &+ 2).bigEndian
        )
        return withUnsafeBytes(of: bytes) { $0.loadUnaligned(as: Bytes20.self) }
    }

    package func torrent(ofPeer peer: Int) -> Int { peer % torrents }

    package func source(ofPeer peer: Int) -> Int { peer % sources.count }

    /// With its source, no other peer's.
    package func port(ofPeer peer: Int) -> UInt16 {
        UInt16(Self.firstPort + (peer / sources.count + firstPeerPort) % Self.portsPerSource)
    }

    /// `PeerID.ownPrefix`, the peer's number and eight mixed bytes.
    package func peerID(_ peer: Int) -> Bytes20 {
        let bytes = (
            UInt64(0x2D53_5730_3130_302D).bigEndian, UInt32(truncatingIfNeeded: peer).bigEndian,
            UInt32(truncatingIfNeeded: mixed(peerBase &+ UInt64(peer))).bigEndian,
            UInt32(truncatingIfNeeded: mixed(peerBase &+ UInt64(peer)) &>> 32).bigEndian
        )
        return withUnsafeBytes(of: bytes) { $0.loadUnaligned(as: Bytes20.self) }
    }

    /// Whether a peer has everything from the start.
    package func beginsAsSeeder(_ peer: Int) -> Bool { mixed(roleBase &+ UInt64(peer)) &>> 32 < seederBound }
}

/// What the peers have told the tracker so far, a byte a peer.
package struct LoadPeerStates: Sendable {
    enum State: UInt8 {
        case away
        case leecher
        case seeder
    }

    private var states: [State]
    private let completedBound: UInt64
    private let stoppedBound: UInt64

    package init(_ options: LoadOptions, _ population: LoadPopulation) {
        states = Array(repeating: .away, count: options.peers)
        if options.isFilled {
            for peer in states.indices { states[peer] = population.beginsAsSeeder(peer) ? .seeder : .leecher }
        }
        stoppedBound = UInt64(options.stoppedShare * 4_294_967_296)
        completedBound = stoppedBound + UInt64(options.completedShare * 4_294_967_296)
    }

    /// Chooses what a peer announces next, and remembers it.
    ///
    /// - Parameters:
    ///   - peer: its number.
    ///   - chance: 32 random bits.
    ///   - population: tells which peers begin as seeders.
    /// - Returns: BEP 15's number of the event, and the bytes left.
    package mutating func next(
        _ peer: Int, chance: UInt64, _ population: LoadPopulation
    ) -> (event: UInt32, left: UInt64) {
        let state = states[peer]
        switch state {
        case .away:
            let isSeeder = population.beginsAsSeeder(peer)
            states[peer] = isSeeder ? .seeder : .leecher
            return (2, isSeeder ? 0 : Self.left)
        case .leecher where chance < stoppedBound, .seeder where chance < stoppedBound:
            states[peer] = .away
            return (3, state == .seeder ? 0 : Self.left)
        case .leecher where chance < completedBound:
            states[peer] = .seeder
            return (1, 0)
        case .leecher: return (0, Self.left)
        case .seeder: return (0, 0)
        }
    }

    /// Bytes that a leecher still lacks: 1 GiB.
    package static let left: UInt64 = 1 << 30
}

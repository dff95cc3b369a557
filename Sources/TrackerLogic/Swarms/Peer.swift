// One peer of a swarm, as the table keeps it.

import Primitives
import Wire

/// One peer of a swarm, as the table keeps it: 48 bytes over IPv4, 64 over IPv6.
@frozen
public struct Peer<Endpoint: CompactEndpoint>: Sendable, Hashable {
    /// Bytes.
    var downloaded: UInt64
    /// Bytes; 0 makes a seeder.
    var left: UInt64
    var peerID: PeerID
    /// Cluster time of the last announce, in seconds since 1970.
    var lastSeen: UInt32
    /// Last, so that the eighteen bytes of an IPv6 endpoint need no padding.
    var endpoint: Endpoint
    /// Whether this download has been counted as completed.
    var isCounted: Bool

    var isSeeder: Bool { left == 0 }

    /// The peer's part in the state's fingerprint; `torrent` is the hash of its info hash.
    func fingerprint(torrent: UInt64, key: UInt64) -> UInt64 {
        let id = peerID.bytes.hash(key: key)
        let place = endpoint.hash(key: key) ^ torrent
        let progress = folded(downloaded ^ key, left ^ 0xA076_1D64_78BD_642F)
        let time = UInt64(lastSeen) << 1 | (isCounted ? 1 : 0)
        return folded(folded(place ^ 0x9E37_79B9_7F4A_7C15, id ^ key), progress ^ time)
    }
}

/// The peers of one swarm and one address family, as the torrent's record names them.
///
/// Leechers stand first, then seeders: `place..<place + count` is split at `leechers`.
struct PeerList: Sendable, Hashable {
    /// Where the peers are: the first record of a block, or, with the top bit, the number of a large swarm.
    var place: UInt32 = 0
    var count: UInt32 = 0
    var seeders: UInt32 = 0

    static let largeBit: UInt32 = 1 << 31

    var isLarge: Bool { place & PeerList.largeBit != 0 }
    var leechers: Int { Int(count - seeders) }
}

extension Peer: Archived where Endpoint: Archived {
    static var blank: Peer {
        Peer(downloaded: 0, left: 0, peerID: .blank, lastSeen: 0, endpoint: .blank, isCounted: false)
    }

    mutating func walk(_ archive: inout Archive) {
        downloaded.walk(&archive)
        left.walk(&archive)
        peerID.walk(&archive)
        lastSeen.walk(&archive)
        endpoint.walk(&archive)
        isCounted.walk(&archive)
    }
}

extension PeerList {
    mutating func walk(_ archive: inout Archive) {
        place.walk(&archive)
        count.walk(&archive)
        seeders.walk(&archive)
    }
}

extension Torrent: Archived {
    static var blank: Torrent { Torrent(infoHash: .blank) }

    mutating func walk(_ archive: inout Archive) {
        infoHash.walk(&archive)
        completed.walk(&archive)
        ipv4.walk(&archive)
        ipv6.walk(&archive)
        emptySince.walk(&archive)
    }
}

// Connection ids (BEP 15).

import Primitives
import Wire

/// Connection ids (BEP 15): proof that a client receives at the address it sends from, without remembering anyone.
///
/// An id is a keyed MAC over the client's address (not its port: clients behind one NAT share ids, and some clients
/// send from several sockets) and a time bucket, whose low eight bits it carries in front. All trackers of a cluster
/// have the key, so an id outlives the tracker that gave it.
///
/// "The connection ID … should not be used by a client after one minute …. A tracker should accept the connection ID
/// until two minutes after it has been send" (BEP 15). We accept half a minute more on both sides, for trackers whose
/// clocks differ by so much.
public struct ConnectionIDs: Sendable, Hashable {
    /// The grain of time in an id.
    static let bucketSeconds: Int64 = 10
    /// Two minutes, and half a minute of skew.
    static let maxAge: Int64 = 15
    /// Half a minute of skew.
    static let maxLead: Int64 = 3

    private var mac: SipHash

    /// Takes a secret key of 128 bits, the same on all trackers of a cluster.
    public init(key0: UInt64, key1: UInt64) { mac = SipHash(key0: key0, key1: key1) }

    /// The id that proves to hear what is sent to an address.
    ///
    /// - Parameters:
    ///   - address: the client's; its port does not count.
    ///   - time: wall clock, whose last ten seconds the id carries.
    /// - Returns: the same id for ten seconds; a client may use it for a minute.
    public func issue(to address: SocketAddress, at time: WallTime) -> ConnectionID {
        id(address, bucket: ConnectionIDs.bucket(time))
    }

    /// Whether an id was issued to an address by a tracker with the same key.
    ///
    /// - Parameters:
    ///   - connectionID: as the client sends it.
    ///   - address: that it sends from; its port does not count.
    ///   - time: wall clock now.
    /// - Returns: false also where the id is more than 150 s old, or from more than 30 s ahead.
    public func isValid(_ connectionID: ConnectionID, from address: SocketAddress, at time: WallTime) -> Bool {
        let current = ConnectionIDs.bucket(time)
        // How old the id claims to be, −128…127 buckets.
        let age = Int64(Int8(truncatingIfNeeded: current &- Int64(connectionID.rawValue >> 56)))
        guard age <= ConnectionIDs.maxAge, age >= -ConnectionIDs.maxLead else { return false }
        return id(address, bucket: current &- age) == connectionID
    }

    private func id(_ address: SocketAddress, bucket: Int64) -> ConnectionID {
        let code = mac.mac(address.high, address.low, UInt64(bitPattern: bucket))
        return ConnectionID(UInt64(truncatingIfNeeded: bucket) << 56 | code >> 8)
    }

    private static func bucket(_ time: WallTime) -> Int64 { time.milliseconds / (bucketSeconds * 1000) }
}

extension ConnectionIDs {
    /// The same on all trackers of a cluster.
    init(secret: ClusterSecret) {
        let keys = SipHash(key0: secret.w2, key1: secret.w3)
        self.init(key0: keys.mac(Array("connection 0".utf8)), key1: keys.mac(Array("connection 1".utf8)))
    }
}

extension ConnectionIDs {
    mutating func walk(_ archive: inout Archive) {
        mac.key0.walk(&archive)
        mac.key1.walk(&archive)
    }
}

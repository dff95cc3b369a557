// Numbers, times, addresses and names as bytes of an archive.

import Primitives
import Wire

extension UInt8: Archived {
    static var blank: UInt8 { 0 }
    mutating func walk(_ archive: inout Archive) { archive.number(&self) }
}

extension UInt16: Archived {
    static var blank: UInt16 { 0 }
    mutating func walk(_ archive: inout Archive) { archive.number(&self) }
}

extension UInt32: Archived {
    static var blank: UInt32 { 0 }
    mutating func walk(_ archive: inout Archive) { archive.number(&self) }
}

extension UInt64: Archived {
    static var blank: UInt64 { 0 }
    mutating func walk(_ archive: inout Archive) { archive.number(&self) }
}

extension Int64: Archived {
    static var blank: Int64 { 0 }
    mutating func walk(_ archive: inout Archive) { archive.number(&self) }
}

extension Int: Archived {
    static var blank: Int { 0 }

    /// As 64 bits, wherever it is.
    mutating func walk(_ archive: inout Archive) {
        var wide = Int64(self)
        archive.number(&wide)
        guard archive.isReading else { return }
        if let read = Int(exactly: wide) { self = read } else { archive.refuse() }
    }
}

extension Bool: Archived {
    static var blank: Bool { false }

    mutating func walk(_ archive: inout Archive) {
        switch archive.tag(self ? 1 : 0) {
        case 0: self = false
        case 1: self = true
        default: archive.refuse()
        }
    }
}

extension String: Archived {
    static var blank: String { "" }

    mutating func walk(_ archive: inout Archive) {
        var bytes = archive.isReading ? [] : Array(utf8)
        archive.walk(bytes: &bytes)
        if archive.isReading { self = String(decoding: bytes, as: UTF8.self) }
    }
}

extension Instant: Archived {
    static var blank: Instant { Instant(nanoseconds: 0) }
    mutating func walk(_ archive: inout Archive) { archive.number(&nanoseconds) }
}

extension Duration: Archived {
    static var blank: Duration { .zero }
    mutating func walk(_ archive: inout Archive) { archive.number(&nanoseconds) }
}

extension WallTime: Archived {
    static var blank: WallTime { WallTime(milliseconds: 0) }
    mutating func walk(_ archive: inout Archive) { archive.number(&milliseconds) }
}

extension SocketAddress: Archived {
    static var blank: SocketAddress { .unspecified }

    mutating func walk(_ archive: inout Archive) {
        archive.number(&high)
        archive.number(&low)
        archive.number(&scope)
        archive.number(&port)
    }
}

extension RandomStream: Archived {
    static var blank: RandomStream { RandomStream(seed: 0) }

    mutating func walk(_ archive: inout Archive) {
        var (w0, w1, w2, w3) = state
        archive.number(&w0)
        archive.number(&w1)
        archive.number(&w2)
        archive.number(&w3)
        if archive.isReading { self = RandomStream(state: (w0, w1, w2, w3)) }
    }
}

extension Bytes20: Archived {
    static var blank: Bytes20 { Bytes20() }

    mutating func walk(_ archive: inout Archive) {
        guard archive.isReading else { return withUnsafeBytes(of: self) { archive.put($0) } }
        let read = archive.take(Bytes20.byteCount)
        if !archive.isDamaged { self = Bytes20(read.span.bytes, at: 0) }
    }
}

extension InfoHash: Archived {
    static var blank: InfoHash { InfoHash(Bytes20()) }
    mutating func walk(_ archive: inout Archive) { bytes.walk(&archive) }
}

extension PeerID: Archived {
    static var blank: PeerID { PeerID(Bytes20()) }
    mutating func walk(_ archive: inout Archive) { bytes.walk(&archive) }
}

extension TransactionID: Archived {
    static var blank: TransactionID { TransactionID(0) }
    mutating func walk(_ archive: inout Archive) { archive.number(&rawValue) }
}

extension CompactIPv4: Archived {
    static var blank: CompactIPv4 { CompactIPv4([0, 0, 0, 0, 0, 0].span.bytes, at: 0) }
    mutating func walk(_ archive: inout Archive) { walkBytes(&archive) }
}

extension CompactIPv6: Archived {
    static var blank: CompactIPv6 { CompactIPv6([UInt8](repeating: 0, count: byteCount).span.bytes, at: 0) }
    mutating func walk(_ archive: inout Archive) { walkBytes(&archive) }
}

extension CompactEndpoint {
    fileprivate mutating func walkBytes(_ archive: inout Archive) {
        guard archive.isReading else { return withUnsafeBytes(of: self) { archive.put($0) } }
        let read = archive.take(Self.byteCount)
        if !archive.isDamaged { self = Self(read.span.bytes, at: 0) }
    }
}

// MARK: - Names of the cluster

extension Life: Archived {
    static var blank: Life { Life(id: 0, incarnation: 0) }

    mutating func walk(_ archive: inout Archive) {
        archive.number(&id)
        archive.number(&incarnation)
    }
}

extension Epoch: Archived {
    static var blank: Epoch { .zero }

    mutating func walk(_ archive: inout Archive) {
        archive.number(&round)
        archive.number(&id)
    }
}

extension Ballot: Archived {
    static var blank: Ballot { Ballot(epoch: .zero, attempt: 0, index: 0) }

    mutating func walk(_ archive: inout Archive) {
        epoch.walk(&archive)
        archive.number(&attempt)
        archive.number(&index)
    }
}

extension Position: Archived {
    static var blank: Position { .start }

    mutating func walk(_ archive: inout Archive) {
        archive.number(&index)
        archive.number(&chain)
    }
}

extension ClusterSecret: Archived {
    static var blank: ClusterSecret { ClusterSecret(0, 0, 0, 0) }

    mutating func walk(_ archive: inout Archive) {
        archive.number(&w0)
        archive.number(&w1)
        archive.number(&w2)
        archive.number(&w3)
    }
}

extension ClusterRole: Archived { static var blank: ClusterRole { .newcomer } }
extension JoinRefusal: Archived { static var blank: JoinRefusal { .idTaken } }
extension AccessMode: Archived { static var blank: AccessMode { .open } }
extension SharedSetting: Archived { static var blank: SharedSetting { .members } }

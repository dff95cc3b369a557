// Socket addresses between trackers: 22 bytes, of both families.

import Primitives

extension [UInt8] {
    mutating func append(_ address: SocketAddress) {
        append(bigEndian: address.high)
        append(bigEndian: address.low)
        append(bigEndian: address.scope)
        append(bigEndian: address.port)
    }
}

extension ByteReader {
    mutating func address() throws(OutOfBytes) -> SocketAddress {
        SocketAddress(high: try u64(), low: try u64(), scope: try u32(), port: try u16())
    }
}

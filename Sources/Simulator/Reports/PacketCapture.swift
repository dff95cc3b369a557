/// Datagrams of a simulated world as a capture file that protocol analysers open: libpcap's format, raw IP packets.
///
///     file:   magic, version 2.4, 0, 0, longest packet, link type 101 (the packet begins with its IP header)
///     packet: seconds, nanoseconds, bytes kept, bytes in all; IP header, UDP header, datagram
///
/// Numbers are big-endian, which the magic says. Times count from the beginning of the world.
///
/// - SeeAlso: draft-ietf-opsawg-pcap; RFC 791 (IPv4), RFC 8200 (IPv6), RFC 768 (UDP).

import Primitives

public struct PacketCapture: Sendable {
    /// What UDP can carry: 65,535 bytes with the headers of UDP and IPv4.
    public static let maxByteCount = 65_507
    /// Times in nanoseconds.
    static let magic: UInt32 = 0xA1B2_3C4D
    static let linkType: UInt32 = 101
    private static let udp: UInt8 = 17
    private static let hopLimit: UInt8 = 64

    public private(set) var bytes: [UInt8] = []
    public private(set) var packetCount = 0

    public init() {
        bytes.append(bigEndian: PacketCapture.magic)
        bytes.append(bigEndian: UInt16(2))
        bytes.append(bigEndian: UInt16(4))
        bytes.append(bigEndian: UInt64(0))
        bytes.append(bigEndian: UInt32(1 << 18))
        bytes.append(bigEndian: PacketCapture.linkType)
    }

    /// Adds a datagram; those that UDP cannot carry are left out.
    ///
    /// IPv4 where both ends have it, else IPv6.
    public mutating func append(
        at time: Instant, from source: SocketAddress, to target: SocketAddress, _ data: [UInt8]
    ) {
        guard data.count <= PacketCapture.maxByteCount, time.nanoseconds >= 0 else { return }
        let header =
            source.isIPv4 && target.isIPv4
            ? ipv4Header(source, target, UInt16(8 + data.count)) : ipv6Header(source, target, UInt16(8 + data.count))
        let byteCount = UInt32(header.count + 8 + data.count)
        let (seconds, nanoseconds) = time.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        bytes.append(bigEndian: UInt32(clamping: seconds))
        bytes.append(bigEndian: UInt32(nanoseconds))
        bytes.append(bigEndian: byteCount)
        bytes.append(bigEndian: byteCount)
        bytes.append(contentsOf: header)
        bytes.append(bigEndian: source.port)
        bytes.append(bigEndian: target.port)
        bytes.append(bigEndian: UInt16(8 + data.count))
        bytes.append(bigEndian: PacketCapture.datagramChecksum(source, target, data))
        bytes.append(contentsOf: data)
        packetCount += 1
    }

    private func ipv4Header(_ source: SocketAddress, _ target: SocketAddress, _ payload: UInt16) -> [UInt8] {
        var header: [UInt8] = [0x45, 0]
        header.append(bigEndian: 20 + payload)
        header.append(bigEndian: UInt16(truncatingIfNeeded: packetCount))
        header.append(bigEndian: UInt16(0x4000))  // not to be fragmented
        header += [PacketCapture.hopLimit, PacketCapture.udp]
        header.append(bigEndian: UInt16(0))
        header.append(bigEndian: source.ipv4)
        header.append(bigEndian: target.ipv4)
        var sum = InternetChecksum()
        sum.add(header)
        header.replaceSubrange(10..<12, with: [UInt8(sum.value >> 8), UInt8(sum.value & 0xFF)])
        return header
    }

    private func ipv6Header(_ source: SocketAddress, _ target: SocketAddress, _ payload: UInt16) -> [UInt8] {
        var header: [UInt8] = [0x60, 0, 0, 0]
        header.append(bigEndian: payload)
        header += [PacketCapture.udp, PacketCapture.hopLimit]
        for address in [source, target] {
            header.append(bigEndian: address.high)
            header.append(bigEndian: address.low)
        }
        return header
    }

    /// Over the addresses, the protocol, the length and the datagram; 0 is sent as all ones, for 0 would mean none.
    private static func datagramChecksum(
        _ source: SocketAddress, _ target: SocketAddress, _ data: [UInt8]
    ) -> UInt16 {
        var sum = InternetChecksum()
        // The prefix of an IPv4 address in IPv6's form stands on both sides, and an IPv4 header has none of it.
        let isIPv4 = source.isIPv4 && target.isIPv4
        for address in [source, target] {
            if isIPv4 {
                sum.add(UInt64(address.ipv4))
            } else {
                sum.add(address.high)
                sum.add(address.low)
            }
        }
        sum.add(UInt64(udp))
        // Once in the addresses' header, once in its own.
        sum.add(UInt64(8 + data.count) * 2)
        sum.add(UInt64(source.port))
        sum.add(UInt64(target.port))
        sum.add(data)
        return sum.value == 0 ? 0xFFFF : sum.value
    }
}

/// The ones' complement sum of 16-bit words (RFC 1071).
struct InternetChecksum {
    private var sum: UInt64 = 0

    mutating func add(_ bytes: [UInt8]) {
        var offset = 0
        while offset + 1 < bytes.count {
            sum += UInt64(bytes[offset]) << 8 | UInt64(bytes[offset + 1])
            offset += 2
        }
        if offset < bytes.count { sum += UInt64(bytes[offset]) << 8 }
    }

    /// The four 16-bit words of a number.
    mutating func add(_ number: UInt64) {
        for shift in [0, 16, 32, 48] as [UInt64] { sum += number >> shift & 0xFFFF }
    }

    var value: UInt16 {
        var folded = sum
        while folded > 0xFFFF { folded = folded >> 16 + folded & 0xFFFF }
        return ~UInt16(folded)
    }
}

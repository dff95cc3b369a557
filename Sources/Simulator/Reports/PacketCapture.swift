// Datagrams of a simulated world as a capture file that protocol analysers open.

import Primitives

/// Datagrams of a simulated world as a capture file that protocol analysers open: pcapng, raw IP packets.
///
///     section    magic, version 1.0, and who wrote it
///     interface  one for each of `Interface`: link type 101 (a packet begins with its IP header), name, what it is
///     packet     interface, time in nanoseconds, lengths, IP header, UDP header, datagram, comment
///
/// Numbers are big-endian, which the section's magic says. Times count from the beginning of the world. Each block is
/// a multiple of four bytes long, and ends with its length, as it began.
///
/// - SeeAlso: draft-ietf-opsawg-pcapng; RFC 791 (IPv4), RFC 8200 (IPv6), RFC 768 (UDP).
public struct PacketCapture: Sendable {
    /// Where a packet was seen.
    public enum Interface: UInt32, Sendable, Hashable, CaseIterable {
        /// Between clients and trackers.
        case clients = 0
        /// Between trackers.
        case bus = 1
        /// Not traffic: what happened to trackers, as syslog messages, which analysers show as text.
        case steps = 2

        var about: String {
            switch self {
            case .clients: "what clients and trackers sent each other (BEP 15)"
            case .bus: "what trackers gave to their bus, as frames of the multicast bus without a MAC"
            case .steps: "no traffic: elections, commits and faults, as syslog messages"
            }
        }
    }

    /// What UDP can carry: 65,535 bytes with the headers of UDP and IPv4.
    public static let maxByteCount = 65_507
    /// A comment that is longer is cut.
    public static let maxCommentByteCount = 4000
    private static let linkType: UInt16 = 101
    private static let udp: UInt8 = 17
    private static let hopLimit: UInt8 = 64

    private enum Block {
        static let section: UInt32 = 0x0A0D_0D0A
        static let interface: UInt32 = 1
        static let packet: UInt32 = 6
    }

    /// The numbers of options, by block.
    private enum Option {
        static let end: UInt16 = 0
        static let comment: UInt16 = 1
        /// Of a section: the program.
        static let application: UInt16 = 4
        /// Of an interface.
        static let name: UInt16 = 2
        static let description: UInt16 = 3
        static let timeResolution: UInt16 = 9
    }

    /// The file so far; it may end after each packet.
    public private(set) var bytes: [UInt8] = []
    /// Packets of all interfaces.
    public private(set) var packetCount = 0

    /// - Parameter comment: of the whole file.
    public init(comment: String = "") {
        append(Block.section) { body in
            body.append(bigEndian: UInt32(0x1A2B_3C4D))
            body.append(bigEndian: UInt16(1))
            body.append(bigEndian: UInt16(0))
            // How long the section is, nobody says.
            body.append(bigEndian: UInt64.max)
            if !comment.isEmpty { body.append(option: Option.comment, PacketCapture.bounded(comment)) }
            body.append(option: Option.application, Array("tracker replay".utf8))
            body.append(option: Option.end, [])
        }
        for interface in Interface.allCases {
            append(Block.interface) { body in
                body.append(bigEndian: PacketCapture.linkType)
                body.append(bigEndian: UInt16(0))
                // Packets are kept whole.
                body.append(bigEndian: UInt32(0))
                body.append(option: Option.name, Array("\(interface)".utf8))
                body.append(option: Option.description, Array(interface.about.utf8))
                body.append(option: Option.timeResolution, [9])
                body.append(option: Option.end, [])
            }
        }
    }

    /// Adds a datagram; those that UDP cannot carry are left out.
    ///
    /// It is IPv4 where both ends have it, else IPv6.
    ///
    /// - Parameters:
    ///   - time: when it was sent, by the clock of the world.
    ///   - interface: where it is shown.
    ///   - source: its sender.
    ///   - target: its receiver.
    ///   - data: what it carries, without heads.
    ///   - comment: shown beside the packet, cut after `maxCommentByteCount` bytes; empty for none.
    public mutating func append(
        at time: Instant, on interface: Interface = .clients, from source: SocketAddress, to target: SocketAddress,
        _ data: [UInt8], comment: String = ""
    ) {
        guard data.count <= PacketCapture.maxByteCount, time.nanoseconds >= 0 else { return }
        var packet =
            source.isIPv4 && target.isIPv4
            ? ipv4Header(source, target, UInt16(8 + data.count)) : ipv6Header(source, target, UInt16(8 + data.count))
        packet.append(bigEndian: source.port)
        packet.append(bigEndian: target.port)
        packet.append(bigEndian: UInt16(8 + data.count))
        packet.append(bigEndian: PacketCapture.datagramChecksum(source, target, data))
        packet.append(contentsOf: data)
        append(Block.packet) { body in
            body.append(bigEndian: interface.rawValue)
            body.append(bigEndian: UInt64(time.nanoseconds))
            body.append(bigEndian: UInt32(packet.count))
            body.append(bigEndian: UInt32(packet.count))
            body.append(padded: packet)
            guard !comment.isEmpty else { return }
            body.append(option: Option.comment, PacketCapture.bounded(comment))
            body.append(option: Option.end, [])
        }
        packetCount += 1
    }

    private mutating func append(_ type: UInt32, _ write: (inout [UInt8]) -> Void) {
        var body: [UInt8] = []
        write(&body)
        let byteCount = UInt32(12 + body.count)
        bytes.append(bigEndian: type)
        bytes.append(bigEndian: byteCount)
        bytes.append(contentsOf: body)
        bytes.append(bigEndian: byteCount)
    }

    /// A comment that is cut ends with whole characters.
    private static func bounded(_ comment: String) -> [UInt8] {
        guard comment.utf8.count > maxCommentByteCount else { return Array(comment.utf8) }
        return Array((String(decoding: comment.utf8.prefix(maxCommentByteCount - 8), as: UTF8.self) + "…").utf8)
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

extension [UInt8] {
    /// Bytes, and zeros up to a multiple of four.
    fileprivate mutating func append(padded data: [UInt8]) {
        append(contentsOf: data)
        append(contentsOf: repeatElement(0, count: (4 - data.count & 3) & 3))
    }

    fileprivate mutating func append(option: UInt16, _ value: [UInt8]) {
        append(bigEndian: option)
        append(bigEndian: UInt16(value.count))
        append(padded: value)
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

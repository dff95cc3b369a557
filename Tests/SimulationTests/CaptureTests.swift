// Runs as capture files: pcapng, with clients, bus and steps on interfaces of their own.

import Primitives
import Simulator
import Testing

/// Reads pcapng, as far as `PacketCapture` writes it.
private struct CaptureReader {
    struct Packet {
        var interface: UInt32
        var time: UInt64
        /// With its IP header.
        var bytes: [UInt8]
        var comment: String?
    }

    var names: [String] = []
    var packets: [Packet] = []
    var sectionComment: String?

    /// nil where blocks, lengths or options do not fit.
    init?(_ file: [UInt8]) {
        func u16(_ offset: Int) -> Int { Int(file[offset]) << 8 | Int(file[offset + 1]) }
        func u32(_ offset: Int) -> UInt32 { UInt32(u16(offset)) << 16 | UInt32(u16(offset + 2)) }
        var offset = 0
        while offset < file.count {
            guard offset + 12 <= file.count else { return nil }
            let (type, length) = (u32(offset), Int(u32(offset + 4)))
            guard length >= 12, length.isMultiple(of: 4), offset + length <= file.count,
                Int(u32(offset + length - 4)) == length
            else { return nil }
            let end = offset + length - 4
            func options(from start: Int) -> [(code: Int, value: [UInt8])]? {
                var (place, all) = (start, [(code: Int, value: [UInt8])]())
                while place < end {
                    let (code, size) = (u16(place), u16(place + 2))
                    guard place + 4 + size <= end else { return nil }
                    if code == 0 { return place + 4 == end ? all : nil }
                    all.append((code, Array(file[place + 4..<place + 4 + size])))
                    place += 4 + (size + 3) / 4 * 4
                }
                return all
            }
            func text(_ code: Int, _ options: [(code: Int, value: [UInt8])]) -> String? {
                options.first { $0.code == code }.map { String(decoding: $0.value, as: UTF8.self) }
            }
            switch type {
            case 0x0A0D_0D0A:
                guard offset == 0, u32(8) == 0x1A2B_3C4D, let options = options(from: 24) else { return nil }
                sectionComment = text(1, options)
            case 1:
                guard u16(offset + 8) == 101, let options = options(from: offset + 16),
                    options.contains(where: { $0.code == 9 && $0.value == [9] }), let name = text(2, options)
                else { return nil }
                names.append(name)
            case 6:
                let size = Int(u32(offset + 20))
                let body = offset + 28
                guard u32(offset + 24) == size, let options = options(from: body + (size + 3) / 4 * 4) else {
                    return nil
                }
                packets.append(
                    Packet(
                        interface: u32(offset + 8), time: UInt64(u32(offset + 12)) << 32 | UInt64(u32(offset + 16)),
                        bytes: Array(file[body..<body + size]), comment: text(1, options)))
            default: return nil
            }
            offset += length
        }
    }
}

@Suite("Captures", .computes)
struct CaptureTests {
    private static let client = SocketAddress(ipv4: 0x0A01_0001, port: 0x4E20)
    private static let node = SocketAddress(ipv4: 0x0A00_0001, port: 6969)
    private static let client6 = SocketAddress(high: 0x2001_0DB8_0000_0002, low: 1, port: 0x4E21)
    private static let node6 = SocketAddress(high: 0x2001_0DB8_0000_0001, low: 1, port: 6969)

    /// The sum of 16-bit words, with its carries; all ones where a checksum within is right (RFC 1071).
    private func sum(_ bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = 0
        for (place, byte) in bytes.enumerated() { sum += UInt32(byte) << (place.isMultiple(of: 2) ? 8 : 0) }
        while sum > 0xFFFF { sum = (sum >> 16) + (sum & 0xFFFF) }
        return sum
    }

    /// The packets of a capture.
    private func packets(_ capture: PacketCapture) -> [CaptureReader.Packet] {
        guard let reader = CaptureReader(capture.bytes) else {
            Issue.record("this is no pcapng")
            return []
        }
        return reader.packets
    }

    private func packet(_ capture: PacketCapture) -> CaptureReader.Packet {
        packets(capture).first ?? CaptureReader.Packet(interface: 9, time: 0, bytes: Array(repeating: 0, count: 100))
    }

    @Test func `a capture names its interfaces`() throws {
        let reader = try #require(CaptureReader(PacketCapture(comment: "seed 7").bytes))
        #expect(reader.names == ["clients", "bus", "steps"])
        #expect(reader.sectionComment == "seed 7")
        #expect(reader.packets.isEmpty)
    }

    @Test func `a packet has its interface, its time and its comment`() {
        var capture = PacketCapture()
        for (count, comment) in ["", "a", "ab → c", String(repeating: "é", count: 5000)].enumerated() {
            capture.append(
                at: Instant(nanoseconds: 5_000_000_001), on: .bus, from: Self.node, to: Self.client,
                Array(repeating: 7, count: count), comment: comment)
        }
        let packets = packets(capture)
        #expect(packets.map(\.interface) == [1, 1, 1, 1])
        #expect(packets.allSatisfy { $0.time == 5_000_000_001 })
        #expect(packets.map(\.bytes.count) == [28, 29, 30, 31])
        #expect(packets.prefix(3).map(\.comment) == [nil, "a", "ab → c"])
        let long = packets.last?.comment ?? ""
        #expect(long.utf8.count <= PacketCapture.maxCommentByteCount)
        #expect(long.hasPrefix("ééé") && long.hasSuffix("…"))
    }

    @Test func `an IPv4 datagram is a packet with its length and addresses`() {
        var capture = PacketCapture()
        let data = Array("hello".utf8)
        capture.append(at: Instant(nanoseconds: 3_000_000_007), from: Self.client, to: Self.node, data)
        #expect(packet(capture).time == 3_000_000_007)
        let ip = packet(capture).bytes
        #expect(ip.count == 33)
        #expect(Array(ip[..<10]) == [0x45, 0, 0, 33, 0, 0, 0x40, 0, 64, 17])
        #expect(Array(ip[12..<20]) == [10, 1, 0, 1, 10, 0, 0, 1])
        #expect(Array(ip[20..<26]) == [0x4E, 0x20, 0x1B, 0x39, 0, 13])
        #expect(Array(ip[28...]) == data)
        #expect(sum(Array(ip[..<20])) == 0xFFFF)
        let pseudoHeader = Array(ip[12..<20]) + [0, 17, 0, 13]
        #expect(sum(pseudoHeader + ip[20...]) == 0xFFFF)
    }

    @Test func `an IPv6 datagram is a packet with its length and addresses`() {
        var capture = PacketCapture()
        let data: [UInt8] = [1, 2, 3, 4]
        capture.append(at: Instant(nanoseconds: 0), from: Self.node6, to: Self.client6, data)
        let ip = packet(capture).bytes
        #expect(Array(ip[..<8]) == [0x60, 0, 0, 0, 0, 12, 17, 64])
        #expect(Array(ip[8..<16]) == [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 1])
        #expect(Array(ip[40..<46]) == [0x1B, 0x39, 0x4E, 0x21, 0, 12])
        #expect(ip.count == 52)
        let pseudoHeader = Array(ip[8..<40]) + [0, 0, 0, 12, 0, 0, 0, 17]
        #expect(sum(pseudoHeader + ip[40...]) == 0xFFFF)
    }

    /// A checksum of 0 means none in UDP, and is forbidden over IPv6 (RFC 768, RFC 8200).
    @Test func `checksums are right whatever is in a datagram, and never 0`() {
        var random = RandomStream(seed: 5)
        var wasAllOnes = 0
        for round in 0..<70_000 {
            var capture = PacketCapture()
            let data =
                [UInt8(truncatingIfNeeded: round >> 8), UInt8(truncatingIfNeeded: round)]
                + (0..<random.below(3)).map { _ in 0 }
            let isIPv6 = round.isMultiple(of: 5)
            capture.append(
                at: Instant(nanoseconds: 0), from: isIPv6 ? Self.client6 : Self.client,
                to: isIPv6 ? Self.node6 : Self.node, data)
            let ip = packet(capture).bytes
            let (addresses, payload) = isIPv6 ? (ip[8..<40], ip[40...]) : (ip[12..<20], ip[20...])
            let value = [payload[payload.startIndex + 6], payload[payload.startIndex + 7]]
            if value == [0xFF, 0xFF] { wasAllOnes += 1 }
            guard value != [0, 0], sum(Array(addresses) + [0, 17, 0, UInt8(payload.count)] + payload) == 0xFFFF else {
                Issue.record("round \(round) has a wrong checksum, or none")
                return
            }
        }
        #expect(wasAllOnes > 0)
    }

    @Test func `what UDP cannot carry is left out`() {
        var capture = PacketCapture()
        let long = Array(repeating: UInt8(0), count: PacketCapture.maxByteCount + 1)
        capture.append(at: Instant(nanoseconds: 0), from: Self.client, to: Self.node, long)
        #expect(capture.packetCount == 0)
        capture.append(at: Instant(nanoseconds: 0), from: Self.client, to: Self.node, Array(long.dropLast()))
        #expect(capture.packetCount == 1)
        #expect(Array(packet(capture).bytes[2..<4]) == [0xFF, 0xFF])
    }
}

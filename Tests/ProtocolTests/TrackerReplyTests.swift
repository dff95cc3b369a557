// BEP 15 replies and compact peers (BEP 23, BEP 7): bytes written out by hand from the specifications.

import Primitives
import Testing
import Wire

@Suite("BEP 15 replies")
struct TrackerReplyTests {
    private static let transaction = TransactionID(0xDEAD_BEEF)

    /// Room for a reply, the bytes that were written of it, and the check that nothing else was touched.
    private static func written(
        room: Int = 1_500, _ write: (UnsafeMutableRawBufferPointer) -> Int
    ) -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: room + 8)
        let count = bytes.withUnsafeMutableBytes { write(UnsafeMutableRawBufferPointer(rebasing: $0[..<room])) }
        #expect(count <= room)
        #expect(bytes[count...].allSatisfy { $0 == 0xEE }, "bytes behind the reply were written")
        return Array(bytes[..<count])
    }

    private static func encode(_ reply: TrackerReply) -> [UInt8] {
        switch reply {
        case .connect(let transaction, let id):
            return written { ReplyWriter.connect(transaction, id, into: $0) }
        case .announce(let transaction, let announce):
            var bytes = written {
                ReplyWriter.announceHeader(
                    transaction, interval: announce.interval, leechers: announce.leechers, seeders: announce.seeders,
                    into: $0)
            }
            for peer in announce.peers {
                if let endpoint = CompactIPv4(peer) { withUnsafeBytes(of: endpoint) { bytes += $0 } }
                if let endpoint = CompactIPv6(peer) { withUnsafeBytes(of: endpoint) { bytes += $0 } }
            }
            return bytes
        case .scrape(let transaction, let counts):
            return written(room: 8 + 12 * counts.count) { room in
                var offset = ReplyWriter.scrapeHeader(transaction, into: room)
                for count in counts {
                    ReplyWriter.scrapeCounts(
                        seeders: count.seeders, completed: count.completed, leechers: count.leechers, at: offset,
                        into: room)
                    offset += 12
                }
                return offset
            }
        case .error(let transaction, let message):
            var bytes: [UInt8] = []
            bytes.append(bigEndian: UInt32(3))
            bytes.append(bigEndian: transaction.rawValue)
            return bytes + message
        }
    }

    private static func torture(isIPv6: Bool) -> CodecTorture<TrackerReply> {
        CodecTorture(
            name: "BEP 15 reply", decode: { try? TrackerReply($0, isIPv6: isIPv6) }, encode: { encode($0) },
            spice: [0, 1, 2, 3, 0xFF])
    }

    // MARK: Vectors

    /// BEP 15: offset 0 action 0, 4 transaction_id, 8 connection_id.
    static let connect: [UInt8] = [
        0x00, 0x00, 0x00, 0x00,
        0xDE, 0xAD, 0xBE, 0xEF,
        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
    ]

    /// BEP 15: offset 0 action 1, 4 transaction_id, 8 interval, 12 leechers, 16 seeders, 20 + 6 n IP address, 24 + 6 n
    /// TCP port.
    static let announce: [UInt8] = [
        0x00, 0x00, 0x00, 0x01,
        0xDE, 0xAD, 0xBE, 0xEF,
        0x00, 0x00, 0x07, 0x08,
        0x00, 0x00, 0x00, 0x11,
        0x00, 0x00, 0x01, 0x02,
        0xC0, 0x00, 0x02, 0x01, 0x1A, 0xE1,
        0xCB, 0x00, 0x71, 0xFF, 0xFF, 0xFF,
    ]

    /// The same over IPv6: "the stride size of 18 instead of 6" (BEP 15).
    static let announce6: [UInt8] =
        Array(announce[..<20]) + [
            0x20, 0x01, 0x0D, 0xB8, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x1A, 0xE1,
        ]

    /// BEP 15: offset 0 action 2, 4 transaction_id, 8 + 12 n seeders, 12 + 12 n completed, 16 + 12 n leechers.
    static let scrape: [UInt8] = [
        0x00, 0x00, 0x00, 0x02,
        0xDE, 0xAD, 0xBE, 0xEF,
        0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x03,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    ]

    /// BEP 15: offset 0 action 3, 4 transaction_id, 8 message.
    static let error: [UInt8] = [0x00, 0x00, 0x00, 0x03, 0xDE, 0xAD, 0xBE, 0xEF] + Array("expired".utf8)

    @Test func `connect`() throws {
        let id = ConnectionID(0x0102_0304_0506_0708)
        #expect(Self.encode(.connect(Self.transaction, id)) == Self.connect)
        #expect(try TrackerReply(Self.connect, isIPv6: false) == .connect(Self.transaction, id))
    }

    @Test func `announce with IPv4 peers`() throws {
        let reply = TrackerReply.announce(
            Self.transaction,
            TrackerReply.Announce(
                interval: 1_800, leechers: 17, seeders: 258,
                peers: [
                    SocketAddress(ipv4: 0xC000_0201, port: 6881), SocketAddress(ipv4: 0xCB00_71FF, port: 65_535),
                ]))
        #expect(Self.encode(reply) == Self.announce)
        #expect(try TrackerReply(Self.announce, isIPv6: false) == reply)
    }

    @Test func `announce with IPv6 peers`() throws {
        let reply = TrackerReply.announce(
            Self.transaction,
            TrackerReply.Announce(
                interval: 1_800, leechers: 17, seeders: 258,
                peers: [SocketAddress(high: 0x2001_0DB8_0001_0203, low: 0x0405_0607_0809_0A0B, port: 6881)]))
        #expect(Self.encode(reply) == Self.announce6)
        #expect(try TrackerReply(Self.announce6, isIPv6: true) == reply)
    }

    @Test func `scrape`() throws {
        let reply = TrackerReply.scrape(
            Self.transaction,
            [
                TrackerReply.Scrape(seeders: 1, completed: 2, leechers: 3),
                TrackerReply.Scrape(seeders: 0, completed: 0, leechers: 0),
            ])
        #expect(Self.encode(reply) == Self.scrape)
        #expect(try TrackerReply(Self.scrape, isIPv6: false) == reply)
    }

    @Test func `error, cut to the room that there is`() throws {
        #expect(Self.written { ReplyWriter.error(Self.transaction, "expired", into: $0) } == Self.error)
        for room in 8..<Self.error.count {
            let cut = Self.written(room: room) { ReplyWriter.error(Self.transaction, "expired", into: $0) }
            #expect(cut == Array(Self.error[..<room]))
        }
        #expect(
            try TrackerReply(Self.error, isIPv6: false) == .error(Self.transaction, message: Array("expired".utf8)))
    }

    // MARK: What is no reply

    @Test func `a cut reply is an error, unless it ends between two peers`() {
        typealias Malformed = TrackerReply.Malformed
        func check(_ bytes: [UInt8], isIPv6: Bool, whole: Set<Int>, _ location: SourceLocation = #_sourceLocation) {
            let accepted = Self.torture(isIPv6: isIPv6).acceptedCuts(of: bytes)
            #expect(Set(accepted) == whole, sourceLocation: location)
        }
        check(Self.connect, isIPv6: false, whole: [])
        check(Self.announce, isIPv6: false, whole: [20, 26])
        check(Self.announce6, isIPv6: true, whole: [20])
        check(Self.scrape, isIPv6: false, whole: [8, 20])
        check(Self.error, isIPv6: false, whole: Set(8..<Self.error.count))
        #expect(throws: Malformed.short) { try TrackerReply(Array(Self.connect[..<15]), isIPv6: false) }
        #expect(throws: Malformed.ragged) { try TrackerReply(Array(Self.announce[..<25]), isIPv6: false) }
        #expect(throws: Malformed.ragged) { try TrackerReply(Self.announce, isIPv6: true) }
        #expect(throws: Malformed.unknownAction(9)) { try TrackerReply([0, 0, 0, 9, 0, 0, 0, 0], isIPv6: true) }
    }

    @Test(arguments: [false, true])
    func `mutated replies never trap, and what is read is read the same again`(_ isIPv6: Bool) {
        let announce = isIPv6 ? Self.announce6 : Self.announce
        let counts = Self.torture(isIPv6: isIPv6).mutate(
            [Self.connect, announce, Self.scrape, Self.error], seed: 72, rounds: rounds(50_000))
        #expect(counts.accepted > 1_000)
        #expect(counts.refused > 1_000)
    }

    // MARK: Compact peers

    @Test func `a compact IPv4 peer is its six bytes`() throws {
        let address = SocketAddress(ipv4: 0x0102_0304, port: 0x1AE1)
        let endpoint = try #require(CompactIPv4(address))
        #expect(withUnsafeBytes(of: endpoint) { Array($0) } == [1, 2, 3, 4, 0x1A, 0xE1])
        #expect(endpoint.socketAddress == address)
        #expect(CompactIPv4(([9, 1, 2, 3, 4, 0x1A, 0xE1] as [UInt8]).span.bytes, at: 1) == endpoint)
        #expect(CompactIPv6(address) == nil)
        #expect(MemoryLayout<CompactIPv4>.stride == 6)
    }

    @Test func `a compact IPv6 peer is its eighteen bytes`() throws {
        let address = SocketAddress(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10, port: 0x1AE1)
        let endpoint = try #require(CompactIPv6(address))
        #expect(withUnsafeBytes(of: endpoint) { Array($0) } == Array(1...16) + [0x1A, 0xE1])
        #expect(endpoint.socketAddress == address)
        #expect(CompactIPv6(([9] + Array(1...16) + [0x1A, 0xE1] as [UInt8]).span.bytes, at: 1) == endpoint)
        #expect(CompactIPv4(address) == nil)
        #expect(MemoryLayout<CompactIPv6>.stride == 18)
    }

    @Test func `hashes of compact peers fill all 64 bits, and depend on the key and on every byte`() throws {
        func check<Endpoint: CompactEndpoint>(_ base: [UInt8], _: Endpoint.Type) {
            var ones = Array(repeating: 0, count: 64)
            var seen: Set<UInt64> = []
            for bit in 0..<base.count * 8 {
                var bytes = base
                bytes[bit / 8] ^= 1 << UInt8(bit & 7)
                let endpoint = Endpoint(bytes.span.bytes, at: 0)
                for key: UInt64 in [1, 2, 0xFEED_FACE_CAFE_BEEF] {
                    let hash = endpoint.hash(key: key)
                    seen.insert(hash)
                    for place in 0..<64 { ones[place] += Int(hash >> UInt64(place) & 1) }
                }
            }
            let total = base.count * 8 * 3
            #expect(seen.count == total)
            #expect(ones.allSatisfy { (total / 4...total * 3 / 4).contains($0) }, "\(ones)")
        }
        check([10, 0, 0, 1, 26, 225], CompactIPv4.self)
        check([0x20, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 26, 225], CompactIPv6.self)
    }
}

/// Entries of the log: the bytes that go to the disk and to the other trackers.

import Primitives
import Testing
import Wire

@Suite("Log entries")
struct EntryTests {
    private static let hash = InfoHash(Bytes20(Array(0xA0...0xB3))!)
    private static let peer = PeerID(Bytes20(Array("-XX0001-abcdefghijkl".utf8))!)

    /// One of each kind, with the bytes that it is.
    static let updates: [(update: Update, bytes: [UInt8])] = [
        (
            .announceIPv4(
                AnnounceUpdate(
                    infoHash: hash, peerID: peer, downloaded: 0x0102, left: 0x0304, event: .stopped,
                    endpoint: CompactIPv4(SocketAddress(ipv4: 0xC000_0201, port: 6881))!)),
            [1, 3] + Array(0xA0...0xB3) + Array("-XX0001-abcdefghijkl".utf8) + [0, 0, 0, 0, 0, 0, 1, 2]
                + [0, 0, 0, 0, 0, 0, 3, 4] + [0xC0, 0, 2, 1, 0x1A, 0xE1]
        ),
        (
            .announceIPv6(
                AnnounceUpdate(
                    infoHash: hash, peerID: peer, downloaded: 0, left: .max, event: .completed,
                    endpoint: CompactIPv6(SocketAddress(high: 0x2001_0DB8_0000_0000, low: 1, port: 6881))!)),
            [2, 1] + Array(0xA0...0xB3) + Array("-XX0001-abcdefghijkl".utf8) + [0, 0, 0, 0, 0, 0, 0, 0]
                + Array(repeating: 0xFF, count: 8) + [0x20, 1, 0x0D, 0xB8] + Array(repeating: 0, count: 11)
                + [1, 0x1A, 0xE1]
        ),
        (
            .expire(shard: 1, seenBefore: 2, emptyBefore: 0x0304_0506),
            [3, 0, 0, 0, 1, 0, 0, 0, 2, 3, 4, 5, 6]
        ),
        (
            .registerTorrent(hash, byteCount: 7, name: [97, 98]),
            [4] + Array(0xA0...0xB3) + [0, 0, 0, 0, 0, 0, 0, 7, 0, 2, 97, 98]
        ),
        (.unregisterTorrent(hash), [5] + Array(0xA0...0xB3)),
        (.setAccessMode(3), [6, 3]),
        (.listInfoHash(hash), [7] + Array(0xA0...0xB3)),
        (.unlistInfoHash(hash), [8] + Array(0xA0...0xB3)),
        (.putUser(name: [97], passkey: [98, 99]), [9, 0, 1, 97, 0, 2, 98, 99]),
        (.removeUser(name: []), [10, 0, 0]),
    ]

    private func entry(_ updates: [UInt8], count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        bytes += updates
        EntryHeader(
            index: 0x0102_0304_0506_0708, epoch: Epoch(round: 0x1112_1314_1516_1718, id: 0x2122_2324),
            time: WallTime(milliseconds: 0x3132_3334_3536_3738), updateCount: UInt32(count)
        ).seal(&bytes)
        return bytes
    }

    private func read(_ bytes: [UInt8]) throws(EntryDamaged) -> [Update] {
        var cursor = UpdateCursor()
        var updates: [Update] = []
        while let update = try cursor.next(bytes) { updates.append(update) }
        return updates
    }

    @Test func `the header stands where it is described`() throws {
        let bytes = entry([5, 6], count: 9)
        #expect(bytes.count == 46)
        #expect(Array(bytes[..<4]) == [0x53, 0x4B, 0x45, 1])
        #expect(Array(bytes[4..<12]) == Array(0x01...0x08))
        #expect(Array(bytes[12..<20]) == Array(0x11...0x18))
        #expect(Array(bytes[20..<24]) == Array(0x21...0x24))
        #expect(Array(bytes[24..<32]) == Array(0x31...0x38))
        #expect(Array(bytes[32..<36]) == [0, 0, 0, 9])
        #expect(Array(bytes[44...]) == [5, 6])
        let header = try EntryHeader(bytes)
        #expect(header.index == 0x0102_0304_0506_0708)
        #expect(header.epoch == Epoch(round: 0x1112_1314_1516_1718, id: 0x2122_2324))
        #expect(header.time == WallTime(milliseconds: 0x3132_3334_3536_3738))
        #expect(header.updateCount == 9)
    }

    @Test(arguments: updates)
    func `an update is its bytes, and comes back`(_ vector: (update: Update, bytes: [UInt8])) throws {
        var bytes: [UInt8] = []
        vector.update.encode(into: &bytes)
        #expect(bytes == vector.bytes)
        #expect(try read(entry(bytes, count: 1)) == [vector.update])
    }

    @Test func `updates follow one another`() throws {
        let bytes = Self.updates.flatMap(\.bytes)
        #expect(try read(entry(bytes + bytes, count: 20)) == Self.updates.map(\.update) + Self.updates.map(\.update))
        #expect(try read(entry([], count: 0)) == [])
    }

    @Test(arguments: updates)
    func `an update that is cut is damage`(_ vector: (update: Update, bytes: [UInt8])) {
        for count in 1..<vector.bytes.count {
            let bytes = entry(Array(vector.bytes[..<count]), count: 1)
            #expect(throws: EntryDamaged.self, "\(count) bytes") { try read(bytes) }
        }
    }

    @Test func `a kind that does not exist is damage`() {
        for kind in [0, 11, 12, 255] as [UInt8] {
            let bytes = entry([kind] + Array(repeating: 0, count: 100), count: 1)
            #expect(throws: EntryDamaged.self) { try read(bytes) }
        }
    }

    @Test func `an announce takes 64 bytes over IPv4 and 76 over IPv6`() {
        #expect(AnnounceUpdate<CompactIPv4>.byteCount == 64)
        #expect(AnnounceUpdate<CompactIPv6>.byteCount == 76)
        #expect(Self.updates[0].bytes.count == 64)
        #expect(Self.updates[1].bytes.count == 76)
    }

    @Test func `epochs are ordered by round, then by id`() {
        let epochs = [Epoch.zero, Epoch(round: 0, id: 1), Epoch(round: 1, id: 0), Epoch(round: 1, id: 2)]
        #expect(epochs == epochs.sorted())
        #expect(Epoch(round: 1, id: 2).description == "1.2")
    }

    @Test func `mutated updates never trap, and what is read is read the same again`() {
        let torture = CodecTorture<[Update]>(
            name: "updates",
            decode: { bytes in
                var all = Array(repeating: UInt8(0), count: EntryHeader.byteCount)
                all += bytes
                var cursor = UpdateCursor()
                var updates: [Update] = []
                do {
                    while let update = try cursor.next(all) { updates.append(update) }
                    return updates
                } catch {
                    return nil
                }
            },
            encode: { updates in
                var bytes: [UInt8] = []
                for update in updates { update.encode(into: &bytes) }
                return bytes
            },
            spice: Array(0...12))
        for vector in Self.updates { torture.comesBack(vector.bytes) }
        let inputs = Self.updates.map(\.bytes) + [Self.updates.flatMap(\.bytes)]
        let counts = torture.mutate(inputs, seed: 73, rounds: rounds(50_000))
        #expect(counts.accepted > 1_000)
        #expect(counts.refused > 1_000)
    }
}

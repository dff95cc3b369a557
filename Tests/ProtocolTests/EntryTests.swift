// Entries of the log: the bytes that go to the disk and to the other trackers.

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
        (.setInterval(0x0102_0304), [15, 1, 2, 3, 4]),
        (.emptyShard(0x0102_0304), [16, 1, 2, 3, 4]),
        (.setMembers([]), [11, 0]),
        (.setMembers([1, 0x0203_0405]), [11, 2, 0, 0, 0, 1, 2, 3, 4, 5]),
        (
            .mergePeer(
                MergedPeer(
                    infoHash: hash, peerID: peer, downloaded: 0x0102, left: 0x0304, address: address,
                    lastSeen: 0x0506_0708, isCounted: true)),
            [12] + Array(0xA0...0xB3) + Array("-XX0001-abcdefghijkl".utf8) + [0, 0, 0, 0, 0, 0, 1, 2]
                + [0, 0, 0, 0, 0, 0, 3, 4] + addressBytes + [5, 6, 7, 8, 1]
        ),
        (
            .mergeStop(hash, address, at: 0x0506_0708),
            [13] + Array(0xA0...0xB3) + addressBytes + [5, 6, 7, 8]
        ),
        (
            .mergeCompleted(hash, origin: 0x0102_0304, count: 0x0506_0708),
            [14] + Array(0xA0...0xB3) + [1, 2, 3, 4, 5, 6, 7, 8]
        ),
    ]
    private static let address = SocketAddress(high: 0x2001_0DB8_0000_0000, low: 1, scope: 7, port: 6881)
    private static let addressBytes: [UInt8] =
        [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, 1] + [0, 0, 0, 7] + [0x1A, 0xE1]

    private static let header = EntryHeader(
        index: 0x0102_0304_0506_0708, epoch: Epoch(round: 0x1112_1314_1516_1718, id: 0x2122_2324),
        attempt: 0x2526_2728, time: WallTime(milliseconds: 0x3132_3334_3536_3738), origin: 0x4142_4344,
        updateCount: 9, previous: 0x5152_5354_5556_5758)

    private func entry(_ updates: [UInt8], tickets: Tickets = Tickets(), as header: EntryHeader = header) -> [UInt8] {
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        bytes += updates
        var header = header
        header.ticketsOffset = UInt32(bytes.count)
        tickets.encode(into: &bytes)
        header.seal(&bytes)
        return bytes
    }

    private func read(_ bytes: [UInt8]) throws(EntryDamaged) -> [Update] {
        var cursor = UpdateCursor(try EntryHeader(bytes))
        var updates: [Update] = []
        while let update = try cursor.next(bytes) { updates.append(update) }
        return updates
    }

    // MARK: Header

    @Test func `the header stands where it is described`() throws {
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        bytes += [5, 6]
        Self.header.seal(&bytes)
        #expect(bytes.count == 66)
        #expect(Array(bytes[..<4]) == [0x53, 0x4B, 0x45, 2])
        #expect(Array(bytes[4..<12]) == Array(0x01...0x08))
        #expect(Array(bytes[12..<20]) == Array(0x31...0x38))
        #expect(Array(bytes[20..<24]) == Array(0x41...0x44))
        #expect(Array(bytes[24..<28]) == [0, 0, 0, 9])
        #expect(Array(bytes[28..<32]) == [0, 0, 0, 66], "without tickets they would begin at the end")
        #expect(Array(bytes[32..<40]) == Array(0x51...0x58))
        #expect(Array(bytes[40..<48]) == Array(0x11...0x18))
        #expect(Array(bytes[48..<52]) == Array(0x21...0x24))
        #expect(Array(bytes[52..<56]) == Array(0x25...0x28))
        #expect(Array(bytes[64...]) == [5, 6])
        var read = Self.header
        read.ticketsOffset = 66
        #expect(try EntryHeader(bytes) == read)
        let ballot = Ballot(epoch: read.epoch, attempt: 0x2526_2728, index: read.index)
        #expect(read.ballot == ballot)
    }

    @Test func `whoever proposes an entry first has made it, unless another is named`() {
        let epoch = Epoch(round: 3, id: 7)
        let time = WallTime(milliseconds: 0)
        #expect(EntryHeader(index: 1, epoch: epoch, time: time, updateCount: 0).origin == 7)
        #expect(EntryHeader(index: 1, epoch: epoch, time: time, origin: 2, updateCount: 0).origin == 2)
    }

    @Test func `a bit that is wrong anywhere is damage`() throws {
        let bytes = entry([6, 1], tickets: Self.tickets)
        _ = try EntryHeader(bytes)
        for offset in bytes.indices {
            for bit in 0..<8 {
                var wrong = bytes
                wrong[offset] ^= 1 << UInt8(bit)
                #expect(throws: EntryDamaged.self, "bit \(bit) of byte \(offset)") { try EntryHeader(wrong) }
            }
        }
        for count in bytes.indices {
            #expect(throws: EntryDamaged.self, "\(count) bytes") { try EntryHeader(Array(bytes[..<count])) }
        }
    }

    @Test(arguments: [0, 1, 63, 67, .max] as [UInt32])
    func `tickets that begin outside of the entry are damage`(_ offset: UInt32) {
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        bytes += [6, 1]
        var header = Self.header
        header.ticketsOffset = offset
        header.seal(&bytes)
        if offset == 0 {
            #expect(throws: Never.self, "0 stands for the end") { try EntryHeader(bytes) }
        } else {
            #expect(throws: EntryDamaged.self) { try EntryHeader(bytes) }
        }
    }

    // MARK: Value and ballot

    @Test func `another ballot leaves the value, and what the history comes to`() throws {
        let bytes = entry([6, 1], tickets: Self.tickets)
        var again = bytes
        EntryHeader.restamp(&again, epoch: Epoch(round: 99, id: 98), attempt: 97)
        #expect(again != bytes)
        #expect(EntryHeader.chain(again) == EntryHeader.chain(bytes))
        var header = try EntryHeader(again)
        #expect(header.epoch == Epoch(round: 99, id: 98))
        #expect(header.attempt == 97)
        #expect(header.origin == 0x4142_4344, "who made it stays")
        let first = try EntryHeader(bytes)
        header.epoch = first.epoch
        header.attempt = first.attempt
        #expect(header == first)
        #expect(again[64...] == bytes[64...])
        EntryHeader.restamp(&again, epoch: first.epoch, attempt: first.attempt)
        #expect(again == bytes)
    }

    @Test func `who decides alone says so, and the value stays`() throws {
        let bytes = entry([6, 1], tickets: Self.tickets)
        let first = try EntryHeader(bytes)
        #expect(!first.isAlone)
        var alone = bytes
        EntryHeader.restamp(&alone, epoch: first.epoch, attempt: first.attempt, isAlone: true)
        let header = try EntryHeader(alone)
        #expect(header.isAlone)
        #expect(header.ballot == first.ballot, "it is no part of the ballot")
        #expect(EntryHeader.chain(alone) == EntryHeader.chain(bytes))
        EntryHeader.restamp(&alone, epoch: first.epoch, attempt: first.attempt)
        #expect(alone == bytes)
    }

    @Test func `a ballot that was changed without the checksum is damage`() {
        let bytes = entry([6, 1])
        for offset in 40..<56 {
            var wrong = bytes
            wrong[offset] &+= 1
            #expect(throws: EntryDamaged.self) { try EntryHeader(wrong) }
        }
    }

    @Test func `the chain tells every value from every other, and is never that of the empty history`() {
        let changes: [(inout EntryHeader) -> Void] = [
            { _ in }, { $0.index += 1 }, { $0.time = WallTime(milliseconds: 1) }, { $0.origin += 1 },
            { $0.updateCount += 1 }, { $0.previous += 1 },
        ]
        var chains = changes.map { change in
            var header = Self.header
            change(&header)
            return EntryHeader.chain(entry([6, 1], as: header))
        }
        chains.append(EntryHeader.chain(entry([6, 2])))
        chains.append(EntryHeader.chain(entry([6, 1], tickets: Self.tickets)))
        #expect(Set(chains).count == chains.count)
        #expect(!chains.contains(Position.start.chain))
    }

    // MARK: Tickets

    private static var tickets: Tickets {
        var tickets = Tickets()
        _ = tickets.append(ordinal: 0, life: Life(id: 2, incarnation: 0x0102_0304_0506_0708), number: 5)
        _ = tickets.append(ordinal: 3, life: Tickets.group, number: .max)
        _ = tickets.append(ordinal: 8, life: Life(id: 2, incarnation: 0x0102_0304_0506_0708), number: 6)
        return tickets
    }

    @Test func `tickets stand behind the updates, each life named once`() throws {
        let bytes = entry([6, 1], tickets: Self.tickets)
        let header = try EntryHeader(bytes)
        #expect(header.ticketsOffset == 66)
        let lives: [UInt8] = [2, 0, 0, 0, 2] + Array(0x01...0x08) + Array(repeating: 0, count: 12)
        let first: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]
        let second: [UInt8] = [0, 0, 0, 3, 1] + Array(repeating: 0xFF, count: 8)
        let third: [UInt8] = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 6]
        #expect(Array(bytes[66...]) == lives + first + second + third)
        let read = try Tickets(bytes, header)
        #expect(read == Self.tickets)
        #expect(read.tickets.map { read.life(of: $0).id } == [2, 0, 2])
        #expect(try self.read(bytes) == [.setAccessMode(1)], "they are no updates")
        let none = entry([6, 1])
        #expect(try Tickets(none, EntryHeader(none)).isEmpty)
    }

    @Test func `a ticket for what is not in the entry, out of order, or of nobody, is damage`() throws {
        func block(_ tickets: [Ticket], lives: UInt8 = 1, rest: [UInt8] = []) -> [UInt8] {
            var bytes = [lives] + Array(repeating: UInt8(0), count: 12 * Int(lives))
            for ticket in tickets {
                bytes += [0, 0, 0, UInt8(ticket.ordinal), ticket.life] + Array(repeating: 0, count: 8)
            }
            return bytes + rest
        }
        func read(_ block: [UInt8]) throws(EntryDamaged) -> Tickets {
            var bytes: [UInt8] = []
            EntryHeader.reserve(in: &bytes)
            bytes += block
            var header = Self.header
            header.ticketsOffset = 64
            header.seal(&bytes)
            return try Tickets(bytes, EntryHeader(bytes))
        }
        func ticket(_ ordinal: UInt32, life: UInt8 = 0) -> Ticket { Ticket(ordinal: ordinal, life: life, number: 0) }
        #expect(try read(block([ticket(0), ticket(8)])).count == 2)
        for damaged in [
            block([ticket(9)]), block([ticket(1), ticket(1)]), block([ticket(2), ticket(1)]),
            block([ticket(0, life: 1)]), block([ticket(0)], lives: 0), block([ticket(0)], rest: [0]),
            Array(block([]).dropLast()), Array(block([ticket(0)]).dropLast()),
        ] {
            #expect(throws: EntryDamaged.self, "\(damaged)") { try read(damaged) }
        }
    }

    @Test func `an entry has room for 255 lives, and says so to the next`() throws {
        var tickets = Tickets()
        for number in 0..<UInt32(Tickets.maxLives) {
            let life = Life(id: number, incarnation: 1)
            let isTaken = tickets.append(ordinal: number, life: life, number: 1)
            #expect(isTaken)
        }
        let isTaken = tickets.append(ordinal: 255, life: Life(id: 0, incarnation: 2), number: 1)
        #expect(!isTaken, "another incarnation is another life")
        let isKnown = tickets.append(ordinal: 255, life: Life(id: 0, incarnation: 1), number: 2)
        #expect(isKnown)
        var header = Self.header
        header.updateCount = 256
        let bytes = entry([], tickets: tickets, as: header)
        #expect(try Tickets(bytes, EntryHeader(bytes)) == tickets)
    }

    // MARK: Updates

    @Test(arguments: updates)
    func `an update is its bytes, and comes back`(_ vector: (update: Update, bytes: [UInt8])) throws {
        var bytes: [UInt8] = []
        vector.update.encode(into: &bytes)
        #expect(bytes == vector.bytes)
        #expect(try read(entry(bytes)) == [vector.update])
    }

    @Test func `updates follow one another`() throws {
        let bytes = Self.updates.flatMap(\.bytes)
        #expect(try read(entry(bytes + bytes)) == Self.updates.map(\.update) + Self.updates.map(\.update))
        #expect(try read(entry([])) == [])
    }

    @Test(arguments: updates)
    func `an update that is cut is damage`(_ vector: (update: Update, bytes: [UInt8])) {
        for count in 1..<vector.bytes.count {
            let bytes = entry(Array(vector.bytes[..<count]))
            #expect(throws: EntryDamaged.self, "\(count) bytes") { try read(bytes) }
            let behind = entry(Array(vector.bytes[..<count]), tickets: Self.tickets)
            #expect(throws: EntryDamaged.self, "\(count) bytes, then tickets") { try read(behind) }
        }
    }

    @Test func `a kind that does not exist is damage`() {
        for kind in [0, 15, 16, 255] as [UInt8] {
            let bytes = entry([kind] + Array(repeating: 0, count: 100))
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
                var header = Self.header
                header.ticketsOffset = UInt32(all.count)
                var cursor = UpdateCursor(header)
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
            spice: Array(0...15))
        for vector in Self.updates { torture.comesBack(vector.bytes) }
        let inputs = Self.updates.map(\.bytes) + [Self.updates.flatMap(\.bytes)]
        let counts = torture.mutate(inputs, seed: 73, rounds: rounds(50_000))
        #expect(counts.accepted > 1_000)
        #expect(counts.refused > 1_000)
    }
}

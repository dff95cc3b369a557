// The bytes of cluster messages: vectors of each kind, every cut, and thousands of mutations.

import Primitives
import Testing
import Wire

@Suite("Cluster messages")
struct ClusterMessageTests {
    typealias Body = ClusterMessage.Body

    struct Vector: Sendable, CustomTestStringConvertible {
        var body: Body
        /// Kind and body.
        var bytes: [UInt8]

        init(_ body: Body, _ bytes: [UInt8]...) {
            self.body = body
            self.bytes = bytes.flatMap(\.self)
        }

        var testDescription: String { "kind \(bytes[0]), \(bytes.count) bytes" }
    }

    private static let hash = InfoHash(Bytes20(Array(0xA0...0xB3))!)
    private static let peer = PeerID(Bytes20(Array("-XX0001-abcdefghijkl".utf8))!)
    private static let position = Position(index: 0x0102, chain: 0x1112_1314_1516_1718)
    private static let positionBytes: [UInt8] = [0, 0, 0, 0, 0, 0, 1, 2] + Array(0x11...0x18)
    private static let ballot = Ballot(epoch: Epoch(round: 5, id: 6), attempt: 7, index: 8)
    private static let ballotBytes: [UInt8] =
        [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6] + [0, 0, 0, 7] + [0, 0, 0, 0, 0, 0, 0, 8]
    private static let life = Life(id: 0x2122_2324, incarnation: 0x3132_3334_3536_3738)
    private static let lifeBytes: [UInt8] = Array(0x21...0x24) + Array(0x31...0x38)
    private static let ipv4 = SocketAddress(ipv4: 0xC000_0201, port: 0x1AE1)
    private static let ipv4Bytes: [UInt8] =
        Array(repeating: 0, count: 10) + [0xFF, 0xFF, 0xC0, 0, 2, 1] + [0, 0, 0, 0] + [0x1A, 0xE1]
    private static let ipv6 = SocketAddress(high: 0x2001_0DB8_0000_0000, low: 1, scope: 9, port: 2)
    private static let ipv6Bytes: [UInt8] =
        [0x20, 1, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1] + [0, 0, 0, 9] + [0, 2]
    private static let entry = Entry.made(3, after: 9, waiting: [4])
    private static let entryBytes = [0, 0, 0, UInt8(entry.bytes.count)] + entry.bytes
    private static let void = Entry.made(4, updates: [])
    private static func eight(_ last: UInt8) -> [UInt8] { [0, 0, 0, 0, 0, 0, 0, last] }

    /// Each setting has its own number, from 0x51 on.
    private static let settings = SettingsPrint { 0x51 + UInt64($0.rawValue) }
    private static let settingsBytes: [UInt8] = eight(0x51) + (0x52...0x5C).flatMap { [0, 0, 0, $0] }

    private static let report: TrackerReport = {
        var report = TrackerReport()
        (report.version, report.host, report.clients, report.console, report.problem) = ("1", "h", "u", "", "no")
        (report.durability, report.disk, report.announceRate) = (.process, .full, 6)
        report.answers = .init(median: 1, p99: 2)
        report.commits = .init(median: 3, p99: 4)
        report.writes = .init(median: 5, p99: 6)
        report.roundTrips = .init(median: 7, p99: TrackerReport.Limits.span)
        (report.openFiles, report.maxFiles, report.receiveBuffer, report.wantedReceiveBuffer) = (8, 9, 10, 11)
        (report.lostDatagrams, report.wallTime, report.stamp) = (12, 13, .max)
        report.echoes = [.init(incarnation: 14, stamp: 15, held: 16)]
        report.heard = [.init(id: 17, silence: 18, isUp: true), .init(id: 19, silence: .max, isUp: false)]
        return report
    }()
    private static let reportBytes: [UInt8] =
        [1, 49, 1, 104, 1, 117, 0, 2, 110, 111] + [2, 1] + four(6) + (1...7).flatMap { four($0) }
        + [0xD6, 0x93, 0xA4, 0x00] + (8...11).flatMap { four($0) } + eight(12) + eight(13)
        + Array(repeating: 0xFF, count: 8) + [1] + eight(14) + eight(15) + four(16)
        + [2] + four(17) + [0, 18, 1] + four(19) + [0xFF, 0xFF, 0]
    private static func four(_ last: UInt8) -> [UInt8] { [0, 0, 0, last] }

    static let vectors: [Vector] = [
        Vector(
            .keepalive(
                Keepalive(role: .master, position: position, digest: 9, hasFullState: true, settings: settings)),
            [1, 3], positionBytes, eight(9), [1], settingsBytes),
        Vector(
            .keepalive(
                Keepalive(role: .newcomer, position: .start, digest: 0, hasFullState: false, settings: settings)),
            [1, 0], Array(repeating: 0, count: 24), [0], settingsBytes),
        Vector(.suspect(at: position), [2], positionBytes),
        Vector(.election, [3]),
        Vector(
            .answer(VoterAnswer(position: position, pending: entry)), [4], positionBytes, entryBytes, [0]),
        Vector(
            .answer(VoterAnswer(position: position, pending: nil, leftInOrder: true)), [4], positionBytes,
            [0, 0, 0, 0, 1]),
        Vector(.coordinator(at: position), [5], positionBytes),
        Vector(.prepare(entry: entry, at: position), [6], positionBytes, entryBytes),
        Vector(.ok(ballot), [7], ballotBytes),
        Vector(.error(ballot, .staleEpoch), [8], ballotBytes, [2]),
        Vector(.commit(at: position), [9], positionBytes),
        Vector(.confirm(round: 4), [10], eight(4)),
        Vector(.confirmed(round: .max), [11], Array(repeating: 0xFF, count: 8)),
        Vector(.fetch(after: position), [12], positionBytes),
        Vector(
            .entries([entry, void], at: position),
            [13], positionBytes, [0, 2], entryBytes, [0, 0, 0, 64] + void.bytes),
        Vector(.entries([], at: .start), [13], Array(repeating: 0, count: 16), [0, 0]),
        Vector(
            .hello(Hello(position: position, hasFullState: true, isBlank: false, heard: [life], settings: settings)),
            [14], positionBytes, [1, 0], [1], lifeBytes, [0], settingsBytes),
        Vector(
            .hello(
                Hello(
                    position: position, hasFullState: true, isBlank: false, heard: [], leftInOrder: true,
                    settings: settings)),
            [14], positionBytes, [1, 0], [0], [1], settingsBytes),
        Vector(
            .welcome(
                Welcome(
                    id: 4, position: position, answered: position, servesFrom: 5, attempt: 6, needsTransfer: true,
                    beginsEmpty: false, secret: ClusterSecret(1, 2, 3, 4), shardCount: 1024)),
            [15], [0, 0, 0, 4], positionBytes, positionBytes, eight(5), [0, 0, 0, 6], [1, 0], eight(1), eight(2),
            eight(3), eight(4), [0, 0, 4, 0]),
        Vector(.refused(.otherMembers), [16, 3]),
        Vector(.fetchChunk(0x0102_0304), [17, 1, 2, 3, 4]),
        Vector(
            .chunk(number: 1, index: 2, bytes: [5, 6]), [18], [0, 0, 0, 1], eight(2), [0, 0, 0, 2, 5, 6]),
        Vector(.welcomeDone(at: position, digest: 7), [19], positionBytes, eight(7)),
        Vector(
            .forward(
                [
                    ForwardedRequest(number: 1, source: ipv4, content: .datagram([1, 2, 3])),
                    ForwardedRequest(
                        number: 2, source: ipv6,
                        content: .announce(
                            Announce(
                                infoHash: hash, peerID: peer, downloaded: 3, left: .max, event: .stopped,
                                port: 0x1AE2), passkey: [97, 98])),
                    ForwardedRequest(number: 3, source: ipv4, content: .scrape([hash, hash], passkey: [])),
                ], floor: 0x0A, index: 0x0B),
            [20], eight(10), eight(11), [0, 3],
            eight(1), ipv4Bytes, [0], [0, 3, 1, 2, 3],
            eight(2), ipv6Bytes, [1], Array(0xA0...0xB3), Array("-XX0001-abcdefghijkl".utf8), eight(3),
            Array(repeating: 0xFF, count: 8), [3], [0x1A, 0xE2], [0, 2, 97, 98],
            eight(3), ipv4Bytes, [2], [2], Array(0xA0...0xB3), Array(0xA0...0xB3), [0, 0]),
        Vector(.forward([], floor: 1, index: 2), [20], eight(1), eight(2), [0, 0]),
        Vector(
            .answered([
                AnsweredRequest(
                    number: 1, content: .counts([ScrapeCounts(seeders: 2, leechers: 3, completed: 4)])),
                AnsweredRequest(number: 5, content: .refusal(6)),
            ]),
            [21], [0, 2], eight(1), [0, 1], [0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4], eight(5), [1, 6]),
        Vector(.handover, [22]),
        Vector(.leave, [23]),
        Vector(.stop, [27]),
        Vector(.report(report), [24], reportBytes),
        Vector(.order(number: 2, .addMember(3)), [25], eight(2), [1], four(3), four(0)),
        Vector(.order(number: 2, .removeMember(3)), [25], eight(2), [2], four(3), four(0)),
        Vector(.order(number: 2, .replaceMember(3, by: 4)), [25], eight(2), [3], four(3), four(4)),
        Vector(.order(number: 2, .handOver(to: 3)), [25], eight(2), [4], four(3), four(0)),
        Vector(.order(number: 2, .stop), [25], eight(2), [5], four(0), four(0)),
        Vector(.order(number: 2, .elect), [25], eight(2), [7], four(0), four(0)),
        Vector(.ordered(number: 2, .steppedDown(7)), [26], eight(2), [10], four(7)),
        Vector(.ordered(number: 2, .members([3, 4])), [26], eight(2), [1, 2], four(3), four(4)),
        Vector(.ordered(number: 2, .handedOver), [26], eight(2), [2]),
        Vector(.ordered(number: 2, .isMaster), [26], eight(2), [3]),
        Vector(.ordered(number: 2, .refused("no")), [26], eight(2), [4, 2, 110, 111]),
        Vector(.ordered(number: 2, .busy), [26], eight(2), [5]),
        Vector(.ordered(number: 2, .late), [26], eight(2), [6]),
        Vector(.ordered(number: 2, .stopped), [26], eight(2), [7]),
        Vector(.ordered(number: 2, .stopping), [26], eight(2), [8]),
    ]

    private static let sender = Life(id: 3, incarnation: 0x4142_4344_4546_4748)
    private static let epoch = Epoch(round: 0x0102_0304_0506_0708, id: 9)
    private static let head: [UInt8] =
        [0x53, 0x4B, 0x4D, 3] + [0, 0, 0, 3] + Array(0x41...0x48)

    private func message(_ body: Body, to destination: ClusterMessage.Destination = .all) -> ClusterMessage {
        ClusterMessage(sender: Self.sender, destination: destination, epoch: Self.epoch, body: body)
    }

    private func bytes(_ message: ClusterMessage) -> [UInt8] {
        var bytes: [UInt8] = []
        message.encode(into: &bytes)
        return bytes
    }

    @Test(arguments: vectors)
    func `a message is its bytes, and comes back`(_ vector: Vector) throws {
        let toAll = Self.head + [0] + Array(1...8) + [0, 0, 0, 9] + vector.bytes
        #expect(bytes(message(vector.body)) == toAll)
        #expect(try ClusterMessage(toAll) == message(vector.body))
        let toOne = Self.head + [1] + Self.lifeBytes + Array(1...8) + [0, 0, 0, 9] + vector.bytes
        #expect(bytes(message(vector.body, to: .one(Self.life))) == toOne)
        #expect(try ClusterMessage(toOne) == message(vector.body, to: .one(Self.life)))
    }

    @Test func `there is a vector of each kind`() {
        let kinds = Self.vectors.map { $0.bytes[0] }
        #expect((1...27).allSatisfy { kinds.contains($0) })
        for kind in [0, 28, 255] as [UInt8] {
            var bytes = bytes(message(.leave))
            bytes[bytes.count - 1] = kind
            #expect(throws: ClusterMessageError.damaged) { try ClusterMessage(bytes) }
        }
    }

    @Test(arguments: vectors)
    func `a message that is cut, or goes on, is damaged`(_ vector: Vector) {
        let whole = bytes(message(vector.body, to: .one(Self.life)))
        for count in 0..<whole.count {
            let expected: ClusterMessageError = count < 3 ? .notAMessage : .damaged
            #expect(throws: expected, "\(count) bytes") { try ClusterMessage(Array(whole[..<count])) }
        }
        #expect(throws: ClusterMessageError.damaged) { try ClusterMessage(whole + [0]) }
    }

    @Test func `a message with an entry that is damaged, or missing, is damaged`() throws {
        let entry = Self.entry
        for kind in [6, 13, 4] as [UInt8] {
            let count: [UInt8] = kind == 13 ? [0, 1] : []
            let start = Self.head + [0] + Array(1...8) + [0, 0, 0, 9] + [kind] + Self.positionBytes + count
            let end: [UInt8] = kind == 4 ? [0] : []
            _ = try ClusterMessage(start + Self.entryBytes + end)
            for offset in entry.bytes.indices {
                var wrong = Self.entryBytes
                wrong[4 + offset] ^= 1
                let bytes = start + wrong + end
                #expect(throws: ClusterMessageError.damaged, "byte \(offset)") { try ClusterMessage(bytes) }
            }
            // Only who has accepted nothing sends none.
            let none = try? ClusterMessage(start + [0, 0, 0, 0] + end)
            #expect((none != nil) == (kind == 4))
        }
    }

    @Test func `another version is refused by its number, whatever follows`() {
        for version in [0, 1, 255] as [UInt8] {
            #expect(throws: ClusterMessageError.otherVersion(version, of: nil)) {
                try ClusterMessage(Array("SKM".utf8) + [version])
            }
            let sender = Life(id: 0x0707_0707, incarnation: 0x0707_0707_0707_0707)
            #expect(throws: ClusterMessageError.otherVersion(version, of: sender)) {
                try ClusterMessage(Array("SKM".utf8) + [version] + Array(repeating: 7, count: 500))
            }
        }
        let words = "\(ClusterMessageError.otherVersion(7, of: Life(id: 5, incarnation: 1)))"
        #expect(words.contains("tracker 5 speaks version 7") && words.contains("this one version 3"))
        #expect("\(ClusterMessageError.otherVersion(7, of: nil))".hasPrefix("a tracker speaks version 7"))
        #expect(throws: ClusterMessageError.notAMessage) { try ClusterMessage(Array("SKE".utf8) + [2, 2, 3]) }
        #expect(throws: ClusterMessageError.notAMessage) { try ClusterMessage([]) }
    }

    /// A table of so many shards would trap whoever made it.
    @Test(arguments: [0, 3, 12, 1 << 17, UInt32.max])
    func `a welcome to a table that there cannot be is damaged`(_ shardCount: UInt32) throws {
        let welcome = Welcome(
            id: 4, position: .start, answered: .start, servesFrom: 5, attempt: 6, needsTransfer: true,
            secret: ClusterSecret(1, 2, 3, 4), shardCount: shardCount)
        #expect(throws: ClusterMessageError.damaged) { try ClusterMessage(bytes(message(.welcome(welcome)))) }
    }

    @Test func `a length that lies costs nothing`() {
        // Claims of 65,535 parts, and of gigabytes: refused before any room is made for them.
        let head = Self.head + [0] + Array(repeating: UInt8(0), count: 12)
        let lies: [[UInt8]] = [
            [6] + Self.positionBytes + [0xFF, 0xFF, 0xFF, 0xFF],
            [6] + Self.positionBytes + [0x07, 0xFF, 0xFF, 0xFF, 1],
            [13] + Self.positionBytes + [0xFF, 0xFF],
            [18] + Array(repeating: 0, count: 12) + [0x1F, 0xFF, 0xFF, 0xFF],
            [20] + Array(repeating: 0, count: 8) + [0xFF, 0xFF],
        ]
        for lie in lies {
            #expect(throws: ClusterMessageError.damaged) { try ClusterMessage(head + lie) }
        }
    }

    @Test func `a report says nothing beyond its bounds`() throws {
        let good = bytes(message(.report(Self.report)))
        let body = good.count - Self.reportBytes.count
        // A control character in a text; each number one more than there is any sense in; echoes and trackers without
        // end; a tracker without a number, one that is neither up nor down, and one twice.
        let lies: [(offset: Int, bytes: [UInt8])] = [
            (1, [0x1B]), (0, [201]), (10, [3]), (10, [0]), (11, [5]), (12, [0x80, 0, 0, 1]),
            (16, [0xD6, 0x93, 0xA4, 1]),
            (44, [0xD6, 0x93, 0xA4, 1]), (48, [0x80, 0, 0, 1]), (60, [0xFF]), (64, [0, 1, 0, 0, 0, 0, 0, 1]),
            (72, [0, 1, 0, 0, 0, 0, 0, 1]), (88, [64]), (105, [0xD6, 0x93, 0xA4, 1]),
            (109, [64]), (110, [0, 0, 0, 0]), (116, [2]), (117, [0, 0, 0, 17]),
        ]
        #expect(try ClusterMessage(good) == message(.report(Self.report)))
        for lie in lies {
            var bytes = good
            for (index, byte) in lie.bytes.enumerated() { bytes[body + lie.offset + index] = byte }
            #expect(throws: ClusterMessageError.damaged, "at \(lie.offset)") { try ClusterMessage(bytes) }
        }
        // Who writes too much is cut, and never traps.
        var over = TrackerReport()
        over.host = ShortText(String(repeating: "\u{1B}x", count: 500))
        (over.announceRate, over.lostDatagrams, over.wallTime) = (.max, .max, .max)
        over.answers.median = .max
        over.echoes = [.init(incarnation: 1, stamp: 2, held: .max)]
        guard case .report(let read) = try ClusterMessage(bytes(message(.report(over)))).body else {
            Issue.record("it is no report any more")
            return
        }
        #expect("\(read.host)".hasPrefix("?x?x") && "\(read.host)".count == ShortText.maxByteCount)
        #expect(read.announceRate == TrackerReport.Limits.count && read.lostDatagrams == TrackerReport.Limits.total)
    }

    @Test func `two who were told the same differ in nothing, and else it is named`() {
        #expect(Self.settings.differences(from: Self.settings) == [])
        for setting in SharedSetting.allCases {
            let other = SettingsPrint { $0 == setting ? 7 : 0x51 + UInt64($0.rawValue) }
            #expect(Self.settings.differences(from: other) == [setting])
        }
    }

    @Test func `no more info hashes than one scrape may hold are read`() throws {
        func scrape(_ count: Int) -> Body {
            .forward(
                [
                    ForwardedRequest(
                        number: 1, source: Self.ipv4,
                        content: .scrape(Array(repeating: Self.hash, count: count), passkey: []))
                ], floor: 0, index: 0)
        }
        let full = bytes(message(scrape(ClusterMessage.Limits.scrapeHashes)))
        #expect(try ClusterMessage(full) == message(scrape(ClusterMessage.Limits.scrapeHashes)))
        var over = bytes(message(scrape(1)))
        over.removeLast(23)
        over += [UInt8(ClusterMessage.Limits.scrapeHashes + 1)]
        for _ in 0...ClusterMessage.Limits.scrapeHashes { over += Self.hash.bytes.bytes }
        #expect(throws: ClusterMessageError.damaged) { try ClusterMessage(over + [0, 0]) }
    }

    @Test func `the longest datagram that a client can send travels`() throws {
        let long = message(
            .forward(
                [
                    ForwardedRequest(
                        number: 1, source: Self.ipv6, content: .datagram(Array(repeating: 1, count: 65_507)))
                ], floor: 0, index: 0))
        #expect(try ClusterMessage(bytes(long)) == long)
    }

    @Test func `mutated messages never trap, and have one spelling`() {
        let torture = CodecTorture<ClusterMessage>(
            name: "cluster message",
            decode: { try? ClusterMessage($0) },
            encode: { message in
                var bytes: [UInt8] = []
                message.encode(into: &bytes)
                return bytes
            },
            spice: Array(0...24) + [74, 75, 0xFF], isCanonical: true)
        let inputs = Self.vectors.flatMap { vector in
            [bytes(message(vector.body)), bytes(message(vector.body, to: .one(Self.life)))]
        }
        for input in inputs { torture.comesBack(input) }
        let counts = torture.mutate(inputs, seed: 79, rounds: rounds(200_000))
        #expect(counts.accepted > 1_000)
        #expect(counts.refused > 1_000)
    }
}

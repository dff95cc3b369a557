// Frames between trackers: vectors of each kind, every cut, and thousands of mutations.

import Primitives
import Testing
import Wire

@Suite("Bus frames")
struct BusFrameTests {
    /// A frame as the tests compare it: items with their bytes.
    struct Frame: Equatable {
        var head: BusFrameHead
        var body: BusBody
        /// What the ranges of the body hold.
        var contents: [[UInt8]]
        var mac: [UInt8]

        init?(_ bytes: [UInt8]) {
            guard let head = try? BusFrameHead(bytes), let body = try? BusBody(head.kind, of: bytes) else { return nil }
            self.head = head
            self.body = body
            contents =
                switch body {
                case .messages(let items): items.map { Array(bytes[$0.range]) }
                case .part(let part): [Array(bytes[part.range])]
                case .greeting, .wanted, .mark: []
                }
            mac = Array(bytes.suffix(BusFrameHead.macByteCount))
        }

        var bytes: [UInt8] {
            var bytes: [UInt8] = []
            head.encode(into: &bytes)
            switch body {
            case .messages(let items):
                for (item, content) in zip(items, contents) {
                    BusBody.appendItem(destination: item.destination, content, to: &bytes)
                }
            case .part(let part):
                BusBody.appendPart(
                    destination: part.destination, message: part.message, index: part.index, count: part.count,
                    contents[0], to: &bytes)
            case .greeting(let greeting): greeting.encode(into: &bytes)
            case .wanted(let wanted): wanted.encode(into: &bytes)
            case .mark(let oldest): bytes.append(bigEndian: oldest)
            }
            return bytes + mac
        }
    }

    private static let mac: [UInt8] = Array(0xE0...0xEF)
    private static func eight(_ last: UInt8) -> [UInt8] { [0, 0, 0, 0, 0, 0, 0, last] }
    private static func frame(_ kind: UInt8, _ body: [UInt8]...) -> [UInt8] {
        [0x53, 0x4B, 0x42, 1, kind, 0x11, 0x12, 0x13, 0x14] + Array(0x21...0x28) + eight(9) + body.flatMap(\.self) + mac
    }

    static let messages = frame(
        1, eight(0), [0, 0, 0, 2, 7, 8], eight(5), [0, 0, 0, 0], eight(6), [0, 0, 0, 1, 9])
    static let part = frame(2, eight(5), eight(3), [0, 0, 0, 1], [0, 0, 0, 2], [1, 2, 3])
    static let greeting = frame(3, eight(4), [0, 2], eight(1), [0], eight(2), [1])
    static let wanted = frame(4, eight(4), [0, 2], eight(1), eight(1), eight(3), eight(7))
    static let mark = frame(5, eight(4))
    static let all = [messages, part, greeting, wanted, mark]

    @Test func `a frame's bytes mean what the layout says`() throws {
        let start = BusFrameHead.byteCount
        let expected: [(BusFrameKind, BusBody)] = [
            (
                .messages,
                .messages([
                    BusItem(destination: 0, range: start + 12..<start + 14),
                    BusItem(destination: 5, range: start + 26..<start + 26),
                    BusItem(destination: 6, range: start + 38..<start + 39),
                ])
            ),
            (.part, .part(BusPart(destination: 5, message: 3, index: 1, count: 2, range: start + 24..<start + 27))),
            (
                .greeting,
                .greeting(
                    BusGreeting(
                        oldest: 4,
                        acquaintances: [.init(session: 1, isProven: false), .init(session: 2, isProven: true)]))
            ),
            (.wanted, .wanted(BusWanted(session: 4, ranges: [1...1, 3...7]))),
            (.mark, .mark(oldest: 4)),
        ]
        for (bytes, (kind, body)) in zip(Self.all, expected) {
            let head = try BusFrameHead(bytes)
            #expect(
                head
                    == BusFrameHead(kind: kind, cluster: 0x1112_1314, session: 0x2122_2324_2526_2728, sequence: 9))
            #expect(try BusBody(kind, of: bytes) == body)
            #expect(Frame(bytes)?.bytes == bytes)
        }
    }

    @Test func `a cut frame is damaged, but where messages end`() {
        for bytes in Self.all {
            let accepted = (0..<bytes.count).filter { count in
                // The MAC is cut off by position: each cut takes other bytes for it.
                Frame(Array(bytes[..<count])) != nil
            }
            switch bytes[4] {
            // After the first and the second message.
            case 1: #expect(accepted == [25 + 14 + 16, 25 + 26 + 16])
            // A part is as long as its frame; one byte at least.
            case 2: #expect(accepted == [25 + 25 + 16, 25 + 26 + 16])
            default: #expect(accepted.isEmpty)
            }
        }
    }

    @Test func `other versions, other programs and unknown kinds are told apart`() {
        var bytes = Self.mark
        bytes[3] = 2
        #expect(throws: BusFrameError.otherVersion(2)) { try BusFrameHead(bytes) }
        bytes[0] = 0
        #expect(throws: BusFrameError.notAFrame) { try BusFrameHead(bytes) }
        for kind in [0, 6, 255] as [UInt8] {
            bytes = Self.mark
            bytes[4] = kind
            #expect(throws: BusFrameError.damaged) { try BusFrameHead(bytes) }
        }
        #expect(throws: BusFrameError.notAFrame) { try BusFrameHead([]) }
    }

    @Test func `of a frame in whatever version one can tell which and whose`() throws {
        for version in 0...255 as ClosedRange<UInt8> {
            var bytes = Self.mark
            (bytes[3], bytes[4]) = (version, 200)
            let origin = try #require(BusFrameOrigin(bytes))
            #expect(origin.version == version && origin.cluster == 0x1112_1314)
            #expect(origin.session == 0x2122_2324_2526_2728)
        }
        for count in 0..<BusFrameHead.byteCount + BusFrameHead.macByteCount {
            #expect(BusFrameOrigin(Array(Self.greeting[..<count])) == nil)
        }
        #expect(BusFrameOrigin([0] + Self.mark) == nil)
    }

    @Test(
        arguments: [
            // No message at all; one that is longer than the frame.
            (BusFrameKind.messages, []), (.messages, eight(0) + [0, 0, 0, 1]),
            (.messages, eight(0) + [255, 255, 255, 255]),
            // A part of one; an index beyond the count; nothing in it.
            (.part, eight(0) + eight(1) + [0, 0, 0, 0, 0, 0, 0, 1] + [1]),
            (.part, eight(0) + eight(1) + [0, 0, 0, 2, 0, 0, 0, 2] + [1]),
            (.part, eight(0) + eight(1) + [0, 0, 0, 0, 0, 0, 0, 2]),
            // More sessions than said, and a flag that is none.
            (.greeting, eight(0) + [0, 0] + eight(1) + [0]), (.greeting, eight(0) + [0, 1] + eight(1) + [2]),
            // Nothing wanted; an empty range; ranges that fall; one without an end.
            (.wanted, eight(0) + [0, 0]), (.wanted, eight(0) + [0, 1] + eight(2) + eight(1)),
            (.wanted, eight(0) + [0, 2] + eight(5) + eight(6) + eight(6) + eight(7)),
            (.wanted, eight(0) + [0, 1] + eight(1) + Array(repeating: 255, count: 8)),
            (.wanted, eight(0) + [0, 1] + eight(0) + eight(1)), (.mark, []),
        ] as [(BusFrameKind, [UInt8])])
    func `a body that says what no tracker says is damaged`(_ kind: BusFrameKind, _ body: [UInt8]) {
        #expect(throws: BusFrameError.damaged) { try BusBody(kind, of: Self.frame(kind.rawValue, body)) }
    }

    @Test func `mutated frames are read or refused, and what is read comes back`() {
        let torture = CodecTorture<Frame>(
            name: "bus frames", decode: { Frame($0) }, encode: { $0.bytes }, isCanonical: true)
        for input in Self.all { torture.comesBack(input) }
        let counts = torture.mutate(Self.all, seed: 2, rounds: 20_000)
        #expect(counts.accepted > 1000 && counts.refused > 1000)
    }
}

// The bytes of updates and orders of the console.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Codecs of the console")
struct ConsoleCodecTests {
    private static let file = TestFile(1, byteCount: 20_000)
    private static let small = UploadPart(0, of: [7, 8, 9], UploadID(infoHash: .numbered(2), number: 0x0102))!

    static let updates: [ConsoleUpdate] = [
        .putAccount(.test("ada", .admin)), .putAccount(.test("bob", .viewer, password: nil, origin: .file)),
        .putAccount(.test("eve", passkey: "k3y-of-eve")), .putAccount(.test("dan", password: nil, passkey: "k")),
        .removeAccount(name: [97]), .putSession(.test(1, of: "ada", isToken: true)), .removeSession(.numbered(3)),
        .expireSessions(through: 0x0102_0304), .uploadPart(small), .finishUpload(file.head),
        .dropUpload(file.head.upload), .forgetUploads(chunk: 3, idleSince: 0x0102_0304),
        .removeTorrentFile(.numbered(9)), .mergeAccount(.test("eve"), at: 5), .mergeRemovedAccount(name: [98], at: 6),
        .mergeFile(file.head, at: 7), .mergeRemovedFile(.numbered(8), at: 8),
    ]

    static let changes: [ConsoleChange] = [
        .putAccount(.test("ada", .admin), expected: .any), .putAccount(.test("ada", .admin), expected: .noAccounts),
        .removeAccount(name: [97], expected: .nothing),
        .putSession(.test(1, of: "ada"), expected: .asOf(77)), .removeSession(.numbered(3)), .uploadPart(small),
        .finishUpload(file.head, expected: .asOf(1)), .dropUpload(file.head.upload),
        .removeTorrentFile(.numbered(9), expected: .any),
    ]

    static let outcomes: [ChangeOutcome] = [
        .done(at: 5), .outdated(at: 0), .partWanted(7), .refused("no"), .dropped("not here"),
    ]

    private static func entry(_ updates: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        bytes += updates
        EntryHeader(index: 1, epoch: Epoch(round: 1, id: 1), time: WallTime(milliseconds: 1), updateCount: 1)
            .seal(&bytes)
        return bytes
    }

    /// Updates as bytes, without the entry around them; nil where any is refused.
    private static func read(_ bytes: [UInt8]) -> [Update]? {
        let entry = entry(bytes)
        guard let header = try? EntryHeader(entry) else { return nil }
        var cursor = UpdateCursor(header)
        var updates: [Update] = []
        do {
            while let update = try cursor.next(entry) { updates.append(update) }
            return updates
        } catch { return nil }
    }

    private static func written(_ updates: [Update]) -> [UInt8] {
        var bytes: [UInt8] = []
        for update in updates { update.encode(into: &bytes) }
        return bytes
    }

    private static let torture = CodecTorture<[Update]>(
        name: "updates of the console", decode: read, encode: written, spice: [0, 1, 2, 17, 0xFF], isCanonical: true)

    @Test func `updates come back, and are refused where they are cut`() {
        for update in Self.updates {
            let bytes = Self.written([.console(update)])
            Self.torture.comesBack(bytes)
            // Without any byte there is no update.
            #expect(Self.torture.acceptedCuts(of: bytes) == [0], "\(update)")
            #expect(Self.read(bytes) == [.console(update)])
        }
        Self.torture.comesBack(Self.written(Self.updates.map(Update.console)))
    }

    @Test func `updates that are mutated never trap, and have one spelling`() {
        let inputs = Self.updates.map { Self.written([.console($0)]) }
        let counts = Self.torture.mutate(inputs, seed: 5, rounds: 20_000)
        #expect(counts.accepted > 500 && counts.refused > 500)
    }

    @Test func `the bytes of an account and of a part stand where they are described`() {
        let account = Self.written([.console(.putAccount(.test("ada", .operator)))])
        #expect(
            account == [17, 1, 0, 3, 97, 100, 97, 3, 2, 1, 15, 8, 3, 0, 3, 1, 2, 3, 0, 32]
                + Array(repeating: 1, count: 32))
        let part = Self.written([.console(.uploadPart(Self.small))])
        #expect(
            part == [17, 6, 2] + Array(repeating: 0, count: 19) + [0, 0, 0, 0, 0, 0, 1, 2] + [0, 0, 0, 0]
                + [0, 0, 0, 3] + [0, 3, 7, 8, 9])
    }

    // MARK: - Orders

    private static func message(_ body: ClusterMessage.Body) -> [UInt8] {
        var bytes: [UInt8] = []
        ClusterMessage(sender: Life(id: 1, incarnation: 2), destination: .all, epoch: .zero, body: body)
            .encode(into: &bytes)
        return bytes
    }

    private static var bodies: [ClusterMessage.Body] {
        changes.map { .order(number: 2, .change($0)) } + outcomes.map { .ordered(number: 2, .changed($0)) }
    }

    private static let messages = CodecTorture<ClusterMessage>(
        name: "orders of the console", decode: { try? ClusterMessage($0) },
        encode: {
            var bytes: [UInt8] = []
            $0.encode(into: &bytes)
            return bytes
        }, spice: [0, 1, 2, 6, 9, 0xFF], isCanonical: true)

    @Test func `orders and what came of them come back, and are refused where they are cut`() throws {
        for body in Self.bodies {
            let bytes = Self.message(body)
            Self.messages.comesBack(bytes)
            #expect(Self.messages.acceptedCuts(of: bytes) == [])
            #expect(try ClusterMessage(bytes).body == body)
            #expect(throws: ClusterMessageError.damaged) { try ClusterMessage(bytes + [0]) }
        }
    }

    @Test func `orders that are mutated never trap, and have one spelling`() {
        let counts = Self.messages.mutate(Self.bodies.map(Self.message), seed: 6, rounds: 20_000)
        #expect(counts.accepted > 500 && counts.refused > 500)
    }

    @Test func `numbers beyond their bounds are refused`() {
        func isRead(_ account: Account) -> Bool { Self.read(Self.written([.console(.putAccount(account))])) != nil }
        var account = Account.test("ada")
        #expect(isRead(account))
        for change: (inout PasswordHash) -> Void in [
            { $0.log2N = 0 }, { $0.log2N = 19 }, { $0.log2N = 255 }, { $0.r = 0 }, { $0.p = 0 }, { $0.p = 17 },
            { $0.hash = [] }, { $0.hash = Array(repeating: 0, count: 65) },
            { $0.salt = Array(repeating: 0, count: 65) }, { ($0.log2N, $0.r) = (15, 255) },
        ] {
            var wrong = account
            change(&wrong.password!)
            #expect(!isRead(wrong), "\(wrong)")
        }
        account.name = []
        #expect(!isRead(account))
        account.name = Array(repeating: 97, count: 65)
        #expect(!isRead(account))
        var part = Self.small
        for change: (inout UploadPart) -> Void in [
            { $0.number = 1 }, { $0.byteCount = 0 }, { $0.byteCount = 4 }, { $0.byteCount = .max },
            { $0.bytes = [] }, { $0.number = .max },
        ] {
            var wrong = part
            change(&wrong)
            #expect(Self.read(Self.written([.console(.uploadPart(wrong))])) == nil, "\(wrong)")
        }
        part.bytes = Array(repeating: 1, count: UploadPart.partByteCount)
        part.byteCount = UInt32(UploadPart.partByteCount + 1)
        #expect(Self.read(Self.written([.console(.uploadPart(part))])) != nil)
    }
}

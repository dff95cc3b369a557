// Accounts, sessions and torrent files for tests, and who asks for them.

import Primitives
import Testing
import TrackerLogic
import Wire

extension Account {
    /// An account of the console; another `password` is another hash.
    static func test(
        _ name: String, _ role: AccountRole = .viewer, password: UInt8? = 1, origin: AccountOrigin = .console,
        passkey: String? = nil
    ) -> Account {
        Account(
            name: [UInt8](ascii: name), role: role, origin: origin,
            password: password.map {
                PasswordHash(log2N: 15, r: 8, p: 3, salt: [1, 2, 3], hash: Array(repeating: $0, count: 32))
            }, passkey: passkey.map { [UInt8](ascii: $0) })
    }
}

extension Bytes32 {
    static func numbered(_ number: Int) -> Bytes32 {
        var bytes = [UInt8](repeating: 0, count: 24)
        bytes.append(bigEndian: UInt64(number))
        return Bytes32(bytes)!
    }
}

extension Session {
    /// A session that lasts for an hour after tests begin.
    static func test(_ number: Int, of account: String, expires: UInt32? = nil, isToken: Bool = false) -> Session {
        Session(
            key: .numbered(number), account: [UInt8](ascii: account),
            expires: expires ?? UInt32(NodeHarness.wallStart / 1000) + 3600, isToken: isToken,
            label: [UInt8](ascii: "a label"))
    }
}

/// A torrent file of made-up bytes, and all that is said of it.
struct TestFile: Sendable, Equatable {
    var head: TorrentFileHead
    var bytes: [UInt8]

    init(
        _ number: Int, byteCount: Int = 40_000, upload: UInt64 = 1, fill: UInt64 = 0,
        from origin: AccountOrigin = .console
    ) {
        var random = RandomStream(seed: UInt64(number) ^ fill << 32)
        bytes = (0..<byteCount).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        head = TorrentFileHead(
            upload: UploadID(infoHash: .numbered(number), number: upload), name: [UInt8](ascii: "file \(number)"),
            contentByteCount: 12_345, byteCount: UInt32(byteCount), sha256: .numbered(number),
            origin: origin)
    }

    var infoHash: InfoHash { head.upload.infoHash }

    /// As a directory of torrents has it.
    var listed: FileTorrent {
        FileTorrent(RegisteredTorrent(infoHash: infoHash, name: "listed", byteCount: 12_345), isKept: true)
    }

    var parts: [UploadPart] {
        (0..<UploadPart.count(head.byteCount)).compactMap { UploadPart($0, of: bytes, head.upload) }
    }
}

extension NodeConfiguration {
    /// With room for torrent files: four chunks of them.
    static var withFiles: NodeConfiguration {
        var configuration = NodeConfiguration.test
        configuration.shardCount = 16
        return configuration
    }
}

extension NodeHarness {
    /// Asks for a change, and lets the disk do its work.
    ///
    /// - Returns: what became of it; nil where nobody says.
    mutating func change(_ change: ConsoleChange, _ location: SourceLocation = #_sourceLocation) -> ChangeOutcome? {
        let number = UInt64(changes.count) + 1000
        step(.commandReceived(.change(number: number, change)))
        completeWrites(location)
        let outcomes = takeObservations().compactMap { observation -> ChangeOutcome? in
            guard case .changeEnded(number, let outcome) = observation else { return nil }
            return outcome
        }
        #expect(outcomes.count <= 1, "a change ends once", sourceLocation: location)
        return outcomes.first
    }

    /// Asks for a change that has to be done.
    ///
    /// - Returns: the entry that did it.
    @discardableResult
    mutating func done(_ change: ConsoleChange, _ location: SourceLocation = #_sourceLocation) throws -> UInt64 {
        let outcome = self.change(change, location)
        guard case .done(let index) = outcome else {
            Issue.record("\(outcome.map { "\($0)" } ?? "nothing") is told", sourceLocation: location)
            throw NotDone()
        }
        return index
    }

    /// Uploads a file, part by part.
    @discardableResult
    mutating func upload(_ file: TestFile, _ location: SourceLocation = #_sourceLocation) throws -> UInt64 {
        for part in file.parts { try done(.uploadPart(part), location) }
        return try done(.finishUpload(file.head, expected: .any), location)
    }
}

struct NotDone: Error {}

extension ReplicatedState {
    /// The same, written down and read back.
    func readBack(keepsMergeData: Bool = false) throws(ChunkDamaged) -> ReplicatedState {
        var copy = ReplicatedState(
            secret: NodeHarness.secret, shardCount: UInt32(chunkCount > 16 ? 16 : 8), keepsMergeData: keepsMergeData)
        for number in 0..<chunkCount { try copy.restore(chunk(number)) }
        return copy
    }

    /// Applies updates as an entry of a time, behind what is applied.
    mutating func apply(_ updates: [Update], at seconds: UInt32) throws(EntryDamaged) {
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        for update in updates { update.encode(into: &bytes) }
        let header = EntryHeader(
            index: index + 1, epoch: Epoch(round: 1, id: 1), time: WallTime(milliseconds: Int64(seconds) * 1000),
            updateCount: UInt32(updates.count), previous: chain)
        header.seal(&bytes)
        try apply(entry: bytes)
    }
}

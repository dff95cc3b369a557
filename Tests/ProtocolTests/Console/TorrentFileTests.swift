// Torrent files that are uploaded: seen whole or not at all, forgotten when nobody goes on, and never in the way.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Torrent files")
struct TorrentFileTests {
    private static let start = UInt32(NodeHarness.wallStart / 1000)

    private func files(_ harness: NodeHarness) -> TorrentFiles { harness.node.state.files }

    // MARK: - Upload

    @Test func `a file is seen when it is whole, with its bytes, and not before`() throws {
        var harness = NodeHarness(.withFiles)
        let file = TestFile(1)
        for part in file.parts {
            try harness.done(.uploadPart(part))
            #expect(files(harness).find(file.infoHash) == nil)
        }
        #expect(files(harness).uploads.map(\.parts.count) == [file.parts.count])
        let index = try harness.done(.finishUpload(file.head, expected: .nothing))
        let kept = try #require(files(harness).find(file.infoHash))
        #expect(kept.bytes == file.bytes)
        #expect(kept.head == file.head)
        #expect(kept.changedAt == index)
        #expect(files(harness).uploadCount == 0)
        #expect(files(harness).byteCount == file.bytes.count)
        try harness.done(.removeTorrentFile(file.infoHash, expected: .asOf(index)))
        #expect(files(harness).byteCount == 0)
        #expect(files(harness).digest == 0)
    }

    @Test(arguments: [1, 16_383, 16_384, 16_385, 32_768, 8 << 20])
    func `a file of any length comes back as it was`(_ byteCount: Int) throws {
        var harness = NodeHarness(.withFiles)
        let file = TestFile(1, byteCount: byteCount)
        try harness.upload(file)
        #expect(files(harness).find(file.infoHash)?.bytes == file.bytes)
        var seen = 0
        files(harness).forEach { seen += Int($0.head.byteCount) }
        #expect(seen == byteCount)
    }

    @Test func `parts that come again, too early or too late change nothing, and it is told which is wanted`() throws {
        var harness = NodeHarness(.withFiles)
        let file = TestFile(1, byteCount: 50_000)
        let parts = file.parts
        #expect(harness.change(.uploadPart(parts[1])) == .partWanted(0))
        #expect(harness.change(.finishUpload(file.head, expected: .any)) == .partWanted(0))
        try harness.done(.uploadPart(parts[0]))
        try harness.done(.uploadPart(parts[0]))
        #expect(harness.change(.uploadPart(parts[2])) == .partWanted(1))
        try harness.done(.uploadPart(parts[1]))
        #expect(harness.change(.finishUpload(file.head, expected: .any)) == .partWanted(2))
        try harness.done(.uploadPart(parts[2]))
        try harness.done(.uploadPart(parts[3]))
        let index = try harness.done(.finishUpload(file.head, expected: .any))
        // Who has not heard that asks again.
        let digest = harness.node.state.digest
        for part in parts { #expect(harness.change(.uploadPart(part)) == .done(at: index)) }
        #expect(harness.change(.finishUpload(file.head, expected: .nothing)) == .done(at: index))
        #expect(harness.node.state.digest == digest)
        #expect(files(harness).find(file.infoHash)?.bytes == file.bytes)
    }

    @Test func `two uploads of one torrent do not mix, and the later one takes the place of the other`() throws {
        var harness = NodeHarness(.withFiles)
        let (one, other) = (TestFile(1, upload: 1), TestFile(1, upload: 2, fill: 9))
        for (part, otherPart) in zip(one.parts, other.parts) {
            try harness.done(.uploadPart(part))
            try harness.done(.uploadPart(otherPart))
        }
        let index = try harness.done(.finishUpload(one.head, expected: .nothing))
        #expect(files(harness).find(one.infoHash)?.bytes == one.bytes)
        #expect(harness.change(.finishUpload(other.head, expected: .nothing)) == .outdated(at: index))
        try harness.done(.finishUpload(other.head, expected: .asOf(index)))
        #expect(files(harness).find(one.infoHash)?.bytes == other.bytes)
        #expect(files(harness).count == 1)
        #expect(files(harness).byteCount == other.bytes.count)
    }

    @Test func `an upload that nobody goes on with is forgotten, and one that goes on is not`() throws {
        var harness = NodeHarness(.withFiles)
        let (broken, slow) = (TestFile(1), TestFile(2))
        try harness.done(.uploadPart(broken.parts[0]))
        for part in slow.parts {
            try harness.done(.uploadPart(part))
            harness.run(.seconds(50))
        }
        #expect(files(harness).uploads.map(\.id) == [slow.head.upload])
        #expect(files(harness).byteCount == slow.bytes.count)
        #expect(harness.change(.uploadPart(broken.parts[1])) == .partWanted(0))
        try harness.done(.finishUpload(slow.head, expected: .any))
        try harness.done(.uploadPart(broken.parts[0]))
        try harness.done(.dropUpload(broken.head.upload))
        #expect(files(harness).uploadCount == 0)
        let index = harness.node.state.index
        harness.run(.seconds(300))
        #expect(harness.node.state.index == index, "nothing is written for nothing")
    }

    // MARK: - Bounds

    @Test func `what is beyond its bounds is refused with the reason, and leaves nothing`() throws {
        var configuration = NodeConfiguration.withFiles
        configuration.limits.uploads = 2
        configuration.limits.torrentFileByteCount = 40_000
        configuration.limits.torrentFilesByteCount = 100_000
        configuration.limits.torrentFiles = 2
        var harness = NodeHarness(configuration)
        let large = TestFile(1, byteCount: 40_001)
        #expect(
            harness.change(.uploadPart(large.parts[0]))
                == .refused("a torrent file may have 40000 bytes, this one has 40001"))
        for number in 2...3 { try harness.done(.uploadPart(TestFile(number).parts[0])) }
        #expect(
            harness.change(.uploadPart(TestFile(4).parts[0]))
                == .refused("2 uploads are under way already: try again soon"))
        try harness.done(.dropUpload(TestFile(3).head.upload))
        #expect(harness.change(.uploadPart(TestFile(4, byteCount: 39_999).parts[0])) != nil)
        try harness.done(.dropUpload(TestFile(4).head.upload))
        for part in TestFile(2).parts { try harness.done(.uploadPart(part)) }
        try harness.done(.finishUpload(TestFile(2).head, expected: .any))
        try harness.done(.uploadPart(TestFile(3).parts[0]))
        #expect(
            harness.change(.uploadPart(TestFile(5).parts[0]))
                == .refused("all torrent files together may have 100000 bytes"))
        // Another length than the parts before said.
        var other = TestFile(3, byteCount: 39_000).parts[1]
        other.byteCount = 39_000
        #expect(harness.change(.uploadPart(other)) == .refused("the file has another length than before"))
        for part in TestFile(3).parts { try harness.done(.uploadPart(part)) }
        var head = TestFile(3).head
        head.byteCount -= 1
        #expect(
            harness.change(.finishUpload(head, expected: .any))
                == .refused("the file has another length than before, or too long a name"))
        try harness.done(.finishUpload(TestFile(3).head, expected: .any))
        #expect(
            harness.change(.uploadPart(TestFile(6, byteCount: 10).parts[0]))
                == .refused("there are 2 torrent files already"))
    }

    @Test func `a table of few shards, as simulations have, keeps no files`() throws {
        var harness = NodeHarness()
        let file = TestFile(1)
        for change: ConsoleChange in [
            .uploadPart(file.parts[0]), .finishUpload(file.head, expected: .any), .dropUpload(file.head.upload),
            .removeTorrentFile(file.infoHash, expected: .any),
        ] {
            #expect(harness.change(change) == .refused("this cluster keeps no torrent files"))
        }
        // What no chunk holds must not be in the log: nobody could read it back.
        try harness.done(.putAccount(.test("ada", .admin), expected: .any))
        #expect(try harness.disk.restored().state.accounts.count == 1)
    }

    // MARK: - Announces

    @Test func `an entry has one part at most, beside all that is announced meanwhile`() throws {
        var harness = NodeHarness(.withFiles)
        let file = TestFile(1, byteCount: 100_000)
        for (number, part) in file.parts.enumerated() {
            harness.step(.commandReceived(.change(number: UInt64(number), .uploadPart(part))))
            for client in 0..<20 {
                let announce = Announce(
                    infoHash: .numbered(7), peerID: .of(.v4(client)), left: 1, event: .none, numWant: 0, port: 6881)
                harness.step(
                    .requestReceived(
                        ClientRequest(
                            id: UInt64(number * 20 + client), source: .v4(client), content: .announce(announce))))
            }
        }
        #expect(harness.pending.count == 1)
        harness.completeWrites()
        var entries = 0
        for case .append(let entry) in harness.changes {
            var cursor = UpdateCursor(entry.header)
            var parts = 0
            while let update = try cursor.next(entry.bytes) { if case .console = update { parts += 1 } }
            #expect(parts <= 1)
            entries += parts
        }
        #expect(entries == file.parts.count)
        // The first announce is under way, and all others are in the entry right behind it.
        #expect(harness.takeAnswers().count == 20 * file.parts.count)
        let first = harness.disk.entries.prefix(3).map(\.header.updateCount)
        #expect(first.max() ?? 0 >= 100)
    }

    // MARK: - Written down

    @Test func `files and parts are written down in chunks of their own, and read back`() throws {
        var harness = NodeHarness(.withFiles)
        for number in 1...12 { try harness.upload(TestFile(number, byteCount: 1000 * number)) }
        for part in TestFile(13).parts.prefix(2) { try harness.done(.uploadPart(part)) }
        let state = harness.node.state
        #expect(state.chunkCount == 1 + 16 + 4)
        let copy = try state.readBack()
        #expect(copy.digest == state.digest)
        #expect(copy.files.uploads == state.files.uploads)
        for number in 1...12 { #expect(copy.files.find(.numbered(number)) == state.files.find(.numbered(number))) }
        #expect(copy.files.byteCount == state.files.byteCount)
        for number in 0..<state.chunkCount {
            #expect(copy.chunk(number).bytes == state.chunk(number).bytes)
            if number > 16 { #expect(try state.chunk(number).swarms().isEmpty) }
        }
        let restarted = try harness.disk.restored(.withFiles)
        #expect(restarted.state.digest == state.digest)
    }

    @Test func `a file outlives the stop that takes the swarms`() throws {
        var harness = NodeHarness(.withFiles)
        try harness.done(.putAccount(.test("ada", .admin), expected: .any))
        try harness.upload(TestFile(1))
        _ = try harness.peers(.numbered(5), from: .v4(1))
        harness.step(.commandReceived(.drain))
        harness.completeWrites()
        let restarted = try harness.disk.restored(.withFiles)
        #expect(restarted.state.table.counts.torrents == 0)
        #expect(restarted.state.files.find(.numbered(1))?.bytes == TestFile(1).bytes)
        #expect(restarted.state.accounts.count == 1)
    }

    @Test func `a chunk of files that is damaged is refused, and none traps`() throws {
        var harness = NodeHarness(.withFiles)
        try harness.upload(TestFile(1, byteCount: 300))
        try harness.done(.uploadPart(TestFile(1, byteCount: 20_000, upload: 2).parts[0]))
        let state = harness.node.state
        let whole = try #require((17..<21).map { state.chunk($0) }.first { $0.bytes.count > 100 })
        func restored(_ chunk: SnapshotChunk) -> Bool {
            var copy = ReplicatedState(secret: NodeHarness.secret, shardCount: 16)
            return (try? copy.restore(chunk)) != nil
        }
        #expect(restored(whole))
        for offset in stride(from: 0, to: whole.bytes.count, by: whole.bytes.count / 200) {
            var wrong = whole
            wrong.bytes[offset] ^= 1
            #expect(!restored(wrong))
            wrong.bytes = Array(whole.bytes[..<offset])
            #expect(!restored(wrong))
        }
        // Sealed by somebody who knows how: cut, or with any byte another one.
        var random = RandomStream(seed: 1)
        var (accepted, refused) = (0, 0)
        for _ in 0..<3000 {
            var bytes = Array(whole.bytes.dropLast(8))
            switch random.below(3) {
            case 0: bytes.removeLast(1 + random.below(bytes.count - 40))
            case 1: bytes[30 + random.below(120)] = UInt8(truncatingIfNeeded: random.next())
            default: bytes[random.below(bytes.count)] = 0xFF
            }
            bytes.append(bigEndian: checksum(bytes.span.bytes))
            var wrong = whole
            wrong.bytes = bytes
            if restored(wrong) { accepted += 1 } else { refused += 1 }
        }
        #expect(accepted > 100 && refused > 100)
        // A chunk of swarms in the place of one of files, and the other way round.
        var other = state.chunk(3)
        other.number = 18
        #expect(!restored(other))
    }

    @Test func `each step of an upload shows in the digest, and what is forgotten leaves nothing`() throws {
        var harness = NodeHarness(.withFiles)
        var digests = [harness.node.state.digest]
        for part in TestFile(1).parts {
            try harness.done(.uploadPart(part))
            digests.append(harness.node.state.digest)
        }
        try harness.done(.finishUpload(TestFile(1).head, expected: .any))
        digests.append(harness.node.state.digest)
        #expect(Set(digests).count == digests.count)
        try harness.done(.removeTorrentFile(.numbered(1), expected: .any))
        try harness.done(.uploadPart(TestFile(2).parts[0]))
        harness.run(.seconds(120))
        #expect(files(harness).digest == 0)
    }
}

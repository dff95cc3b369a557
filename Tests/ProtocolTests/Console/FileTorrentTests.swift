// Torrents that come from an operator's files, beside those that people upload: each kind goes its own way.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Torrents from files")
struct FileTorrentTests {
    private func harness(updatesPerEntry: Int = 100, listing files: TestFile...) -> NodeHarness {
        var configuration = NodeConfiguration.withFiles
        configuration.limits.updatesPerEntry = updatesPerEntry
        var harness = NodeHarness(configuration)
        set(files, &harness)
        return harness
    }

    /// The directory is read.
    private func set(_ files: [TestFile], _ harness: inout NodeHarness) {
        harness.step(.commandReceived(.setFileTorrents(files.map(\.listed))))
        harness.completeWrites()
        #expect(harness.takeObservations().last == .registryChanged(torrents: files.count))
    }

    private func held(_ harness: NodeHarness) -> [InfoHash: TorrentFileHead] {
        var heads: [InfoHash: TorrentFileHead] = [:]
        harness.node.state.files.forEach { heads[$0.infoHash] = $0.head }
        return heads
    }

    @Test func `a file comes when its torrent is registered, and goes with it`() throws {
        let files = (1...3).map { TestFile($0, from: .file) }
        var harness = harness(listing: files[0], files[1])
        for file in files.prefix(2) { try harness.upload(file) }
        #expect(held(harness).values.allSatisfy { $0.origin == .file })
        // What is there already is neither sent nor written again.
        let index = harness.node.state.index
        set([files[0], files[1]], &harness)
        #expect(harness.node.state.index == index)
        set([files[1]], &harness)
        #expect(held(harness).keys.map { $0 } == [files[1].infoHash])
        #expect(harness.node.state.registry.count == 1)
        set([], &harness)
        #expect(harness.node.state.files.digest == 0)
        #expect(harness.node.state.registry.digest == 0)
    }

    @Test func `a file that is in the directory and not to be kept whole leaves its name`() throws {
        let file = TestFile(1, from: .file)
        var harness = harness(listing: file)
        try harness.upload(file)
        harness.step(.commandReceived(.fileTorrents([file.listed.torrent])))
        harness.completeWrites()
        #expect(held(harness).isEmpty)
        #expect(harness.node.state.registry.find(file.infoHash) == file.listed.torrent)
    }

    @Test func `what a person has uploaded stays, whatever the directory has`() throws {
        let (own, listed) = (TestFile(1, upload: 1), TestFile(1, upload: 2, fill: 9, from: .file))
        var harness = harness(listing: listed)
        try harness.upload(own)
        for part in listed.parts { try harness.done(.uploadPart(part)) }
        #expect(
            harness.change(.finishUpload(listed.head, expected: .any))
                == .refused("somebody has uploaded this torrent at a console: that file stays"))
        for files in [[listed], [], [TestFile(2)], []] {
            set(files, &harness)
            #expect(held(harness)[own.infoHash] == own.head)
        }
    }

    @Test func `an upload takes the place of a file from files, and is the person's from then on`() throws {
        let (listed, own) = (TestFile(1, upload: 1, from: .file), TestFile(1, upload: 2, fill: 9))
        var harness = harness(listing: listed)
        let index = try harness.upload(listed)
        // Who believes that there is none is told that there is one.
        for part in own.parts { try harness.done(.uploadPart(part)) }
        #expect(harness.change(.finishUpload(own.head, expected: .nothing)) == .outdated(at: index))
        try harness.done(.finishUpload(own.head, expected: .asOf(index)))
        set([], &harness)
        #expect(held(harness)[own.infoHash] == own.head)
        #expect(harness.node.state.files.find(own.infoHash)?.bytes == own.bytes)
        // Gone, it makes room for the directory's again.
        try harness.done(.removeTorrentFile(own.infoHash, expected: .any))
        set([listed], &harness)
        try harness.upload(TestFile(1, upload: 3, from: .file))
        #expect(held(harness)[own.infoHash]?.origin == .file)
    }

    @Test func `nobody takes a file from files out at a console`() throws {
        let file = TestFile(1, from: .file)
        var harness = harness(listing: file)
        let index = try harness.upload(file)
        #expect(
            harness.change(.removeTorrentFile(file.infoHash, expected: .asOf(index)))
                == .refused(
                    "it is in the master's directory of torrents: take it away there, and have that read again"))
        #expect(harness.change(.removeTorrentFile(file.infoHash, expected: .nothing)) == .outdated(at: index))
        #expect(held(harness).count == 1)
    }

    @Test func `a file whose torrent has left the directory while it was on its way is not taken`() throws {
        let file = TestFile(1, from: .file)
        var harness = harness(listing: file)
        for part in file.parts { try harness.done(.uploadPart(part)) }
        set([], &harness)
        #expect(
            harness.change(.finishUpload(file.head, expected: .any))
                == .refused("the directory of torrents that counts does not have it any more"))
        harness.run(.seconds(120))
        #expect(harness.node.state.files.digest == 0)
    }

    @Test func `in each entry that takes a directory away, no file is left behind its torrent`() throws {
        let files = (1...6).map { TestFile($0, byteCount: 100, from: .file) }
        var harness = harness(updatesPerEntry: 1)
        set(files, &harness)
        for file in files { try harness.upload(file) }
        harness.step(.commandReceived(.setFileTorrents([files[5].listed])))
        var entries = 0
        while !harness.pending.isEmpty {
            harness.completeWrite()
            entries += 1
            for infoHash in held(harness).keys { #expect(harness.node.state.registry.find(infoHash) != nil) }
        }
        #expect(entries >= 10)
        #expect(held(harness).count == 1)
    }

    @Test func `where it comes from is written down and read back`() throws {
        let (one, other) = (TestFile(1, from: .file), TestFile(2))
        var harness = harness(listing: one)
        for file in [one, other] { try harness.upload(file) }
        let copy = try harness.node.state.readBack()
        #expect(copy.digest == harness.node.state.digest)
        for file in [one, other] { #expect(copy.files.find(file.infoHash)?.head == file.head) }
        let restarted = try harness.disk.restored(.withFiles)
        #expect(restarted.state.digest == harness.node.state.digest)
        // It is a part of what the trackers compare.
        var head = one.head
        head.origin = .console
        var bytes: ([UInt8], [UInt8]) = ([], [])
        one.head.encode(into: &bytes.0)
        head.encode(into: &bytes.1)
        #expect(bytes.0 != bytes.1)
    }

    // MARK: - In a cluster

    @Test func `the next master goes on with what is registered, and with nothing else`() {
        var trio = Trio.serving(.paxos) { _, configuration in configuration.shardCount = 16 }
        func ask(_ id: UInt32, _ change: ConsoleChange) -> ChangeOutcome? {
            trio.forget()
            trio.command(id, .change(number: 5, change))
            trio.run(.milliseconds(300))
            for case .changeEnded(5, let outcome) in trio.observed(by: id) { return outcome }
            return nil
        }
        func isDone(_ outcome: ChangeOutcome?) -> Bool { if case .done? = outcome { true } else { false } }
        let (first, second) = (TestFile(1, from: .file), TestFile(2, from: .file))
        trio.command(3, .setFileTorrents([first.listed, second.listed]))
        trio.run(.seconds(1))
        for part in first.parts { #expect(isDone(ask(3, .uploadPart(part)))) }
        #expect(isDone(ask(3, .finishUpload(first.head, expected: .any))))
        #expect(isDone(ask(3, .uploadPart(second.parts[0]))))
        trio.crash(3)
        trio.run(.seconds(6))
        #expect(trio.masters == [2])
        let again = TestFile(2, upload: 9, from: .file)
        for part in again.parts { #expect(isDone(ask(2, .uploadPart(part)))) }
        #expect(isDone(ask(2, .finishUpload(again.head, expected: .any))))
        let stray = TestFile(3, from: .file)
        for part in stray.parts { #expect(isDone(ask(2, .uploadPart(part)))) }
        #expect(!isDone(ask(2, .finishUpload(stray.head, expected: .any))))
        trio.start(3)
        trio.run(.seconds(20))
        for id: UInt32 in 1...3 {
            #expect(trio[id].state.files.count == 2)
            #expect(trio[id].state.files.find(again.infoHash)?.bytes == again.bytes)
        }
        // A slave that reads its directory changes nothing.
        let slave: UInt32 = trio.masters == [3] ? 1 : 3
        trio.command(slave, .setFileTorrents([]))
        trio.run(.seconds(2))
        for id: UInt32 in 1...3 { #expect(trio[id].state.files.count == 2) }
    }

    @Test func `after a partition an upload counts more than a file, and files come with their torrents`() throws {
        func state() -> ReplicatedState {
            ReplicatedState(secret: NodeHarness.secret, shardCount: 16, keepsMergeData: true)
        }
        func updates(_ file: TestFile) -> [Update] {
            let torrent = Update.registerTorrent(file.infoHash, byteCount: 12_345, name: [UInt8](ascii: "listed"))
            return (file.head.origin == .file ? [torrent] : [])
                + file.parts.map { .console(.uploadPart($0)) } + [.console(.finishUpload(file.head))]
        }
        func merge(_ other: ReplicatedState, into state: inout ReplicatedState, at seconds: UInt32) throws {
            for number in 0..<other.chunkCount {
                try state.apply(try state.mergeUpdates(from: other.chunk(number)), at: seconds)
            }
        }
        let (own, listed) = (TestFile(1, upload: 1), TestFile(1, upload: 2, fill: 9, from: .file))
        for isOwnNewer in [true, false] {
            var (left, right) = (state(), state())
            try left.apply(updates(own), at: isOwnNewer ? 2_000 : 1_000)
            try right.apply(updates(listed), at: 1_500)
            try right.apply(updates(TestFile(2, from: .file)), at: 1_600)
            var (one, other) = (left, right)
            try merge(right, into: &one, at: 3_000)
            try merge(left, into: &other, at: 3_000)
            for merged in [one, other] {
                #expect(merged.files.find(own.infoHash)?.head == own.head, "own is newer: \(isOwnNewer)")
                #expect(merged.files.find(own.infoHash)?.bytes == own.bytes)
                #expect(merged.files.count == 2)
                #expect(merged.registry.find(.numbered(2)) != nil)
            }
        }
        // A person's removal takes no file from files, and files that are gone take no upload.
        var (left, right) = (state(), state())
        try left.apply(updates(own), at: 1_000)
        try left.apply([.console(.removeTorrentFile(own.infoHash))], at: 5_000)
        try right.apply(updates(listed), at: 1_500)
        try merge(left, into: &right, at: 6_000)
        #expect(right.files.find(own.infoHash)?.head == listed.head)
        (left, right) = (state(), state())
        try left.apply(updates(own), at: 1_000)
        try right.apply(updates(listed), at: 1_500)
        try right.apply([.console(.removeTorrentFile(own.infoHash))], at: 5_000)
        try merge(right, into: &left, at: 6_000)
        #expect(left.files.find(own.infoHash)?.head == own.head)
    }
}

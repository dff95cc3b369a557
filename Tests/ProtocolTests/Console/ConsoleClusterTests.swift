// Accounts and torrent files of a cluster: after the master's death, at a newcomer, after a partition.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("The console's things in a cluster")
struct ConsoleClusterTests {
    private func trio(_ profile: ClusterProfile = .paxos) -> Trio {
        Trio.serving(profile) { _, configuration in
            configuration.shardCount = 16
            configuration.tailCount = 8
        }
    }

    /// Asks a tracker for a change.
    private func change(_ trio: inout Trio, _ id: UInt32, _ change: ConsoleChange) -> ChangeOutcome? {
        trio.forget()
        trio.command(id, .change(number: 5, change))
        trio.run(.milliseconds(300))
        for case .changeEnded(5, let outcome) in trio.observed(by: id) { return outcome }
        return nil
    }

    private func upload(_ trio: inout Trio, _ id: UInt32, _ file: TestFile) {
        for part in file.parts { #expect(isDone(change(&trio, id, .uploadPart(part)))) }
        #expect(isDone(change(&trio, id, .finishUpload(file.head, expected: .any))))
    }

    private func isDone(_ outcome: ChangeOutcome?) -> Bool { if case .done? = outcome { true } else { false } }

    private func digests(_ trio: Trio) -> Set<UInt64> { Set([1, 2, 3].map { trio[$0].inspection.digest }) }

    @Test func `a change is the master's to make, and a slave says so by the asker's number`() {
        var trio = trio()
        let account = ConsoleChange.putAccount(.test("ada", .admin), expected: .nothing)
        #expect(
            change(&trio, 1, account) == .dropped("this tracker follows tracker 3: that one has to be asked"))
        #expect(isDone(change(&trio, 3, account)))
        trio.run(.seconds(2))
        for id: UInt32 in 1...3 { #expect(trio[id].state.accounts.count == 1) }
        #expect(digests(trio).count == 1)
    }

    @Test func `an upload goes on at the next master, from the part that it wants`() throws {
        var trio = trio()
        let file = TestFile(1, byteCount: 60_000)
        for part in file.parts.prefix(2) { #expect(isDone(change(&trio, 3, .uploadPart(part)))) }
        // The third part is proposed, and its master dies before anybody hears of a decision.
        trio.holdMessages { if case .prepare = $0.body { true } else { false } }
        #expect(change(&trio, 3, .uploadPart(file.parts[2])) == nil)
        trio.crash(3)
        trio.holdMessages { _ in false }
        trio.run(.seconds(5))
        #expect(trio.masters == [2])
        // Who asks from the last part is told where to go on.
        #expect(change(&trio, 2, .uploadPart(file.parts[3])) == .partWanted(2))
        for part in file.parts[1...] { #expect(isDone(change(&trio, 2, .uploadPart(part)))) }
        #expect(isDone(change(&trio, 2, .finishUpload(file.head, expected: .nothing))))
        trio.start(3)
        trio.run(.seconds(20))
        for id: UInt32 in 1...3 { #expect(trio[id].state.files.find(file.infoHash)?.bytes == file.bytes) }
    }

    @Test func `each tracker takes what a master has decided, whatever its own limits are`() throws {
        var trio = Trio.serving(.paxos) { id, configuration in
            configuration.shardCount = 16
            // The master of now takes much, the next one hardly anything.
            guard id < 3 else { return }
            configuration.limits.torrentFileByteCount = 1000
            configuration.limits.torrentFilesByteCount = 1000
            configuration.limits.torrentFiles = 1
            configuration.limits.uploads = 1
        }
        for number in 1...3 { upload(&trio, 3, TestFile(number, byteCount: 30_000)) }
        let last = TestFile(4, byteCount: 30_000)
        for part in [last.parts[0], TestFile(5).parts[0]] { #expect(isDone(change(&trio, 3, .uploadPart(part)))) }
        trio.run(.seconds(2))
        #expect(digests(trio).count == 1)
        for id: UInt32 in 1...3 { #expect(trio[id].state.files.count == 3) }
        trio.crash(3)
        trio.run(.seconds(5))
        #expect(trio.masters == [2])
        // What has begun comes to its end; what begins is held against what the new master was told.
        #expect(isDone(change(&trio, 2, .uploadPart(last.parts[1]))))
        #expect(isDone(change(&trio, 2, .finishUpload(last.head, expected: .any))))
        #expect(
            change(&trio, 2, .uploadPart(TestFile(6, byteCount: 1001).parts[0]))
                == .refused("a torrent file may have 1000 bytes, this one has 1001"))
        trio.start(3)
        trio.run(.seconds(20))
        #expect(digests(trio).count == 1)
        for id: UInt32 in 1...3 { #expect(trio[id].state.files.find(last.infoHash)?.bytes == last.bytes) }
    }

    @Test func `a master that steps down tells each asker that nothing is known of his change`() {
        var trio = trio()
        trio.holdMessages { if case .prepare = $0.body { true } else { false } }
        trio.command(3, .change(number: 1, .putAccount(.test("ada"), expected: .any)))
        trio.command(3, .change(number: 2, .putAccount(.test("bob"), expected: .any)))
        trio.loseBus(3)
        let told = trio.observed(by: 3).compactMap { observation -> UInt64? in
            if case .changeEnded(let number, .dropped) = observation { number } else { nil }
        }
        #expect(told == [1, 2])
    }

    @Test func `a newcomer fetches files, parts and accounts with the state`() throws {
        var trio = trio()
        trio.crash(1)
        trio.eraseDisk(1)
        #expect(isDone(change(&trio, 3, .putAccount(.test("ada", .admin), expected: .any))))
        #expect(isDone(change(&trio, 3, .putSession(.test(1, of: "ada"), expected: .any))))
        for number in 1...4 { upload(&trio, 3, TestFile(number, byteCount: 30_000)) }
        #expect(isDone(change(&trio, 3, .uploadPart(TestFile(5).parts[0]))))
        trio.start(1)
        trio.run(.seconds(20))
        #expect(trio[1].inspection.hasFullState)
        #expect(digests(trio).count == 1)
        #expect(trio[1].state.files.find(.numbered(4))?.bytes == TestFile(4, byteCount: 30_000).bytes)
        #expect(trio[1].state.accounts.sessionCount == 1)
    }

    @Test func `an upload that is broken off is forgotten by all, whoever is master then`() {
        var trio = trio()
        #expect(isDone(change(&trio, 3, .uploadPart(TestFile(1).parts[0]))))
        trio.crash(3)
        trio.run(.seconds(75))
        for id: UInt32 in 1...2 { #expect(trio[id].state.files.byteCount == 0) }
        #expect(trio[1].inspection.digest == trio[2].inspection.digest)
    }

    @Test func `who stopped in good order on its side of a partition brings its files and accounts`() throws {
        var trio = trio(.classic)
        trio.cutOff(1)
        trio.run(.seconds(8))
        #expect(trio.masters.count == 2)
        #expect(isDone(change(&trio, 1, .putAccount(.test("ada", .admin), expected: .any))))
        upload(&trio, 1, TestFile(1))
        try trio.announce(.v4(1), at: 1)
        for id: UInt32 in 1...3 {
            trio.command(id, .drain)
            trio.run(.seconds(4))
            #expect(trio.disk(id).promise?.leftInOrder == true)
            trio.crash(id)
        }
        trio.mend(1)
        // The others begin anew without it, and without swarms.
        trio.start(2)
        trio.start(3)
        trio.run(.seconds(8))
        #expect(trio.masters == [3])
        try trio.announce(.v4(2), at: 3)
        #expect(trio[3].state.files.count == 0)
        trio.start(1)
        trio.run(.seconds(20))
        #expect(digests(trio).count == 1)
        for id: UInt32 in 1...3 {
            #expect(trio[id].state.files.find(.numbered(1))?.bytes == TestFile(1).bytes)
            #expect(trio[id].state.accounts.count == 1)
            #expect(trio[id].state.table.contains(.numbered(1), .v4(2)))
        }
    }

    @Test func `after a partition the newer word on accounts and files counts, and a removal is one`() throws {
        var trio = trio(.classic)
        for account in ["ada", "bob", "cora", "dan"] {
            let role = account == "ada" ? AccountRole.admin : .viewer
            #expect(isDone(change(&trio, 3, .putAccount(.test(account, role), expected: .any))))
        }
        for number in 1...3 { upload(&trio, 3, TestFile(number, byteCount: 20_000)) }
        trio.run(.seconds(2))
        trio.cutOff(1)
        trio.run(.seconds(8))
        #expect(trio.masters.count == 2)
        let other = trio.masters.first { $0 != 1 } ?? 3
        // Here and there, the one before the other.
        #expect(isDone(change(&trio, other, .putAccount(.test("bob", .uploader), expected: .any))))
        #expect(isDone(change(&trio, 1, .removeAccount(name: [UInt8](ascii: "cora"), expected: .any))))
        #expect(isDone(change(&trio, 1, .removeTorrentFile(.numbered(1), expected: .any))))
        upload(&trio, 1, TestFile(7, byteCount: 40_000))
        trio.run(.seconds(3))
        #expect(isDone(change(&trio, 1, .putAccount(.test("bob", .operator), expected: .any))))
        #expect(isDone(change(&trio, other, .removeAccount(name: [UInt8](ascii: "dan"), expected: .any))))
        upload(&trio, other, TestFile(2, byteCount: 25_000, upload: 9, fill: 3))
        #expect(isDone(change(&trio, other, .removeTorrentFile(.numbered(3), expected: .any))))
        upload(&trio, other, TestFile(8, byteCount: 40_000))
        trio.mend(1)
        trio.run(.seconds(30))
        #expect(trio.masters.count == 1)
        #expect(digests(trio).count == 1)
        for id: UInt32 in 1...3 {
            let (accounts, files) = (trio[id].state.accounts, trio[id].state.files)
            #expect(accounts.all.map(\.account) == [.test("ada", .admin), .test("bob", .operator)])
            #expect(files.find(.numbered(1)) == nil)
            #expect(files.find(.numbered(2))?.bytes == TestFile(2, byteCount: 25_000, fill: 3).bytes)
            #expect(files.find(.numbered(3)) == nil)
            #expect(files.find(.numbered(7))?.bytes == TestFile(7, byteCount: 40_000).bytes)
            #expect(files.find(.numbered(8))?.bytes == TestFile(8, byteCount: 40_000).bytes)
            #expect(files.uploadCount == 0)
        }
    }
}

import Datagrams
import Foundation
import Glibc
import PeerLogic
import Primitives
import Testing
import Transfers
import Wire

/// Torrents from one engine to another, over loopback and real files.
@Suite("Transfers")
struct TransferTests {
    let here: TemporaryDirectory
    let there: TemporaryDirectory

    init() throws {
        here = try TemporaryDirectory()
        there = try TemporaryDirectory()
    }

    private static let sizes = [20_000_001, 0, 1, 16_384, 3_333_333, 40_000_000, 131_071, 5]

    private func seed(_ torrent: [UInt8]) async throws -> TestEngine {
        let seeder = try TestEngine()
        var options = TransferOptions(directory: here.path(""))
        options.isSeedOnly = true
        _ = try await seeder.engine.add(.metainfo(torrent), options)
        // Who calls while the files are hashed is sent away, and calls again half a minute later.
        try await eventually("the files are hashed") { seeder.told.checked != nil }
        return seeder
    }

    private func get(
        _ torrent: [UInt8], from seeder: TestEngine?, _ change: (inout TransferOptions) -> Void = { _ in }
    ) async throws -> (TestEngine, TransferID) {
        let getter = try TestEngine()
        var options = TransferOptions(directory: there.path(""))
        if let seeder { options.peers = [await seeder.address()] }
        change(&options)
        return (getter, try await getter.engine.add(.metainfo(torrent), options))
    }

    private static func isCompleted(_ event: TransferEvent) -> Bool {
        if case .observed(_, .completed) = event { return true }
        return false
    }

    @Test
    func `64 MB in files of odd sizes arrive as they were, and are read back`() async throws {
        let torrent = try TestTorrent.make("many", sizes: Self.sizes, pieceLength: 262_144, in: here)
        let seeder = try await seed(torrent)
        let (getter, id) = try await get(torrent, from: seeder)
        try await eventually("the download is read back") {
            getter.told.first { if case .verified(_, let result) = $0 { result.isRight } else { nil } } == true
        }
        for (index, size) in Self.sizes.enumerated() {
            let path = "many/\(TestTorrent.path(index))"
            let copy = try Data(contentsOf: URL(filePath: there.path(path)))
            #expect(copy == Data(TestTorrent.bytes(size, seed: UInt64(index))), "\(path)")
        }
        let snapshot = try await getter.engine.snapshot(id)
        #expect(snapshot.missing == 0)
        #expect(snapshot.received == snapshot.totalLength)
        #expect(snapshot.files.allSatisfy { $0.verified == $0.length })
        await getter.engine.stop()
        await seeder.engine.stop()
    }

    @Test
    func `only the files that are wanted come, with the pieces that they share with others`() async throws {
        let torrent = try TestTorrent.make("some", sizes: [300_000, 300_000, 300_000], pieceLength: 32_768, in: here)
        let seeder = try await seed(torrent)
        let (getter, id) = try await get(torrent, from: seeder) { $0.wantedFiles = [1] }
        try await eventually("the file is here") { getter.told.count(Self.isCompleted) == 1 }
        let snapshot = try await getter.engine.snapshot(id)
        #expect(snapshot.files.map { $0.verified == $0.length } == [false, true, false])
        let path = snapshot.files[1].path
        let copy = try Data(contentsOf: URL(filePath: there.path(path)))
        #expect(copy == (try Data(contentsOf: URL(filePath: here.path(path)))))
        await getter.engine.stop()
        await seeder.engine.stop()
    }

    // MARK: - The record

    @Test
    func `what was noted counts while its file is unchanged, and is hashed again when it is not`() async throws {
        let torrent = try TestTorrent.make("noted", sizes: [200_000, 200_000], pieceLength: 32_768, in: here)
        let seeder = try await seed(torrent)
        let (first, _) = try await get(torrent, from: seeder)
        try await eventually("the download is whole") { first.told.count(Self.isCompleted) == 1 }
        await first.engine.stop()
        await seeder.engine.stop()

        let path = there.path("noted/file 0")
        var status = stat()
        #expect(stat(path, &status) == 0)
        let handle = try #require(FileHandle(forWritingAtPath: path))
        try handle.write(contentsOf: [1, 2, 3, 4])
        try handle.close()
        // With the old time nobody can see it: so the record is what was believed.
        var times = [status.st_atim, status.st_mtim]
        #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
        let (believing, _) = try await get(torrent, from: nil)
        try await eventually("the record is read") { believing.told.checked != nil }
        #expect(believing.told.checked == 13)
        await believing.engine.stop()

        times[1].tv_sec += 5
        #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
        let (doubting, _) = try await get(torrent, from: nil)
        try await eventually("the file is hashed") { doubting.told.checked != nil }
        #expect(doubting.told.checked == 12, "the first piece is wrong, and all others are right")
        await doubting.engine.stop()
    }

    @Test
    func `a record that is no database costs a check, and nothing else`() async throws {
        let torrent = try TestTorrent.make("broken", sizes: [100_000], pieceLength: 32_768, in: here)
        _ = try here.write(".broken.resume", "this is no database, and is longer than a header of one hundred bytes…")
        let seeder = try TestEngine()
        _ = try await seeder.engine.add(.metainfo(torrent), TransferOptions(directory: here.path("")))
        try await eventually("the files are hashed") { seeder.told.checked == 4 }
        await seeder.engine.stop()
    }

    @Test
    func `a byte that rots is found when all is verified, and its piece is missing again`() async throws {
        let torrent = try TestTorrent.make("rot", sizes: [200_000], pieceLength: 32_768, in: here)
        let seeder = try await seed(torrent)
        let (getter, id) = try await get(torrent, from: seeder) { $0.verifiesAtEnd = false }
        try await eventually("the download is whole") { getter.told.count(Self.isCompleted) == 1 }
        let handle = try #require(FileHandle(forWritingAtPath: there.path("rot/file 0")))
        try handle.seek(toOffset: 100_000)
        try handle.write(contentsOf: [0, 0, 0, 0, 0, 0, 0, 0])
        try handle.close()
        let verification = try await getter.engine.verifyAll(id)
        #expect(verification.wrongPieces == [3])
        let snapshot = try await getter.engine.snapshot(id)
        #expect(snapshot.missing == 32_768)
        #expect(snapshot.have.map { !$0[3] && $0.setCount == 6 } == true)
        await getter.engine.stop()
        await seeder.engine.stop()
    }

    // MARK: - Files that others write to

    private func overwrite(_ path: String, at offsets: UInt64...) throws {
        func changed() throws -> Date? {
            try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
        }
        // The file system's clock ticks some hundred times a second: until it has, nobody can see that it was changed.
        let before = try changed()
        repeat {
            let handle = try #require(FileHandle(forWritingAtPath: path))
            for offset in offsets {
                try handle.seek(toOffset: offset)
                try handle.write(contentsOf: [0, 0, 0, 0, 0, 0, 0, 0])
            }
            try handle.close()
        } while try changed() == before
    }

    private static func isFileChanged(_ event: TransferEvent) -> Bool {
        if case .fileChanged = event { return true }
        return false
    }

    @Test
    func `of a file that another program has changed only what is still right is given`() async throws {
        let torrent = try TestTorrent.make("edited", sizes: [200_000, 100_000], pieceLength: 32_768, in: here)
        let seeder = try await seed(torrent)
        // Of five pieces: of one of them at least something is asked for while the file is hashed.
        try overwrite(here.path("edited/file 0"), at: 20_000, 40_000, 100_000, 150_000, 180_000)
        let (getter, id) = try await get(torrent, from: seeder)
        try await eventually("the file is looked at again") { seeder.told.checked == 5 }
        #expect(seeder.told.count(Self.isFileChanged) == 1)
        try await eventually("all comes that is right") { try await getter.engine.snapshot(id).missing == 5 * 32_768 }
        #expect(getter.told.count { if case .observed(_, .pieceWasWrong) = $0 { true } else { false } } == 0)
        #expect(getter.told.count { if case .peerLeft = $0 { true } else { false } } == 0)
        await getter.engine.stop()
        await seeder.engine.stop()
    }

    @Test
    func `what another program has changed is written over only by who wants it fetched anew`() async throws {
        let torrent = try TestTorrent.make("mine", sizes: [200_000], pieceLength: 32_768, in: here)
        let seeder = try await seed(torrent)
        let (giver, id) = try await get(torrent, from: seeder)
        try await eventually("the download is whole") { giver.told.count(Self.isCompleted) == 1 }
        let path = there.path("mine/file 0")
        try overwrite(path, at: 100_000)
        let elsewhere = try TemporaryDirectory()
        let (asker, _) = try await get(torrent, from: giver) { $0.directory = elsewhere.path("") }
        let reason = "another program has changed mine/file 0, and one piece is no longer right; "
        try await eventually("it says so, and rests") {
            giver.told.first { if case .failed(_, let words) = $0 { words.hasPrefix(reason) } else { nil } } == true
        }
        #expect(try Data(contentsOf: URL(filePath: path))[100_000..<100_008].allSatisfy { $0 == 0 })
        try await giver.engine.resume(id)
        let whole = try Data(contentsOf: URL(filePath: here.path("mine/file 0")))
        // What is missing is known only when its files have been hashed.
        try await eventually("it is fetched anew") {
            try Data(contentsOf: URL(filePath: path)) == whole
        }
        try await eventually("nothing is missing") { try await giver.engine.snapshot(id).missing == 0 }
        for engine in [giver, asker, seeder] { await engine.engine.stop() }
    }

    @Test
    func `a file that was only touched is looked at again, and goes on being given`() async throws {
        let torrent = try TestTorrent.make("touched", sizes: [200_000], pieceLength: 32_768, in: here)
        let seeder = try await seed(torrent)
        #expect(utimensat(AT_FDCWD, here.path("touched/file 0"), nil, 0) == 0)
        let (getter, _) = try await get(torrent, from: seeder)
        try await eventually("the download is whole") { getter.told.count(Self.isCompleted) == 1 }
        #expect(seeder.told.count { if case .checked(_, 7, 7) = $0 { true } else { false } } == 2)
        await getter.engine.stop()
        await seeder.engine.stop()
    }

    // MARK: - Paths

    @Test
    func `a symbolic link that leads outside is not followed, and the transfer says what is in the way`() async throws {
        let torrent = try TestTorrent.make("linked", sizes: [100_000, 1_000], pieceLength: 32_768, in: here)
        let seeder = try await seed(torrent)
        let outside = try TemporaryDirectory()
        try FileManager.default.createSymbolicLink(
            atPath: there.path("linked"), withDestinationPath: outside.path(""))
        let (getter, id) = try await get(torrent, from: seeder)
        try await eventually("the transfer waits for the disk") {
            if case .waitingForDisk = try await getter.engine.snapshot(id).state { return true }
            return false
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside.path("")).isEmpty)
        await getter.engine.stop()
        await seeder.engine.stop()
    }

    @Test
    func `removing a transfer with its data leaves what is not its own`() async throws {
        let torrent = try TestTorrent.make("gone", sizes: [10, 20, 30], pieceLength: 32_768, in: here)
        _ = try here.write("gone/mine", "mine")
        let seeder = try TestEngine()
        let id = try await seeder.engine.add(.metainfo(torrent), TransferOptions(directory: here.path("")))
        try await eventually("it seeds") { seeder.told.checked == 1 }
        try await seeder.engine.remove(id, deletingData: true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: here.path("gone")) == ["mine"])
        await seeder.engine.stop()
    }

    // MARK: - Refusals

    @Test
    func `what cannot be done is refused in words`() async throws {
        let torrent = try TestTorrent.make("once", sizes: [10], pieceLength: 32_768, in: here)
        let (engine, id) = try await get(torrent, from: nil)
        await #expect(throws: TransferError.self) {
            _ = try await engine.engine.add(.metainfo(torrent), TransferOptions(directory: there.path("")))
        }
        await #expect(throws: TransferError.self) {
            _ = try await engine.engine.add(.metainfo([1, 2, 3]), TransferOptions(directory: there.path("")))
        }
        await #expect(throws: TransferError.self) { try await engine.engine.setWanted(id, files: [7]) }
        await engine.engine.stop()
        do {
            try await engine.engine.pause(id)
            Issue.record("a stopped engine takes no orders")
        } catch {
            #expect(error.kind == .stopped)
        }
    }
}

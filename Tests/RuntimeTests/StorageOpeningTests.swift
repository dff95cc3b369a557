// What stands in the way of a record is said, with a way out; and nothing of what is there is harmed.

import Foundation
import GRDB
import Logging
import Primitives
import Server
import Settings
import Storage
import Testing
import TrackerLogic
import Wire

@Suite(.ownThreads) struct StorageOpeningTests {
    /// Opens and closes a directory.
    ///
    /// - Returns: why it could not be opened; nil where it could.
    private func error(_ directory: String, options: StoreOptions = StorageTest.quick) -> StoreError? {
        do throws(StoreError) {
            try Store.open(directory: directory, options: options).close()
            return nil
        } catch {
            return error
        }
    }

    private func overwrite(_ path: String, at offset: UInt64, _ bytes: [UInt8]) throws {
        let file = try #require(FileHandle(forUpdatingAtPath: path))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: Data(bytes))
        try file.close()
    }

    @Test func `the directory is made but not its parents`() throws {
        try StorageTest.inDirectory { directory in
            let deep = directory + "/a/b"
            #expect(error(deep) == .parentMissing(directory: deep))
            #expect(error(directory) == nil)
            #expect(error(directory) == nil)
            #expect(FileManager.default.fileExists(atPath: directory + "/tracker.sqlite"))
        }
    }

    @Test func `a file in place of the directory is refused`() throws {
        try StorageTest.inDirectory { directory in
            try Data("x".utf8).write(to: URL(fileURLWithPath: directory))
            #expect(error(directory) == .notADirectory(path: directory))
            #expect(error(directory + "/below") == .notADirectory(path: directory + "/below"))
        }
    }

    @Test func `a directory in place of the file is refused`() throws {
        try StorageTest.inDirectory { directory in
            let path = directory + "/tracker.sqlite"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            #expect(error(directory) == .notADatabase(path: path))
        }
    }

    @Test(.disabled(if: getuid() == 0, "nothing is forbidden to root"))
    func `a directory without permission is refused`() throws {
        try StorageTest.inDirectory { directory in
            #expect(error(directory) == nil)
            chmod(directory + "/tracker.sqlite", 0o000)
            #expect(error(directory) == .noPermission(path: directory + "/tracker.sqlite"))
        }
    }

    @Test func `a second tracker is kept out and told who holds the record`() throws {
        try StorageTest.inDirectory { directory in
            let first = try Store.open(directory: directory)
            #expect(error(directory) == .inUse(directory: directory, processID: getpid()))
            #expect(error(directory)?.description.contains("(process \(getpid()))") == true)
            first.close()
            #expect(error(directory) == nil)
        }
    }

    @Test func `a record that another program locks is refused`() throws {
        try StorageTest.inDirectory { directory in
            #expect(error(directory) == nil)
            var options = StorageTest.quick
            options.busyTimeout = .milliseconds(20)
            let other = try StorageTest.otherProgram(directory)
            try other.inTransaction(.immediate) { _ in
                #expect(error(directory, options: options) == .locked(path: directory + "/tracker.sqlite"))
                return .rollback
            }
            try other.close()
            #expect(error(directory) == nil)
        }
    }

    @Test func `a file that is no database is refused, and left alone`() throws {
        for text in ["no database", String(repeating: "no database ", count: 1_000)] {
            try StorageTest.inDirectory { directory in
                let path = directory + "/tracker.sqlite"
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
                try Data(text.utf8).write(to: URL(fileURLWithPath: path))
                #expect(error(directory) == .notADatabase(path: path))
                #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(text.utf8))
            }
        }
    }

    @Test func `the database of another application is refused, and left alone`() throws {
        for sql in ["CREATE TABLE t (a)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"] {
            try StorageTest.inDirectory { directory in
                let other = try StorageTest.otherProgram(directory)
                try other.write { try $0.execute(sql: sql) }
                try other.close()
                let path = directory + "/tracker.sqlite"
                let before = try Data(contentsOf: URL(fileURLWithPath: path))
                #expect(error(directory) == .foreign(path: path), "\(sql)")
                #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before, "\(sql)")
            }
        }
    }

    @Test func `a later version is refused`() throws {
        try StorageTest.inDirectory { directory in
            #expect(error(directory) == nil)
            let other = try StorageTest.otherProgram(directory)
            try other.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = \(Store.version + 1)") }
            try other.close()
            #expect(
                error(directory)
                    == .laterVersion(
                        path: directory + "/tracker.sqlite", found: Store.version + 1, supported: Store.version))
        }
    }

    /// Versions 1 and 2 had other promises, entries and chunks.
    @Test(arguments: [1, 2])
    func `an earlier version is refused, and left alone`(_ version: Int) throws {
        try StorageTest.inDirectory { directory in
            let other = try StorageTest.otherProgram(directory)
            try other.writeWithoutTransaction { db in
                try db.execute(
                    sql: """
                        CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
                        PRAGMA application_id = 0x53776D6B;
                        PRAGMA user_version = \(version);
                        """)
            }
            try other.close()
            let path = directory + "/tracker.sqlite"
            let before = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(error(directory) == .earlierVersion(path: path, found: version, supported: 3))
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
        }
    }

    @Test func `a tracker without a bus does not serve a part of the state`() async throws {
        let parent = try TemporaryDirectory()
        let store = try OpenStore(parent.path("data"))
        store.write(
            .promise(
                Promise(
                    epoch: Epoch(round: 7, id: 2), incarnation: 1, secret: ClusterSecret(1, 2, 3, 4), shardCount: 2,
                    hasFullState: false)))
        store.close()
        var configuration = ServerConfiguration()
        configuration.dataDirectory = parent.path("data")
        configuration.udp = []
        configuration.console = nil
        let server = TrackerServer(
            configuration: configuration, version: "1", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            reload: { _ in ServerConfiguration() })
        await #expect(throws: StoreError.incomplete(path: parent.path("data") + "/tracker.sqlite")) {
            try await server.run()
        }
    }

    @Test func `bytes that changed are noticed wherever they are`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            let entry = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 * 7 / 256) }
            store.write(
                .promise(
                    Promise(
                        epoch: .init(round: 0x5152_5354_5556, id: 1), incarnation: 1,
                        secret: .init(1, 2, 3, 0x6162_6364_6566_6768), shardCount: 1)),
                .append(.opaque(1, entry)),
                .saveChunk(SnapshotChunk(number: 0, index: 1, bytes: Array(entry.reversed()))))
            store.close()
            let path = directory + "/tracker.sqlite"
            let whole = try Data(contentsOf: URL(fileURLWithPath: path))
            /// Whether a byte that changed at a place is noticed.
            func isNoticed(_ place: Int) throws -> Bool {
                var damaged = whole
                damaged[place] ^= 0x10
                try damaged.write(to: URL(fileURLWithPath: path))
                do {
                    _ = try Recovered.from(directory)
                    return false
                } catch StoreError.damaged {
                    return true
                }
            }
            let epoch = try #require(whole.range(of: Data([0x51, 0x52, 0x53, 0x54, 0x55, 0x56]))).lowerBound
            #expect(try isNoticed(epoch))
            let secret = try #require(whole.range(of: Data([0x61, 0x62, 0x63, 0x64, 0x65, 0x66]))).lowerBound
            #expect(try isNoticed(secret))
            // Somewhere in each page but the first, which holds the schema.
            let noticed = try (1..<whole.count / 4_096).filter { try isNoticed($0 * 4_096 + 2_000) }
            // The entry and the chunk fill 12 pages each.
            #expect(noticed.count >= 24)
        }
    }

    @Test func `a file that was cut short is refused`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write(.append(.opaque(1, [UInt8](repeating: 7, count: 200_000))))
            store.close()
            let path = directory + "/tracker.sqlite"
            let whole = try Data(contentsOf: URL(fileURLWithPath: path))
            for count in [whole.count / 2, 4_096, 5_000] {
                try whole.prefix(count).write(to: URL(fileURLWithPath: path))
                #expect(throws: StoreError.self, "\(count)") { try Recovered.from(directory) }
            }
        }
    }

    @Test func `a record whose first page is overwritten is refused`() throws {
        try StorageTest.inDirectory { directory in
            #expect(error(directory) == nil)
            let path = directory + "/tracker.sqlite"
            try overwrite(path, at: 100, [UInt8](repeating: 0xEE, count: 3_000))
            guard case .damaged = error(directory) else {
                Issue.record("the damage was not noticed")
                return
            }
            try overwrite(path, at: 0, [UInt8](repeating: 0xEE, count: 100))
            #expect(error(directory) == .notADatabase(path: path))
        }
    }

    @Test(arguments: [
        ("DELETE FROM log WHERE idx = 1", "entry 1 is missing from the log"),
        ("DELETE FROM log WHERE idx = 3", "entry 3 is missing from the log"),
        ("DELETE FROM log WHERE idx = 5", "entry 5 is missing from the log"),
        ("DELETE FROM log", "entry 1 is missing from the log"),
        (
            "INSERT INTO log SELECT 6, checksum, entry FROM log WHERE idx = 5",
            "entry 6 of the log is not what was written"
        ),
        (
            "UPDATE log SET (checksum, entry) = (SELECT checksum, entry FROM log WHERE idx = 1) WHERE idx = 3",
            "entry 3 of the log is not what was written"
        ),
        ("DELETE FROM snapshot", "chunks of the snapshot are missing, or are older than the log"),
        ("DELETE FROM meta WHERE key = 'head'", "its head is not what was written"),
        ("UPDATE meta SET value = value + 1 WHERE key = 'salt'", "its head is not what was written"),
        ("DELETE FROM meta WHERE key NOT IN ('head', 'salt')", "the promise is not what was written"),
        ("UPDATE log SET idx = 9 WHERE idx = 5", "entry 5 is missing from the log"),
        ("UPDATE log SET entry = X'02' WHERE idx = 2", "entry 2 of the log is not what was written"),
        ("DELETE FROM snapshot WHERE number = 1", "chunks of the snapshot are missing, or are older than the log"),
        ("UPDATE snapshot SET idx = 4 WHERE number = 2", "chunk 2 of the snapshot is not what was written"),
        ("UPDATE snapshot SET number = 3 WHERE number = 2", "chunk 3 of the snapshot is not what was written"),
        ("UPDATE meta SET value = 8 WHERE key = 'epoch_round'", "the promise is not what was written"),
        ("DELETE FROM meta WHERE key = 'secret'", "the promise is not what was written"),
        ("UPDATE meta SET value = 0 WHERE key = 'is_whole'", "the promise is not what was written"),
        ("UPDATE meta SET value = 2 WHERE key = 'is_whole'", "the promise is not what was written"),
        ("DELETE FROM meta WHERE key = 'is_whole'", "the promise is not what was written"),
    ])
    func `a piece that is missing, or is another, is noticed`(sql: String, detail: String) throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write(
                .promise(
                    Promise(
                        epoch: Epoch(round: 7, id: 1), incarnation: 1, secret: ClusterSecret(1, 2, 3, 4),
                        shardCount: 2)))
            store.write((1...5).map { .append(.opaque($0, [1])) })
            store.write(
                .saveChunk(SnapshotChunk(number: 1, index: 5, bytes: [1])),
                .saveChunk(SnapshotChunk(number: 2, index: 5, bytes: [1])))
            store.close()
            let other = try StorageTest.otherProgram(directory)
            try other.write { try $0.execute(sql: sql) }
            try other.close()
            #expect(throws: StoreError.damaged(path: directory + "/tracker.sqlite", detail: detail)) {
                try Recovered.from(directory)
            }
        }
    }

    @Test func `a directory without room is refused`() throws {
        try StorageTest.inDirectory { directory in
            var options = StorageTest.quick
            options.maxByteCount = 16_384
            #expect(error(directory, options: options) == .full(path: directory + "/tracker.sqlite"))
            #expect(error(directory) == nil)
        }
    }

    @Test func `every error names the place and a way out`() {
        let errors: [StoreError] = [
            .parentMissing(directory: "/d"), .notADirectory(path: "/d"), .noPermission(path: "/d"),
            .readOnly(path: "/d"), .inUse(directory: "/d", processID: nil), .locked(path: "/d"), .full(path: "/d"),
            .damaged(path: "/d", detail: "x"), .notADatabase(path: "/d"), .foreign(path: "/d"),
            .earlierVersion(path: "/d", found: 2, supported: 3), .laterVersion(path: "/d", found: 9, supported: 3),
            .incomplete(path: "/d"), .failed(path: "/d", reason: "x"),
        ]
        for error in errors {
            let sentences = error.description.split(separator: ". ")
            #expect(error.description.contains("/d"))
            #expect(sentences.count == 2 && error.description.hasSuffix("."), "\(error)")
        }
    }
}

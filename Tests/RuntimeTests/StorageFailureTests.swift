// Writes that fail: each is told why, what can be made is made, and the log never gets a hole.

import Foundation
import GRDB
import Primitives
import Storage
import Testing
import TrackerLogic
import Wire

@Suite(.ownThreads) struct StorageFailureTests {
    private func append(_ index: UInt64, bytes: Int = 10) -> Persist.Change {
        .append(.opaque(index, [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: bytes)))
    }

    private func limited(_ byteCount: Int) -> StoreOptions {
        var options = StorageTest.quick
        options.maxByteCount = byteCount
        options.busyTimeout = .milliseconds(50)
        return options
    }

    @Test func `a full database fails the writes that do not fit and makes the rest`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: limited(400_000))
            let chunk = SnapshotChunk(number: 1, index: 1, bytes: [1])
            let promise = Promise(
                epoch: Epoch(round: 1, id: 1), incarnation: 2, secret: ClusterSecret(1, 2, 3, 4), shardCount: 1)
            // In one group: the entry that does not fit takes the ones behind it along, and nothing else.
            #expect(
                store.write(
                    append(1), append(2), append(3, bytes: 500_000), append(4), .promise(promise), .saveChunk(chunk))
                    == [nil, nil, .full, .full, nil, nil])
            // Behind the hole nothing is taken, not even in a later group; the missing entry is.
            #expect(store.write(append(5)) == [.full])
            #expect(store.write(append(3), append(4)) == [nil, nil])
            #expect(store.answered.map(\.rawValue) == Array(1...9))
            #expect(store.toldFailures == [.full])
            store.close()

            let found = try Recovered.from(directory)
            #expect(found.indices == [1, 2, 3, 4])
            #expect(found.entries[3]?.count == 10)
            #expect(found.promise == promise)
            #expect(found.chunks == [chunk])
        }
    }

    @Test func `a full database has room again after a trim`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: limited(1_000_000))
            var last: UInt64 = 0
            while store.write(append(last + 1, bytes: 30_000)) == [nil] { last += 1 }
            #expect((20...33).contains(last))
            #expect(store.write(.trim(through: last - 1)) == [nil])
            // The rows go in the background.
            #expect(StorageTest.waitUntil { store.write(append(last + 1, bytes: 30_000)) == [nil] })
            store.close()
            #expect(try Recovered.from(directory).indices == [last, last + 1])
        }
    }

    @Test func `an entry that could not take the place of others is missing there`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: limited(400_000))
            store.write(append(1), append(2), append(3))
            let other = try StorageTest.otherProgram(directory)
            try other.inTransaction(.immediate) { _ in
                #expect(store.write(append(2)) == [.locked])
                return .rollback
            }
            try other.close()
            #expect(store.write(append(4), append(3)) == [.locked, .locked])
            // Another entry at the very place fills it.
            #expect(store.write(append(2)) == [nil])
            store.close()
            #expect(try Recovered.from(directory).indices == [1, 2])
        }
    }

    @Test func `the log is not trimmed after a chunk that was not saved`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: limited(400_000))
            store.write(append(1), append(2))
            let large = SnapshotChunk(number: 1, index: 2, bytes: [UInt8](repeating: 1, count: 500_000))
            let small = SnapshotChunk(number: 1, index: 2, bytes: [1])
            #expect(store.write(.saveChunk(large), .trim(through: 2)) == [.full, .full])
            #expect(store.write(.trim(through: 2)) == [.full])
            #expect(store.write(.saveChunk(small), .trim(through: 1)) == [nil, nil])
            store.close()
            let found = try Recovered.from(directory)
            #expect(found.indices == [2])
            #expect(found.chunks == [small])
        }
    }

    @Test func `a locked database fails writes and works again afterwards`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: limited(10_000_000))
            let other = try StorageTest.otherProgram(directory)
            try other.inTransaction(.immediate) { _ in
                #expect(store.write(append(1), append(2), .trim(through: 0)) == [.locked, .locked, .locked])
                return .rollback
            }
            #expect(store.write(append(2)) == [.locked])
            #expect(store.write(append(1), append(2)) == [nil, nil])
            #expect(store.toldFailures == [.locked])
            store.close()
            #expect(try Recovered.from(directory).indices == [1, 2])
        }
    }

    @Test func `after a damage nothing is said to be persisted any more`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write(append(1))
            // Another program takes the table away.
            let other = try StorageTest.otherProgram(directory)
            try other.write { try $0.execute(sql: "ALTER TABLE log RENAME TO gone") }
            #expect(store.write(append(2), .trim(through: 1)) == [.broken, .broken])
            try other.write { try $0.execute(sql: "ALTER TABLE gone RENAME TO log") }
            try other.close()
            #expect(store.write(append(2)) == [.broken])
            store.close()
            let again = try OpenStore(directory)
            #expect(again.write(append(2)) == [nil])
            again.close()
            #expect(try Recovered.from(directory).indices == [1, 2])
        }
    }

    @Test func `an entry that finds no room leaves what was in its place`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: limited(400_000))
            store.write(append(1), append(2), append(3))
            #expect(store.write(append(2, bytes: 500_000), append(3, bytes: 20)) == [.full, .full])
            store.close()
            let found = try Recovered.from(directory)
            #expect(found.indices == [1, 2, 3])
            #expect(found.entries[3]?.count == 10)

            let again = try OpenStore(directory, options: limited(400_000))
            #expect(again.write(append(2, bytes: 20)) == [nil])
            again.close()
            #expect(try Recovered.from(directory).indices == [1, 2])
        }
    }

    /// An entry as a tracker makes it.
    private func attempt(_ attempt: UInt32, at index: UInt64, after previous: UInt64, byteCount: Int = 100) -> Entry {
        let header = EntryHeader(
            index: index, epoch: Epoch(round: 1, id: 1), attempt: attempt, time: WallTime(milliseconds: 0),
            updateCount: 0, previous: previous)
        var bytes = [UInt8](repeating: UInt8(attempt), count: byteCount)
        let chain = header.seal(&bytes)
        return Entry(sealed: bytes, header, chain: chain)
    }

    /// Where the attempt that it has stored is decided, a tracker does not write it again, and needs no new start.
    @Test func `the log goes on behind what it holds where another attempt found no room`() throws {
        try StorageTest.inDirectory { directory in
            let first = attempt(0, at: 1, after: 0)
            let second = attempt(0, at: 2, after: first.chain)
            let store = try OpenStore(directory, options: limited(400_000))
            #expect(store.write(.append(first), .append(second)) == [nil, nil])
            let large = attempt(1, at: 2, after: first.chain, byteCount: 500_000)
            let behind = attempt(2, at: 3, after: large.chain)
            #expect(store.write(.append(large), .append(behind)) == [.full, .full])
            #expect(store.write(.append(behind)) == [.full])
            let third = attempt(0, at: 3, after: second.chain)
            let fourth = attempt(0, at: 4, after: third.chain)
            #expect(store.write(.append(third)) == [nil])
            #expect(store.write(.append(fourth)) == [nil])
            store.close()
            #expect(try Recovered.from(directory).entries.values.map(\.count) == [100, 100, 100, 100])

            // What was there before the start counts as well.
            let again = try OpenStore(directory, options: limited(400_000))
            #expect(again.write(.append(attempt(1, at: 4, after: third.chain, byteCount: 500_000))) == [.full])
            #expect(again.write(.append(attempt(0, at: 5, after: fourth.chain))) == [nil])
            again.close()
            #expect(try Recovered.from(directory).indices == [1, 2, 3, 4, 5])
        }
    }

    /// The record holds the old state until the new one is there in one piece, and nothing of the new one before.
    @Test func `after a replacement that failed nothing of the new state is taken`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: limited(400_000))
            let old = SnapshotChunk(number: 1, index: 1, bytes: [1])
            let new = SnapshotChunk(number: 1, index: 100, bytes: [2])
            let large = SnapshotChunk(number: 2, index: 100, bytes: [UInt8](repeating: 1, count: 500_000))
            #expect(store.write(append(1), append(2), .saveChunk(old)) == [nil, nil, nil])
            #expect(
                store.write(.replaceAll(chunks: [new, large]), append(101), .saveChunk(new), .trim(through: 100))
                    == [.full, .full, .full, .full])
            #expect(store.write(append(101), append(3)) == [.full, .full])
            let copy = directory + "-copy"
            try StorageTest.copy(directory, to: copy)
            let found = try Recovered.from(copy)
            #expect(found.indices == [1, 2])
            #expect(found.chunks == [old])

            #expect(store.write(.replaceAll(chunks: [new]), append(101)) == [nil, nil])
            store.close()
            let replaced = try Recovered.from(directory)
            #expect(replaced.indices == [101])
            #expect(replaced.chunks == [new])
        }
    }

    @Test func `what begins a record is written in one piece or not at all`() throws {
        try StorageTest.inDirectory { directory in
            let promise = Promise(
                epoch: Epoch(round: 1, id: 1), incarnation: 2, secret: ClusterSecret(1, 2, 3, 4), shardCount: 1)
            let large = SnapshotChunk(number: 1, index: 1, bytes: [UInt8](repeating: 1, count: 500_000))
            let store = try Store.open(directory: directory, options: limited(400_000))
            #expect(throws: StoreError.self) { try store.write([.promise(promise), .replaceAll(chunks: [large])]) }
            store.close()
            // Else it would say that it is whole, and hold nothing.
            #expect(try Recovered.from(directory) == Recovered())
        }
    }

    @Test func `a mark that the system cannot read is an error and no damage`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write(append(1))
            store.close()
            // A directory can be opened, and not be read as a file.
            let mark = directory + "/tracker.mark"
            try FileManager.default.moveItem(atPath: mark, toPath: mark + "-kept")
            try FileManager.default.createDirectory(atPath: mark, withIntermediateDirectories: false)
            #expect(throws: StoreError.failed(path: mark, reason: "Is a directory")) {
                try Recovered.from(directory)
            }
            try FileManager.default.removeItem(atPath: mark)
            try FileManager.default.moveItem(atPath: mark + "-kept", toPath: mark)
            #expect(try Recovered.from(directory).indices == [1])
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a store that cannot start can be closed`() throws {
        try StorageTest.inDirectory { directory in
            let store = try Store.open(directory: directory, options: StorageTest.quick)
            try store.recover { _ in }
            let mark = directory + "/tracker.mark"
            try FileManager.default.removeItem(atPath: mark)
            try FileManager.default.createDirectory(atPath: mark, withIntermediateDirectories: false)
            #expect(throws: StoreError.failed(path: mark, reason: "Is a directory")) {
                try store.start(onCompletion: { _ in })
            }
            // A thread that never began is not waited for.
            store.close()
        }
    }
}

// Damage to what was told to be durable is noticed when the record is opened, wherever it strikes, and nothing is
// changed then; what a crash leaves is no damage.

import Foundation
import GRDB
import Primitives
import Storage
import Testing
import TrackerLogic
import Wire

@Suite(.ownThreads) struct StorageDamageTests {
    private static let promise = Promise(
        epoch: Epoch(round: 7, id: 2), incarnation: 1, secret: ClusterSecret(1, 2, 3, 4), shardCount: 2)

    /// Writes a record of all kinds of parts in some groups, and leaves it as a crash would.
    ///
    /// - Returns: where it is, with what was told to be durable.
    private func record(_ directory: String, isCheckpointed: Bool = false) throws -> (String, Recovered) {
        let store = try OpenStore(directory)
        store.write(.promise(Self.promise))
        for round in UInt64(0)..<8 {
            store.write((1...4).map { Self.entry(round * 4 + $0) })
            store.write(.saveChunk(Self.chunk(UInt32(round % 3), index: round * 4 + 4)))
        }
        store.write(.trim(through: 10))
        let copy = directory + "-copy"
        if isCheckpointed {
            store.close()
            try StorageTest.copy(directory, to: copy)
        } else {
            try StorageTest.copy(directory, to: copy)
            store.close()
        }
        return (copy, try Recovered.from(directory))
    }

    private static func entry(_ index: UInt64) -> Persist.Change {
        .append(.opaque(index, (0..<400).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ Int(index)) }))
    }

    private static func chunk(_ number: UInt32, index: UInt64) -> SnapshotChunk {
        SnapshotChunk(
            number: number, index: index, bytes: (0..<6_000).map { UInt8(truncatingIfNeeded: $0 &+ Int(index)) })
    }

    /// Why a record is damaged; nil where it is whole.
    private func damage(_ directory: String) -> String? {
        do {
            _ = try Recovered.from(directory)
            return nil
        } catch StoreError.damaged(_, let detail) {
            return detail
        } catch {
            return "\(error)"
        }
    }

    private func flip(_ path: String, at place: Int, mask: UInt8 = 0x10) throws {
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes[place] ^= mask
        try bytes.write(to: URL(fileURLWithPath: path))
    }

    @Test func `a log that ends before its mark is refused, and left alone`() throws {
        try StorageTest.inDirectory { directory in
            let (copy, _) = try record(directory)
            let log = copy + "/tracker.sqlite-wal"
            let size = try Data(contentsOf: URL(fileURLWithPath: log)).count
            // In the last quarter: SQLite finds a database that is whole, and older.
            try flip(log, at: size * 3 / 4)
            let before = try Data(contentsOf: URL(fileURLWithPath: log))
            let detail = try #require(damage(copy))
            #expect(detail.contains("the last part is lost"), "\(detail)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: log)) == before)
            #expect(damage(copy) == detail)
        }
    }

    @Test func `a log that is gone is missed`() throws {
        try StorageTest.inDirectory { directory in
            let (copy, _) = try record(directory)
            try FileManager.default.removeItem(atPath: copy + "/tracker.sqlite-wal")
            #expect(damage(copy) != nil)
        }
    }

    @Test func `what a crash leaves behind the mark is no damage`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write((1...4).map { Self.entry($0) })
            let mark = try Data(contentsOf: URL(fileURLWithPath: directory + "/tracker.mark"))
            store.write((5...8).map { Self.entry($0) })
            let copy = directory + "-copy"
            try StorageTest.copy(directory, to: copy)
            store.close()
            // Durable, and the mark not yet written.
            try mark.write(to: URL(fileURLWithPath: copy + "/tracker.mark"))
            #expect(damage(copy) == nil)
        }
    }

    @Test func `a torn tail behind the mark is no damage`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write((1...4).map { Self.entry($0) })
            let before = directory + "-before"
            try StorageTest.copy(directory, to: before)
            store.write((5...8).map { Self.entry($0) })
            let log = try Data(contentsOf: URL(fileURLWithPath: directory + "/tracker.sqlite-wal"))
            store.close()
            let path = before + "/tracker.sqlite-wal"
            let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
            for length in [size + 24, size + 2_000, log.count - 1] {
                try log.prefix(length).write(to: URL(fileURLWithPath: path))
                let copy = before + "-\(length)"
                try StorageTest.copy(before, to: copy)
                #expect(try Recovered.from(copy).indices == Array(1...4), "\(length) of \(log.count)")
            }
        }
    }

    @Test func `a mark that is gone or unreadable is damage, and one unreadable slot is not`() throws {
        try StorageTest.inDirectory { directory in
            let (copy, told) = try record(directory)
            let path = copy + "/tracker.mark"
            let mark = try Data(contentsOf: URL(fileURLWithPath: path))
            for place in [5_000, 100] {
                try mark.write(to: URL(fileURLWithPath: path))
                try flip(path, at: place)
                let single = copy + "-\(place)"
                try StorageTest.copy(copy, to: single)
                #expect(try Recovered.from(single) == told)
            }
            try mark.write(to: URL(fileURLWithPath: path))
            try flip(path, at: 5_000)
            try flip(path, at: 100)
            #expect(damage(copy)?.contains("its mark, which tells how far it had come, is not what was") == true)
            try FileManager.default.removeItem(atPath: path)
            #expect(damage(copy)?.contains("is missing") == true)
        }
    }

    @Test func `a database that is gone is missed`() throws {
        try StorageTest.inDirectory { directory in
            let (copy, _) = try record(directory)
            try FileManager.default.removeItem(atPath: copy + "/tracker.sqlite-wal")
            try FileManager.default.removeItem(atPath: copy + "/tracker.sqlite")
            #expect(damage(copy) == "it is missing, though its mark is there")
            #expect(!FileManager.default.fileExists(atPath: copy + "/tracker.sqlite"))
        }
    }

    /// An old copy of the database, or of one that was there before, under a mark that is newer.
    @Test func `an older copy is damage`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write(Self.entry(1))
            let old = directory + "-old"
            try StorageTest.copy(directory, to: old)
            store.write(.promise(Self.promise))
            let mark = try Data(contentsOf: URL(fileURLWithPath: directory + "/tracker.mark"))
            store.close()
            #expect(damage(old) == nil)
            try mark.write(to: URL(fileURLWithPath: old + "/tracker.mark"))
            #expect(damage(old)?.contains("the last part is lost") == true)

            let other = try OpenStore(directory + "-other")
            other.write(Self.entry(1))
            other.close()
            try mark.write(to: URL(fileURLWithPath: directory + "-other/tracker.mark"))
            #expect(damage(directory + "-other")?.contains("of another database") == true)
        }
    }

    /// Sealed, and beyond what a tracker can go on from: a round that overflows with the next election, and the like.
    @Test func `a number beyond its bound is damage that is named`() throws {
        var round = Self.promise
        round.epoch.round = NumberBounds.round + 1
        var shards = Self.promise
        shards.shardCount = 3
        let cases: [(Persist.Change, String)] = [
            (.promise(round), "its promised round is 4611686018427387905"),
            (.promise(shards), "its number of shards, a power of two, is 3"),
            (.append(.opaque(NumberBounds.index + 1, [1])), "its last entry is 4611686018427387905"),
            (
                .saveChunk(SnapshotChunk(number: 1, index: .max, bytes: [1])),
                "its index of chunk 1 is 18446744073709551615"
            ),
        ]
        for (change, words) in cases {
            try StorageTest.inDirectory { directory in
                let store = try OpenStore(directory)
                #expect(store.write(change) == [nil])
                store.close()
                let detail = damage(directory)
                #expect(detail?.contains(words) == true, "\(detail ?? "whole")")
            }
        }
    }

    /// Bits flipped at random, in each file of a record in turn: it is refused, or it is what it was.
    ///
    /// `DAMAGES=1000` has so many instead.
    @Test func `a bit that flips anywhere is noticed or changes nothing`() throws {
        let count = ProcessInfo.processInfo.environment["DAMAGES"].flatMap { Int($0) } ?? 120
        var random = RandomStream(seed: 13)
        var noticed = 0
        var harmless = 0
        for isCheckpointed in [false, true] {
            try StorageTest.inDirectory { directory in
                let (copy, told) = try record(directory, isCheckpointed: isCheckpointed)
                let files = StorageTest.files.filter { FileManager.default.fileExists(atPath: copy + "/" + $0) }
                for number in 0..<count / 2 {
                    let place = directory + "-\(number)"
                    try StorageTest.copy(copy, to: place)
                    let file = files[number % files.count]
                    let size = try Data(contentsOf: URL(fileURLWithPath: place + "/" + file)).count
                    guard size > 0 else { continue }
                    let offset = random.below(size)
                    try flip(place + "/" + file, at: offset, mask: 1 << UInt8(random.below(8)))
                    do {
                        let found = try Recovered.from(place)
                        #expect(found == told, "bit at \(offset) of \(file)")
                        harmless += 1
                    } catch is StoreError {
                        noticed += 1
                    }
                    try FileManager.default.removeItem(atPath: place)
                }
            }
        }
        #expect(noticed > count / 5 && harmless > 0)
        if ProcessInfo.processInfo.environment["DAMAGES"] != nil {
            print("\(noticed) damages were noticed, \(harmless) changed nothing")
        }
    }
}

// The record as a node meets it: what was reported as persisted is there again, in order, and nothing else.

import Foundation
import GRDB
import Primitives
import Storage
import Synchronization
import Testing
import TrackerLogic
import Wire

@Suite(.ownThreads) struct StorageRecordTests {
    private let promise = Promise(
        epoch: Epoch(round: NumberBounds.round, id: 7), incarnation: .max - 1,
        secret: ClusterSecret(1, .max, 3, 1 << 63),
        shardCount: 1024)

    private func entry(_ index: UInt64, bytes: [UInt8]? = nil) -> Persist.Change {
        .append(.opaque(index, bytes ?? Array("entry \(index)".utf8)))
    }

    @Test func `an empty record has nothing to recover`() throws {
        try StorageTest.inDirectory { directory in
            let found = try Recovered.from(directory)
            #expect(found == Recovered())
        }
    }

    @Test(arguments: Durability.allCases)
    func `what was persisted is recovered in order`(_ durability: Durability) throws {
        try StorageTest.inDirectory { directory in
            var options = StoreOptions()
            options.durability = durability
            let store = try OpenStore(directory, options: options)
            let chunks = [
                SnapshotChunk(number: 0, index: 2, bytes: []), SnapshotChunk(number: 3, index: 1, bytes: [1, 2]),
            ]
            #expect(
                store.write(
                    .promise(promise), entry(1), .saveChunk(chunks[1]), entry(2, bytes: []), .saveChunk(chunks[0]),
                    entry(3)) == Array(repeating: nil, count: 6))
            #expect(store.answered.map(\.rawValue) == [1, 2, 3, 4, 5, 6])
            store.close()

            let found = try Recovered.from(directory)
            #expect(found.promise == promise)
            #expect(found.chunks == chunks)
            #expect(found.indices == [1, 2, 3])
            #expect(found.entries == [1: Array("entry 1".utf8), 2: [], 3: Array("entry 3".utf8)])
        }
    }

    @Test func `a later promise and a later chunk replace the earlier`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            var later = promise
            later.epoch = Epoch(round: 2, id: 1)
            later.incarnation = 5
            let chunk = SnapshotChunk(number: 1, index: 9, bytes: [9])
            store.write(.promise(promise), .saveChunk(SnapshotChunk(number: 1, index: 8, bytes: [8, 8])))
            store.write(.promise(later), .saveChunk(chunk))
            store.close()
            let found = try Recovered.from(directory)
            #expect(found.promise == later)
            #expect(found.chunks == [chunk])
        }
    }

    @Test func `an entry takes the end of the log, and a trim its beginning`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write((1...100).map { entry($0) })
            store.write(.trim(through: 40), entry(91, bytes: [9, 1]))
            store.close()
            let found = try Recovered.from(directory)
            #expect(found.indices == Array(41...91))
            #expect(found.entries[91] == [9, 1])
        }
    }

    @Test func `trimmed entries are gone even before their rows are`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write((1...500).map { entry($0) })
            store.write(.trim(through: 499))
            // As a crash right after a trim leaves it.
            let copy = directory + "-copy"
            try StorageTest.copy(directory, to: copy)
            store.close()
            #expect(try Recovered.from(copy).indices == [500])

            let again = try OpenStore(copy)
            let rows = "SELECT count(*), max(idx) FROM log"
            #expect(StorageTest.waitUntil { (try? StorageTest.query(again.store, rows)) == ["1|500"] })
            again.write(entry(501))
            again.close()
            #expect(try Recovered.from(copy).indices == [500, 501])
        }
    }

    @Test func `a log that begins anew below what was trimmed is complete`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write((1...50).map { entry($0) })
            store.write(.trim(through: 50), entry(20, bytes: [2]), entry(21))
            store.close()
            #expect(try Recovered.from(directory).indices == [20, 21])

            let again = try OpenStore(directory)
            again.write(.trim(through: 30), entry(5), entry(6))
            again.close()
            #expect(try Recovered.from(directory).indices == [5, 6])
        }
    }

    @Test func `an entry takes the place of all from its index on`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write((1...50).map { entry($0) })
            // In a later transaction, and within one; the last of all is the same index once more.
            store.write(entry(40, bytes: [4]))
            store.write(entry(41), entry(42), entry(41, bytes: [5]), entry(42, bytes: [6]), entry(42, bytes: [7]))
            store.close()
            let found = try Recovered.from(directory)
            #expect(found.indices == Array(1...42))
            #expect((39...42).map { found.entries[$0] } == [Array("entry 39".utf8), [4], [5], [7]])

            // What an earlier life has written is replaced as well.
            let again = try OpenStore(directory)
            again.write(entry(2, bytes: [2]), entry(3))
            again.close()
            #expect(try Recovered.from(directory).indices == [1, 2, 3])
        }
    }

    @Test func `an entry in the trimmed part takes the place of all that is left`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write((1...500).map { entry($0) })
            store.write(.trim(through: 450), entry(20, bytes: [2]), entry(21))
            store.close()
            #expect(try Recovered.from(directory).indices == [20, 21])
        }
    }

    @Test func `an empty log may begin anywhere`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            store.write(entry(7), entry(8))
            store.write(.trim(through: 8), entry(20), entry(21))
            store.close()
            #expect(try Recovered.from(directory).indices == [20, 21])

            let again = try OpenStore(directory)
            again.write(.replaceAll(chunks: []), entry(5), entry(6), .trim(through: 90))
            again.close()
            #expect(try Recovered.from(directory).indices == [])

            let third = try OpenStore(directory)
            // A log that was trimmed through its last entry is empty, too.
            third.write(entry(900), .trim(through: 900), entry(1_000))
            third.close()
            #expect(try Recovered.from(directory).indices == [1_000])
        }
    }

    @Test func `a record remembers that it does not hold the full state`() throws {
        try StorageTest.inDirectory { directory in
            var partial = promise
            partial.hasFullState = false
            let store = try OpenStore(directory)
            store.write(.promise(promise), .promise(partial))
            store.close()
            #expect(try Recovered.from(directory).promise == partial)
            let again = try OpenStore(directory)
            again.write(.promise(promise))
            again.close()
            #expect(try Recovered.from(directory).promise == promise)
        }
    }

    @Test func `an orderly stop leaves only the given chunks`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            let kept = SnapshotChunk(number: 0, index: 5, bytes: [1])
            store.write(.promise(promise))
            store.write((1...5).map { entry($0) })
            store.write(.saveChunk(SnapshotChunk(number: 4, index: 5, bytes: [4])), .trim(through: 3))
            store.write(.replaceAll(chunks: [kept]))
            store.close()
            let found = try Recovered.from(directory)
            #expect(found.promise == promise)
            #expect(found.chunks == [kept])
            #expect(found.indices == [])

            let again = try OpenStore(directory)
            again.write(entry(6))
            again.close()
            #expect(try Recovered.from(directory).indices == [6])
        }
    }

    @Test func `closing finishes what was handed in`() throws {
        try StorageTest.inDirectory { directory in
            let answers = Mutex(0)
            let store = try Store.open(directory: directory, options: StorageTest.quick)
            try store.start(onCompletion: { completions in answers.withLock { $0 += completions.count } })
            for index in UInt64(1)...300 {
                store.submit([Persist(token: PersistToken(index), change: entry(index))])
            }
            store.close()
            store.close()
            #expect(answers.withLock { $0 } == 300)
            #expect(try Recovered.from(directory).indices == Array(1...300))
            #expect(!FileManager.default.fileExists(atPath: directory + "/tracker.sqlite-wal"))
        }
    }

    @Test func `a random history is remembered as by a simple model`() throws {
        for seed in UInt64(1)...8 {
            try StorageTest.inDirectory { directory in
                var random = RandomStream(seed: seed)
                var model = Recovered()
                var last: UInt64 = 0
                for _ in 0..<6 {
                    var found = Recovered()
                    let store = try OpenStore(directory) { found.add($0) }
                    #expect(found == model, "seed \(seed)")
                    for _ in 0..<random.below(12) {
                        var group: [Persist.Change] = []
                        for _ in 0...random.below(8) { group.append(change(&random, &model, &last)) }
                        #expect(store.write(group).allSatisfy { $0 == nil }, "seed \(seed)")
                    }
                    store.close()
                }
            }
        }
    }

    private func change(_ random: inout RandomStream, _ model: inout Recovered, _ last: inout UInt64) -> Persist.Change
    {
        let bytes = (0..<random.below(9_000)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        switch random.below(20) {
        case 0:
            var next = promise
            next.epoch.round = random.next() >> 2
            next.hasFullState = random.oneIn(2)
            model.promise = next
            return .promise(next)
        case 1...3:
            let chunk = SnapshotChunk(number: UInt32(random.below(4)), index: last, bytes: bytes)
            model.chunks.removeAll { $0.number == chunk.number }
            model.chunks.append(chunk)
            model.chunks.sort { $0.number < $1.number }
            return .saveChunk(chunk)
        case 4...6:
            let through = UInt64(random.below(Int(last) + 1))
            model.drop { $0 <= through }
            return .trim(through: through)
        case 7 where random.oneIn(4):
            model.chunks = []
            model.drop { _ in true }
            return .replaceAll(chunks: [])
        default:
            if let first = model.indices.first, random.oneIn(6) {
                last = first + UInt64(random.below(Int(last + 1 - first)))
                model.drop { $0 >= last }
            } else if model.indices.isEmpty {
                last += 1 + UInt64(random.below(3) * random.below(20))
            } else {
                last += 1
            }
            model.entries[last] = bytes
            model.indices.append(last)
            return .append(.opaque(last, bytes))
        }
    }
}

extension Recovered {
    fileprivate mutating func drop(_ isGone: (UInt64) -> Bool) {
        for index in indices where isGone(index) { entries[index] = nil }
        indices.removeAll(where: isGone)
    }
}

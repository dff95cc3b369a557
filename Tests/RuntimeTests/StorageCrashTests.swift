/// The process dies at some moment: what was reported as persisted is there, and the log has no hole.

import Foundation
import Primitives
import Runtime
import Synchronization
import Testing
import TrackerLogic
import Wire

@Suite(.ownThreads) struct StorageCrashTests {
    /// Writes as fast as it can, and puts down every entry that was reported, until it is killed from within.
    ///
    /// Runs in a process of its own.
    static func writeUntilKilled(directory: String, durability: StoreOptions.Durability, milliseconds: UInt32) throws {
        var options = StoreOptions()
        options.durability = durability
        let store = try Store.open(directory: directory, options: options)
        var last: UInt64 = 0
        try store.recover { record in
            if case .entry(let index, _) = record { last = index }
        }
        let reports = open(directory + "/reported", O_WRONLY | O_APPEND | O_CREAT, 0o600)
        let hasReported = Atomic(false)
        try store.start(onCompletion: { completions in
            hasReported.store(true, ordering: .relaxed)
            for (token, failure) in completions where failure == nil {
                var index = token.rawValue
                // One write of eight bytes is whole or not there.
                precondition(write(reports, &index, 8) == 8, "the report could not be put down")
            }
        })
        Thread {
            while !hasReported.load(ordering: .relaxed) { usleep(1_000) }
            usleep(milliseconds * 1_000)
            kill(getpid(), SIGKILL)
        }.start()
        while true {
            let group = (UInt64(1)...3).map { offset in
                let index = last + offset
                let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: Int(index % 7) * 3_000)
                // A token says what it stands for: entries by their index.
                return Persist(token: PersistToken(index), change: .append(index: index, entry: bytes))
            }
            last += 3
            store.submit(group)
            if last % 30 == 0, last > 120 {
                store.submit([Persist(token: PersistToken(0), change: .trim(through: last - 120))])
            }
            usleep(300)
        }
    }

    @Test(arguments: StoreOptions.Durability.allCases)
    func whatWasReportedIsThereAfterKill(_ durability: StoreOptions.Durability) async throws {
        let parent = try TemporaryDirectory()
        let directory = parent.path("data")
        var random = RandomStream(seed: 5)
        var before: UInt64 = 0
        for _ in 0..<4 {
            let milliseconds = UInt32(1 + random.below(200))
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [
                    directory = directory as String, durability = durability.rawValue as String,
                    milliseconds = milliseconds as UInt32
                ] in
                try Self.writeUntilKilled(
                    directory: directory, durability: .init(rawValue: durability) ?? .disk,
                    milliseconds: milliseconds)
            }
            let found = try Recovered.from(directory)
            let reported = try Data(contentsOf: URL(fileURLWithPath: directory + "/reported"))
            let indices = stride(from: 0, to: reported.count, by: 8).map { offset in
                reported[offset..<offset + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            }
            let last = indices.max() ?? 0
            #expect(last > before, "the process was killed before it could do anything")
            // `recover` itself refuses a log with holes.
            let first = try #require(found.indices.first)
            let end = try #require(found.indices.last)
            #expect(end >= last)
            // A trim never overtook the entries that were written before it.
            #expect(first == 1 || end - first >= 119)
            for (index, bytes) in found.entries {
                #expect(bytes == [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: Int(index % 7) * 3_000))
            }
            before = end
        }
        withExtendedLifetime(parent) {}
    }

    /// The files as whoever comes after a crash finds them.
    ///
    /// There are too few entries for a checkpoint, which would change the one file while the other is copied.
    @Test func theFilesOfAnOpenStoreAreAWholeRecord() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            for round in UInt64(0)..<10 {
                let entry = [UInt8](repeating: 3, count: 9_000)
                store.write((1...20).map { .append(index: round * 20 + $0, entry: entry) })
                let copy = directory + "-copy-\(round)"
                try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
                for name in ["tracker.sqlite", "tracker.sqlite-wal"] {
                    try FileManager.default.copyItem(atPath: directory + "/" + name, toPath: copy + "/" + name)
                }
                #expect(try Recovered.from(copy).indices == Array(1...(round + 1) * 20))
            }
            store.close()
        }
    }
}

// The process dies at some moment: what was reported as persisted is there, and the log has no hole.

import Foundation
import Primitives
import Storage
import Synchronization
import Testing
import TrackerLogic
import Wire

@Suite(.ownThreads) struct StorageCrashTests {
    /// An entry as the tests of crashes write it: it says its index, and how often a part of the log was replaced
    /// before it.
    private static func entry(_ index: UInt64, replacements: UInt64) -> Persist {
        let name = name(index, replacements)
        let bytes = withUnsafeBytes(of: name.littleEndian) { Array($0) }
        let filling = [UInt8](repeating: UInt8(truncatingIfNeeded: name % 251), count: Int(index % 7) * 3_000)
        // A token says what it stands for.
        return Persist(token: PersistToken(name), change: .append(.opaque(index, bytes + filling)))
    }

    private static func name(_ index: UInt64, _ replacements: UInt64) -> UInt64 { replacements << 32 | index }

    /// - Returns: nil where this is no entry of `entry`.
    private static func replacements(_ index: UInt64, _ bytes: [UInt8]) -> UInt64? {
        guard bytes.count >= 8 else { return nil }
        let replacements = bytes[..<8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 32
        return entry(index, replacements: replacements).change == .append(.opaque(index, bytes))
            ? replacements : nil
    }

    /// Writes as fast as it can, and puts down every entry that was reported, until it is killed from within.
    ///
    /// Runs in a process of its own.
    static func writeUntilKilled(directory: String, durability: Durability, milliseconds: UInt32) throws {
        var options = StoreOptions()
        options.durability = durability
        let store = try Store.open(directory: directory, options: options)
        var last: UInt64 = 0
        var replacements: UInt64 = 0
        try store.recover { record in
            if case .entry(let index, let bytes) = record {
                (last, replacements) = (index, Self.replacements(index, bytes) ?? 0)
            }
        }
        let reports = open(directory + "/reported", O_WRONLY | O_APPEND | O_CREAT, 0o600)
        let hasReported = Atomic(false)
        try store.start(onCompletion: { completions in
            hasReported.store(true, ordering: .relaxed)
            for (token, failure) in completions where failure == nil && token.rawValue > 0 {
                var name = token.rawValue
                // One write of eight bytes is whole or not there.
                precondition(write(reports, &name, 8) == 8, "the report could not be put down")
            }
        })
        Thread {
            while !hasReported.load(ordering: .relaxed) { usleep(1_000) }
            usleep(milliseconds * 1_000)
            kill(getpid(), SIGKILL)
        }.start()
        for turn in UInt64(1)... {
            if turn % 3 == 0 {
                // One in the place of several.
                replacements += 1
                last -= min(last, 4)
            }
            store.submit((1...3).map { Self.entry(last + $0, replacements: replacements) })
            last += 3
            if turn % 10 == 0, last > 120 {
                store.submit([Persist(token: PersistToken(0), change: .trim(through: last - 120))])
            }
            usleep(300)
        }
    }

    @Test(arguments: Durability.allCases)
    func `what was reported as persisted is there after SIGKILL`(_ durability: Durability) async throws {
        let parent = try TemporaryDirectory()
        let directory = parent.path("data")
        var random = RandomStream(seed: 5)
        var before = 0
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
            #expect(reported.count > before, "the process was killed before it could do anything")
            before = reported.count
            let last = reported.suffix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            // `recover` itself refuses a log with holes.
            let first = try #require(found.indices.first)
            let end = try #require(found.indices.last)
            let replacements = try found.indices.map { index in
                try #require(Self.replacements(index, found.entries[index] ?? []), "entry \(index)")
            }
            // Nothing of a part that was replaced is left behind what took its place.
            #expect(replacements == replacements.sorted())
            // What was reported last is there, or what replaced it: never the gap between the two.
            #expect(Self.name(end, replacements.last ?? 0) >= last)
            // A trim never overtook the entries that were written before it.
            #expect(first == 1 || end - first >= 110)
        }
        withExtendedLifetime(parent) {}
    }

    /// The files as whoever comes after a crash finds them.
    ///
    /// There are too few entries for a checkpoint, which would change the one file while the other is copied.
    @Test func `the files of an open store are a complete record`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            for round in UInt64(0)..<10 {
                let entry = [UInt8](repeating: 3, count: 9_000)
                store.write((1...20).map { .append(.opaque(round * 20 + $0, entry)) })
                let copy = directory + "-copy-\(round)"
                try StorageTest.copy(directory, to: copy)
                #expect(try Recovered.from(copy).indices == Array(1...(round + 1) * 20))
            }
            store.close()
        }
    }
}

// What the tests of the storage share: directories that go away, a store whose writes are waited for, and chunks
// that say what a test wants them to.

import Foundation
import GRDB
import Primitives
import Storage
import Synchronization
import Testing
import TrackerLogic
import Wire

/// Runs tests on threads of their own: they wait for the disk, and the pool that all asynchronous tests share has no
/// more threads than the machine has cores.
struct OwnThreads: SuiteTrait, TestTrait, TestScoping {
    private static let executor = Executor()

    private final class Executor: TaskExecutor {
        private let queue = OperationQueue()

        init() { queue.maxConcurrentOperationCount = 4 }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.addOperation { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(Self.executor) { try await function() }
    }
}

extension SuiteTrait where Self == OwnThreads {
    static var ownThreads: OwnThreads { OwnThreads() }
}

extension Entry {
    /// An entry whose bytes say nothing: the storage does not look at them.
    static func opaque(_ index: UInt64, _ bytes: [UInt8]) -> Entry {
        let header = EntryHeader(index: index, epoch: .zero, time: WallTime(milliseconds: 0), updateCount: 0)
        return Entry(sealed: bytes, header, chain: 1)
    }
}

/// A store that is open and started, and whose writes are waited for.
final class OpenStore: Sendable {
    let store: Store
    private let ledger = WriteLedger()

    init(
        _ directory: String, options: StoreOptions = StorageTest.quick,
        visit: (RecoveredRecord) throws -> Void = { _ in }
    ) throws {
        store = try Store.open(directory: directory, options: options)
        try store.recover(visit)
        try store.start(
            onCompletion: { [ledger] in ledger.complete($0) }, onObservation: { [ledger] in ledger.observe($0) })
    }

    /// Hands in writes together and waits for all of them.
    ///
    /// - Returns: why each was not made; nil where it was.
    @discardableResult
    func write(_ changes: Persist.Change...) -> [StorageFailure?] { write(changes) }

    @discardableResult
    func write(_ changes: [Persist.Change]) -> [StorageFailure?] {
        let persists = changes.map { Persist(token: ledger.nextToken(), change: $0) }
        store.submit(persists)
        return ledger.wait(for: persists.map(\.token))
    }

    /// Tokens in the order in which they were answered.
    var answered: [PersistToken] { ledger.answered }
    var observations: [StoreObservation] { ledger.observations }
    /// The failures that an operator was told of.
    var toldFailures: [StorageFailure] {
        observations.compactMap { observation in
            if case .writesFailed(let failure, _, _) = observation { return failure }
            return nil
        }
    }

    /// Waits until the tables say what the snapshot says.
    func waitForTables() -> Bool { StorageTest.waitUntil { store.statistics.staleChunks == 0 } }

    func close() { store.close() }
}

private final class WriteLedger: @unchecked Sendable {
    private let condition = NSCondition()
    private var lastToken: UInt64 = 0
    private var results: [PersistToken: StorageFailure?] = [:]
    private var order: [PersistToken] = []
    private var seen: [StoreObservation] = []

    private func locked<Result>(_ body: () -> Result) -> Result {
        condition.lock()
        defer { condition.unlock() }
        return body()
    }

    func nextToken() -> PersistToken {
        locked {
            lastToken += 1
            return PersistToken(lastToken)
        }
    }

    func complete(_ completions: [(PersistToken, StorageFailure?)]) {
        locked {
            for (token, failure) in completions {
                results[token] = .some(failure)
                order.append(token)
            }
            condition.broadcast()
        }
    }

    func observe(_ observation: StoreObservation) { locked { seen.append(observation) } }

    func wait(for tokens: [PersistToken]) -> [StorageFailure?] {
        locked {
            tokens.map { token in
                while results[token] == nil { condition.wait() }
                return results[token] ?? nil
            }
        }
    }

    var answered: [PersistToken] { locked { order } }
    var observations: [StoreObservation] { locked { seen } }
}

/// All that a record holds.
struct Recovered: Equatable {
    var promise: Promise?
    var chunks: [SnapshotChunk] = []
    var entries: [UInt64: [UInt8]] = [:]
    var indices: [UInt64] = []

    mutating func add(_ record: RecoveredRecord) {
        switch record {
        case .promise(let promise): self.promise = promise
        case .chunk(let chunk): chunks.append(chunk)
        case .entry(let index, let bytes):
            entries[index] = bytes
            indices.append(index)
        }
    }

    /// Opens a directory, reads everything back, and closes it.
    static func from(_ directory: String) throws -> Recovered {
        var result = Recovered()
        let store = try Store.open(directory: directory, options: StorageTest.quick)
        defer { store.close() }
        try store.recover { result.add($0) }
        return result
    }
}

/// Chunks whose bytes are only a name, and what they say is kept here: the tests of the tables do not depend on how
/// the logic writes chunks.
final class ChunkLibrary: Sendable {
    private let swarms = Mutex<[[UInt8]: [SwarmImage]]>([:])
    private let registries = Mutex<[[UInt8]: RegistryImage]>([:])

    func shard(_ number: UInt32, index: UInt64, _ images: [SwarmImage]) -> SnapshotChunk {
        let name = Array("shard \(number) at \(index)".utf8)
        swarms.withLock { $0[name] = images }
        return SnapshotChunk(number: number, index: index, bytes: name)
    }

    func registry(index: UInt64, _ image: RegistryImage) -> SnapshotChunk {
        let name = Array("registry at \(index)".utf8)
        registries.withLock { $0[name] = image }
        return SnapshotChunk(number: 0, index: index, bytes: name)
    }

    var options: StoreOptions {
        var options = StorageTest.quick
        options.decoder = ChunkDecoder(
            swarms: { [self] chunk throws(ChunkDamaged) in
                guard let images = swarms.withLock({ $0[chunk.bytes] }) else {
                    throw ChunkDamaged(number: chunk.number)
                }
                return images
            },
            registry: { [self] chunk throws(ChunkDamaged) in
                guard let image = registries.withLock({ $0[chunk.bytes] }) else {
                    throw ChunkDamaged(number: chunk.number)
                }
                return image
            })
        return options
    }
}

enum StorageTest {
    /// Options that wait for the disk as little as can be: what the tests look at does not depend on it.
    static var quick: StoreOptions {
        var options = StoreOptions()
        options.durability = .process
        return options
    }

    /// Hands a directory to `body` that is not yet there, and removes it afterwards.
    static func inDirectory(_ body: (String) throws -> Void) throws {
        let parent = try TemporaryDirectory()
        try withExtendedLifetime(parent) { try body(parent.path("data")) }
    }

    /// The files of a record.
    static let files = ["tracker.sqlite", "tracker.sqlite-wal", "tracker.mark"]

    /// Copies a record as whoever comes after a crash would find it.
    static func copy(_ directory: String, to copy: String) throws {
        try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
        for name in files where FileManager.default.fileExists(atPath: directory + "/" + name) {
            try FileManager.default.copyItem(atPath: directory + "/" + name, toPath: copy + "/" + name)
        }
    }

    /// Asks again and again, until it is so or all patience has gone.
    static func waitUntil(_ condition: () -> Bool) -> Bool {
        for _ in 0..<60_000 {
            if condition() { return true }
            usleep(2_000)
        }
        return false
    }

    static func bytes20(_ byte: UInt8) -> Bytes20 { Bytes20([UInt8](repeating: byte, count: 20)) ?? .zero }

    static func peer(
        _ host: String, port: UInt16 = 6881, left: UInt64 = 0, downloaded: UInt64 = 0, lastSeen: UInt32 = 1,
        isCounted: Bool = false
    ) -> PeerImage {
        PeerImage(
            address: SocketAddress(host: host, port: port) ?? .unspecified, peerID: PeerID(bytes20(0x2D)),
            downloaded: downloaded, left: left, lastSeen: lastSeen, isCounted: isCounted)
    }

    static func swarm(_ byte: UInt8, completed: UInt32 = 0, _ peers: [PeerImage]) -> SwarmImage {
        SwarmImage(infoHash: InfoHash(bytes20(byte)), completed: completed, peers: peers)
    }

    /// The rows that a query finds, each as its values separated by "|".
    static func query(_ store: Store, _ sql: String) throws -> [String] {
        try store.reader().read { db in
            try Row.fetchAll(db, sql: sql).map { row in
                row.databaseValues.map { value in
                    switch value.storage {
                    case .null: "–"
                    case .int64(let number): "\(number)"
                    case .double(let number): "\(number)"
                    case .string(let text): text
                    case .blob(let data): hexadecimal(data)
                    }
                }.joined(separator: "|")
            }
        }
    }

    /// Opens the database file as some other program would.
    static func otherProgram(_ directory: String) throws -> DatabaseQueue {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        var configuration = Configuration()
        // The store may be tidying up.
        configuration.busyMode = .timeout(120)
        return try DatabaseQueue(path: directory + "/tracker.sqlite", configuration: configuration)
    }
}

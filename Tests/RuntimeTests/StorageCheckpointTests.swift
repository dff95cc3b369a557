// The write-ahead log stays bounded whoever is slow, and is left alone where that would not help.

import Foundation
import GRDB
import Storage
import Testing
import TrackerLogic
import Wire

@Suite(.ownThreads) struct StorageCheckpointTests {
    private typealias Policy = CheckpointPolicy

    @Test func `a short log is left alone`() {
        var policy = Policy()
        #expect(policy.next() == nil)
        policy.committed(pages: Policy.start - 1)
        #expect(policy.next() == nil)
    }

    @Test func `a long log is copied beside the writer until little is left`() {
        var policy = Policy()
        policy.committed(pages: Policy.start)
        #expect(policy.next() == .copy)
        #expect(policy.next() == nil, "one copy at a time")
        policy.committed(pages: Policy.start + Policy.few + 1)
        policy.copied(Policy.start)
        #expect(policy.next() == .copy, "too much is left for the writer")
        policy.copied(Policy.start + Policy.few)
        #expect(policy.next() == .finish)
        policy.finished(copied: Policy.start + Policy.few + 1)
        #expect(policy.next() == nil)
        policy.committed(pages: 3)
        #expect(policy.next() == nil)
        #expect(policy.pages == 3)
    }

    @Test func `what was copied of an earlier log counts for nothing`() {
        var policy = Policy()
        policy.committed(pages: Policy.start)
        #expect(policy.next() == .copy)
        policy.committed(pages: 1)
        policy.committed(pages: Policy.start)
        policy.copied(Policy.start)
        #expect(policy.next() == .copy)
    }

    @Test func `an unsuccessful attempt is not repeated at once`() {
        var policy = Policy()
        policy.committed(pages: Policy.start)
        #expect(policy.next() == .copy)
        policy.copyFailed()
        #expect(policy.next() == nil)
        policy.committed(pages: 2 * Policy.start)
        #expect(policy.next() == .copy)
        policy.copied(2 * Policy.start)
        #expect(policy.next() == .finish)
        policy.finished(copied: nil)
        #expect(policy.next() == nil)
    }

    @Test func `a full disk empties even a short log`() {
        var policy = Policy()
        policy.committed(pages: 5)
        policy.roomIsNeeded()
        #expect(policy.next() == .finish)
        policy.finished(copied: 5)
        #expect(policy.next() == nil)
    }

    /// SQLite's write-ahead log in numbers: pages written, pages copied, and how far a reader lets a copy go.
    private struct Log {
        var pages = 0
        var copied = 0
        var reader: Int?
        /// Where the worker is, and where it stops.
        var work: (at: Int, end: Int)?

        mutating func write(_ count: Int) {
            if copied == pages, reader == nil { (pages, copied) = (0, 0) }
            pages += count
        }

        mutating func copy(upTo end: Int) { copied = max(copied, min(end, reader ?? .max)) }
    }

    /// A writer that never pauses, beside a worker that copies some pages in the time of one transaction.
    ///
    /// - Returns: the most pages that the log had, and the most that the writer had to copy itself.
    private func run(_ policy: inout Policy, _ log: inout Log, transactions: Int, copiedPages: Int) -> (Int, Int) {
        var (longest, finished) = (0, 0)
        for _ in 0..<transactions {
            // A moment is worth ten transactions.
            var time = policy.pressure == .some ? 10 : 1
            if policy.pressure == .full { time = .max }
            if let work = log.work {
                let (at, isOver) = work.at.addingReportingOverflow(copiedPages.multipliedReportingOverflow(by: time).0)
                if isOver || time == .max || at >= work.end {
                    log.copy(upTo: work.end)
                    policy.copied(log.copied)
                    log.work = nil
                } else {
                    log.work = (at, work.end)
                }
            }
            log.write(20)
            policy.committed(pages: log.pages)
            switch policy.next() {
            case nil: break
            case .copy: log.work = (log.copied, log.pages)
            case .finish:
                if log.reader == nil { finished = max(finished, log.pages - log.copied) }
                log.copy(upTo: log.pages)
                policy.finished(copied: log.copied)
            }
            longest = max(longest, log.pages)
        }
        return (longest, finished)
    }

    @Test func `a worker that keeps up leaves little to the writer`() {
        var (policy, log) = (Policy(), Log())
        let (longest, finished) = run(&policy, &log, transactions: 20_000, copiedPages: 100)
        #expect(longest < 2 * Policy.start)
        #expect(finished <= Policy.few)
    }

    @Test(arguments: [1, 5, 10, 19, 20, 25])
    func `a worker that does not keep up slows the writer down`(_ copiedPages: Int) {
        var (policy, log) = (Policy(), Log())
        let (longest, _) = run(&policy, &log, transactions: 100_000, copiedPages: copiedPages)
        #expect(longest <= 2 * Policy.hardLimit + 20)
        #expect(!policy.isHeldUp)
    }

    @Test func `a reader that stays is reported and holds up nobody`() {
        var (policy, log) = (Policy(), Log())
        _ = run(&policy, &log, transactions: 50, copiedPages: 100)
        log.reader = log.pages
        _ = run(&policy, &log, transactions: 2_000, copiedPages: 100)
        #expect(policy.isHeldUp)
        #expect(policy.pressure == .none)
        log.reader = nil
        _ = run(&policy, &log, transactions: 2_000, copiedPages: 100)
        #expect(!policy.isHeldUp)
        #expect(log.pages < 2 * Policy.start)
    }

    /// SQLite copies nothing while somebody else does: it says so at once, and waits for nobody.
    @Test func `a copy that cannot be made for long is told of, and is made once it can`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            let entry = [UInt8](repeating: 5, count: 1 << 20)
            func write(_ indices: ClosedRange<UInt64>) {
                for index in indices { store.write(.append(.opaque(index, entry)), .trim(through: index - 1)) }
            }
            write(1...1)
            let lock = try CheckpointLock(directory)
            write(2...20)
            let isTold = StorageTest.waitUntil {
                store.observations.contains { if case .checkpointFailed = $0 { true } else { false } }
            }
            #expect(isTold)
            #expect(store.store.statistics.walByteCount > Policy.start * 4_096, "nothing could be copied")
            try lock.release()
            var last: UInt64 = 20
            let isShort = StorageTest.waitUntil {
                last += 1
                write(last...last)
                return store.store.statistics.walByteCount < Policy.start * 4_096
            }
            #expect(isShort)
            store.close()
            #expect(try Recovered.from(directory).indices == [last])
            withExtendedLifetime(lock) {}
        }
    }

    /// The same over a real database.
    @Test func `the files stay bounded and an old reader is reported`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory)
            let entry = [UInt8](repeating: 5, count: 1 << 20)
            var last: UInt64 = 0
            func write(mebibytes: Int) {
                for _ in 0..<mebibytes {
                    last += 1
                    store.write(.append(.opaque(last, entry)), .trim(through: last - 1))
                }
            }
            func walByteCount() throws -> Int {
                let attributes = try FileManager.default.attributesOfItem(atPath: directory + "/tracker.sqlite-wal")
                return try #require(attributes[.size] as? Int)
            }
            write(mebibytes: 100)
            #expect(try walByteCount() < 2 * Policy.hardLimit * 4_096 + (8 << 20))
            #expect(store.observations == [])

            let other = try StorageTest.otherProgram(directory)
            try other.read { db in
                _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM log")
                write(mebibytes: 90)
            }
            try other.close()
            let heldUp = store.observations.filter { observation in
                if case .checkpointHeldUp = observation { return true }
                return false
            }
            #expect(heldUp.count == 1)
            #expect(store.observations.count == 1)

            let isShort = StorageTest.waitUntil {
                write(mebibytes: 1)
                return store.store.statistics.walByteCount < Policy.hardLimit * 4_096
            }
            #expect(isShort)
            // What it had grown beyond the limit was cut off.
            #expect(try walByteCount() <= Policy.hardLimit * 4_096 + (2 << 20))
            store.close()
            #expect(try Recovered.from(directory).indices == [last])
        }
    }
}

/// The lock that whoever copies the write-ahead log has, held by somebody else: SQLite's `WAL_CKPT_LOCK`.
///
/// An open file description's lock, which also keeps out this very process. To close the file would give up all of the
/// process's locks on it, so it lives until the store is closed.
private final class CheckpointLock {
    /// Linux, fcntl(2): `F_OFD_SETLK`.
    private static let setLock: CInt = 37
    /// `WAL_CKPT_LOCK` of SQLite's wal.c, counted from `UNIX_SHM_BASE` of its os_unix.c.
    private static let place: off_t = 121

    private let descriptor: CInt

    init(_ directory: String) throws {
        descriptor = open("\(directory)/tracker.sqlite-shm", O_RDWR | O_CLOEXEC)
        try set(F_WRLCK)
    }

    deinit { close(descriptor) }

    func release() throws { try set(F_UNLCK) }

    private func set(_ kind: CInt) throws {
        var lock = flock()
        (lock.l_type, lock.l_whence, lock.l_start, lock.l_len) = (Int16(kind), Int16(SEEK_SET), Self.place, 1)
        guard fcntl(descriptor, Self.setLock, &lock) == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    }
}

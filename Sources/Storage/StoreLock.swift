// Keeps a second tracker out of a data directory.

import Foundation

/// Keeps a second tracker out of a data directory: an exclusive `flock` on `tracker.lock`, which names the process that
/// holds it.
///
/// The kernel gives it back when the process ends, however it ends. The file stays: who removed it could lock a file
/// that is no longer there while another locks its successor.
final class StoreLock: Sendable {
    private let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    /// - Throws: `inUse` where another process, or another `Store` of this one, holds the directory.
    static func take(directory: String) throws(StoreError) -> StoreLock {
        let path = directory + "/tracker.lock"
        // Close-on-exec: a hook's child process must not keep the lock after the tracker's end.
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o640)
        guard descriptor >= 0 else { throw StoreFile.openingError(errno, path: path, directory: directory) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            defer { close(descriptor) }
            guard number == EWOULDBLOCK else { throw StoreError(errorNumber: number, path: path) }
            throw .inUse(directory: directory, processID: holder(descriptor))
        }
        // Only for people; the lock holds without it, on a full disk for example.
        let text = Array("\(getpid())\n".utf8)
        if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.count, 0) }
        return StoreLock(descriptor: descriptor)
    }

    deinit {
        // Not by closing alone: a child process that is just being forked has a copy, and the lock with it.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    private static func holder(_ descriptor: Int32) -> Int32? {
        var text = [UInt8](repeating: 0, count: 16)
        let count = pread(descriptor, &text, text.count, 0)
        guard count > 0 else { return nil }
        return Int32(String(decoding: text[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}

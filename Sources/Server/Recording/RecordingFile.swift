// `DIR/recording`, and what is kept of it.

import Foundation
import Primitives
import TrackerLogic
import Wire

/// Why nothing is recorded, or a recording could not be copied.
struct RecordingFailure: Error, CustomStringConvertible {
    /// A sentence with the way out.
    var description: String
}

/// `DIR/recording`: the file that the ring of this life is mapped from, and the files that are kept of it.
///
///     DIR/recording                      the ring of this life; it outlives the process, however that ends
///     DIR/recording-INCARNATION.swkr     of a life that did not end in order: the newest three
///     DIR/recording-INCARNATION-N.swkr   copies that were asked for: sixteen
///
/// They hold the addresses of clients and the cluster's secret, so nobody else may read them (mode 0600).
enum RecordingFile {
    /// Bytes of the ring and its header.
    static let byteCount = 64 << 20
    /// Recordings of lives that did not end in order that are kept.
    static let maxKept = 3
    /// Copies that may lie in the directory.
    static let maxCopies = 16
    /// Bytes that a recording leaves to the record, which needs them more.
    static let reserve = 64 << 20
    private static let name = "recording"
    static let ending = ".swkr"

    // MARK: - The ring

    /// Makes the file of a new life, and keeps that of the last one where it did not end in order.
    ///
    /// - Returns: the ring, mapped and all zero; and what was kept.
    static func begin(in directory: String) throws(RecordingFailure) -> (room: RecordingRoom, kept: String?) {
        let path = directory + "/" + name
        let kept = keep(path, in: directory)
        // Whatever it is, a link too: nothing behind it is written to.
        unlink(path)
        guard hasRoom(directory) else { throw failure("\(path) needs \(roomWords)", ENOSPC) }
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("\(path) cannot be made", errno) }
        defer { close(descriptor) }
        // All blocks at once: a disk that is full later does not end the process.
        let allocated = posix_fallocate(descriptor, 0, off_t(byteCount))
        guard allocated == 0 else {
            unlink(path)
            throw failure("\(path) needs \(byteCount >> 20) MiB", allocated)
        }
        let mapped = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
        guard let mapped, mapped != MAP_FAILED else {
            let number = errno
            unlink(path)
            throw failure("\(path) cannot be mapped", number)
        }
        let room = RecordingRoom(UnsafeMutableRawBufferPointer(start: mapped, count: byteCount)) {
            munmap($0.baseAddress, $0.count)
        }
        return (room, kept)
    }

    /// Whether a ring, or a copy of one, leaves enough of the disk to others.
    private static func hasRoom(_ directory: String) -> Bool {
        var status = statvfs()
        guard statvfs(directory, &status) == 0 else { return true }
        return UInt64(status.f_bavail) * UInt64(status.f_frsize) >= UInt64(byteCount + reserve)
    }

    private static var roomWords: String { "\(byteCount >> 20) MiB, and as much again for others" }

    private static func failure(_ what: String, _ number: Int32) -> RecordingFailure {
        RecordingFailure(
            description: "\(what): \(String(cString: strerror(number))); nothing is recorded, all else goes on")
    }

    /// Keeps a recording that did not end in order under a name of its own.
    private static func keep(_ path: String, in directory: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var head = [UInt8](repeating: 0, count: 4096)
        guard pread(descriptor, &head, head.count, 0) == head.count, let summary = RecordingSummary(head),
            !summary.endedInOrder
        else { return nil }
        let target = "\(directory)/\(name)-\(String(summary.life.incarnation, radix: 16))\(ending)"
        guard rename(path, target) == 0 else { return nil }
        for old in files(in: directory, areCopies: false).dropFirst(maxKept) { unlink(old) }
        return target
    }

    /// What lies there of earlier lives, or of copies, the newest first.
    private static func files(in directory: String, areCopies: Bool) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        let own = names.filter {
            $0.hasPrefix(name + "-") && $0.hasSuffix(ending)
                && ($0.count { $0 == "-" } > 1) == areCopies
        }
        func age(_ path: String) -> Int {
            var status = stat()
            return lstat(path, &status) == 0 ? status.st_mtim.tv_sec : 0
        }
        return own.map { directory + "/" + $0 }.sorted { (age($0), $0) > (age($1), $1) }
    }

    // MARK: - Copies

    /// Copies a ring that is being written to.
    ///
    /// Takes as long as the disk does; the tracker's thread does not wait. Frames that it writes over meanwhile are
    /// left out.
    ///
    /// - Returns: the path of the copy.
    static func copy(_ room: RecordingRoom, to directory: String) throws(RecordingFailure) -> String {
        guard files(in: directory, areCopies: true).count < maxCopies else {
            throw RecordingFailure(
                description: "\(maxCopies) copies of recordings lie in \(directory) already: move or remove some")
        }
        guard hasRoom(directory) else {
            throw RecordingFailure(
                description: "\(directory) has no room for a copy: it needs \(roomWords)")
        }
        let incarnation = String(room.summary?.life.incarnation ?? 0, radix: 16)
        var path = ""
        var descriptor: Int32 = -1
        for number in 1...maxCopies * 2 where descriptor < 0 {
            path = "\(directory)/\(name)-\(incarnation)-\(number)\(ending)"
            descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 || errno == EEXIST else { break }
        }
        guard descriptor >= 0 else {
            throw RecordingFailure(description: "\(path) cannot be made: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        let written = room.copy { bytes, offset in
            var done = 0
            while done < bytes.count {
                let count = pwrite(descriptor, bytes.baseAddress! + done, bytes.count - done, off_t(offset + done))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                done += count
            }
            return true
        }
        guard written, fsync(descriptor) == 0 else {
            let number = errno
            unlink(path)
            throw RecordingFailure(description: "\(path) cannot be written: \(String(cString: strerror(number)))")
        }
        return path
    }
}

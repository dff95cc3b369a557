// `DIR/tracker.mark`.

import Foundation
import Primitives
import TrackerLogic
import Wire

/// `DIR/tracker.mark`: how far the record had come when somebody was last told so, outside of the database.
///
/// Two slots of 4 KiB take turns, so that a crash in the middle of a write leaves the other one. The storage thread
/// writes one after each group commit, before anybody hears of it; with `Durability.disk` it waits for the disk. Both
/// slots are there from the beginning: to write one over needs no room, and no change of the file's own data.
///
/// ```
/// 0     magic "SWMKMARK"          32    boot: 0, or in which life of the kernel alone the mark is sure to be there
/// 8     version                   40    head (`RecordHead`)
/// 16    generation                …     zeros
/// 24    salt of the database      4088  checksum of everything else
/// ```
final class MarkFile: @unchecked Sendable {
    /// What is there when a record is opened.
    enum Found: Sendable, Equatable {
        case missing
        /// Neither slot is what was written.
        case unreadable
        case mark(Slot, isOtherSound: Bool)
    }

    struct Slot: Sendable, Equatable {
        var generation: UInt64
        var mark: RecordMark
        /// 0 where the disk was waited for.
        var boot: UInt64

        /// Whether a record that is older is damaged: what only the kernel knew is gone after a loss of power.
        var isBinding: Bool { boot == 0 || boot == KernelLife.id }
    }

    private static let slotSize = 4_096
    private static let magic: UInt64 = 0x5357_4D4B_4D41_524B
    private static let version: UInt64 = 1

    private let descriptor: Int32
    private let salt: UInt64
    private let durability: Durability
    /// Of the slot that was written last.
    private var generation: UInt64

    private init(_ descriptor: Int32, _ salt: UInt64, _ durability: Durability, _ generation: UInt64) {
        self.descriptor = descriptor
        self.salt = salt
        self.durability = durability
        self.generation = generation
    }

    deinit { _ = Foundation.close(descriptor) }

    static func path(_ directory: String) -> String { directory + "/tracker.mark" }

    // MARK: - Opening

    /// Reads the mark of a directory.
    ///
    /// - Throws: where the system cannot open it, or can read neither slot.
    static func find(in directory: String) throws(StoreError) -> Found {
        let path = path(directory)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return .missing }
            throw StoreError(errorNumber: errno, path: path)
        }
        defer { _ = Foundation.close(descriptor) }
        var slots: [Slot?] = []
        var failure: Int32?
        for place in 0..<2 {
            var bytes = [UInt8](repeating: 0, count: slotSize)
            var count = pread(descriptor, &bytes, slotSize, off_t(place * slotSize))
            while count < 0, errno == EINTR { count = pread(descriptor, &bytes, slotSize, off_t(place * slotSize)) }
            if count < 0 { failure = errno }
            // A slot that cannot be read at all is as good as changed: the other one is there for that.
            slots.append(count == slotSize ? slot(bytes, at: place) : nil)
        }
        guard let newest = slots.compactMap({ $0 }).max(by: { $0.generation < $1.generation }) else {
            // A disk that fails is no damage yet: what it holds may be all right on another one.
            if let failure { throw StoreError(errorNumber: failure, path: path) }
            return .unreadable
        }
        return .mark(newest, isOtherSound: !slots.contains(nil))
    }

    /// Begins a mark, or a new one in the place of what is there.
    static func begin(in directory: String, _ mark: RecordMark, _ durability: Durability) throws(StoreError) {
        let path = path(directory)
        let draft = path + ".new"
        let descriptor = open(draft, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o640)
        guard descriptor >= 0 else { throw StoreFile.openingError(errno, path: draft, directory: directory) }
        defer { _ = Foundation.close(descriptor) }
        // Both slots say the same: one that is lost later is missed.
        let boot = durability == .disk ? 0 : KernelLife.id
        let slots = [0, 1].flatMap { bytes(Slot(generation: $0, mark: mark, boot: boot)) }
        guard pwrite(descriptor, slots, slots.count, 0) == slots.count, fsync(descriptor) == 0 else {
            let number = errno
            unlink(draft)
            // A write that ends early has met the end of the room.
            throw StoreError(errorNumber: number == 0 ? ENOSPC : number, path: path)
        }
        guard rename(draft, path) == 0 else { throw StoreError(errorNumber: errno, path: path) }
        StoreFile.sync(directory)
    }

    /// Opens the mark of a record to be written on.
    static func resume(in directory: String, _ durability: Durability) throws(StoreError) -> MarkFile {
        guard case .mark(let slot, _) = try find(in: directory) else {
            throw .damaged(path: path(directory), detail: "\(RecordDamage.markUnreadable)")
        }
        let path = path(directory)
        let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw StoreError(errorNumber: errno, path: path) }
        return MarkFile(descriptor, slot.mark.salt, durability, slot.generation)
    }

    // MARK: - Writing

    /// Notes how far the record is.
    ///
    /// - Throws: `MarkFailure`; nobody can say then what a crash would leave.
    func write(_ head: RecordHead) throws(MarkFailure) {
        generation += 1
        let boot = durability == .disk ? 0 : KernelLife.id
        let slot = Slot(generation: generation, mark: RecordMark(salt: salt, head: head), boot: boot)
        let bytes = MarkFile.bytes(slot)
        let offset = off_t(generation & 1) * off_t(MarkFile.slotSize)
        var count = pwrite(descriptor, bytes, bytes.count, offset)
        while count < 0, errno == EINTR { count = pwrite(descriptor, bytes, bytes.count, offset) }
        // A write that ends early has met the end of the room.
        guard count == bytes.count else { throw MarkFailure(errorNumber: count < 0 ? errno : ENOSPC) }
        guard durability == .process || fdatasync(descriptor) == 0 else { throw MarkFailure(errorNumber: errno) }
    }

    // MARK: - Bytes

    private static func bytes(_ slot: Slot) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(slotSize)
        for number in [magic, version, slot.generation, slot.mark.salt, slot.boot] { bytes.append(bigEndian: number) }
        bytes += slot.mark.head.bytes
        bytes.append(contentsOf: repeatElement(0, count: slotSize - 8 - bytes.count))
        bytes.append(bigEndian: Primitives.checksum(bytes.span.bytes))
        return bytes
    }

    /// - Returns: nil where that is not what was written there.
    private static func slot(_ bytes: [UInt8], at place: Int) -> Slot? {
        let span = bytes.span.bytes
        guard span.u64(at: 0) == magic, span.u64(at: 8) == version,
            span.u64(at: slotSize - 8) == Primitives.checksum(Array(bytes.dropLast(8)).span.bytes),
            let head = RecordHead(bytes: Array(bytes[40..<40 + RecordHead.byteCount]))
        else { return nil }
        let generation = span.u64(at: 16)
        guard generation & 1 == UInt64(place), generation <= NumberBounds.index else { return nil }
        return Slot(
            generation: generation, mark: RecordMark(salt: span.u64(at: 24), head: head), boot: span.u64(at: 32))
    }
}

/// The time since the kernel was started.
package enum KernelLife {
    /// Another one in each life of the kernel; never 0.
    package static let id: UInt64 = {
        let text = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
        return (UInt64(text.filter { $0.isHexDigit }.prefix(16), radix: 16) ?? 1) | 1
    }()
}

/// The mark could not be written.
struct MarkFailure: Error, CustomStringConvertible {
    var errorNumber: Int32

    var description: String { "its mark could not be written: \(String(cString: strerror(errorNumber)))" }
}

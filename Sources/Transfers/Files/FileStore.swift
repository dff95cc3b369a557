// The files of one torrent on the disk.

import Foundation
import Glibc
import PeerLogic
import Primitives
import Wire

/// A file that is open; closed when nobody uses it any more.
final class OpenFile: Sendable {
    let descriptor: CInt

    init(_ descriptor: CInt) { self.descriptor = descriptor }

    deinit { close(descriptor) }
}

/// What a call of the system has refused.
struct DiskError: Error, Hashable {
    var code: CInt
    /// What was done to what, for people.
    var subject: String

    /// As the session wants to know it.
    var problem: StoreProblem {
        switch code {
        case ENOSPC, EDQUOT: .full
        case EROFS, EACCES, EPERM: .readOnly
        default: .other(description)
        }
    }

    /// Subject and reason, for people.
    var description: String {
        switch code {
        case ELOOP: "\(subject): a symbolic link is in the way; remove it, or choose another directory"
        case ENOTDIR: "\(subject): a file is where a directory should be; move it away"
        case EISDIR: "\(subject): a directory is where a file should be; move it away"
        case ENAMETOOLONG: "\(subject): the name is longer than the file system stores"
        default: "\(subject): \(String(cString: strerror(code)))"
        }
    }
}

/// The files of one torrent on the disk, opened below one directory and never through a symbolic link.
///
/// May be used from any thread: a lock guards what is open.
final class FileStore: @unchecked Sendable {
    /// Size, and when it was written last.
    struct Stamp: Hashable {
        var size: Int64
        /// Nanoseconds since 1970.
        var modified: Int64
    }

    let layout: PieceLayout
    /// As the torrent names them, a name a component.
    let paths: [[[UInt8]]]
    private let places: [FilePlaces.Place]
    private let roots: [OpenFile]
    private let isExecutable: [Bool]
    private let preallocates: Bool
    /// Descriptors kept open.
    private let maxOpenCount: Int

    private let lock = NSLock()
    private var open: [(file: Int, writes: Bool, handle: OpenFile)] = []
    private var prepared: Set<Int> = []
    /// By file: how it was when its bytes were looked at, or written by us; nil where that is not known.
    private var remembered: [Stamp?]

    /// - Parameters:
    ///   - info: has the names.
    ///   - layout: has the lengths.
    ///   - options: has the directory, which is there already, or the sources; links in their own paths are followed,
    ///     as a person has chosen them.
    ///   - maxOpenCount: files that are kept open; at least 1.
    /// - Throws: `.usage` for names that no disk takes, `.disk` where there is no such directory.
    init(
        _ info: TorrentInfo, layout: PieceLayout, _ options: TransferOptions, maxOpenCount: Int
    ) throws(TransferError) {
        self.layout = layout
        self.maxOpenCount = max(1, maxOpenCount)
        preallocates = options.preallocates
        paths = info.files.map { file in
            (info.isSingleFile ? [] : [info.name.bytes]) + file.path.map(\.bytes)
        }
        isExecutable = info.files.map { $0.attributes.contains(.executable) }
        try Self.check(info, paths)
        let found =
            try options.sources.isEmpty
            ? FilePlaces(paths, below: options.directory) : FilePlaces(info, sources: options.sources)
        places = found.places
        roots = found.roots
        remembered = Array(repeating: nil, count: layout.files.count)
    }

    private static func check(_ info: TorrentInfo, _ paths: [[[UInt8]]]) throws(TransferError) {
        guard info.hasDistinctPaths else {
            throw TransferError(
                .usage, "two files of the torrent have the same path, so one would overwrite the other; ask its maker")
        }
        for (file, path) in zip(info.files, paths) where !file.isPadding && path.contains(where: { $0.count > 255 }) {
            throw TransferError(
                .usage, "a file of the torrent has a name of more than 255 bytes, which Linux does not store")
        }
    }

    /// A file's path for people.
    func shownPath(_ file: Int) -> String { paths[file].map { displayName($0) }.joined(separator: "/") }

    private func displayName(_ bytes: [UInt8]) -> String { shownText(bytes) }

    // MARK: - Open

    private func error(_ file: Int) -> DiskError { DiskError(code: errno, subject: shownPath(file)) }

    /// Walks to the directory of a file, component by component.
    private func parent(of file: Int, makes: Bool) throws(DiskError) -> OpenFile {
        var directory = roots[places[file].root]
        for component in places[file].path.dropLast() {
            let name = component + [0]
            var found = name.withUnsafeBufferPointer { Self.openDirectory(directory, $0) }
            if found < 0, errno == ENOENT, makes {
                let made = name.withUnsafeBufferPointer { buffer in
                    buffer.withMemoryRebound(to: CChar.self) { mkdirat(directory.descriptor, $0.baseAddress!, 0o777) }
                }
                guard made == 0 || errno == EEXIST else { throw error(file) }
                found = name.withUnsafeBufferPointer { Self.openDirectory(directory, $0) }
            }
            guard found >= 0 else { throw error(file) }
            directory = OpenFile(found)
        }
        return directory
    }

    private static func openDirectory(_ directory: OpenFile, _ name: UnsafeBufferPointer<UInt8>) -> CInt {
        name.withMemoryRebound(to: CChar.self) {
            openat(directory.descriptor, $0.baseAddress!, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        }
    }

    /// The file, open; made and given its room where it is to be written.
    func handle(_ file: Int, writes: Bool) throws(DiskError) -> OpenFile {
        lock.lock()
        defer { lock.unlock() }
        if let index = open.lastIndex(where: { $0.file == file && ($0.writes || !writes) }) {
            // The last one is the one used last; most calls are for that.
            if index != open.count - 1 { open.append(open.remove(at: index)) }
            return open[open.count - 1].handle
        }
        let directory = try parent(of: file, makes: writes)
        let flags = (writes ? O_RDWR | O_CREAT : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let mode: mode_t = isExecutable[file] ? 0o777 : 0o666
        let name = (places[file].path.last ?? []) + [0]
        let descriptor = name.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { openat(directory.descriptor, $0.baseAddress!, flags, mode) }
        }
        guard descriptor >= 0 else { throw error(file) }
        let handle = OpenFile(descriptor)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw error(file) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw DiskError(code: EISDIR, subject: "\(shownPath(file)) is no file")
        }
        if writes, !prepared.contains(file) {
            try prepare(file, handle, size: Int(status.st_size))
            prepared.insert(file)
        }
        if open.count >= maxOpenCount { open.removeFirst() }
        open.append((file, writes, handle))
        return handle
    }

    /// Gives a file its length, and its room where that is wanted and can be had.
    private func prepare(_ file: Int, _ handle: OpenFile, size: Int) throws(DiskError) {
        let length = layout.files[file].length
        guard size != length else { return }
        if preallocates, size < length {
            let code = posix_fallocate(handle.descriptor, 0, off_t(length))
            if code == ENOSPC || code == EDQUOT || code == EFBIG {
                throw DiskError(code: code, subject: shownPath(file))
            }
            if code == 0 { return }
        }
        guard ftruncate(handle.descriptor, off_t(length)) == 0 else { throw error(file) }
    }

    /// Makes the empty files among those wanted.
    func makeEmptyFiles(_ isWanted: (Int) -> Bool) throws(DiskError) {
        for file in layout.files.indices
        where layout.files[file].length == 0 && !layout.files[file].isPadding && isWanted(file) {
            _ = try handle(file, writes: true)
        }
    }

    // MARK: - Bytes

    /// A part of a file.
    struct Part {
        /// Nil for zeros that no file holds.
        var file: Int?
        var offset: Int
        var length: Int
    }

    /// The first part of so many bytes from an offset into all pieces.
    func part(at offset: Int, upTo length: Int) -> Part {
        var low = 0
        var high = layout.files.count
        // The last file that begins at or before the offset: an empty one never holds it.
        while low + 1 < high {
            let middle = (low + high) / 2
            if layout.files[middle].offset <= offset { low = middle } else { high = middle }
        }
        let span = layout.files[low]
        let inside = offset - span.offset
        return Part(
            file: span.isPadding ? nil : low, offset: inside, length: min(length, span.length - inside))
    }

    /// How the files stand that a block lies in.
    enum Standing: Equatable {
        case asTheyWere
        /// They do not reach as far, or are not there.
        case short
        /// Somebody else has written to one of them.
        case changed(file: Int)
    }

    /// Whether a block can be given: somebody may have cut its file off, or written to it.
    func standing(of block: Block) -> Standing {
        var done = 0
        while done < Int(block.length) {
            let part = part(
                at: Int(block.piece) * layout.pieceLength + Int(block.offset) + done, upTo: Int(block.length) - done)
            if let file = part.file {
                let before = lock.withLock { remembered[file] }
                guard let stamp = stamp(file), Int(stamp.size) >= part.offset + part.length else { return .short }
                if isForeign(stamp, in: file, since: before) { return .changed(file: file) }
            }
            done += part.length
        }
        return .asTheyWere
    }

    /// Tells the kernel that bytes of a piece are wanted soon.
    func readAhead(_ piece: Int, _ bytes: Range<UInt32>) {
        var done = Int(bytes.lowerBound)
        while done < Int(bytes.upperBound) {
            let part = part(at: piece * layout.pieceLength + done, upTo: Int(bytes.upperBound) - done)
            if let file = part.file, let handle = try? handle(file, writes: false) {
                // Where the file system has no use for it, nothing is lost.
                _ = posix_fadvise(handle.descriptor, off_t(part.offset), off_t(part.length), POSIX_FADV_WILLNEED)
            }
            done += part.length
        }
    }

    /// Writes a piece to the files that it touches.
    func write(piece: Int, _ buffer: PieceBuffer) throws(DiskError) {
        var done = 0
        let length = layout.length(ofPiece: piece)
        while done < length {
            let part = part(at: piece * layout.pieceLength + done, upTo: length - done)
            if let file = part.file {
                lock.withLock { remembered[file] = nil }
                let handle = try handle(file, writes: true)
                var written = 0
                while written < part.length {
                    let count = pwrite(
                        handle.descriptor, buffer.bytes.baseAddress! + done + written, part.length - written,
                        off_t(part.offset + written))
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else { throw error(file) }
                    written += count
                }
                remember(file)
            }
            done += part.length
        }
    }

    /// Reads bytes of a piece.
    ///
    /// - Returns: false where they are not all there, or cannot be read.
    func read(piece: Int, offset: Int, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
        var done = 0
        while done < bytes.count {
            let part = part(at: piece * layout.pieceLength + offset + done, upTo: bytes.count - done)
            let target = UnsafeMutableRawBufferPointer(rebasing: bytes[done..<done + part.length])
            if let file = part.file {
                guard let handle = try? handle(file, writes: false), Self.read(handle, part.offset, target) else {
                    return false
                }
            } else {
                target.initializeMemory(as: UInt8.self, repeating: 0)
            }
            done += part.length
        }
        return true
    }

    private static func read(_ handle: OpenFile, _ offset: Int, _ bytes: UnsafeMutableRawBufferPointer) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = pread(
                handle.descriptor, bytes.baseAddress! + done, bytes.count - done, off_t(offset + done))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }

    // MARK: - Stamps

    /// The pieces that a file has bytes in.
    func pieces(ofFile file: Int) -> Range<Int> {
        let span = layout.files[file]
        guard span.length > 0 else { return 0..<0 }
        return span.offset / layout.pieceLength..<(span.offset + span.length - 1) / layout.pieceLength + 1
    }

    /// The files that a piece has bytes in, without padding.
    func files(ofPiece piece: Int) -> [Int] {
        var result: [Int] = []
        var done = 0
        let length = layout.length(ofPiece: piece)
        while done < length {
            let part = part(at: piece * layout.pieceLength + done, upTo: length - done)
            if let file = part.file { result.append(file) }
            done += part.length
        }
        return result
    }

    /// Remembers how a file is: who writes to it from now on, but for us, is found out (`standing`).
    ///
    /// - Returns: whether it is there.
    @discardableResult
    func remember(_ file: Int) -> Bool {
        let stamp = stamp(file)
        lock.withLock { remembered[file] = stamp }
        return stamp != nil
    }

    /// Size and time of a file that nobody else has written to since it was remembered; nil for others.
    func trustedStamp(_ file: Int) -> Stamp? {
        let before = lock.withLock { remembered[file] }
        guard let stamp = stamp(file), !isForeign(stamp, in: file, since: before) else { return nil }
        return stamp
    }

    /// Whether a stamp is of somebody else's writing; `before` was remembered before it was read.
    private func isForeign(_ stamp: Stamp, in file: Int, since before: Stamp?) -> Bool {
        guard let before, before != stamp else { return false }
        // Something else is remembered by now where a write of our own has come between.
        return lock.withLock { remembered[file] == before }
    }

    /// Size and time of a file; nil where it is not there.
    func stamp(_ file: Int) -> Stamp? {
        guard let handle = try? handle(file, writes: false) else { return nil }
        var status = stat()
        guard fstat(handle.descriptor, &status) == 0 else { return nil }
        return Stamp(
            size: Int64(status.st_size),
            modified: Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec))
    }

    /// Waits until a file's bytes are on the disk; false where nobody can say.
    func flush(_ file: Int) -> Bool {
        guard let handle = try? handle(file, writes: false) else { return false }
        return fdatasync(handle.descriptor) == 0
    }

    /// Takes the torrent's own files away, and the directories that are empty then.
    func deleteAll() {
        lock.lock()
        open.removeAll()
        prepared.removeAll()
        lock.unlock()
        for file in places.indices where !layout.files[file].isPadding {
            guard let directory = try? parent(of: file, makes: false) else { continue }
            Self.unlink(places[file].path.last ?? [], in: directory, flags: 0)
        }
        // The deepest directories first.
        let directories = Set(
            places.flatMap { place in
                (1..<max(1, place.path.count)).map {
                    FilePlaces.Place(root: place.root, path: Array(place.path.prefix($0)))
                }
            })
        for place in directories.sorted(by: { $0.path.count > $1.path.count }) {
            guard let directory = parent(of: place) else { continue }
            Self.unlink(place.path.last ?? [], in: directory, flags: AT_REMOVEDIR)
        }
    }

    private func parent(of place: FilePlaces.Place) -> OpenFile? {
        var directory = roots[place.root]
        for component in place.path.dropLast() {
            let found = (component + [0]).withUnsafeBufferPointer { Self.openDirectory(directory, $0) }
            guard found >= 0 else { return nil }
            directory = OpenFile(found)
        }
        return directory
    }

    private static func unlink(_ name: [UInt8], in directory: OpenFile, flags: CInt) {
        (name + [0]).withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { _ = unlinkat(directory.descriptor, $0.baseAddress!, flags) }
        }
    }
}

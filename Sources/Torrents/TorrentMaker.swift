// Makes a .torrent file of real files.

import Crypto
import Foundation
import Glibc
import Primitives
import Wire

/// Makes a .torrent file of real files: walks a directory, hashes the pieces as it reads, and builds the metainfo (v1).
///
/// Names are bytes, as Linux has them. Symbolic links and special files inside a directory are left out and named in
/// `skipped`.
public struct TorrentMaker: Sendable {
    /// A file, or a directory with all that is in it.
    public var path: String
    /// The torrent's name; nil for that of the file or directory.
    public var name: String?
    /// Bytes, a power of two of at least 16 KiB; nil to choose by size.
    public var pieceLength: Int?
    /// URLs, all in one tier (BEP 12): trackers that act as one.
    public var trackers: [String] = []
    /// For people; nil for none.
    public var comment: String?
    /// BEP 27: only the trackers named may be asked for peers.
    public var isPrivate = false
    /// The program that makes the file; nil to leave it out.
    public var createdBy: String?
    /// Written in whole seconds; nil to leave it out.
    public var creationDate: WallTime?

    /// A torrent of this file or directory, with defaults for all else.
    public init(path: String) { self.path = path }

    /// How far the hashing is.
    public struct Progress: Sendable, Hashable {
        /// Bytes hashed so far.
        public var done: Int
        /// Bytes in all.
        public var total: Int
    }

    /// The torrent, and what is not in it.
    public struct Result: Sendable {
        /// Its `bytes` are the file to write.
        public var metainfo: Metainfo
        /// Symbolic links and special files that were left out.
        public var skipped: [String]
    }

    /// Reads and hashes everything on the calling thread.
    ///
    /// - Parameter progress: told about every 256 KiB.
    /// - Returns: the torrent, decoded again as a client would.
    /// - Throws: `TorrentMakerError`, which names the file.
    /// - Complexity: O(bytes), 256 KiB of memory and what the metainfo takes.
    public func make(progress: (Progress) -> Void = { _ in }) throws(TorrentMakerError) -> Result {
        if let pieceLength {
            guard pieceLength.nonzeroBitCount == 1, (16_384...TorrentInfo.maxPieceLength).contains(pieceLength) else {
                throw .invalid("a piece has a power of two of bytes, from 16 KiB to 512 MiB")
            }
        }
        let tree = try FileWalk(path)
        let total = tree.files.reduce(0) { $0 + $1.byteCount }
        guard total > 0 else { throw .invalid("\(path) has no file with a byte in it; there is nothing to share") }
        guard total <= TorrentInfo.maxTotalLength else { throw .invalid("\(path) is larger than any torrent") }
        let pieceLength = pieceLength ?? MetainfoBuilder.pieceLength(for: total)
        var hasher = PieceHasher(pieceLength: pieceLength)
        var done = 0
        for file in tree.files {
            try hasher.add(file) { count in
                done += count
                progress(Progress(done: done, total: total))
            }
        }
        let content: MetainfoBuilder.Content =
            tree.isSingleFile
            ? .file(length: total)
            : .directory(
                tree.files.map { file in
                    .init(path: file.components, length: file.byteCount, isExecutable: file.isExecutable)
                })
        var builder = MetainfoBuilder(
            name: try component(tree.name), pieceLength: pieceLength, content: content, pieceHashes: hasher.finish())
        builder.trackers = trackers.isEmpty ? [] : [trackers]
        builder.comment = comment
        builder.isPrivate = isPrivate
        builder.createdBy = createdBy
        builder.creationDate = creationDate
        do {
            return Result(metainfo: try builder.build(), skipped: tree.skipped)
        } catch {
            throw .invalid("\(path) makes no torrent: \(error)")
        }
    }

    private func component(_ bytes: [UInt8]) throws(TorrentMakerError) -> PathComponent {
        do {
            return try PathComponent(name.map { Array($0.utf8) } ?? bytes)
        } catch {
            throw .invalid("the torrent would have \(error); give it another with --name")
        }
    }
}

/// Why no torrent could be made.
public enum TorrentMakerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What was asked for makes no torrent.
    case invalid(String)
    /// A file cannot be read, or was changed meanwhile.
    case unreadable(String, reason: String)

    /// A sentence that names the file and the cause.
    public var description: String {
        switch self {
        case .invalid(let text): text
        case .unreadable(let path, let reason): "\(path) cannot be read: \(reason)"
        }
    }
}

/// SHA-1 over pieces that take no notice of where files end.
private struct PieceHasher {
    let pieceLength: Int
    private var hashes: [UInt8] = []
    private var hash = Insecure.SHA1()
    /// Bytes of the piece that is begun.
    private var filled = 0

    private static let chunkByteCount = 1 << 18

    init(pieceLength: Int) { self.pieceLength = pieceLength }

    mutating func add(_ file: FileWalk.File, progress: (Int) -> Void) throws(TorrentMakerError) {
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw file.unreadable(errno) }
        defer { close(descriptor) }
        var chunk = [UInt8](repeating: 0, count: Self.chunkByteCount)
        var left = file.byteCount
        while true {
            let count = chunk.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw file.unreadable(errno) }
            guard count > 0 else { break }
            left -= count
            guard left >= 0 else { break }
            chunk.withUnsafeBytes { update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            progress(count)
        }
        guard left == 0 else {
            throw .unreadable(file.shownPath, reason: "its size changed meanwhile; wait until nobody writes to it")
        }
    }

    private mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = rest.prefix(pieceLength - filled)
            hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: part))
            filled += part.count
            rest = rest.dropFirst(part.count)
            if filled == pieceLength { finishPiece() }
        }
    }

    private mutating func finishPiece() {
        hashes.append(contentsOf: hash.finalize())
        hash = Insecure.SHA1()
        filled = 0
    }

    mutating func finish() -> [UInt8] {
        if filled > 0 { finishPiece() }
        return hashes
    }
}

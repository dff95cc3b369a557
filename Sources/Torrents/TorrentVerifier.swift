// Which pieces of a torrent are on a disk, and right.

import Foundation
import Glibc
import Primitives
import Wire

/// Compares files with the hashes of a torrent's pieces (v1 and hybrid), on all cores.
///
/// Nothing is written.
public struct TorrentVerifier: Sendable {
    /// What is to be there.
    public let info: TorrentInfo
    /// The file of a torrent of one; the directory in which the files are otherwise.
    public let root: String

    /// Finds where the data is.
    ///
    /// - Parameters:
    ///   - info: of the torrent.
    ///   - path: the file or directory itself, or the directory in which one of the torrent's name is.
    public init(info: TorrentInfo, path: String) {
        self.info = info
        let base = path.utf8.map { CChar(bitPattern: $0) } + [0]
        let below = Self.joined(base, [info.name])
        root = path
        isBelow = info.isSingleFile ? Self.isDirectory(base) : Self.isDirectory(below)
    }

    /// Whether the data is at the torrent's name below `root`.
    private let isBelow: Bool

    /// How a file fares.
    public enum FileState: Sendable, Hashable {
        /// All of its pieces are right.
        case right
        /// It is not there.
        case missing
        /// It cannot be read; the system's reason.
        case unreadable(String)
        /// It has so many bytes instead of its length.
        case size(Int)
        /// As long as it should be, but a piece that it shares in is wrong.
        case wrong
    }

    /// A file, and what was found.
    public struct File: Sendable, Hashable {
        /// Its place in `TorrentInfo.files`.
        public var index: Int
        /// What is wrong with it.
        public var state: FileState
        /// Pieces that it has a byte in.
        public var pieceCount: Int
        /// Those of them that are wrong; a neighbour's bytes may be to blame.
        public var wrongPieceCount: Int
    }

    /// What was found.
    public struct Result: Sendable, Hashable {
        /// Indexes of pieces that are not there or wrong, ascending.
        public var wrongPieces: [Int]
        /// All files but padding, in the torrent's order.
        public var files: [File]
        /// Whether everything is there, and right.
        public var isRight: Bool { wrongPieces.isEmpty && files.allSatisfy { $0.state == .right } }
    }

    /// Reads and hashes everything.
    ///
    /// - Parameters:
    ///   - threadCount: threads that read and hash; as many as there are cores unless told.
    ///   - progress: told ten times a second, and at the end, on the calling thread.
    /// - Returns: nil for a torrent that is v2 only: its pieces have no SHA-1.
    /// - Complexity: O(bytes), 256 KiB of memory for each thread and 40 bytes for each piece.
    public func verify(
        threadCount: Int = ProcessInfo.processInfo.activeProcessorCount,
        progress: (TorrentMaker.Progress) -> Void = { _ in }
    ) -> Result? {
        guard let expected = info.pieceHashes else { return nil }
        let stretches = info.files.map { file in
            PieceHashing.Stretch(
                path: file.isPadding ? nil : path(of: file), byteCount: file.length, offset: file.offset)
        }
        let total = info.pieceSpaceLength
        let outcome = PieceHashing(stretches, pieceLength: info.pieceLength, stopsAtTrouble: false)
            .run(threadCount: threadCount) { progress(TorrentMaker.Progress(done: $0, total: total)) }
        let size = Bytes20.byteCount
        let wrong = (0..<info.pieceCount).filter { piece in
            expected[piece: piece] != Bytes20(outcome.hashes[piece * size..<(piece + 1) * size])
        }
        return Result(wrongPieces: wrong, files: files(outcome.troubles, wrong))
    }

    private func files(_ troubles: [PieceHashing.Trouble?], _ wrong: [Int]) -> [File] {
        var files: [File] = []
        for (index, file) in info.files.enumerated() where !file.isPadding && !file.attributes.contains(.symbolicLink) {
            guard file.length > 0 else {
                // No piece tells of an empty file; it is to be there all the same.
                let state = Self.emptyState(path(of: file))
                files.append(File(index: index, state: state, pieceCount: 0, wrongPieceCount: 0))
                continue
            }
            let pieces = file.offset / info.pieceLength...(file.offset + file.length - 1) / info.pieceLength
            let wrongCount =
                Self.firstIndex(in: wrong, atLeast: pieces.upperBound + 1)
                - Self.firstIndex(in: wrong, atLeast: pieces.lowerBound)
            let state: FileState =
                switch troubles[index] {
                case .unreadable(ENOENT), .unreadable(ENOTDIR): .missing
                case .unreadable(let code): .unreadable(String(cString: strerror(code)))
                case .size(let size): .size(size)
                case nil: wrongCount == 0 ? .right : .wrong
                }
            files.append(File(index: index, state: state, pieceCount: pieces.count, wrongPieceCount: wrongCount))
        }
        return files
    }

    private static func emptyState(_ path: [CChar]) -> FileState {
        var status = stat()
        guard stat(path, &status) == 0 else {
            return errno == ENOENT || errno == ENOTDIR ? .missing : .unreadable(String(cString: strerror(errno)))
        }
        return status.st_size == 0 || status.st_mode & S_IFMT != S_IFREG ? .right : .size(Int(status.st_size))
    }

    /// - Returns: how many of some ascending numbers are below another.
    private static func firstIndex(in numbers: [Int], atLeast number: Int) -> Int {
        var (low, high) = (0, numbers.count)
        while low < high {
            let middle = (low + high) / 2
            if numbers[middle] < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func path(of file: TorrentFile) -> [CChar] {
        let base = root.utf8.map { CChar(bitPattern: $0) } + [0]
        if info.isSingleFile { return isBelow ? Self.joined(base, [info.name]) : base }
        return Self.joined(base, isBelow ? [info.name] + file.path : file.path)
    }

    private static func joined(_ base: [CChar], _ components: [PathComponent]) -> [CChar] {
        var path = Array(base.dropLast())
        for component in components {
            path.append(CChar(UInt8(ascii: "/")))
            path += component.bytes.map { CChar(bitPattern: $0) }
        }
        return path + [0]
    }

    private static func isDirectory(_ path: [CChar]) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}

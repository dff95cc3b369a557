// Makes a .torrent file of real files.

import Foundation
import Glibc
import Primitives
import Wire

/// Makes a .torrent file of real files: walks a directory, hashes the pieces as it reads, and builds the metainfo (v1
/// or hybrid).
///
/// Names are bytes, as Linux has them. Symbolic links and special files inside a directory are left out and named in
/// `skipped`.
public struct TorrentMaker: Sendable {
    /// A file, or a directory with all that is in it; several become entries of one directory, named as they are.
    public var paths: [String]
    /// The torrent's name; nil for that of the file or directory.
    ///
    /// Several paths need one.
    public var name: String?
    /// Bytes, a power of two of at least 16 KiB; nil to choose by size.
    public var pieceLength: Int?
    /// URLs, all in one tier (BEP 12): trackers that act as one.
    public var trackers: [String] = []
    /// Tiers that are asked where no tracker of the first answers.
    public var furtherTiers: [[String]] = []
    /// URLs of mirrors (BEP 19).
    public var webSeeds: [String] = []
    /// For people; nil for none.
    public var comment: String?
    /// Version 2 as well (BEP 52): each file begins a piece, behind padding (BEP 47).
    public var isHybrid = false
    /// BEP 27: only the trackers named may be asked for peers.
    public var isPrivate = false
    /// The program that makes the file; nil to leave it out.
    public var createdBy: String?
    /// Written in whole seconds; nil to leave it out.
    public var creationDate: WallTime?

    /// A torrent of this file or directory, with defaults for all else.
    public init(path: String) { paths = [path] }

    /// A torrent of a directory in which these files and directories are; it needs a name.
    public init(paths: [String]) { self.paths = paths }

    /// What messages call it.
    private var place: String { paths.joined(separator: ", ") }

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

    /// Reads and hashes everything.
    ///
    /// - Parameters:
    ///   - threadCount: threads that read and hash; as many as there are cores unless told.
    ///   - progress: told ten times a second, and at the end, on the calling thread.
    ///   - goesOn: asked just as often, on the calling thread; false ends it with `.cancelled`.
    /// - Returns: the torrent, decoded again as a client would.
    /// - Throws: `TorrentMakerError`, which names the file.
    /// - Complexity: O(bytes), 256 KiB of memory for each thread and what the metainfo takes.
    public func make(
        threadCount: Int = ProcessInfo.processInfo.activeProcessorCount, progress: (Progress) -> Void = { _ in },
        goesOn: () -> Bool = { true }
    ) throws(TorrentMakerError) -> Result {
        if let pieceLength {
            guard pieceLength.nonzeroBitCount == 1, (16_384...TorrentInfo.maxPieceLength).contains(pieceLength) else {
                throw .invalid("a piece has a power of two of bytes, from 16 KiB to 512 MiB")
            }
        }
        let tree = try FileWalk(paths)
        let total = tree.files.reduce(0) { $0 + $1.byteCount }
        guard total > 0 else { throw .invalid("\(place) has no file with a byte in it; there is nothing to share") }
        guard total <= TorrentInfo.maxTotalLength else { throw .invalid("\(place) is larger than any torrent") }
        let name = try component(tree.name)
        let pieceLength = pieceLength ?? MetainfoBuilder.pieceLength(for: total)
        let plan = HashingPlan(tree.files, alignedTo: isHybrid ? pieceLength : nil)
        let outcome = try hash(tree.files, plan, pieceLength: pieceLength, threadCount: threadCount) { done in
            progress(Progress(done: done, total: plan.byteCount))
            return goesOn()
        }
        let content: MetainfoBuilder.Content = tree.isSingleFile ? .file(length: total) : .directory(plan.entries)
        var builder = MetainfoBuilder(
            name: name, pieceLength: pieceLength, content: content, pieceHashes: outcome.hashes)
        if isHybrid { builder.trees = plan.trees(outcome.roots, pieceLength: pieceLength) }
        builder.trackers = (trackers.isEmpty ? [] : [trackers]) + furtherTiers
        builder.urlList = webSeeds
        builder.comment = comment
        builder.isPrivate = isPrivate
        builder.createdBy = createdBy
        builder.creationDate = creationDate
        do {
            return Result(metainfo: try builder.build(), skipped: tree.skipped)
        } catch {
            throw .invalid("\(place) makes no torrent: \(error)")
        }
    }

    private func hash(
        _ files: [FileWalk.File], _ plan: HashingPlan, pieceLength: Int, threadCount: Int, progress: (Int) -> Bool
    ) throws(TorrentMakerError) -> PieceHashing.Outcome {
        let hashing = PieceHashing(
            plan.stretches, pieceLength: pieceLength, stopsAtTrouble: true, makesTrees: isHybrid)
        var isCancelled = false
        let outcome = hashing.run(threadCount: threadCount) { done in
            if !progress(done) {
                isCancelled = true
                hashing.cancel()
            }
        }
        guard !isCancelled else { throw .cancelled }
        for (file, stretch) in zip(files, plan.stretchOfFile) {
            switch outcome.troubles[stretch] {
            case .unreadable(let code): throw file.unreadable(code)
            case .size:
                throw .unreadable(file.shownPath, reason: "its size changed meanwhile; wait until nobody writes to it")
            case nil: continue
            }
        }
        return outcome
    }

    private func component(_ bytes: [UInt8]) throws(TorrentMakerError) -> PathComponent {
        guard name != nil || paths.count == 1 else {
            throw .invalid("several files and directories need a directory to be in; name it with --name")
        }
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
    /// Whoever wanted it does not want it any more.
    case cancelled

    /// A sentence that names the file and the cause.
    public var description: String {
        switch self {
        case .invalid(let text): text
        case .unreadable(let path, let reason): "\(path) cannot be read: \(reason)"
        case .cancelled: "it was cancelled"
        }
    }
}

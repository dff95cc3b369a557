// SHA-1 over the pieces of files, on all cores.

import Crypto
import Dispatch
import Foundation
import Glibc
import Primitives
import Synchronization
import Wire

/// SHA-1 over pieces that take no notice of where files end, by several threads that each take a run of pieces.
///
/// What cannot be read makes the pieces that it belongs to wrong, and is kept as the file's trouble; the others are
/// hashed none the less.
struct PieceHashing: Sendable {
    /// A file, or zeros that no file holds.
    struct Stretch: Sendable {
        /// With the terminating zero; nil for zeros (BEP 47).
        var path: [CChar]?
        var byteCount: Int
        /// From the start of the first piece.
        var offset: Int
    }

    /// Why a file's bytes are not those that were expected.
    enum Trouble: Sendable, Equatable {
        /// `errno`.
        case unreadable(CInt)
        /// It has another size.
        case size(Int)
    }

    /// What came of it.
    struct Outcome: Sendable {
        /// 20 bytes a piece; zeros for a piece that could not be read whole.
        var hashes: [UInt8]
        /// 32 bytes a piece, where trees are wanted: the root over the leaves of the piece (BEP 52).
        var roots: [UInt8]
        /// Of each stretch.
        var troubles: [Trouble?]
    }

    private let stretches: [Stretch]
    private let pieceLength: Int
    private let byteCount: Int
    private let stopsAtTrouble: Bool
    private let makesTrees: Bool
    private let state: State

    /// Bytes that are read at once.
    private static let chunkByteCount = 1 << 18
    /// Bytes of a thread's run of pieces, unless one piece is longer.
    private static let runByteCount = 1 << 20

    /// Takes stretches that lie one behind another, without gaps; the first trouble may end it all.
    ///
    /// For trees each file begins a piece.
    init(_ stretches: [Stretch], pieceLength: Int, stopsAtTrouble: Bool, makesTrees: Bool = false) {
        self.makesTrees = makesTrees
        self.stretches = stretches
        self.pieceLength = pieceLength
        self.stopsAtTrouble = stopsAtTrouble
        byteCount = stretches.last.map { $0.offset + $0.byteCount } ?? 0
        let pieceCount = (byteCount + pieceLength - 1) / pieceLength
        state = State(pieceCount: pieceCount, stretchCount: stretches.count, makesTrees: makesTrees)
    }

    /// What the threads share.
    private final class State: Sendable {
        let nextPiece = Atomic<Int>(0)
        let doneByteCount = Atomic<Int>(0)
        let isStopped = Atomic<Bool>(false)
        let outcome: Mutex<Outcome>
        let ended = DispatchSemaphore(value: 0)
        let pieceCount: Int

        init(pieceCount: Int, stretchCount: Int, makesTrees: Bool) {
            self.pieceCount = pieceCount
            outcome = Mutex(
                Outcome(
                    hashes: Array(repeating: 0, count: pieceCount * Bytes20.byteCount),
                    roots: Array(repeating: 0, count: makesTrees ? pieceCount * Bytes32.byteCount : 0),
                    troubles: Array(repeating: nil, count: stretchCount)))
        }
    }

    /// Hashes everything.
    ///
    /// - Parameters:
    ///   - threadCount: at least 1.
    ///   - progress: told ten times a second, and at the end, on the calling thread, how many bytes are done.
    /// - Returns: the hashes, and what was in the way of others.
    func run(threadCount: Int, progress: (Int) -> Void) -> Outcome {
        let runPieceCount = max(1, Self.runByteCount / pieceLength)
        let runCount = (state.pieceCount + runPieceCount - 1) / runPieceCount
        let threadCount = max(1, min(threadCount, runCount))
        for _ in 0..<threadCount {
            Thread.detachNewThread {
                var worker = Worker(self)
                while !state.isStopped.load(ordering: .relaxed) {
                    let (first, _) = state.nextPiece.add(runPieceCount, ordering: .relaxed)
                    guard first < state.pieceCount else { break }
                    worker.hash(first..<min(first + runPieceCount, state.pieceCount))
                }
                worker.closeFile()
                state.ended.signal()
            }
        }
        var running = threadCount
        while running > 0 {
            if state.ended.wait(timeout: .now() + .milliseconds(100)) == .success { running -= 1 }
            if running > 0 { progress(state.doneByteCount.load(ordering: .relaxed)) }
        }
        progress(state.doneByteCount.load(ordering: .relaxed))
        return state.outcome.withLock { $0 }
    }

    /// Has the threads end soon; what they have not hashed is zero.
    func cancel() { state.isStopped.store(true, ordering: .relaxed) }

    /// The last stretch that begins at or before a byte, and holds it.
    fileprivate func stretch(at offset: Int) -> Int {
        var (low, high) = (0, stretches.count)
        while low < high {
            let middle = (low + high) / 2
            let end = stretches[middle].offset + stretches[middle].byteCount
            if end > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

extension PieceHashing {
    /// One thread's work.
    private struct Worker {
        let job: PieceHashing
        private var chunk = [UInt8](repeating: 0, count: PieceHashing.chunkByteCount)
        private var file: (index: Int, descriptor: CInt)?
        private var hash = Insecure.SHA1()
        /// Bytes of the piece that is begun.
        private var filled = 0
        private var isWhole = true
        private var hashes: [UInt8] = []
        private var tree = PieceTree()
        private var roots: [UInt8] = []

        init(_ job: PieceHashing) { self.job = job }

        mutating func hash(_ pieces: Range<Int>) {
            var offset = pieces.lowerBound * job.pieceLength
            let end = min(pieces.upperBound * job.pieceLength, job.byteCount)
            (filled, isWhole, hash, tree) = (0, true, Insecure.SHA1(), PieceTree())
            hashes.removeAll(keepingCapacity: true)
            roots.removeAll(keepingCapacity: true)
            var index = job.stretch(at: offset)
            while offset < end, !job.state.isStopped.load(ordering: .relaxed) {
                let stretch = job.stretches[index]
                let stop = min(end, stretch.offset + stretch.byteCount)
                let isHeld = stretch.path != nil
                if isHeld, offset < stop { tree.isLong = stretch.byteCount > job.pieceLength }
                while offset < stop {
                    let count = min(stop - offset, chunk.count)
                    let read = read(index, at: offset - stretch.offset, count: count)
                    guard read > 0 else {
                        skip(stop - offset)
                        job.state.doneByteCount.add(stop - offset, ordering: .relaxed)
                        offset = stop
                        break
                    }
                    update(read, isHeld: isHeld)
                    offset += read
                    job.state.doneByteCount.add(read, ordering: .relaxed)
                }
                if offset == stretch.offset + stretch.byteCount {
                    checkEnd(of: index)
                    index += 1
                }
            }
            if filled > 0 { finishPiece() }
            let start = pieces.lowerBound * Bytes20.byteCount
            let rootStart = pieces.lowerBound * Bytes32.byteCount
            job.state.outcome.withLock { outcome in
                outcome.hashes.replaceSubrange(start..<start + hashes.count, with: hashes)
                if job.makesTrees { outcome.roots.replaceSubrange(rootStart..<rootStart + roots.count, with: roots) }
            }
        }

        /// - Returns: how many bytes are in the chunk now; 0 where there are none to be had.
        private mutating func read(_ index: Int, at position: Int, count: Int) -> Int {
            guard job.stretches[index].path != nil else {
                chunk.withUnsafeMutableBytes { bytes in
                    for index in 0..<count { bytes[index] = 0 }
                }
                return count
            }
            guard let descriptor = open(index) else { return 0 }
            while true {
                let read = chunk.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, count, off_t(position)) }
                if read < 0, errno == EINTR { continue }
                if read < 0 { fail(index, .unreadable(errno)) }
                if read == 0 { fail(index, .size(position)) }
                return max(0, read)
            }
        }

        private mutating func open(_ index: Int) -> CInt? {
            if let file, file.index == index { return file.descriptor }
            closeFile()
            guard let path = job.stretches[index].path else { return nil }
            // A pipe in a file's place must not keep anybody waiting.
            let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard descriptor >= 0 else {
                fail(index, .unreadable(errno))
                return nil
            }
            var status = stat()
            guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
                fail(index, .unreadable(status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL))
                close(descriptor)
                return nil
            }
            posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
            file = (index, descriptor)
            checkSize(status, of: index)
            return descriptor
        }

        /// Whoever reads a file's last byte looks whether it is still as long as it was.
        private mutating func checkEnd(of index: Int) {
            guard let file, file.index == index else { return }
            var status = stat()
            if fstat(file.descriptor, &status) == 0 { checkSize(status, of: index) }
        }

        private mutating func checkSize(_ status: stat, of index: Int) {
            guard Int(status.st_size) != job.stretches[index].byteCount else { return }
            fail(index, .size(Int(status.st_size)))
        }

        private func fail(_ index: Int, _ trouble: Trouble) {
            job.state.outcome.withLock { outcome in
                if outcome.troubles[index] == nil { outcome.troubles[index] = trouble }
            }
            if job.stopsAtTrouble { job.state.isStopped.store(true, ordering: .relaxed) }
        }

        mutating func closeFile() {
            if let file { close(file.descriptor) }
            file = nil
        }

        private mutating func update(_ count: Int, isHeld: Bool) {
            var start = 0
            while start < count {
                let part = min(job.pieceLength - filled, count - start)
                chunk.withUnsafeBytes { bytes in
                    let part = UnsafeRawBufferPointer(rebasing: bytes[start..<start + part])
                    hash.update(bufferPointer: part)
                    if job.makesTrees, isHeld { tree.update(part) }
                }
                start += part
                filled += part
                if filled == job.pieceLength { finishPiece() }
            }
        }

        /// Goes on behind bytes that are not there.
        private mutating func skip(_ count: Int) {
            var left = count
            while left > 0 {
                let part = min(job.pieceLength - filled, left)
                isWhole = false
                left -= part
                filled += part
                if filled == job.pieceLength { finishPiece() }
            }
        }

        private mutating func finishPiece() {
            if isWhole {
                hashes.append(contentsOf: hash.finalize())
            } else {
                hashes.append(contentsOf: repeatElement(0, count: Bytes20.byteCount))
            }
            if job.makesTrees { roots += tree.finish(pieceLength: job.pieceLength) }
            (hash, filled, isWhole) = (Insecure.SHA1(), 0, true)
        }
    }

    /// The leaves of a piece that is begun (BEP 52).
    private struct PieceTree {
        /// Whether the file has more pieces, so that its tree has a layer of them.
        var isLong = false
        private var leaves: [UInt8] = []
        private var leaf = SHA256()
        /// Bytes of the leaf that is begun.
        private var filled = 0

        mutating func update(_ bytes: UnsafeRawBufferPointer) {
            var rest = bytes[...]
            while !rest.isEmpty {
                let part = rest.prefix(MerkleTree.leafByteCount - filled)
                leaf.update(bufferPointer: UnsafeRawBufferPointer(rebasing: part))
                filled += part.count
                rest = rest.dropFirst(part.count)
                if filled == MerkleTree.leafByteCount { finishLeaf() }
            }
        }

        private mutating func finishLeaf() {
            leaves.append(contentsOf: leaf.finalize())
            (leaf, filled) = (SHA256(), 0)
        }

        /// The root over the piece: a short file's tree is no wider than it has to be.
        mutating func finish(pieceLength: Int) -> [UInt8] {
            if filled > 0 { finishLeaf() }
            defer { leaves.removeAll(keepingCapacity: true) }
            // A piece that could not be read has none.
            guard !leaves.isEmpty else { return Array(repeating: 0, count: Bytes32.byteCount) }
            var width = 1
            while width < leaves.count / Bytes32.byteCount { width *= 2 }
            return MerkleTree.root(
                ofPiece: leaves, width: isLong ? pieceLength / MerkleTree.leafByteCount : width)
        }
    }
}

// Pieces on the disk, hashed by all cores.

import PeerLogic
import Primitives
import Synchronization
import Wire

/// Pieces on the disk, hashed by all cores; it ends by telling which are right, or that it was cancelled.
final class CheckRun: Sendable {
    private struct Progress {
        var right: Bitfield
        var next = 0
        var done = 0
        var workers: Int
    }

    /// Bytes after which a thread lets other work have its turn.
    private static let turnByteCount = 32 << 20
    private static let readByteCount = 1 << 20

    private let info: TorrentInfo
    private let store: FileStore
    private let pieces: [Int]
    private let progress: Mutex<Progress>
    private let isCancelled = Atomic(false)
    private let ended: @Sendable (Bitfield?) -> Void

    /// - Parameters:
    ///   - pieces: those to be hashed.
    ///   - known: those that are right for other reasons, and are told of with the others.
    ///   - ended: called once, on some thread; with nil after `cancel`.
    init(
        _ info: TorrentInfo, _ store: FileStore, pieces: [Int], known: Bitfield, workers: Int,
        ended: @escaping @Sendable (Bitfield?) -> Void
    ) {
        self.info = info
        self.store = store
        self.pieces = pieces
        self.ended = ended
        progress = Mutex(Progress(right: known, workers: workers))
    }

    func start(on queue: WorkQueue) {
        let count = progress.withLock { $0.workers }
        for _ in 0..<count { queue.add { [self] in turn(queue) } }
    }

    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// Of a thousand.
    var permille: Int { pieces.isEmpty ? 1_000 : progress.withLock { $0.done } * 1_000 / pieces.count }

    private func turn(_ queue: WorkQueue) {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.readByteCount, alignment: 4_096)
        defer { room.deallocate() }
        var byteCount = 0
        while byteCount < Self.turnByteCount, !isCancelled.load(ordering: .relaxed) {
            let taken = progress.withLock { progress -> Int? in
                guard progress.next < pieces.count else { return nil }
                defer { progress.next += 1 }
                return pieces[progress.next]
            }
            guard let piece = taken else { return endOne() }
            let digest = PieceHash.digest(ofPiece: piece, in: store, room: room)
            let isRight = digest != nil && digest == info.pieceHashes?[piece: piece]
            progress.withLock { progress in
                progress.done += 1
                if isRight { progress.right.insert(piece) }
            }
            byteCount += store.layout.length(ofPiece: piece)
        }
        guard !isCancelled.load(ordering: .relaxed) else { return endOne() }
        queue.add { [self] in turn(queue) }
    }

    private func endOne() {
        let result = progress.withLock { progress -> Bitfield? in
            progress.workers -= 1
            return progress.workers == 0 ? progress.right : nil
        }
        if let result { ended(isCancelled.load(ordering: .relaxed) ? nil : result) }
    }
}

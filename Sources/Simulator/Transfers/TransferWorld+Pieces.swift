// Pieces in memory and on disks, metadata, and web seeds.

import PeerLogic
import Primitives
import Wire

/// Over which connection blocks of a piece came; from 1,000 on, web seeds.
struct PieceSender: Sendable, Equatable {
    var peer: Int
    var end: Int
    var epoch: UInt32
    static let firstWebSeed = 1_000
}

extension TransferWorld {
    private static let hashTime = Duration.milliseconds(1)

    mutating func verify(_ peer: Int, _ piece: Int, _ wantsDigests: Bool) {
        let place = Int(peers[peer].bufferOf[piece])
        let blockCount = layout.blockCount(ofPiece: piece)
        let all: UInt64 = blockCount == 64 ? .max : 1 << UInt64(blockCount) - 1
        guard place >= 0, peers[peer].buffers[place].here == all, !peers[peer].buffers[place].isVerifying else {
            return checks.breaks(peer, "verifies piece \(piece), which is not whole", at: now)
        }
        checks.pieceIsWhole(peer, piece)
        peers[peer].buffers[place].isVerifying = true
        peers[peer].buffers[place].wantsDigests = wantsDigests
        queue.put(.hashed(peer, life: peers[peer].life, piece: piece), at: now + TransferWorld.hashTime)
    }

    private func digests(_ buffer: PieceBuffer) -> [UInt64] {
        (0..<layout.blockCount(ofPiece: buffer.piece)).map { block in
            let salt = buffer.corrupt.first { $0.block == block }?.salt ?? 0
            return SimulatedPeer.digest(buffer.piece, block, salt: salt)
        }
    }

    /// Whether the connection stands over which a block came.
    private func isOpen(_ sender: PieceSender) -> Bool {
        sender.peer < PieceSender.firstWebSeed && table.epoch(of: sender.end) == sender.epoch
            && table.ends[sender.end].phase == .open
    }

    mutating func hashed(_ peer: Int, _ piece: Int) {
        let place = Int(peers[peer].bufferOf[piece])
        guard place >= 0, peers[peer].buffers[place].isVerifying else { return }
        peers[peer].buffers[place].isVerifying = false
        let buffer = peers[peer].buffers[place]
        guard !buffer.corrupt.isEmpty else {
            peers[peer].buffers[place].isVerified = true
            for culprit in checks.pieceVerified(peer, piece) where isOpen(culprit) {
                checks.isFound(peer, culprit: culprit.peer)
            }
            return step(peer, .pieceVerified(piece: piece, digests: buffer.wantsDigests ? digests(buffer) : []))
        }
        // Who has hung up meanwhile may be forgotten.
        let areOpen = buffer.senders.allSatisfy { $0.peer >= PieceSender.firstWebSeed || isOpen($0) }
        let corrupt = buffer.senders.count > 1 ? buffer.corrupt.map { $0.sender } : []
        checks.pieceFailed(peer, piece, senders: areOpen ? buffer.senders.map { $0.peer } : [], corrupt: corrupt)
        for sender in buffer.senders where sender.peer >= PieceSender.firstWebSeed {
            checks.webLied(peer, sender.peer - PieceSender.firstWebSeed)
        }
        let digests = digests(buffer)
        peers[peer].buffers[place].restart()
        step(peer, .pieceFailed(piece: piece, digests: digests))
    }

    // MARK: - The disk

    mutating func store(_ peer: Int, _ piece: Int) {
        let place = Int(peers[peer].bufferOf[piece])
        guard place >= 0 else { return checks.breaks(peer, "writes piece \(piece), which is not in memory", at: now) }
        let isRight = peers[peer].buffers[place].isVerified && peers[peer].buffers[place].corrupt.isEmpty
        if !isRight { return checks.pieceStored(peer, piece, isRight: false, at: now) }
        checks.stores(peer, piece, at: now)
        peers[peer].buffers[place].isStoring = true
        queue.put(.written(peer, life: peers[peer].life, piece: piece), at: now + peers[peer].writeTime)
    }

    mutating func written(_ peer: Int, _ piece: Int) {
        let place = Int(peers[peer].bufferOf[piece])
        guard place >= 0, peers[peer].buffers[place].isStoring else { return }
        peers[peer].buffers[place].isStoring = false
        if let problem = peers[peer].diskProblem {
            tally.failedWrites += 1
            return step(peer, .storeFailed(piece: piece, problem))
        }
        peers[peer].disk.insert(piece)
        readClock(peer)
        checks.pieceStored(peer, piece, isRight: true, at: now)
        step(peer, .pieceStored(piece: piece))
    }

    mutating func release(_ peer: Int, _ piece: Int) {
        let place = Int(peers[peer].bufferOf[piece])
        if place >= 0, peers[peer].buffers[place].arriving != 0 {
            checks.breaks(peer, "gives the buffer of piece \(piece) away into which bytes are coming", at: now)
        }
        if !peers[peer].disk[piece] { checks.pieceGivenUp(peer, piece) }
        peers[peer].releaseBuffer(piece, byteCount: layout.length(ofPiece: piece))
    }

    mutating func mendDisk(_ peer: Int) {
        peers[peer].diskProblem = nil
        peers[peer].writeTime = .milliseconds(2)
    }

    /// A piece is gone from a disk.
    ///
    /// `isNoticed` says whether the owner notices at once, or when it wants to read.
    mutating func losePiece(_ peer: Int, _ piece: Int, isNoticed: Bool) {
        guard peers[peer].disk.remove(piece) else { return }
        tally.lostPieces += 1
        tell(peer, .disk, "loses piece \(piece)\(isNoticed ? "" : ", and does not notice")")
        guard isNoticed || peers[peer].session == nil else { return }
        checks.pieceLost(peer, piece)
        step(peer, .pieceLost(piece: piece))
    }

    // MARK: - Metadata

    mutating func metadataChecked(_ peer: Int, isRight: Bool) {
        readClock(peer)
        guard isRight else {
            checks.metadataRejected(peer)
            return step(peer, .metadataRejected)
        }
        peers[peer].hasMetadata = true
        // Its owner looks at the disk, and finds what has gone unnoticed.
        for piece in 0..<layout.pieceCount where !peers[peer].disk[piece] { checks.pieceLost(peer, piece) }
        checks.metadataAccepted(peer)
        tally.metadata += 1
        step(peer, .metadataAccepted(layout: layout, isPrivate: options.isPrivate, have: peers[peer].disk))
    }

    // MARK: - Web seeds

    mutating func fetchFromWeb(_ peer: Int, _ seed: Int, _ piece: Int) {
        checks.fetches(peer, piece, fromSeed: seed, at: now)
        let place = peers[peer].buffer(piece, byteCount: layout.length(ofPiece: piece))
        if peers[peer].buffers[place].here | peers[peer].buffers[place].arriving != 0 {
            checks.breaks(peer, "fetches piece \(piece), and has some of it", at: now)
        }
        let time = TransferWorld.time(webBytes: layout.length(ofPiece: piece), peers[peer].traits.downRate)
        queue.put(
            .webSeedAnswers(peer, life: peers[peer].life, seed: seed, piece: piece), at: now + .milliseconds(40) + time)
    }

    private static func time(webBytes: Int, _ rate: Int) -> Duration {
        rate == 0 ? .zero : Duration(nanoseconds: Int64(webBytes) * 1_000_000_000 / Int64(rate))
    }

    mutating func webSeedAnswers(_ peer: Int, _ seed: Int, _ piece: Int) {
        let place = Int(peers[peer].bufferOf[piece])
        guard place >= 0 else { return }
        let sender = PieceSender.firstWebSeed + seed
        if webSeeds.oneIn(options.hasWebTrouble ? 2 : 12) {
            checks.pieceGivenUp(peer, piece)
            let problem: WebSeedProblem = options.hasWebTrouble && webSeeds.oneIn(20) ? .unusable : .unavailable
            readClock(peer)
            checks.webEnds(peer, piece, seed, problem)
            return step(peer, .webPieceFailed(seed: seed, piece: piece, problem))
        }
        let blockCount = layout.blockCount(ofPiece: piece)
        peers[peer].buffers[place].here = blockCount == 64 ? .max : 1 << UInt64(blockCount) - 1
        peers[peer].buffers[place].senders = [PieceSender(peer: sender, end: 0, epoch: 0)]
        if seed < options.lyingWebSeedCount {
            peers[peer].buffers[place].corrupt.append((0, 9, peers[peer].buffers[place].senders[0]))
        }
        tally.webPieces += 1
        readClock(peer)
        checks.webEnds(peer, piece, seed, nil)
        checks.webPieceArrived(peer, byteCount: layout.length(ofPiece: piece))
        step(peer, .webPieceReceived(seed: seed, piece: piece))
    }
}

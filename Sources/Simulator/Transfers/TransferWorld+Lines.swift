// The lines of peers: each has so many bytes a second, which its connections share.

import PeerLogic
import Primitives
import Wire

extension TransferWorld {
    /// Messages that leave in one go, at most; a block goes by itself.
    private static let maxRunCount = 64
    /// For so long nothing can be sent before an owner gives up.
    private static let stuckPatience = Duration.seconds(60)

    /// Something is to be sent, behind all that was said there before.
    mutating func enqueue(_ end: Int, _ item: TransferItem) {
        if table.isFrozen[end >> 1] {
            if table.ends[end].stuckSince == nil {
                table.ends[end].stuckSince = now
                queue.put(.isStuck(end: end, epoch: table.epoch(of: end)), at: now + TransferWorld.stuckPatience)
            }
            return
        }
        table.ends[end].out.append(item)
        guard !table.ends[end].isInRow else { return }
        table.ends[end].isInRow = true
        peers[table.ends[end].peer].row.append(Int32(end))
    }

    private static func time(_ byteCount: Int, _ rate: Int) -> Duration {
        rate == 0 ? .zero : Duration(nanoseconds: Int64(byteCount) * 1_000_000_000 / Int64(rate))
    }

    /// Sends what waits, each connection in its turn: a run of messages, or a block, until a block takes the line.
    mutating func serve(_ peer: Int) {
        while peers[peer].leaving == nil, peers[peer].rowHead < peers[peer].row.count {
            let end = Int(peers[peer].row[peers[peer].rowHead])
            peers[peer].rowHead += 1
            if peers[peer].rowHead >= 32, peers[peer].rowHead * 2 >= peers[peer].row.count {
                peers[peer].row.removeFirst(peers[peer].rowHead)
                peers[peer].rowHead = 0
            }
            // Its connection may have ended meanwhile, and another peer have its place.
            guard table.ends[end].peer == peer, table.ends[end].isInRow else { continue }
            table.ends[end].isInRow = false
            guard table.ends[end].phase != .none, table.ends[end].out.waitingCount > 0 else { continue }
            send(peer, end)
            if table.ends[end].out.waitingCount > 0 {
                table.ends[end].isInRow = true
                peers[peer].row.append(Int32(end))
            }
        }
    }

    /// The next run of messages of a connection leaves, or its next block.
    private mutating func send(_ peer: Int, _ end: Int) {
        let waiting = table.ends[end].out.waitingCount
        var (count, byteCount) = (0, 0)
        var leaving: Block?
        while count < min(waiting, TransferWorld.maxRunCount) {
            let item = table.ends[end].out.waiting(count)
            if case .block(let block, _) = item {
                if count > 0 { break }
                leaving = block
            }
            byteCount += item.byteCount
            count += 1
            if leaving != nil { break }
        }
        table.ends[end].out.depart(count)
        let other = table.ends[end ^ 1].peer
        let start = max(now, peers[peer].upFreeAt)
        let upTime = TransferWorld.time(byteCount, peers[peer].traits.upRate)
        let downTime = TransferWorld.time(byteCount, peers[other].traits.downRate)
        let departure = start + upTime
        peers[peer].upFreeAt = departure
        peers[other].downFreeAt = max(peers[other].downFreeAt, start) + downTime
        let way = peers[peer].traits.latency + peers[other].traits.latency
        let last = table.ends[end].lastArrival
        let arrival = max(max(peers[other].downFreeAt, departure) + way, last)
        table.ends[end].lastArrival = arrival
        let epoch = table.epoch(of: end)
        if let leaving {
            let beginning = max(max(arrival - max(upTime, downTime), last), now)
            queue.put(.blockBegins(end: end, epoch: epoch), at: beginning)
            peers[peer].leaving = (end, epoch, leaving)
            queue.put(.uplinkIsFree(peer, life: peers[peer].life), at: departure)
        }
        queue.put(.arrives(end: end, epoch: epoch, itemCount: count), at: arrival)
    }

    /// The block that took the line has left.
    mutating func uplinkIsFree(_ peer: Int) {
        guard let leaving = peers[peer].leaving else { return }
        peers[peer].leaving = nil
        if table.epoch(of: leaving.end) == leaving.epoch, table.ends[leaving.end].phase == .open,
            table.ends[leaving.end].peer == peer, peers[peer].isHonest
        {
            blockSent(leaving.end, leaving.block, isSent: true)
        } else {
            serve(peer)
        }
    }

    mutating func blockSent(_ end: Int, _ block: Block, isSent: Bool) {
        guard table.ends[end].phase == .open, let name = table.ends[end].name else { return }
        readClock(table.ends[end].peer)
        checks.sent(end, block, isSent: isSent)
        step(table.ends[end].peer, .blockSent(name, block, isSent: isSent))
    }

    /// A block was to be given that cannot be read: its piece is gone.
    mutating func blockUnread(_ end: Int, _ epoch: UInt32, _ block: Block) {
        guard table.epoch(of: end) == epoch, table.ends[end].phase == .open else { return }
        let peer = table.ends[end].peer
        checks.pieceLost(peer, Int(block.piece))
        step(peer, .pieceLost(piece: Int(block.piece)))
        guard table.epoch(of: end) == epoch, table.ends[end].phase == .open else { return }
        blockSent(end, block, isSent: false)
    }
}

// What goes to another peer: small messages, and blocks from the page cache straight into the socket.

import Glibc
import PeerLogic
import Primitives
import Wire

extension Connection {
    /// Queues bytes that are no block.
    func send(_ append: (inout [UInt8]) -> Void, now: Instant) {
        if !wantsWrite { movedAt = now }
        append(&small)
    }

    /// Queues a block.
    func send(_ block: Block, now: Instant) {
        if !wantsWrite { movedAt = now }
        PeerMessage.piece(block).encode(into: &small)
        outgoing.append(Outgoing(block: block, headEnd: smallBase + small.count))
    }

    /// Takes a block out of the queue; false where its first byte has gone, or it is not there.
    func drop(_ block: Block) -> Bool {
        guard let index = outgoing.firstIndex(where: { $0.block == block && $0.headEnd - 13 >= smallSent }) else {
            return false
        }
        let end = outgoing[index].headEnd - smallBase
        small.removeSubrange(end - 13..<end)
        outgoing.remove(at: index)
        for later in index..<outgoing.count { outgoing[later].headEnd -= 13 }
        return true
    }

    /// Sends what the socket takes, up to the bound of a round.
    ///
    /// - Returns: how the connection ends; nil where it goes on.
    func flush(now: Instant) -> LinkEnd? {
        var budget = Self.roundByteCount
        while budget > 0, phase != .closed, phase != .connecting {
            let count: Int
            if let first = outgoing.first, first.headEnd == smallSent {
                switch sendPayload(first) {
                case .sent(let sent): count = sent
                case .waits:
                    isBlocked = true
                    return nil
                case .lost:
                    // The head has gone, so that nothing else can follow.
                    transfer?.lost(Int(first.block.piece))
                    return .closed
                case .failed: return .closed
                }
            } else {
                let end = outgoing.first?.headEnd ?? smallBase + small.count
                guard smallSent < end else { return nil }
                count = small[smallSent - smallBase..<end - smallBase].withUnsafeBytes {
                    let more = outgoing.isEmpty ? 0 : CInt(MSG_MORE)
                    return Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL) | more)
                }
                if count < 0 {
                    if errno == EINTR { continue }
                    guard errno == EAGAIN else { return .closed }
                    isBlocked = true
                    return nil
                }
                smallSent += count
                trim()
            }
            budget -= count
            if count > 0 { movedAt = now }
        }
        return nil
    }

    private func trim() {
        let sent = smallSent - smallBase
        guard sent == small.count || sent > 65_536 else { return }
        smallBase = smallSent
        if sent < small.count {
            small.removeFirst(sent)
        } else {
            // The room that a long message took is given back.
            small.removeAll(keepingCapacity: small.capacity <= 2 * Self.roomByteCount)
        }
    }

    private enum Sent {
        case sent(Int)
        case waits
        case lost
        case failed
    }

    /// So many bytes the kernel is told to read before they are sent.
    private static let aheadByteCount: UInt32 = 1 << 20

    /// Has the kernel read what is to be sent, so that `sendfile` does not keep all others waiting for the disk.
    func readAhead(_ block: Block, _ store: FileStore) {
        let end = block.offset + block.length
        guard ahead.piece != block.piece || block.offset < ahead.bytes.lowerBound || end > ahead.bytes.upperBound else {
            return
        }
        let length = UInt32(store.layout.length(ofPiece: Int(block.piece)))
        ahead = (block.piece, block.offset..<max(end, min(length, block.offset + Self.aheadByteCount)))
        store.readAhead(Int(block.piece), ahead.bytes)
    }

    private static let zeros = [UInt8](repeating: 0, count: 65_536)

    private func sendPayload(_ first: Outgoing) -> Sent {
        guard let store = transfer?.store, let link else { return .failed }
        let block = first.block
        let part = store.part(
            at: Int(block.piece) * store.layout.pieceLength + Int(block.offset) + first.done,
            upTo: Int(block.length) - first.done)
        let count: Int
        if let file = part.file {
            guard let handle = try? store.handle(file, writes: false) else { return .lost }
            var offset = off_t(part.offset)
            count = sendfile(descriptor, handle.descriptor, &offset, part.length)
            if count == 0 || (count < 0 && errno == EIO) { return .lost }
        } else {
            count = Self.zeros.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, min(part.length, $0.count), CInt(MSG_NOSIGNAL))
            }
        }
        if count < 0 {
            if errno == EINTR { return .sent(0) }
            return errno == EAGAIN ? .waits : .failed
        }
        outgoing[0].done += count
        if outgoing[0].done == Int(block.length) {
            outgoing.removeFirst()
            transfer?.step(.blockSent(link, block, isSent: true))
        }
        return .sent(count)
    }
}

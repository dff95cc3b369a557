// One connection to another peer: what comes is framed, what goes is queued.

import Datagrams
import Glibc
import PeerLogic
import Primitives
import Wire

/// One connection to another peer: what comes is framed, what goes is queued.
///
///     connecting ──► greeting ──► talking ──► closed
///                        └──► waiting ──┘
///
/// The payload of a block goes from the socket straight into the piece's buffer, and from the page cache straight into
/// the socket. Everything else is small and passes through two buffers, both bounded.
final class Connection {
    enum Phase {
        /// We have called. Can transition to: greeting, closed.
        case connecting
        /// Their handshake is awaited. Can transition to: waiting, talking, closed.
        case greeting
        /// Their handshake is here, but the torrent is being checked. Can transition to: talking, closed.
        case waiting
        /// Messages. Can transition to: closed.
        case talking
        /// Can transition to: nothing.
        case closed
    }

    /// A block whose payload is coming.
    private struct Incoming {
        var block: Block
        /// Nil for one that is of no use.
        var buffer: PieceBuffer?
        var done = 0
    }

    /// A block that waits for its turn, or goes.
    struct Outgoing {
        var block: Block
        /// The end of its head in the stream of small bytes.
        var headEnd: Int
        var done = 0
    }

    static let roomByteCount = 16_384
    /// Small messages that wait because the peer does not read.
    static let maxWaitingByteCount = 4 << 20
    static let stuckAfter = Duration.seconds(60)
    /// Of one connection in one round of the loop, so that the others have their turn.
    static let roundByteCount = 512 << 10

    let descriptor: CInt
    let address: SocketAddress
    var phase: Phase
    /// Nil until a caller has said which torrent it wants.
    weak var transfer: Transfer?
    var link: LinkID?
    let since: Instant
    /// The place in the poller's list of this round; 0 for none.
    var place = 0
    /// Whether the socket had no room.
    var isBlocked = false
    /// Whether our handshake has gone out before theirs was whole.
    private(set) var hasGreeted = false
    /// Of a caller that waits.
    private var held: PeerHandshake?
    /// The piece, and the bytes of it, that the kernel was told to read.
    var ahead: (piece: UInt32, bytes: Range<UInt32>) = (0, 0..<0)

    private var room: UnsafeMutableRawBufferPointer
    private var start = 0
    private var end = 0
    private var incoming: Incoming?
    /// Bytes that are still to come of a message that nobody knows.
    private var toSkip = 0

    var small: [UInt8] = []
    /// Bytes that have been before the first of `small`.
    var smallBase = 0
    /// Small bytes that have gone, since the beginning.
    var smallSent = 0
    var outgoing: [Outgoing] = []
    var movedAt: Instant

    init(_ descriptor: CInt, _ address: SocketAddress, phase: Phase, now: Instant) {
        self.descriptor = descriptor
        self.address = address
        self.phase = phase
        since = now
        movedAt = now
        room = .allocate(byteCount: Self.roomByteCount, alignment: 16)
    }

    deinit {
        room.deallocate()
        if phase != .closed { Glibc.close(descriptor) }
    }

    func close() {
        guard phase != .closed else { return }
        phase = .closed
        Glibc.close(descriptor)
        incoming = nil
        outgoing = []
        small = []
    }

    var wantsWrite: Bool { phase == .connecting || smallSent < smallBase + small.count || !outgoing.isEmpty }

    /// Whether the peer takes nothing, for too long or too much of it.
    func isStuck(now: Instant) -> Bool {
        guard phase == .talking, wantsWrite else { return false }
        return now - movedAt > Self.stuckAfter || smallBase + small.count - smallSent > Self.maxWaitingByteCount
    }

    // MARK: - In

    /// Reads what is there, up to the bound of a round.
    ///
    /// - Returns: how the connection ends; nil where it goes on.
    func read(_ loop: EngineLoop) -> LinkEnd? {
        var budget = Self.roundByteCount
        while budget > 0, phase != .closed, phase != .waiting {
            let wanted: Int
            let count: Int
            if let incoming {
                let rest = Int(incoming.block.length) - incoming.done
                (wanted, count) = receive(rest, of: incoming)
            } else {
                makeRoom()
                wanted = room.count - end
                count = recv(descriptor, room.baseAddress! + end, wanted, 0)
                if count > 0 { end += count }
            }
            if count < 0 {
                if errno == EINTR { continue }
                return errno == EAGAIN ? nil : .closed
            }
            if count == 0 { return .closed }
            budget -= count
            if let fault = parse(loop) { return fault }
            // A short read has emptied the socket.
            if count < wanted { return nil }
        }
        return nil
    }

    /// The rest of a block into its place, what follows into the room.
    private func receive(_ rest: Int, of incoming: Incoming) -> (wanted: Int, count: Int) {
        precondition(start == end, "a block's rest is not in the room")
        start = 0
        end = 0
        guard let buffer = incoming.buffer else {
            let wanted = min(rest, room.count)
            let count = recv(descriptor, room.baseAddress!, wanted, 0)
            if count > 0 { self.incoming?.done += count }
            return (wanted, count)
        }
        let target = buffer.bytes.baseAddress! + Int(incoming.block.offset) + incoming.done
        let ahead = 256
        var parts = (
            iovec(iov_base: target, iov_len: rest), iovec(iov_base: room.baseAddress!, iov_len: ahead)
        )
        let count = withUnsafeBytes(of: &parts) {
            readv(descriptor, $0.assumingMemoryBound(to: iovec.self).baseAddress!, 2)
        }
        if count > 0 {
            self.incoming?.done += min(count, rest)
            end = max(0, count - rest)
        }
        return (rest + ahead, count)
    }

    private func makeRoom() {
        if start == end, room.count > Self.roomByteCount {
            // A long message has been: the next one may not come for hours.
            room.deallocate()
            room = .allocate(byteCount: Self.roomByteCount, alignment: 16)
            start = 0
            end = 0
        }
        guard start > 0, start == end || end == room.count else { return }
        if end > start {
            room.baseAddress!.copyMemory(from: room.baseAddress! + start, byteCount: end - start)
        }
        end -= start
        start = 0
    }

    /// Takes out of the room what is whole.
    private func parse(_ loop: EngineLoop) -> LinkEnd? {
        while phase != .closed, phase != .waiting {
            if let incoming {
                take(incoming)
                if let open = self.incoming {
                    guard open.done == Int(open.block.length) else { return nil }
                    self.incoming = nil
                    guard let link else { return .malformed }
                    let isKept = open.buffer != nil
                    transfer?.step(isKept ? .blockReceived(link, open.block) : .blockSkipped(link, open.block))
                    continue
                }
            }
            if phase == .greeting {
                guard end - start >= PeerHandshake.byteCount else {
                    answerEarly(loop)
                    return mistaken()
                }
                let bytes = Array(room[start..<start + PeerHandshake.byteCount])
                guard let handshake = try? PeerHandshake(decoding: bytes) else { return .malformed }
                start += PeerHandshake.byteCount
                phase = .talking
                loop.greeted(self, handshake)
                continue
            }
            switch nextMessage() {
            case .partial: return nil
            case .malformed: return .malformed
            case .message(let message):
                guard let link, let transfer else { return .malformed }
                transfer.step(.messageReceived(link, message))
            case .block(let block): if let fault = begin(block) { return fault }
            }
        }
        return nil
    }

    // MARK: - Waiting

    /// The torrent is being checked: what else the caller says is read once it can be answered.
    func hold(_ handshake: PeerHandshake) {
        held = handshake
        phase = .waiting
    }

    /// The handshake of a caller that waits for this torrent, which is heard from now on.
    func takeHeld(of infoHash: InfoHash) -> PeerHandshake? {
        guard phase == .waiting, let handshake = held, handshake.infoHash == infoHash else { return nil }
        held = nil
        phase = .talking
        return handshake
    }

    /// Reads what has come meanwhile.
    ///
    /// - Returns: how the connection ends; nil where it goes on.
    func goOn(_ loop: EngineLoop) -> LinkEnd? { parse(loop) }

    // MARK: - Framing

    /// Some say who they are only once they have our handshake: it goes out as soon as the torrent is named.
    private func answerEarly(_ loop: EngineLoop) {
        guard !hasGreeted, link == nil, end - start >= PeerHandshake.headByteCount,
            let infoHash = try? PeerHandshake.infoHash(in: Array(room[start..<end])),
            let handshake = loop.handshake(for: infoHash)
        else { return }
        hasGreeted = true
        send({ handshake.encode(into: &$0) }, now: loop.now)
    }

    /// Whoever does not begin as a peer does is not waited for.
    private func mistaken() -> LinkEnd? {
        PeerHandshake.mayBegin(with: room[start..<end]) ? nil : .malformed
    }

    /// Of a block, takes what lies in the room already.
    private func take(_ block: Incoming) {
        let count = min(end - start, Int(block.block.length) - block.done)
        guard count > 0 else { return }
        if let buffer = block.buffer {
            (buffer.bytes.baseAddress! + Int(block.block.offset) + block.done)
                .copyMemory(from: room.baseAddress! + start, byteCount: count)
        }
        start += count
        incoming?.done += count
    }

    private enum Next {
        case partial
        case malformed
        case message(PeerMessage)
        case block(Block)
    }

    /// Drops what is here of a message that nobody knows.
    private func skip() {
        let count = min(toSkip, end - start)
        start += count
        toSkip -= count
    }

    private func nextMessage() -> Next {
        skip()
        guard toSkip == 0 else { return .partial }
        let reading: PeerMessage.Reading
        do throws(PeerMessage.Malformed) {
            let bytes = UnsafeRawBufferPointer(rebasing: room[start..<end])
            reading = try PeerMessage.read(RawSpan(_unsafeBytes: bytes), from: 0)
        } catch {
            return .malformed
        }
        switch reading {
        case .needs(let count):
            if room.count < count { growRoom(count) }
            return .partial
        case .message(let message, let byteCount):
            start += byteCount
            return .message(message)
        case .unknown(let byteCount):
            // What nobody knows is a sign of life.
            toSkip = byteCount
            skip()
            return .message(.keepAlive)
        case .block(let block):
            start += PeerMessage.pieceHeadByteCount
            return .block(block)
        }
    }

    private func growRoom(_ count: Int) {
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        larger.baseAddress!.copyMemory(from: room.baseAddress! + start, byteCount: end - start)
        end -= start
        start = 0
        room.deallocate()
        room = larger
    }

    private func begin(_ block: Block) -> LinkEnd? {
        guard let link, let transfer, block.length > 0 else { return .malformed }
        let buffer = transfer.place(of: block, on: link)
        incoming = Incoming(block: block, buffer: buffer)
        return nil
    }
}

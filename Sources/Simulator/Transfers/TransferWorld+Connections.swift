// Connections: made, carried, ended.

import PeerLogic
import Primitives
import Wire

extension TransferWorld {
    private func latency(_ peer: Int, _ other: Int) -> Duration {
        peers[peer].traits.latency + peers[other].traits.latency
    }

    // MARK: - Made

    /// A peer calls an address.
    mutating func dial(_ peer: Int, _ name: LinkID?, _ address: SocketAddress) {
        let found = number(at: address)
        let other = found.flatMap { peers[$0].address == address ? $0 : nil }
        let link = table.make()
        let end = 2 * link
        table.ends[end].phase = .dialling
        table.ends[end].peer = peer
        table.ends[end].life = peers[peer].life
        table.ends[end].name = name
        if let name {
            readClock(peer)
            setEnd(peer, name, end)
            checks.dials(end, peer, address, other: other, at: now)
        } else {
            checks.opened(end, peer, other ?? peer, at: now)
        }
        tally.dials += 1
        table.capabilities[link] = other.map { capabilities(peer, $0) } ?? []
        table.ends[end ^ 1].peer = other ?? -1
        guard let other, peers[other].traits.isReachable, !peers[other].isOffline, !peers[peer].isOffline else {
            return
        }
        let roundTrip = latency(peer, other) * 2 + .microseconds(200)
        let isListening = peers[other].isUp && !peers[other].isPaused && !peers[other].isLeaving
        queue.put(
            isListening
                ? .connected(link: link, epoch: table.epochs[link]) : .refused(link: link, epoch: table.epochs[link]),
            at: now + roundTrip)
    }

    /// What two peers both understand, on all their connections: one may not know the fast extension, or none at all.
    func capabilities(_ peer: Int, _ other: Int) -> PeerHandshake.Capabilities {
        var random = RandomStream(seed, .connections, min(peer, other), max(peer, other))
        let isFast = random.below(100) >= options.withoutFastPercent
        var hasExtensions = isFast || !random.oneIn(3)
        if options.withoutExtensionsPercent > 0 {
            // All have them with the first, who has room for all that lack the metadata.
            hasExtensions = min(peer, other) == 0 || random.below(100) >= options.withoutExtensionsPercent
        }
        return PeerHandshake.Capabilities(isFast ? [.fast] : []).union(hasExtensions ? [.extensions] : [])
    }

    private mutating func setEnd(_ peer: Int, _ name: LinkID, _ end: Int) {
        while peers[peer].endOf.count <= Int(name.slot) { peers[peer].endOf.append(-1) }
        peers[peer].endOf[Int(name.slot)] = Int32(end)
    }

    /// TCP is through its handshake: whoever has dialled says ours.
    mutating func connected(_ link: Int) {
        let (end, other) = (2 * link, table.ends[2 * link + 1].peer)
        guard table.ends[end].phase == .dialling else { return }
        guard peers[other].isUp, !peers[other].isOffline, !table.isFrozen[link] else { return }
        table.ends[end].phase = .greeting
        table.ends[end ^ 1].phase = .called
        table.ends[end ^ 1].life = peers[other].life
        let peer = table.ends[end].peer
        if let name = table.ends[end].name {
            readClock(peer)
            checks.reached(end)
            checks.saysHandshake(end, at: now)
            enqueue(end, .handshake)
            step(peer, .dialled(name))
        } else {
            enqueue(end, .handshake)
            serve(peer)
        }
    }

    private func handshake(of peer: Int, _ link: Int) -> PeerHandshake {
        PeerHandshake(capabilities: table.capabilities[link], infoHash: infoHash, peerID: peers[peer].peerID)
    }

    /// A handshake has come to an end.
    private mutating func greet(_ end: Int) {
        let (peer, other) = (table.ends[end].peer, table.ends[end ^ 1].peer)
        guard peers[peer].isHonest else { return liarGreeted(end) }
        let link = end >> 1
        let handshake = handshake(of: other, link)
        readClock(peer)
        if table.ends[end].phase == .greeting, let name = table.ends[end].name {
            table.ends[end].phase = .open
            checks.greeted(end, table.capabilities[link], peers[other].address)
            return step(peer, .handshakeReceived(name, handshake))
        }
        guard table.ends[end].phase == .called else { return }
        let local = readClock(peer)
        checks.isCalled()
        guard let name = peers[peer].session?.newLink(now: local, into: &actions) else {
            finish(peer)
            return endHere(end, tellsOther: true)
        }
        // One may have given way for it.
        finish(peer)
        table.ends[end].phase = .open
        table.ends[end].name = name
        setEnd(peer, name, end)
        checks.opened(end, peer, other, at: now)
        // Who calls says where it listens (BEP 10), and may be called there.
        checks.found(peer, peers[other].toldAddress, isProper: true)
        checks.greeted(end, table.capabilities[link], peers[other].address)
        var address = peers[other].address
        address.port = 40_000 &+ UInt16(truncatingIfNeeded: link & 0x3FFF)
        step(peer, .accepted(name, address, handshake))
    }

    // MARK: - Ended

    /// A session has closed a connection.
    mutating func closedBySession(_ end: Int, _ reason: CloseReason) {
        let (peer, other) = (table.ends[end].peer, table.ends[end ^ 1].peer)
        checks.closes(end, reason, at: now)
        // What it has said before has left, as far as that can be.
        if other == peer { serve(peer) }
        if reason == .handshakeTimedOut, end & 1 == 0 {
            let address = other >= 0 ? peers[other].address : SocketAddress.unspecified
            checks.callFailed(peer, address, at: now)
        }
        if case .breach(let words) = reason {
            tally.breaches += 1
            if other >= 0, peers[other].isHonest {
                checks.breaks(peer, "blames peer \(other), which is honest: \(words)", at: now)
            }
        }
        endHere(end, tellsOther: true)
    }

    /// The owner notices that a connection is over, and tells the session.
    mutating func told(_ end: Int, _ how: LinkEnd) {
        let phase = table.ends[end].phase
        guard phase != .none else { return }
        let (peer, name) = (table.ends[end].peer, table.ends[end].name)
        readClock(peer)
        if peers[peer].isHonest, phase == .dialling || phase == .greeting, end & 1 == 0, table.ends[end ^ 1].peer >= 0 {
            checks.callFailed(peer, peers[table.ends[end ^ 1].peer].address, at: now)
        }
        if peers[peer].isHonest { checks.isOver(end, how) }
        endHere(end, tellsOther: how == .stuck)
        if phase != .called, let name { step(peer, .linkClosed(name, how)) }
    }

    /// One side is over; the other is told by and by.
    mutating func endHere(_ end: Int, tellsOther: Bool) {
        let (peer, link) = (table.ends[end].peer, end >> 1)
        guard table.ends[end].phase != .none else { return }
        if table.ends[end].phase != .called { checks.closed(end) }
        breakArrival(end)
        if let name = table.ends[end].name, Int(name.slot) < peers[peer].endOf.count,
            peers[peer].endOf[Int(name.slot)] == Int32(end)
        {
            peers[peer].endOf[Int(name.slot)] = -1
        }
        table.ends[end].phase = .none
        table.ends[end].out.dropWaiting()
        if tellsOther, table.ends[end ^ 1].phase != .none {
            let arrival = max(table.ends[end].lastArrival, now + latency(peer, table.ends[end ^ 1].peer))
            queue.put(.closes(end: end, epoch: table.epoch(of: end)), at: arrival)
        }
        table.release(link)
    }

    /// What is arriving at an end does not come to its end.
    private mutating func breakArrival(_ end: Int) {
        guard let place = table.ends[end].place else { return }
        table.ends[end].place = nil
        let peer = table.ends[end].peer
        guard place == .keep, case .block(let block, _) = table.ends[end ^ 1].out.first,
            let index = layout.index(of: block), peers[peer].bufferOf[Int(block.piece)] >= 0
        else { return }
        peers[peer].buffers[Int(peers[peer].bufferOf[Int(block.piece)])].arriving &= ~(1 << UInt64(index))
    }

    // MARK: - Carried

    /// Something has come whole to the other end.
    mutating func arrive(_ end: Int, _ count: Int) {
        let (receiver, epoch) = (end ^ 1, table.epoch(of: end))
        for _ in 0..<count {
            guard table.epoch(of: end) == epoch, let item = table.ends[end].out.first else { return }
            guard !table.isFrozen[end >> 1], table.ends[receiver].phase != .none else { return }
            if case .block(let block, let salt) = item {
                blockArrives(receiver, block, salt)
                if table.epoch(of: end) == epoch, table.ends[receiver].phase != .none {
                    table.ends[end].out.removeFirst()
                    tellOfBlock(receiver, block)
                }
            } else {
                table.ends[end].out.removeFirst()
                deliver(receiver, item)
            }
        }
    }

    private mutating func deliver(_ end: Int, _ item: TransferItem) {
        let peer = table.ends[end].peer
        switch item {
        case .handshake: greet(end)
        case .block: break
        case .message(let message):
            guard peers[peer].isHonest else { return liarHears(end, message) }
            guard table.ends[end].phase == .open, let name = table.ends[end].name else { return }
            readClock(peer)
            let message = translated(message, to: end)
            checks.hears(end, message, at: now)
            step(peer, .messageReceived(name, message))
        }
    }

    /// The head of a block has come to the other end.
    mutating func blockBegins(_ end: Int) {
        let receiver = end ^ 1
        let peer = table.ends[receiver].peer
        guard !table.isFrozen[end >> 1], table.ends[receiver].phase == .open, let name = table.ends[receiver].name,
            case .block(let block, _) = table.ends[end].out.first
        else { return }
        let local = readClock(peer)
        let place = peers[peer].session?.blockBegins(block, on: name, now: local) ?? .skip
        table.ends[receiver].place = place
        checks.blockBegins(receiver, block, isKept: place == .keep, at: now)
        guard place == .keep, let index = layout.index(of: block) else { return }
        let piece = Int(block.piece)
        let buffer = peers[peer].buffer(piece, byteCount: layout.length(ofPiece: piece))
        let bit: UInt64 = 1 << UInt64(index)
        if checks.wasWrong(peer, piece) {
            // It may have been begun anew.
            peers[peer].buffers[buffer].here &= ~bit
            peers[peer].buffers[buffer].corrupt.removeAll { $0.block == index }
        }
        let isTaken = peers[peer].buffers[buffer].isVerifying || peers[peer].buffers[buffer].isVerified
        if isTaken || (peers[peer].buffers[buffer].here | peers[peer].buffers[buffer].arriving) & bit != 0 {
            checks.breaks(peer, "keeps a block of piece \(piece) that is here", at: now)
        }
        peers[peer].buffers[buffer].arriving |= bit
    }

    /// All bytes of a block have come.
    private mutating func blockArrives(_ end: Int, _ block: Block, _ salt: UInt32) {
        let peer = table.ends[end].peer
        guard table.ends[end].place == .keep, let index = layout.index(of: block),
            peers[peer].bufferOf[Int(block.piece)] >= 0
        else { return }
        let buffer = Int(peers[peer].bufferOf[Int(block.piece)])
        let bit: UInt64 = 1 << UInt64(index)
        peers[peer].buffers[buffer].arriving &= ~bit
        peers[peer].buffers[buffer].here |= bit
        let sender = PieceSender(
            peer: table.ends[end ^ 1].peer, end: end, epoch: table.epoch(of: end))
        if salt != 0 { peers[peer].buffers[buffer].corrupt.append((index, salt, sender)) }
        readClock(peer)
        if !peers[peer].buffers[buffer].senders.contains(sender) { peers[peer].buffers[buffer].senders.append(sender) }
        checks.blockArrived(end, block, isCorrupt: salt != 0, at: now)
        tally.blocks += 1
    }

    private mutating func tellOfBlock(_ end: Int, _ block: Block) {
        let peer = table.ends[end].peer
        guard table.ends[end].phase == .open, let name = table.ends[end].name, let place = table.ends[end].place else {
            return
        }
        table.ends[end].place = nil
        readClock(peer)
        if place == .skip { checks.skipped(end, block) }
        step(peer, place == .keep ? .blockReceived(name, block) : .blockSkipped(name, block))
        if place == .skip { tally.skippedBlocks += 1 }
    }
}

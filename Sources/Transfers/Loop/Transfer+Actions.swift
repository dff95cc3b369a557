// What a session wants done, done.

import Client
import Datagrams
import PeerLogic
import Primitives
import Wire

extension Transfer {
    func perform(_ action: TorrentSession.Action) {
        switch action {
        case .dial(let link, let address): dial(link, address)
        case .sendHandshake(let link):
            guard let connection = connection(link), !connection.hasGreeted else { return }
            let handshake = session.handshake
            connection.send({ handshake.encode(into: &$0) }, now: loop.now)
        case .send(let link, let message):
            connection(link)?.send({ message.encode(into: &$0) }, now: loop.now)
        case .sendBlock(let link, let block): send(block, on: link)
        case .dropBlock(let link, let block):
            if letGo(block, on: link) || connection(link)?.drop(block) ?? false {
                step(.blockSent(link, block, isSent: false))
            }
        case .close(let link, let reason): close(link, reason)
        case .verify(let piece, let wantsDigests): verify(piece, wantsDigests)
        case .store(let piece): write(piece)
        case .releaseBuffer(let piece):
            if let buffer = buffers.removeValue(forKey: piece) { loop.pool.give(buffer) }
        case .checkMetadata(let bytes): checkMetadata(bytes)
        case .sendToTracker(let tracker, let bytes): trackers.send(bytes, to: tracker, for: self)
        case .announceOverHTTP(let tracker, let request): trackers.announce(request, to: tracker, for: self)
        case .fetchFromWeb(let seed, let piece): fetch(piece, from: seed)
        case .announceLocally: loop.local?.announce(infoHash, port: loop.listenPort)
        case .observe(let observation): observed(observation)
        }
    }

    /// Queues a block, if its bytes are still there: once its head has gone, nothing else can be said.
    func send(_ block: Block, on link: LinkID) {
        guard let store else { return step(.blockSent(link, block, isSent: false)) }
        if holds(block, on: link) { return }
        switch store.standing(of: block) {
        case .asTheyWere: break
        case .short:
            step(.blockSent(link, block, isSent: false))
            return lost(Int(block.piece))
        case .changed(let file): return suspect(file, asked: block, on: link)
        }
        guard let connection = connection(link) else { return }
        connection.readAhead(block, store)
        connection.send(block, now: loop.now)
    }

    private func dial(_ link: LinkID, _ address: SocketAddress) {
        guard !loop.isFull else { return step(.linkClosed(link, .unreachable)) }
        do throws(SocketError) {
            let descriptor = try Streams.connect(to: address)
            let connection = Connection(descriptor, address, phase: .connecting, now: loop.now)
            adopt(connection, link)
            loop.connections.append(connection)
        } catch {
            step(.linkClosed(link, .unreachable))
        }
    }

    /// The connection is there, or has failed.
    func connected(_ connection: Connection) {
        guard let link = connection.link else { return }
        guard Streams.pendingError(of: connection.descriptor) == 0 else { return ended(connection, .unreachable) }
        connection.phase = .greeting
        let handshake = session.handshake
        connection.send({ handshake.encode(into: &$0) }, now: loop.now)
        step(.dialled(link))
    }

    private func close(_ link: LinkID, _ reason: CloseReason) {
        guard let connection = connection(link) else { return }
        connections[Int(link.slot)] = nil
        // The last words; nobody waits for them.
        connection.link = nil
        _ = connection.flush(now: loop.now)
        connection.close()
        loop.tell(.peerLeft(id, connection.address, reason: reason.description))
    }

    private func observed(_ observation: TorrentSession.Observation) {
        switch observation {
        case .diskTrouble(.full): diskProblem = "no space is left; make some"
        case .diskTrouble(.readOnly): diskProblem = "the files may not be written; see their permissions"
        case .diskTrouble(.other(let reason)): diskProblem = reason
        case .diskMended: diskProblem = nil
        case .trackerAnswered(let tracker, let seeders, let leechers, _):
            trackers.answered(tracker, seeders: seeders, leechers: leechers, now: loop.now)
        case .trackerFailed(let tracker, let reason): trackers.failed(tracker, reason)
        case .completed: completed()
        case .linkReady, .pieceGained, .pieceWasWrong, .banned, .ratioReached: break
        }
        loop.tell(.observed(id, observation))
    }

    private func completed() {
        record()
        guard options.verifiesAtEnd, session.received > 0, !options.isSeedOnly else { return }
        try? verifyAll { _ in }
    }
}

// After a partition, in survivor mode.

import Primitives
import Wire

/// After a partition, in survivor mode: two masters become one, and two repositories.
///
///     lower master ── hears of the higher: hello ──► higher master: another history? asks for a chunk
///                  ◄── the chunk is asked of it, so it is heard: steps down
///     its chunks ──► updates in the higher one's log ──► decided ──► welcome, with a state transfer
///
/// What a tracker has accepted of a master that is gone may have been decided and answered, and is merged as well.
///
/// A master makes way only for one that answers it. One that can send and not receive claims to be master for ever and
/// brings nobody down (rule 7).
extension TrackerNode {
    /// A higher master is heard: it is asked whether it hears us.
    mutating func probe(_ place: Int, _ now: ClockReading, _ effects: inout Effects) {
        guard mayAddress(place, now) else { return }
        sendHello(to: neighbours[place].life, now, &effects)
    }

    /// A lower master is heard: it is to know of this one.
    mutating func proposeMerge(_ place: Int, _ now: ClockReading, _ effects: inout Effects) {
        guard mayAddress(place, now) else { return }
        send(keepalive, to: neighbours[place].life, epoch: candidate.epoch, &effects)
    }

    /// Whether another master is to be spoken to again: each of the two answers what it hears, and would so for ever.
    private mutating func mayAddress(_ place: Int, _ now: ClockReading) -> Bool {
        if let at = neighbours[place].addressedAt, now.monotonic - at < retryPause { return false }
        neighbours[place].addressedAt = now.monotonic
        return true
    }

    // MARK: - A vote that may have decided

    /// Another entry is to take the place of the one that this node has accepted of another master.
    ///
    /// That master may have had all the votes that it needed, and have answered. So this node takes its own entry for
    /// decided, which makes a history of its own of it, to be merged.
    ///
    /// - Returns: whether it is so.
    mutating func adoptOwnVoteAsDecided(against entry: Entry) -> Bool {
        guard !isQuorumMode, let own = log.durablePending, own.rivals(entry) else { return false }
        return adoptOwnVoteAsDecided()
    }

    /// The same, before its history is merged into another.
    ///
    /// Nobody is answered: whoever waits still is asked for anew.
    mutating func adoptOwnVoteAsDecided() -> Bool {
        guard !isQuorumMode, let own = log.durablePending, own.header.index == state.index + 1,
            own.header.previous == state.chain, own.header.updateCount > 0, !has(.voteForgotten)
        else { return false }
        // Of what it has proposed itself, in this life, it knows that it is not decided.
        guard own.header.epoch != candidate.epoch else { return false }
        let ballot = Ballot(epoch: promise.epoch, attempt: 0, index: own.header.index)
        let kept = own.proposed(ballot, isAlone: true)
        state.begin(kept.header, chain: kept.chain)
        var cursor = UpdateCursor(kept.header)
        while let update = try? cursor.next(kept.bytes) { _ = state.apply(update) }
        log.append(decided: kept)
        return true
    }

    /// A welcomed tracker still holds what it has voted for in an epoch that is over, and its master has nothing new.
    ///
    /// That vote is settled by the next entry, but none may come for long; it would be merged then, when all had been
    /// well. So it is merged as soon as the master has been idle for two keepalives.
    mutating func settleOldVote(
        _ position: Position, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard !isQuorumMode, office.isWelcomed(by: sender, in: epoch), position == state.position,
            !transfer.isFetching, !transfer.isWriting, let own = log.durablePending, own.header.epoch < epoch,
            office.takeIdleKeepalive(), adoptOwnVoteAsDecided()
        else { return }
        historyDiverged(now, &effects)
    }

    // MARK: - Merging

    /// Begins to take in another tracker's history, or tells it to wait for its turn.
    ///
    /// - Parameters:
    ///   - sender: the other tracker.
    ///   - position: where its history ended.
    ///   - hasSwarms: whether more than access rules and registry is to be taken over.
    ///   - now: both clocks.
    ///   - effects: get the question for the first chunk.
    mutating func beginMerge(
        _ sender: Life, _ position: Position, hasSwarms: Bool, _ now: ClockReading, _ effects: inout Effects
    ) {
        if let source = merging.source {
            // One after another; the others are told to wait.
            guard source != sender, let place = neighbours.place(of: sender.id) else { return }
            return proposeMerge(place, now, &effects)
        }
        merging.begin(sender, position, hasSwarms: hasSwarms, now: now.monotonic)
        send(.fetchChunk(0), to: sender, epoch: candidate.epoch, &effects)
    }

    mutating func mergeChunk(
        _ chunk: SnapshotChunk, _ sender: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        switch merging.chunkReceived(chunk, from: sender) {
        case .ignored, .cancelled: return
        case .complete: break
        case .wanted:
            let isWanted = merging.takesSwarms || chunk.number == 0 || chunk.holdsFiles
            if let updates = isWanted ? try? planted(merged: state.mergeUpdates(from: chunk), from: chunk) : [] {
                merging.take(intervalUpdates(from: chunk) + updates, hasFiles: !state.files.chunks.isEmpty)
            }
        }
    }

    /// What keeps the other side's silent peers for as long as they were promised: where they were told a longer
    /// interval than is waited for here, it is decided before any of them comes, as one that was told until now.
    ///
    /// No longer one than this master ever tells: the other may be Byzantine.
    private mutating func intervalUpdates(from chunk: SnapshotChunk) -> [Update] {
        guard chunk.number == 0, merging.takesSwarms, let other = try? chunk.registry().told,
            let longest = intervals.longer(than: state.told, in: other, at: state.time.seconds)
        else { return [] }
        merging.note(toldInterval: longest)
        return [.setInterval(longest), .setInterval(intervals.interval(state.told))]
    }

    /// Takes in more of what the other knows, and is told when that is all.
    ///
    /// In each step, before what clients want, a quarter of an entry: by a pace of time, small entries would keep the
    /// other from serving for long, and behind a backlog it would never serve. Whoever leaves has no time for it; the
    /// next master begins it anew.
    mutating func continueMerge(_ now: ClockReading, _ effects: inout Effects) {
        guard phase == .master, !departure.isLeaving, let source = merging.source else { return }
        guard let place = neighbours.place(of: source.id), neighbours[place].life == source,
            neighbours[place].isUp
        else { return merging.cancel() }
        // One part of a torrent file for an entry: announces are not to wait behind more.
        while gathering.updateCount < max(configuration.limits.updatesPerEntry / 4, 1), !gathering.hasUploadPart,
            let update = merging.nextUpdate()
        {
            guard hasRoom(toMerge: update) else {
                merging.leftOut()
                continue
            }
            gathering.append(update)
            // It is in the next entry, or the one after that which is under way.
            merging.gathered(by: state.index + 2)
        }
        let isIdle = gathering.isEmpty && proposer.isIdle
        let next = merging.wanted(
            applied: state.index, isIdle: isIdle, isEmptying: isBeginningEmpty, now: now.monotonic, pause: retryPause)
        switch next {
        case .nothing: break
        case .chunk(let number): send(.fetchChunk(number), to: source, epoch: candidate.epoch, &effects)
        case .done(let outcome):
            effects.observations.append(
                .merged(from: source.id, updates: outcome.updates, leftOut: outcome.leftOut))
            neighbours[place].follower.welcomedIn = candidate.epoch
            neighbours[place].hasFullState = false
            welcome(source, answering: outcome.position, needsTransfer: true, &effects)
        }
    }

    /// Whether what a merge brings is within what so many honest sides can have granted.
    ///
    /// What was granted is not lost, so a merge passes the bounds of announces: that many full tables become one. No
    /// side has more than its bounds and what was on its way, and there is a side for each tracker at most. What is
    /// beyond that a Byzantine member has made up. A swarm is bounded for itself, for its shard goes in one message.
    ///
    /// The master alone asks, before the update is in the log. What is there all trackers apply without question,
    /// whatever their own settings say.
    private func hasRoom(toMerge update: Update) -> Bool {
        let (limits, table) = (configuration.limits, state.table)
        let sides = neighbours.all.count + 1
        func isFull(_ count: Int, _ limit: Int) -> Bool {
            let most = min(Int64(limit), Int64(1) << 40) + 2 * Int64(limits.updatesPerEntry)
            return Int64(count) >= most * Int64(sides)
        }
        switch update {
        case .mergePeer(let peer):
            let (infoHash, address) = (peer.infoHash, peer.address.withoutZone)
            guard
                isFull(table.counts.torrents, limits.torrents) && !table.contains(infoHash)
                    || isFull(table.counts.peers, limits.peers)
                    || isFull(table.peers(at: address), limits.peersPerAddress) && !isTrusted(address)
                    || table.counts.peers >= 2 * limits.peersPerSwarm
                        && table.counts(of: infoHash).peers >= 2 * limits.peersPerSwarm
            else { return true }
            // Its latest word takes no room.
            return table.contains(infoHash, address)
        case .mergeCompleted(let infoHash, _, _):
            return !isFull(table.counts.torrents, limits.torrents) || table.contains(infoHash)
        case .registerTorrent(_, _, let name):
            return state.registry.count < limits.registeredTorrents && name.count <= Limits.maxNameByteCount
        case .console(.uploadPart(let part)):
            let (most, held) = (Int64(limits.torrentFilesByteCount), Int64(state.files.byteCount))
            // What has begun is finished.
            return part.number > 0 || held + Int64(part.byteCount) <= most * Int64(sides)
        case .console(.mergeAccount(let account, _)):
            return state.accounts.count < Accounts.Bounds.accounts || state.accounts.find(account.name) != nil
        // A stop makes room, and a file without its parts is none.
        case .mergeStop, .setInterval, .console: return true
        case .announceIPv4, .announceIPv6, .expire, .unregisterTorrent, .setAccessMode, .listInfoHash, .unlistInfoHash,
            .putUser, .removeUser, .setMembers, .emptyShard:
            preconditionFailure("not an update of a merge")
        }
    }
}

// What planted mistakes do that is too long for one line: test only, see `PlantedBug`.

import Primitives
import Wire

#if PLANTED_BUGS

    extension TrackerNode {
        /// What a new master goes on with.
        func planted(inherited entry: Entry?) -> Entry? {
            switch configuration.plantedBug {
            case .inheritedNotProposed: return nil
            case .ownEntryInherited:
                guard let own = log.pending, own.header.previous == state.chain else { return entry }
                return own
            case .longestEntryInherited:
                var longest = entry
                for ballots in candidate.answers {
                    guard let other = ballots.answer.pending,
                        other.header.index == state.index + 1, other.header.previous == state.chain,
                        other.bytes.count > longest?.bytes.count ?? 0
                    else { continue }
                    longest = other
                }
                return longest
            default: return entry
            }
        }

        /// The header by which an entry is applied.
        func planted(applied header: EntryHeader, _ now: ClockReading) -> EntryHeader {
            var header = header
            if has(.unequalTime) { header.time = now.wall }
            return header
        }

        /// Whether scrapes are answered without a question.
        func hasLease(_ now: ClockReading) -> Bool {
            has(.scrapeUnconfirmed)
                || has(.leaseByHearing) && detector.wasFollowed(now: now.monotonic)
        }

        /// Tells those who wait for an entry that it is not stored.
        mutating func tellRefused(_ entry: Entry, _ now: ClockReading, _ effects: inout Effects) {
            let tickets = (try? Tickets(entry.bytes, entry.header)) ?? Tickets()
            for ticket in tickets.tickets {
                refuse(number: ticket.number, of: tickets.life(of: ticket), .notStored, now, &effects)
            }
        }

        /// Whose turn it is among those that have said that they miss the master, by entries first.
        func rankOfSuspecters(_ now: ClockReading) -> Int {
            var ids = [admission.id]
            for neighbour in neighbours.all where neighbour.isUp && hasSuspected(neighbour, now) {
                ids.append(neighbour.life.id)
            }
            let order = policy.election.order(ids, after: candidate.lastMaster)
            guard let own = order.firstIndex(of: admission.id) else { return order.count }
            var rank = 0
            for (place, id) in order.enumerated() where id != admission.id {
                let index = neighbours[id: id]?.position.index ?? 0
                if index > state.index || index == state.index && place < own { rank += 1 }
            }
            return rank
        }

        /// Takes out whom this tracker's own clock finds silent.
        mutating func expireAlone(_ now: ClockReading) {
            let before = now.wall.seconds &- intervals.lifetime(state.told, at: now.wall.seconds)
            for shard in 0..<state.firstFileChunk - 1 {
                state.apply(.expire(shard: UInt32(shard), seenBefore: before, emptyBefore: 0))
            }
        }

        /// Takes the vote of one who is silent.
        mutating func dropSilentMember() {
            guard isQuorumMode, isServing, proposer.isIdle, gathering.isEmpty, state.members.count > 1 else {
                return
            }
            let silent = state.members.first { id in
                id != admission.id && neighbours[id: id]?.isUp == false
            }
            guard let silent else { return }
            gathering.append(.setMembers(state.members.filter { $0 != silent }))
        }

        /// What a merge brings.
        func planted(merged updates: [Update], from chunk: SnapshotChunk) -> [Update] {
            switch configuration.plantedBug {
            case .mergeForgetsPeers: return updates.filter { if case .mergePeer = $0 { false } else { true } }
            case .tombstoneIgnored: return updates.filter { if case .mergeStop = $0 { false } else { true } }
            case .mergeKeepsOlder:
                let all = (try? emptyState.mergeUpdates(from: chunk)) ?? []
                return all.map { update in
                    guard case .mergePeer(var peer) = update else { return update }
                    peer.lastSeen = state.time.seconds
                    return .mergePeer(peer)
                }
            case .mergeSumsCounters:
                return updates.map { update in
                    guard case .mergeCompleted(let infoHash, let origin, let count) = update else { return update }
                    let known = state.table.counts(of: infoHash).completed
                    return .mergeCompleted(infoHash, origin: origin, count: count &+ known)
                }
            default: return updates
            }
        }

        /// A scrape's answer from what this tracker holds; nil for what is no scrape.
        func scrapedAlone(_ request: BookedRequest, _ number: UInt64) -> AnsweredRequest? {
            guard case .datagram(let bytes) = router.content(of: number),
                case .scrape(_, _, let hashCount)? = try? TrackerRequest(bytes.span.bytes)
            else { return nil }
            let counts = (0..<hashCount).map { place in
                let counts = state.table.counts(of: InfoHash(Bytes20(bytes.span.bytes, at: 16 + 20 * place)))
                return ScrapeCounts(
                    seeders: counts.seeders, leechers: counts.leechers, completed: counts.completed)
            }
            return AnsweredRequest(number: number, content: .counts(counts))
        }
    }

    extension Update {
        /// An announce as if another client had begun the download; nil for what is no completed download.
        var begunAnew: Update? {
            switch self {
            case .announceIPv4(var announce) where announce.event == .completed:
                (announce.event, announce.left, announce.peerID) = (.started, 1, PeerID(Bytes20()))
                return .announceIPv4(announce)
            case .announceIPv6(var announce) where announce.event == .completed:
                (announce.event, announce.left, announce.peerID) = (.started, 1, PeerID(Bytes20()))
                return .announceIPv6(announce)
            default: return nil
            }
        }
    }

#endif

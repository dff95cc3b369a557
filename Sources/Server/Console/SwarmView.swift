// The swarms as lists, for people: read in slices, off the path of the datagrams.

import Datagrams
import Primitives
import Synchronization
import TrackerLogic
import Web
import Wire

/// The swarms as lists, for people: what is applied, at most two seconds old.
///
/// The node's thread is asked for a few shards at a time, so that no announce waits for a list; searching and sorting
/// are done on what it gave, elsewhere. While nobody looks, nothing is read, and after a minute nothing is kept.
///
/// Not from the database's tables: they lag behind by up to ten minutes.
actor SwarmView: SwarmProvider {
    /// How old a copy may be that is still shown.
    static let age = Duration.milliseconds(1500)
    /// How long a copy is kept that nobody looks at.
    static let idle = Duration.seconds(60)
    /// Shards in one slice: some thousand swarms of a million.
    static let shardsPerSlice = 8
    /// Peers in one slice.
    static let peersPerSlice = 2048
    /// Peers of one swarm that are looked at; the rest is counted.
    static let maxPeers = 1 << 18

    private struct Copy {
        var swarms: [SwarmSummary]
        var asOf: WallTime
        var at: Instant
    }

    private struct Names {
        var digest: UInt64
        var torrents: [InfoHash: RegisteredTorrent]
    }

    private let inbox: NodeInbox
    private var copy: Copy?
    private var names = Names(digest: 0, torrents: [:])
    private var reading: Task<Copy?, Never>?
    private var lookedAt = Instant(nanoseconds: 0)

    init(inbox: NodeInbox) { self.inbox = inbox }

    // MARK: - Swarms

    func swarms(_ query: SwarmQuery) async -> SwarmsPage? {
        guard let copy = await current(), let torrents = await registered() else { return nil }
        // Off this actor: others may look meanwhile.
        return await Task.detached { SwarmPageMaker(query, torrents).page(of: copy.swarms, asOf: copy.asOf) }.value
    }

    func swarm(_ infoHash: InfoHash) async -> (row: SwarmRow, asOf: WallTime)? {
        let answer = await inbox.ask { node in
            (
                node.state.table.contains(infoHash), node.state.table.counts(of: infoHash),
                node.state.registry.find(infoHash)
            )
        }
        guard let (isThere, counts, torrent) = answer, isThere || torrent != nil else { return nil }
        return (SwarmRow(infoHash: infoHash, counts: counts, registered: torrent), Clock.read().wall)
    }

    private func current() async -> Copy? {
        let now = Clock.monotonic()
        lookedAt = now
        if let copy, now - copy.at < SwarmView.age { return copy }
        if let reading { return await reading.value }
        let task = Task.detached { [inbox, expected = copy?.swarms.count ?? 0] in
            await SwarmView.read(inbox, expected: expected)
        }
        reading = task
        copy = await task.value
        reading = nil
        forgetLater()
        return copy
    }

    private static func read(_ inbox: NodeInbox, expected: Int) async -> Copy? {
        let (asOf, at) = (Clock.read().wall, Clock.monotonic())
        guard let shardCount = await inbox.ask({ $0.state.table.shardCount }) else { return nil }
        var swarms: [SwarmSummary] = []
        swarms.reserveCapacity(expected + expected / 16)
        var shard = 0
        while shard < shardCount {
            let slice = shard..<min(shard + shardsPerSlice, shardCount)
            let part = await inbox.ask { node in
                var part: [SwarmSummary] = []
                for shard in slice { node.state.table.list(shard: shard, into: &part) }
                return part
            }
            guard let part else { return nil }
            swarms += part
            shard = slice.upperBound
        }
        return Copy(swarms: swarms, asOf: asOf, at: at)
    }

    private func forgetLater() {
        Task { [weak self] in
            try? await Task.sleep(for: .nanoseconds(SwarmView.idle.nanoseconds))
            await self?.forgetIfIdle()
        }
    }

    private func forgetIfIdle() {
        if Clock.monotonic() - lookedAt >= SwarmView.idle { copy = nil }
    }

    /// The registry by info hash, made anew when it has changed.
    private func registered() async -> [InfoHash: RegisteredTorrent]? {
        let known = names.digest
        let answer = await inbox.ask { node -> (UInt64, [RegisteredTorrent]?) in
            let registry = node.state.registry
            return (registry.digest, registry.digest == known ? nil : registry.all)
        }
        guard let (digest, all) = answer else { return nil }
        if let all {
            names = Names(digest: digest, torrents: Dictionary(all.map { ($0.infoHash, $0) }) { first, _ in first })
        }
        return names.torrents
    }

    // MARK: - Peers

    func peers(of infoHash: InfoHash, _ query: PeerQuery) async -> PeersPage? {
        let asOf = Clock.read().wall
        var peers: [PeerImage] = []
        var total = 0
        while peers.count < SwarmView.maxPeers {
            let start = peers.count
            let answer = await inbox.ask { node in
                (
                    node.state.table.peers(of: infoHash, from: start, atMost: SwarmView.peersPerSlice),
                    node.state.table.contains(infoHash) || node.state.registry.find(infoHash) != nil
                )
            }
            guard let (part, isThere) = answer, isThere else { return nil }
            total = part.total
            peers += part.peers
            if part.peers.count < SwarmView.peersPerSlice { break }
        }
        return PeerPageMaker(query).page(of: peers, total: total, asOf: asOf)
    }
}

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
    /// Swarms after which a slice ends: a shard of a million swarms has a thousand.
    static let swarmsPerSlice = 4096
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
        /// Where the torrent files come from that are here.
        var files: [InfoHash: AccountOrigin] = [:]
    }

    private let inbox: NodeInbox
    private var copy: Copy?
    private var names = Names(digest: 0, torrents: [:])
    private var reading: Task<Copy?, Never>?
    private var lookedAt = Instant(nanoseconds: 0)

    init(inbox: NodeInbox) { self.inbox = inbox }

    // MARK: - Swarms

    func swarms(_ query: SwarmQuery) async -> SwarmsPage? {
        guard let copy = await current(), let names = await named() else { return nil }
        // Off this actor: others may look meanwhile.
        return await Task.detached {
            SwarmPageMaker(query, names.torrents, files: names.files).page(of: copy.swarms, asOf: copy.asOf)
        }.value
    }

    func swarm(_ infoHash: InfoHash) async -> Sought<(row: SwarmRow, asOf: WallTime)>? {
        let answer = await inbox.ask { node in
            (
                node.state.table.contains(infoHash), node.state.table.counts(of: infoHash),
                node.state.registry.find(infoHash), node.state.files.find(infoHash)?.head
            )
        }
        guard let (isThere, counts, listed, head) = answer else { return nil }
        guard isThere || listed != nil || head != nil else { return .absent }
        let torrent = head.map(RegisteredTorrent.init) ?? listed
        let row = SwarmRow(infoHash: infoHash, counts: counts, registered: torrent, file: head?.origin)
        return .found((row, Clock.read().wall))
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
            let first = shard
            let slice = await inbox.ask { node in
                var (part, next): ([SwarmSummary], Int) = ([], first)
                while next < shardCount, part.count < swarmsPerSlice {
                    node.state.table.list(shard: next, into: &part)
                    next += 1
                }
                return (part: part, end: next)
            }
            guard let slice else { return nil }
            swarms += slice.part
            shard = slice.end
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

    /// Registry and uploaded torrents by info hash, made anew when they have changed.
    private func named() async -> Names? {
        let known = names.digest
        let answer = await inbox.ask { node -> (UInt64, [RegisteredTorrent], [TorrentFileHead])? in
            let digest = node.state.registry.digest ^ node.state.files.digest &* 3
            guard digest != known else { return nil }
            var heads: [TorrentFileHead] = []
            node.state.files.forEach { heads.append($0.head) }
            return (digest, node.state.registry.all, heads)
        }
        guard let answer else { return nil }
        if let (digest, all, heads) = answer {
            var torrents = Dictionary(all.map { ($0.infoHash, $0) }) { first, _ in first }
            for head in heads { torrents[head.upload.infoHash] = RegisteredTorrent(head) }
            let files = Dictionary(heads.map { ($0.upload.infoHash, $0.origin) }) { first, _ in first }
            names = Names(digest: digest, torrents: torrents, files: files)
        }
        return names
    }

    // MARK: - Peers

    func peers(of infoHash: InfoHash, _ query: PeerQuery) async -> Sought<PeersPage>? {
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
            guard let (part, isThere) = answer else { return nil }
            guard isThere else { return .absent }
            total = part.total
            peers += part.peers
            if part.peers.count < SwarmView.peersPerSlice { break }
        }
        return .found(PeerPageMaker(query).page(of: peers, total: total, asOf: asOf))
    }
}

extension RegisteredTorrent {
    /// What an uploaded file says.
    init(_ head: TorrentFileHead) {
        self.init(
            infoHash: head.upload.infoHash, name: displayText(head.name), byteCount: head.contentByteCount)
    }
}

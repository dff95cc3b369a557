// A committed entry: each update is applied, and whoever waits for it is answered from the swarm as it then is.

import Primitives
import Wire

extension TrackerNode {
    mutating func count(_ outcome: ReplicatedState.Outcome) {
        switch outcome {
        case .announced(let place): if place.isNewlyCompleted { counters.completed += 1 }
        case .expired(let peers): counters.expired += UInt64(peers)
        case .accessChanged, .registryChanged, .membersChanged, .intervalChanged, .merged, .consoleChanged: break
        }
    }

    /// Tells somebody who waits what his announce has come to; whoever sends that counts it, master or not.
    @inline(__always)
    mutating func answer(
        _ request: WaitingRequest, _ update: Update, _ outcome: ReplicatedState.Outcome, _ effects: inout Effects
    ) {
        guard case .announced(let place) = outcome else { return }
        counters.announces += 1
        let counts =
            place.slot.map { state.table.shards[place.shard].torrents[$0].counts } ?? SwarmCounts()
        if let id = request.clientRequest {
            answer(id, request, update, place, counts, &effects)
            return
        }
        let interval = intervals.spread(toldInterval, &random)
        let isIPv4 = if case .announceIPv4 = update { true } else { false }
        let wanted = Int(request.numWant)
        let limit = ReplyWriter.announceHeaderByteCount + wanted * (isIPv4 ? 6 : 18)
        var random = self.random
        effects.replies.append(to: request.remote, from: request.local, socket: request.socket, limit: limit) { room in
            let header = ReplyWriter.announceHeader(
                request.transactionID, interval: interval, leechers: counts.leechers, seeders: counts.seeders,
                into: room)
            guard let slot = place.slot, let own = place.position else { return header }
            let rest = UnsafeMutableRawBufferPointer(rebasing: room[header...])
            return header
                + state.table.shards[place.shard].choosePeers(
                    wanted, of: slot, isIPv4: isIPv4, own: own, random: &random, into: rest)
        }
        self.random = random
    }

    @inline(__always)
    private var toldInterval: ToldInterval { has(.intervalOfOne) && phase != .master ? ToldInterval() : state.told }

    private mutating func answer(
        _ id: UInt64, _ request: WaitingRequest, _ update: Update, _ place: SwarmTable.Place, _ counts: SwarmCounts,
        _ effects: inout Effects
    ) {
        var answer = AnnounceAnswer(
            interval: intervals.spread(toldInterval, &random), minInterval: configuration.minInterval, counts: counts,
            ipv4: [],
            ipv6: [])
        if let slot = place.slot, let own = place.position {
            let isIPv4 = if case .announceIPv4 = update { true } else { false }
            state.table.shards[place.shard].choosePeersWithIDs(
                Int(request.numWant), of: slot, isIPv4: isIPv4, own: own, random: &random, into: &answer)
        }
        effects.answers.append(Answer(id: id, content: .announce(answer)))
    }

    /// Tells somebody who waits that his update has not come about.
    mutating func refuse(
        _ request: WaitingRequest, _ refusal: Refusal, _ now: ClockReading, _ effects: inout Effects
    ) {
        counters.errors += 1
        if let id = request.clientRequest {
            effects.answers.append(Answer(id: id, content: .failure(refusal)))
            return
        }
        effects.replies.append(to: request.remote, from: request.local, socket: request.socket, limit: 98) {
            ReplyWriter.error(request.transactionID, refusal.text, into: $0)
        }
    }
}

extension Shard {
    /// The peers of a reply over UDP, of the announcer's address family.
    ///
    /// - Returns: bytes written.
    func choosePeers(
        _ wanted: Int, of slot: Int, isIPv4: Bool, own: Int, random: inout RandomStream,
        into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        let torrent = torrents[slot]
        if isIPv4 {
            return 6
                * ipv4.choose(
                    wanted, from: torrent.ipv4, own: own, isSeeder: own >= torrent.ipv4.leechers, random: &random,
                    into: room)
        }
        return 18
            * ipv6.choose(
                wanted, from: torrent.ipv6, own: own, isSeeder: own >= torrent.ipv6.leechers, random: &random,
                into: room)
    }

    /// The peers of a reply over HTTP: of both address families, `wanted` in all, the announcer's own family first.
    func choosePeersWithIDs(
        _ wanted: Int, of slot: Int, isIPv4: Bool, own: Int, random: inout RandomStream,
        into answer: inout AnnounceAnswer
    ) {
        let torrent = torrents[slot]
        let isSeeder = own >= (isIPv4 ? torrent.ipv4 : torrent.ipv6).leechers
        if isIPv4 {
            answer.ipv4 = ipv4.chooseWithIDs(
                wanted, from: torrent.ipv4, own: own, isSeeder: isSeeder, random: &random)
            answer.ipv6 = ipv6.chooseWithIDs(
                wanted - answer.ipv4.count, from: torrent.ipv6, own: nil, isSeeder: isSeeder, random: &random)
        } else {
            answer.ipv6 = ipv6.chooseWithIDs(
                wanted, from: torrent.ipv6, own: own, isSeeder: isSeeder, random: &random)
            answer.ipv4 = ipv4.chooseWithIDs(
                wanted - answer.ipv6.count, from: torrent.ipv4, own: nil, isSeeder: isSeeder, random: &random)
        }
    }
}

// What a merge may say after a partition.

import Primitives
import TrackerLogic
import Wire

/// The times of the latest announces of one peer of one swarm; seconds since 1970.
struct PeerWords: Sendable {
    var infoHash: InfoHash
    var address: SocketAddress
    var stoppedAt: UInt32 = 0
    /// The latest time that a repository may say it was seen: one that comes back after a stop is later than the stop,
    /// by whatever clock that was.
    var seenAt: UInt32 = 0
    /// The entry that held the stop.
    var stoppedIn: UInt64 = 0
}

struct CompletedInLog: Sendable {
    var infoHash: InfoHash
    var origin: UInt32
    var count: UInt32 = 0
}

/// What a merge may say after a partition: the latest word on each peer, and no download more often than it was told.
struct Merges: Sendable {
    /// How far a tracker has another's state: the least of what came with its chunks.
    private struct Merged: Sendable {
        var index = UInt64.max
        /// In which the other was when it sent them.
        var epoch = Epoch(round: .max, id: .max)
    }

    /// What has been said of peers, in any history (survivor mode).
    private var words: [PeerWords] = []
    /// For each tracker, the stops that it has applied since it last took a state over, and still remembers (survivor
    /// mode).
    private var stops: [[PeerWords]]
    /// For each tracker, how far it has the state of another that it is taking in (survivor mode).
    private var merged: [Merged]
    /// For each tracker, the epoch of the master whose history it took over last (survivor mode).
    private var tookOverIn: [Epoch]
    /// Completed downloads in the entries of each master, in any history (survivor mode).
    private var completed: [CompletedInLog] = []

    init(nodeCount: Int) {
        stops = Array(repeating: [], count: nodeCount)
        merged = Array(repeating: Merged(), count: nodeCount)
        tookOverIn = Array(repeating: .zero, count: nodeCount)
    }

    /// What a step has to do with merges.
    mutating func check(_ step: borrowing Step, _ event: Event, _ effects: Effects, _ scene: inout Scene) {
        if step.kind == .started { stops[step.node] = [] }
        if !scene.promises.hasOneHistory, step.kind.isMessage { noteMerge(event, effects, step) }
        for observation in effects.observations {
            if case .transferBegan = observation {
                stops[step.node] = []
                if case .messageReceived(let message) = event { tookOverIn[step.node] = message.epoch }
            }
            if case .merged = observation, let (source, _, _) = Merges.source(of: effects, scene) {
                checkMerged(source, step, &scene)
            }
        }
        if !scene.promises.hasOneHistory, !step.applied.isEmpty {
            noteStops(step, interval: scene.nodes[step.node].configuration.interval)
        }
    }

    /// A value is applied for the first time, in some history.
    mutating func noteWords(_ entry: Entry, _ step: borrowing Step, _ scene: inout Scene) {
        guard !scene.promises.hasOneHistory else { return }
        var cursor = UpdateCursor(entry.header)
        while let update = try? cursor.next(entry.bytes) {
            if let announced = Announced(update) {
                note(announced, entry.header)
            } else {
                checkMerge(update, step, &scene)
            }
        }
    }

    private mutating func note(_ announced: Announced, _ header: EntryHeader) {
        let place = place(announced.infoHash, announced.address)
        let seconds = header.time.seconds
        if announced.event == .stopped {
            // A stop is never before what it ends, by whatever clock that was.
            words[place].stoppedAt = max(words[place].stoppedAt, words[place].seenAt, seconds)
        } else {
            let afterStop = words[place].stoppedAt == 0 ? 0 : words[place].stoppedAt + 1
            words[place].seenAt = max(words[place].seenAt, seconds, afterStop)
        }
        guard announced.event == .completed else { return }
        let known = completed.firstIndex { $0.origin == header.origin && $0.infoHash == announced.infoHash }
        if known == nil {
            completed.append(CompletedInLog(infoHash: announced.infoHash, origin: header.origin))
        }
        completed[known ?? completed.count - 1].count += 1
    }

    private mutating func place(_ infoHash: InfoHash, _ address: SocketAddress) -> Int {
        if let known = words.firstIndex(where: { $0.address == address && $0.infoHash == infoHash }) {
            return known
        }
        words.append(PeerWords(infoHash: infoHash, address: address))
        return words.count - 1
    }

    /// A merge repeats what was said, no more.
    private mutating func checkMerge(_ update: Update, _ step: borrowing Step, _ scene: inout Scene) {
        switch update {
        case .mergePeer(let peer):
            let latest = words[place(peer.infoHash, peer.address)].seenAt
            guard peer.lastSeen > latest else { return }
            scene.violate(
                .mergeTakesTheLatest, at: step.time,
                "a merge says that peer \(peer.address) was seen \(peer.lastSeen - latest) s after it was")
        case .mergeStop(let infoHash, let address, let time):
            let latest = words[place(infoHash, address)].stoppedAt
            guard time > latest else { return }
            scene.violate(
                .mergeTakesTheLatest, at: step.time,
                "a merge says that peer \(address) has stopped \(time - latest) s after it had")
        case .mergeCompleted(let infoHash, let origin, let count):
            let counted = completed.first { $0.origin == origin && $0.infoHash == infoHash }?.count ?? 0
            guard count > counted else { return }
            scene.violate(
                .mergeTakesTheLatest, at: step.time,
                "a merge says that tracker \(origin) has counted \(count) downloads, and it has heard of \(counted)")
        default: break
        }
    }

    /// A master that asks for another's first chunk begins a merge; where a timeout has it ask, it asks again.
    ///
    /// The chunks that come may be answers to what was asked before.
    private mutating func noteMerge(_ event: Event, _ effects: Effects, _ step: borrowing Step) {
        guard case .messageReceived(let message) = event else { return }
        if case .chunk(_, let index, _) = message.body {
            merged[step.node].index = min(merged[step.node].index, index)
            merged[step.node].epoch = min(merged[step.node].epoch, message.epoch)
        }
        if effects.messages.contains(where: { $0.body == .fetchChunk(0) }) { merged[step.node] = Merged() }
    }

    /// Whose state was taken over, and as of where: whoever is welcomed anew then. (By the life: two may have one id.)
    static func source(of effects: Effects, _ scene: Scene) -> (node: Int, life: Life, position: Position)? {
        for message in effects.messages {
            guard case .welcome(let welcome) = message.body, welcome.needsTransfer,
                case .one(let life) = message.destination
            else { continue }
            return scene.node(of: life).map { ($0, life, welcome.answered) }
        }
        return nil
    }

    private mutating func noteStops(_ step: borrowing Step, interval: UInt32) {
        for entry in step.applied {
            let header = entry.header
            var cursor = UpdateCursor(header)
            while let update = try? cursor.next(entry.bytes) {
                // The stop of a whole cluster leaves nothing of its swarms, and so no word on who had left them.
                if case .emptyShard(let shard) = update, let table = step.table {
                    stops[step.node].removeAll { table.shard(of: $0.infoHash) == shard }
                }
                // A stop is remembered for as long as a silent peer is, by the time of this history. Whoever merges it
                // may have decided nothing for so long, and still have the peer.
                if case .expire(let shard, let seenBefore, _) = update, let table = step.table {
                    stops[step.node].removeAll {
                        $0.stoppedAt < seenBefore && $0.stoppedAt + interval <= header.time.seconds
                            && table.shard(of: $0.infoHash) == shard
                    }
                }
                guard let announced = Announced(update), announced.event == .stopped else { continue }
                let stop = PeerWords(
                    infoHash: announced.infoHash, address: announced.address, stoppedAt: header.time.seconds,
                    stoppedIn: header.index)
                stops[step.node].append(stop)
            }
        }
    }

    /// Whether a merge has come to its end in a step.
    static func isMerged(_ effects: borrowing Effects) -> Bool {
        effects.observations.contains { if case .merged = $0 { true } else { false } }
    }

    /// Who has stopped on the other side, and has not been heard since, is not brought back by a merge.
    ///
    /// What the other side has applied since it sent its state is not in what was taken in, nor is anything of a
    /// history that it has taken over since.
    private mutating func checkMerged(_ source: Int, _ step: borrowing Step, _ scene: inout Scene) {
        guard scene.hasGoodClocks, let table = step.table else { return }
        let interval = scene.nodes[step.node].configuration.interval
        let merged = merged[step.node]
        guard merged.epoch >= tookOverIn[source] else { return }
        for stop in stops[source]
        where stop.stoppedAt + interval > step.view.time.seconds && stop.stoppedIn <= merged.index {
            let seenAt = words[place(stop.infoHash, stop.address)].seenAt
            guard stop.stoppedAt > seenAt, table.contains(stop.infoHash, stop.address) else { continue }
            scene.violate(
                .mergeTakesTheLatest, at: step.time,
                "peer \(stop.address) has stopped at \(scene.name(source)), and after the merge is at "
                    + "\(scene.name(step.node)) again"
            )
        }
    }
}

/// Rules that no reply breaks at once: who may stand, how voters change, what is kept until it is answered, what a
/// merge may say (rules 3, 6, 7, 12 and 18).

import Primitives
import TrackerLogic
import Wire

/// What the checkers of these rules remember.
struct RuleRecord: Sendable {
    /// For each tracker, when it was last told by each other that the master is missed.
    var suspicionHeardAt: [[Instant?]]
    /// Since when requests wait at each tracker; nil while none does.
    var waitingSince: [Instant?]
    /// Trackers that the operator has named in a change of the voters.
    var namedByOperator: [UInt32] = []
    /// Whether wall clocks differ by less than the life of a connection id allows.
    var hasGoodClocks = false
    /// What has been said of peers, in any history (survivor mode).
    var words: [PeerWords] = []
    /// For each tracker, the stops that it has applied since it last took a state over (survivor mode).
    var stops: [[PeerWords]]
    /// For each tracker, the entry of another's history up to which it has the state that it is taking over (survivor
    /// mode).
    var mergedThrough: [UInt64]
    /// Completed downloads in the entries of each master, in any history (survivor mode).
    var completed: [CompletedInLog] = []

    init(nodeCount: Int) {
        suspicionHeardAt = Array(repeating: Array(repeating: nil, count: nodeCount), count: nodeCount)
        waitingSince = Array(repeating: nil, count: nodeCount)
        stops = Array(repeating: [], count: nodeCount)
        mergedThrough = Array(repeating: .max, count: nodeCount)
    }
}

/// The times of the latest announces of one peer of one swarm; seconds since 1970.
struct PeerWords: Sendable {
    var infoHash: InfoHash
    var address: SocketAddress
    var announcedAt: UInt32 = 0
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

extension ClusterChecks {
    /// Peers are told by whole seconds, and one that stops and comes back moves on by one each time.
    private static let mergeSlack: UInt32 = 8
    /// Seconds by which two masters' clocks may differ, and two for what is told by whole seconds.
    private static let stopSlack: UInt32 = 6
    /// Requests may be dropped when they are 15 s old (BEP 15); by a fast clock, earlier.
    private static let keptFor = Duration.seconds(12)

    mutating func checkRules(_ step: ClusterStep, _ before: NodeSight, _ event: Event, _ effects: Effects) {
        noteSuspicion(event, step)
        if !promises.hasOneHistory { noteMerge(event, effects, step) }
        for observation in effects.observations {
            if case .stands(let epoch) = observation { checkStands(epoch, step, before, event) }
            if case .transferBegan = observation { rules.stops[step.node] = [] }
            if case .merged = observation, let source = mergedSource(effects) { checkMerged(source, step) }
        }
        if !promises.hasOneHistory { noteStops(step) }
        checkKept(step, before, effects)
        let tailCount = nodes[step.node].configuration.tailCount
        if step.sight.tailCount > max(1, tailCount) {
            violate(
                .queuesAreBounded, at: step.time,
                "\(name(step.node)) keeps \(step.sight.tailCount) entries, and may keep \(tailCount)")
        }
    }

    // MARK: - Standing

    private mutating func noteSuspicion(_ event: Event, _ step: ClusterStep) {
        switch event {
        case .messageReceived(let message):
            guard case .suspect = message.body, let sender = node(withID: message.sender.id) else { return }
            rules.suspicionHeardAt[step.node][sender] = step.time
        case .started:
            for node in nodes.indices { rules.suspicionHeardAt[step.node][node] = nil }
            rules.stops[step.node] = []
        case .commandReceived(.addMember(let id)), .commandReceived(.removeMember(let id)):
            rules.namedByOperator.append(id)
        case .commandReceived(.replaceMember(let id, let other)): rules.namedByOperator += [id, other]
        case .commandReceived, .datagramsReceived, .requestReceived, .busConnected, .busLost, .deadlineReached,
            .persisted, .persistFailed, .reportMade:
            break
        }
    }

    /// Nobody stands before a quorum misses the master, unless he is master, or is handed the role.
    private mutating func checkStands(
        _ epoch: Epoch, _ step: ClusterStep, _ before: NodeSight, _ event: Event
    ) {
        guard promises.membersDecide, before.leads == nil, let cluster = nodes[step.node].configuration.cluster else {
            return
        }
        if case .messageReceived(let message) = event, case .handover = message.body { return }
        // Clocks run at their own pace, and what was heard while it was held counts from then on.
        let limit = cluster.detectionTime * 2
        let suspecters = nodes.indices.filter { node in
            node == step.node || rules.suspicionHeardAt[step.node][node].map { step.time - $0 <= limit } == true
        }
        let ids = suspecters.map { nodes[$0].id }
        let isQuorum = [members, before.voters, step.sight.voters].contains { voters in
            ids.count(where: voters.contains) > voters.count / 2
        }
        guard !isQuorum else { return }
        violate(
            .electionsAreNeeded, at: step.time,
            "\(name(step.node)) stands for epoch \(epoch), and of the members \(members.inBrackets) only "
                + "\(ids.inBrackets) miss the master")
    }

    // MARK: - Voters

    /// Voters change one at a time, so that majorities overlap, and only at the operator's word.
    mutating func checkMembers(_ ids: [UInt32], _ step: ClusterStep) {
        let changed = ids.filter { !members.contains($0) } + members.filter { !ids.contains($0) }
        if changed.count > 1 {
            violate(
                .votersAreChosen, at: step.time,
                "the voters change from \(members.inBrackets) to \(ids.inBrackets) at once")
        }
        if let other = changed.first(where: { !rules.namedByOperator.contains($0) }) {
            violate(
                .votersAreChosen, at: step.time,
                "the voters change from \(members.inBrackets) to \(ids.inBrackets), and no operator has named \(other)")
        }
    }

    // MARK: - Requests

    /// A tracker keeps a request until it is answered, or its client has asked again.
    private mutating func checkKept(_ step: ClusterStep, _ before: NodeSight, _ effects: Effects) {
        let since = rules.waitingSince[step.node]
        rules.waitingSince[step.node] =
            step.sight.waitingRequests == 0 || before.life.incarnation != step.sight.life.incarnation
            ? nil : since ?? step.time
        // In a group, what another has answered is no longer waited for.
        guard !isGroup, let since, step.time - since < ClusterChecks.keptFor else { return }
        let replies = effects.replies.datagrams.count + effects.answers.count
        guard before.waitingRequests - step.sight.waitingRequests > replies else { return }
        let isExcused = effects.observations.contains { observation in
            switch observation {
            // Whoever fetches the state will not see what was decided of its requests.
            case .transferBegan, .drained, .storageFailed, .voteFailed: true
            default: false
            }
        }
        // Who leaves has waited for as long as it could.
        let leaves = effects.persists.contains {
            if case .promise(let promise) = $0.change { promise.leftInOrder } else { false }
        }
        if isExcused || leaves { return }
        violate(
            .requestsAreKept, at: step.time,
            "\(before.waitingRequests) requests waited at \(name(step.node)), \(step.sight.waitingRequests) are left, "
                + "and \(replies) were answered")
    }

    /// A connection id that a tracker has issued is good at all of them.
    mutating func checkExpired(_ client: Int, _ places: [Int], _ step: ClusterStep) {
        guard rules.hasGoodClocks || nodes.count == 1 else { return }
        let asks = books[client].asks
        guard places.allSatisfy({ asks[$0].connectionID != nil && asks[$0].isFresh }) else { return }
        violate(
            .connectionIDsLast, at: step.time,
            "\(name(step.node)) refuses the connection id of client \(client), which a tracker has just issued")
    }

    // MARK: - Merges

    /// A value is applied for the first time, in some history.
    mutating func noteWords(_ header: EntryHeader, _ entry: [UInt8], _ step: ClusterStep) {
        guard !promises.hasOneHistory else { return }
        var cursor = UpdateCursor(header)
        while let update = try? cursor.next(entry) {
            if let announced = Announced(update) {
                note(announced, header)
            } else {
                checkMerge(update, step)
            }
        }
    }

    private mutating func note(_ announced: Announced, _ header: EntryHeader) {
        let place = place(announced.infoHash, announced.address)
        let seconds = header.time.seconds
        if announced.event == .stopped {
            rules.words[place].stoppedAt = max(rules.words[place].stoppedAt, seconds)
        } else {
            rules.words[place].announcedAt = max(rules.words[place].announcedAt, seconds)
            let afterStop = rules.words[place].stoppedAt == 0 ? 0 : rules.words[place].stoppedAt + 1
            rules.words[place].seenAt = max(rules.words[place].seenAt, seconds, afterStop)
        }
        guard announced.event == .completed else { return }
        let known = rules.completed.firstIndex { $0.origin == header.origin && $0.infoHash == announced.infoHash }
        if known == nil {
            rules.completed.append(CompletedInLog(infoHash: announced.infoHash, origin: header.origin))
        }
        rules.completed[known ?? rules.completed.count - 1].count += 1
    }

    private mutating func place(_ infoHash: InfoHash, _ address: SocketAddress) -> Int {
        if let known = rules.words.firstIndex(where: { $0.address == address && $0.infoHash == infoHash }) {
            return known
        }
        rules.words.append(PeerWords(infoHash: infoHash, address: address))
        return rules.words.count - 1
    }

    /// A merge repeats what was said, no more.
    private mutating func checkMerge(_ update: Update, _ step: ClusterStep) {
        switch update {
        case .mergePeer(let peer):
            let latest = rules.words[place(peer.infoHash, peer.address)].seenAt
            guard peer.lastSeen > latest + ClusterChecks.mergeSlack else { return }
            violate(
                .mergeTakesTheLatest, at: step.time,
                "a merge says that peer \(peer.address) was seen \(peer.lastSeen - latest) s after it was")
        case .mergeCompleted(let infoHash, let origin, let count):
            let counted = rules.completed.first { $0.origin == origin && $0.infoHash == infoHash }?.count ?? 0
            guard count > counted else { return }
            violate(
                .mergeTakesTheLatest, at: step.time,
                "a merge says that tracker \(origin) has counted \(count) downloads, and it has heard of \(counted)")
        default: break
        }
    }

    /// A master that asks for another's first chunk begins a merge; where a timeout has it ask, it asks again.
    ///
    /// The chunks that come may be answers to what was asked before.
    private mutating func noteMerge(_ event: Event, _ effects: Effects, _ step: ClusterStep) {
        guard case .messageReceived(let message) = event else { return }
        if case .chunk(_, let index, _) = message.body {
            rules.mergedThrough[step.node] = min(rules.mergedThrough[step.node], index)
        }
        if effects.messages.contains(where: { $0.body == .fetchChunk(0) }) { rules.mergedThrough[step.node] = .max }
    }

    /// Whose state was taken over: whoever is welcomed anew then. (By the life: two may have one id.)
    private func mergedSource(_ effects: Effects) -> Int? {
        for message in effects.messages {
            guard case .welcome(let welcome) = message.body, welcome.needsTransfer,
                case .one(let life) = message.destination
            else { continue }
            return node(of: life)
        }
        return nil
    }

    private mutating func noteStops(_ step: ClusterStep) {
        for entry in step.applied {
            guard let header = try? EntryHeader(entry) else { continue }
            var cursor = UpdateCursor(header)
            while let update = try? cursor.next(entry) {
                guard let announced = Announced(update), announced.event == .stopped else { continue }
                let stop = PeerWords(
                    infoHash: announced.infoHash, address: announced.address, stoppedAt: header.time.seconds,
                    stoppedIn: header.index)
                rules.stops[step.node].append(stop)
            }
        }
    }

    /// Whether a merge has come to its end in a step.
    static func isMerged(_ effects: borrowing Effects) -> Bool {
        effects.observations.contains { if case .merged = $0 { true } else { false } }
    }

    /// Who has stopped on the other side, and has not been heard since, is not brought back by a merge.
    ///
    /// What the other side has applied since it sent its state is not in what was taken over.
    private mutating func checkMerged(_ source: Int, _ step: ClusterStep) {
        guard rules.hasGoodClocks, let table = step.table else { return }
        let interval = nodes[step.node].configuration.interval
        let through = rules.mergedThrough[step.node]
        for stop in rules.stops[source]
        where stop.stoppedAt + interval > step.sight.time.seconds && stop.stoppedIn <= through {
            let announcedAt = rules.words[place(stop.infoHash, stop.address)].announcedAt
            guard stop.stoppedAt > announcedAt + ClusterChecks.stopSlack, table.contains(stop.infoHash, stop.address)
            else { continue }
            violate(
                .mergeTakesTheLatest, at: step.time,
                "peer \(stop.address) has stopped at \(name(source)), and after the merge is at \(name(step.node)) again"
            )
        }
    }
}

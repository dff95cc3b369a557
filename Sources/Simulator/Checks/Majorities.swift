// What needs a majority that has said so itself.

import Primitives
import TrackerLogic
import Wire

/// What needs a majority that has said so itself: to lead, to propose, to answer a read, to take in one more voter.
///
/// These are rules, not outcomes: a tracker that leads by too few promises loses nothing until another one leads beside
/// it, and a read that nobody has confirmed is mostly right. So what is looked at is what was said, by whom, and when;
/// not what became of it.
///
/// In quorum mode voters are the members that are decided, in survivor mode those whom the master takes for active: of
/// the step before and of the step itself, whichever a tracker has gone by.
struct Majorities: Sendable {
    /// A voter's word to a master that it still is one.
    private struct Confirmed: Sendable {
        var round: UInt64
        var epoch: Epoch
        var saidAt: Instant
    }

    private struct Heard: Sendable {
        var id: UInt32
        var epoch: Epoch
        var saidAt: Instant
    }

    /// A read of another tracker's client.
    private struct ForwardedRead: Sendable {
        var life: Life
        var number: UInt64
        var heardAt: Instant
    }

    private struct Voter: Sendable {
        /// The epochs whose candidates it has answered, the latest last.
        var answered: [Epoch] = []
        /// What it has said to masters, the latest last.
        var confirmed: [Confirmed] = []
        /// As master: of each other, by its id, when the latest word that has come from it was said, and in which
        /// epoch.
        var heard: [Heard] = []
        /// As master: reads that were forwarded to it, the latest last.
        var reads: [ForwardedRead] = []
        /// The last entry that it has proposed as new.
        var proposed: Ballot?
        /// The epoch that it led when it was last looked at.
        var led: Epoch?
    }

    private static let answeredCount = 16
    private static let confirmedCount = 64
    private static let readCount = 512

    private var voters: [Voter]

    init(nodeCount: Int) { voters = Array(repeating: Voter(), count: nodeCount) }

    // MARK: - What is said and heard

    /// What a step has to do with majorities; before what is said to clients in it is looked at.
    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        if step.kind == .confirmed || step.kind == .forward, case .messageReceived(let message) = event {
            hear(message, step, before, scene)
        }
        checkLeader(step, before, &scene)
        for message in effects.messages {
            switch message.body {
            case .answer:
                if voters[step.node].answered.last == message.epoch { break }
                if voters[step.node].answered.count == Majorities.answeredCount {
                    voters[step.node].answered.removeFirst()
                }
                voters[step.node].answered.append(message.epoch)
            case .confirmed(let round):
                if voters[step.node].confirmed.count == Majorities.confirmedCount {
                    voters[step.node].confirmed.removeFirst(Majorities.confirmedCount / 2)
                }
                voters[step.node].confirmed.append(
                    Confirmed(round: round, epoch: message.epoch, saidAt: step.time))
            case .prepare(let entry, _): checkProposal(entry, step, before, &scene)
            case .answered(let answers):
                guard case .one(let life) = message.destination else { break }
                for answer in answers { checkAnswered(answer, life, step, before, &scene) }
            case .keepalive, .suspect, .election, .coordinator, .ok, .error, .commit, .confirm, .fetch, .entries,
                .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward, .handover, .leave, .stop,
                .report, .order, .ordered:
                break
            }
        }
    }

    private mutating func hear(
        _ message: ClusterMessage, _ step: borrowing Step, _ before: NodeView, _ scene: Scene
    ) {
        switch message.body {
        case .confirmed(let round):
            // On a shared bus words for other masters are heard, too. Their epochs may be later, and who says them may
            // have the number of a voter of this master: they take no place of what that one says.
            guard message.epoch == before.leads || message.epoch == step.view.leads,
                let sender = scene.node(of: message.sender)
            else { return }
            let said = voters[sender].confirmed.last { $0.round == round && $0.epoch == message.epoch }
            guard let said else { return }
            let heard = Heard(id: message.sender.id, epoch: said.epoch, saidAt: said.saidAt)
            guard let place = voters[step.node].heard.firstIndex(where: { $0.id == heard.id }) else {
                return voters[step.node].heard.append(heard)
            }
            let known = voters[step.node].heard[place]
            // A word may come behind one that was said after it; what was said in an epoch that is over is void.
            if known.epoch == heard.epoch, known.saidAt >= heard.saidAt { return }
            voters[step.node].heard[place] = heard
        case .forward(let requests, _, _):
            for request in requests where request.content.isRead {
                let isKnown = voters[step.node].reads.contains {
                    $0.number == request.number && $0.life == message.sender
                }
                if isKnown { continue }
                if voters[step.node].reads.count == Majorities.readCount {
                    voters[step.node].reads.removeFirst(Majorities.readCount / 2)
                }
                voters[step.node].reads.append(
                    ForwardedRead(life: message.sender, number: request.number, heardAt: step.time))
            }
        default: break
        }
    }

    // MARK: - To lead

    /// Whether a majority of voters has promised an epoch, durably, and has not forgotten it.
    ///
    /// A promise that was lost with its disk counts on as long as its giver has no vote: nobody is let in before
    /// whoever was given it has counted it, or given up.
    private func isPromised(_ epoch: Epoch, by ids: [UInt32], _ step: borrowing Step, _ scene: Scene) -> Bool {
        let promised = ids.count { id in
            guard let node = scene.node(withID: id) else { return false }
            let record = scene.nodes[node]
            if node == step.node { return record.disk.promised >= epoch }
            return voters[node].answered.contains(epoch) && (record.disk.promised >= epoch || record.isLost)
        }
        return promised > ids.count / 2
    }

    /// Who leads has been promised its epoch by a majority, each on its own disk.
    private mutating func checkLeader(_ step: borrowing Step, _ before: NodeView, _ scene: inout Scene) {
        guard let led = step.view.leads, led != voters[step.node].led else { return }
        voters[step.node].led = led
        guard scene.promises.membersDecide else { return }
        if isPromised(led, by: step.view.voters, step, scene) { return }
        scene.violate(
            .leadersArePromised, at: step.time,
            "\(scene.name(step.node)) leads epoch \(led), which no majority of \(step.view.voters.inBrackets) has "
                + "promised on its disks")
    }

    /// What is proposed as new is proposed to voters of whom a majority has promised the epoch, and changes them by one
    /// at most; who is added holds the whole state on its disk.
    private mutating func checkProposal(
        _ entry: Entry, _ step: borrowing Step, _ before: NodeView, _ scene: inout Scene
    ) {
        let header = entry.header
        guard scene.promises.membersDecide, header.epoch == step.view.leads, header.attempt == 0,
            self.voters[step.node].proposed != header.ballot
        else { return }
        self.voters[step.node].proposed = header.ballot
        if !isPromised(header.epoch, by: step.view.voters, step, scene) {
            scene.violate(
                .leadersArePromised, at: step.time,
                "\(scene.name(step.node)) proposes entry \(header.index) in epoch \(header.epoch), which no majority "
                    + "of \(step.view.voters.inBrackets) has promised on its disks")
        }
        var changes = 0
        var voters = step.view.voters
        var cursor = UpdateCursor(header)
        while let update = try? cursor.next(entry.bytes) {
            guard case .setMembers(let ids) = update, ids != voters else { continue }
            for id in ids where !voters.contains(id) { checkAdded(id, entry, step, &scene) }
            changes += 1
            voters = ids
        }
        if changes > 1 {
            scene.violate(
                .votersAreChosen, at: step.time,
                "entry \(header.index) of \(scene.name(step.node)) changes the voters \(changes) times")
        }
    }

    /// Whoever loses its disk is taken for whole until the others have noticed.
    private func checkAdded(_ id: UInt32, _ entry: Entry, _ step: borrowing Step, _ scene: inout Scene) {
        guard let node = scene.node(withID: id) else {
            return scene.violate(
                .votersAreChosen, at: step.time, "entry \(entry.header.index) adds voter \(id), who is nobody")
        }
        if scene.nodes[node].disk.hasFullState { return }
        let cluster = scene.nodes[step.node].configuration.cluster
        if let lostAt = scene.nodes[node].lostAt, step.time - lostAt <= cluster.detectionTime * 3 { return }
        scene.violate(
            .votersHoldFullState, at: step.time,
            "entry \(entry.header.index) adds \(scene.name(node)) to the voters, which does not hold the whole state")
    }

    // MARK: - To answer a read

    /// Whether a majority has said, after a read had come to its master, that this one is master still.
    private func isConfirmed(since time: Instant, _ step: borrowing Step, _ before: NodeView, _ scene: Scene) -> Bool {
        [before.voters, step.view.voters].contains { ids in
            let confirmed = ids.count { id in
                if id == scene.nodes[step.node].id { return true }
                return voters[step.node].heard.contains { heard in
                    heard.id == id && heard.saidAt >= time
                        && (heard.epoch == before.leads || heard.epoch == step.view.leads)
                }
            }
            return confirmed > ids.count / 2
        }
    }

    /// A read of a tracker's own client is answered: by a master that was confirmed, or with its word.
    ///
    /// `heardAt` is when the read may have come at the earliest.
    func checkRead(
        heardAt: Instant, _ words: @autoclosure () -> String, _ step: borrowing Step, _ before: NodeView,
        _ event: Event,
        _ scene: inout Scene
    ) {
        if before.leads == nil, step.view.leads == nil {
            // Not a master: with the master's word, which was looked at when it was given.
            if case .messageReceived(let message) = event, case .answered = message.body { return }
            return scene.violate(
                .readsAreConfirmed, at: step.time,
                "\(scene.name(step.node)) is no master, and tells \(words()) counts of its own")
        }
        if isConfirmed(since: heardAt, step, before, scene) { return }
        scene.violate(
            .readsAreConfirmed, at: step.time,
            "\(scene.name(step.node)) tells \(words()) counts, and no majority of \(step.view.voters.inBrackets) has "
                + "said since it asked that this is the master")
    }

    /// A master answers a read that was forwarded to it.
    private func checkAnswered(
        _ answer: AnsweredRequest, _ life: Life, _ step: borrowing Step, _ before: NodeView, _ scene: inout Scene
    ) {
        guard case .counts = answer.content else { return }
        let read = voters[step.node].reads.last { $0.number == answer.number && $0.life == life }
        guard let read, !isConfirmed(since: read.heardAt, step, before, scene) else { return }
        scene.violate(
            .readsAreConfirmed, at: step.time,
            "\(scene.name(step.node)) answers read \(answer.number) of tracker \(life.id), and no majority of "
                + "\(step.view.voters.inBrackets) has said since it came that this is the master")
    }
}

extension ForwardedRequest.Content {
    /// Whether it goes into no entry.
    fileprivate var isRead: Bool {
        switch self {
        case .datagram(let bytes): bytes.count >= 16 && bytes[11] == 2
        case .announce: false
        case .scrape: true
        }
    }
}

// Whether a master answers those that want to be let in.

import Primitives
import TrackerLogic
import Wire

/// HELLOs that a master hears: each is answered at once, by WELCOME, REFUSED, a question for what the other knows, or a
/// word that it has to wait for its turn.
///
///     heard, and nothing said ── heard once more, and nothing said ──► wrong
///              │
///              └── something is said to that life, or it is master no more ──► forgotten
///
/// In quorum mode those without memory wait in silence until a majority has spoken without them. Who is merged waits
/// for what is under way.
struct Hellos: Sendable {
    private struct Unanswered: Sendable {
        var life: Life
        var epoch: Epoch
        var since: Instant
    }

    private struct Seat: Sendable {
        var unanswered: [Unanswered] = []
        /// Who knows nothing, and was told of other members.
        var strangers: [Life] = []
        /// Whom it has asked for its state as master of this epoch.
        var merged: [Life] = []
        var epoch = Epoch.zero
        /// The ids that it has let in as master of this epoch.
        var welcomed: [UInt32] = []
        /// Whether its operator wants somebody to go.
        var isRemovalAsked = false
    }

    /// That many are remembered.
    private static let maxCount = 8

    private var seats: [Seat]

    init(nodeCount: Int) { seats = Array(repeating: Seat(), count: nodeCount) }

    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        guard let epoch = step.view.leads, !scene.promises.diskDecides else { return }
        let node = step.node
        if seats[node].epoch != epoch { seats[node] = Seat(epoch: epoch) }
        if step.kind == .command {
            switch event {
            case .commandReceived(.removeMember), .commandReceived(.replaceMember): seats[node].isRemovalAsked = true
            default: break
            }
        }
        noteAnswers(node, effects)
        if seats[node].isRemovalAsked, scene.promises.membersDecide { checkRemoval(step, effects, &scene) }
        if scene.promises.membersDecide { checkMembers(step, event, effects, &scene) }
        guard step.kind == .hello, before.leads == epoch, case .messageReceived(let message) = event,
            case .hello(let hello) = message.body,
            message.sender.incarnation != before.life.incarnation, message.epoch <= epoch,
            hello.hasFullState || !scene.promises.membersDecide, !seats[node].merged.contains(message.sender)
        else { return }
        guard message.isFor(before.life), !isAnswered(message.sender, effects) else { return }
        guard let known = seats[node].unanswered.first(where: { $0.life == message.sender }) else {
            if seats[node].unanswered.count == Hellos.maxCount { seats[node].unanswered.removeFirst() }
            return seats[node].unanswered.append(Unanswered(life: message.sender, epoch: epoch, since: step.time))
        }
        guard step.time - known.since > scene.nodes[node].configuration.cluster.keepalive * 3 / 8 else { return }
        scene.violate(
            .hellosAreAnswered, at: step.time,
            "\(scene.name(node)) is master, hears HELLO of tracker \(message.sender.id) again and again, and says "
                + "nothing")
    }

    /// Who knows nothing, and was told of other members than its master and the log, is not let in (quorum mode).
    private mutating func checkMembers(_ step: borrowing Step, _ event: Event, _ effects: Effects, _ scene: inout Scene)
    {
        let node = step.node
        if step.kind == .hello, case .messageReceived(let message) = event,
            case .hello(let hello) = message.body, hello.isBlank,
            let sender = scene.node(of: message.sender)
        {
            let told = scene.nodes[sender].configuration.cluster.members
            let isKnown =
                told == scene.nodes[node].configuration.cluster.members || told == step.view.voters
                || told == scene.members
            seats[node].strangers.removeAll { $0 == message.sender }
            if !isKnown {
                if seats[node].strangers.count == Hellos.maxCount { seats[node].strangers.removeFirst() }
                seats[node].strangers.append(message.sender)
            }
        }
        guard !seats[node].strangers.isEmpty else { return }
        for message in effects.messages {
            guard case .welcome = message.body, case .one(let life) = message.destination,
                seats[node].strangers.contains(life)
            else { continue }
            scene.violate(
                .unlikeAreToldApart, at: step.time,
                "\(scene.name(node)) lets tracker \(life.id) in, which knows nothing and was told of other members")
        }
    }

    /// A member goes only where a majority of those that remain follows: at least, they have been let in (quorum mode).
    private func checkRemoval(_ step: borrowing Step, _ effects: Effects, _ scene: inout Scene) {
        for persist in effects.persists {
            guard case .append(let entry) = persist.change, let members = entry.members, members != step.view.voters,
                members.count < step.view.voters.count
            else { continue }
            let present = members.filter { $0 == step.view.life.id || seats[step.node].welcomed.contains($0) }
            guard present.count <= members.count / 2 else { continue }
            scene.violate(
                .votersAreChosen, at: step.time,
                "\(scene.name(step.node)) makes the voters \(members.inBrackets), and has let in only "
                    + "\(present.inBrackets) of them")
        }
    }

    private func isAnswered(_ life: Life, _ effects: Effects) -> Bool {
        effects.messages.contains { $0.destination == .one(life) }
    }

    private mutating func noteAnswers(_ node: Int, _ effects: Effects) {
        for message in effects.messages {
            guard case .one(let life) = message.destination else { continue }
            if !seats[node].unanswered.isEmpty { seats[node].unanswered.removeAll { $0.life == life } }
            if case .welcome = message.body, !seats[node].welcomed.contains(life.id) {
                seats[node].welcomed.append(life.id)
            }
            if case .fetchChunk = message.body, !seats[node].merged.contains(life) {
                if seats[node].merged.count == Hellos.maxCount { seats[node].merged.removeFirst() }
                seats[node].merged.append(life)
            }
        }
    }
}

extension Entry {
    /// Who votes from it on; nil where it does not say.
    fileprivate var members: [UInt32]? {
        var cursor = UpdateCursor(header)
        while let update = try? cursor.next(bytes) {
            if case .setMembers(let members) = update { return members }
        }
        return nil
    }
}

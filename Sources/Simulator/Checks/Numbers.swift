// Which tracker has which number, and why.

import Primitives
import TrackerLogic
import Wire

/// The numbers of trackers that are configured with none, and the refusals to let a tracker in.
///
/// A master gives a number; a tracker takes one itself only where nobody was there to give it one, and gives it up
/// where another life has it (rule 10). Who is refused by its own master heeds it, and nobody says so of himself.
///
///     without a number ── WELCOME as one, or alone for long enough ──► numbered ── another life has it ──► without
///
/// Only a tracker's own clock counts, and only what it heard: its own master it does not hear while a late word of an
/// earlier life has that number.
struct Numbers: Sendable {
    private struct Seat: Sendable {
        /// Since when it has its bus, by its own clock.
        var busSince: Instant?
        /// The master that it follows, which has welcomed it, and the epoch.
        var followed: Life?
        var followedIn = Epoch.zero
        /// To whom it has last said HELLO by name, and when.
        var asked: Life?
        var askedAt = Instant(nanoseconds: 0)
    }

    private var seats: [Seat]
    /// The highest round of an epoch that anybody has stood for.
    private var highestRound: UInt64 = 0

    init(nodeCount: Int) { seats = Array(repeating: Seat(), count: nodeCount) }

    /// A life begins.
    mutating func began(_ node: Int) { seats[node] = Seat() }

    /// `isHeard` is whether the tracker takes no other life of that number for up than the one that refuses it.
    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, isHeard: Bool,
        _ scene: inout Scene
    ) {
        guard !scene.promises.diskDecides else { return }
        if step.kind == .busConnected { seats[step.node].busSince = scene.nodes[step.node].monotonic }
        if step.view.life.id != before.life.id { checkNumber(step, before, event, effects, &scene) }
        if step.kind == .keepalive || step.kind == .refused || step.kind == .leave,
            case .messageReceived(let message) = event
        {
            switch message.body {
            case .refused(let refusal):
                if isHeard { checkRefusal(refusal, message, step, before, effects, &scene) }
            case .leave: checkLeave(message.sender, step, before, effects, &scene)
            case .keepalive: checkTwin(message, step, before, effects, &scene)
            default: break
            }
        }
        for observation in effects.observations {
            switch observation {
            case .joinRefused(let refusal): checkTold(refusal, event, step, before, &scene)
            case .follows(let master, let epoch): follow(master, epoch, event, step, &scene)
            case .stands(let epoch):
                seats[step.node].followed = nil
                checkRound(epoch, step, &scene)
            case .trackerUp(0), .trackerDown(0):
                scene.violate(
                    .statusIsTrue, at: step.time, "\(scene.name(step.node)) tells of a tracker 0, which nobody is")
            default: break
            }
        }
        if step.view.isFenced || step.view.leads != nil, seats[step.node].followed != nil {
            seats[step.node].followed = nil
        }
        if step.view.voters.first == 0, step.view.life.id != 0 {
            scene.violate(
                .statusIsTrue, at: step.time, "\(scene.name(step.node)) lets a tracker vote that has no number")
        }
        noteHello(step, effects)
    }

    private mutating func noteHello(_ step: borrowing Step, _ effects: Effects) {
        for message in effects.messages {
            switch (message.body, message.destination) {
            case (.hello, .one(let life)): (seats[step.node].asked, seats[step.node].askedAt) = (life, step.time)
            // It takes part no more.
            case (.leave, _): seats[step.node].followed = nil
            default: break
            }
        }
    }

    // MARK: - Following

    private mutating func follow(
        _ master: UInt32, _ epoch: Epoch, _ event: Event, _ step: borrowing Step, _ scene: inout Scene
    ) {
        let promised = scene.nodes[step.node].disk.promised
        if epoch < promised {
            scene.violate(
                .promiseIsKept, at: step.time,
                "\(scene.name(step.node)) follows tracker \(master) in epoch \(epoch), and has promised \(promised)")
        }
        guard case .messageReceived(let message) = event, message.sender.id == master else { return }
        (seats[step.node].followed, seats[step.node].followedIn) = (message.sender, epoch)
    }

    /// Whom one follows is not left because another one goes.
    private func checkLeave(
        _ sender: Life, _ step: borrowing Step, _ before: NodeView, _ effects: Effects, _ scene: inout Scene
    ) {
        guard let master = seats[step.node].followed, master.id != sender.id, !before.isFenced, step.view.isFenced
        else { return }
        // What it was fetching may have come to nothing in the same step.
        guard !Numbers.suspects(effects) else { return }
        scene.violate(
            .electionsAreNeeded, at: step.time,
            "\(scene.name(step.node)) leaves its master, tracker \(master.id), because tracker \(sender.id) goes")
    }

    /// A round is a little ahead of those before it, whatever somebody tells of others (docs/bounds.md).
    private mutating func checkRound(_ epoch: Epoch, _ step: borrowing Step, _ scene: inout Scene) {
        if epoch.round > highestRound + NumberBounds.roundStep {
            scene.violate(
                .queuesAreBounded, at: step.time,
                "\(scene.name(step.node)) stands for \(epoch), and the highest round before was \(highestRound)")
        }
        highestRound = max(highestRound, epoch.round)
    }

    // MARK: - Numbers

    private func checkNumber(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        let (old, new) = (before.life.id, step.view.life.id)
        guard new != 0 else {
            // Who was held up while it fetched the state finds out that it misses its master, and then listens.
            var before = before
            if !before.hasFullState, Numbers.suspects(effects) { before.isFenced = true }
            return checkGivenUp(step, before, event, &scene)
        }
        let isTold = effects.observations.contains(.idAssigned(new))
        if old != 0 || !isTold {
            scene.violate(
                .numbersHaveReasons, at: step.time,
                "a tracker has the number \(new) now, and had \(old)" + (isTold ? "" : "; nobody is told"))
        }
        if case .messageReceived(let message) = event, case .welcome(let welcome) = message.body, welcome.id == new {
            return
        }
        guard let since = seats[step.node].busSince, let clock = scene.nodes[step.node].monotonic else { return }
        guard clock - since < scene.nodes[step.node].configuration.cluster.detectionTime else { return }
        scene.violate(
            .numbersHaveReasons, at: step.time,
            "a tracker takes the number \(new) itself, \((clock - since).wholeMilliseconds) ms after it got its bus, "
                + "before anybody could give it one")
    }

    private func checkGivenUp(_ step: borrowing Step, _ before: NodeView, _ event: Event, _ scene: inout Scene) {
        guard !isTaken(step.node, before, event) else { return }
        scene.violate(
            .numbersHaveReasons, at: step.time,
            "a tracker gives up its number \(before.life.id), and nobody has a better right to it")
    }

    /// Whether what a tracker hears is a reason to give up its number.
    private func isTaken(_ node: Int, _ before: NodeView, _ event: Event) -> Bool {
        guard case .messageReceived(let message) = event else { return false }
        switch message.body {
        case .refused(.idTaken):
            guard let master = seats[node].followed, !before.isFenced else { return true }
            return master == message.sender && seats[node].followedIn == message.epoch
        case .keepalive(let keepalive):
            guard message.sender.id == before.life.id else { return false }
            if let epoch = before.leads {
                return keepalive.role == .slave
                    || keepalive.role == .master && Numbers.isLower(epoch, before.life, than: message)
            }
            return before.isFenced
                && (keepalive.role == .slave || keepalive.role == .master
                    || before.life.incarnation < message.sender.incarnation)
        default: return false
        }
    }

    /// Whether a master makes way for another one that has its number.
    static func isLower(_ epoch: Epoch, _ life: Life, than message: ClusterMessage) -> Bool {
        (epoch, life.incarnation) < (message.epoch, message.sender.incarnation)
    }

    /// A part of the cluster says that it has the number of a tracker that is none: that one gives it up.
    private func checkTwin(
        _ message: ClusterMessage, _ step: borrowing Step, _ before: NodeView, _ effects: Effects, _ scene: inout Scene
    ) {
        guard message.sender.id == before.life.id, before.life.id != 0, case .keepalive(let keepalive) = message.body,
            keepalive.role == .slave || keepalive.role == .master, isHeard(message, step, before, scene),
            scene.nodes[step.node].configuration.id == 0, message.isFor(before.life), before.isFenced,
            step.view.life.id == before.life.id, !Numbers.stands(effects)
        else { return }
        scene.violate(
            .numbersHaveReasons, at: step.time,
            "\(scene.name(step.node)) keeps its number, which another one has that is part of the cluster")
    }

    /// Whether a tracker has begun to stand in a step, before it listened.
    private static func stands(_ effects: Effects) -> Bool {
        effects.observations.contains { if case .stands = $0 { true } else { false } }
    }

    /// Whether a tracker has begun to follow a master in a step.
    static func follows(_ effects: Effects) -> Bool {
        effects.observations.contains { if case .follows = $0 { true } else { false } }
    }

    /// Whether a tracker misses its master since this step.
    private static func suspects(_ effects: Effects) -> Bool {
        effects.observations.contains { if case .suspects = $0 { true } else { false } }
    }

    /// Whether a tracker that is no master hears another one: its round is not far ahead, and it was told the same.
    private func isHeard(_ message: ClusterMessage, _ step: borrowing Step, _ before: NodeView, _ scene: Scene) -> Bool
    {
        guard message.sender.incarnation != before.life.incarnation, before.leads == nil, step.view.leads == nil,
            message.epoch.round <= scene.nodes[step.node].disk.promised.round + NumberBounds.roundStep,
            let sender = scene.node(of: message.sender)
        else { return false }
        return scene.nodes[sender].configuration.cluster == scene.nodes[step.node].configuration.cluster
    }

    // MARK: - Refusals

    /// A tracker is told that it may not join: the word of its own master puts it out, and no other.
    private func checkRefusal(
        _ refusal: JoinRefusal, _ message: ClusterMessage, _ step: borrowing Step, _ before: NodeView,
        _ effects: Effects,
        _ scene: inout Scene
    ) {
        let seat = seats[step.node]
        guard message.isFor(before.life), isHeard(message, step, before, scene), !Numbers.stands(effects) else {
            return
        }
        // Who is stopped, and leaves in the same step, is not fenced any more: it has told its operator of the refusal.
        let hasLeft = effects.messages.contains { $0.body == .leave }
        let isOut =
            step.view.isFenced || step.view.life.id != before.life.id
            || hasLeft && effects.observations.contains(.joinRefused(refusal))
        if let master = seat.followed, !before.isFenced {
            let isOfMaster = master == message.sender && seat.followedIn == message.epoch
            guard isOfMaster != isOut, !Numbers.suspects(effects) else { return }
            // What a life that is over has said may come from nobody that is known.
            let isMaster = scene.nodes.contains {
                $0.view?.life == message.sender && $0.view?.leads == message.epoch
            }
            guard isOut || isMaster else { return }
            return scene.violate(
                .numbersHaveReasons, at: step.time,
                "\(scene.name(step.node)) is refused by tracker \(message.sender.id), in \(message.epoch), and "
                    + (isOut ? "heeds it, and follows tracker \(master.id)" : "goes on, and that is its master"))
        }
        let patience = scene.nodes[step.node].configuration.cluster.detectionTime / 2
        guard refusal == .idTaken, scene.nodes[step.node].configuration.id == 0, before.isFenced,
            before.life.id != 0, step.view.life.id != 0, seat.asked == message.sender,
            step.time - seat.askedAt <= patience
        else { return }
        scene.violate(
            .numbersHaveReasons, at: step.time,
            "\(scene.name(step.node)) is told by tracker \(message.sender.id) that its number is taken, and keeps it")
    }

    /// A tracker tells its operator why it may not join.
    private func checkTold(
        _ refusal: JoinRefusal, _ event: Event, _ step: borrowing Step, _ before: NodeView, _ scene: inout Scene
    ) {
        if case .messageReceived(let message) = event {
            switch message.body {
            case .refused(let said) where said == refusal: return
            // Of two masters the lower one finds out by itself.
            case .keepalive(let keepalive) where keepalive.role == .master:
                if refusal == .otherSettings { return }
                if refusal == .idTaken, before.leads != nil, message.sender.id == before.life.id { return }
            default: break
            }
        }
        scene.violate(
            .numbersHaveReasons, at: step.time,
            "\(scene.name(step.node)) says that it may not join, and nobody has said so")
    }
}

extension ClusterMessage {
    /// Whether a life acts on it: others hear it, too.
    func isFor(_ life: Life) -> Bool {
        if case .one(let addressee) = destination { addressee == life } else { true }
    }
}

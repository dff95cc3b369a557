// Who is handed the role of master.

import Primitives
import TrackerLogic
import Wire

/// Whom a master hands its role to by itself has been in step with it for four keepalives (docs/protocol.md, E8): in
/// none of those did it say that it follows another master, lacks a part of the state, or is more than eight entries
/// behind.
struct HandoverWatch: Sendable {
    private static let inStepCount: UInt64 = 8

    private struct Master: Sendable {
        /// When each of the others last said that it is not in step, by the master's clock.
        var behindAt: [(life: Life, at: Instant)] = []
        /// When it began to hand its role over, by its own clock: what it hears from then on decides nothing.
        var begunAt: Instant?
        /// Whether somebody has asked it for something that may make it hand over its role: to one it is told, or to
        /// whoever is there.
        var isAsked = false
    }

    private var masters: [Master]

    init(nodeCount: Int) { masters = Array(repeating: Master(), count: nodeCount) }

    /// A life begins.
    mutating func began(_ node: Int) { masters[node] = Master() }

    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        let node = step.node
        if step.kind == .command, case .commandReceived(let command) = event { note(command, node) }
        guard let epoch = before.leads, step.view.leads == epoch, let now = scene.nodes[node].monotonic else {
            (masters[node].begunAt, masters[node].isAsked) = (nil, false)
            return
        }
        if !before.isHandingOver {
            masters[node].begunAt = step.view.isHandingOver ? now : nil
            if step.kind == .keepalive { noteWord(event, of: epoch, before, node, at: now) }
        }
        guard let begunAt = masters[node].begunAt, !masters[node].isAsked else { return }
        for message in effects.messages {
            guard case .handover = message.body, case .one(let life) = message.destination,
                let place = masters[node].behindAt.firstIndex(where: { $0.life == life })
            else { continue }
            let time = begunAt - masters[node].behindAt[place].at
            guard time < scene.nodes[node].configuration.cluster.keepalive * 4 else { continue }
            scene.violate(
                .preferredIsElected, at: step.time,
                "\(scene.name(node)) hands its role to tracker \(life.id), which was not in step "
                    + "\(time.wholeMilliseconds) ms before")
        }
    }

    /// Another tracker may say that it is not in step.
    private mutating func noteWord(
        _ event: Event, of epoch: Epoch, _ before: NodeView, _ node: Int, at now: Instant
    ) {
        guard case .messageReceived(let message) = event, case .keepalive(let keepalive) = message.body,
            keepalive.role != .master
        else { return }
        // What is for another is heard by all.
        if case .one(let addressee) = message.destination, addressee != before.life { return }
        let isInStep =
            message.epoch == epoch && keepalive.hasFullState
            && keepalive.position.index + HandoverWatch.inStepCount >= before.position.index
        if !isInStep { noteBehind(message.sender, node, at: now) }
    }

    private mutating func note(_ command: OperatorCommand, _ node: Int) {
        switch command {
        case .handOver, .drain, .stopCluster, .elect: masters[node].isAsked = true
        case .setAccess, .setFileTorrents, .setFileAccounts, .addMember, .removeMember, .replaceMember, .emptySwarms,
            .change:
            break
        }
    }

    private mutating func noteBehind(_ life: Life, _ node: Int, at now: Instant) {
        if let place = masters[node].behindAt.firstIndex(where: { $0.life.id == life.id }) {
            masters[node].behindAt[place] = (life, now)
        } else {
            masters[node].behindAt.append((life, now))
        }
    }
}

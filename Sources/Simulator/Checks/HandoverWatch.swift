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
        /// To whom it has last said that it may have the role, and when.
        var offered: (life: Life, at: Instant)?
        /// Whether somebody has asked it for something that may make it hand over its role: to one it is told, or to
        /// whoever is there.
        var isAsked = false
    }

    private var masters: [Master]

    init(nodeCount: Int) { masters = Array(repeating: Master(), count: nodeCount) }

    /// A life begins.
    mutating func began(_ node: Int) { masters[node] = Master() }

    mutating func check(_ step: Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene) {
        if case .commandReceived(let command) = event { note(command, step.node) }
        guard let epoch = before.leads, let now = scene.nodes[step.node].monotonic else { return }
        if case .messageReceived(let message) = event, case .keepalive(let keepalive) = message.body,
            keepalive.role != .master
        {
            let isInStep =
                message.epoch == epoch && keepalive.hasFullState
                && keepalive.position.index + HandoverWatch.inStepCount >= before.position.index
            if !isInStep { noteBehind(message.sender, step.node, at: now) }
        }
        guard !masters[step.node].isAsked else { return }
        let cluster = scene.nodes[step.node].configuration.cluster
        for message in effects.messages {
            guard case .handover = message.body, case .one(let life) = message.destination else { continue }
            // Once it has decided on a successor it says so for the detection time, whatever that one says.
            let isRepeated =
                masters[step.node].offered?.life == life
                && masters[step.node].offered.map { now - $0.at < cluster.detectionTime * 2 } ?? false
            masters[step.node].offered = (life, now)
            guard !isRepeated, let place = masters[step.node].behindAt.firstIndex(where: { $0.life == life }) else {
                continue
            }
            let time = now - masters[step.node].behindAt[place].at
            guard time > cluster.detectionTime, time < cluster.keepalive * 4 else { continue }
            scene.violate(
                .preferredIsElected, at: step.time,
                "\(scene.name(step.node)) hands its role to tracker \(life.id), which was not in step "
                    + "\(time.wholeMilliseconds) ms before")
        }
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

// Messages between trackers: sent, lost, late, and heard.

import Primitives
import TrackerLogic
import Wire

extension World {
    mutating func send(_ node: Int, _ message: ClusterMessage) {
        guard connectivity[node].isOnBus else { return }
        tally.messagesSent += 1
        if case .handover = message.body { elections.trouble(until: now) }
        if case .leave = message.body { watchLeave(of: node) }
        strikeNewBeginning(node, message.body)
        noteMissingNote(node, message.body)
        let letter = MessageInTransit(message, from: node, sentAt: now, number: keep(message, of: node))
        if case .one(let life) = message.destination, !bus.options.isShared {
            if let receiver = self.node(of: life), receiver != node { post(letter, to: receiver) }
        } else {
            for receiver in nodes.indices where receiver != node && connectivity[receiver].isThere {
                post(letter, to: receiver)
            }
        }
    }

    /// Who lives this life, or has lived it.
    private func node(of life: Life) -> Int? {
        lives.last { $0.incarnation == life.incarnation }?.node
    }

    private mutating func post(_ letter: MessageInTransit, to receiver: Int) {
        var fate = bus.carry(from: letter.from, to: receiver, now: now)
        if slips != nil { slip(letter, to: receiver, &fate) }
        if let time = fate.first {
            post(letter, to: receiver, at: time)
        } else {
            note(.message(letter), from: letter.from, to: receiver, as: 0)
            if keepsHistory { keep(letter, to: receiver, at: nil) }
        }
        if let time = fate.second { post(letter, to: receiver, at: time, isAgain: true) }
        guard let time = fate.third else { return }
        post(letter, to: receiver, at: time, isAgain: true)
        // An old message of one's own, from an earlier life, is somebody else's.
        if case .all = letter.message.destination { post(letter, to: letter.from, at: time, isAgain: true) }
    }

    /// Now and then one message is lost, or comes once more much later.
    private mutating func slip(_ letter: MessageInTransit, to receiver: Int, _ fate: inout SimulatedBus.Fate) {
        guard !isHealed, fate.first != nil, let blow = slips?.strike(letter.message, at: now) else { return }
        goesWrong(for: .seconds(1))
        let parties = "\(letter.message.body.name) of \(trace.names[letter.from]) to \(trace.names[receiver])"
        switch blow {
        case .lost:
            fate = SimulatedBus.Fate()
            trace.line(now, .faults, of: receiver, "is to miss one message: \(parties)")
        case .late(let delay):
            (fate.first, fate.second) = (now + delay, nil)
            trace.line(now, .faults, of: receiver, "is to hear one message late: \(parties)")
        case .again(let delay):
            fate.third = now + delay
            trace.line(now, .faults, of: receiver, "is to hear one message again: \(parties)")
        }
    }

    private mutating func post(_ letter: MessageInTransit, to receiver: Int, at time: Instant, isAgain: Bool = false) {
        let id = queue.put(.messageAtNode(receiver, letter), at: time)
        note(.message(letter), from: letter.from, to: receiver, as: id, isAgain: isAgain)
    }

    mutating func deliver(_ letter: MessageInTransit, to node: Int) {
        let isOwn =
            letter.from == node && lives.last { $0.node == node }?.incarnation == letter.message.sender.incarnation
        guard nodes[node].isUp, connectivity[node].isToldOnBus, !isOwn else {
            noteArrival(.nobody)
            if keepsHistory { keep(letter, to: node, at: nil) }
            return
        }
        guard nodes[node].heldUntil <= now else {
            return putOff(.messageAtNode(node, letter), until: nodes[node].heldUntil)
        }
        noteArrival(.arrived)
        tally.messagesDelivered += 1
        trace.isLate(since: letter.sentAt, now: now)
        if keepsHistory { keep(letter, to: node, at: now) }
        noteReport(letter.message, from: letter.from, to: node)
        step(node, .messageReceived(letter.message))
        checkHeard(letter.message, node)
    }

    /// - Returns: the place of the message in the history; -1 where none is kept.
    private mutating func keep(_ message: ClusterMessage, of node: Int) -> Int {
        guard keepsHistory else { return -1 }
        var bytes: [UInt8] = []
        message.encode(into: &bytes)
        var destination: UInt64 = 0
        var receivers: UInt32 = ~(1 << UInt32(node)) & (1 << UInt32(nodes.count) - 1)
        if case .one(let life) = message.destination {
            destination = life.incarnation
            if !bus.options.isShared { receivers = self.node(of: life).map { 1 << UInt32($0) } ?? 0 }
        }
        history.sentMessages.append(
            History.SentMessage(
                time: now, from: node, incarnation: message.sender.incarnation, destination: destination,
                receivers: receivers, bytes: bytes))
        return history.sentMessages.count - 1
    }

    private mutating func keep(_ letter: MessageInTransit, to node: Int, at time: Instant?) {
        history.transmissions.append(
            History.Transmission(
                sentAt: letter.sentAt, receivedAt: time, from: letter.from, to: node,
                name: letter.message.body.name, letter: letter.number))
    }
}

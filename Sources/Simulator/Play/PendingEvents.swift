// What waits in a world, told to people.

import Primitives
import TrackerLogic
import Wire

/// Something that is under way or waits, in words.
public struct PendingEvent: Sendable, Hashable {
    /// Of which kind it is.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// Between trackers.
        case message
        /// From a client to a tracker.
        case datagram
        /// From a tracker to a client.
        case reply
        /// A tracker looks at its clock, or at its sockets.
        case timer
        /// A disk, or the news of it.
        case write
        /// A tracker starts, is stopped, or gets or loses its bus.
        case life
        /// A client, or whoever uses it.
        case client
        /// Somebody else: at a console, over HTTP, a stranger.
        case person
        /// What goes wrong, and what is put right.
        case fault
        /// The world is healed, or looked at.
        case phase
    }

    /// By which a what-if names it.
    public var id: UInt64
    /// When it comes, if nobody meddles.
    public var time: Instant
    /// Of which kind it is.
    public var kind: Kind
    /// The sender: a tracker's place, or a client's where it is a datagram; nil for what nobody sends.
    public var from: Int?
    /// Whose it is: a tracker's place, or a client's where it is a reply.
    public var to: Int?
    /// One word or two: `PREPARE`, `announce`, `wakes`.
    public var name: String
    /// What is in it, or what it is for.
    public var text: String
}

extension World {
    /// All that waits and still means something, soonest first.
    var pending: [PendingEvent] {
        var events: [PendingEvent] = []
        for waiting in queue.waiting where isMeant(waiting.event, at: waiting.time) { events.append(tell(waiting)) }
        return events
    }

    /// Whether something comes of an event: not of one whose tracker has died since, or that another has overtaken.
    private func isMeant(_ event: Happening, at time: Instant) -> Bool {
        switch event {
        case .nodePolls(let node, let life), .groupEnds(let node, let life), .writeCompleted(let node, let life, _, _):
            nodes[node].life == life
        case .nodeWakes(let node, let life): nodes[node].life == life && nodes[node].wakeAt.map { $0 <= time } ?? false
        case .nodeReturns(let node, let life): nodes[node].life == life && !nodes[node].isUp
        case .strike(let node, let life): nodes[node].life == life
        case .stopOverdue(let node, let life): nodes[node].life == life && nodes[node].isStopping
        case .busLossTold(let node, let life, let cut), .busReturns(let node, let life, let cut):
            nodes[node].life == life && connectivity[node].cut == cut
        case .clientWakes(let place): clients[place].wakeAt == time
        case .clientActs(let place, let resolve, let act):
            clients[place].resolve == resolve && (!isHealed || act == .scrape)
        case .strangerActs, .visitorActs, .fault, .damage, .memoryIsLost: !isHealed
        case .stewardActs: !isHealed || clientsWokenAt != nil
        case .stewardWaits(let number, let question):
            stewards[number].wish != nil && stewards[number].question == question
        case .stopOfAllOverdue: wholeStop.map { !$0.isOver } ?? false
        // Nothing in the world learns of it.
        case .probe: false
        case .datagramAtNode, .datagramAtClient, .messageAtNode, .turn, .diskRecovers, .transfers, .heals,
            .operatorStops, .wakeClients, .convergenceCheck, .end:
            true
        }
    }

    private func tell(_ waiting: EventQueue<Happening>.Waiting) -> PendingEvent {
        let story = story(of: waiting.event)
        return PendingEvent(
            id: waiting.id, time: waiting.time, kind: story.kind, from: story.from, to: story.to, name: story.name,
            text: story.text)
    }

    private struct Told {
        var kind: PendingEvent.Kind
        var from: Int?
        var to: Int?
        var name: String
        var text: String

        init(_ kind: PendingEvent.Kind, _ from: Int? = nil, _ to: Int? = nil, _ name: String, _ text: String) {
            self.kind = kind
            self.from = from
            self.to = to
            self.name = name
            self.text = text
        }
    }

    private func story(of event: Happening) -> Told {
        switch event {
        case .messageAtNode(let node, let letter):
            Told(.message, letter.from, node, letter.message.body.name, letter.message.text)
        case .datagramAtNode(let node, let remote, let bytes):
            Told(
                .datagram, AddressPlan.place(of: remote), node, TraceText.action(bytes, isReply: false),
                Datagrams.words(request: bytes))
        case .datagramAtClient(let place, let node, let bytes):
            Told(
                .reply, node, place, TraceText.action(bytes, isReply: true),
                Datagrams.words(reply: bytes, to: addresses[place]))
        case .nodePolls(let node, _): Told(.timer, nil, node, "looks", "looks at its sockets")
        case .nodeWakes(let node, _): Told(.timer, nil, node, "wakes", "looks at its clock: a deadline of its own")
        case .groupEnds(let node, _):
            Told(.write, nil, node, "disk", "its disk has written \(nodes[node].disk.groupWords)")
        case .writeCompleted(let node, _, let token, let failure):
            Told(
                .write, nil, node, "told",
                failure.map { "hears that write \(token.rawValue) has failed: \($0.words)" }
                    ?? "hears that \(trace.write(of: node, token)) is durable")
        case .nodeReturns(let node, _): Told(.life, nil, node, "starts", "starts")
        case .stopOverdue(let node, _): Told(.life, nil, node, "killed", "is stopped the hard way, if it still runs")
        case .busLossTold(let node, _, _): Told(.life, nil, node, "bus lost", "notices that it has lost its bus")
        case .busReturns(let node, _, _): Told(.life, nil, node, "bus", "gets onto its bus")
        case .operatorStops(let node): Told(.life, nil, node, "stopped", "is stopped by the operator, in its turn")
        case .clientWakes(let place):
            Told(.client, nil, place, "wakes", "looks at its clock: asks again, or announces anew")
        case .clientActs(let place, _, let act):
            Told(.client, nil, place, "acts", TraceText.describe(act, clients[place]))
        case .strangerActs(let number): Told(.person, nil, number, "stranger", "a stranger sends junk")
        case .visitorActs(let number): Told(.person, nil, number, "visitor", "somebody asks over HTTP")
        case .stewardActs(let number): Told(.person, nil, number, "console", "somebody does something at a console")
        case .stewardWaits(let number, _):
            Told(.person, nil, number, "console", "somebody at a console asks once more, if nothing was heard")
        case .fault: Told(.fault, nil, nil, "fault", "fault \(plan.lastFault + 1) by the clock")
        case .turn(let number): Told(.fault, nil, nil, "script", "the script: \(options.script[number].event.words)")
        case .diskRecovers(let node): Told(.fault, nil, node, "disk", "its disk is put right")
        case .damage: Told(.fault, nil, nil, "damage", "a disk is damaged")
        case .memoryIsLost(let node, _, _):
            Told(.fault, nil, node, "disk lost", "loses its disk, if all others are in step")
        case .transfers: Told(.person, nil, nil, "peers", "peers that download take their turn")
        case .heals: Told(.phase, nil, nil, "heals", "the world is healed: no more faults")
        case .wakeClients: Told(.phase, nil, nil, "everybody", "everybody asks anew")
        case .convergenceCheck: Told(.phase, nil, nil, "look", "the world is looked at")
        case .end: Told(.phase, nil, nil, "end", "all trackers are stopped in good order")
        case .stopOfAllOverdue: Told(.phase, nil, nil, "overdue", "all trackers are to be down")
        case .strike(let node, _): Told(.fault, nil, node, "dies", "dies, the first master after the new beginning")
        case .probe(let node): Told(.person, nil, node, "probe", "is compared with a copy of its disk")
        }
    }

    /// A message or a datagram under way, as one speaks of it.
    func words(of event: Happening) -> String {
        let told = story(of: event)
        if case .messageAtNode(let node, let letter) = event {
            return "\(told.text), from \(trace.names.short[letter.from]) to \(trace.names.short[node])"
        }
        if case .datagramAtNode(let node, let remote, _) = event {
            return "\(told.name) of \(person(remote)) to \(trace.names[node])"
        }
        if case .datagramAtClient(let place, let node, _) = event {
            return "\(told.name) reply of \(trace.names[node]) to \(person(addresses[place]))"
        }
        return told.text
    }
}

extension World.Happening {
    /// The places of the trackers that it is about, one bit each.
    var trackers: UInt32 {
        if case .messageAtNode(let node, let letter) = self { return 1 << UInt32(node) | 1 << UInt32(letter.from) }
        if case .datagramAtNode(let node, _, _) = self { return 1 << UInt32(node) }
        if case .datagramAtClient(_, let node, _) = self { return 1 << UInt32(node) }
        return 0
    }

    /// Whether a tracker that is held puts it off.
    func isFor(_ held: Int) -> Bool {
        switch self {
        case .messageAtNode(let node, _), .nodePolls(let node, _), .nodeWakes(let node, _),
            .writeCompleted(let node, _, _, _), .busLossTold(let node, _, _), .busReturns(let node, _, _):
            node == held
        case .datagramAtNode, .datagramAtClient, .groupEnds, .nodeReturns, .stopOverdue, .clientWakes, .clientActs,
            .strangerActs, .visitorActs, .stewardActs, .stewardWaits, .fault, .turn, .diskRecovers, .damage, .probe,
            .memoryIsLost, .transfers, .heals, .operatorStops, .stopOfAllOverdue, .strike, .wakeClients,
            .convergenceCheck, .end:
            false
        }
    }
}

extension ScriptedEvent.Event {
    /// What happens, in words; trackers by their places from 1, as stories have them.
    var words: String {
        func list(_ places: [Int]) -> String { places.map { "\($0 + 1)" }.joined(separator: ", ") }
        return switch self {
        case .crash(let node, let downtime): "tracker \(node + 1) dies for \(Figure.seconds(downtime)) s"
        case .stop(let node): "tracker \(node + 1) is stopped in good order"
        case .partition(let places, let duration):
            "\(list(places)) and the others do not hear each other for \(Figure.seconds(duration)) s"
        case .brokerOutage(let duration): "nobody has a bus for \(Figure.seconds(duration)) s"
        case .fullDisks(let places, let duration):
            "the disks of \(list(places)) are full for \(Figure.seconds(duration)) s"
        case .breakDisk(let node): "the disk of tracker \(node + 1) breaks"
        case .tellFarRound: "somebody tells of an epoch far ahead"
        case .misconfigure(let node): "tracker \(node + 1) begins anew, and is told other settings"
        case .partHeir: "whoever is preferred to be the next master does not hear the others for a moment"
        case .masterDies(let downtime): "the master dies for \(Figure.seconds(downtime)) s"
        case .stopMaster: "the master is stopped in good order"
        case .handOver(let node, let id): "the operator of \(node + 1) wants \(id) to be master"
        }
    }
}

// Whoever meddles with a run, or watches it step by step.

import Primitives

/// Whoever meddles with a run, or watches it step by step; nobody, in most runs.
struct Player: Sendable {
    /// What he does, in the order of the steps.
    private(set) var whatIfs: [WhatIf] = []
    /// The first that has not been carried out.
    private(set) var next = 0
    /// After which step that one is; never, where there is none.
    private(set) var nextStep = Int.max
    /// Transitions so far.
    var steps = 0
    /// The id of the event that was the last of them.
    var event: UInt64 = 0
    /// What could not be done, and why.
    var unmet: [UnmetWhatIf] = []
    /// Whether messages and datagrams wait for him.
    var isNetwork = false
    /// When the faults were to end, where he has put that off.
    var healsAt: Instant?
    /// How often he has troubled a world that was healed.
    var relapses = 0
    /// Messages and datagrams that he has delayed.
    var delayed: [UInt64] = []
    /// Trackers that are held by him, one bit each.
    var held: UInt32 = 0
    /// Events that were put off, for their tracker was held, and the ids that they have since.
    var putOff: [(from: UInt64, to: UInt64)] = []
    /// Whether what is sent and what arrives is noted, for a picture with ids.
    let isWatching: Bool
    /// What was noted since the last step.
    var traffic = Traffic()

    init(_ whatIfs: [WhatIf] = [], isWatching: Bool = false) {
        self.isWatching = isWatching
        self.whatIfs = whatIfs
        nextStep = whatIfs.first?.step ?? .max
    }

    /// Whether anything of his is to be remembered.
    var isThere: Bool { isWatching || !whatIfs.isEmpty }

    /// Whether he has made the next step himself.
    var hasStep: Bool { nextStep == steps && whatIfs[next].isStep }

    /// Takes the next what-if.
    mutating func take() -> WhatIf {
        let whatIf = whatIfs[next]
        next += 1
        nextStep = next < whatIfs.count ? whatIfs[next].step : .max
        return whatIf
    }

    /// Whether he might have done this instead: he has done the same so far, and nothing that comes before now.
    func mayGoOn(with other: [WhatIf]) -> Bool {
        guard other.count >= next, other[..<next] == whatIfs[..<next] else { return false }
        return next == other.count || other[next].step >= steps
    }

    /// He does something else from now on.
    mutating func goOn(with other: [WhatIf]) {
        whatIfs = other
        nextStep = next < whatIfs.count ? whatIfs[next].step : .max
    }

    /// What was to be done after a step that has not come.
    var missed: [UnmetWhatIf] {
        (next..<whatIfs.count).map { place in
            UnmetWhatIf(
                place: place, whatIf: whatIfs[place],
                reason: isNetwork
                    ? "the player is the network, and step \(whatIfs[place].step) has not come"
                    : "the run ends before it, with step \(steps)")
        }
    }

    /// The id that an event has now that once had this one.
    func present(_ id: UInt64) -> UInt64 {
        var id = id
        // In the order in which they were put off.
        for (from, to) in putOff where from == id { id = to }
        return id
    }
}

/// A what-if that could not be carried out.
public struct UnmetWhatIf: Sendable, Hashable {
    /// Its place among those of the run, from 0.
    public var place: Int
    /// What it is.
    public var whatIf: WhatIf
    /// A sentence without its subject.
    public var reason: String
}

/// Messages and datagrams of one step, by the ids of their events.
struct Traffic: Sendable {
    /// What was given to the bus, or to the network.
    enum Load: Sendable {
        case message(MessageInTransit)
        /// From a client, a stranger or a peer, by its place among them.
        case datagram(Int, [UInt8])
        /// To one of them.
        case reply(Int, [UInt8])
    }

    /// One copy of something.
    struct Sent: Sendable {
        /// Of its arrival; 0 where it is lost at once.
        var id: UInt64
        var from: Int
        var to: Int
        var load: Load
        /// Whether the same has been sent already, to the same.
        var isAgain = false
    }

    /// What becomes of what was sent.
    enum Fate: UInt8, Sendable {
        case underWay
        case arrived
        case lost
        /// It came, and nobody was there.
        case nobody
    }

    var sent: [Sent] = []
    var ended: [(id: UInt64, fate: Fate)] = []
    var putOff: [(from: UInt64, to: UInt64)] = []

    var isEmpty: Bool { sent.isEmpty && ended.isEmpty && putOff.isEmpty }

    mutating func removeAll() {
        sent.removeAll(keepingCapacity: true)
        ended.removeAll(keepingCapacity: true)
        putOff.removeAll(keepingCapacity: true)
    }
}

extension World {
    /// What comes for one that is held comes when it goes on.
    mutating func putOff(_ happening: Happening, until time: Instant) {
        let from = queue.takenID
        let id = queue.put(happening, at: time)
        guard player.isThere else { return }
        player.putOff.append((from, id))
        if player.isWatching { player.traffic.putOff.append((from, id)) }
    }

    /// Notes what is sent.
    mutating func note(_ load: Traffic.Load, from: Int, to: Int, as id: UInt64, isAgain: Bool = false) {
        guard player.isWatching else { return }
        player.traffic.sent.append(Traffic.Sent(id: id, from: from, to: to, load: load, isAgain: isAgain))
    }

    /// Nobody wants to know what was noted.
    mutating func forgetNotes() {
        history.transitions.removeAll(keepingCapacity: true)
        if !player.traffic.isEmpty { player.traffic.removeAll() }
    }

    /// Whether nothing comes before the player has said what.
    var waitsForPlayer: Bool { player.isNetwork && isGoingOn }

    /// Notes what has become of what arrives just now.
    mutating func noteArrival(_ fate: Traffic.Fate) {
        if player.isWatching { player.traffic.ended.append((queue.takenID, fate)) }
    }
}

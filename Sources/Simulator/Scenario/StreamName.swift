// Who draws: each part of a cluster's world has a stream of chance of its own, found by its name.

import Primitives

/// A kind of name; its number says which of them it is.
///
/// The raw values are a part of what a seed means: none is ever changed, or used again.
///
/// So whoever is left out, or comes in later, moves nobody else's draws: the fault that stays hits whom it hit,
/// the link that stays loses what it lost. What one tells the other still has its consequences.
enum StreamKind: UInt64 {
    // What a scenario is like: by profile, then by part, by kind of fault, or by kind of moment.
    case options = 1
    case faultKinds = 2
    case moments = 3

    /// By number of the fault.
    case fault = 10
    case faultGap = 11
    /// By number of the fault, then by tracker.
    case faultAtTracker = 12
    /// By number of the fault: whether the operator names who is to be master.
    case electionAsked = 18
    /// By kind of moment and tracker: when a fault is injected there.
    case watch = 13
    /// By kind of moment and tracker, then by how many were injected there: what it is.
    case injection = 14
    case damage = 15
    case damageGap = 16
    /// By number of the scripted event, then by tracker.
    case turn = 17
    /// By number of the what-if, then by tracker.
    case whatIf = 19
    /// By number of the fault: what hits its tracker, too.
    case companion = 25

    /// By sender, then receiver.
    case link = 20
    /// Which single messages are lost.
    case slip = 26
    /// By person, then tracker: from the one to the other, and back.
    case request = 21
    case reply = 22
    /// As `request` and `reply`: which bits flip there.
    case flipThere = 23
    case flipBack = 24

    // By tracker.
    case clock = 30
    case disk = 31
    case damagedDisk = 32
    case firstStart = 33
    /// By tracker, then by life.
    case life = 34
    case connecting = 35
    case mending = 36
    /// By tracker: when it returns after the whole cluster was stopped.
    case newBeginning = 37
    /// By tracker, then by life: what it is told otherwise than the others.
    case misconfiguration = 38
    /// By tracker: when it reports how it fares.
    case report = 39

    // By number of the client.
    case client = 40
    case announcer = 41
    /// By client, then by visit.
    case visit = 42
    /// By client, then by tracker.
    case tier = 43

    case swarms = 50
    case stranger = 51
    case visitor = 52
    /// By tracker: who asks over HTTP when all is well again.
    case lastVisit = 53
    /// By number of the visitor: what else a visit may be.
    case visitorWhim = 54
    /// By number of the person at a console.
    case steward = 55
    case stewardTorrents = 56

    /// By tracker: when it is compared with a copy of its disk.
    case probe = 60
    /// By tracker, in tests.
    case sabotage = 61

    // Of swarms of peers.
    case transferOptions = 70
    /// By peer: what it is like; and its own chance, by peer and life.
    case peerTraits = 71
    case peerLife = 72
    /// By number of the fault.
    case transferFault = 73
    case transferGap = 74
    /// Of what two peers both understand, by the two, and of simple trackers as they are asked.
    case connections = 75
    case simpleTracker = 76
    /// By peer: what a liar does.
    case liar = 77
    case webSeed = 78
    /// What more there may be in a swarm than `transferOptions` draws.
    case transferMore = 79
    /// By peer, then by number of the datagram: what becomes of what is sent to a tracker, and of its answer.
    case trackerDatagram = 80
    /// As `transferMore`, of what came after it.
    case transferLate = 81
    /// By peer, then by number of the announce: how long a tracker thinks, and whether it falls silent.
    case slowAnswer = 82
    case quietEnd = 83
    /// As `transferMore`, of what came after `transferLate`; and by peer, what else it is like.
    case transferLatest = 84
    case peerWhims = 85
}

extension RandomStream {
    /// A stream of the world of a seed, found by its name.
    ///
    /// `number` is which of its kind, below 2³²; `second` is for a name that has two numbers, below 2²⁴.
    init(_ seed: UInt64, _ kind: StreamKind, _ number: Int = 0, _ second: Int = 0) {
        let name = kind.rawValue << 56 | UInt64(truncatingIfNeeded: number) << 24 | UInt64(truncatingIfNeeded: second)
        self.init(seed: seed, stream: name)
    }
}

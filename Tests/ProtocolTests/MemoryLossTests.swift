// In quorum mode: who has lost its memory gets its vote back from a master that is one still, and who lacks what the
// others have cut from their logs does not stand in their way.

import Primitives
import Testing
import TrackerLogic
import Wire

/// Tracker 2 of three, with so many decided entries on its disk.
private struct Voter {
    static let secret = ClusterSecret(1, 2, 3, 4)
    static let first = Epoch(round: 1, id: 3)
    static let one = Life(id: 1, incarnation: 11)
    static let three = Life(id: 3, incarnation: 33)

    var node: TrackerNode
    /// What the history comes to, through each entry.
    var chains: [UInt64] = [0]
    private(set) var entries: [Entry] = []
    var effects = Effects()
    private var time: Int64 = 0

    /// A tracker that knows so many entries to be decided; with `cut`, the first half of them is in its state only, and
    /// not in its log.
    init(_ count: UInt64, cut: Bool = false) throws {
        var configuration = NodeConfiguration()
        configuration.id = 2
        configuration.shardCount = 2
        configuration.cluster = ClusterProfile.paxos.configuration(members: [1, 2, 3])
        if cut { configuration.tailCount = 4 }
        let promise = Promise(epoch: Self.first, incarnation: 1, secret: Self.secret, shardCount: 2)
        node = TrackerNode(
            configuration: configuration, incarnation: 22, secret: Self.secret, record: promise, seed: 1)
        // The last one is not known to be decided, and one more is the others'.
        for index in 1...count + 2 {
            var bytes: [UInt8] = []
            EntryHeader.reserve(in: &bytes)
            let header = EntryHeader(
                index: index, epoch: Self.first, time: WallTime(milliseconds: 1), updateCount: 0,
                previous: chains[Int(index) - 1])
            chains.append(header.seal(&bytes))
            entries.append(try Entry(bytes))
            if index <= count + 1 { try node.restore(entry: bytes) }
        }
        step(.started)
        step(.busConnected)
    }

    func position(_ index: UInt64) -> Position { Position(index: index, chain: chains[Int(index)]) }

    private var now: ClockReading {
        ClockReading(monotonic: Instant(nanoseconds: time), wall: WallTime(milliseconds: 1_000 + time / 1_000_000))
    }

    var isAbreast: Bool { node.isAbreast(at: now) }

    /// One step of the node, so many milliseconds after the last.
    mutating func step(_ event: Event, after milliseconds: Int64 = 1) {
        time += milliseconds * 1_000_000
        node.step(event, now: now, into: &effects)
        // Whatever it writes is durable at once.
        let persists = effects.persists
        effects.persists = []
        for persist in persists { step(.persisted(persist.token), after: 0) }
    }

    mutating func hear(
        _ body: ClusterMessage.Body, from life: Life, _ epoch: Epoch, after milliseconds: Int64 = 1
    ) {
        let message = ClusterMessage(
            sender: life, destination: .one(node.inspection.life), epoch: epoch, body: body)
        step(.messageReceived(message), after: milliseconds)
    }

    /// Tracker 1 follows this master.
    mutating func hearFollower() {
        let keepalive = Keepalive(
            role: .slave, position: node.inspection.position, digest: 7, hasFullState: true,
            settings: SettingsPrint(node.configuration))
        hear(.keepalive(keepalive), from: Self.one, epoch)
    }

    /// Lets the time pass without a step.
    mutating func sleep(_ milliseconds: Int64) { time += milliseconds * 1_000_000 }

    /// Lets the time pass in steps of a quarter of a keepalive.
    mutating func wait(_ milliseconds: Int64, _ each: (inout Voter) -> Void = { _ in }) {
        for _ in 0..<milliseconds / 250 {
            each(&self)
            step(.deadlineReached, after: 249)
        }
    }

    func sent(_ isMeant: (ClusterMessage.Body) -> Bool) -> [ClusterMessage] {
        effects.messages.filter { isMeant($0.body) }
    }

    var epoch: Epoch { node.inspection.promised }
    var role: ClusterRole { node.inspection.role }

    /// Stands, since tracker 1 misses the master, too.
    mutating func stand(whileOneIsAt position: Position) {
        wait(2500)
        hear(.suspect(at: position), from: Self.one, Self.first)
        wait(1000)
    }

    /// Is elected by tracker 1.
    mutating func lead() {
        stand(whileOneIsAt: position(4))
        hear(.answer(VoterAnswer(position: position(4), pending: nil)), from: Self.one, epoch)
        effects.removeAll()
    }

    /// Tracker 3 asks to be let in.
    mutating func hearHello(hasFullState: Bool) {
        let hello = Hello(
            position: .start, hasFullState: hasFullState, isBlank: false, heard: [],
            settings: SettingsPrint(node.configuration))
        hear(.hello(hello), from: Self.three, hasFullState ? epoch : .zero)
    }

    var welcomed: [ClusterMessage.Destination] {
        sent { if case .welcome = $0 { true } else { false } }.map(\.destination)
    }

    /// Of whom it has asked entries.
    var asked: [ClusterMessage.Destination] {
        sent { if case .fetch = $0 { true } else { false } }.map(\.destination)
    }

    /// The last round in which it has asked whether it is still master.
    var round: UInt64? {
        effects.messages.reversed().lazy
            .compactMap { if case .confirm(let round) = $0.body { round } else { nil } }.first
    }
}

@Suite("A tracker that has lost its memory")
struct MemoryLossTests {
    @Test func `is let in when a quorum without it has said after its hello that it follows`() throws {
        var master = try Voter(4)
        master.lead()
        #expect(master.role == .master)
        // A candidate may still count what this tracker answered in its last life.
        master.hearHello(hasFullState: false)
        #expect(master.round == nil)
        master.wait(6000) { $0.hearFollower() }
        #expect(master.role == .master && master.round == nil)
        master.hearHello(hasFullState: false)
        #expect(master.welcomed.isEmpty)
        let round = try #require(master.round)
        // Neither what was asked before, nor its own word, says anything.
        master.hear(.confirmed(round: round &- 1), from: Voter.one, master.epoch)
        master.hear(.confirmed(round: round), from: Voter.three, master.epoch)
        #expect(master.welcomed.isEmpty)
        master.hear(.confirmed(round: round), from: Voter.one, master.epoch)
        #expect(master.welcomed == [.one(Voter.three)])
    }

    @Test func `elects nobody by what it said before when the candidate has been held up since`() throws {
        for milliseconds in [1000, 2500] as [Int64] {
            var candidate = try Voter(4)
            candidate.stand(whileOneIsAt: candidate.position(4))
            let answer = VoterAnswer(position: candidate.position(4), pending: nil)
            candidate.hear(.answer(answer), from: Voter.three, candidate.epoch, after: milliseconds)
            #expect((candidate.role == .master) == (milliseconds < 2000))
        }
    }

    @Test func `is let in at once where it remembers`() throws {
        var master = try Voter(4)
        master.lead()
        master.hearHello(hasFullState: true)
        #expect(master.welcomed == [.one(Voter.three)])
    }

    @Test func `keeps no master in office`() throws {
        var master = try Voter(4)
        master.lead()
        master.wait(5000) { $0.hearHello(hasFullState: false) }
        #expect(master.role != .master && master.welcomed.isEmpty)
        // One that remembers does.
        var other = try Voter(4)
        other.lead()
        other.wait(5000) { $0.hearHello(hasFullState: true) }
        #expect(other.role == .master)
    }
}

@Suite("A tracker that comes back")
struct ReturnTests {
    private static func welcome(at position: Position, needsTransfer: Bool = false) -> ClusterMessage.Body {
        .welcome(
            Welcome(
                id: 2, position: position, answered: .start, servesFrom: position.index, attempt: 1,
                needsTransfer: needsTransfer, secret: Voter.secret, shardCount: 2))
    }

    /// That there are no accounts means, to its console, that whoever is on its machine may do all.
    @Test func `is abreast once it has applied all that was decided when it was let in`() throws {
        var voter = try Voter(4)
        #expect(!voter.isAbreast, "nobody has told it what was decided since")
        voter.hear(Self.welcome(at: voter.position(6)), from: Voter.three, Voter.first)
        #expect(!voter.isAbreast, "it lacks the last one")
        voter.hear(.entries(Array(voter.entries[4...]), at: voter.position(6)), from: Voter.three, Voter.first)
        #expect(voter.node.inspection.position.index == 6)
        #expect(voter.isAbreast)
        voter.step(.busLost)
        #expect(!voter.isAbreast)
    }

    /// A process that is stopped for a while finds what its master said meanwhile behind what people ask of it.
    @Test func `is not abreast when its master is silent, or has told of more`() throws {
        var voter = try Voter(5)
        voter.hear(Self.welcome(at: voter.position(6)), from: Voter.three, Voter.first)
        #expect(voter.isAbreast)
        var held = voter
        held.sleep(2000)
        #expect(!held.isAbreast)
        let keepalive = Keepalive(
            role: .master, position: voter.position(7), digest: 0, hasFullState: true,
            settings: SettingsPrint(voter.node.configuration))
        voter.hear(.keepalive(keepalive), from: Voter.three, Voter.first)
        #expect(!voter.isAbreast)
    }

    @Test func `is not abreast with a part of the state`() throws {
        var voter = try Voter(4)
        voter.hear(Self.welcome(at: voter.position(4), needsTransfer: true), from: Voter.three, Voter.first)
        #expect(!voter.isAbreast)
    }

    @Test func `leads, and is abreast as long as it serves and is followed`() throws {
        var master = try Voter(4)
        master.lead()
        #expect(master.role == .master)
        #expect(master.isAbreast == master.node.inspection.isServing)
        master.sleep(20_000)
        #expect(!master.isAbreast)
    }
}

@Suite("What the others have cut from their logs")
struct CutLogTests {
    @Test func `ends a candidacy at once when nobody can send it`() throws {
        var candidate = try Voter(4)
        candidate.stand(whileOneIsAt: Position(index: 9, chain: 9))
        let nine = Position(index: 9, chain: 9)
        candidate.hear(.answer(VoterAnswer(position: nine, pending: nil)), from: Voter.one, candidate.epoch)
        #expect(candidate.role == .candidate && candidate.asked == [.one(Voter.one)])
        // An old answer of another election says nothing.
        candidate.hear(.entries([], at: Position(index: 9, chain: 9)), from: Voter.one, Voter.first)
        #expect(candidate.role == .candidate)
        candidate.hear(.entries([], at: Position(index: 9, chain: 9)), from: Voter.one, candidate.epoch)
        #expect(candidate.role == .newcomer)
    }

    @Test func `is asked of others before that`() throws {
        var candidate = try Voter(4)
        let (far, near) = (Position(index: 9, chain: 9), Position(index: 8, chain: 8))
        candidate.stand(whileOneIsAt: far)
        candidate.hear(.answer(VoterAnswer(position: far, pending: nil)), from: Voter.one, candidate.epoch)
        candidate.hear(.answer(VoterAnswer(position: near, pending: nil)), from: Voter.three, candidate.epoch)
        candidate.effects.removeAll()
        candidate.hear(.entries([], at: far), from: Voter.one, candidate.epoch)
        #expect(candidate.role == .candidate && candidate.asked == [.one(Voter.three)])
    }

    @Test func `is refused to a candidate in so many words`() throws {
        var voter = try Voter(12, cut: true)
        voter.hear(.election, from: Voter.three, Epoch(round: 2, id: 3))
        voter.effects.removeAll()
        voter.hear(.fetch(after: voter.position(1)), from: Voter.three, Epoch(round: 2, id: 3))
        #expect(voter.sent { if case .entries(let entries, _) = $0 { entries.isEmpty } else { false } }.count == 1)
        voter.hear(.fetch(after: voter.position(11)), from: Voter.three, Epoch(round: 2, id: 3))
        #expect(voter.sent { if case .entries(let entries, _) = $0 { entries.count == 1 } else { false } }.count == 1)
    }

    /// Tracker 3 is preferred.
    ///
    /// Where it lacks what can be fetched, it goes first; else it would only be in the way.
    @Test(arguments: [true, false]) func `lets its owner stand first`(isCut: Bool) throws {
        var voter = try Voter(8, cut: isCut)
        voter.wait(2500)
        voter.hear(.suspect(at: voter.position(1)), from: Voter.three, Voter.first)
        voter.step(.deadlineReached)
        #expect((voter.role == .candidate) == isCut)
    }
}

@Suite("A master and a candidate")
struct CandidateTests {
    private func keepalive(_ role: ClusterRole, _ master: Voter) -> ClusterMessage.Body {
        .keepalive(
            Keepalive(
                role: role, position: master.node.inspection.position, digest: 7, hasFullState: true,
                settings: SettingsPrint(master.node.configuration)))
    }

    /// It may be the one that the role was handed to, whose question comes after its sign of life.
    ///
    /// Each of two that outbid the other would do so again.
    @Test func `do not outbid each other`() throws {
        var master = try Voter(4)
        master.lead()
        let higher = Epoch(round: master.epoch.round + 1, id: 3)
        master.hear(keepalive(.candidate, master), from: Voter.three, higher)
        #expect(master.role == .master && master.epoch < higher)
        // Whoever has given up, and has promised more than its master has, would not hear it again.
        master.hear(keepalive(.newcomer, master), from: Voter.three, higher)
        #expect(master.role == .candidate && master.epoch > higher)
    }
}

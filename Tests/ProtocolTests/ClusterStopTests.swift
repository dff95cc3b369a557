// A cluster begins without swarms when all who have elected its master had left in good order, and never else.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("The orderly stop of a cluster")
struct ClusterStopTests {
    private static let secret = ClusterSecret(1, 2, 3, 4)
    private static let promised = Epoch(round: 1, id: 2)

    /// Tracker 3 of three, with a swarm that it knows to be decided.
    private struct Candidate {
        var node: TrackerNode
        var effects = Effects()
        var written: [Promise] = []
        private(set) var time: Int64 = 0
        /// Whether what it writes waits until it is released; else it is durable at once.
        private var isHeld: Bool
        private var held: [Persist] = []
        /// Writes that fail yet, one after another.
        var failures: Int
        let swarm = InfoHash(.zero)

        init(leftInOrder: Bool, keepsSwarms: Bool = false, isHeld: Bool = false, failures: Int = 0) throws {
            self.isHeld = isHeld
            self.failures = failures
            var configuration = NodeConfiguration()
            configuration.id = 3
            configuration.shardCount = 4
            configuration.keepsSwarms = keepsSwarms
            configuration.cluster = ClusterProfile.paxos.configuration(members: [1, 2, 3])
            let promise = Promise(
                epoch: promised, incarnation: 1, secret: secret, shardCount: 4, leftInOrder: leftInOrder)
            node = TrackerNode(configuration: configuration, incarnation: 33, secret: secret, record: promise, seed: 1)
            var chain: UInt64 = 0
            for index in UInt64(1)...2 {
                var bytes: [UInt8] = []
                EntryHeader.reserve(in: &bytes)
                let isFirst = index == 1
                if isFirst {
                    let address = try #require(SocketAddress(host: "10.0.0.1", port: 7000))
                    let endpoint = try #require(CompactIPv4(address))
                    Update.announceIPv4(
                        AnnounceUpdate(
                            infoHash: swarm, peerID: PeerID(.zero), downloaded: 0, left: 0, event: .started,
                            endpoint: endpoint)
                    ).encode(into: &bytes)
                }
                let header = EntryHeader(
                    index: index, epoch: promised, time: WallTime(milliseconds: 1_000),
                    updateCount: isFirst ? 1 : 0, previous: chain)
                chain = header.seal(&bytes)
                try node.restore(entry: bytes)
            }
            step(.started)
            step(.busConnected)
        }

        mutating func step(_ event: Event, after span: Duration = .milliseconds(1)) {
            time += span.nanoseconds
            let now = ClockReading(
                monotonic: Instant(nanoseconds: time), wall: WallTime(milliseconds: 2_000 + time / 1_000_000))
            node.step(event, now: now, into: &effects)
            let persists = effects.persists
            effects.persists = []
            held += persists
            if !isHeld { writeHeld() }
        }

        /// All that it wrote is on the disk, and from now on at once.
        mutating func release() {
            isHeld = false
            writeHeld()
        }

        private mutating func writeHeld() {
            while !held.isEmpty {
                let persist = held.removeFirst()
                if failures > 0 {
                    failures -= 1
                    step(.persistFailed(persist.token, .full), after: .zero)
                    continue
                }
                if case .promise(let promise) = persist.change { written.append(promise) }
                step(.persisted(persist.token), after: .zero)
            }
        }

        mutating func hear(_ body: ClusterMessage.Body, from id: UInt32, _ epoch: Epoch) {
            let sender = Life(id: id, incarnation: UInt64(id) * 11)
            step(.messageReceived(ClusterMessage(sender: sender, destination: .all, epoch: epoch, body: body)))
        }

        /// Misses the master together with tracker 1, stands, and is answered by it.
        mutating func stand(answeredBy voter: VoterAnswer) {
            for _ in 0..<40 where !isStanding {
                step(.deadlineReached, after: .milliseconds(250))
                hear(.suspect(at: node.inspection.position), from: 1, ClusterStopTests.promised)
            }
            hear(.answer(voter), from: 1, node.inspection.promised)
            // Tracker 1 votes for whatever is proposed.
            for _ in 0..<6 {
                let ballots = effects.messages.compactMap { message -> Ballot? in
                    guard case .prepare(let entry, _) = message.body else { return nil }
                    return entry.header.ballot
                }
                if let last = ballots.last { hear(.ok(last), from: 1, node.inspection.promised) }
                step(.deadlineReached, after: .milliseconds(100))
            }
        }

        var isStanding: Bool { node.inspection.promised.id == 3 }
        var hasEmptied: Bool { effects.observations.contains(.swarmsEmptied) }
        var peers: Int { node.state.table.counts.peers }
        var position: Position { node.inspection.position }
        var isServing: Bool { node.inspection.isServing }
    }

    @Test func `a master whose voters had all left in good order begins without swarms`() throws {
        var candidate = try Candidate(leftInOrder: true)
        #expect(candidate.written.first?.leftInOrder == false, "the note is taken back before anything else is written")
        candidate.stand(answeredBy: VoterAnswer(position: candidate.position, pending: nil, leftInOrder: true))
        #expect(candidate.hasEmptied)
        #expect(candidate.peers == 0)
        #expect(candidate.isServing)
    }

    @Test(arguments: [(true, false), (false, true), (false, false)])
    func `a master whose voters had not all left in good order keeps the swarms`(own: Bool, other: Bool) throws {
        var candidate = try Candidate(leftInOrder: own)
        candidate.stand(answeredBy: VoterAnswer(position: candidate.position, pending: nil, leftInOrder: other))
        #expect(candidate.isServing)
        #expect(!candidate.hasEmptied)
        #expect(candidate.peers == 1)
    }

    @Test func `a tracker that is to keep the swarms keeps them for the cluster`() throws {
        var candidate = try Candidate(leftInOrder: true, keepsSwarms: true)
        candidate.stand(answeredBy: VoterAnswer(position: candidate.position, pending: nil, leftInOrder: true))
        #expect(candidate.isServing)
        #expect(candidate.peers == 1)
    }

    @Test func `a tracker that has been welcomed by a master that goes on forgets how its last life ended`() throws {
        var candidate = try Candidate(leftInOrder: true)
        let epoch = Epoch(round: 2, id: 2)
        let master = Life(id: 2, incarnation: 22)
        candidate.hear(
            .welcome(
                Welcome(
                    id: 3, position: candidate.position, answered: .start, servesFrom: 0, attempt: 0,
                    needsTransfer: false, secret: ClusterStopTests.secret, shardCount: 4)), from: master.id, epoch)
        candidate.hear(.election, from: 1, Epoch(round: 3, id: 1))
        let answers = candidate.effects.messages.compactMap { message -> VoterAnswer? in
            if case .answer(let answer) = message.body { answer } else { nil }
        }
        #expect(answers.map(\.leftInOrder) == [false])
    }

    @Test func `a tracker that is welcomed while its note is being taken back forgets it all the same`() throws {
        var candidate = try Candidate(leftInOrder: true, isHeld: true)
        let epoch = Epoch(round: 2, id: 2)
        candidate.hear(
            .welcome(
                Welcome(
                    id: 3, position: candidate.position, answered: .start, servesFrom: 0, attempt: 0,
                    needsTransfer: false, secret: ClusterStopTests.secret, shardCount: 4)), from: 2, epoch)
        candidate.release()
        candidate.hear(.election, from: 1, Epoch(round: 3, id: 1))
        candidate.release()
        let answers = candidate.effects.messages.compactMap { message -> VoterAnswer? in
            if case .answer(let answer) = message.body { answer } else { nil }
        }
        #expect(answers.map(\.leftInOrder) == [false])
    }

    /// Rule 22: it would vote with a note on its disk that counts again after a crash.
    @Test func `whoever could not take its note back has no vote before it has`() throws {
        var voter = try Candidate(leftInOrder: true, failures: .max)
        #expect(voter.written.isEmpty)
        let epoch = ClusterStopTests.promised
        voter.hear(
            .welcome(
                Welcome(
                    id: 3, position: voter.position, answered: .start, servesFrom: 0, attempt: 0,
                    needsTransfer: false, secret: ClusterStopTests.secret, shardCount: 4)), from: epoch.id, epoch)
        let new = entry([.setInterval(60)], epoch, after: voter.position)
        voter.hear(.prepare(entry: new, at: voter.position), from: epoch.id, epoch)
        #expect(!voter.effects.messages.contains { $0.body == .ok(new.header.ballot) })
        voter.failures = 0
        for _ in 0..<8 { voter.step(.deadlineReached, after: .milliseconds(250)) }
        #expect(voter.written.map(\.leftInOrder).first == false)
        voter.hear(.prepare(entry: new, at: voter.position), from: epoch.id, epoch)
        #expect(voter.effects.messages.contains { $0.body == .ok(new.header.ballot) })
    }

    @Test func `a voter tells a candidate how its last life ended`() throws {
        for leftInOrder in [true, false] {
            var voter = try Candidate(leftInOrder: leftInOrder)
            voter.hear(.election, from: 1, Epoch(round: 3, id: 1))
            let answers = voter.effects.messages.compactMap { message -> VoterAnswer? in
                if case .answer(let answer) = message.body { answer } else { nil }
            }
            #expect(answers.map(\.leftInOrder) == [leftInOrder])
        }
    }

    @Test(arguments: [(true, true), (false, false)])
    func `to vote for emptying the swarms is not to go on`(isAllItDoes: Bool, isInOrder: Bool) throws {
        var voter = try Candidate(leftInOrder: true)
        let epoch = Epoch(round: 2, id: 2)
        var welcome = Welcome(
            id: 3, position: voter.position, answered: .start, servesFrom: voter.position.index + 1, attempt: 0,
            needsTransfer: false, secret: ClusterStopTests.secret, shardCount: 4)
        welcome.beginsEmpty = true
        voter.hear(.welcome(welcome), from: 2, epoch)
        // What the last lives have left, and then what this master does first.
        let inherited = entry([], epoch, after: voter.position)
        voter.hear(.prepare(entry: inherited, at: voter.position), from: 2, epoch)
        voter.hear(.commit(at: inherited.position), from: 2, epoch)
        #expect(voter.position == inherited.position)
        let updates = [Update.emptyShard(0)] + (isAllItDoes ? [] : [.setInterval(60)])
        let emptying = entry(updates, epoch, after: voter.position)
        voter.hear(.prepare(entry: emptying, at: voter.position), from: 2, epoch)
        #expect(voter.effects.messages.contains { $0.body == .ok(emptying.header.ballot) })
        voter.hear(.election, from: 1, Epoch(round: 3, id: 1))
        let answers = voter.effects.messages.compactMap { message -> VoterAnswer? in
            if case .answer(let answer) = message.body { answer } else { nil }
        }
        #expect(answers.map(\.leftInOrder) == [isInOrder])
    }

    private func entry(_ updates: [Update], _ epoch: Epoch, after position: Position) -> Entry {
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        for update in updates { update.encode(into: &bytes) }
        let offset = bytes.count
        Tickets().encode(into: &bytes)
        let header = EntryHeader(
            index: position.index + 1, epoch: epoch, time: WallTime(milliseconds: 2_000),
            updateCount: UInt32(updates.count), ticketsOffset: UInt32(offset), previous: position.chain)
        let chain = header.seal(&bytes)
        return Entry(sealed: bytes, header, chain: chain)
    }

    @Test(arguments: [false, true])
    func `the last that a tracker writes is how it has left`(keepsSwarms: Bool) throws {
        var tracker = try Candidate(leftInOrder: false, keepsSwarms: keepsSwarms)
        tracker.step(.commandReceived(.drain))
        #expect(tracker.effects.observations.contains(.drained))
        #expect(tracker.written.last?.leftInOrder ?? false == !keepsSwarms)
        // And it says nothing more.
        tracker.effects.removeAll()
        tracker.hear(.election, from: 1, Epoch(round: 9, id: 1))
        #expect(tracker.effects.messages.isEmpty)
    }

    @Test func `only its master can tell a tracker to stop`() throws {
        var tracker = try Candidate(leftInOrder: false)
        let epoch = Epoch(round: 2, id: 2)
        tracker.hear(
            .welcome(
                Welcome(
                    id: 3, position: tracker.position, answered: .start, servesFrom: 0, attempt: 0,
                    needsTransfer: false, secret: ClusterStopTests.secret, shardCount: 4)), from: 2, epoch)
        tracker.hear(.stop, from: 1, epoch)
        #expect(!tracker.effects.observations.contains(.drained))
        tracker.hear(.stop, from: 2, epoch)
        #expect(tracker.effects.observations.contains(.stopsWithCluster(by: 2)))
        #expect(tracker.effects.observations.contains(.drained))
    }
}

// The step contract: what a node may say, and when, between its clock and its disk.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Tracker node: the step")
struct TrackerNodeTests {
    static let torrent = InfoHash.numbered(1)
    static let client = SocketAddress.v4(1)

    /// A node that is master, and a connection id for the client.
    func master(
        _ configuration: NodeConfiguration = .test
    ) throws -> (harness: NodeHarness, id: ConnectionID) {
        var harness = NodeHarness(configuration)
        let id = try harness.connect(Self.client)
        _ = harness.takeObservations()
        return (harness, id)
    }

    func announce(
        _ id: ConnectionID, _ torrent: InfoHash = torrent, port: UInt16 = 6881, left: UInt64 = 1,
        transaction: UInt32 = 1
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        AnnounceRequest(
            connectionID: id, transactionID: TransactionID(transaction), infoHash: torrent, peerID: .zero, left: left,
            port: port
        ).encode(into: &bytes)
        return bytes
    }

    func replies(_ harness: inout NodeHarness) throws -> [TrackerReply] {
        try harness.takeSent().map { try TrackerReply($0.payload, isIPv6: false) }
    }

    // MARK: Before it is master

    @Test func `until its own promise is durable, a node is silent, and keeps what it is asked`() throws {
        var harness = NodeHarness(starts: false)
        var connect: [UInt8] = []
        ConnectRequest(transactionID: TransactionID(1)).encode(into: &connect)

        harness.receive([connect], from: Self.client)
        harness.step(.started)
        harness.receive([connect], from: Self.client)
        #expect(harness.sent.isEmpty)
        #expect(harness.node.status.role == .candidate)
        #expect(harness.node.status.counters.ignored == 1)
        #expect(harness.node.status.waitingRequests == 1)

        #expect(harness.pending.count == 1)
        guard case .promise(let promise)? = harness.pending.first?.change else {
            Issue.record("the first write is not the promise")
            return
        }
        #expect(promise.epoch == Epoch(round: 1, id: 1))
        #expect(promise.incarnation == 1)
        #expect(promise.secret == NodeHarness.secret)
        #expect(promise.shardCount == 8)
        #expect(harness.observations.isEmpty)

        harness.completeWrite()
        #expect(harness.observations == [.becameMaster(Epoch(round: 1, id: 1))])
        #expect(harness.node.status.role == .master)
        #expect(harness.sent.count == 1)
        harness.receive([connect], from: Self.client)
        #expect(harness.sent.count == 2)
    }

    @Test func `over HTTP, a node that has not started says so, and one that is about to serve keeps the request`() {
        var harness = NodeHarness(starts: false)
        let request = ClientRequest(id: 9, source: Self.client, content: .scrape([Self.torrent]))
        harness.step(.requestReceived(request))
        #expect(harness.takeAnswers() == [Answer(id: 9, content: .failure(.notServing))])
        harness.step(.started)
        harness.step(.requestReceived(request))
        #expect(harness.answers.isEmpty)
        harness.completeWrites()
        #expect(harness.answers == [Answer(id: 9, content: .scrape([SwarmCounts()]))])
    }

    @Test func `each life stands in an epoch of its own`() throws {
        let first = NodeHarness()
        let second = NodeHarness(try first.disk.restored(incarnation: 22), first.disk)
        #expect(second.disk.promise?.epoch == Epoch(round: 2, id: 1))
        #expect(second.disk.promise?.incarnation == 22)
    }

    @Test(arguments: [StorageFailure.full, .locked, .readOnly])
    func `a promise that could not be written is tried again after a second or so, in a higher epoch`(
        _ failure: StorageFailure
    ) {
        var harness = NodeHarness(starts: false)
        harness.step(.started)
        harness.failWrite(failure)
        #expect(harness.observations == [.storageFailed(failure, refused: 0)])
        #expect(harness.node.status.role == .candidate)
        #expect(harness.pending.isEmpty)

        harness.run(.milliseconds(499))
        #expect(harness.node.status.role == .candidate)
        harness.run(.milliseconds(1001))
        #expect(harness.disk.promise?.epoch == Epoch(round: 2, id: 1))
        #expect(harness.observations.suffix(2) == [.storageRecovered, .becameMaster(Epoch(round: 2, id: 1))])
    }

    // MARK: Nothing before it is durable

    @Test func `an announce is applied and answered only when its entry is durable`() throws {
        var (harness, id) = try master()
        let digest = harness.node.state.digest
        harness.receive([announce(id)], from: Self.client)
        #expect(harness.sent.isEmpty)
        #expect(harness.counts(Self.torrent) == SwarmCounts())
        #expect(harness.node.state.digest == digest)
        #expect(harness.node.status.waitingRequests == 1)
        #expect(harness.node.status.commitIndex == 0)

        harness.step(.deadlineReached)
        #expect(harness.sent.isEmpty)

        harness.completeWrite()
        #expect(try replies(&harness).count == 1)
        #expect(harness.counts(Self.torrent).leechers == 1)
        #expect(harness.node.state.digest != digest)
        #expect(harness.node.status.commitIndex == 1)
        #expect(harness.node.status.waitingRequests == 0)
    }

    @Test func `entries go to the disk one at a time, and what comes meanwhile gathers in the next`() throws {
        var (harness, id) = try master()
        for port in 1...5 {
            harness.receive([announce(id, port: UInt16(port), transaction: UInt32(port))], from: Self.client)
            #expect(harness.pending.count == 1)
        }
        #expect(harness.node.status.waitingRequests == 5)

        harness.completeWrite()
        #expect(try replies(&harness).count == 1)
        #expect(harness.pending.count == 1)
        guard case .append(let entry)? = harness.pending.first?.change else {
            Issue.record("the write is no entry")
            return
        }
        let header = entry.header
        #expect(header.index == 2)
        #expect(header.epoch == Epoch(round: 1, id: 1))
        #expect(header.updateCount == 4)
        // Nobody else has to answer them, or to agree.
        #expect(try Tickets(entry.bytes, header).isEmpty)
        #expect(header.isAlone)

        harness.completeWrite()
        let transactions = try replies(&harness).map { reply -> UInt32 in
            guard case .announce(let transaction, _) = reply else { return 0 }
            return transaction.rawValue
        }
        #expect(transactions == [2, 3, 4, 5])
    }

    @Test func `entries are stamped with a time that never runs backwards`() throws {
        var (harness, id) = try master()
        var random = RandomStream(seed: 11)
        var times: [WallTime] = []
        for round in 0..<200 {
            harness.now.wall.milliseconds += Int64(random.below(4_000)) - 2_000
            harness.receive([announce(id, port: UInt16(round + 1))], from: Self.client)
            if random.oneIn(2) { harness.completeWrite() }
        }
        harness.completeWrites()
        for entry in harness.disk.entries { times.append(entry.header.time) }
        #expect(times.count > 50)
        #expect(zip(times, times.dropFirst()).filter { $0 > $1 }.count == 0)
    }

    @Test func `one batch makes one entry, answered in order`() throws {
        var (harness, id) = try master()
        harness.receive(
            (1...100).map { announce(id, port: UInt16($0), transaction: UInt32($0)) }, from: Self.client)
        harness.completeWrites()
        #expect(harness.disk.entries.count == 1)
        let replies = try replies(&harness)
        #expect(replies.count == 100)
        for (number, reply) in replies.enumerated() {
            guard case .announce(let transaction, let answer) = reply else {
                Issue.record("not an announce reply")
                return
            }
            #expect(transaction.rawValue == UInt32(number + 1))
            // Each is answered from the swarm as its own update has left it.
            #expect(answer.leechers == UInt32(number + 1))
        }
    }

    // MARK: A disk that refuses

    @Test(arguments: [StorageFailure.full, .locked, .readOnly])
    func `an entry that was not written leaves no trace, and the next takes its place`(
        _ failure: StorageFailure
    ) throws {
        var (harness, id) = try master()
        harness.receive([announce(id, port: 1)], from: Self.client)
        harness.completeWrite()
        _ = harness.takeSent()
        let before = harness.node.state

        harness.receive([announce(id, port: 2), announce(id, port: 3, left: 0)], from: Self.client)
        harness.step(
            .requestReceived(
                ClientRequest(
                    id: 5, source: .v4(2),
                    content: .announce(Announce(infoHash: Self.torrent, peerID: .zero, left: 0, port: 4)))))
        harness.failWrite(failure)
        #expect(harness.observations == [.storageFailed(failure, refused: 2)])
        #expect(try replies(&harness).map(\.errorText) == Array(repeating: Refusal.notStored.clientText, count: 2))
        #expect(harness.node.state == before)
        #expect(harness.node.status.lastIndex == 2, "the HTTP request waits in the next entry")

        harness.failWrite(failure)
        #expect(harness.takeAnswers() == [Answer(id: 5, content: .failure(.notStored))])
        #expect(harness.node.state == before)
        #expect(harness.node.status.lastIndex == 1)
        #expect(harness.observations.count == 1, "one observation for one spell of trouble")

        harness.receive([announce(id, port: 9)], from: Self.client)
        harness.completeWrite()
        #expect(harness.disk.entries.map(\.header.index) == [1, 2])
        #expect(harness.counts(Self.torrent).leechers == 2)
        #expect(harness.observations.last == .storageRecovered)
        #expect(try replies(&harness).count == 1)
    }

    @Test func `a broken disk: those who wait are told, and then there is silence`() throws {
        var (harness, id) = try master()
        let before = harness.node.state
        harness.receive([announce(id, port: 1)], from: Self.client)
        harness.receive([announce(id, port: 2), announce(id, port: 3)], from: Self.client)
        harness.failWrite(.broken)
        #expect(harness.observations == [.storageFailed(.broken, refused: 3)])
        #expect(
            try replies(&harness).map(\.errorText) == Array(repeating: Refusal.storageFailed.clientText, count: 3))
        #expect(harness.node.state == before)
        #expect(harness.node.status.role == .failed)
        #expect(harness.node.nextDeadline == nil)
        #expect(harness.pending.isEmpty)

        harness.receive([announce(id, port: 4)], from: Self.client)
        harness.step(.deadlineReached)
        harness.step(.commandReceived(.setAccess(AccessRules(mode: .deny))))
        #expect(harness.sent.isEmpty)
        #expect(harness.pending.isEmpty)
        harness.step(.requestReceived(ClientRequest(id: 1, source: Self.client, content: .scrape([]))))
        #expect(harness.answers == [Answer(id: 1, content: .failure(.notServing))])
    }

    @Test func `a node with a broken disk may still be closed`() throws {
        var (harness, id) = try master()
        harness.receive([announce(id)], from: Self.client)
        harness.failWrite(.broken)
        harness.step(.commandReceived(.drain))
        #expect(harness.observations.last == .drained)
        #expect(harness.pending.isEmpty)
    }

    @Test func `a disk that breaks while the node stops does not hold the stop up`() throws {
        var (harness, id) = try master()
        harness.receive([announce(id)], from: Self.client)
        harness.step(.commandReceived(.drain))
        harness.failWrite(.broken)
        #expect(harness.observations == [.storageFailed(.broken, refused: 1), .drained])
    }

    @Test func `a chunk that could not be saved refuses nobody`() throws {
        var (harness, id) = try master()
        harness.receive([announce(id)], from: Self.client)
        harness.completeWrites()
        harness.run(.seconds(599))
        let later = try harness.connect(Self.client)
        harness.pass(.seconds(2))
        harness.receive([announce(later, port: 2)], from: Self.client)
        guard case .saveChunk? = harness.pending.first?.change else {
            Issue.record("the first write is no chunk")
            return
        }
        harness.failWrite(.full)
        #expect(harness.observations == [.storageFailed(.full, refused: 0)])
        #expect(harness.sent.isEmpty)
        harness.completeWrites()
        #expect(try replies(&harness).count == 1)
    }

    // MARK: Deadlines

    @Test func `a deadline that has not come changes nothing`() throws {
        func check(_ harness: NodeHarness, _ location: SourceLocation = #_sourceLocation) {
            var copy = harness
            let steps: Int64 = 20
            let room = harness.node.nextDeadline.map { $0 - harness.now.monotonic } ?? .seconds(10)
            for _ in 0..<steps {
                copy.step(.deadlineReached)
                let isSame = copy.node == harness.node
                #expect(isSame, sourceLocation: location)
                #expect(copy.pending == harness.pending, sourceLocation: location)
                #expect(copy.sent == harness.sent, sourceLocation: location)
                #expect(copy.answers == harness.answers, sourceLocation: location)
                #expect(copy.observations == harness.observations, sourceLocation: location)
                copy.now.monotonic = copy.now.monotonic + Duration(nanoseconds: room.nanoseconds / (steps + 1))
                copy.now.wall.milliseconds += 5_000
            }
        }
        var harness = NodeHarness(starts: false)
        check(harness)
        harness.step(.started)
        check(harness)
        var failing = harness
        failing.failWrite(.full)
        check(failing)
        harness.completeWrite()
        check(harness)
        let id = try harness.connect(Self.client)
        harness.receive([announce(id)], from: Self.client)
        check(harness)
        harness.completeWrites()
        harness.run(.seconds(61))
        check(harness)
        harness.receive([announce(id, port: 2)], from: Self.client)
        harness.step(.commandReceived(.drain))
        check(harness)
        harness.completeWrites()
        check(harness)
    }

    @Test func `an idle node is woken a few times a second at most`() {
        var configuration = NodeConfiguration()
        configuration.shardCount = 1024
        var harness = NodeHarness(configuration)
        // Once, the interval that is told is written down.
        harness.run(.seconds(1))
        var wakes = 0
        let end = harness.now.monotonic + .seconds(60)
        while let due = harness.node.nextDeadline, due <= end {
            harness.pass(due - harness.now.monotonic)
            harness.step(.deadlineReached)
            wakes += 1
            guard wakes < 1_000 else { break }
        }
        #expect(wakes <= 300)
        #expect(harness.pending.isEmpty, "nothing to write when nothing happens")
    }

    @Test func `the buffer of effects is appended to, never emptied, by a step`() {
        var effects = Effects()
        effects.answers.append(Answer(id: 1, content: .failure(.busy)))
        var node = TrackerNode(
            configuration: .test, incarnation: 1, secret: NodeHarness.secret, record: nil, seed: 1)
        let now = NodeHarness().now
        let request = ClientRequest(id: 2, source: Self.client, content: .scrape([]))
        node.step(.requestReceived(request), now: now, into: &effects)
        #expect(effects.answers.map(\.id) == [1, 2])
    }

    @Test func `the same seed gives the same replies, another seed gives others`() throws {
        func bytes(seed: UInt64) throws -> [[UInt8]] {
            var harness = NodeHarness(seed: seed)
            harness.fill(Self.torrent, (1...100).map { (.v4($0), 1) })
            let id = try harness.connect(.v4(200))
            harness.receive((0..<10).map { announce(id, transaction: $0) }, from: .v4(200))
            harness.completeWrites()
            return harness.takeSent().map(\.payload)
        }
        #expect(try bytes(seed: 1) == bytes(seed: 1))
        #expect(try bytes(seed: 1) != bytes(seed: 2))
    }
}

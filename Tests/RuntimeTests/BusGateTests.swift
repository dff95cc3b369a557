// What passes from the bus to the logic: only what is authentic, of now, for us, and once.

import Bus
import Primitives
import Testing
import Wire

@Suite("Bus gate")
struct BusGateTests {
    static let key = try! BusKey(ClusterKey(Array(repeating: 1, count: 32)), clusterName: "test")

    /// A tracker on the bus: a gate and a maker of frames.
    struct Tracker {
        var gate: BusGate
        var maker: FrameMaker
        var queue = OutgoingQueue()
        var output = BusGate.Output()
        var now = Instant(nanoseconds: 1_000_000_000)

        init(_ session: UInt64, key: BusKey = BusGateTests.key, incarnation: UInt64? = nil, repairs: Bool = false) {
            gate = BusGate(
                key: key, session: session, incarnation: incarnation ?? session, repairs: repairs, seed: session)
            maker = FrameMaker(key: key, session: session)
        }

        mutating func data(_ bytes: [UInt8], to incarnation: UInt64? = nil) -> [UInt8] {
            queue.append(BusMessage(destination: incarnation.map { Life(id: 0, incarnation: $0) }, bytes: bytes))
            return maker.data(from: &queue, limit: 10_000)!.frame
        }

        mutating func greeting() -> [UInt8]? {
            gate.takeGreeting(now: now, oldest: maker.nextSequence).map { maker.greeting($0) }
        }

        /// - Returns: the messages that came of it.
        mutating func receive(_ frame: [UInt8]) -> [[UInt8]] {
            gate.receive(frame, now: now, into: &output)
            defer { output = BusGate.Output() }
            return output.messages
        }
    }

    /// Lets both greet until neither has anything to say.
    private func introduce(_ left: inout Tracker, _ right: inout Tracker) {
        for _ in 0..<4 {
            if let greeting = left.greeting() { _ = right.receive(greeting) }
            if let greeting = right.greeting() { _ = left.receive(greeting) }
        }
        #expect(left.gate.provenCount == 1 && right.gate.provenCount == 1)
    }

    @Test func `two who come know each other after three greetings`() {
        var (a, b) = (Tracker(1), Tracker(2))
        let first = a.greeting()!
        #expect(b.receive(first) == [])
        #expect(b.gate.provenCount == 0)
        #expect(a.receive(b.greeting()!) == [])
        #expect(a.gate.provenCount == 1)
        _ = b.receive(a.greeting()!)
        #expect(b.gate.provenCount == 1)
        #expect(a.greeting() == nil && b.greeting() == nil)
        #expect(b.receive(a.data([1, 2, 3])) == [[1, 2, 3]])
        // Once a second all greet, for those who come later.
        a.now = a.now + .seconds(1)
        #expect(a.greeting() != nil)
    }

    @Test func `what comes before the greetings is held, and then taken in order`() {
        var (a, b) = (Tracker(1), Tracker(2))
        #expect(b.receive(a.data([1])) == [])
        #expect(b.receive(a.data([2])) == [])
        _ = a.receive(b.greeting()!)
        #expect(b.receive(a.greeting()!) == [[1], [2]])
        #expect(b.receive(a.data([3])) == [[3]])
        #expect(b.gate.received == 3 && b.gate.rejected == 0)
    }

    @Test func `a recording of an earlier time reaches nobody, however often it is played`() {
        var (old, witness) = (Tracker(1), Tracker(2))
        var recording = [old.greeting()!]
        introduce(&old, &witness)
        for number in 0..<100 { recording.append(old.data([UInt8(number)])) }
        old.now = old.now + .seconds(2)
        recording.append(old.greeting()!)
        // The old tracker is gone, and a new one comes.
        var new = Tracker(3)
        var greetings = 0
        for round in 0..<1000 {
            for frame in recording { #expect(new.receive(frame) == []) }
            new.now = new.now + .milliseconds(50)
            if new.greeting() != nil { greetings += 1 }
            if round == 0 { #expect(greetings == 1) }
        }
        #expect(new.gate.provenCount == 0 && new.gate.received == 0)
        #expect(new.gate.heldByteCount <= BusGate.Limits.heldByteCount)
        // 50 seconds: one a second, and the few that an unknown sender is worth.
        #expect(greetings < 75)
    }

    @Test func `within a session each frame counts once; repeats are rejected`() {
        var (a, b) = (Tracker(1), Tracker(2))
        introduce(&a, &b)
        let frames = (0..<10).map { a.data([UInt8($0)]) }
        for frame in frames.reversed() { #expect(b.receive(frame).count == 1) }
        for frame in frames { #expect(b.receive(frame) == []) }
        #expect(b.gate.rejected == 10)
        // Who hears two brokers gets all twice, and that is nobody's fault.
        b.gate.hearsTwice = true
        for frame in frames { #expect(b.receive(frame) == []) }
        #expect(b.gate.rejected == 10)
    }

    @Test func `whose key or cluster is another one is known by sender, counted, and within bounds`() throws {
        let otherKey = try BusKey(ClusterKey(Array(repeating: 2, count: 32)), clusterName: "test")
        let otherName = try BusKey(ClusterKey(Array(repeating: 1, count: 32)), clusterName: "other")
        var (own, stranger, neighbour) = (Tracker(1), Tracker(2, key: otherKey), Tracker(3, key: otherName))
        let place = SocketAddress(ipv4: 0x0A00_0007, port: 4711)
        for port in 1...9 {
            var source = place
            source.port = UInt16(port)
            own.gate.receive(stranger.data([1]), from: source, now: own.now, into: &own.output)
        }
        own.gate.receive(neighbour.data([1]), now: own.now, into: &own.output)
        #expect(own.output.messages.isEmpty && own.gate.rejected == 10)
        #expect(
            own.gate.refused.list(now: own.now + .seconds(2)) == [
                BusRefusal(sender: "10.0.0.7", reason: .otherKey, count: 9, silentSeconds: 2),
                BusRefusal(sender: "bus session 3", reason: .otherCluster, count: 1, silentSeconds: 2),
            ])
        for number in 0..<1000 {
            let source = SocketAddress(ipv4: UInt32(number), port: 1)
            own.gate.receive(stranger.data([1]), from: source, now: own.now, into: &own.output)
        }
        #expect(own.gate.refused.list(now: own.now).count == RefusedSenders.maxCount)
    }

    @Test func `junk of each kind is counted and dropped`() throws {
        var (a, b) = (Tracker(1), Tracker(2))
        introduce(&a, &b)
        let good = a.data([1, 2, 3])
        var random = RandomStream(seed: 5)
        var expected: UInt64 = 0
        func reject(_ frame: [UInt8]) {
            #expect(b.receive(frame) == [])
            expected += 1
            #expect(b.gate.rejected == expected)
        }
        // Cut, lengthened, and with each bit of it turned.
        for count in 0..<good.count { reject(Array(good[..<count])) }
        reject(good + [0])
        for bit in 0..<good.count * 8 {
            var forged = good
            forged[bit / 8] ^= 1 << UInt8(bit % 8)
            reject(forged)
        }
        for _ in 0..<500 {
            reject((0..<random.below(200)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
        }
        // Another key, another cluster with the same key, another program.
        let otherKey = try BusKey(ClusterKey(Array(repeating: 2, count: 32)), clusterName: "test")
        var stranger = Tracker(5, key: otherKey)
        reject(stranger.data([1]))
        let otherName = try BusKey(ClusterKey(Array(repeating: 1, count: 32)), clusterName: "other")
        var neighbour = Tracker(6, key: otherName)
        reject(neighbour.greeting()!)
        reject(Array("MESSAGE\n\n\0".utf8))
        #expect(b.receive(good) == [[1, 2, 3]])
        #expect(b.gate.provenCount == 1 && b.gate.heldByteCount == 0)
    }

    @Test func `a frame of another version is rejected, and told where it is authentic`() throws {
        let otherKey = try BusKey(ClusterKey(Array(repeating: 2, count: 32)), clusterName: "test")
        func foreign(_ version: UInt8, key: BusKey = Self.key, cluster: UInt32 = Self.key.cluster) -> [UInt8] {
            var frame: [UInt8] = []
            BusFrameHead(kind: .mark, cluster: cluster, session: 7, sequence: 1).encode(into: &frame)
            // What follows the session may be anything in a version that nobody knows here.
            frame[3] = version
            frame[BusFrameHead.kindOffset] = 77
            frame += [1, 2, 3]
            key.seal(&frame)
            return frame
        }
        var tracker = Tracker(1)
        var output = BusGate.Output()
        let known = foreign(2)
        tracker.gate.receive(known, now: tracker.now, into: &output)
        #expect(output.foreigners == [BusFrameOrigin(known)] && output.foreigners.first?.version == 2)
        #expect(output.messages.isEmpty && tracker.gate.rejected == 1)
        #expect(tracker.gate.provenCount == 0 && tracker.gate.heldByteCount == 0)
        // Forged, of another cluster, cut, or of this version and damaged: no word about versions.
        var strangers = [foreign(2, key: otherKey), foreign(2, cluster: 5), foreign(1), Array(known.dropLast())]
        strangers.append(Array("SKB".utf8) + [2])
        for frame in strangers { tracker.gate.receive(frame, now: tracker.now, into: &output) }
        #expect(output.foreigners.count == 1 && tracker.gate.rejected == 6)
    }

    @Test func `messages for another life are left alone, and our own come back to nobody`() {
        var (a, b) = (Tracker(1), Tracker(2))
        introduce(&a, &b)
        #expect(b.receive(a.data([1], to: 7)) == [])
        #expect(b.receive(a.data([2], to: 2)) == [[2]])
        #expect(a.receive(a.data([3])) == [])
        #expect(a.gate.rejected == 0 && b.gate.rejected == 0)
    }

    @Test func `long messages are put together`() {
        var (a, b) = (Tracker(1), Tracker(2))
        introduce(&a, &b)
        let long = (0..<50_000).map { UInt8(truncatingIfNeeded: $0) }
        a.queue.append(BusMessage(destination: nil, bytes: long))
        var received: [[UInt8]] = []
        var frames: [[UInt8]] = []
        while let (_, frame) = a.maker.data(from: &a.queue, limit: 1400) {
            #expect(frame.count <= 1400)
            frames.append(frame)
        }
        #expect(frames.count == 38)
        for frame in frames.reversed() { received += b.receive(frame) }
        #expect(received == [long])
        #expect(b.gate.heldByteCount == 0)
    }

    @Test func `strangers' sessions are bounded, and push out nobody who has proved himself`() {
        var (a, b) = (Tracker(1), Tracker(2))
        introduce(&a, &b)
        for session in 100..<1000 as Range<UInt64> {
            var other = Tracker(session)
            #expect(b.receive(other.data([UInt8](repeating: 1, count: 5000))) == [])
        }
        #expect(b.gate.provenCount == 1)
        #expect(b.gate.heldByteCount <= BusGate.Limits.unproven * 6000)
        #expect(b.receive(a.data([1])) == [[1]])
        b.now = b.now + .seconds(2)
        guard let greeting = b.gate.takeGreeting(now: b.now, oldest: 1) else {
            Issue.record("a greeting is due")
            return
        }
        #expect(greeting.acquaintances.count <= BusGate.Limits.unproven + 1)
    }

    @Test func `who is silent for a minute is forgotten, and has to prove himself again`() {
        var (a, b) = (Tracker(1), Tracker(2))
        introduce(&a, &b)
        b.now = b.now + .seconds(61)
        _ = b.greeting()
        #expect(b.gate.provenCount == 0)
        #expect(b.receive(a.data([1])) == [])
        a.now = b.now
        _ = a.receive(b.greeting()!)
        #expect(b.receive(a.greeting()!) == [[1]])
    }

    @Test func `a frame's MAC depends on the cluster's name, and a key file's on its content alone`() throws {
        let one = try BusKey(ClusterKey(Array(repeating: 1, count: 32)), clusterName: "test")
        var frame: [UInt8] = [1, 2, 3]
        one.seal(&frame)
        #expect(frame.count == 19)
        #expect(one.isAuthentic(frame))
        #expect(!one.isAuthentic(Array(frame.dropLast())))
        #expect(!one.isAuthentic([]))
        let other = try BusKey(ClusterKey(Array(repeating: 1, count: 32)), clusterName: "tes")
        #expect(!other.isAuthentic(frame))
    }
}

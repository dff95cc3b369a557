// Whatever a node has made durable, in whatever order the process dies, reads back as the state it had.

import Primitives
import Testing
import TrackerLogic
import Wire

/// Everything that can happen to a node on a slow disk, at random; the same for the same seed.
struct RandomTraffic {
    var harness: NodeHarness
    private var random: RandomStream
    /// The state after each durable change.
    private(set) var states: [ReplicatedState] = []

    init(seed: UInt64) {
        harness = NodeHarness(seed: seed, starts: false)
        random = RandomStream(seed: seed, stream: 2)
        harness.step(.started)
        completeWrite()
    }

    mutating func run(steps: Int) {
        for _ in 0..<steps { act() }
        while !harness.pending.isEmpty { completeWrite() }
    }

    private mutating func completeWrite() {
        harness.completeWrite()
        states.append(harness.node.state)
    }

    private mutating func act() {
        switch random.below(100) {
        case ..<45: announce()
        case ..<80: if !harness.pending.isEmpty { completeWrite() }
        case ..<92:
            harness.pass(.milliseconds(Int64(random.below(30))))
            harness.step(.deadlineReached)
        case ..<94:
            harness.pass(.seconds(Int64(random.below(400))))
            harness.step(.deadlineReached)
        case ..<96: if !harness.pending.isEmpty { harness.failWrite(.full) }
        case ..<98: harness.step(.commandReceived(registryCommand()))
        default: harness.step(.commandReceived(.setAccess(rules())))
        }
    }

    private mutating func announce() {
        let address = random.oneIn(3) ? SocketAddress.v6(random.below(20)) : .v4(random.below(40))
        let events: [AnnounceEvent] = [.none, .started, .completed, .stopped]
        let announce = Announce(
            infoHash: .numbered(random.below(3) * random.below(10)), peerID: .of(address),
            downloaded: UInt64(random.below(1000)), left: UInt64(random.below(3)), event: events[random.below(4)],
            port: UInt16(1 + random.below(3)))
        harness.step(
            .requestReceived(ClientRequest(id: 1, source: address, passkey: [97], content: .announce(announce))))
    }

    private mutating func registryCommand() -> OperatorCommand {
        let torrents = (0..<random.below(4)).map { _ in
            let number = random.below(30)
            return RegisteredTorrent(
                infoHash: .numbered(number), name: "torrent \(random.below(3))", byteCount: UInt64(number))
        }
        return .fileTorrents(random.oneIn(3) ? [] : torrents)
    }

    private mutating func rules() -> AccessRules {
        let modes: [AccessMode] = [.open, .open, .allow, .deny, .private]
        return AccessRules(
            mode: modes[random.below(5)], infoHashes: (0..<random.below(8)).map { _ in .numbered(random.below(30)) },
            users: (0..<random.below(4)).map { User(name: "user \($0)", passkey: [97 + UInt8($0)]) })
    }
}

@Suite("Recovery")
struct RecoveryTests {
    @Test(arguments: 1...4)
    func `what is on the disk is the state, whenever the process dies`(_ seed: UInt64) throws {
        var traffic = RandomTraffic(seed: seed)
        traffic.run(steps: 4_000)

        var disk = DiskImage()
        var random = RandomStream(seed: seed, stream: 3)
        var trims = 0
        var mixedPrefixes = 0
        var wrong = 0
        for (change, state) in zip(traffic.harness.changes, traffic.states) {
            disk.carryOut(change)
            if case .trim = change { trims += 1 }
            if disk.chunks.contains(where: { $0.index != disk.chunks[0].index }), disk.entries.count > 3 {
                mixedPrefixes += 1
            }
            var shuffled = disk
            random.shuffle(&shuffled.chunks)
            let restored = NodeHarness(try shuffled.restored(), shuffled, at: state.time.milliseconds)
            if restored.node.state != state { wrong += 1 }
        }
        #expect(wrong == 0, "of \(traffic.states.count) moments")
        // The traffic was worth its name.
        #expect(trims >= 2)
        #expect(mixedPrefixes >= 50)
        #expect(traffic.harness.node.status.counters.expired > 0)
        #expect(traffic.states.contains { $0.registry.count > 0 })
        #expect(traffic.states.count > 500)
    }

    @Test func `a node that was read back goes on where the other stopped`() throws {
        var traffic = RandomTraffic(seed: 5)
        traffic.run(steps: 1_000)
        var first = traffic.harness
        var second = NodeHarness(try first.disk.restored(), first.disk, at: first.now.wall.milliseconds)
        #expect(second.node.status.commitIndex == first.node.status.commitIndex)
        let index = first.node.status.lastIndex
        first.step(.commandReceived(.setAccess(AccessRules())))
        first.completeWrites()
        second.step(.commandReceived(.setAccess(AccessRules())))
        second.completeWrites()
        for number in 0..<20 {
            first.fill(.numbered(number), [(.v4(77), 0)])
            second.fill(.numbered(number), [(.v4(77), 0)])
        }
        #expect(second.node.status.lastIndex >= index + 20)
        #expect(first.node.state.digest == second.node.state.digest)
        let third = NodeHarness(try second.disk.restored(), second.disk, at: second.now.wall.milliseconds)
        #expect(third.node.state.digest == second.node.state.digest)
    }

    /// The files of its operator are read before a tracker starts, and its bus may be there.
    @Test(arguments: [ClusterConfiguration.alone, ClusterConfiguration(mode: .quorum, members: [1, 2, 3])])
    func `what is heard before the start writes nothing of what was read back`(cluster: ClusterConfiguration) throws {
        var traffic = RandomTraffic(seed: 6)
        traffic.run(steps: 1_000)
        let disk = traffic.harness.disk
        #expect(disk.entries.count > 3)
        var configuration = NodeConfiguration.test
        configuration.cluster = cluster
        var node = try disk.restored(configuration)
        var effects = Effects()
        for event in [Event.commandReceived(.setAccess(AccessRules())), .busConnected, .deadlineReached] {
            node.step(event, now: traffic.harness.now, into: &effects)
        }
        #expect(effects.persists.isEmpty)
        node.step(.started, now: traffic.harness.now, into: &effects)
        for persist in effects.persists {
            guard case .promise = persist.change else {
                Issue.record("\(persist.change) is written at the start")
                continue
            }
        }
    }

    @Test func `cluster time does not run backwards over a restart, though the clock was set back`() throws {
        var harness = NodeHarness()
        harness.fill(.numbered(1), [(.v4(1), 1)])
        harness.run(.seconds(700))
        #expect(harness.disk.entries.isEmpty, "the log is cut, the snapshot alone is left")
        let before = harness.node.state.time
        var next = NodeHarness(
            try harness.disk.restored(), harness.disk, at: before.milliseconds - 3_600_000)
        next.fill(.numbered(1), [(.v4(2), 1)])
        let header = try #require(next.disk.entries.first).header
        #expect(header.time >= before)
    }

    @Test func `a snapshot that fails does not cut the log, and the next one does`() throws {
        var harness = NodeHarness()
        harness.fill(.numbered(1), [(.v4(1), 1)])
        harness.run(.seconds(599))
        harness.pass(.seconds(2))
        harness.step(.deadlineReached)
        while let write = harness.pending.first {
            if case .saveChunk = write.change { harness.failWrite(.full) } else { harness.completeWrite() }
        }
        harness.run(.seconds(60))
        // The announce, and the interval that is told.
        #expect(harness.disk.entries.count == 2)
        #expect(harness.disk.chunks.isEmpty)
        harness.run(.seconds(700))
        #expect(harness.disk.entries.isEmpty)
        // Those two that have changed, and the last, which says how far the state was.
        #expect(harness.disk.chunks.count == 3)
        #expect(try harness.disk.restored().state == harness.node.state)
    }

    @Test func `a tracker on which nothing changes writes nothing`() {
        var harness = NodeHarness()
        harness.fill(.numbered(1), [(.v4(1), 1)])
        harness.run(.seconds(700))
        harness.run(.seconds(3_000))
        // The peer has expired meanwhile; that was the last change.
        let changes = harness.changes.count
        harness.run(.seconds(36_000))
        #expect(harness.changes.count == changes)
    }

    // MARK: Damage

    /// A disk with a log and a snapshot, of every kind of update.
    private static let sample: DiskImage = {
        var traffic = RandomTraffic(seed: 8)
        traffic.run(steps: 1_500)
        return traffic.harness.disk
    }()

    private static let fresh = TrackerNode(
        configuration: .test, incarnation: 1, secret: NodeHarness.secret, record: sample.promise, seed: 1)

    /// What a node says to an entry; nil where it takes it.
    private func refusal(of entry: [UInt8], by node: TrackerNode = fresh) -> EntryDamaged? {
        var node = node
        do {
            try node.restore(entry: entry)
            return nil
        } catch {
            return error
        }
    }

    /// What a node says to a chunk; nil where it takes it.
    private func refusal(of chunk: SnapshotChunk) -> ChunkDamaged? {
        var node = Self.fresh
        do {
            try node.restore(chunk)
            return nil
        } catch {
            return error
        }
    }

    @Test func `an entry that is cut or altered anywhere is refused`() throws {
        var entry = Self.sample.entries.map(\.bytes).max { $0.count < $1.count } ?? []
        try #require(entry.count > 200)
        var header = try EntryHeader(entry)
        header.index = 1
        header.previous = 0
        header.seal(&entry)
        #expect(refusal(of: entry) == nil)
        var accepted: [Int] = []
        for place in entry.indices {
            if refusal(of: Array(entry[..<place])) == nil { accepted.append(place) }
            for bit: UInt8 in 0..<8 {
                var altered = entry
                altered[place] ^= 1 << bit
                if refusal(of: altered) == nil { accepted.append(place) }
            }
        }
        #expect(accepted.isEmpty)
        #expect(refusal(of: entry + [0]) == EntryDamaged())
    }

    @Test func `a chunk that is cut or altered anywhere is refused`() throws {
        for chunk in Self.sample.chunks {
            #expect(refusal(of: chunk) == nil)
            var wrong: [Int] = []
            for place in chunk.bytes.indices {
                var cut = chunk
                cut.bytes = Array(chunk.bytes[..<place])
                var altered = chunk
                altered.bytes[place] ^= 1 << UInt8(place & 7)
                for damaged in [cut, altered] where refusal(of: damaged) != ChunkDamaged(number: chunk.number) {
                    wrong.append(place)
                }
            }
            #expect(wrong.isEmpty)
        }
    }

    @Test func `a chunk in the place of another, or with another's index, is refused`() throws {
        for chunk in Self.sample.chunks {
            for number in [0, 1, 2, 8, 9, 1_000_000, UInt32.max] where number != chunk.number {
                var moved = chunk
                moved.number = number
                #expect(refusal(of: moved) == ChunkDamaged(number: number))
            }
            for index in [0, chunk.index &+ 1, UInt64.max] {
                var moved = chunk
                moved.index = index
                #expect(refusal(of: moved) == ChunkDamaged(number: chunk.number))
            }
        }
    }

    @Test func `a log with a hole, or out of order, is refused`() throws {
        let entries = Self.sample.entries
        try #require(entries.count > 5)
        var node = Self.fresh
        for chunk in Self.sample.chunks { try node.restore(chunk) }
        try node.restore(entry: entries[0].bytes)
        for wrong in [2, 3, 0] { #expect(refusal(of: entries[wrong].bytes, by: node) == EntryDamaged()) }
        #expect(refusal(of: entries[1].bytes, by: node) == nil)
        // Without the snapshot, the log begins too late.
        #expect(refusal(of: entries[0].bytes) == EntryDamaged())
    }

    @Test func `an entry of another history is refused, though it is the last`() throws {
        let entries = Self.sample.entries
        var node = Self.fresh
        for chunk in Self.sample.chunks { try node.restore(chunk) }
        for entry in entries.dropLast() { try node.restore(entry: entry.bytes) }
        var last = try #require(entries.last).bytes
        #expect(refusal(of: last, by: node) == nil)
        var header = try EntryHeader(last)
        header.previous ^= 2
        header.seal(&last)
        #expect(refusal(of: last, by: node) == EntryDamaged())
    }

    /// Bytes mutated, but with a checksum that holds: what a bug or a Byzantine member could write.
    @Test func `no entry traps, even when its checksum is right`() throws {
        var random = RandomStream(seed: 21)
        var counts = (accepted: 0, refused: 0)
        for _ in 0..<rounds(20_000) {
            let entry = Self.sample.entries[random.below(Self.sample.entries.count)]
            var bytes = entry.bytes
            for _ in 0...random.below(4) where bytes.count > EntryHeader.byteCount {
                let place = EntryHeader.byteCount + random.below(bytes.count - EntryHeader.byteCount)
                switch random.below(4) {
                case 0: bytes[place] = UInt8(random.below(12))
                case 1: bytes[place] = UInt8(truncatingIfNeeded: random.next())
                case 2: bytes.removeSubrange(place...)
                default: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
                }
            }
            var header = try EntryHeader(entry.bytes)
            header.index = 1
            header.previous = 0
            header.seal(&bytes)
            do {
                var node = Self.fresh
                try node.restore(entry: bytes)
                counts.accepted += 1
            } catch { counts.refused += 1 }
        }
        #expect(counts.accepted > 100)
        #expect(counts.refused > 100)
    }

    @Test func `no chunk traps, even when its checksum is right, and the node that read it runs`() throws {
        var random = RandomStream(seed: 22)
        var counts = (accepted: 0, refused: 0)
        for _ in 0..<rounds(6_000) {
            var chunk = Self.sample.chunks[random.below(Self.sample.chunks.count)]
            var bytes = Array(chunk.bytes.dropLast(8))
            for _ in 0...random.below(3) where !bytes.isEmpty {
                let place = random.below(bytes.count)
                let end = min(bytes.count, place + 1 + random.below(80))
                switch random.below(5) {
                case 0: bytes[place] = UInt8(random.below(4))
                case 1: bytes[place] = UInt8(truncatingIfNeeded: random.next())
                case 2 where bytes.count > 30: bytes.removeSubrange(place...)
                case 3: bytes.insert(contentsOf: bytes[place..<end], at: place)
                default: bytes.replaceSubrange(place..<end, with: bytes.prefix(end - place))
                }
            }
            bytes.append(bigEndian: checksum(bytes.span.bytes))
            chunk.bytes = bytes
            var node = Self.fresh
            do {
                try node.restore(chunk)
                counts.accepted += 1
            } catch {
                counts.refused += 1
                continue
            }
            var harness = NodeHarness(node, DiskImage())
            for number in 0..<3 { harness.fill(.numbered(number), [(.v4(5), 1), (.v6(5), 0)]) }
            harness.run(.seconds(600))
        }
        #expect(counts.accepted > 100)
        #expect(counts.refused > 100)
    }
}

/// Fewer rounds where the compiler does not help.
func rounds(_ count: Int) -> Int {
    #if DEBUG
        count / 10
    #else
        count
    #endif
}

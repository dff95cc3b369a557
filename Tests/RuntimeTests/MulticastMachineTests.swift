// Trackers on a group that loses, repeats and reorders datagrams: all of it with a clock of its own.

import Bus
import Primitives
import Testing
import Wire

/// Some machines and the network between them.
private struct World {
    struct Flight {
        var at: Instant
        var target: Int
        var datagram: [UInt8]
    }

    var machines: [MulticastMachine] = []
    var queues: [OutgoingQueue]
    var outputs: [MulticastMachine.Output]
    var received: [[[UInt8]]]
    var sentCount: [Int]
    var now = Instant(nanoseconds: 1_000_000_000)
    /// Percent.
    var loss = 0
    var repeats = 0
    var delay = (least: Duration.microseconds(20), most: Duration.microseconds(60))
    /// Pairs that do not hear each other.
    var cut: [(Int, Int)] = []
    private var flights: [Flight] = []
    private var random: RandomStream

    init(_ count: Int, seed: UInt64) {
        random = RandomStream(seed: seed)
        queues = Array(repeating: OutgoingQueue(), count: count)
        outputs = Array(repeating: MulticastMachine.Output(), count: count)
        received = Array(repeating: [], count: count)
        sentCount = Array(repeating: 0, count: count)
        for index in 0..<count { machines.append(machine(index)) }
    }

    private mutating func machine(_ index: Int) -> MulticastMachine {
        MulticastMachine(
            key: BusGateTests.key, session: random.next() | 1, incarnation: UInt64(index + 1), seed: random.next())
    }

    mutating func restart(_ index: Int) { machines[index] = machine(index) }

    mutating func send(_ bytes: [UInt8], from index: Int, to target: Int? = nil) {
        queues[index].append(
            BusMessage(destination: target.map { Life(id: 0, incarnation: UInt64($0 + 1)) }, bytes: bytes))
    }

    /// Lets the clock run.
    mutating func run(for span: Duration) {
        let end = now + span
        while now < end {
            for index in machines.indices { turn(index) }
            let next = machines.indices.map {
                machines[$0].nextDeadline(now: now, hasMessages: !queues[$0].isEmpty)
            }.min()!
            let arrival = flights.map(\.at).min()
            now = min(end, max(now + .microseconds(5), earliest(next, arrival)!))
            let landed = flights.filter { $0.at <= now }
            flights.removeAll { $0.at <= now }
            for flight in landed {
                machines[flight.target].received(flight.datagram, now: now, into: &outputs[flight.target])
                received[flight.target] += outputs[flight.target].messages
                outputs[flight.target].messages = []
            }
        }
    }

    private mutating func turn(_ index: Int) {
        machines[index].step(now: now, into: &outputs[index])
        while machines[index].sendNext(from: &queues[index], now: now, into: &outputs[index]) {}
        for datagram in outputs[index].datagrams {
            sentCount[index] += 1
            for target in machines.indices {
                let isCut = cut.contains { $0 == (index, target) || $0 == (target, index) }
                guard target == index || !isCut else { continue }
                for _ in 0...(random.below(100) < repeats ? 1 : 0) where random.below(100) >= loss {
                    flights.append(
                        Flight(at: now + random.between(delay.least, delay.most), target: target, datagram: datagram))
                }
            }
        }
        outputs[index].datagrams = []
    }
}

@Suite("Multicast machine")
struct MulticastMachineTests {
    private func number(_ value: Int, length: Int = 100) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: UInt32(value))
        return bytes + (4..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ value) }
    }

    struct Weather: Sendable, CustomTestStringConvertible {
        var loss: Int
        var repeats: Int
        var delay: Duration
        var testDescription: String { "\(loss) % lost, \(repeats) % twice, up to \(delay.nanoseconds / 1000) us" }
    }

    @Test(
        arguments: [
            Weather(loss: 0, repeats: 0, delay: .microseconds(60)),
            Weather(loss: 1, repeats: 0, delay: .microseconds(60)),
            Weather(loss: 10, repeats: 10, delay: .milliseconds(3)),
            Weather(loss: 30, repeats: 5, delay: .milliseconds(1)),
        ], 1...3)
    func `each message comes once to each, whatever the network does`(_ weather: Weather, _ seed: UInt64) {
        var world = World(3, seed: seed)
        (world.loss, world.repeats, world.delay.most) = (weather.loss, weather.repeats, weather.delay)
        // Time for the greetings: one in three may be lost.
        world.run(for: .seconds(8))
        #expect(world.machines.allSatisfy { $0.gate.provenCount == 2 })
        var sent: [[[UInt8]]] = [[], [], []]
        for round in 0..<60 {
            for index in 0..<3 {
                // Short ones, some of several datagrams, and a long one.
                let length = round == 30 ? 200_000 : round % 10 == 0 ? 5000 : 100
                let bytes = number(round * 3 + index, length: length)
                let target = round % 4 == 1 ? (index + 1) % 3 : nil
                world.send(bytes, from: index, to: target)
                for other in 0..<3 where other != index && (target == nil || target == other) {
                    sent[other].append(bytes)
                }
            }
            world.run(for: .milliseconds(3))
        }
        world.run(for: .seconds(4))
        for index in 0..<3 {
            #expect(world.received[index].count == sent[index].count)
            #expect(Set(world.received[index]) == Set(sent[index]))
            #expect(world.machines[index].gate.rejected == 0)
        }
        if weather.loss > 0 { #expect(world.machines[0].gate.repaired > 0) }
    }

    @Test func `the last message of a burst is repaired without waiting for the next`() {
        var slowest = Duration.zero
        for seed in 1...20 as ClosedRange<UInt64> {
            var world = World(2, seed: seed)
            world.run(for: .milliseconds(100))
            // The only datagram is lost, and nothing else.
            world.loss = 100
            world.send([1], from: 0)
            world.run(for: .microseconds(100))
            world.loss = 0
            let sent = world.now
            while world.received[1].isEmpty, world.now < sent + .seconds(1) { world.run(for: .microseconds(100)) }
            slowest = max(slowest, world.now - sent)
        }
        #expect(slowest < .milliseconds(5))
    }

    @Test func `an idle group is quiet`() {
        var world = World(5, seed: 1)
        world.run(for: .seconds(2))
        let before = world.sentCount
        world.run(for: .seconds(60))
        for index in 0..<5 { #expect(world.sentCount[index] - before[index] <= 61) }
    }

    @Test func `two that lack the same ask for it once, and it is sent again once`() {
        var requests = 0
        for seed in 1...20 as ClosedRange<UInt64> {
            var world = World(6, seed: seed)
            world.run(for: .milliseconds(100))
            world.loss = 100
            world.send([1], from: 0)
            world.run(for: .microseconds(100))
            world.loss = 0
            let before = world.sentCount.reduce(0, +)
            world.run(for: .milliseconds(8))
            #expect(world.received.dropFirst().allSatisfy { $0 == [[1]] })
            requests += world.sentCount.reduce(0, +) - before
        }
        // Two marks, one repetition and one request would be four; some ask at the same moment.
        #expect(requests < 20 * 8)
    }

    @Test func `who was cut off for a while hears again at once, and nothing is asked for ever`() {
        var world = World(3, seed: 4)
        world.run(for: .milliseconds(100))
        world.cut = [(0, 2), (1, 2)]
        for round in 0..<1000 {
            world.send(number(round), from: 0)
            world.run(for: .milliseconds(2))
        }
        world.cut = []
        world.send(number(5000), from: 0)
        world.run(for: .milliseconds(50))
        #expect(world.received[2].contains(number(5000)))
        // What the ring still had was repaired, too.
        world.run(for: .seconds(3))
        #expect(world.received[2].count == 1001)
        let before = world.sentCount.reduce(0, +)
        world.run(for: .seconds(10))
        #expect(world.sentCount.reduce(0, +) - before <= 33)
    }

    @Test func `a tracker that starts anew is heard, and hears, within a moment`() {
        var world = World(3, seed: 5)
        world.run(for: .milliseconds(100))
        world.send([1], from: 2)
        world.run(for: .milliseconds(10))
        world.restart(2)
        world.run(for: .milliseconds(5))
        world.send([2], from: 2)
        world.send([3], from: 0)
        world.run(for: .milliseconds(10))
        #expect(world.received[0] == [[1], [2]])
        #expect(world.received[2] == [[3]])
    }

    @Test func `junk changes nothing`() {
        var world = World(2, seed: 6)
        world.run(for: .milliseconds(100))
        var random = RandomStream(seed: 7)
        var output = MulticastMachine.Output()
        for _ in 0..<5000 {
            let junk = (0..<random.below(1500)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            world.machines[1].received(junk, now: world.now, into: &output)
        }
        #expect(output.messages.isEmpty && output.datagrams.isEmpty)
        #expect(world.machines[1].gate.rejected == 5000)
        world.send([1], from: 0)
        world.run(for: .milliseconds(10))
        #expect(world.received[1] == [[1]])
    }

    @Test func `a datagram fits into an Ethernet`() {
        var world = World(2, seed: 8)
        world.run(for: .milliseconds(100))
        var queue = OutgoingQueue()
        queue.append(BusMessage(destination: nil, bytes: [UInt8](repeating: 1, count: 100_000)))
        var output = MulticastMachine.Output()
        while world.machines[0].sendNext(from: &queue, now: world.now, into: &output) {}
        #expect(output.datagrams.count > 40)
        #expect(output.datagrams.allSatisfy { $0.count <= 1400 })
        #expect(output.datagrams.reduce(0) { $0 + $1.count } <= SendPace.Limits.burst + 1400)
    }
}

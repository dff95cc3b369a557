// Whole buses between trackers of one process: over the embedded broker, and over multicast on the loopback interface.

import Bus
import Foundation
import Primitives
import Synchronization
import Testing
import Wire

/// Takes what a bus tells.
private final class TestInbox: BusInbox {
    struct State {
        var messages: [[UInt8]] = []
        var connections = 0
        var losses: [String] = []
        var hasEnded = false
        var callsAfterEnd = 0
    }

    private let state = Mutex(State())

    var now: State { state.withLock { $0 } }

    func end() { state.withLock { $0.hasEnded = true } }

    private func note(_ body: (inout State) -> Void) {
        state.withLock { state in
            if state.hasEnded { state.callsAfterEnd += 1 }
            body(&state)
        }
    }

    func busReceived(_ messages: [[UInt8]]) { note { $0.messages += messages } }
    func busConnected() { note { $0.connections += 1 } }
    func busLost(reason: String) { note { $0.losses.append(reason) } }
}

/// Some trackers' buses.
private struct Trackers {
    var buses: [any Bus] = []
    var inboxes: [TestInbox] = []

    static let key = try! ClusterKey([UInt8](repeating: 3, count: 32))

    mutating func add(
        _ url: String, incarnation: UInt64, key: ClusterKey = Trackers.key, name: String = "test"
    ) throws {
        let bus = try BusFactory.make(
            options: BusOptions(url: url), key: key, clusterName: ClusterName(name), incarnation: incarnation)
        let inbox = TestInbox()
        bus.start(inbox: inbox)
        buses.append(bus)
        inboxes.append(inbox)
    }

    func stop() async {
        for (bus, inbox) in zip(buses, inboxes) {
            await bus.stop()
            inbox.end()
        }
    }
}

private func toAll(_ bytes: [UInt8]) -> BusMessage { BusMessage(destination: nil, bytes: bytes) }
private func toOne(_ incarnation: UInt64, _ bytes: [UInt8]) -> BusMessage {
    BusMessage(destination: Life(id: 9, incarnation: incarnation), bytes: bytes)
}

/// A URL that no other test, and no other run, has: an address of the loopback network, or a group, drawn at random.
private func embeddedURL() -> String {
    "embedded:127.\(Int.random(in: 1...254)).\(Int.random(in: 1...254)).\(Int.random(in: 2...254)):61623"
}
private func multicastURL() -> String {
    "multicast://239.\(Int.random(in: 1...254)).\(Int.random(in: 1...254)).\(Int.random(in: 1...254)):6970?interface=lo"
}

@Suite("Buses", .serialized)
struct BusTests {
    enum Kind: Sendable, CaseIterable {
        case embedded
        case multicast

        var url: String { self == .embedded ? embeddedURL() : multicastURL() }
    }

    /// Three trackers that hear each other.
    private func three(_ url: String) async throws -> Trackers {
        var trackers = Trackers()
        for incarnation in 1...3 as ClosedRange<UInt64> { try trackers.add(url, incarnation: incarnation) }
        try await eventually("connected") { trackers.inboxes.allSatisfy { $0.now.connections == 1 } }
        // Greetings may still be on their way; what is said meanwhile is held for them.
        for (index, bus) in trackers.buses.enumerated() { bus.send([toAll([UInt8(index)])]) }
        try await eventually("all hear all") { trackers.inboxes.allSatisfy { $0.now.messages.count == 2 } }
        return trackers
    }

    @Test(arguments: Kind.allCases)
    func `messages reach all others, or the one they are for, and nobody twice`(_ kind: Kind) async throws {
        let trackers = try await three(kind.url)
        let long = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        trackers.buses[0].send([toAll([10]), toOne(2, [20]), toOne(3, long), toAll([30])])
        trackers.buses[0].send((0..<5000).map { toAll([40, UInt8($0 >> 8), UInt8($0 & 255)]) })
        try await eventually("all came") { trackers.inboxes.dropFirst().allSatisfy { $0.now.messages.count == 5005 } }
        #expect(trackers.inboxes.allSatisfy { $0.now.losses.isEmpty })
        // Before the stop: whoever stops later may lose the broker that is stopped with the first.
        let status = trackers.buses.map(\.status)
        #expect(
            status.allSatisfy { $0.isConnected && $0.dropped == 0 && $0.rejected == 0 && $0.reconnections == 0 },
            "\(status)")
        #expect(status[0].sent == 5005 && status[0].received == 2 && status[1].received == 5005)
        await trackers.stop()
        #expect(trackers.buses.allSatisfy { !$0.status.isConnected })
        for (index, own) in [(1, [20]), (2, long)] {
            let messages = trackers.inboxes[index].now.messages.dropFirst(2)
            #expect(messages.contains(own))
            #expect(messages.count { $0 == [10] } == 1 && messages.count { $0 == [30] } == 1)
            #expect(Set(messages.filter { $0.first == 40 && $0.count == 3 }).count == 5000)
        }
        // What one says he does not hear himself.
        #expect(trackers.inboxes[0].now.messages.count == 2)
        #expect(trackers.inboxes.allSatisfy { $0.now.callsAfterEnd == 0 })
        // A bus that is stopped takes nothing more.
        trackers.buses[0].send([toAll([1])])
        #expect(trackers.buses[0].status.dropped == 1)
    }

    @Test(arguments: Kind.allCases)
    func `other clusters, and other keys, are neither heard nor disturbed`(_ kind: Kind) async throws {
        let url = kind.url
        var trackers = try await three(url)
        try trackers.add(url, incarnation: 4, key: ClusterKey([UInt8](repeating: 4, count: 32)))
        try trackers.add(url, incarnation: 5, name: "other")
        try trackers.add(url, incarnation: 6, name: "other")
        try await eventually("connected") { trackers.inboxes.allSatisfy { $0.now.connections == 1 } }
        trackers.buses[3].send([toAll([4])])
        trackers.buses[4].send([toAll([5])])
        trackers.buses[0].send([toAll([6])])
        try await eventually("all came") {
            trackers.inboxes[5].now.messages == [[5]]
                && trackers.inboxes[1...2].allSatisfy { $0.now.messages.count == 3 }
                && trackers.buses[3].status.rejected > 0 && trackers.buses[0].status.rejected > 0
        }
        await trackers.stop()
        #expect(trackers.inboxes[1...2].allSatisfy { $0.now.messages.last == [6] })
        #expect(trackers.inboxes[3].now.messages.isEmpty)
        #expect(trackers.inboxes[4].now.messages.isEmpty)
    }

    @Test func `when the tracker with the embedded broker goes, another has it, and the rest go on`() async throws {
        let url = embeddedURL()
        let trackers = try await three(url)
        // Whoever came first has it; the others lose it with him.
        for gone in 0..<2 {
            await trackers.buses[gone].stop()
            trackers.inboxes[gone].end()
            let left = (gone + 1)..<3
            for index in left {
                let before = trackers.inboxes[index].now.messages.count
                if left.count == 1 { break }
                let other = left.first { $0 != index }!
                try await eventually("heard again") {
                    trackers.buses[other].send([toAll([UInt8(100 + other)])])
                    return trackers.inboxes[index].now.messages.count > before
                }
            }
        }
        try await eventually("the last one has it") { trackers.buses[2].status.isConnected }
        let last = trackers.inboxes[2].now
        #expect(last.connections == last.losses.count + 1)
        #expect(trackers.buses[2].status.reconnections == UInt64(last.losses.count))
        await trackers.buses[2].stop()
    }

    @Test func `junk from other clients of the broker is counted and dropped`() async throws {
        let url = embeddedURL()
        let trackers = try await three(url)
        let place = String(url.dropFirst("embedded:".count))
        let address = SocketAddress(host: place.split(separator: ":")[0], port: 61623)!
        let client = try await RawConnection(to: address)
        try await client.send("CONNECT\naccept-version:1.2\n\n\0")
        _ = try await client.receive()
        try await client.send("SUBSCRIBE\nid:0\ndestination:/topic/swarmkeeper.test\n\n\0")
        var random = RandomStream(seed: 1)
        for _ in 0..<100 {
            let junk = (0..<random.below(300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let frame = StompFrame(.send, ["destination": "/topic/swarmkeeper.test"], body: junk)
            try await client.send(frame.encoded())
        }
        try await eventually("all junk has come") { trackers.buses.allSatisfy { $0.status.rejected == 100 } }
        // A frame of ours once more, as it was: a replay.
        trackers.buses[0].send([toAll([77])])
        var parser = StompParser(maxBodyByteCount: 10_000)
        var frames: [StompFrame] = []
        while !frames.contains(where: { $0.body.count == 25 + 12 + 1 + 16 }) {
            guard let bytes = try await client.receive(), !bytes.isEmpty else { break }
            try parser.parse(bytes, into: &frames)
        }
        let recorded = try #require(frames.first { $0.body.count == 25 + 12 + 1 + 16 })
        let replay = StompFrame(.send, ["destination": "/topic/swarmkeeper.test"], body: recorded.body)
        for _ in 0..<5 { try await client.send(replay.encoded()) }
        try await eventually("the replays have come") {
            trackers.buses.dropFirst().allSatisfy { $0.status.rejected == 105 }
        }
        #expect(trackers.inboxes[1].now.messages.count { $0 == [77] } == 1)
        // The client has had enough: the broker does without him.
        try await client.send("NONSENSE\n\n\0")
        trackers.buses[1].send([toAll([78])])
        try await eventually("the trackers still talk") { trackers.inboxes[0].now.messages.last == [78] }
        #expect(trackers.inboxes.allSatisfy { $0.now.losses.isEmpty })
        await trackers.stop()
    }

    @Test func `a client of the embedded broker may be in another process, by STOMP`() async throws {
        let url = embeddedURL()
        var trackers = Trackers()
        try trackers.add(url, incarnation: 1)
        try await eventually("the broker is there") { trackers.inboxes[0].now.connections == 1 }
        let place = url.dropFirst("embedded:".count)
        try trackers.add("stomp://somebody:sekret@\(place)", incarnation: 2)
        try await eventually("connected") { trackers.inboxes[1].now.connections == 1 }
        trackers.buses[1].send([toOne(1, [5])])
        try await eventually("heard") { trackers.inboxes[0].now.messages == [[5]] }
        #expect(trackers.buses[1].status.endpoint == "stomp://\(place)")
        await trackers.stop()
    }

    @Test func `a client of the embedded broker that reads nothing is let go, not served from memory`() async throws {
        let url = embeddedURL()
        var trackers = Trackers()
        try trackers.add(url, incarnation: 1)
        try await eventually("the broker is there") { trackers.inboxes[0].now.connections == 1 }
        let host = url.dropFirst("embedded:".count).split(separator: ":")[0]
        let client = try await RawConnection(
            to: SocketAddress(host: host, port: 61_623)!, receiveBuffer: 4_096)
        try await client.send("CONNECT\naccept-version:1.2\n\n\0")
        let receipt = String(repeating: "r", count: 200)
        let send = Array(
            String(repeating: "SEND\ndestination:/topic/x\nreceipt:\(receipt)\n\n\0", count: 256).utf8)
        var sent = 0
        // Four times what may wait for one client.
        for _ in 0..<20_000 where sent < 64 << 20 && client.isOpen {
            let count = client.sendAtOnce(Array(send[(sent % send.count)...]))
            sent += count
            if count == 0 { try await Task.sleep(for: .milliseconds(2)) }
        }
        try await eventually("let go") { !client.isOpen }
        #expect(sent < 64 << 20)
        await trackers.stop()
    }

    @Test func `where nobody listens the reason is told without the login, and again only when it changes`()
        async throws
    {
        var trackers = Trackers()
        try trackers.add("stomp://me:sekret@127.0.0.1:1,127.0.0.1:2", incarnation: 1)
        trackers.buses[0].send([toAll([1]), toAll([2])])
        try await eventually("told of both") { trackers.inboxes[0].now.losses.count >= 2 }
        let losses = trackers.inboxes[0].now.losses
        #expect(losses[0].contains("127.0.0.1:1") && losses[1].contains("127.0.0.1:2"))
        #expect(losses.allSatisfy { $0.contains("nobody listens") && !$0.contains("sekret") && !$0.contains("me:") })
        let status = trackers.buses[0].status
        #expect(status.dropped == 2 && !status.isConnected && status.lastProblem?.contains("nobody listens") == true)
        #expect(status.endpoint == "stomp://127.0.0.1:1,127.0.0.1:2")
        await trackers.stop()
    }

    @Test func `an interface that is not there is told, and waited for`() async throws {
        var trackers = Trackers()
        try trackers.add("multicast://239.1.2.3:6970?interface=nix0", incarnation: 1)
        try await eventually("told") { trackers.inboxes[0].now.losses.count == 1 }
        #expect(trackers.inboxes[0].now.losses[0].contains("nix0"))
        #expect(trackers.inboxes[0].now.connections == 0)
        await trackers.stop()
        #expect(trackers.inboxes[0].now.callsAfterEnd == 0)
    }

    @Test(arguments: ["embedded", "multicast://239.1.2.3:6970?interface=lo", "stomp://127.0.0.1:1"])
    func `a bus that was never started stops at once`(_ url: String) async throws {
        let bus = try BusFactory.make(
            options: BusOptions(url: url), key: Trackers.key, clusterName: ClusterName("test"), incarnation: 1)
        await bus.stop()
        #expect(!bus.status.isConnected)
    }

    @Test func `certificates that cannot be read are a mistake of the configuration`() throws {
        let error = #expect(throws: BusConfigurationError.self) {
            try BusFactory.make(
                options: BusOptions(url: "stomp+tls://me:sekret@h?ca=/nowhere/ca.pem"), key: Trackers.key,
                clusterName: ClusterName("test"), incarnation: 1)
        }
        #expect(error?.description.contains("/nowhere/ca.pem") == true)
        #expect(error?.description.contains("sekret") == false)
    }
}

// How far behind a tracker is, as `tracker status` and the alarm of the metrics tell it: under load, and when one has
// really fallen behind.

import Primitives
import Testing
import TrackerLogic
import Wire

/// Three trackers on a bus that delivers in order, one event after another; whoever watches looks after each of them.
private struct BusyCluster {
    var nodes: [TrackerNode] = []
    var now = ClockReading(
        monotonic: Instant(nanoseconds: 5_000_000_000), wall: WallTime(milliseconds: NodeHarness.wallStart))
    /// Whether a message from one to another is lost.
    var loses: (_ from: Int, _ to: Int, ClusterMessage.Body) -> Bool = { _, _, _ in false }
    /// Whether the views of all are looked at after each event.
    var isWatched = false
    /// What was seen then: of each view that a tracker has of another one or of itself, the largest lag.
    var largestLag: UInt64 = 0
    /// By how much anybody was ahead of whoever looked.
    var largestLead: UInt64 = 0
    /// By how much what a slave knew of the master, or the master of the faster slave, was older than what it had
    /// applied itself.
    var largestDelay: UInt64 = 0
    var strangeViews: [TrackerView] = []
    var preparedCount = 0
    private var effects = Effects()
    private var lastRequest: UInt64 = 0

    init() {
        for id: UInt32 in 1...3 {
            var configuration = NodeConfiguration.test
            configuration.id = id
            configuration.cluster = ClusterConfiguration(mode: .quorum, members: [1, 2, 3])
            nodes.append(
                TrackerNode(
                    configuration: configuration, incarnation: UInt64(id), secret: NodeHarness.secret, record: nil,
                    seed: UInt64(id)))
        }
        for node in nodes.indices {
            step(node, .started)
            step(node, .busConnected)
        }
        run(.seconds(8))
    }

    mutating func step(_ node: Int, _ event: Event) {
        var queue = [(node, event)]
        var next = 0
        while next < queue.count {
            let (node, event) = queue[next]
            next += 1
            nodes[node].step(event, now: now, into: &effects)
            for persist in effects.persists { queue.append((node, .persisted(persist.token))) }
            for message in effects.messages {
                if case .prepare = message.body { preparedCount += 1 }
                for other in nodes.indices where other != node && !loses(node, other, message.body) {
                    queue.append((other, .messageReceived(message)))
                }
            }
            effects.removeAll()
            if isWatched { watch() }
        }
    }

    private mutating func watch() {
        for place in nodes.indices {
            let status = status(place)
            for view in status.trackers {
                largestLag = max(largestLag, view.lag)
                let own = status.position.index
                if view.position.index > own { largestLead = max(largestLead, view.position.index - own) }
                let isPlain = view.agreement == .same || view.agreement == .ahead
                if !isPlain || !view.hasFullState { strangeViews.append(view) }
            }
            let heard = status.trackers.filter { $0.life != status.life && (status.life.id == 3 || $0.life.id == 3) }
            let newest = heard.map(\.position.index).max() ?? 0
            if newest < status.position.index { largestDelay = max(largestDelay, status.position.index - newest) }
        }
    }

    mutating func run(_ span: Duration) {
        let end = now.monotonic + span
        while now.monotonic < end {
            pass(.milliseconds(50))
            for node in nodes.indices { step(node, .deadlineReached) }
        }
    }

    mutating func pass(_ span: Duration) {
        now.monotonic = now.monotonic + span
        now.wall.milliseconds += span.wholeMilliseconds
    }

    /// A further peer announces to a tracker over HTTP.
    mutating func announce(to node: Int) {
        lastRequest += 1
        let peer = SocketAddress.v4(Int(lastRequest))
        let announce = Announce(
            infoHash: .numbered(Int(lastRequest % 7)), peerID: .of(peer), left: 1, event: .started, numWant: 0,
            port: peer.port)
        step(node, .requestReceived(ClientRequest(id: lastRequest, source: peer, content: .announce(announce))))
    }

    func status(_ node: Int) -> ClusterStatus { nodes[node].clusterStatus(now: now.monotonic) }

    func view(of id: UInt32, at node: Int) -> TrackerView? { status(node).trackers.first { $0.life.id == id } }
}

@Suite struct LagTests {
    @Test func `under load nobody sees another one lag, though keepalives are seldom`() {
        var cluster = BusyCluster()
        #expect((0..<3).map { cluster.status($0).master } == [3, 3, 3])
        let before = cluster.status(2).position.index
        cluster.isWatched = true
        // All of it falls between two keepalives, which are a second apart.
        for number in 0..<1000 {
            cluster.announce(to: number % 3)
            cluster.pass(.microseconds(200))
        }
        let decided = cluster.status(2).position.index - before
        #expect(decided > 500)
        #expect(cluster.preparedCount > 500)
        // Entries are on their way at any time, one or two of them.
        #expect(cluster.largestLag <= 2)
        #expect(cluster.largestLead <= 2)
        // PREPARE, OK and COMMIT say where their senders are, not keepalives alone.
        #expect(cluster.largestDelay <= 2)
        #expect(cluster.strangeViews.count == 0)
        #expect(Succession.inStepCount >= 2)
    }

    @Test func `who really falls behind says so of itself, and the others say it, until it has caught up`() throws {
        var cluster = BusyCluster()
        // Tracker 1 hears nothing but keepalives; what it asks for does not come.
        cluster.loses = { _, to, body in
            if case .keepalive = body { return false }
            return to == 0
        }
        for _ in 0..<40 { cluster.announce(to: 2) }
        // Until a keepalive has said where the master is, it cannot know.
        cluster.run(.milliseconds(1_100))
        let decided = cluster.status(2).position.index
        let own = try #require(cluster.view(of: 1, at: 0))
        #expect(own.lag == 40)
        #expect(own.position.index + 40 == decided)
        let master = try #require(cluster.view(of: 3, at: 0))
        #expect(master.lag == 0 && master.agreement == .ahead && master.position.index == decided)
        for node in 1...2 {
            let seen = try #require(cluster.view(of: 1, at: node))
            #expect(seen.lag == 40)
            #expect(seen.agreement == .same)
            let itself = try #require(cluster.view(of: UInt32(node + 1), at: node))
            #expect(itself.lag == 0)
        }
        cluster.loses = { _, _, _ in false }
        cluster.run(.milliseconds(2_100))
        for node in 0..<3 {
            #expect(cluster.status(node).trackers.map(\.lag) == [0, 0, 0])
            #expect(cluster.status(node).trackers.allSatisfy { $0.agreement == .same })
        }
    }
}

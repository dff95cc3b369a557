// Trackers on a bus with a member that lies, to see whether anybody traps.

import Primitives
import TrackerLogic
import Wire

/// Trackers on a bus with a member that lies, to see whether anybody traps: the decoded messages are fuzzed into nodes
/// that run.
///
/// There are no checkers here, for with a Byzantine member nothing else is promised. What a lie has left on a disk is
/// read back, too: trackers die now and then, and start with what is there; where that cannot be read, with nothing.
package struct ByzantineCluster: Sendable {
    private enum Happening: Sendable {
        case message(Int, life: Int, ClusterMessage)
        case wakes(Int, life: Int)
        case written(Int, life: Int, Persist)
        case announces
        case dies
        case starts(Int)
    }

    private let configurations: [NodeConfiguration]
    private var random: RandomStream
    private var byzantine: ByzantineMember
    private var queue = EventQueue<Happening>()
    /// Taken from the queue, and not handled.
    private var held: (time: Instant, event: Happening)?
    private var now = Instant(nanoseconds: 0)
    private var nodes: [TrackerNode?]
    private var lives: [Int]
    private var wakesAt: [Instant?]
    private var disks: [DiskRecord]
    private var effects = Effects()
    private var lastRequest: UInt64 = 0
    private var isByzantineGone = false
    /// Whether it lies about epochs only: then those who are left can elect a master, and go on.
    private let liesAboutEpochs: Bool

    /// What has come of it, to see that the lies went deep.
    package struct Tally: Sendable {
        package var lies = 0
        package var steps = 0
        package var elections = 0
        package var entries = 0
        package var transfers = 0
        package var unreadable = 0

        package init() {}
    }

    package private(set) var tally = Tally()

    package init(seed: UInt64, profile: Profile, liesAboutEpochs: Bool = false) {
        self.liesAboutEpochs = liesAboutEpochs
        random = RandomStream(seed: seed, stream: 1)
        byzantine = ByzantineMember(random: RandomStream(seed: seed, stream: 2))
        var options = ScenarioOptions()
        options.tailCount = 4
        options.snapshotAge = .seconds(1)
        options.snapshotLogByteCount = 500
        options.updatesPerEntry = 8
        options.interval = 4
        options.targetRate = 1
        if random.oneIn(2) { options.entry = .group }
        configurations = options.configurations(profile)
        nodes = configurations.map { _ in nil }
        lives = configurations.map { _ in 0 }
        wakesAt = configurations.map { _ in nil }
        disks = configurations.map { _ in DiskRecord() }
        for node in nodes.indices { queue.put(.starts(node), at: now) }
        queue.put(.announces, at: now + .seconds(1))
        queue.put(.dies, at: now + .seconds(5))
    }

    /// Runs for so long in simulated time, or so many steps.
    package mutating func run(_ length: Duration, maxSteps: Int = 100_000) {
        let end = now + length
        while tally.steps < maxSteps, let next = held ?? queue.take() {
            // What comes later is for the next run.
            held = next.time < end ? nil : next
            if held != nil { break }
            now = next.time
            handle(next.event)
        }
        now = end
        tally.lies = byzantine.lies
    }

    /// The member that lies is gone for good.
    package mutating func silenceByzantine() {
        nodes[0] = nil
        lives[0] += 1
        isByzantineGone = true
    }

    private mutating func handle(_ happening: Happening) {
        switch happening {
        case .message(let node, let life, let message):
            if lives[node] == life { step(node, .messageReceived(message)) }
        case .wakes(let node, let life):
            guard lives[node] == life, wakesAt[node] == now else { return }
            wakesAt[node] = nil
            step(node, .deadlineReached)
        case .written(let node, let life, let persist):
            guard lives[node] == life else { return }
            let isWritten = disks[node].apply(persist.change)
            step(node, isWritten ? .persisted(persist.token) : .persistFailed(persist.token, .full))
        case .announces:
            announce()
            queue.put(.announces, at: now + random.between(.milliseconds(1), .milliseconds(300)))
        case .dies:
            guard !isByzantineGone else { return }
            let node = random.below(nodes.count)
            nodes[node] = nil
            lives[node] += 1
            wakesAt[node] = nil
            queue.put(.starts(node), at: now + random.between(.milliseconds(1), .seconds(3)))
            queue.put(.dies, at: now + random.between(.seconds(1), .seconds(10)))
        case .starts(let node): start(node)
        }
    }

    private mutating func start(_ node: Int) {
        guard nodes[node] == nil, node > 0 || !isByzantineGone else { return }
        let secret = ClusterSecret(1, 2, 3, 4)
        if let read = try? TrackerNode.recovered(
            from: disks[node], configuration: configurations[node], secret: secret, random: &random)
        {
            nodes[node] = read
        } else {
            tally.unreadable += 1
            disks[node] = DiskRecord()
            nodes[node] = try? TrackerNode.recovered(
                from: disks[node], configuration: configurations[node], secret: secret, random: &random)
        }
        step(node, .started)
        step(node, .busConnected)
    }

    private mutating func announce() {
        let node = random.below(nodes.count)
        lastRequest += 1
        let announce = Announce(
            infoHash: InfoHash(Workload.bytes20(&random)), peerID: PeerID(Workload.bytes20(&random)),
            left: UInt64(random.below(2)), event: random.oneIn(4) ? .stopped : .started, numWant: nil, port: 5000)
        let source = AddressPlan.visitor(random.below(8))
        step(node, .requestReceived(ClientRequest(id: lastRequest, source: source, content: .announce(announce))))
    }

    // MARK: - A step

    private mutating func step(_ node: Int, _ event: Event) {
        guard nodes[node] != nil else { return }
        tally.steps += 1
        let wall = WallTime(milliseconds: 1_700_000_000_000 + (now - Instant(nanoseconds: 0)).wholeMilliseconds)
        nodes[node]?.step(event, now: ClockReading(monotonic: now, wall: wall), into: &effects)
        for persist in effects.persists {
            queue.put(.written(node, life: lives[node], persist), at: now + .milliseconds(1))
        }
        for message in effects.messages { send(message, from: node) }
        for observation in effects.observations {
            switch observation {
            case .becameMaster: tally.elections += 1
            case .transferBegan: tally.transfers += 1
            default: break
            }
        }
        effects.removeAll()
        tally.entries = max(tally.entries, Int(clamping: nodes[node]?.state.index ?? 0))
        if let deadline = nodes[node]?.findDeadline() {
            let time = max(deadline, now + .milliseconds(1))
            guard wakesAt[node].map({ time < $0 }) ?? true else { return }
            wakesAt[node] = time
            queue.put(.wakes(node, life: lives[node]), at: time)
        }
    }

    private mutating func send(_ message: ClusterMessage, from node: Int) {
        // The first tracker lies: seldom enough that the others get somewhere.
        let isLie = node == 0 && random.oneIn(4)
        let said = !isLie ? message : liesAboutEpochs ? byzantine.twistEpoch(message) : byzantine.twist(message)
        for receiver in nodes.indices where receiver != node {
            if case .one(let life) = said.destination, !isLie,
                nodes[receiver]?.inspection.life.incarnation != life.incarnation
            {
                continue
            }
            let delay = random.between(.microseconds(100), .milliseconds(20))
            queue.put(.message(receiver, life: lives[receiver], said), at: now + delay)
        }
    }
}

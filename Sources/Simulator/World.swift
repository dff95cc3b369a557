/// A world of one true time, in which nodes, disks, networks and people take their turns.
///
/// Every transition is: take the next event off the queue, hand it to whom it concerns, look at what came of it
/// (`Checks`), carry that out, and write it into the trace. Nothing in here knows chance but by the seed.
///
///     faults ──────── heals ──────── nudge ──────────────── end
///     0 … coreLength  │ all repaired │ everybody asks anew  │ the table holds those who are there, and nobody else
///                     └ no more faults                      └ an orderly stop

import PeerLogic
import Primitives
import TrackerLogic
import Wire

struct World: Sendable {
    /// What is going to happen.
    enum Happening: Sendable {
        case datagramAtNode(Int, from: SocketAddress, [UInt8])
        case datagramAtClient(Int, [UInt8])
        case nodePolls(Int, life: Int)
        case nodeWakes(Int, life: Int)
        case groupEnds(Int, life: Int)
        case writeTold(Int, life: Int, Tale)
        case nodeReturns(Int, life: Int)
        case stopOverdue(Int, life: Int)
        case clientWakes(Int)
        case clientActs(Int, resolve: Int, SimulatedClient.Act)
        case strangerActs(Int)
        case visitorActs(Int)
        case fault
        case diskRecovers(Int)
        case probe
        case heals
        case nudge
        case reckoning
        case end
    }

    /// What a node is told of one of its writes.
    struct Tale: Sendable {
        var token: PersistToken
        /// nil where it is durable.
        var failure: StorageFailure?
        var isEntry: Bool
    }

    /// Between the end of the faults and the nudge: longer than any node stays dead and any disk is slow.
    static let repairTime = Duration.seconds(120)
    /// Events at one time, at most: more is somebody who never sleeps.
    static let maxEventsAtOnce = 20_000
    /// Events in all, at most: a hundred times what scenarios have.
    static let maxEvents = 500_000
    /// Within which everybody is answered when all is well.
    static let answerBound = Duration.seconds(2)

    let options: ScenarioOptions
    let sabotage: Sabotage?
    var now = Instant(nanoseconds: 0)
    var queue = EventQueue<Happening>()
    var nodes: [SimulatedNode] = []
    var clients: [SimulatedClient] = []
    var network: SimulatedNetwork
    var plan: FaultPlan
    var workload: Workload
    var strangers: RandomStream
    var probes: RandomStream
    var rulesRandom: RandomStream
    var checks: Checks
    var trace: Trace
    var tally = Tally()
    /// Filled by the step under way, empty between steps.
    var effects = Effects()
    var clientEffects = Announcer.Effects()
    var eventCount = 0
    /// Faults are over.
    var isHealed = false
    /// When everybody was made to ask anew.
    var nudgedAt: Instant?
    /// What the operator commanded last.
    var rules = AccessRules()
    var lastVisit: UInt64 = 0
    var isOver = false
    /// The last thing that is wanted: an orderly stop.
    var isClosing = false

    init(seed: UInt64, options: ScenarioOptions, sabotage: Sabotage?, isRecording: Bool) {
        self.options = options
        self.sabotage = sabotage
        func stream(_ number: UInt64) -> RandomStream { RandomStream(seed: seed, stream: number) }
        network = SimulatedNetwork(options: options.network, random: stream(Streams.network))
        plan = FaultPlan(options: options.faults, random: stream(Streams.faults))
        workload = Workload(options: options, random: stream(Streams.workload))
        strangers = stream(Streams.strangers)
        probes = stream(Streams.probes)
        rulesRandom = stream(Streams.rules)
        trace = Trace(isRecording: isRecording)
        clients = World.clients(options, stream(Streams.workload + 1000), seed: seed)
        let strangerPlaces = clients.count..<(clients.count + options.strangerCount)
        let addresses =
            clients.map { $0.address }
            + strangerPlaces.map { AddressPlan.client($0, house: $0, isIPv6: $0.isMultiple(of: 2)) }
        let configuration = World.configuration(options)
        checks = Checks(configuration: configuration, nodeCount: 1, addresses: addresses)
        nodes = [World.node(0, options, configuration, seed: seed, sabotage: sabotage)]
        trace.absorb(seed)
        plant()
    }

    private static func configuration(_ options: ScenarioOptions) -> NodeConfiguration {
        var configuration = NodeConfiguration()
        configuration.interval = options.interval
        configuration.minInterval = options.interval / 2
        configuration.intervalJitter = options.intervalJitter
        configuration.targetRate = options.targetRate
        configuration.shardCount = options.shardCount
        configuration.keepsSwarms = options.keepsSwarms
        configuration.snapshotAge = options.snapshotAge
        configuration.snapshotLogByteCount = options.snapshotLogByteCount
        configuration.limits.torrents = options.maxTorrents
        configuration.limits.peers = options.maxPeers
        configuration.limits.updatesPerEntry = options.updatesPerEntry
        configuration.limits.errorsPerSecond = options.errorsPerSecond
        return configuration
    }

    private static func node(
        _ number: Int, _ options: ScenarioOptions, _ configuration: NodeConfiguration, seed: UInt64,
        sabotage: Sabotage?
    ) -> SimulatedNode {
        var random = RandomStream(seed: seed, stream: Streams.nodes + UInt64(number))
        var disk = SimulatedDisk(
            options: options.disk, random: RandomStream(seed: seed, stream: Streams.disks + UInt64(number)))
        disk.sabotage = sabotage
        let clock = SimulatedClock(
            origin: Int64(random.below(UInt64(1) << 50)), drift: options.drift,
            wallError: Int64(random.below(UInt64(20_000))) - 10_000)
        return SimulatedNode(number: number, configuration: configuration, clock: clock, disk: disk, random: random)
    }

    private static func clients(
        _ options: ScenarioOptions, _ chance: RandomStream, seed: UInt64
    ) -> [SimulatedClient] {
        var chance = chance
        return (0..<(options.clientCount + options.scraperCount)).map { place in
            SimulatedClient(
                kind: place < options.clientCount ? .peer : .scraper,
                address: AddressPlan.client(
                    place, house: place / options.clientsPerAddress, isIPv6: chance.below(100) < options.ipv6Percent),
                home: 0,
                passkey: place < options.clientCount ? Workload.passkey(place) : [],
                random: RandomStream(seed: seed, stream: Streams.clients + UInt64(place)))
        }
    }

    /// Puts the first events into the queue.
    private mutating func plant() {
        for node in nodes.indices { queue.put(.nodeReturns(node, life: 0), at: now) }
        for place in clients.indices {
            let act: SimulatedClient.Act = clients[place].kind == .peer ? .arrive : .scrape
            queue.put(.clientActs(place, resolve: 0, act), at: now + workload.arrival())
        }
        for number in 0..<options.strangerCount {
            queue.put(.strangerActs(number), at: now + .seconds(1))
        }
        for number in 0..<options.visitorCount {
            queue.put(.visitorActs(number), at: now + workload.visitorPause())
        }
        if let gap = plan.gap() { queue.put(.fault, at: now + gap) }
        queue.put(.probe, at: now + options.probeGap)
        queue.put(.heals, at: now + options.coreLength)
    }

    /// Runs until the end, or until something is wrong.
    mutating func run() {
        var eventsNow = 0
        while !isOver, checks.violations.isEmpty, let next = queue.take() {
            eventsNow = next.time == now ? eventsNow + 1 : 0
            if eventsNow > World.maxEventsAtOnce {
                checks.violate(.timeGoesOn, at: now, "more than \(eventsNow - 1) events at one time")
            }
            now = next.time
            eventCount += 1
            if eventCount > World.maxEvents {
                checks.violate(.timeGoesOn, at: now, "more than \(World.maxEvents) events")
            }
            handle(next.event)
        }
        if !isOver, checks.violations.isEmpty {
            checks.violate(.timeGoesOn, at: now, "the world stands still")
        }
        trace.absorb(UInt64(checks.violations.count))
    }

    private mutating func handle(_ happening: Happening) {
        switch happening {
        case .datagramAtNode(let node, let remote, let bytes): arrive(node, from: remote, bytes)
        case .datagramAtClient(let place, let bytes): stepClient(place, .datagramReceived(bytes))
        case .nodePolls(let node, let life):
            if isTurn(of: node, life, happening) { poll(node) }
        case .nodeWakes(let node, let life):
            if isTurn(of: node, life, happening) { wake(node) }
        case .groupEnds(let node, let life):
            if nodes[node].life == life { endGroup(node) }
        case .writeTold(let node, let life, let tale):
            if isTurn(of: node, life, happening) { tell(node, tale) }
        case .nodeReturns(let node, let life):
            if nodes[node].life == life, !isUp(node) { bringUp(node) }
        case .stopOverdue(let node, let life):
            if nodes[node].life == life, nodes[node].isStopping { stopIsOverdue(node) }
        case .clientWakes(let place): wakeClient(place)
        case .clientActs(let place, let resolve, let act):
            if clients[place].resolve == resolve { self.act(place, act) }
        case .strangerActs(let number): strangerActs(number)
        case .visitorActs(let number): visitorActs(number)
        case .fault: nextFault()
        case .diskRecovers(let node): recoverDisk(node)
        case .probe: probe()
        case .heals: heal()
        case .nudge: nudge()
        case .reckoning: reckon()
        case .end: end()
        }
    }

    /// Whether an event for a node may be handled: it lives the life that was meant, and is not held.
    ///
    /// What comes for one that is held is put off.
    private mutating func isTurn(of node: Int, _ life: Int, _ happening: Happening) -> Bool {
        guard nodes[node].life == life, isUp(node) else { return false }
        guard nodes[node].heldUntil > now else { return true }
        queue.put(happening, at: nodes[node].heldUntil)
        return false
    }
}

/// How often things happened, to see that a sweep reaches what it is for.
public struct Tally: Sendable, Hashable {
    public var crashes: [Int] = Array(repeating: 0, count: Moment.allCases.count)
    public var starts = 0
    public var stops = 0
    public var announcesAnswered = 0
    public var repliesToClients = 0
    public var writesFailed = 0
    public var chunksSaved = 0
    public var trims = 0
    public var expired = 0
    public var probes = 0
    public var refusals = 0
    public var timeOuts = 0

    public init() {}

    public static func += (left: inout Tally, right: Tally) {
        for moment in left.crashes.indices { left.crashes[moment] += right.crashes[moment] }
        left.starts += right.starts
        left.stops += right.stops
        left.announcesAnswered += right.announcesAnswered
        left.repliesToClients += right.repliesToClients
        left.writesFailed += right.writesFailed
        left.chunksSaved += right.chunksSaved
        left.trims += right.trims
        left.expired += right.expired
        left.probes += right.probes
        left.refusals += right.refusals
        left.timeOuts += right.timeOuts
    }
}

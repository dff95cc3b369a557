// A world of one true time.

import PeerLogic
import Primitives
import TrackerLogic
import Wire

/// A world of one true time, in which the trackers of a cluster, their bus, their disks, their clients and people take
/// their turns.
///
/// Every transition is: take the next event off the queue, hand it to whom it concerns, look at what came of it
/// (`Checks`), carry that out, and write it into the trace. Nothing in here knows chance but by the seed.
///
///     faults ──────── heals ──────── wake ───────────────── convergence check
///     0 … coreLength  │ all repaired │ everybody asks anew  │ all are answered, and all trackers hold the same
///                     │              └ in some worlds, the whole cluster is stopped and started before that
///                     └ no more faults
struct World: Sendable {
    /// What is known of a node beside what `SimulatedNode` holds.
    struct Connectivity: Sendable {
        /// Whether it is on the bus, told or not.
        var isOnBus = false
        /// Whether it has been told that it is.
        var isToldOnBus = false
        /// Since when, if it has been told.
        var busSince = Instant(nanoseconds: 0)
        /// Counts changes of its bus, so that what was planned before one is forgotten.
        var cut = 0
        /// Until when no client reaches it.
        var darkUntil = Instant(nanoseconds: 0)
        /// Whether it has said that it is master, and not taken it back.
        var isMaster = false
        /// Until when it is cut off, held or down by our doing.
        var troubledUntil = Instant(nanoseconds: 0)
        /// How long it is down when it has stopped as it was asked to.
        var downtime = Duration.zero
        /// Whether there is such a tracker at all: one that was left out keeps its place, and never starts.
        var isThere = true
    }

    /// The chance of one client, and of who uses it.
    struct Person: Sendable {
        /// Of the visit under way; a scraper has one visit.
        var random: RandomStream
        /// Of announcers that begin anew.
        var announcers: RandomStream
    }

    /// Between the end of the faults and the waking of the clients: longer than any node is held, and for the cluster
    /// to agree.
    static let repairTime = Duration.seconds(20)
    /// Between the waking of the clients and the end.
    static let convergenceTime = Duration.seconds(8)
    /// Within which everybody is answered when all is well.
    static let answerBound = Duration.seconds(3)
    /// Events at one time, at most: more is somebody who never sleeps.
    static let maxEventsAtOnce = 20_000
    /// Events in all, at most: many times what scenarios have, and more for those that last long.
    let maxEvents: Int

    let seed: UInt64
    let profile: Profile
    let options: ScenarioOptions
    var now = Instant(nanoseconds: 0)
    var queue = EventQueue<Happening>()
    var nodes: [SimulatedNode] = []
    var connectivity: [Connectivity] = []
    /// All lives so far: incarnation, and whose.
    var lives: [(incarnation: UInt64, node: Int)] = []
    var clients: [SimulatedClient] = []
    /// The tracker list of each client: one tier, in the order in which it asks.
    var tiers: [[Int]] = []
    /// Whether a client has completed its download, and no tracker has said yet that it knows.
    var owesCompleted: [Bool] = []
    /// The addresses of clients, then of strangers.
    let addresses: [SocketAddress]
    /// The network between clients and trackers, and the chance of each way on it.
    var network: NetworkOptions
    var paths: [RandomStream]
    /// As `paths`, of flipped bits; empty where none flip.
    var flips: [RandomStream] = []
    var bus: SimulatedBus
    /// Single messages that are lost; nil where none are.
    var slips: Slips?
    var plan: FaultPlan
    var workload: Workload
    /// Of clients, by place.
    var people: [Person] = []
    var strangers: [RandomStream]
    var visitors: [RandomStream]
    /// What else their visits may be; empty where they have no whims.
    var whims: [RandomStream] = []
    var lastVisit: UInt64 = 0
    /// People at consoles, and the torrents whose files they upload.
    var stewards: [Steward] = []
    var stewardTorrents: [InfoHash] = []
    /// What is in the operator's directory of torrents, and may be read by any tracker.
    var directory: [SimulatedFile] = []
    /// The accounts in the operator's files.
    var fileAccounts: [Account] = []
    /// The torrents of files that each tracker was commanded last, in this life.
    var commandedTorrents: [[FileTorrent]?]
    /// The accounts of files that each tracker was commanded last, in this life.
    var commandedAccounts: [[Account]?]
    /// By tracker: when it is compared with a copy of its disk.
    var probes: [RandomStream]
    /// What is planted around each tracker; empty but in tests.
    var tamperings: [Tampering] = []
    /// The access rules that each tracker was commanded last, in this life.
    var commanded: [AccessRules?]
    /// The last that is wanted: an orderly stop.
    var isClosing = false
    /// Damages to disks so far.
    var damageCount = 0
    /// What the operator gives to all trackers, so that connection ids are good at any of them.
    let secret: ClusterSecret
    /// The ids that vote, as the operator believes.
    var members: [UInt32]
    /// The last entry that any tracker had applied when it last told that they had changed.
    var membersChangedAt: UInt64 = 0
    /// Whether the operator has asked for one member less, and none has gone yet.
    var isRemovalAsked = false
    /// Whom the operator has given another's vote, until the members have changed.
    var heir: UInt32?
    var checks: Checks
    var trace: Trace
    var tally = Tally()
    /// Who counts what happens; nil where nobody wants to know.
    var taker: CensusTaker?
    var history = History()
    let keepsHistory: Bool
    /// What is wrong just now; empty where nobody reads the story.
    var troubles = LinkFaults()
    /// Why all is not well in the end, in words; empty where it is, or where nobody reads the story.
    var reasons: [String] = []
    /// What the world itself finds wrong.
    var ownViolations: [Violation] = []
    /// Filled by the step under way, empty between steps.
    var effects = Effects()
    var clientEffects = Announcer.Effects()
    var eventCount = 0
    /// Events at this time so far, beyond the first.
    var eventsNow = 0
    /// Whoever meddles with the run, or watches it step by step.
    var player: Player
    /// Faults are over.
    var isHealed = false
    /// The stop of the whole cluster, once all was repaired.
    var wholeStop: WholeStop?
    /// How often a master has begun without swarms.
    var emptyings = 0
    /// When everybody was made to ask anew.
    var clientsWokenAt: Instant?
    /// What the operator's files say, where that is commanded at every start.
    var rules = AccessRules()
    var elections: ElectionWatch
    /// A master that was stopped when all was well, and has to hand its role over; nil where there is none.
    var stopsOfMaster: Int?
    var waiting: WaitingWatch
    var standing: StandingWatch
    /// By tracker, a bit for each other one that it has said to be told other settings.
    var noticed: [UInt32]
    /// By tracker, then by another: since when one of the two is misconfigured, and they hear each other.
    var unlikeSince: [Instant?] = []
    var reports: ReportWatch
    let judgesWaiting: Bool
    var budget: ElectionBudget
    var lastMasterAt = Instant(nanoseconds: 0)
    var isOver = false

    /// Peers that download beside the clients; nil where there are none.
    var transfers: TransferWorld?
    /// Whether they have kept their promises so far.
    var transfersAreRight = true
    /// When they are to be given the time.
    var transfersAt: Instant?

    var allViolations: [Violation] { ownViolations + checks.violations + (transfers?.checks.violations ?? []) }

    /// Whether there is a bus between the trackers.
    var hasBus: Bool { profile != .alone }

    init(
        seed: UInt64, profile: Profile, options: ScenarioOptions, sabotage: Sabotage? = nil, isRecording: Bool,
        keepsHistory: Bool, player: Player = Player()
    ) {
        self.seed = seed
        self.profile = profile
        self.options = options
        // Each tracker steps by itself, and hears each other.
        let each = options.nodeCount * (100 + 20 * options.nodeCount)
        maxEvents = 400_000 + each * Int(options.coreLength.wholeSeconds)
        self.keepsHistory = keepsHistory
        self.player = player
        secret = ClusterSecret(mixed(seed &+ 1), mixed(seed &+ 2), mixed(seed &+ 3), mixed(seed &+ 4))
        network = options.network
        bus = SimulatedBus(count: options.nodeCount, options: options.bus, seed: seed)
        slips = options.slipGap.map { Slips(gap: $0, random: RandomStream(seed, .slip)) }
        plan = FaultPlan(options: options.faults, seed: seed, count: options.nodeCount)
        workload = Workload(options: options, random: RandomStream(seed, .swarms))
        strangers = (0..<options.strangerCount).map { RandomStream(seed, .stranger, $0) }
        visitors = (0..<options.visitorCount).map { RandomStream(seed, .visitor, $0) }
        if options.hasWhimsicalVisitors {
            whims = (0..<options.visitorCount).map { RandomStream(seed, .visitorWhim, $0) }
        }
        stewards = (0..<options.stewardCount).map { Steward(number: $0, random: RandomStream(seed, .steward, $0)) }
        var torrents = RandomStream(seed, .stewardTorrents)
        stewardTorrents = (0..<Steward.torrentCount).map { _ in InfoHash(Workload.bytes20(&torrents)) }
        noticed = Array(repeating: 0, count: options.nodeCount)
        unlikeSince = Array(
            repeating: nil, count: options.misconfiguredCount > 0 ? options.nodeCount * options.nodeCount : 0)
        reports = ReportWatch(nodeCount: options.hasReports ? options.nodeCount : 0, seed: seed)
        probes = (0..<options.nodeCount).map { RandomStream(seed, .probe, $0) }
        commanded = Array(repeating: nil, count: options.nodeCount)
        commandedTorrents = Array(repeating: nil, count: options.nodeCount)
        commandedAccounts = Array(repeating: nil, count: options.nodeCount)
        clients = World.clients(options, seed: seed)
        let transferCount = options.transfers?.peerCount ?? 0
        paths = World.paths(
            clients.count + options.strangerCount + transferCount, options.nodeCount, seed: seed, .request, .reply)
        if options.network.flipPerMille > 0 {
            flips = World.paths(
                clients.count + options.strangerCount + transferCount, options.nodeCount, seed: seed, .flipThere,
                .flipBack)
        }
        people = clients.indices.map {
            Person(random: RandomStream(seed, .visit, $0), announcers: RandomStream(seed, .announcer, $0))
        }
        tiers = clients.indices.map { options.tier(of: $0, seed: seed) }
        for place in clients.indices { clients[place].home = tiers[place][0] }
        owesCompleted = Array(repeating: false, count: clients.count)
        let strangerPlaces = clients.count..<(clients.count + options.strangerCount)
        let firstPeer = strangerPlaces.upperBound
        addresses =
            clients.map { $0.address }
            + (strangerPlaces.lowerBound..<firstPeer + transferCount).map {
                AddressPlan.client($0, house: $0, isIPv6: false)
            }
        if let transferOptions = options.transfers {
            transfers = TransferWorld(
                seed: seed, options: transferOptions, clusterCount: options.nodeCount, firstPlace: firstPeer,
                isRecording: isRecording)
        }
        let configurations = options.configurations(profile)
        trace = Trace(
            names: TrackerNames(configurations.map { $0.id }), clients: .places(clients.count),
            isRecording: isRecording)
        members = configurations[0].cluster.members
        checks = Checks(profile: profile, configurations: configurations, clientAddresses: addresses)
        elections = ElectionWatch(configurations[0].cluster)
        budget = ElectionBudget(
            configurations[0].cluster, trackers: configurations.count, hasOneHistory: checks.promises.hasOneHistory,
            isNoisy: !options.hasGoodWays)
        waiting = WaitingWatch(nodeCount: options.nodeCount)
        standing = StandingWatch(nodeCount: options.nodeCount)
        judgesWaiting = World.judgesWaiting(options)
        checks.hasGoodClocks = options.hasGoodClocks
        nodes = configurations.indices.map { World.node($0, options, configurations[$0], seed: seed) }
        connectivity = nodes.indices.map { Connectivity(isThere: options.hasTracker($0)) }
        if options.misinformsSpare { nodes[nodes.count - 1].mistake = .members }
        if let sabotage { plant(sabotage) }
        trace.absorb(seed)
        plant()
    }

    private static func node(
        _ number: Int, _ options: ScenarioOptions, _ configuration: NodeConfiguration, seed: UInt64
    ) -> SimulatedNode {
        var disk = SimulatedDisk(options: options.disk, random: RandomStream(seed, .disk, number))
        if options.faults.damageGap != nil {
            disk.memory = DiskMemory(random: RandomStream(seed, .damagedDisk, number))
        }
        var random = RandomStream(seed, .clock, number)
        let drift = Int64(random.below(UInt64(2 * options.maxDrift + 1))) - options.maxDrift
        let error = Int64(random.below(UInt64(2 * options.maxWallError + 1))) - options.maxWallError
        let clock = SimulatedClock(origin: Int64(random.below(UInt64(1) << 50)), drift: drift, wallError: error)
        return SimulatedNode(number: number, configuration: configuration, clock: clock, disk: disk, random: random)
    }

    private static func clients(_ options: ScenarioOptions, seed: UInt64) -> [SimulatedClient] {
        (0..<(options.clientCount + options.scraperCount)).map { place in
            var random = RandomStream(seed, .client, place)
            var client = SimulatedClient(
                kind: place < options.clientCount ? .peer : .scraper,
                address: AddressPlan.client(
                    place, house: place / options.clientsPerAddress, isIPv6: random.below(100) < options.ipv6Percent),
                home: 0,
                passkey: place < options.clientCount
                    ? Workload.passkey(place, isOdd: options.hasOddPasskeys) : [], random: random)
            if options.hasOddPasskeys {
                client.urlForm = SimulatedClient.URLForm.allCases[place % SimulatedClient.URLForm.allCases.count]
            }
            client.announcer = World.announcer(for: client.address, options, random)
            return client
        }
    }

    /// By person, then by tracker: there, and back.
    private static func paths(
        _ people: Int, _ trackers: Int, seed: UInt64, _ there: StreamKind, _ back: StreamKind
    ) -> [RandomStream] {
        var paths: [RandomStream] = []
        paths.reserveCapacity(people * trackers * 2)
        for person in 0..<people {
            for tracker in 0..<trackers {
                paths.append(RandomStream(seed, there, person, tracker))
                paths.append(RandomStream(seed, back, person, tracker))
            }
        }
        return paths
    }

    /// Plants a fault around all trackers.
    private mutating func plant(_ sabotage: Sabotage) {
        for node in nodes.indices {
            nodes[node].disk.sabotage = sabotage
            tamperings.append(
                Tampering(
                    sabotage, random: RandomStream(seed, .sabotage, node),
                    longestInterval: options.interval * IntervalPolicy.maxStretch))
        }
    }

    /// Puts the first events into the queue.
    private mutating func plant() {
        for node in nodes.indices where connectivity[node].isThere {
            var random = RandomStream(seed, .firstStart, node)
            var delay = random.between(.zero, options.maxStartDelay)
            if node == nodes.count - 1 { delay = delay + options.latecomerDelay }
            queue.put(.nodeReturns(node, life: 0), at: now + delay)
        }
        for place in clients.indices where options.hasClient(place) {
            let act: SimulatedClient.Act = clients[place].kind == .peer ? .arrive : .scrape
            let delay = drawing(place) { $0.arrival() }
            queue.put(.clientActs(place, resolve: 0, act), at: now + delay)
        }
        for number in 0..<options.strangerCount { queue.put(.strangerActs(number), at: now + .seconds(1)) }
        for number in 0..<options.visitorCount { queue.put(.visitorActs(number), at: now + .seconds(1)) }
        for number in stewards.indices { queue.put(.stewardActs(number), at: now + .seconds(2)) }
        if let gap = plan.gap() { queue.put(.fault, at: now + .seconds(1) + gap) }
        for number in options.script.indices { queue.put(.turn(number), at: now + options.script[number].at) }
        queue.put(.heals, at: now + options.coreLength)
        planDamage()
        for node in nodes.indices where connectivity[node].isThere { planProbe(node) }
        planTransfers()
    }
}

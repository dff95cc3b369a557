// What a scenario of a cluster is like.

import Primitives
import TrackerLogic

/// What a scenario of a cluster is like.
///
/// All of it is drawn from the seed ("swarm testing": each scenario has some kinds of trouble and lacks others, for
/// those that are always there would hide each other), and may be changed before the run.
public struct ScenarioOptions: Sendable, Hashable {
    /// How long there are faults.
    public var coreLength = Duration.seconds(40)
    /// Trackers in all.
    public var nodeCount = 3
    /// The numbers, from 1, of those that are there; nil for all.
    ///
    /// The others keep their places and their numbers, and never start.
    public var onlyTrackers: [Int]?
    /// How many of them, the last ones, are no voters at first (quorum mode).
    public var spareCount = 0
    /// How many of them, the last ones, are given their numbers by the master (survivor mode).
    public var unnumberedCount = 0
    /// How many of them, the last ones, are told something else than the others in some of their lives, until all is
    /// well.
    public var misconfiguredCount = 0
    /// Whether the last of those that are no voters at first is told of other members than the others, until all is
    /// well.
    public var misinformsSpare = false
    /// Whether trackers tell each other how they fare.
    public var hasReports = false
    /// Who hears a request of a client: the tracker that it asks, or all of a multicast group.
    public var entry = ClusterConfiguration.Entry.any
    /// Trackers come up within this time.
    public var maxStartDelay = Duration.milliseconds(500)
    /// The last one comes so much later.
    public var latecomerDelay = Duration.zero

    /// Clients that download and share, each with an announcer.
    public var clientCount = 8
    /// Swarms that the clients choose from.
    public var swarmCount = 2
    /// Clients that only scrape; their places are behind those of the others.
    public var scraperCount = 1
    /// The places of the clients and scrapers that are there, from 0; nil for all.
    public var onlyClients: [Int]?
    /// Whether the scrapers are there; without, they keep their places and never ask.
    public var hasScrapers = true
    /// Who send junk and forgeries.
    public var strangerCount = 0
    /// Who ask over HTTP.
    public var visitorCount = 0
    /// Whether those who ask over HTTP bring passkeys, use IPv6, ask for many swarms, and for what cannot be.
    public var hasWhimsicalVisitors = false
    /// Whether some clients have passkeys as long as may be, and announce URLs have them in all places where they may
    /// stand.
    public var hasOddPasskeys = false
    /// Whether trackers trust those who ask over HTTP, as if they were proxies.
    public var trustsVisitors = false
    /// Who change accounts and torrent files at consoles.
    public var stewardCount = 0
    /// Whether they now and then want several things of one account at once.
    public var hasHastyStewards = false
    /// Whether the operator's files say something of accounts, too.
    public var hasFileAccounts = false
    /// Uploads of torrent files under way at once, at most.
    public var maxUploads = 8
    /// Clients that share one address, behind one translator.
    public var clientsPerAddress = 1
    /// Clients in a hundred that use IPv6.
    public var ipv6Percent = 30
    /// Whether all clients come in the same tenth of a second.
    public var isFlashCrowd = false
    /// Stays, stays away and downloads are as long as this, more or less.
    public var stay = Duration.seconds(20)
    /// How long a client waits before it asks again; twice as long each time after.
    public var clientWait = Duration.seconds(5)
    /// How often it asks again before it goes to the next tracker.
    public var clientRetransmissions = 1

    /// Seconds between the announces of a client, as trackers are configured.
    public var interval: UInt32 = 15
    /// Seconds by which each client's interval is moved at most, either way.
    public var intervalJitter: UInt32 = 2
    /// Announces a second that trackers want to see at most; beyond it they tell a longer interval.
    public var targetRate: UInt32 = 100_000
    /// Shards of the table of swarms.
    public var shardCount: UInt32 = 2
    /// Torrents that a tracker holds at most.
    public var maxTorrents = 1000
    /// Peers that a tracker holds at most, over all torrents.
    public var maxPeers = 1000
    /// Peers of one swarm, and of one address, at most.
    public var (maxPeersPerSwarm, maxPeersPerAddress) = (Limits().peersPerSwarm, Limits().peersPerAddress)
    /// Updates in an entry of the log, at most.
    public var updatesPerEntry = 64
    /// Errors that a tracker sends to one address in a second.
    public var errorsPerSecond = 1000
    /// Requests that a tracker keeps until they are answered.
    public var waitingRequests = 8192
    /// Between two messages in which a slave forwards requests.
    public var forwardPause = Duration.milliseconds(1)
    /// Whether an orderly stop keeps the swarms.
    public var keepsSwarms = false
    /// Whether what the operator's files say is commanded at every start of a tracker (a tracker alone).
    public var commandsAtStart = false
    /// Whether the world goes on until whoever has fallen silent must be gone, to see who is left.
    public var outlastsTheSilent = false
    /// Whether the run ends with the orderly stop of all trackers.
    public var stopsAtEnd = false
    /// How the whole cluster is stopped, and started anew, once all is repaired; nil where it is not.
    public var wholeStop: ClusterStop?
    /// The PREPARE with which the first master after that dies; 0 where it does not (quorum mode).
    public var preparesOfNewBeginning = 0
    /// After how long a tracker writes a new snapshot.
    public var snapshotAge = Duration.seconds(10)
    /// Bytes of log after which it writes one sooner.
    public var snapshotLogByteCount = 4000
    /// Entries that trackers keep for those who lag behind; who lags further takes the whole state.
    public var tailCount = 4096

    /// Between clients and trackers.
    public var network = NetworkOptions()
    /// Between trackers.
    public var bus = SimulatedBusOptions()
    /// Between two single messages that are lost, or come once more much later, on average; nil where none are.
    public var slipGap: Duration?
    /// How quick and how faulty disks are.
    public var disk = DiskOptions()
    /// What goes wrong, how often, and for how long.
    public var faults = FaultOptions()
    /// What happens at given times, beside what is drawn.
    public var script: [ScriptedEvent] = []
    /// Peers that download by these trackers, beside the clients; nil for none.
    public var transfers: TransferOptions?
    /// By how much clocks run fast or slow at most, in millionths.
    public var maxDrift: Int64 = 0
    /// By how much wall clocks are ahead or behind at first, at most, in milliseconds.
    public var maxWallError: Int64 = 1000
    /// Between two comparisons of a tracker with a copy of its disk, on average.
    public var probeGap = Duration.seconds(60)
    /// How long datagrams wait for a node to look, at most.
    public var maxPollDelay = Duration.microseconds(200)

    #if PLANTED_BUGS
        /// A mistake in the logic of all trackers.
        public var plantedBug = Planted.bug
    #endif

    /// Three trackers and nine clients to which nothing happens.
    public init() {}

    /// Whether wall clocks stay within 30 s of each other (rule 24), for as long as none is set.
    var hasGoodClocks: Bool { maxWallError <= 2000 && maxDrift <= 2000 }

    /// Whether no message between trackers is lost or late, and every write is made soon.
    var hasGoodWays: Bool {
        bus.lossPerMille == 0 && bus.stragglerPerMille == 0 && bus.redeliveredPerMille == 0 && slipGap == nil
            && bus.maxDelay <= .milliseconds(50) && disk.failPerMille == 0 && disk.stallPerMille == 0
            && disk.maxDelay <= .milliseconds(60) && maxDrift <= 2000
    }

    /// What a seed means for a profile.
    ///
    /// - Parameters:
    ///   - seed: fixes all that is drawn.
    ///   - profile: how the trackers of the scenario vote.
    ///   - nodes: trackers in all; drawn where nil.
    /// - Returns: options that the same seed and profile always have.
    public static func drawn(seed: UInt64, profile: Profile, nodes: Int?) -> ScenarioOptions {
        let place = Profile.allCases.firstIndex(of: profile) ?? 0
        // Each part by its own name, and what is new in a part at its end.
        func part(_ number: Int) -> RandomStream { RandomStream(seed, .options, place, number) }
        var (basics, members, people, trackers) = (part(0), part(1), part(2), part(3))
        var (network, bus, disk, faults, clocks) = (part(4), part(5), part(6), part(7), part(8))
        var options = ScenarioOptions()
        let sizes = [3, 3, 3, 3, 4, 5, 5, 5, 6, 7]
        let size = sizes[basics.below(sizes.count)]
        options.nodeCount = profile == .alone ? 1 : nodes ?? size
        precondition((1...30).contains(options.nodeCount), "a simulated cluster has 1 to 30 trackers")
        options.coreLength = basics.between(.seconds(25), .seconds(50))
        // A tracker alone costs little, and its disk needs time to go wrong.
        if profile == .alone { options.coreLength = options.coreLength * 5 }
        options.entry = basics.oneIn(3) && profile != .alone ? .group : .any
        options.drawMembers(&members, profile)
        options.drawWorkload(&people)
        options.drawTrackers(&trackers)
        options.drawNetwork(&network)
        options.drawBus(&bus)
        options.drawDisk(&disk)
        options.drawFaults(&faults, profile) { RandomStream(seed, .faultKinds, place, $0) }
        options.drawMoments(&faults) { RandomStream(seed, .moments, place, $0) }
        if clocks.oneIn(3) { options.maxDrift = Int64(clocks.below(2001)) }
        if clocks.oneIn(20) { options.maxDrift = 150_000 }
        if clocks.oneIn(4) { options.maxWallError = 3_600_000 }
        if clocks.oneIn(4) { options.maxPollDelay = .milliseconds(20) }
        options.drawCrowd(part(9))
        options.drawOddities(part(11))
        options.drawStewards(part(12))
        options.drawErrors(part(13))
        if profile == .alone {
            (options.commandsAtStart, options.outlastsTheSilent, options.stopsAtEnd) = (true, true, true)
        }
        var stops = part(10)
        if stops.oneIn(8) { options.wholeStop = ClusterStop.allCases[stops.below(3)] }
        var strikes = part(14)
        if profile == .paxos, strikes.oneIn(2) { options.preparesOfNewBeginning = 1 + strikes.below(3) }
        return options
    }

    /// What is seldom met, and what looks at the end for longer.
    private mutating func drawOddities(_ random: RandomStream) {
        var random = random
        if random.oneIn(6) { network.flipPerMille = random.below(40) }
        if random.oneIn(4) { clientsPerAddress = 2 + random.below(4) }
        if random.oneIn(2) { hasWhimsicalVisitors = true }
        // It takes as long as several others.
        if random.oneIn(100) { outlastsTheSilent = true }
    }

    /// In one scenario of six people are at consoles; then the table has room for torrent files.
    private mutating func drawStewards(_ random: RandomStream) {
        var random = random
        guard random.oneIn(6) else { return }
        setStewards(1 + random.below(3))
        if random.oneIn(3) { maxUploads = 1 }
    }

    /// In one scenario of four, few errors go to one address.
    private mutating func drawErrors(_ random: RandomStream) {
        var random = random
        if random.oneIn(4) { errorsPerSecond = 1 + random.below(4) }
    }

    /// So many people are at consoles, and the table has room for what they upload.
    public mutating func setStewards(_ count: Int) {
        (stewardCount, shardCount) = (count, 16)
    }

    private mutating func drawCrowd(_ random: RandomStream) {
        var random = random
        let hasLittleRoom = random.oneIn(4)
        if random.oneIn(4) { forwardPause = .milliseconds(50) }
        if random.oneIn(3) { visitorCount = 1 + random.below(3) }
        if random.oneIn(4) {
            // More peers than seconds in an interval: it stretches.
            targetRate = 1
            interval = 4 + UInt32(random.below(4))
            intervalJitter = min(intervalJitter, 1)
            clientCount = 12 + random.below(12)
        }
        if hasLittleRoom { waitingRequests = 0 }
        makeRoom()
    }

    /// Room for all requests, if not for all their copies.
    mutating func makeRoom() {
        waitingRequests = max(waitingRequests, 3 * (clientCount + scraperCount + strangerCount))
    }

    private mutating func drawMembers(_ random: inout RandomStream, _ profile: Profile) {
        if profile == .paxos {
            if random.oneIn(3), nodeCount > 3 { spareCount = 1 + random.below(min(2, nodeCount - 3)) }
        } else if random.oneIn(4), nodeCount > 1 {
            unnumberedCount = 1 + random.below(nodeCount - 1)
        }
        if random.oneIn(3) { maxStartDelay = .seconds(3) }
        if random.oneIn(4) { latecomerDelay = random.between(.seconds(2), .seconds(15)) }
    }

    private mutating func drawWorkload(_ random: inout RandomStream) {
        clientCount = 6 + random.below(15)
        swarmCount = 1 + random.below(4)
        scraperCount = random.below(3)
        if random.oneIn(4) { strangerCount = 1 }
        ipv6Percent = random.oneIn(3) ? 0 : random.oneIn(4) ? 100 : 30
        isFlashCrowd = random.oneIn(4)
        stay = random.between(.seconds(5), .seconds(40))
        clientWait = random.oneIn(3) ? .seconds(15) : random.between(.seconds(2), .seconds(6))
        // In a group, what is asked again sooner than BEP 15 says is taken for a late copy.
        if entry == .group { clientWait = .seconds(15) }
        clientRetransmissions = random.below(3)
    }

    private mutating func drawTrackers(_ random: inout RandomStream) {
        let intervals: [UInt32] = [6, 10, 15, 20, 30]
        interval = intervals[random.below(intervals.count)]
        intervalJitter = random.oneIn(3) ? 0 : UInt32(random.below(Int(interval) / 2))
        let counts: [UInt32] = [1, 2, 2, 4]
        shardCount = counts[random.below(counts.count)]
        if random.oneIn(8) { maxTorrents = 1 + random.below(3) }
        if random.oneIn(8) { maxPeers = 3 + random.below(8) }
        if random.oneIn(4) { updatesPerEntry = 2 + random.below(8) }
        keepsSwarms = random.oneIn(2)
        if random.oneIn(2) { snapshotAge = random.between(.seconds(1), .seconds(30)) }
        if random.oneIn(2) { snapshotLogByteCount = 300 + random.below(8000) }
        if random.oneIn(2) { tailCount = 1 + random.below(20) }
    }

    private mutating func drawNetwork(_ random: inout RandomStream) {
        network.maxDelay = .milliseconds(random.oneIn(3) ? 200 : 20)
        network.maxStragglerDelay = .seconds(8)
        if random.oneIn(2) { network.lossPerMille = random.oneIn(4) ? random.below(300) : random.below(50) }
        if random.oneIn(3) { network.repeatPerMille = random.below(150) }
        if random.oneIn(4) { network.stragglerPerMille = random.below(60) }
    }

    private mutating func drawBus(_ random: inout RandomStream) {
        if random.oneIn(2) { bus.lossPerMille = random.oneIn(4) ? random.below(300) : random.below(30) }
        if random.oneIn(3) { bus.repeatPerMille = random.below(150) }
        if random.oneIn(3) { bus.stragglerPerMille = random.below(60) }
        if random.oneIn(3) { bus.redeliveredPerMille = random.below(80) }
        let delays: [Int64] = [2, 10, 10, 50, 300]
        bus.maxDelay = .milliseconds(delays[random.below(delays.count)])
        bus.isReordering = random.oneIn(2)
        bus.isShared = random.oneIn(6)
        if random.oneIn(3) { bus.maxConnectDelay = .seconds(2) }
        if random.oneIn(3) { bus.maxNoticeDelay = .seconds(3) }
    }

    private mutating func drawDisk(_ random: inout RandomStream) {
        if random.oneIn(3) { disk.maxDelay = .milliseconds(60) }
        disk.maxStall = .seconds(4)
        if random.oneIn(4) { disk.stallPerMille = random.below(30) }
        if random.oneIn(4) { disk.failPerMille = random.oneIn(3) ? random.below(300) : random.below(50) }
        if random.oneIn(3) { disk.maxGroup = 1 + random.below(4) }
        if random.oneIn(3) { disk.maxReportDelay = .milliseconds(30) }
    }

    /// Draws what goes wrong; each kind of fault has its own stream, so that one kind more changes nothing for the
    /// others.
    private mutating func drawFaults(
        _ random: inout RandomStream, _ profile: Profile, _ stream: (Int) -> RandomStream
    ) {
        faults.maxOutages = 1 + random.below(14)
        // Mostly a majority stays; sometimes anything may go.
        let minority = max(1, (nodeCount - spareCount - 1) / 2)
        faults.maxDown = random.oneIn(4) ? nodeCount : minority
        let steps: [Int64] = [2000, 30_000, 600_000, 7_200_000]
        faults.maxClockStep = steps[random.below(steps.count)]
        guard !random.oneIn(8) else { return }
        faults.meanGap = random.between(.seconds(1), .seconds(12))
        for kind in Fault.Kind.allCases {
            var random = stream(kind.rawValue)
            guard random.oneIn(3) else { continue }
            if kind == .memberChange, profile != .paxos { continue }
            if profile == .alone, kind.needsOthers { continue }
            if kind == .brokenDisk, !random.oneIn(2) { continue }
            faults.kinds.append(kind)
        }
    }

    private mutating func drawMoments(_ random: inout RandomStream, _ stream: (Int) -> RandomStream) {
        faults.hasPausesAtMoments = random.oneIn(3)
        faults.hasCutsAtMoments = random.oneIn(3)
        for moment in Moment.allCases {
            var random = stream(moment.rawValue)
            guard random.oneIn(moment.isOfTransfer ? 2 : 4) else { continue }
            // What is rare must be injected often.
            faults.injectOneIn[moment.rawValue] =
                switch moment {
                case .chunkFetched, .chunkSent, .transferEnded, .stopping, .handover: 1 + random.below(4)
                case .promiseSubmitted, .promiseDurable, .electionSent, .answerSent, .becameMaster, .writeFailed,
                    .restarted:
                    2 + random.below(6)
                case .snapshotUnderWay, .trimSubmitted: 4 + random.below(20)
                case .entrySubmitted, .entryDurable, .prepareSent, .okSent, .commitSent, .replied, .forwarded,
                    .halfWay:
                    10 + random.below(150)
                }
        }
    }
}

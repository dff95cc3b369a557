/// What a scenario is like. All of it is drawn from the seed ("swarm testing": each scenario has some kinds of trouble
/// and lacks others, for those that are always there would hide each other), and may be changed before the run.

import Primitives
import TrackerLogic

public struct ScenarioOptions: Sendable, Hashable {
    /// How long there are faults.
    public var coreLength = Duration.seconds(600)
    public var clientCount = 16
    public var swarmCount = 4
    public var scraperCount = 1
    /// Who send junk and forgeries.
    public var strangerCount = 0
    /// Who ask over HTTP.
    public var visitorCount = 0
    /// Clients that share one address, behind one translator.
    public var clientsPerAddress = 1
    /// Clients in a hundred that use IPv6.
    public var ipv6Percent = 30
    /// Whether all clients come in the same tenth of a second.
    public var isFlashCrowd = false
    /// Stays, stays away and downloads are as long as this, more or less.
    public var stay = Duration.seconds(120)

    public var interval: UInt32 = 60
    public var intervalJitter: UInt32 = 5
    public var targetRate: UInt32 = 100_000
    public var shardCount: UInt32 = 4
    public var maxTorrents = 1000
    public var maxPeers = 1000
    public var updatesPerEntry = 256
    public var keepsSwarms = false
    public var snapshotAge = Duration.seconds(600)
    public var snapshotLogByteCount = 32 << 20
    public var errorsPerSecond = 1000

    public var network = NetworkOptions()
    public var disk = DiskOptions()
    public var faults = FaultOptions()
    /// By how much clocks run fast, in millionths.
    public var drift: Int64 = 0
    /// How long datagrams wait for the node to look, at most.
    public var maxPollDelay = Duration.microseconds(200)
    /// Between two comparisons of the node with a copy of its disk, on average.
    public var probeGap = Duration.seconds(30)

    public init() {}

    /// What this seed means.
    public static func drawn(seed: UInt64) -> ScenarioOptions {
        var random = RandomStream(seed: seed, stream: Streams.options)
        var options = ScenarioOptions()
        options.coreLength = random.between(.seconds(120), .seconds(1500))
        options.drawWorkload(&random)
        options.drawTracker(&random)
        options.drawNetwork(&random)
        options.drawDisk(&random)
        options.drawFaults(&random)
        if random.oneIn(3) { options.drift = Int64(random.below(2001)) - 1000 }
        if random.oneIn(20) { options.drift = random.oneIn(2) ? 100_000 : -100_000 }
        if random.oneIn(3) { options.maxPollDelay = .milliseconds(20) }
        return options
    }

    private mutating func drawWorkload(_ random: inout RandomStream) {
        clientCount = 2 + random.below(23)
        if random.oneIn(10) { clientCount = 40 + random.below(25) }
        swarmCount = 1 + random.below(6)
        scraperCount = random.below(3)
        if random.oneIn(3) { strangerCount = 1 + random.below(3) }
        if random.oneIn(3) { visitorCount = 1 + random.below(4) }
        if random.oneIn(3) { clientsPerAddress = 2 + random.below(4) }
        ipv6Percent = random.oneIn(3) ? 0 : random.oneIn(4) ? 100 : 30
        isFlashCrowd = random.oneIn(4)
        stay = random.between(.seconds(20), .seconds(400))
    }

    private mutating func drawTracker(_ random: inout RandomStream) {
        let intervals: [UInt32] = [15, 30, 60, 60, 120, 300]
        interval = intervals[random.below(intervals.count)]
        intervalJitter = random.oneIn(3) ? 0 : UInt32(random.below(Int(interval)))
        if random.oneIn(3) { targetRate = 1 }
        shardCount = random.oneIn(3) ? 16 : random.oneIn(4) ? 1 : 4
        if random.oneIn(6) { maxTorrents = 1 + random.below(4) }
        if random.oneIn(6) { maxPeers = 2 + random.below(12) }
        if random.oneIn(4) { updatesPerEntry = 1 + random.below(8) }
        keepsSwarms = random.oneIn(2)
        if random.oneIn(2) { snapshotAge = random.between(.seconds(1), .seconds(120)) }
        if random.oneIn(2) { snapshotLogByteCount = 200 + random.below(20_000) }
        // Where many are refused for good, a limit on errors would leave them without the answer that is checked for.
        if maxTorrents == 1000, maxPeers == 1000, random.oneIn(3) { errorsPerSecond = 1 }
    }

    private mutating func drawNetwork(_ random: inout RandomStream) {
        if random.oneIn(2) { network.lossPerMille = random.oneIn(3) ? random.below(400) : random.below(60) }
        if random.oneIn(2) { network.repeatPerMille = random.below(150) }
        if random.oneIn(3) { network.stragglerPerMille = random.below(60) }
        if random.oneIn(6) { network.flipPerMille = random.below(40) }
        if random.oneIn(3) { network.maxDelay = .milliseconds(400) }
    }

    private mutating func drawDisk(_ random: inout RandomStream) {
        if random.oneIn(3) { disk.maxDelay = .milliseconds(60) }
        if random.oneIn(3) { disk.stallPerMille = random.below(80) }
        if random.oneIn(4) { disk.failPerMille = random.below(80) }
        if random.oneIn(3) { disk.maxGroup = 1 + random.below(4) }
        if random.oneIn(3) { disk.maxReportDelay = .milliseconds(30) }
    }

    private mutating func drawFaults(_ random: inout RandomStream) {
        for moment in Moment.allCases where random.oneIn(3) {
            // Snapshots, restarts and stops are rare; what is rare must strike often.
            switch moment {
            case .snapshotUnderWay, .restarted, .stopping, .writeFailed:
                faults.crashOneIn[moment.rawValue] = 2 + random.below(4)
            case .writeSubmitted, .durableUntold, .replied:
                faults.crashOneIn[moment.rawValue] = 10 + random.below(200)
            }
        }
        faults.maxCrashes = 1 + random.below(16)
        guard !random.oneIn(8) else { return }
        faults.meanGap = random.between(.seconds(5), .seconds(200))
        faults.hasCrashes = random.oneIn(2)
        faults.hasDiskFailures = random.oneIn(3)
        faults.hasBrokenDisks = random.oneIn(6)
        faults.hasSlowDisks = random.oneIn(4)
        faults.hasClockSteps = random.oneIn(3)
        // Hours, and once in a while weeks.
        let steps: [Int64] = [2000, 30_000, 600_000, 7_200_000, 3_000_000_000]
        faults.maxClockStep = steps[random.below(steps.count)]
        faults.hasCleanStops = random.oneIn(3)
        faults.hasPauses = random.oneIn(4)
        faults.hasDarkness = random.oneIn(4)
        faults.hasRuleChanges = random.oneIn(3) && errorsPerSecond > 1
    }
}

/// Independent sequences of one seed, so that a new use of chance shifts no other.
enum Streams {
    static let options: UInt64 = 1
    static let network: UInt64 = 2
    static let faults: UInt64 = 3
    static let workload: UInt64 = 4
    static let probes: UInt64 = 5
    static let rules: UInt64 = 6
    static let strangers: UInt64 = 7
    /// One for each node from here on.
    static let nodes: UInt64 = 1000
    static let disks: UInt64 = 2000
    static let clients: UInt64 = 10_000
}

/// What goes wrong in a simulated cluster: by the clock, and at bad moments.

import Primitives
import TrackerLogic

/// A fault that comes by the clock.
public struct ClusterFault: Sendable, Hashable {
    public enum Kind: Int, Sendable, Hashable, CaseIterable {
        case crash
        /// The process is held, and goes on; its clocks have gone on.
        case pause
        /// Two groups of trackers that do not hear each other; clients reach both.
        case partition
        /// One group does not hear the other, and is heard.
        case oneWayPartition
        /// Some links, each in one direction, carry nothing: who hears whom makes no sense.
        case deafLinks
        /// One link takes much longer.
        case slowPair
        /// One link holds what is sent, and delivers all of it in the end.
        case clog
        /// One tracker loses its bus.
        case busLoss
        /// All lose it.
        case brokerOutage
        /// Clients do not reach one tracker, nor the other way round; its bus works.
        case darkness
        /// Writes fail for certain, for a while.
        case diskFailure
        /// Writes fail in an unknown way, until the end of the process.
        case brokenDisk
        case slowDisk
        case clockStep
        /// The operator stops a tracker in good order, and starts it again.
        case cleanStop
        /// A tracker dies and loses its disk.
        case memoryLoss
        case ruleChange
        case registration
        case memberChange
        case handover

        /// What it is, in words.
        var words: String {
            switch self {
            case .crash: "crash"
            case .pause: "pause"
            case .partition: "partition"
            case .oneWayPartition: "one-way partition"
            case .deafLinks: "deafness of links"
            case .slowPair: "slow link"
            case .clog: "clogged link"
            case .busLoss: "loss of the bus"
            case .brokerOutage: "broker outage"
            case .darkness: "loss of clients"
            case .diskFailure: "failure of the disk"
            case .brokenDisk: "broken disk"
            case .slowDisk: "slow disk"
            case .clockStep: "step of the clock"
            case .cleanStop: "orderly stop"
            case .memoryLoss: "loss of the disk"
            case .ruleChange: "change of the access rules"
            case .registration: "change of the registered torrents"
            case .memberChange: "change of the members"
            case .handover: "handover"
            }
        }
    }

    public var kind: Kind
    /// How long it lasts, where it lasts.
    public var duration: Duration
}

/// Which faults a scenario may see, and how many.
public struct ClusterFaultOptions: Sendable, Hashable {
    /// For each moment, one in so many is struck; 0 for never.
    public var struckOneIn: [Int] = Array(repeating: 0, count: ClusterMoment.allCases.count)
    /// The kinds that come by the clock.
    public var kinds: [ClusterFault.Kind] = []
    /// Between faults that come by the clock, on average; nil for none.
    public var meanGap: Duration?
    /// Between damages to disks, on average; nil for none.
    public var damageGap: Duration?
    /// Crashes, pauses and cuts in all.
    public var maxBlows = 12
    /// Trackers that are down, held or cut off by our doing at once.
    public var maxDown = 1
    /// Whether what strikes at bad moments may be a pause, or the loss of the bus, as well as a crash.
    public var hasPausesAtMoments = false
    public var hasCutsAtMoments = false
    /// Whether what comes by the clock is the death of the master, and nothing else.
    public var killsMastersOnly = false
    /// Clock steps at most, in milliseconds.
    public var maxClockStep: Int64 = 30_000
    /// The numbers, from 1, of the faults by the clock that are carried out; nil for all.
    ///
    /// The others are drawn, and left out.
    public var onlyFaults: [Int]?
    /// The numbers, from 1, of the strikes at bad moments that are carried out; nil for all.
    public var onlyStrikes: [Int]?

    public init() {}
}

struct ClusterFaultPlan: Sendable {
    /// What hits a node.
    enum Blow: Sendable, Hashable {
        case crash
        case pause(Duration)
        case cut(Duration)
    }

    /// Longer than that nobody is held; the world is not over before.
    static let maxPause = Duration.seconds(10)

    let options: ClusterFaultOptions
    /// The moments at which something may strike.
    private let mask: UInt32
    var random: RandomStream
    /// From which each fault by the clock has a stream of its own, so that leaving one out changes no other.
    private let faultSeed: UInt64
    private var blows = 0
    /// The fault by the clock that was drawn last, counted from 1.
    private(set) var lastFault = 0
    /// The strike at a bad moment that was drawn last, counted from 1.
    private(set) var lastStrike = 0

    init(options: ClusterFaultOptions, random: RandomStream) {
        self.options = options
        self.random = random
        faultSeed = self.random.next()
        var mask: UInt32 = 0
        for moment in ClusterMoment.allCases where options.struckOneIn[moment.rawValue] > 0 { mask |= moment.bit }
        self.mask = mask
    }

    /// Whether anything strikes at one of these moments, and at which.
    mutating func strikes(at moments: UInt32) -> ClusterMoment? {
        var bits = moments & mask
        while bits != 0 {
            let place = bits.trailingZeroBitCount
            bits &= bits - 1
            guard blows < options.maxBlows else { return nil }
            if random.oneIn(options.struckOneIn[place]) {
                blows += 1
                lastStrike += 1
                if options.onlyStrikes?.contains(lastStrike) ?? true { return ClusterMoment(rawValue: place) }
            }
        }
        return nil
    }

    /// What strikes at a moment.
    mutating func blow() -> Blow {
        switch random.below(6) {
        case 0 where options.hasPausesAtMoments: .pause(random.between(.milliseconds(50), ClusterFaultPlan.maxPause))
        case 1 where options.hasCutsAtMoments: .cut(random.between(.milliseconds(50), .seconds(8)))
        default: .crash
        }
    }

    /// How long a dead node stays dead; often so short that nobody has noticed.
    mutating func downtime() -> Duration {
        switch random.below(4) {
        case 0: random.between(.milliseconds(1), .milliseconds(50))
        case 1, 2: random.between(.milliseconds(50), .seconds(5))
        default: random.between(.seconds(5), .seconds(15))
        }
    }

    /// The time until the next fault by the clock; `fault` and what it needs to know is drawn right after.
    mutating func gap() -> Duration? {
        guard let mean = options.meanGap, !options.kinds.isEmpty else { return nil }
        random = RandomStream(seed: faultSeed, stream: UInt64(lastFault))
        return random.between(.milliseconds(10), mean * 2)
    }

    /// A fault of a kind that the scenario has; nil for none this time.
    mutating func fault() -> ClusterFault? {
        guard !options.kinds.isEmpty else { return nil }
        lastFault += 1
        let kind = options.kinds[random.below(options.kinds.count)]
        switch kind {
        case .crash, .pause, .cleanStop, .memoryLoss, .brokenDisk:
            guard blows < options.maxBlows else { return nil }
            blows += 1
        case .partition, .oneWayPartition, .deafLinks, .slowPair, .clog, .busLoss, .brokerOutage, .darkness,
            .diskFailure,
            .slowDisk, .clockStep, .ruleChange, .registration, .memberChange, .handover:
            break
        }
        let fault = ClusterFault(kind: kind, duration: duration(of: kind))
        return options.onlyFaults?.contains(lastFault) ?? true ? fault : nil
    }

    private mutating func duration(of kind: ClusterFault.Kind) -> Duration {
        switch kind {
        case .pause: random.between(.milliseconds(50), ClusterFaultPlan.maxPause)
        case .partition, .oneWayPartition, .deafLinks, .busLoss:
            random.oneIn(3)
                ? random.between(.milliseconds(100), .seconds(2)) : random.between(.seconds(2), .seconds(15))
        case .slowPair, .clog, .diskFailure, .slowDisk, .darkness: random.between(.milliseconds(100), .seconds(10))
        case .brokerOutage: random.between(.milliseconds(100), .seconds(6))
        case .crash, .brokenDisk, .clockStep, .cleanStop, .memoryLoss, .ruleChange, .registration, .memberChange,
            .handover:
            .zero
        }
    }

    /// Some of the trackers, not none and not all, one bit each.
    mutating func side(of count: Int) -> UInt32 {
        guard count > 1 else { return 0 }
        return 1 + UInt32(random.below((1 << count) - 2))
    }

    mutating func clockStep() -> Int64 {
        let size = 1 + Int64(random.below(UInt64(options.maxClockStep)))
        return random.oneIn(2) ? size : -size
    }

    mutating func diskFailure() -> StorageFailure {
        switch random.below(3) {
        case 0: .locked
        case 1: .readOnly
        default: .full
        }
    }
}

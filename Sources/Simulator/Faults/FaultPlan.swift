// What goes wrong in a simulated cluster.

import Primitives
import TrackerLogic

/// A fault that comes by the clock.
public struct Fault: Sendable, Hashable {
    /// What can go wrong by the clock.
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

        /// Whether it is about what trackers are to each other.
        var needsOthers: Bool {
            switch self {
            case .partition, .oneWayPartition, .deafLinks, .slowPair, .clog, .busLoss, .brokerOutage, .memoryLoss,
                .memberChange, .handover:
                true
            case .crash, .pause, .darkness, .diskFailure, .brokenDisk, .slowDisk, .clockStep, .cleanStop, .ruleChange,
                .registration:
                false
            }
        }

        /// Whether it is one tracker's, and not one of links or of all.
        var hasVictim: Bool {
            switch self {
            case .crash, .pause, .busLoss, .cleanStop, .brokenDisk, .diskFailure, .slowDisk, .clockStep, .darkness,
                .memoryLoss:
                true
            case .partition, .oneWayPartition, .deafLinks, .slowPair, .clog, .brokerOutage, .ruleChange, .registration,
                .memberChange, .handover:
                false
            }
        }

        /// Whether it ends or holds a tracker.
        var isOutage: Bool {
            switch self {
            case .crash, .pause, .cleanStop, .memoryLoss, .brokenDisk: true
            case .partition, .oneWayPartition, .deafLinks, .slowPair, .clog, .busLoss, .brokerOutage, .darkness,
                .diskFailure, .slowDisk, .clockStep, .ruleChange, .registration, .memberChange, .handover:
                false
            }
        }
    }

    /// What goes wrong.
    public var kind: Kind
    /// How long it lasts, where it lasts.
    public var duration: Duration
}

/// Which faults a scenario may see, and how many.
public struct FaultOptions: Sendable, Hashable {
    /// For each moment, a fault is injected at one in so many; 0 for never.
    public var injectOneIn: [Int] = Array(repeating: 0, count: Moment.allCases.count)
    /// The kinds that come by the clock.
    public var kinds: [Fault.Kind] = []
    /// Between faults that come by the clock, on average; nil for none.
    public var meanGap: Duration?
    /// Between damages to disks, on average; nil for none.
    public var damageGap: Duration?
    /// Crashes, pauses and cuts by the clock, and as many injections at bad moments.
    public var maxOutages = 12
    /// Trackers that are down, held or cut off by our doing at once.
    public var maxDown = 1
    /// Whether what is injected at bad moments may be a pause, or the loss of the bus, as well as a crash.
    public var hasPausesAtMoments = false
    /// Whether an injection may also cut a tracker off, and not only end its life.
    public var hasCutsAtMoments = false
    /// Whether an injection may also be a disk that refuses what it is to write.
    public var hasRefusalsAtMoments = false
    /// Whether what hits a tracker by the clock may hit it with something else besides.
    public var strikesTwice = false
    /// Whether what comes by the clock is the death of the master, and nothing else.
    public var killsMastersOnly = false
    /// Whether all others die, until all is well, as soon as a tracker begins to fetch the state.
    public var leavesFetchersAlone = false
    /// Clock steps at most, in milliseconds.
    public var maxClockStep: Int64 = 30_000
    /// The faults by the clock that are carried out; nil for all.
    ///
    /// The others are drawn, and left out.
    public var onlyFaults: [ChosenFault]?
    /// The faults injected at bad moments that are carried out; nil for as many as may be.
    public var onlyInjections: [Injection]?

    /// Nothing goes wrong.
    public init() {}
}

/// What goes wrong in a simulated cluster: by the clock, and at bad moments.
struct FaultPlan: Sendable {
    /// What hits a node.
    enum Outage: Sendable, Hashable {
        case crash(downtime: Duration)
        case pause(Duration)
        case cut(Duration)
        case refusal(StorageFailure, Duration)

        var blow: Census.Blow {
            switch self {
            case .crash: .death
            case .pause: .pause
            case .cut: .cut
            case .refusal: .refusal
            }
        }
    }

    /// Waits for one kind of moment of one tracker.
    private struct Watch: Sendable {
        var random: RandomStream
        /// Such moments until a fault is injected.
        var left = 0
        /// How often a fault was injected.
        var count = 0

        /// - Parameter odds: a fault is injected at one moment in so many, on average.
        mutating func begin(oneIn odds: Int) { left = 1 + random.below(2 * odds - 1) }
    }

    /// Longer than that nobody is held; the world is not over before.
    static let maxPause = Duration.seconds(10)

    let options: FaultOptions
    private let seed: UInt64
    /// The moments at which a fault may be injected.
    private let mask: UInt32
    /// By tracker, then by moment.
    private var watches: [Watch]
    /// Of the fault by the clock that was drawn last.
    var random: RandomStream
    /// Of the injection at a bad moment that was drawn last.
    private(set) var injectionRandom: RandomStream
    private var faultOutages = 0
    private var injectedOutages = 0
    /// The fault by the clock that was drawn last, counted from 1.
    private(set) var lastFault = 0
    /// What was drawn last is so many times as short and as weak.
    private var divisor = 1
    /// The injections at bad moments, as they were drawn.
    private(set) var injections: [Injection] = []

    /// The plan of a seed for so many trackers.
    init(options: FaultOptions, seed: UInt64, count: Int) {
        self.options = options
        self.seed = seed
        random = RandomStream(seed, .fault)
        injectionRandom = random
        var mask: UInt32 = 0
        for moment in Moment.allCases where options.injectOneIn[moment.rawValue] > 0 { mask |= moment.bit }
        self.mask = mask
        watches = []
        guard mask != 0 else { return }
        for node in 0..<count {
            for (moment, odds) in options.injectOneIn.enumerated() {
                var watch = Watch(random: RandomStream(seed, .watch, FaultPlan.place(moment, node)))
                if odds > 0 { watch.begin(oneIn: odds) }
                watches.append(watch)
            }
        }
    }

    private static func place(_ moment: Int, _ node: Int) -> Int { node * Moment.allCases.count + moment }

    // MARK: - At bad moments

    /// Whether a fault is injected into a tracker at one of these moments, and at which.
    mutating func injection(at moments: UInt32, of node: Int) -> Moment? {
        var bits = moments & mask
        var injected: Moment?
        while bits != 0 {
            let moment = bits.trailingZeroBitCount
            bits &= bits - 1
            let place = FaultPlan.place(moment, node)
            watches[place].left -= 1
            guard watches[place].left == 0 else { continue }
            if isInjected(moment, node, place) { injected = Moment(rawValue: moment) }
        }
        return injected
    }

    private mutating func isInjected(_ number: Int, _ node: Int, _ place: Int) -> Bool {
        watches[place].begin(oneIn: options.injectOneIn[number])
        watches[place].count += 1
        guard let moment = Moment(rawValue: number) else { return false }
        let injection = Injection(tracker: node + 1, moment: moment, count: watches[place].count)
        if let only = options.onlyInjections {
            guard only.contains(injection) else { return false }
        } else {
            guard injectedOutages < options.maxOutages else { return false }
            injectedOutages += 1
        }
        injections.append(injection)
        injectionRandom = RandomStream(seed, .injection, place, injection.count)
        return true
    }

    /// The outage that is injected at a moment.
    mutating func outage() -> Outage {
        switch injectionRandom.below(6) {
        case 0 where options.hasPausesAtMoments:
            .pause(injectionRandom.between(.milliseconds(50), FaultPlan.maxPause))
        case 1 where options.hasCutsAtMoments: .cut(injectionRandom.between(.milliseconds(50), .seconds(8)))
        case 2 where options.hasRefusalsAtMoments, 3 where options.hasRefusalsAtMoments:
            .refusal(
                injectionRandom.oneIn(2) ? .full : .locked, injectionRandom.between(.milliseconds(50), .seconds(5)))
        default: .crash(downtime: FaultPlan.downtime(&injectionRandom))
        }
    }

    /// Of so many messages, how many are sent before a tracker dies half-way through a step; and how long it is dead.
    mutating func halfWay(of count: Int) -> (sent: Int, downtime: Duration) {
        (injectionRandom.below(count + 1), FaultPlan.downtime(&injectionRandom))
    }

    // MARK: - By the clock

    /// How long a dead node stays dead; often so short that nobody has noticed.
    static func downtime(_ random: inout RandomStream) -> Duration {
        switch random.below(4) {
        case 0: random.between(.milliseconds(1), .milliseconds(50))
        case 1, 2: random.between(.milliseconds(50), .seconds(5))
        default: random.between(.seconds(5), .seconds(15))
        }
    }

    /// For a node that the fault which was drawn last ends.
    mutating func downtime() -> Duration { shortened(FaultPlan.downtime(&random)) }

    /// The time from the last fault by the clock to the next.
    func gap() -> Duration? {
        guard let mean = options.meanGap, !options.kinds.isEmpty else { return nil }
        var random = RandomStream(seed, .faultGap, lastFault + 1)
        return random.between(.milliseconds(10), mean * 2)
    }

    /// A fault of a kind that the scenario has; nil for none this time.
    ///
    /// What else it needs is drawn right after.
    mutating func fault() -> Fault? {
        guard !options.kinds.isEmpty else { return nil }
        lastFault += 1
        random = RandomStream(seed, .fault, lastFault)
        divisor = 1
        let kind = kind(random.next())
        if kind.isOutage {
            guard faultOutages < options.maxOutages else { return nil }
            faultOutages += 1
        }
        if let only = options.onlyFaults {
            guard let chosen = only.first(where: { $0.number == lastFault }) else { return nil }
            divisor = chosen.divisor
        }
        return Fault(kind: kind, duration: shortened(duration(of: kind)))
    }

    /// What hits a tracker together with the fault that was drawn last; mostly nothing.
    ///
    /// What else it needs is drawn right after.
    mutating func companion() -> Fault? {
        guard options.strikesTwice else { return nil }
        random = RandomStream(seed, .companion, lastFault)
        guard random.oneIn(2) else { return nil }
        let kinds: [Fault.Kind] = [.diskFailure, .slowDisk, .busLoss, .crash, .pause, .darkness, .clockStep]
        let kind = kinds[random.below(kinds.count)]
        return Fault(kind: kind, duration: shortened(duration(of: kind)))
    }

    /// Each kind draws a lot, and the highest wins.
    ///
    /// So one kind more takes its share of all faults, and the others are what they were.
    private func kind(_ drawn: UInt64) -> Fault.Kind {
        var seen = Array(repeating: UInt64(0), count: Fault.Kind.allCases.count)
        var best = (lot: UInt64(0), kind: options.kinds[0])
        for kind in options.kinds {
            seen[kind.rawValue] += 1
            let lot = mixed(drawn ^ mixed(UInt64(kind.rawValue) << 32 | seen[kind.rawValue]))
            if lot >= best.lot { best = (lot, kind) }
        }
        return best.kind
    }

    /// Of the fault that was drawn last, the part that is carried out.
    func shortened(_ duration: Duration) -> Duration { duration / divisor }

    private mutating func duration(of kind: Fault.Kind) -> Duration {
        switch kind {
        case .pause: random.between(.milliseconds(50), FaultPlan.maxPause)
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
        let size = (1 + Int64(random.below(UInt64(options.maxClockStep)))) / Int64(divisor)
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

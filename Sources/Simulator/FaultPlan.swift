/// When something goes wrong: by the clock, and at moments that are worse than others.

import Primitives
import TrackerLogic

/// Moments at which a crash shows most.
public enum Moment: Int, Sendable, CaseIterable {
    /// A write has been handed to the disk and nothing else done.
    case writeSubmitted
    /// Chunks of a snapshot are on their way to the disk.
    case snapshotUnderWay
    /// A write is durable, and the node does not know.
    case durableUntold
    /// The node has been told, and has answered.
    case replied
    /// The node has been told that a write failed.
    case writeFailed
    /// The node has just come back.
    case restarted
    /// The node has been asked to stop.
    case stopping
}

/// Faults that come by the clock.
public enum Fault: Sendable, Hashable {
    case crash
    /// Writes fail like this for a while.
    case diskFails(StorageFailure, Duration)
    /// Writes take this long at most, for a while.
    case diskSlow(Duration, for: Duration)
    /// The wall clock is set, by milliseconds.
    case clockStep(Int64)
    /// The operator stops the tracker and starts it again.
    case cleanStop
    /// The process is held, and goes on.
    case pause(Duration)
    /// Nothing gets through the network.
    case darkness(Duration)
    /// The operator changes the rules.
    case ruleChange
}

/// Which faults a scenario may see, and how many.
public struct FaultOptions: Sendable, Hashable {
    /// For each moment, one in so many is a crash; 0 for never.
    public var crashOneIn: [Int] = Array(repeating: 0, count: Moment.allCases.count)
    public var maxCrashes = 12
    /// Between faults that come by the clock, on average; nil for none.
    public var meanGap: Duration?
    public var hasCrashes = false
    public var hasDiskFailures = false
    public var hasBrokenDisks = false
    public var hasSlowDisks = false
    public var hasClockSteps = false
    /// Clock steps at most, in milliseconds.
    public var maxClockStep: Int64 = 30_000
    public var hasCleanStops = false
    public var hasPauses = false
    public var hasDarkness = false
    public var hasRuleChanges = false

    public init() {}
}

struct FaultPlan: Sendable {
    let options: FaultOptions
    private var random: RandomStream
    private var crashes = 0

    init(options: FaultOptions, random: RandomStream) {
        self.options = options
        self.random = random
    }

    /// Whether the node dies at this moment.
    mutating func strikes(at moment: Moment) -> Bool {
        let odds = options.crashOneIn[moment.rawValue]
        guard odds > 0, crashes < options.maxCrashes, random.oneIn(odds) else { return false }
        crashes += 1
        return true
    }

    /// How long a dead node stays dead; often so short that no client has noticed.
    mutating func downtime() -> Duration {
        switch random.below(4) {
        case 0: random.between(.milliseconds(1), .milliseconds(50))
        case 1, 2: random.between(.milliseconds(50), .seconds(10))
        default: random.between(.seconds(10), .seconds(90))
        }
    }

    /// The time until the next fault by the clock.
    mutating func gap() -> Duration? {
        guard let mean = options.meanGap else { return nil }
        return random.between(.milliseconds(10), mean * 2)
    }

    /// A fault of a kind that the scenario has; nil where it has none.
    mutating func fault() -> Fault? {
        var kinds: [Fault] = []
        if options.hasCrashes, crashes < options.maxCrashes { kinds.append(.crash) }
        if options.hasDiskFailures { kinds.append(.diskFails(diskFailure(), random.between(.zero, .seconds(40)))) }
        if options.hasBrokenDisks, random.oneIn(4) { kinds.append(.diskFails(.broken, .zero)) }
        if options.hasSlowDisks {
            kinds.append(.diskSlow(random.between(.milliseconds(10), .seconds(5)), for: .seconds(30)))
        }
        if options.hasClockSteps { kinds.append(.clockStep(clockStep())) }
        if options.hasCleanStops { kinds.append(.cleanStop) }
        if options.hasPauses { kinds.append(.pause(random.between(.milliseconds(50), .seconds(30)))) }
        if options.hasDarkness { kinds.append(.darkness(random.between(.seconds(1), .seconds(120)))) }
        if options.hasRuleChanges { kinds.append(.ruleChange) }
        guard !kinds.isEmpty else { return nil }
        let fault = kinds[random.below(kinds.count)]
        if fault == .crash { crashes += 1 }
        return fault
    }

    /// Whom the fault hits.
    mutating func victim(of count: Int) -> Int { count == 1 ? 0 : random.below(count) }

    private mutating func diskFailure() -> StorageFailure {
        switch random.below(3) {
        case 0: .locked
        case 1: .readOnly
        default: .full
        }
    }

    private mutating func clockStep() -> Int64 {
        let size = 1 + Int64(random.below(UInt64(options.maxClockStep)))
        return random.oneIn(2) ? size : -size
    }
}

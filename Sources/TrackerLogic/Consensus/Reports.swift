// What the other trackers last said of themselves, and which of them were told something else than this one.

import Primitives
import Wire

/// The last report of one life.
public struct HeardReport: Sendable, Equatable {
    /// Whose report it is.
    public var life: Life
    /// As it came, with its numbers bounded.
    public var report: TrackerReport
    /// When it came, by this node's monotonic clock.
    public var heardAt: Instant
    /// By how many milliseconds its wall clock was ahead of this one's; the way here makes it seem behind by as much as
    /// it took.
    public var clockDifference: Int64

    /// Takes the fields as they are.
    public init(life: Life, report: TrackerReport, heardAt: Instant, clockDifference: Int64) {
        self.life = life
        self.report = report
        self.heardAt = heardAt
        self.clockDifference = clockDifference
    }
}

/// A tracker that was told something else than this one.
public struct MismatchedTracker: Sendable, Hashable {
    /// Of the tracker that was told something else.
    public var life: Life
    /// In what it differs.
    public var settings: [SharedSetting]
    var heardAt: Instant

    /// Takes the fields as they are.
    public init(life: Life, settings: [SharedSetting], heardAt: Instant) {
        self.life = life
        self.settings = settings
        self.heardAt = heardAt
    }

    /// Whether it may not take part.
    public var isExcluded: Bool { settings.contains(where: { $0.isBinding }) }
}

/// What the other trackers last said of themselves, and which of them were told something else than this one: for
/// people, and kept apart from `Neighbours`, whose entries the hot paths look at.
struct Reports: Sendable, Equatable {
    static let maxMismatched = 32

    /// At most one for each neighbour.
    private(set) var all: [HeardReport] = []
    private(set) var mismatched: [MismatchedTracker] = []
    /// Ids that were heard since the process began, in rising order.
    private(set) var everHeard: [UInt32] = []

    mutating func take(_ report: TrackerReport, of life: Life, _ now: ClockReading) {
        let heard = HeardReport(
            life: life, report: report, heardAt: now.monotonic,
            clockDifference: Int64(clamping: report.wallTime) - max(now.wall.milliseconds, 0))
        if let place = all.firstIndex(where: { $0.life.id == life.id }) {
            all[place] = heard
        } else {
            if all.count >= Neighbours.maxCount { all.removeFirst() }
            all.append(heard)
        }
    }

    func report(of life: Life) -> HeardReport? { all.first { $0.life == life } }

    mutating func note(_ id: UInt32) {
        guard !everHeard.contains(id), everHeard.count < Neighbours.maxCount else { return }
        everHeard.insert(id, at: everHeard.firstIndex { $0 > id } ?? everHeard.count)
    }

    /// Notes in what a tracker differs.
    ///
    /// - Returns: whether that is news.
    mutating func note(_ life: Life, differsIn settings: [SharedSetting], now: Instant) -> Bool {
        if let place = mismatched.firstIndex(where: { $0.life.id == life.id }) {
            let isNews = mismatched[place].life != life || mismatched[place].settings != settings
            if settings.isEmpty {
                mismatched.remove(at: place)
                return false
            }
            mismatched[place] = MismatchedTracker(life: life, settings: settings, heardAt: now)
            return isNews
        }
        guard !settings.isEmpty else { return false }
        if mismatched.count >= Reports.maxMismatched { mismatched.removeFirst() }
        mismatched.append(MismatchedTracker(life: life, settings: settings, heardAt: now))
        return true
    }

    /// Whether this life was found unlike, so that it may not take part.
    func isExcluded(_ life: Life) -> Bool { mismatched.contains { $0.life == life && $0.isExcluded } }

    /// Those that were not heard for so long are unlike no more: they may be told better by now.
    mutating func forgetSilent(since: Instant) {
        if !mismatched.isEmpty { mismatched.removeAll { $0.heardAt < since } }
    }
}

extension Reports {
    mutating func walk(_ archive: inout Archive) {
        all.walk(&archive)
        mismatched.walk(&archive)
        everHeard.walk(&archive)
    }
}

extension HeardReport: Archived {
    static var blank: HeardReport { HeardReport(life: .blank, report: .blank, heardAt: .blank, clockDifference: 0) }

    mutating func walk(_ archive: inout Archive) {
        life.walk(&archive)
        report.walk(&archive)
        heardAt.walk(&archive)
        clockDifference.walk(&archive)
    }
}

extension MismatchedTracker: Archived {
    static var blank: MismatchedTracker { MismatchedTracker(life: .blank, settings: [], heardAt: .blank) }

    mutating func walk(_ archive: inout Archive) {
        life.walk(&archive)
        settings.walk(&archive)
        heardAt.walk(&archive)
    }
}

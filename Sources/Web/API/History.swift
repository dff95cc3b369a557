// The figures of the last ten minutes, a sample a second.

import Primitives
import Synchronization
import TrackerLogic
import Wire

/// How the cluster was at one moment, as this tracker saw it.
public struct HistorySample: Sendable, Equatable {
    /// How one tracker was.
    public struct Tracker: Sendable, Equatable {
        /// Its number.
        public var id: UInt32
        /// Whether it is heard.
        public var isUp: Bool
        /// Whether it is master, as far as this tracker knows.
        public var isMaster: Bool
        /// As it last told.
        public var announcesPerSecond: UInt32
        /// As it last told.
        public var commits: TrackerReport.Latency
        /// How long it has not been heard.
        public var silence: Duration
    }

    /// By the clock of the tracker that tells.
    public var at: WallTime
    /// With peers, or with a count of completed downloads.
    public var swarms: Int
    /// Peers of all swarms that have everything.
    public var seeders: Int
    /// All other peers of all swarms.
    public var leechers: Int
    /// All that are known, in rising order.
    public var trackers: [Tracker]

    /// Takes down how things are.
    ///
    /// - Parameters:
    ///   - status: what the node tells of itself.
    ///   - cluster: the cluster as it sees it.
    ///   - own: what this tracker tells the others.
    ///   - at: by the wall clock.
    public init(_ status: NodeStatus, _ cluster: ClusterStatus, own: TrackerReport, at: WallTime) {
        self.at = at
        swarms = status.table.torrents
        seeders = status.table.seeders
        leechers = status.table.peers - status.table.seeders
        trackers = cluster.trackers.map { view in
            let isOwn = view.life == cluster.life
            let report = isOwn ? own : view.report?.report
            return Tracker(
                id: view.life.id, isUp: isOwn || view.role != nil,
                isMaster: cluster.master == view.life.id && view.life.id != 0,
                announcesPerSecond: report?.announceRate ?? 0, commits: report?.commits ?? TrackerReport.Latency(),
                silence: view.silence)
        }
    }
}

/// The samples of the last ten minutes.
public final class History: Sendable {
    /// Samples that are kept.
    public static let capacity = 600
    /// Between two samples; keepalives may come faster.
    static let period = Duration.milliseconds(900)

    private let samples = Mutex<[HistorySample]>([])

    /// Nothing is known yet.
    public init() {}

    /// Whether the next sample is due.
    public func isDue(at now: WallTime) -> Bool {
        samples.withLock { samples in
            guard let last = samples.last else { return true }
            // A clock that was set back is no reason to wait.
            let span = now.milliseconds - last.at.milliseconds
            return span < 0 || span >= History.period.wholeMilliseconds
        }
    }

    /// Appends a sample; the oldest goes.
    public func append(_ sample: HistorySample) {
        samples.withLock { samples in
            if samples.count == History.capacity { samples.removeFirst() }
            samples.append(sample)
        }
    }

    /// All of them, oldest first.
    public var all: [HistorySample] { samples.withLock { $0 } }
    /// The newest.
    public var last: HistorySample? { samples.withLock { $0.last } }
}

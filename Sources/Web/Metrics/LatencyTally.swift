// How long something took, counted.

import Primitives
import Wire

/// How long something took, counted: all of it since the process began, as a histogram for the metrics, and the last
/// seconds of it, for the report to the other trackers.
///
/// Owned by one thread; recording does not allocate unless a copy has just been taken.
public struct LatencyTally: Sendable, Equatable {
    /// In microseconds: from what a write to a good disk takes to the ten seconds after which a request is given up.
    public static let bounds: [UInt32] = [
        50, 100, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500, 10_000, 20_000, 50_000, 100_000, 200_000,
        500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
    ]

    /// By bucket; the last is for what is beyond all bounds.
    package private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// Microseconds in all.
    package private(set) var sum: UInt64 = 0
    private var recent = [UInt64](repeating: 0, count: bounds.count + 1)
    private var older = [UInt64](repeating: 0, count: bounds.count + 1)

    /// Nothing has been recorded.
    public init() {}

    package mutating func record(_ span: Duration) {
        let micros = UInt32(clamping: max(span.nanoseconds, 0) / 1000)
        var bucket = 0
        while bucket < LatencyTally.bounds.count, micros > LatencyTally.bounds[bucket] { bucket += 1 }
        counts[bucket] &+= 1
        recent[bucket] &+= 1
        sum &+= UInt64(micros)
    }

    /// Ends a window: what is older than the last one counts no more in `latency`.
    package mutating func turn() {
        swap(&older, &recent)
        for bucket in recent.indices { recent[bucket] = 0 }
    }

    /// Of the last two windows; zeros where nothing was recorded in them.
    package var latency: TrackerReport.Latency {
        let total = zip(recent, older).reduce(0) { $0 + $1.0 + $1.1 }
        guard total > 0 else { return TrackerReport.Latency() }
        return TrackerReport.Latency(median: quantile(50, of: total), p99: quantile(99, of: total))
    }

    /// As if the spans lay evenly within their bucket.
    private func quantile(_ percent: UInt64, of total: UInt64) -> UInt32 {
        let rank = max(1, (total * percent + 99) / 100)
        var below: UInt64 = 0
        for bucket in recent.indices {
            let count = recent[bucket] + older[bucket]
            guard below + count >= rank else {
                below += count
                continue
            }
            let lower = bucket == 0 ? 0 : UInt64(LatencyTally.bounds[bucket - 1])
            guard bucket < LatencyTally.bounds.count else { return UInt32(lower) }
            let width = UInt64(LatencyTally.bounds[bucket]) - lower
            return UInt32(clamping: lower + width * (rank - below) / count)
        }
        return LatencyTally.bounds.last ?? 0
    }

    /// Appends it as a histogram in seconds.
    package func write(_ name: String, _ labels: PrometheusLabels = .none, into text: inout PrometheusText) {
        var count: UInt64 = 0
        for (bucket, step) in counts.enumerated() {
            count &+= step
            let bound =
                bucket < LatencyTally.bounds.count ? Double(LatencyTally.bounds[bucket]) / 1e6 : Double.infinity
            text.sample("\(name)_bucket", labels.with(upperBound: bound), count)
        }
        text.sample("\(name)_sum", labels, Double(sum) / 1e6)
        text.sample("\(name)_count", labels, count)
    }
}

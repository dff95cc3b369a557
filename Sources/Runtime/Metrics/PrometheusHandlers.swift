/// What counts: the handlers behind swift-metrics' counters, gauges, recorders and timers.
///
/// Each guards a few numbers with a lock of its own; nothing here allocates once made.

import Metrics
import Synchronization

/// A total that only grows: whole steps exactly, fractions as a `Double`.
final class PrometheusCounter: CounterHandler, FloatingPointCounterHandler {
    private struct Total {
        var whole: UInt64 = 0
        var fraction = 0.0
    }

    private let total = Mutex(Total())

    /// A counter cannot go down: negative steps do nothing.
    ///
    /// It saturates rather than wrap.
    func increment(by amount: Int64) {
        guard amount > 0 else { return }
        total.withLock { total in
            let (sum, overflow) = total.whole.addingReportingOverflow(UInt64(amount))
            total.whole = overflow ? .max : sum
        }
    }

    /// As above; what is not finite does nothing either.
    func increment(by amount: Double) {
        guard amount > 0, amount.isFinite else { return }
        total.withLock { $0.fraction += amount }
    }

    func reset() { total.withLock { $0 = Total() } }

    func write(_ name: String, _ labels: PrometheusLabels, into text: inout PrometheusText) {
        let total = total.withLock { $0 }
        if total.fraction == 0 {
            text.sample(name, labels, total.whole)
        } else {
            text.sample(name, labels, Double(total.whole) + total.fraction)
        }
    }
}

/// A value that goes up and down.
final class PrometheusGauge: MeterHandler, RecorderHandler {
    private let value = Mutex(0.0)

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { self.value.withLock { $0 = value } }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { value.withLock { $0 -= amount } }
    func record(_ value: Int64) { set(value) }
    func record(_ value: Double) { set(value) }

    func write(_ name: String, _ labels: PrometheusLabels, into text: inout PrometheusText) {
        text.sample(name, labels, value.withLock { $0 })
    }
}

/// How values spread over buckets; of a timer, in seconds.
final class PrometheusHistogram: RecorderHandler, TimerHandler {
    private struct Spread {
        /// One for each bound and one for what lies beyond them all.
        var counts: [UInt64]
        var sum = 0.0
    }

    /// Upper bounds, inclusive, rising.
    let bounds: [Double]
    private let spread: Mutex<Spread>

    init(bounds: [Double]) {
        self.bounds = bounds
        spread = Mutex(Spread(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func record(_ value: Int64) { record(Double(value)) }

    /// What is no number belongs to no bucket and would spoil the sum for ever, so it is left out.
    func record(_ value: Double) {
        guard !value.isNaN else { return }
        // A dozen bounds: a scan is as fast as a binary search.
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        spread.withLock { spread in
            spread.counts[bucket] &+= 1
            spread.sum += value
        }
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    func write(_ name: String, _ labels: PrometheusLabels, into text: inout PrometheusText) {
        let spread = spread.withLock { $0 }
        var count: UInt64 = 0
        for (index, step) in spread.counts.enumerated() {
            count &+= step
            let bound = index < bounds.count ? bounds[index] : .infinity
            text.sample("\(name)_bucket", labels.with(upperBound: bound), count)
        }
        text.sample("\(name)_sum", labels, spread.sum)
        text.sample("\(name)_count", labels, count)
    }
}

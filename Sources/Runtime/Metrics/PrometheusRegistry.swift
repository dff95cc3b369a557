/// A backend for swift-metrics that Prometheus can scrape.
///
/// | swift-metrics | Prometheus |
/// |---|---|
/// | `Counter`, `FloatingPointCounter` | counter; `_total` is appended to its name where it is missing |
/// | `Gauge`, `Meter` | gauge |
/// | `Recorder` | histogram |
/// | `Timer` | histogram in seconds; `_seconds` is appended to its name where it is missing |
///
/// Everything is bounded: labels may come from what strangers send, so past `maximumSeries` a new label set is not
/// kept. What is recorded there is lost, and `swarmkeeper_metrics_refused_total` says how often that was asked for.

import Metrics
import Synchronization

public final class PrometheusRegistry: MetricsFactory {
    /// Upper bounds for timers, in seconds: from half a millisecond, what a write to a good disk takes, to the ten
    /// seconds after which a request is given up.
    public static let timerBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    /// Upper bounds for recorders, whose unit nobody knows: three a decade.
    public static let recorderBounds = [1.0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]
    /// A series takes about 300 bytes, a histogram's about 500: so all of them stay under a megabyte.
    public static let defaultMaximumSeries = 2_000

    private enum Series {
        case counter(PrometheusCounter)
        case gauge(PrometheusGauge)
        case histogram(PrometheusHistogram)

        var kind: PrometheusText.Kind {
            switch self {
            case .counter: .counter
            case .gauge: .gauge
            case .histogram: .histogram
            }
        }

        var handler: AnyObject {
            switch self {
            case .counter(let counter): counter
            case .gauge(let gauge): gauge
            case .histogram(let histogram): histogram
            }
        }

        func write(_ name: String, _ labels: PrometheusLabels, into text: inout PrometheusText) {
            switch self {
            case .counter(let counter): counter.write(name, labels, into: &text)
            case .gauge(let gauge): gauge.write(name, labels, into: &text)
            case .histogram(let histogram): histogram.write(name, labels, into: &text)
            }
        }
    }

    private struct Family {
        let kind: PrometheusText.Kind
        /// Each with the number of those who hold it: it goes when the last of them destroys it.
        var series: [PrometheusLabels: (series: Series, holders: Int)] = [:]
    }

    private struct State {
        var families: [String: Family] = [:]
        var help: [String: String] = [:]
        var seriesCount = 0
        var refused: UInt64 = 0
    }

    private let state = Mutex(State())
    private let maximumSeries: Int
    /// What those get who ask for too much: they write, and nobody reads.
    private let discarding = (
        counter: PrometheusCounter(), gauge: PrometheusGauge(), histogram: PrometheusHistogram(bounds: [])
    )

    public init(maximumSeries: Int = PrometheusRegistry.defaultMaximumSeries) {
        self.maximumSeries = maximumSeries
    }

    /// Says what a metric means, before or after it is made.
    ///
    /// - Parameter name: as it appears on the page.
    public func describe(_ name: String, _ help: String) {
        state.withLock { $0.help[name] = help }
    }

    /// All metrics, sorted by name and labels.
    public func render() -> PrometheusText {
        let (families, help, refused) = state.withLock { ($0.families, $0.help, $0.refused) }
        var text = PrometheusText()
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text.family(name, family.kind, help: help[name] ?? "")
            for (labels, entry) in family.series.sorted(by: { $0.key < $1.key }) {
                entry.series.write(name, labels, into: &text)
            }
        }
        text.single(
            "swarmkeeper_metrics_refused_total", .counter,
            help: "Metrics that were not kept: too many label sets, or one name with two types.", refused)
        return text
    }

    /// - Returns: nil where there are too many, or where the name has another type already.
    private func series(
        _ name: String, _ dimensions: [(String, String)], _ kind: PrometheusText.Kind, make: () -> Series
    ) -> Series? {
        let labels = PrometheusLabels(dimensions)
        return state.withLock { state -> Series? in
            var family = state.families[name] ?? Family(kind: kind)
            if family.kind == kind, let known = family.series[labels] {
                state.families[name]?.series[labels]?.holders += 1
                return known.series
            }
            guard family.kind == kind, state.seriesCount < maximumSeries else {
                state.refused &+= 1
                return nil
            }
            let series = make()
            family.series[labels] = (series, 1)
            state.families[name] = family
            state.seriesCount += 1
            return series
        }
    }

    private func destroy(_ handler: AnyObject) {
        state.withLock { state in
            for (name, family) in state.families {
                guard let found = family.series.first(where: { $0.value.series.handler === handler }) else { continue }
                guard found.value.holders == 1 else {
                    state.families[name]?.series[found.key]?.holders -= 1
                    return
                }
                state.families[name]?.series[found.key] = nil
                if family.series.count == 1 { state.families[name] = nil }
                state.seriesCount -= 1
                return
            }
        }
    }

    private static func name(_ label: String, suffix: String = "") -> String {
        let name = PrometheusText.sanitised(name: label)
        return name.hasSuffix(suffix) ? name : name + suffix
    }

    private func counter(_ label: String, _ dimensions: [(String, String)]) -> PrometheusCounter {
        let series = series(Self.name(label, suffix: "_total"), dimensions, .counter) { .counter(PrometheusCounter()) }
        guard case .counter(let counter) = series else { return discarding.counter }
        return counter
    }

    private func gauge(_ label: String, _ dimensions: [(String, String)]) -> PrometheusGauge {
        let series = series(Self.name(label), dimensions, .gauge) { .gauge(PrometheusGauge()) }
        guard case .gauge(let gauge) = series else { return discarding.gauge }
        return gauge
    }

    private func histogram(_ name: String, _ dimensions: [(String, String)], _ bounds: [Double]) -> PrometheusHistogram
    {
        let series = series(name, dimensions, .histogram) { .histogram(PrometheusHistogram(bounds: bounds)) }
        guard case .histogram(let histogram) = series else { return discarding.histogram }
        return histogram
    }
}

extension PrometheusRegistry {
    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        counter(label, dimensions)
    }

    public func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        counter(label, dimensions)
    }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        gauge(label, dimensions)
    }

    public func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        aggregate ? histogram(Self.name(label), dimensions, Self.recorderBounds) : gauge(label, dimensions)
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        histogram(Self.name(label, suffix: "_seconds"), dimensions, Self.timerBounds)
    }

    public func destroyCounter(_ handler: any CounterHandler) { destroy(handler) }
    public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { destroy(handler) }
    public func destroyMeter(_ handler: any MeterHandler) { destroy(handler) }
    public func destroyRecorder(_ handler: any RecorderHandler) { destroy(handler) }
    public func destroyTimer(_ handler: any TimerHandler) { destroy(handler) }
}

import Metrics
import Primitives
import Runtime
import Testing
import TrackerLogic
import Wire

@Suite("Metrics: the text of Prometheus")
struct MetricsPrometheusTests {
    /// What is always there, after everything else.
    private static let refusedHead = """
        # HELP swarmkeeper_metrics_refused_total Metrics that were not kept: too many label sets, or one name with \
        two types.
        # TYPE swarmkeeper_metrics_refused_total counter
        swarmkeeper_metrics_refused_total 
        """

    private func text(_ registry: PrometheusRegistry, refused: Int = 0) throws -> String {
        let text = registry.render().text
        let tail = "\(Self.refusedHead)\(refused)\n"
        try #require(text.hasSuffix(tail), "\(text)")
        return String(text.dropLast(tail.count))
    }

    @Test("a counter counts, ends in _total, and shows its help")
    func counter() throws {
        let registry = PrometheusRegistry()
        registry.describe("requests_total", "Back\\slash and\nline.")
        let counter = Counter(label: "requests", factory: registry)
        counter.increment()
        counter.increment(by: 41)
        #expect(
            try text(registry) == """
                # HELP requests_total Back\\\\slash and\\nline.
                # TYPE requests_total counter
                requests_total 42

                """)
    }

    @Test("a counter never goes down and never wraps")
    func monotone() throws {
        let registry = PrometheusRegistry()
        let counter = Counter(label: "a_total", factory: registry)
        counter.increment(by: -5)
        #expect(try text(registry) == "# TYPE a_total counter\na_total 0\n")
        for _ in 0..<3 { counter.increment(by: Int64.max) }
        #expect(try text(registry) == "# TYPE a_total counter\na_total 18446744073709551615\n")
    }

    @Test("fractions add to a counter; what is not finite does not")
    func fractions() throws {
        let registry = PrometheusRegistry()
        let counter = FloatingPointCounter(label: "cpu_seconds", factory: registry)
        counter.increment(by: 0.25)
        counter.increment(by: 1.5)
        counter.increment(by: Double.nan)
        counter.increment(by: Double.infinity)
        #expect(try text(registry) == "# TYPE cpu_seconds_total counter\ncpu_seconds_total 1.75\n")
    }

    @Test("gauges and meters go up and down, and may be anything")
    func gauges() throws {
        let registry = PrometheusRegistry()
        let gauge = Gauge(label: "temperature", factory: registry)
        gauge.record(-3)
        let meter = Meter(label: "open", factory: registry)
        meter.increment(by: 5)
        meter.decrement(by: 2)
        let odd = Meter(label: "odd", dimensions: [("kind", "nan")], factory: registry)
        odd.set(Double.nan)
        Meter(label: "odd", dimensions: [("kind", "infinite")], factory: registry).set(-Double.infinity)
        Meter(label: "odd", dimensions: [("kind", "large")], factory: registry).set(1e300)
        #expect(
            try text(registry) == """
                # TYPE odd gauge
                odd{kind="infinite"} -Inf
                odd{kind="large"} 1e+300
                odd{kind="nan"} NaN
                # TYPE open gauge
                open 3
                # TYPE temperature gauge
                temperature -3

                """)
    }

    @Test("a timer is a histogram in seconds, cumulative, bounds included")
    func timer() throws {
        let registry = PrometheusRegistry()
        let timer = Timer(label: "reply", dimensions: [("route", "announce")], factory: registry)
        timer.recordMilliseconds(1)
        timer.recordMilliseconds(2)
        timer.recordSeconds(20)
        let counts = [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
        let buckets = zip(PrometheusRegistry.timerBounds, counts).map { bound, count in
            let text = bound == bound.rounded() ? "\(Int(bound))" : "\(bound)"
            return "reply_seconds_bucket{route=\"announce\",le=\"\(text)\"} \(count)\n"
        }
        #expect(
            try text(registry) == "# TYPE reply_seconds histogram\n" + buckets.joined() + """
                reply_seconds_bucket{route="announce",le="+Inf"} 3
                reply_seconds_sum{route="announce"} 20.003
                reply_seconds_count{route="announce"} 3

                """)
    }

    @Test("a recorder is a histogram of plain numbers, and leaves out what is none")
    func recorder() throws {
        let registry = PrometheusRegistry()
        let recorder = Recorder(label: "batch", factory: registry)
        recorder.record(3)
        recorder.record(5.0)
        recorder.record(Double.nan)
        let text = try text(registry)
        #expect(text.contains("batch_bucket{le=\"2\"} 0\nbatch_bucket{le=\"5\"} 2\n"))
        #expect(text.hasSuffix("batch_bucket{le=\"+Inf\"} 2\nbatch_sum 8\nbatch_count 2\n"))
    }

    @Test("names and label names become legal, label values are escaped, and the format's own labels give way")
    func sanitising() throws {
        let registry = PrometheusRegistry()
        let labels = [("1 ü", "line\nbreak"), ("le", "\"quoted\""), ("path", "C:\\"), ("path", "again"), ("__x", "")]
        Counter(label: "http.requests-seen", dimensions: labels, factory: registry).increment()
        Meter(label: "9lives:ü", factory: registry).set(9)
        #expect(
            try text(registry) == """
                # TYPE _9lives:_ gauge
                _9lives:_ 9
                # TYPE http_requests_seen_total counter
                http_requests_seen_total{_1__="line\\nbreak",exported___x="",exported_le="\\"quoted\\"",path="C:\\\\"} 1

                """)
    }

    @Test("labels in another order are the same series")
    func canonicalLabels() throws {
        let registry = PrometheusRegistry()
        Counter(label: "a_total", dimensions: [("x", "1"), ("y", "2")], factory: registry).increment()
        Counter(label: "a_total", dimensions: [("y", "2"), ("x", "1")], factory: registry).increment()
        #expect(try text(registry) == "# TYPE a_total counter\na_total{x=\"1\",y=\"2\"} 2\n")
    }

    @Test("past the bound no label set is kept, what is known goes on, and the page says how often")
    func bound() throws {
        let registry = PrometheusRegistry(maximumSeries: 2)
        for name in ["a", "b", "c", "d"] {
            Counter(label: "clients", dimensions: [("name", name)], factory: registry).increment()
        }
        Counter(label: "clients", dimensions: [("name", "a")], factory: registry).increment()
        #expect(
            try text(registry, refused: 2) == """
                # TYPE clients_total counter
                clients_total{name="a"} 2
                clients_total{name="b"} 1

                """)
    }

    @Test("one name has one type")
    func oneType() throws {
        let registry = PrometheusRegistry()
        Meter(label: "size_total", factory: registry).set(1)
        Counter(label: "size", factory: registry).increment()
        #expect(try text(registry, refused: 1) == "# TYPE size_total gauge\nsize_total 1\n")
    }

    @Test("what is destroyed goes when its last holder destroys it, and makes room")
    func destroy() throws {
        let registry = PrometheusRegistry(maximumSeries: 1)
        let first = Counter(label: "a_total", factory: registry)
        let second = Counter(label: "a_total", factory: registry)
        first.destroy()
        second.increment()
        #expect(try text(registry) == "# TYPE a_total counter\na_total 1\n")
        second.destroy()
        #expect(try text(registry) == "")
        Meter(label: "b", factory: registry).set(1)
        #expect(try text(registry) == "# TYPE b gauge\nb 1\n")
    }

    @Test("many threads lose nothing")
    func threads() async throws {
        let registry = PrometheusRegistry()
        await withTaskGroup { group in
            for task in 0..<8 {
                group.addTask {
                    for round in 0..<500 {
                        Counter(label: "n_total", factory: registry).increment()
                        Counter(label: "n_total", dimensions: [("task", "\(task)")], factory: registry).increment()
                        if round % 100 == 0 { _ = registry.render() }
                    }
                }
            }
        }
        let tasks = (0..<8).map { "n_total{task=\"\($0)\"} 500\n" }.joined()
        #expect(try text(registry) == "# TYPE n_total counter\nn_total 4000\n" + tasks)
    }
}

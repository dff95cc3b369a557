import Primitives
import Testing
import Web
import Wire

@Suite("Metrics: the text of Prometheus")
struct MetricsPrometheusTests {
    @Test
    func `a counter shows its help, escaped`() {
        var text = PrometheusText()
        text.single("requests_total", .counter, help: "Back\\slash and\nline.", 42)
        #expect(
            text.text == """
                # HELP requests_total Back\\\\slash and\\nline.
                # TYPE requests_total counter
                requests_total 42

                """)
    }

    @Test
    func `numbers are as Go reads them`() {
        var text = PrometheusText()
        for value in [Double.nan, -Double.infinity, 1e300, 1.75, -3] { text.sample("odd", .none, value) }
        #expect(text.text == "odd NaN\nodd -Inf\nodd 1e+300\nodd 1.75\nodd -3\n")
    }

    @Test
    func `label names become legal, label values are escaped, and the format's own labels give way`() {
        let labels = [("1 ü", "line\nbreak"), ("le", "\"quoted\""), ("path", "C:\\"), ("path", "again"), ("__x", "")]
        var text = PrometheusText()
        text.sample("seen_total", PrometheusLabels(labels), 1)
        #expect(
            text.text == """
                seen_total{_1__="line\\nbreak",exported___x="",exported_le="\\"quoted\\"",path="C:\\\\"} 1

                """)
        #expect(PrometheusLabels([("x", "1"), ("y", "2")]) == PrometheusLabels([("y", "2"), ("x", "1")]))
    }

    @Test
    func `spans are a histogram in seconds, cumulative, bounds included`() {
        var tally = LatencyTally()
        for micros in [1_000, 2_000, 20_000_000, -5] as [Int64] { tally.record(.microseconds(micros)) }
        var text = PrometheusText()
        tally.write("reply_seconds", PrometheusLabels([("route", "announce")]), into: &text)
        let counts = [1, 1, 1, 1, 1, 1, 2, 2] + Array(repeating: 3, count: 14)
        let buckets = zip(LatencyTally.bounds, counts).map { bound, count in
            let seconds = Double(bound) / 1e6
            let text = seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
            return "reply_seconds_bucket{route=\"announce\",le=\"\(text)\"} \(count)\n"
        }
        #expect(
            text.text == buckets.joined() + """
                reply_seconds_bucket{route="announce",le="+Inf"} 4
                reply_seconds_sum{route="announce"} 20.003
                reply_seconds_count{route="announce"} 4

                """)
    }

    @Test
    func `median and 99th percentile are those of the last two windows`() {
        var tally = LatencyTally()
        #expect(tally.latency == TrackerReport.Latency())
        for _ in 0..<98 { tally.record(.microseconds(900)) }
        for _ in 0..<2 { tally.record(.microseconds(40_000)) }
        #expect((750...1_000).contains(tally.latency.median))
        #expect((20_000...50_000).contains(tally.latency.p99))
        tally.turn()
        #expect((750...1_000).contains(tally.latency.median))
        tally.record(.microseconds(60))
        tally.turn()
        #expect((50...100).contains(tally.latency.median))
        tally.turn()
        #expect(tally.latency == TrackerReport.Latency())
        // What is beyond all bounds is told as the last of them, and never traps.
        tally.record(.seconds(1_000_000))
        #expect(tally.latency.median == 10_000_000)
    }
}

// Counts while a load runs.

import Histogram
import Primitives

/// Counts while a load runs.
///
/// Nothing here allocates after the start: the histogram's range is fixed.
struct LoadTally {
    var sent: UInt64 = 0
    var resent: UInt64 = 0
    var answered: UInt64 = 0
    var lost: UInt64 = 0
    var unsent: UInt64 = 0
    var late: UInt64 = 0
    var errors: UInt64 = 0
    var wrong = LoadReport.Wrong()
    var firstError: String?
    var bytesOut: UInt64 = 0
    var bytesIn: UInt64 = 0
    var listedPeers: UInt64 = 0
    var listedAnswers: UInt64 = 0
    /// Of warm-up and measuring together.
    var answeredInAll: UInt64 = 0
    private var latencies: Histogram<UInt32>
    private var highest: UInt64 = 0

    /// Nanoseconds; longer than any patience.
    ///
    /// With three digits, some 90 kB of counters, of which a run touches a few pages.
    private static let longest: UInt64 = 128_000_000_000

    init() {
        latencies = Histogram(
            lowestDiscernibleValue: 64, highestTrackableValue: Self.longest, numberOfSignificantValueDigits: .three)
    }

    mutating func count(sent flight: LoadFlight, byteCount: Int) {
        guard flight.isMeasured else { return }
        sent += 1
        bytesOut += UInt64(byteCount)
        if flight.attempts > 0 { resent += 1 }
    }

    mutating func count(answered flight: LoadFlight, at now: Instant, byteCount: Int) {
        answeredInAll += 1
        guard flight.isMeasured else { return }
        answered += 1
        bytesIn += UInt64(byteCount)
        let latency = UInt64(max(0, (now - flight.start).nanoseconds))
        latencies.record(min(latency, Self.longest))
        highest = max(highest, latency)
    }

    mutating func count(peers: Int, flaws: LoadVerdict.Flaws, of flight: LoadFlight) {
        if flaws.isTooLong { wrong.tooManyPeers += 1 }
        if flaws.namesAsker { wrong.ownEndpoint += 1 }
        guard flight.isMeasured else { return }
        listedPeers += UInt64(peers)
        listedAnswers += 1
    }

    /// - Parameter percentile: 0…100.
    /// - Returns: microseconds.
    func latency(_ percentile: Double) -> Double {
        answered == 0 ? 0 : Double(min(latencies.valueAtPercentile(percentile), highest)) / 1000
    }

    /// Microseconds.
    var highestLatency: Double { Double(highest) / 1000 }
}

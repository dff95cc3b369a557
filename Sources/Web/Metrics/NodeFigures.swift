// What the node's loop has measured, as metrics.

import Datagrams
import Primitives
import Wire

/// What has been measured, for the metrics and the status.
public struct NodeFigures: Sendable, Equatable {
    /// From an announce over UDP to its answer.
    public var announces = LatencyTally()
    /// From a scrape over UDP to its answer.
    public var scrapes = LatencyTally()
    /// From the order to write an entry until it is known here to be decided.
    public var commits = LatencyTally()
    /// From the order to write until it is durable.
    public var writes = LatencyTally()
    /// From here over the bus to another tracker and back.
    public var roundTrips = LatencyTally()
    /// What became of the datagrams of all UDP sockets.
    public var datagrams = DatagramCounters()
    /// Datagrams that came while a socket's buffer was full, since the process began.
    public var lostByKernel: UInt64 = 0
    /// Of these, the ones of the last five minutes (`RecentGrowth`).
    public var lostLately: UInt64 = 0
    /// Bytes of the smallest receive buffer; 0 without UDP.
    public var receiveBuffer = 0
    /// Bytes of receive buffer that were asked for.
    public var wantedReceiveBuffer = 0

    /// Nothing has been measured.
    public init() {}
}

extension NodeFigures {
    /// Appends all figures as metrics.
    public func write(into text: inout PrometheusText) {
        let answers = "swarmkeeper_answer_seconds"
        text.family(answers, .histogram, help: "From a request over UDP to its answer, nearly all of them.")
        announces.write(answers, PrometheusLabels([("route", "announce")]), into: &text)
        scrapes.write(answers, PrometheusLabels([("route", "scrape")]), into: &text)
        text.family(
            "swarmkeeper_commit_seconds", .histogram,
            help: "From the order to write an entry until it is known here to be decided.")
        commits.write("swarmkeeper_commit_seconds", into: &text)
        text.family(
            "swarmkeeper_write_seconds", .histogram, help: "From the order to write until it is durable.")
        writes.write("swarmkeeper_write_seconds", into: &text)
        text.family(
            "swarmkeeper_bus_round_trip_seconds", .histogram,
            help: "From here over the bus to another tracker and back.")
        roundTrips.write("swarmkeeper_bus_round_trip_seconds", into: &text)
        let totals: [(name: String, help: String, value: UInt64)] = [
            ("received", "Datagrams of clients that were taken.", datagrams.received),
            ("truncated", "Datagrams that were longer than any request.", datagrams.truncated),
            ("sent", "Datagrams to clients that the kernel took.", datagrams.sent),
            ("unsent", "Datagrams to clients that could not be sent.", datagrams.unsent),
            ("lost", "Datagrams that the kernel dropped, since the receive buffer was full.", lostByKernel),
        ]
        for total in totals {
            text.single("swarmkeeper_datagrams_\(total.name)_total", .counter, help: total.help, total.value)
        }
        text.single(
            "swarmkeeper_receive_buffer_bytes", .gauge, help: "The smallest receive buffer of the UDP sockets.",
            receiveBuffer)
    }
}

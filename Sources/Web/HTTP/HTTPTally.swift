// What the HTTP listeners count, for the metrics.

import Primitives
import Synchronization

/// What the HTTP listeners count, for the metrics: requests by route and outcome, how long the logic took over them,
/// and connections by listener.
///
/// The label sets are closed, so this is as long as it ever gets.
public final class HTTPTally: Sendable {
    enum Route: Int, CaseIterable {
        case announce
        case scrape
        case other
    }

    enum Outcome: Int, CaseIterable {
        case answered
        /// By the tracker's rules: the client was told why.
        case refused
        /// What was asked makes no sense.
        case malformed
        /// No answer was to be had in time.
        case unanswered
    }

    private struct Connections {
        var open = 0
        /// They were one too many for their address.
        var refused: UInt64 = 0
    }

    private struct State {
        /// By route, then by outcome.
        var requests = [[UInt64]](
            repeating: [UInt64](repeating: 0, count: Outcome.allCases.count), count: Route.allCases.count)
        var announces = LatencyTally()
        var scrapes = LatencyTally()
        /// By the listener's name.
        var connections: [String: Connections] = [:]
    }

    private let state = Mutex(State())

    /// Nothing has been counted.
    public init() {}

    func count(_ route: Route, _ outcome: Outcome) {
        state.withLock { $0.requests[route.rawValue][outcome.rawValue] &+= 1 }
    }

    func record(_ route: Route, _ duration: Swift.Duration) {
        let (seconds, attoseconds) = duration.components
        let span = Primitives.Duration(nanoseconds: seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
        state.withLock { state in
            switch route {
            case .announce: state.announces.record(span)
            case .scrape: state.scrapes.record(span)
            case .other: break
            }
        }
    }

    /// A listener that nobody has come to yet is told of, too.
    func opened(_ listener: String) {
        state.withLock { $0.connections[listener] = $0.connections[listener] ?? Connections() }
    }

    func connected(_ listener: String) { state.withLock { $0.connections[listener, default: Connections()].open += 1 } }

    func disconnected(_ listener: String) {
        state.withLock { $0.connections[listener, default: Connections()].open -= 1 }
    }

    func refused(_ listener: String) {
        state.withLock { $0.connections[listener, default: Connections()].refused &+= 1 }
    }

    /// Appends all counts as metrics.
    public func write(into text: inout PrometheusText) {
        let now = state.withLock { $0 }
        let listeners = now.connections.sorted { $0.key < $1.key }
        text.family("swarmkeeper_http_connections", .gauge, help: "Open connections.")
        for (name, connections) in listeners {
            text.sample("swarmkeeper_http_connections", PrometheusLabels([("listener", name)]), connections.open)
        }
        let refused = "swarmkeeper_http_connections_refused_total"
        text.family(refused, .counter, help: "Connections that were one too many for their address.")
        for (name, connections) in listeners {
            text.sample(refused, PrometheusLabels([("listener", name)]), connections.refused)
        }
        let requests = "swarmkeeper_http_requests_total"
        text.family(requests, .counter, help: "Requests to the HTTP tracker.")
        for route in Route.allCases {
            for outcome in Outcome.allCases {
                let labels = PrometheusLabels([("route", "\(route)"), ("outcome", "\(outcome)")])
                text.sample(requests, labels, now.requests[route.rawValue][outcome.rawValue])
            }
        }
        let seconds = "swarmkeeper_http_request_seconds"
        text.family(seconds, .histogram, help: "How long the tracker's logic took over a request.")
        now.announces.write(seconds, PrometheusLabels([("route", "announce")]), into: &text)
        now.scrapes.write(seconds, PrometheusLabels([("route", "scrape")]), into: &text)
    }
}

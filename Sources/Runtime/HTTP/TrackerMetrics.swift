/// What the HTTP tracker counts.

import Metrics

struct TrackerMetrics: Sendable {
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

    /// What the metrics of HTTP listeners mean, by their names on the page.
    static let help = [
        "swarmkeeper_http_connections": "Open connections.",
        "swarmkeeper_http_connections_refused_total": "Connections that were one too many for their address.",
        "swarmkeeper_http_requests_total": "Requests to the HTTP tracker.",
        "swarmkeeper_http_request_seconds": "How long the tracker's logic took over a request.",
    ]

    /// By route, then by outcome: made once, for a look-up by label takes a lock and a sort.
    private let requests: [[Counter]]
    /// Of announces and scrapes.
    private let durations: [Timer]

    init(factory: any MetricsFactory) {
        requests = Route.allCases.map { route in
            Outcome.allCases.map { outcome in
                Counter(
                    label: "swarmkeeper_http_requests",
                    dimensions: [("route", "\(route)"), ("outcome", "\(outcome)")], factory: factory)
            }
        }
        durations = [.announce, .scrape].map { (route: Route) in
            Timer(
                label: "swarmkeeper_http_request_seconds", dimensions: [("route", "\(route)")], factory: factory)
        }
    }

    func count(_ route: Route, _ outcome: Outcome) {
        requests[route.rawValue][outcome.rawValue].increment()
    }

    func record(_ route: Route, _ duration: Swift.Duration) {
        let (seconds, attoseconds) = duration.components
        durations[route.rawValue].recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}

/// How many connections each address holds.

import Metrics
import Primitives
import Synchronization
import TrackerLogic

final class ConnectionTable: Sendable {
    private let limit: Int
    private let trusted: [AddressPrefix]
    private let counts = Mutex<[Block: Int]>([:])
    private let gauge: Meter
    private let refusals: Counter

    /// One IPv4 address, or one IPv6 /64: the least that a customer gets.
    private struct Block: Hashable {
        let high: UInt64
        let low: UInt64

        init(_ address: SocketAddress) {
            high = address.high
            low = address.isIPv4 ? address.low : 0
        }
    }

    init(limit: Int, trusted: [AddressPrefix], listener: String, metrics: any MetricsFactory) {
        self.limit = limit
        self.trusted = trusted
        let dimensions = [("listener", listener)]
        gauge = Meter(label: "swarmkeeper_http_connections", dimensions: dimensions, factory: metrics)
        refusals = Counter(
            label: "swarmkeeper_http_connections_refused", dimensions: dimensions, factory: metrics)
    }

    /// Counts a connection; `release` is due for it, whether it is admitted or not.
    ///
    /// - Returns: whether its address may have one more. Trusted ones may: they speak for many.
    func admit(_ address: SocketAddress) -> Bool {
        gauge.increment()
        let count = counts.withLock { counts in
            counts[Block(address), default: 0] += 1
            return counts[Block(address), default: 0]
        }
        let isAdmitted = count <= limit || trusted.contains { $0.contains(address) }
        if !isAdmitted { refusals.increment() }
        return isAdmitted
    }

    func release(_ address: SocketAddress) {
        gauge.decrement()
        counts.withLock { counts in
            guard let count = counts[Block(address)] else { return }
            counts[Block(address)] = count > 1 ? count - 1 : nil
        }
    }
}

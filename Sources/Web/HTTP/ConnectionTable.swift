// How many connections each address holds.

import Primitives
import Synchronization
import TrackerLogic

/// How many connections each address holds.
final class ConnectionTable: Sendable {
    private let limit: Int
    private let trusted: [AddressPrefix]
    private let counts = Mutex<[Block: Int]>([:])
    private let listener: String
    private let tally: HTTPTally

    /// One IPv4 address, or one IPv6 /64: the least that a customer gets.
    private struct Block: Hashable {
        let high: UInt64
        let low: UInt64

        init(_ address: SocketAddress) {
            high = address.high
            low = address.isIPv4 ? address.low : 0
        }
    }

    init(limit: Int, trusted: [AddressPrefix], listener: String, tally: HTTPTally) {
        self.limit = limit
        self.trusted = trusted
        self.listener = listener
        self.tally = tally
        tally.opened(listener)
    }

    /// Counts a connection; `release` is due for it, whether it is admitted or not.
    ///
    /// - Returns: whether its address may have one more. Trusted ones may: they speak for many.
    func admit(_ address: SocketAddress) -> Bool {
        tally.connected(listener)
        let count = counts.withLock { counts in
            counts[Block(address), default: 0] += 1
            return counts[Block(address), default: 0]
        }
        let isAdmitted = count <= limit || trusted.contains { $0.contains(address) }
        if !isAdmitted { tally.refused(listener) }
        return isAdmitted
    }

    func release(_ address: SocketAddress) {
        tally.disconnected(listener)
        counts.withLock { counts in
            guard let count = counts[Block(address)] else { return }
            counts[Block(address)] = count > 1 ? count - 1 : nil
        }
    }
}

// Errors that go to one address, counted.

import Primitives
import TrackerLogic
import Wire

/// Errors that go to one address within a second of their tracker's clock: never more than the limit, and none is
/// withheld before there are so many (docs/bounds.md).
struct ErrorWatch: Sendable {
    /// What a tracker has sent in a second.
    private struct Second: Sendable {
        var incarnation: UInt64 = 0
        var number: Int64 = -1
        var counts: [(address: SocketAddress, count: Int)] = []

        /// Counts an error to an address.
        ///
        /// - Returns: how many have gone there in this second.
        mutating func count(_ address: SocketAddress) -> Int {
            let place = counts.firstIndex { $0.address.high == address.high && $0.address.low == address.low }
            guard let place else {
                counts.append((address, 1))
                return 1
            }
            counts[place].count += 1
            return counts[place].count
        }
    }

    private var seconds: [Second]

    init(nodeCount: Int) { seconds = Array(repeating: Second(), count: nodeCount) }

    mutating func check(_ step: borrowing Step, _ effects: Effects, _ scene: inout Scene) {
        guard let clock = scene.nodes[step.node].monotonic else { return }
        let (node, limit) = (step.node, scene.nodes[step.node].configuration.limits.errorsPerSecond)
        let (incarnation, number) = (step.view.life.incarnation, clock.nanoseconds / 1_000_000_000)
        if seconds[node].number != number || seconds[node].incarnation != incarnation {
            seconds[node] = Second(incarnation: incarnation, number: number)
        }
        for reply in effects.replies.datagrams where effects.replies.action(of: reply) == 3 {
            guard seconds[node].count(reply.remote) > limit else { continue }
            scene.violate(
                .errorsAreLimited, at: step.time,
                "\(scene.name(node)) sends more than \(limit) errors to \(reply.remote) in one second")
        }
        guard step.withheld > 0 else { return }
        // Two addresses may share an allowance, by chance.
        let most = seconds[node].counts.map { $0.count }.sorted(by: >).prefix(2).reduce(0, +)
        guard most < limit else { return }
        scene.violate(
            .errorsAreLimited, at: step.time,
            "\(scene.name(node)) withholds an error, and has sent \(most) of \(limit) in this second")
    }
}

extension DatagramBatch {
    /// What a reply is by BEP 15, in its last byte: 0 to a connect, 1 to an announce, 2 to a scrape, 3 an error.
    func action(of reply: Datagram) -> UInt8 {
        reply.byteCount >= 8 ? bytes[Int(reply.offset) + 3] : .max
    }

    /// The request that a reply is to; 0 for what is no reply.
    func transactionID(of reply: Datagram) -> TransactionID {
        TransactionID(reply.byteCount >= 8 ? bytes.span.bytes.u32(at: Int(reply.offset) + 4) : 0)
    }
}

// The orders that other trackers have relayed.

import Primitives
import Wire

/// The orders that other trackers have relayed, so that none is carried out twice, however often it comes.
///
///     unknown ── comes ──► under way ── carried out ──► settled ── many later ones of that life ──► gone
///        │                     │ comes again: nothing      │ comes again: as before       │ comes again: nothing
///        └── too many are under way ──► settled: busy
///
/// A tracker numbers its orders from 1 in each of its lives, and sends each of them again until it hears what came of
/// it. What is forgotten of a life is forgotten from below, and how far is remembered: an order that is not known here
/// and not beyond that is never carried out. So nothing that a member sends, in whatever number, has an order carried
/// out a second time.
///
/// Invariants: at most `Limits.lives` lives, `Limits.orders` orders of each, `Limits.underWay` under way in all.
package struct OrderMemory: Sendable {
    package enum Limits {
        /// As many trackers as a cluster may have.
        package static let lives = 64
        /// Twice as many as one tracker waits for at a time.
        package static let orders = 32
        /// The master carries out one at a time; others are told that it is busy.
        package static let underWay = 16
        /// So long after its last order a life may be forgotten: it gives up after seventeen seconds, and the bus keeps
        /// nothing for longer than fifteen.
        package static let silence = Duration.seconds(60)
    }

    /// What an order that comes is to lead to.
    package enum Verdict: Sendable, Hashable {
        /// It is to be carried out.
        case isNew
        /// It is being carried out.
        case isUnderWay
        /// This came of it.
        case isSettled(OrderOutcome)
        /// Neither is it done nor is anything said: it is one of long ago, or there is no room to remember it.
        case isPassedOver
    }

    private struct Order: Sendable {
        var number: UInt64
        /// Nil while it is carried out.
        var outcome: OrderOutcome?
    }

    private struct Sender: Sendable {
        var incarnation: UInt64
        var heardAt: Instant
        /// Orders up to this one that are not in the list are gone.
        var goneThrough: UInt64 = 0
        var orders: [Order] = []

        var underWayCount: Int { orders.count { $0.outcome == nil } }

        /// Forgets the first of the settled orders, where the list is full.
        ///
        /// - Returns: false where the order that is to come in is older than that one.
        mutating func makeRoom(for number: UInt64) -> Bool {
            guard orders.count >= Limits.orders else { return true }
            let settled = orders.indices.filter { orders[$0].outcome != nil }
            guard let first = settled.min(by: { orders[$0].number < orders[$1].number }) else {
                preconditionFailure("more orders are remembered of a life than may be under way")
            }
            guard orders[first].number < number else { return false }
            goneThrough = max(goneThrough, orders[first].number)
            orders.remove(at: first)
            return true
        }
    }

    private var senders: [Sender] = []

    package init() {}

    /// An order has come.
    ///
    /// - Parameters:
    ///   - number: as its sender counts.
    ///   - incarnation: of the sender's life.
    ///   - now: the monotonic clock.
    /// - Returns: whether it is to be carried out, or what is known of it already.
    package mutating func came(_ number: UInt64, of incarnation: UInt64, at now: Instant) -> Verdict {
        guard let place = place(of: incarnation, at: now) else { return .isPassedOver }
        senders[place].heardAt = now
        if let known = senders[place].orders.first(where: { $0.number == number }) {
            return known.outcome.map(Verdict.isSettled) ?? .isUnderWay
        }
        guard number > senders[place].goneThrough, senders[place].makeRoom(for: number) else { return .isPassedOver }
        let isBusy = senders.reduce(0) { $0 + $1.underWayCount } >= Limits.underWay
        senders[place].orders.append(Order(number: number, outcome: isBusy ? .busy : nil))
        return isBusy ? .isSettled(.busy) : .isNew
    }

    /// An order that was new has been carried out.
    package mutating func settled(_ number: UInt64, of incarnation: UInt64, _ outcome: OrderOutcome) {
        guard let place = senders.firstIndex(where: { $0.incarnation == incarnation }),
            let order = senders[place].orders.firstIndex(where: { $0.number == number })
        else { preconditionFailure("an order under way is not forgotten") }
        senders[place].orders[order].outcome = outcome
    }

    /// Where a sender is, or is from now on; nil where there is no room.
    private mutating func place(of incarnation: UInt64, at now: Instant) -> Int? {
        if let known = senders.firstIndex(where: { $0.incarnation == incarnation }) { return known }
        if senders.count >= Limits.lives {
            let idle = senders.indices.filter { senders[$0].underWayCount == 0 }
            guard let oldest = idle.min(by: { senders[$0].heardAt < senders[$1].heardAt }),
                now - senders[oldest].heardAt >= Limits.silence
            else { return nil }
            senders.remove(at: oldest)
        }
        senders.append(Sender(incarnation: incarnation, heardAt: now))
        return senders.count - 1
    }
}

// Where an operator's order goes.

import Datagrams
import Primitives
import Synchronization
import TrackerLogic
import Wire

/// Where an operator's order goes: carried out here by the master, relayed to the master by everybody else.
final class OrderHandler: Sendable {
    /// Orders of others that are looked at at a time; who relays one does so again when it hears nothing.
    private static let maxComing = 64

    /// How many there are.
    private let coming = Mutex(0)
    private let inbox: NodeInbox
    private let orders: PendingOrders
    /// Nil for a tracker that is alone.
    private let relay: OrderRelay?

    init(inbox: NodeInbox, orders: PendingOrders, relay: OrderRelay?) {
        self.inbox = inbox
        self.orders = orders
        self.relay = relay
    }

    /// Of this tracker's own API.
    func carryOut(_ order: ClusterOrder) async -> OrderOutcome {
        guard let view = await inbox.ask({ $0.clusterStatus(now: Clock.monotonic()) }) else { return .stopped }
        if let relay, let id = view.master, id != view.life.id,
            let master = view.trackers.first(where: { $0.life.id == id })?.life
        {
            return await relay.ask(master, for: order, as: view.life)
        }
        return await carryOutHere(order, view)
    }

    /// Takes a message about orders, from the bus; others are not for it.
    func received(_ message: ClusterMessage) {
        guard let relay else { return }
        switch message.body {
        case .ordered(let number, let outcome): relay.settle(number, outcome)
        case .order(let number, let order):
            let hasRoom = coming.withLock { count in
                guard count < OrderHandler.maxComing else { return false }
                count += 1
                return true
            }
            guard hasRoom else { return }
            Task.detached { [self] in
                defer { coming.withLock { $0 -= 1 } }
                guard let own = await inbox.ask({ $0.clusterStatus(now: Clock.monotonic()).life }) else { return }
                relay.received(number, order, of: message.sender, own: own) { [self] order in
                    guard let view = await inbox.ask({ $0.clusterStatus(now: Clock.monotonic()) }) else {
                        return .stopped
                    }
                    return await carryOutHere(order, view)
                }
            }
        case .keepalive, .suspect, .election, .answer, .coordinator, .prepare, .ok, .error, .commit, .confirm,
            .confirmed, .fetch, .entries, .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward,
            .answered, .handover, .leave, .stop, .report:
            break
        }
    }

    private func carryOutHere(_ order: ClusterOrder, _ view: ClusterStatus) async -> OrderOutcome {
        guard view.mode != nil else { return await orders.carryOut(order) }
        guard view.master == view.life.id else {
            return .refused("the cluster has no master now, or another one than a moment ago; try again in a moment")
        }
        if order == .handOver(to: view.life.id) { return .isMaster }
        return await orders.carryOut(order)
    }

    func close() {
        orders.close()
        relay?.close()
    }
}

/// Where an operator's order goes: carried out here by the master, handed on by everybody else.

import Datagrams
import Primitives
import TrackerLogic
import Wire

final class OrderOffice: Sendable {
    private let mailbox: NodeMailbox
    private let desk: OrderDesk
    /// Nil for a tracker that is alone.
    private let relay: OrderRelay?

    init(mailbox: NodeMailbox, desk: OrderDesk, relay: OrderRelay?) {
        self.mailbox = mailbox
        self.desk = desk
        self.relay = relay
    }

    /// Of this tracker's own API.
    func carryOut(_ order: ClusterOrder) async -> OrderOutcome {
        guard let view = await mailbox.ask({ $0.clusterStatus(now: Clock.monotonic()) }) else { return .stopped }
        if let relay, let id = view.master, id != view.life.id,
            let master = view.trackers.first(where: { $0.life.id == id })?.life
        {
            return await relay.ask(master, for: order, as: view.life)
        }
        return await carryOutHere(order, view)
    }

    /// Takes a message about orders, from the bus.
    func received(_ message: ClusterMessage) {
        guard let relay else { return }
        Task.detached { [self] in
            guard let own = await mailbox.ask({ $0.clusterStatus(now: Clock.monotonic()).life }) else { return }
            relay.received(message, own: own) { [self] order in
                guard let view = await mailbox.ask({ $0.clusterStatus(now: Clock.monotonic()) }) else {
                    return .stopped
                }
                return await carryOutHere(order, view)
            }
        }
    }

    private func carryOutHere(_ order: ClusterOrder, _ view: ClusterStatus) async -> OrderOutcome {
        guard view.mode != nil else { return await desk.carryOut(order) }
        guard view.master == view.life.id else {
            return .refused("the cluster has no master now, or another one than a moment ago; try again in a moment")
        }
        if order == .handOver(to: view.life.id) { return .isMaster }
        return await desk.carryOut(order)
    }

    func close() {
        desk.close()
        relay?.close()
    }
}

// Operators' orders that came to a tracker which is not the master.

import Bus
import Datagrams
import Logging
import Primitives
import Synchronization
import TrackerLogic
import Wire

/// Operators' orders that came to a tracker which is not the master: relayed to the master over the bus, and what came
/// of them sent back.
///
///     asked here ─► ORDER to the master, again each second ─► carried out there, once ─► ORDERED ─► told here
///
/// ORDERED may be lost, too: then the next ORDER is answered by what is remembered (`OrderMemory`).
///
/// Over the bus, for there each tracker reaches the master already: the consoles may listen on loopback, or want tokens
/// that are not the asker's to send to another host. Whoever is on the bus has the cluster's key, and could make itself
/// master: no new power is given. The logic has no part in it; an order becomes a command where it is carried out.
package final class OrderRelay: Sendable {
    package struct Timeouts: Sendable {
        /// Between two times that an order is sent.
        package var pause = Swift.Duration.seconds(1)
        /// A little more than the master takes for an order that comes to nothing.
        package var most = Swift.Duration.seconds(17)

        package init() {}
    }

    /// Orders of this tracker's API that wait for the master.
    private static let maxWaiting = 16

    private struct State {
        var lastNumber: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<OrderOutcome, Never>] = [:]
        /// Of orders of others.
        var memory = OrderMemory()
        var isClosed = false
    }

    private let state = Mutex(State())
    private let bus: any Bus
    private let logger: Logger
    private let patience: Timeouts

    package init(bus: any Bus, logger: Logger, patience: Timeouts = Timeouts()) {
        self.bus = bus
        self.logger = logger
        self.patience = patience
    }

    // MARK: - Asking

    /// Hands an order to the master, and waits for what comes of it.
    package func ask(_ master: Life, for order: ClusterOrder, as own: Life) async -> OrderOutcome {
        await withCheckedContinuation { waiter in
            let number = state.withLock { state -> UInt64? in
                guard !state.isClosed, state.waiting.count < OrderRelay.maxWaiting else { return nil }
                state.lastNumber += 1
                state.waiting[state.lastNumber] = waiter
                return state.lastNumber
            }
            guard let number else { return waiter.resume(returning: .busy) }
            Task.detached { [self] in
                let end = ContinuousClock.now.advanced(by: patience.most)
                while ContinuousClock.now < end, state.withLock({ $0.waiting[number] != nil }) {
                    send(.order(number: number, order), from: own, to: master)
                    try? await Task.sleep(for: patience.pause)
                }
                settle(number, .late)
            }
        }
    }

    /// The master has said what came of an order; or nobody has, and it is late.
    ///
    /// Of an order for which nobody waits any more it says nothing.
    package func settle(_ number: UInt64, _ outcome: OrderOutcome) {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: outcome)
    }

    // MARK: - Being asked

    /// Takes an order that another tracker hands on: has it carried out, unless it was, and says what came of it.
    ///
    /// - Parameters:
    ///   - number: as its sender counts.
    ///   - order: what is to be done.
    ///   - sender: the tracker that hands it on.
    ///   - own: this tracker.
    ///   - carryOut: has this tracker do it, and waits.
    package func received(
        _ number: UInt64, _ order: ClusterOrder, of sender: Life, own: Life,
        carryOut: @escaping @Sendable (ClusterOrder) async -> OrderOutcome
    ) {
        let now = Clock.monotonic()
        switch state.withLock({ $0.memory.came(number, of: sender.incarnation, at: now) }) {
        case .isPassedOver, .isUnderWay: break
        case .isSettled(let outcome): send(.ordered(number: number, outcome), from: own, to: sender)
        case .isNew:
            logger.notice("tracker \(sender.id) hands on an operator's order: \(order.words)")
            Task.detached { [self] in
                let outcome = await carryOut(order)
                state.withLock { $0.memory.settled(number, of: sender.incarnation, outcome) }
                send(.ordered(number: number, outcome), from: own, to: sender)
            }
        }
    }

    private func send(_ body: ClusterMessage.Body, from own: Life, to life: Life) {
        var bytes: [UInt8] = []
        ClusterMessage(sender: own, destination: .one(life), epoch: .zero, body: body).encode(into: &bytes)
        bus.send([BusMessage(destination: life, bytes: bytes)])
    }

    /// The node has stopped: whoever still waits hears so.
    package func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [:] }
            return state.waiting.values.map { $0 }
        }
        for waiter in waiting { waiter.resume(returning: .stopped) }
    }
}

extension ClusterOrder {
    /// For the log.
    var words: String {
        switch self {
        case .addMember(let id): "give tracker \(id) a vote"
        case .removeMember(let id): "take the vote of tracker \(id)"
        case .replaceMember(let id, let other): "give the vote of tracker \(id) to tracker \(other)"
        case .handOver(let id): "make tracker \(id) master"
        case .elect: "elect a master anew"
        case .stop: "stop the whole cluster"
        case .change(let change): change.words
        }
    }
}

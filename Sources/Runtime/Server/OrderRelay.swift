/// Operators' orders that came to a tracker which is not the master: handed to the master over the bus, and what came
/// of them handed back.
///
///     asked here ─► ORDER to the master, again each second ─► carried out there, once ─► ORDERED ─► told here
///
/// Over the bus, for there each tracker reaches the master already: the consoles may listen on loopback, or want tokens
/// that are not the asker's to send to another host. Whoever is on the bus has the cluster's key, and could make itself
/// master: no new power is given. The logic has no part in it; an order becomes a command where it is carried out.

import Logging
import Primitives
import Synchronization
import TrackerLogic
import Wire

final class OrderRelay: Sendable {
    /// Between two times that an order is sent.
    static let pause = Swift.Duration.seconds(1)
    /// A little more than the master takes for an order that comes to nothing.
    static let patience = Swift.Duration.seconds(17)
    /// Orders that are remembered, so that one that is sent twice is carried out once.
    private static let maxRemembered = 64
    /// Orders of this tracker's API that wait for the master.
    private static let maxWaiting = 16

    private struct Key: Hashable {
        var incarnation: UInt64
        var number: UInt64
    }

    private struct State {
        var lastNumber: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<OrderOutcome, Never>] = [:]
        /// What came of orders of others, the latest last; nil while they are carried out.
        var remembered: [(key: Key, outcome: OrderOutcome?)] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let bus: any Bus
    private let logger: Logger

    init(bus: any Bus, logger: Logger) {
        self.bus = bus
        self.logger = logger
    }

    // MARK: - Asking

    /// Hands an order to the master, and waits for what comes of it.
    func ask(_ master: Life, for order: ClusterOrder, as own: Life) async -> OrderOutcome {
        await withCheckedContinuation { waiter in
            let number = state.withLock { state -> UInt64? in
                guard !state.isClosed, state.waiting.count < OrderRelay.maxWaiting else { return nil }
                state.lastNumber += 1
                state.waiting[state.lastNumber] = waiter
                return state.lastNumber
            }
            guard let number else { return waiter.resume(returning: .busy) }
            Task.detached { [self] in
                let end = ContinuousClock.now.advanced(by: OrderRelay.patience)
                while ContinuousClock.now < end, state.withLock({ $0.waiting[number] != nil }) {
                    send(.order(number: number, order), from: own, to: master)
                    try? await Task.sleep(for: OrderRelay.pause)
                }
                settle(number, .late)
            }
        }
    }

    private func settle(_ number: UInt64, _ outcome: OrderOutcome) {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: outcome)
    }

    // MARK: - Being asked

    /// Takes what a message says of orders.
    ///
    /// - Parameter carryOut: has this tracker do it, and waits.
    func received(
        _ message: ClusterMessage, own: Life, carryOut: @escaping @Sendable (ClusterOrder) async -> OrderOutcome
    ) {
        switch message.body {
        case .ordered(let number, let outcome): settle(number, outcome)
        case .order(let number, let order):
            let key = Key(incarnation: message.sender.incarnation, number: number)
            let known = state.withLock { state -> OrderOutcome?? in
                if let old = state.remembered.first(where: { $0.key == key }) { return .some(old.outcome) }
                if state.remembered.count >= OrderRelay.maxRemembered { state.remembered.removeFirst() }
                state.remembered.append((key, nil))
                return nil
            }
            switch known {
            case .some(.some(let outcome)): send(.ordered(number: number, outcome), from: own, to: message.sender)
            case .some(.none): break
            case .none:
                logger.notice("tracker \(message.sender.id) hands on an operator's order: \(order.words)")
                Task.detached { [self] in
                    let outcome = await carryOut(order)
                    state.withLock { state in
                        guard let place = state.remembered.firstIndex(where: { $0.key == key }) else { return }
                        state.remembered[place].outcome = outcome
                    }
                    send(.ordered(number: number, outcome), from: own, to: message.sender)
                }
            }
        case .keepalive, .suspect, .election, .answer, .coordinator, .prepare, .ok, .error, .commit, .confirm,
            .confirmed, .fetch, .entries, .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward,
            .answered, .handover, .leave, .stop, .report:
            break
        }
    }

    private func send(_ body: ClusterMessage.Body, from own: Life, to life: Life) {
        var bytes: [UInt8] = []
        ClusterMessage(sender: own, destination: .one(life), epoch: .zero, body: body).encode(into: &bytes)
        bus.send([BusMessage(destination: life, bytes: bytes)])
    }

    /// The node has stopped: whoever still waits hears so.
    func close() {
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
        case .stop: "stop the whole cluster"
        }
    }
}

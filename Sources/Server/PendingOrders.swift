// Operators' commands that come over the API, on their way to the node and back.

import Synchronization
import TrackerLogic
import Wire

extension ClusterOrder {
    /// What the node is told.
    ///
    /// - Parameter number: tells changes of the console apart, of which several may be on their way.
    /// - Returns: the command that the order becomes where it is carried out.
    func command(_ number: UInt64) -> OperatorCommand {
        switch self {
        case .addMember(let id): .addMember(id)
        case .removeMember(let id): .removeMember(id)
        case .replaceMember(let id, let other): .replaceMember(id, by: other)
        case .handOver(let id): .handOver(to: id)
        case .elect: .elect
        case .stop: .stopCluster
        case .change(let change): .change(number: number, change)
        }
    }
}

extension ClusterOrder {
    fileprivate var isChange: Bool { if case .change = self { true } else { false } }

    /// Whether the members are as the order wants them.
    fileprivate func isDone(_ members: [UInt32]) -> Bool {
        switch self {
        case .addMember(let id): members.contains(id)
        case .removeMember(let id): !members.contains(id)
        case .replaceMember(let id, let other): !members.contains(id) && members.contains(other)
        case .handOver, .elect, .stop, .change: false
        }
    }
}

/// Operators' commands that come over the API, on their way to the node and back: one after another, each with its
/// outcome.
///
/// The node carries commands out in order and tells of each as an observation. So while one is on its way, the next
/// word on commands is about it. Changes of the console have numbers, by which each is told, so several may be on their
/// way, beside another command.
final class PendingOrders: Sendable {
    /// Longer than a change of members takes that comes to pass at all, and a handover that fails.
    static let patience = Swift.Duration.seconds(15)

    /// Changes of the console on their way: half of what a node lets wait.
    private static let maxChanges = 32

    private struct UnderWay {
        var number: UInt64
        var order: ClusterOrder
        var waiter: CheckedContinuation<OrderOutcome, Never>
        /// Ends when it is carried out: a refusal takes no time, and those who ask may ask again at once.
        var timer: Task<Void, Never>?
    }

    private struct State {
        var underWay: UnderWay?
        /// By number.
        var changes: [UInt64: UnderWay] = [:]
        var lastNumber: UInt64 = 0
        var isClosed = false
    }

    private let state = Mutex(State())
    private let inbox: NodeInbox
    private let patience: Swift.Duration

    init(inbox: NodeInbox, patience: Swift.Duration = PendingOrders.patience) {
        self.inbox = inbox
        self.patience = patience
    }

    /// Has the node carry out an order, and waits for what comes of it.
    func carryOut(_ order: ClusterOrder) async -> OrderOutcome {
        await withCheckedContinuation { waiter in
            let begun = state.withLock { state -> UInt64? in
                let isFree = order.isChange ? state.changes.count < PendingOrders.maxChanges : state.underWay == nil
                guard isFree, !state.isClosed else { return nil }
                state.lastNumber += 1
                let underWay = UnderWay(number: state.lastNumber, order: order, waiter: waiter)
                if order.isChange { state.changes[state.lastNumber] = underWay } else { state.underWay = underWay }
                return state.lastNumber
            }
            guard let begun else { return waiter.resume(returning: isClosed ? .stopped : .busy) }
            guard inbox.put({ $0.commands.append(order.command(begun)) }) else { return end(.stopped, of: begun) }
            let timer = Task.detached { [self] in
                guard (try? await Task.sleep(for: patience)) != nil else { return }
                end(.late, of: begun)
            }
            let isOver = state.withLock { state in
                if state.changes[begun] != nil {
                    state.changes[begun]?.timer = timer
                    return false
                }
                guard state.underWay?.number == begun else { return true }
                state.underWay?.timer = timer
                return false
            }
            if isOver { timer.cancel() }
        }
    }

    /// Whether an order is on its way.
    var isBusy: Bool { state.withLock { $0.underWay != nil } }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    /// What the node has to say.
    func observed(_ observation: Observation) {
        if case .changeEnded(let number, let outcome) = observation { return end(.changed(outcome), of: number) }
        guard let (number, order) = state.withLock({ state in state.underWay.map { ($0.number, $0.order) } }) else {
            return
        }
        switch (observation, order) {
        // Told after each entry that changes them, of which a replacement takes two.
        case (.membersChanged(let members), _) where order.isDone(members): end(.members(members), of: number)
        case (.steppedDown(_, .superseded(let epoch)), .handOver(let id)) where epoch.id == id:
            end(.handedOver, of: number)
        case (.steppedDown, .handOver):
            end(.refused("this tracker is no longer master, for another reason"), of: number)
        case (.steppedDown(let epoch, .asked), .elect): end(.steppedDown(epoch.id), of: number)
        case (.stopsWithCluster, .stop), (.drained, .stop): end(.stopping, of: number)
        case (.commandRefused(let reason), _), (.commandDropped(let reason), _): end(.refused(reason), of: number)
        default: break
        }
    }

    private func end(_ outcome: OrderOutcome, of number: UInt64) {
        let underWay = state.withLock { state -> UnderWay? in
            if let change = state.changes.removeValue(forKey: number) { return change }
            guard let underWay = state.underWay, underWay.number == number else { return nil }
            state.underWay = nil
            return underWay
        }
        underWay?.timer?.cancel()
        underWay?.waiter.resume(returning: outcome)
    }

    /// The node has stopped: whoever still waits hears so.
    func close() {
        let waiting = state.withLock { state -> [UnderWay] in
            state.isClosed = true
            defer { (state.underWay, state.changes) = (nil, [:]) }
            return state.changes.values + (state.underWay.map { [$0] } ?? [])
        }
        for underWay in waiting {
            underWay.timer?.cancel()
            underWay.waiter.resume(returning: .stopped)
        }
    }
}

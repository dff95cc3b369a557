// A bus that can be cut on purpose.

import Bus
import Synchronization
import Web
import Wire

/// A bus that can be cut on purpose: between the node and the real one, which goes on underneath.
///
/// Cut off from everybody, the node is told that the bus is lost, and when the cut ends that it works again, if so.
/// Cut off from one tracker, what comes from there is dropped, and what is for all goes to each of the others that were
/// heard, one by one: the bus itself knows no "all but one".
package final class CutBus: Bus {
    /// Other trackers that are remembered: as many as a cluster may have.
    private static let maxLives = 64

    private struct State {
        var inbox: (any BusInbox)?
        /// Whether the real bus works.
        var isConnected = false
        /// Whether the node has been told that it is cut off.
        var isCut = false
        /// The trackers that were heard, latest life each, in the order in which they came.
        var lives: [Life] = []

        mutating func note(_ life: Life) {
            guard life.id != 0, !lives.contains(life) else { return }
            lives.removeAll { $0.id == life.id }
            if lives.count == CutBus.maxLives { lives.removeFirst() }
            lives.append(life)
        }
    }

    private let bus: any Bus
    private let cuts: Cuts
    private let state = Mutex(State())

    package init(_ bus: any Bus, cuts: Cuts) {
        self.bus = bus
        self.cuts = cuts
        // One that is started while it is cut off is so from the first.
        state.withLock { $0.isCut = cuts.isCutFromBus }
    }

    package func start(inbox: any BusInbox) {
        state.withLock { $0.inbox = inbox }
        bus.start(inbox: Inlet(bus: self))
    }

    package func stop() async { await bus.stop() }

    package var status: BusStatus {
        var status = bus.status
        if cuts.isCutFromBus {
            status.isConnected = false
            status.broker = nil
            status.lastProblem = CutBus.reason
        }
        return status
    }

    private static let reason = "this tracker is cut off from it on purpose, by its console"

    // MARK: - Cutting

    /// A cut from the bus begins or ends.
    package func cutChanged(begins: Bool) {
        let (inbox, isConnected, wasCut) = state.withLock { state in
            defer { state.isCut = begins }
            return (state.inbox, state.isConnected, state.isCut)
        }
        guard let inbox, isConnected, wasCut != begins else { return }
        if begins {
            inbox.busLost(reason: CutBus.reason)
        } else {
            inbox.busConnected()
        }
    }

    // MARK: - Sending

    package func send(_ messages: [BusMessage]) {
        guard !cuts.isCutFromBus else { return }
        let barred = cuts.trackers
        guard !barred.isEmpty else { return bus.send(messages) }
        let lives = state.withLock { $0.lives }.filter { !barred.contains($0.id) }
        var passed: [BusMessage] = []
        for message in messages {
            if let destination = message.destination {
                if !barred.contains(destination.id) { passed.append(message) }
            } else {
                passed += lives.map { BusMessage(destination: $0, bytes: message.bytes) }
            }
        }
        if !passed.isEmpty { bus.send(passed) }
    }

    // MARK: - Receiving

    fileprivate func received(_ messages: [[UInt8]]) {
        let senders = messages.map { try? ClusterMessage.sender(of: $0) }
        let inbox = state.withLock { state in
            for case let life? in senders { state.note(life) }
            return state.inbox
        }
        guard let inbox, !cuts.isCutFromBus else { return }
        let barred = cuts.trackers
        guard !barred.isEmpty else { return inbox.busReceived(messages) }
        let passed = zip(messages, senders).filter { _, sender in sender.map { !barred.contains($0.id) } ?? true }
        if !passed.isEmpty { inbox.busReceived(passed.map { $0.0 }) }
    }

    fileprivate func connected() {
        let (inbox, isCut) = state.withLock { state in
            state.isConnected = true
            return (state.inbox, state.isCut)
        }
        if !isCut { inbox?.busConnected() }
    }

    fileprivate func lost(_ reason: String) {
        let (inbox, isCut) = state.withLock { state in
            state.isConnected = false
            return (state.inbox, state.isCut)
        }
        if !isCut { inbox?.busLost(reason: reason) }
    }

    fileprivate func refused(_ foreigners: [BusFrameOrigin]) { state.withLock { $0.inbox }?.busRefused(foreigners) }

    /// What the real bus tells.
    private struct Inlet: BusInbox {
        let bus: CutBus

        func busReceived(_ messages: [[UInt8]]) { bus.received(messages) }
        func busRefused(_ foreigners: [BusFrameOrigin]) { bus.refused(foreigners) }
        func busConnected() { bus.connected() }
        func busLost(reason: String) { bus.lost(reason) }
    }
}

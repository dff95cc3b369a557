// A bus inside the test's process: what one sends, the others get, each on a thread of its own.

import Bus
import Dispatch
import Foundation
import Synchronization
import Wire

/// The wire that several buses hang on.
final class LocalWire: Sendable {
    private let buses = Mutex<[LocalBus]>([])

    /// A further place on the wire.
    func makeBus() -> LocalBus { LocalBus(self) }

    fileprivate func add(_ bus: LocalBus) { buses.withLock { $0.append(bus) } }

    fileprivate func remove(_ bus: LocalBus) { buses.withLock { buses in buses.removeAll { $0 === bus } } }

    fileprivate func carry(_ messages: [BusMessage], from sender: LocalBus) {
        let all = messages.map(\.bytes)
        // As on a multicast bus, everybody hears everything, the sender too.
        for bus in buses.withLock({ $0 }) { bus.deliver(all) }
    }

    /// Puts bytes on the wire that no tracker has sent.
    func inject(_ messages: [[UInt8]]) { for bus in buses.withLock({ $0 }) { bus.deliver(messages) } }
}

final class LocalBus: Bus {
    private struct State {
        var inbox: (any BusInbox)?
        var isCut = false
        var held = 0
        var status = BusStatus(endpoint: "local")
    }

    private let wire: LocalWire
    private let queue = DispatchQueue(label: "local bus")
    private let state = Mutex(State())
    /// Held for as long as whoever sends is to hang.
    private let brake = NSLock()

    fileprivate init(_ wire: LocalWire) { self.wire = wire }

    func start(inbox: any BusInbox) {
        state.withLock { state in
            state.inbox = inbox
            state.status.isConnected = true
        }
        wire.add(self)
        queue.async { inbox.busConnected() }
    }

    func send(_ messages: [BusMessage]) {
        state.withLock { $0.held += 1 }
        brake.withLock {}
        let isCut = state.withLock { state in
            state.held -= 1
            state.status.sent += UInt64(messages.count)
            return state.isCut
        }
        if !isCut { wire.carry(messages, from: self) }
    }

    func stop() async {
        wire.remove(self)
        state.withLock { $0.inbox = nil }
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }

    var status: BusStatus { state.withLock { $0.status } }

    /// Lets nothing through any more, and says nothing of it: as if the machine were dead, or the network cut.
    func cut() { state.withLock { $0.isCut = true } }

    /// Is lost, and says so.
    func lose(_ reason: String) {
        let inbox = state.withLock { state in
            state.isCut = true
            state.status.isConnected = false
            state.status.lastProblem = reason
            return state.inbox
        }
        queue.async { inbox?.busLost(reason: reason) }
    }

    /// Whether somebody sends who is kept from it.
    var isHeld: Bool { state.withLock { $0.held > 0 } }

    /// Has the node's thread hang when it sends something: what no bus may do.
    func hang(while body: () async throws -> Void) async rethrows {
        // A lock is given back by the thread that took it, which a task may have left by then.
        let (held, holding) = AsyncStream.makeStream(of: Void.self)
        let release = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [brake] in
            brake.withLock {
                holding.finish()
                release.wait()
            }
        }
        for await _ in held {}
        defer { release.signal() }
        try await body()
    }

    /// Has heard frames of another version.
    func refuse(_ foreigners: [BusFrameOrigin]) {
        let inbox = state.withLock { $0.inbox }
        queue.async { inbox?.busRefused(foreigners) }
    }

    /// Works again.
    func mend() {
        let inbox = state.withLock { state in
            state.isCut = false
            state.status.isConnected = true
            return state.inbox
        }
        queue.async { inbox?.busConnected() }
    }

    fileprivate func deliver(_ messages: [[UInt8]]) {
        let inbox = state.withLock { state -> (any BusInbox)? in
            guard !state.isCut else { return nil }
            state.status.received += UInt64(messages.count)
            return state.inbox
        }
        guard let inbox else { return }
        queue.async { inbox.busReceived(messages) }
    }
}

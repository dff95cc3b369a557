// What the threads of a bus and its callers share.

import Datagrams
import Primitives
import Synchronization

/// What the threads of a bus and its callers share: the messages that wait, and the status.
///
/// Under a lock.
final class BusState: Sendable {
    struct State: Sendable {
        var queue: OutgoingQueue
        var status: BusStatus
        var refused = RefusedSenders()
        /// Whether the bus's thread knows that something waits.
        var isAwaited = false
        var hasEnded = false
    }

    private let state: Mutex<State>
    /// Tells the bus's thread that something waits.
    private let wake: @Sendable () -> Void

    init(endpoint: String, queueByteCount: Int, wake: @escaping @Sendable () -> Void) {
        state = Mutex(State(queue: OutgoingQueue(maxByteCount: queueByteCount), status: BusStatus(endpoint: endpoint)))
        self.wake = wake
    }

    /// Takes messages to send; those that come while the bus is lost are dropped at once.
    func put(_ messages: [BusMessage]) {
        let isFirst = state.withLock { state in
            guard state.status.isConnected, !state.hasEnded else {
                state.status.dropped += UInt64(messages.count)
                return false
            }
            for message in messages { state.queue.append(message) }
            defer { state.isAwaited = true }
            return !state.isAwaited && !messages.isEmpty
        }
        if isFirst { wake() }
    }

    func withState<Result: Sendable>(_ body: (inout State) -> Result) -> Result { state.withLock { body(&$0) } }

    /// The status with the queue's counts.
    var status: BusStatus {
        state.withLock { state in
            var status = state.status
            status.sent = state.queue.sent
            status.dropped += state.queue.dropped
            if !state.refused.isEmpty { status.refusals = state.refused.list(now: Clock.monotonic()) }
            return status
        }
    }

    /// The bus does not work: what waits would come too late.
    func lost(_ reason: String) {
        state.withLock { state in
            state.status.isConnected = false
            state.status.broker = nil
            state.status.lastProblem = reason
            state.queue.dropAll()
            state.isAwaited = false
        }
    }
}

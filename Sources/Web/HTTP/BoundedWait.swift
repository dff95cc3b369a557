// Awaits work for a limited time and then leaves it behind.

import Primitives
import ServiceLifecycle
import Synchronization

/// Awaits work for a limited time and then leaves it behind.
///
/// Structured concurrency would wait for the loser of a race; a request must not. What is left behind is cancelled and
/// still counts as waiting until it ends, so that requests which are given up cannot pile up without a bound.
final class BoundedWait: Sendable {
    enum Outcome<Value: Sendable>: Sendable {
        case finished(Value)
        case failed(any Error)
        /// Time is up.
        case late
        /// The service stops, or the caller was cancelled.
        case stopping
        /// Too much waits already; the work was not begun.
        case busy
    }

    private let limit: Duration
    private let atShutdown: Duration
    private let maxWaiting: Int
    private let waiting = Atomic(0)

    init(_ limits: HTTPLimits) {
        limit = limits.answer
        atShutdown = limits.shutdownAnswer
        maxWaiting = limits.waitingRequests
    }

    func wait<Value: Sendable>(
        for work: @escaping @Sendable () async throws -> Value
    ) async -> Outcome<Value> {
        guard waiting.add(1, ordering: .relaxed).newValue <= maxWaiting else {
            waiting.subtract(1, ordering: .relaxed)
            return .busy
        }
        let first = First<Outcome<Value>>()
        let worker = Task {
            defer { waiting.subtract(1, ordering: .relaxed) }
            do {
                first.settle(.finished(try await work()))
            } catch {
                first.settle(.failed(error))
            }
        }
        let timer = Task {
            try await Task.sleep(nanoseconds: UInt64(max(limit.nanoseconds, 0)))
            first.settle(.late)
        }
        defer {
            timer.cancel()
            worker.cancel()
        }
        return await withGracefulShutdownHandler {
            await withTaskCancellationHandler {
                await first.value
            } onCancel: {
                first.settle(.stopping)
            }
        } onGracefulShutdown: {
            Task {
                try await Task.sleep(nanoseconds: UInt64(self.atShutdown.nanoseconds))
                first.settle(.stopping)
            }
        }
    }
}

/// A value that is set once; who comes later is not heard.
private final class First<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case awaited(CheckedContinuation<Value, Never>)
        case settled(Value)
        case taken
    }

    private let state = Mutex(State.empty)

    func settle(_ value: Value) {
        let waiter = state.withLock { state -> CheckedContinuation<Value, Never>? in
            switch state {
            case .empty:
                state = .settled(value)
                return nil
            case .awaited(let continuation):
                state = .taken
                return continuation
            case .settled, .taken:
                return nil
            }
        }
        waiter?.resume(returning: value)
    }

    /// Awaited once.
    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let settled = state.withLock { state -> Value? in
                    switch state {
                    case .empty:
                        state = .awaited(continuation)
                        return nil
                    case .settled(let value):
                        state = .taken
                        return value
                    case .awaited, .taken:
                        preconditionFailure("a value that is settled once is awaited once")
                    }
                }
                if let settled { continuation.resume(returning: settled) }
            }
        }
    }
}

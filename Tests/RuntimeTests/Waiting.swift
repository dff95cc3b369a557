// How tests wait: for what is to happen, and never for a time in which it should have.
//
// No test waits longer than it has to, so a generous bound costs nothing but where a test fails. What must happen
// within so many seconds is asserted where time is simulated, or on a clock that the test moves (`HandClock`).

import Client
import Datagrams
import Primitives
import Synchronization
import Testing

enum Waiting {
    /// For anything: a busy machine may take its time.
    static let most = Swift.Duration.seconds(120)
    static let mostMilliseconds: Int32 = 120_000
}

extension ConsoleClient {
    /// One that leaves a busy machine its time.
    static func patient(_ address: SocketAddress) -> ConsoleClient {
        var client = ConsoleClient(host: address.host, port: address.port)
        client.timeout = .seconds(120)
        return client
    }
}

/// Tries until it is so; fails when all patience has gone.
func eventually(
    _ what: String = "it is so", _ location: SourceLocation = #_sourceLocation,
    _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now.advanced(by: Waiting.most)
    while ContinuousClock.now < end {
        if (try? await condition()) == true { return }
        try await Task.sleep(for: .milliseconds(5))
    }
    guard try await condition() else {
        Issue.record("\(what): not within \(Waiting.most)", sourceLocation: location)
        throw CancellationError()
    }
}

/// A clock that stands still until a test moves it, for one that reads it and sleeps by it.
final class HandClock: Sendable {
    private struct State {
        var now = Instant(nanoseconds: 1_000_000_000)
        var sleeper: (due: Instant, continuation: CheckedContinuation<Void, any Error>)?
        var isCancelled = false
    }

    private let state = Mutex(State())

    var now: Instant { state.withLock { $0.now } }
    var hasSleeper: Bool { state.withLock { $0.sleeper != nil } }

    func sleep(_ span: Primitives.Duration) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if !state.isCancelled { state.sleeper = (state.now + span, continuation) }
                    return state.isCancelled
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                state.isCancelled = true
                defer { state.sleeper = nil }
                return state.sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Wakes who sleeps, if his time has come.
    func pass(_ span: Primitives.Duration) {
        let sleeper = state.withLock { state in
            state.now = state.now + span
            guard let sleeper = state.sleeper, sleeper.due <= state.now else {
                return CheckedContinuation<Void, any Error>?.none
            }
            state.sleeper = nil
            return sleeper.continuation
        }
        sleeper?.resume()
    }
}

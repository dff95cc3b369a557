// What other threads want of the node's thread.

import Primitives
import Synchronization
import TrackerLogic

/// What a write came to.
struct WriteResult: Sendable {
    var token: PersistToken
    /// Nil where it is durable.
    var failure: StorageFailure?
}

struct NodeInput: Sendable {
    var writeResults: [WriteResult] = []
    var requests: [ClientRequest] = []
    var commands: [OperatorCommand] = []
    var bus = BusQueue()
    /// Looks at the node; called on its thread, or with nil where there is no node any more.
    var questions: [@Sendable (borrowing TrackerNode?) -> Void] = []
}

/// What other threads want of the node's thread: put here under a lock, taken out all at once by its owner.
final class NodeInbox: Sendable {
    /// Requests over HTTP that wait to be looked at; more are refused.
    ///
    /// Far above what a healthy node leaves lying.
    static let maxRequests = 16_384

    private struct State {
        var input = NodeInput()
        var isClosed = false
        var hasInput = false
    }

    private let state = Mutex(State())
    private let wake: @Sendable () -> Void

    /// - Parameter wake: ends the owner's wait; called once for each time that something comes into an empty inbox.
    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// Puts something in.
    ///
    /// - Returns: false where nobody will ever take it out.
    @discardableResult
    func put(_ body: (inout NodeInput) -> Void) -> Bool {
        let (isOpen, isFirst) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            body(&state.input)
            defer { state.hasInput = true }
            return (true, !state.hasInput)
        }
        if isFirst { wake() }
        return isOpen
    }

    /// Puts a request in.
    ///
    /// - Returns: false where the box is full or closed.
    func put(_ request: ClientRequest) -> Bool {
        var isAccepted = false
        put { input in
            guard input.requests.count < NodeInbox.maxRequests else { return }
            input.requests.append(request)
            isAccepted = true
        }
        return isAccepted
    }

    /// Takes everything out; the rooms that are given back are filled next.
    func take(into input: inout NodeInput) -> Bool {
        state.withLock { state in
            guard state.hasInput else { return false }
            swap(&state.input, &input)
            state.hasInput = false
            return true
        }
    }

    /// Takes no more, and leaves nobody waiting.
    func close() {
        let rest = state.withLock { state in
            state.isClosed = true
            defer { state.input = NodeInput() }
            return state.input
        }
        for question in rest.questions { question(nil) }
    }

    /// Asks the node something that it answers at once.
    ///
    /// - Returns: nil where there is no node any more.
    func ask<Answer: Sendable>(_ question: @escaping @Sendable (borrowing TrackerNode) -> Answer) async -> Answer? {
        await withCheckedContinuation { continuation in
            let isOpen = put { input in
                input.questions.append { node in
                    switch node {
                    case .none: continuation.resume(returning: nil)
                    case .some(let node): continuation.resume(returning: question(node))
                    }
                }
            }
            if !isOpen { continuation.resume(returning: nil) }
        }
    }
}

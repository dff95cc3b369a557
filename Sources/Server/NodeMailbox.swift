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

struct NodeMail: Sendable {
    var writeResults: [WriteResult] = []
    var requests: [ClientRequest] = []
    var commands: [OperatorCommand] = []
    var bus = BusQueue()
    /// Looks at the node; called on its thread, or with nil where there is no node any more.
    var questions: [@Sendable (borrowing TrackerNode?) -> Void] = []
}

/// What other threads want of the node's thread: put here under a lock, taken out all at once by its owner.
final class NodeMailbox: Sendable {
    /// Requests over HTTP that wait to be looked at; more are refused.
    ///
    /// Far above what a healthy node leaves lying.
    static let maxRequests = 16_384

    private struct State {
        var mail = NodeMail()
        var isClosed = false
        var hasMail = false
    }

    private let state = Mutex(State())
    private let wake: @Sendable () -> Void

    /// - Parameter wake: ends the owner's wait; called once for each time that mail comes into an empty box.
    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// Puts mail in.
    ///
    /// - Returns: false where nobody will ever take it out.
    @discardableResult
    func put(_ body: (inout NodeMail) -> Void) -> Bool {
        let (isOpen, isFirst) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            body(&state.mail)
            defer { state.hasMail = true }
            return (true, !state.hasMail)
        }
        if isFirst { wake() }
        return isOpen
    }

    /// Puts a request in.
    ///
    /// - Returns: false where the box is full or closed.
    func put(_ request: ClientRequest) -> Bool {
        var isAccepted = false
        put { mail in
            guard mail.requests.count < NodeMailbox.maxRequests else { return }
            mail.requests.append(request)
            isAccepted = true
        }
        return isAccepted
    }

    /// Takes everything out; the rooms that are given back are filled next.
    func take(into mail: inout NodeMail) -> Bool {
        state.withLock { state in
            guard state.hasMail else { return false }
            swap(&state.mail, &mail)
            state.hasMail = false
            return true
        }
    }

    /// Takes no more, and leaves nobody waiting.
    func close() {
        let rest = state.withLock { state in
            state.isClosed = true
            defer { state.mail = NodeMail() }
            return state.mail
        }
        for question in rest.questions { question(nil) }
    }

    /// Asks the node something that it answers at once.
    ///
    /// - Returns: nil where there is no node any more.
    func ask<Answer: Sendable>(_ question: @escaping @Sendable (borrowing TrackerNode) -> Answer) async -> Answer? {
        await withCheckedContinuation { continuation in
            let isOpen = put { mail in
                mail.questions.append { node in
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

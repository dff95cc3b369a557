// Requests over HTTP on their way to the node's thread and back.

import Primitives
import Synchronization
import TrackerLogic
import Web

/// Requests over HTTP on their way to the node's thread and back: each waits here, under a number, for its answer.
final class PendingRequests: RequestHandler {
    private struct State {
        var lastID: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Answer.Content, Never>] = [:]
        var isClosed = false
    }

    private let state = Mutex(State())
    private let inbox: NodeInbox
    private let latest: LatestFigures
    private let cuts: Cuts

    init(inbox: NodeInbox, latest: LatestFigures, cuts: Cuts) {
        self.inbox = inbox
        self.latest = latest
        self.cuts = cuts
    }

    var problem: String? { latest.problem }

    func handle(
        _ content: ClientRequest.Content, source: SocketAddress, passkey: [UInt8]
    ) async throws -> Answer.Content {
        // As when no packet came: no answer, until the client or the listener has waited long enough.
        while cuts.isCutFromPeers { try await Task.sleep(for: .milliseconds(100)) }
        return await withCheckedContinuation { continuation in
            let id = state.withLock { state -> UInt64? in
                guard !state.isClosed else { return nil }
                state.lastID += 1
                state.waiting[state.lastID] = continuation
                return state.lastID
            }
            guard let id else { return continuation.resume(returning: .failure(.notServing)) }
            let request = ClientRequest(id: id, source: source, passkey: passkey, content: content)
            if !inbox.put(request) { answer([Answer(id: id, content: .failure(.busy))]) }
        }
    }

    func answer(_ answers: [Answer]) {
        for answer in answers {
            let continuation = state.withLock { $0.waiting.removeValue(forKey: answer.id) }
            continuation?.resume(returning: answer.content)
        }
    }

    /// The node has stopped: whoever still waits hears so.
    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [:] }
            return state.waiting.values.map { $0 }
        }
        for continuation in waiting { continuation.resume(returning: .failure(.notServing)) }
    }
}

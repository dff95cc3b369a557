// What other threads want the loop to do.

import Datagrams
import Synchronization

/// What other threads want the loop to do, in the order in which they said so.
final class Inbox: Sendable {
    private struct Contents {
        var jobs: [@Sendable (EngineLoop) -> Void] = []
        var isClosed = false
        var wantsEnd = false
    }

    private let contents = Mutex(Contents())
    private let waker: Waker

    init(_ waker: Waker) { self.waker = waker }

    /// Leaves a job for the loop; false where the loop has ended and will not do it.
    @discardableResult
    func post(_ job: @escaping @Sendable (EngineLoop) -> Void) -> Bool {
        let isTaken = contents.withLock { contents in
            if !contents.isClosed { contents.jobs.append(job) }
            return !contents.isClosed
        }
        if isTaken { waker.wake() }
        return isTaken
    }

    /// Asks the loop to end at once.
    func close() {
        contents.withLock { $0.wantsEnd = true }
        waker.wake()
    }

    /// Whether `close` was called.
    var wantsEnd: Bool { contents.withLock { $0.wantsEnd } }

    /// Takes all that is there.
    func take() -> [@Sendable (EngineLoop) -> Void] {
        contents.withLock { contents in
            defer { contents.jobs = [] }
            return contents.jobs
        }
    }

    /// Takes nothing any more.
    ///
    /// - Returns: what was still there.
    func shut() -> [@Sendable (EngineLoop) -> Void] {
        contents.withLock { contents in
            contents.isClosed = true
            defer { contents.jobs = [] }
            return contents.jobs
        }
    }
}

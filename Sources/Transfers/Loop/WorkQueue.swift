// Threads that take work one after another.

import Foundation

/// Threads that take work one after another; what they find out goes back by an `Inbox`.
final class WorkQueue: @unchecked Sendable {
    // `condition` guards what is below it.
    private let condition = NSCondition()
    private var jobs: [@Sendable () -> Void] = []
    private var next = 0
    private var isClosed = false

    /// - Parameter name: of the threads, up to 15 bytes.
    init(name: String, threadCount: Int = 1) {
        for _ in 0..<threadCount {
            let thread = Thread { [self] in run() }
            thread.name = name
            thread.stackSize = 512 << 10
            thread.start()
        }
    }

    /// Adds a job, behind all others. After `close` it is not done.
    func add(_ job: @escaping @Sendable () -> Void) {
        condition.lock()
        if !isClosed { jobs.append(job) }
        condition.signal()
        condition.unlock()
    }

    /// Lets the threads end once all jobs are done.
    func close() {
        condition.lock()
        isClosed = true
        condition.broadcast()
        condition.unlock()
    }

    private func run() {
        while let job = take() { job() }
    }

    private func take() -> (@Sendable () -> Void)? {
        condition.lock()
        defer { condition.unlock() }
        while next == jobs.count {
            jobs.removeAll(keepingCapacity: true)
            next = 0
            if isClosed { return nil }
            condition.wait()
        }
        let job = jobs[next]
        // What the job holds goes with it.
        jobs[next] = {}
        next += 1
        if next > 1_024 {
            jobs.removeFirst(next)
            next = 0
        }
        return job
    }
}

// Threads for tests that compute for seconds.
//
// Swift has as many threads for all of a process as the machine has cores. A test that computes for a while keeps one
// of them, and tests of servers, which wait for a moment and look at the clock, wait for minutes then. So suites that
// compute have threads of their own, which moreover let others go first.

import Foundation
import Testing

/// Runs what it is handed on as many threads as the machine has cores, oldest first.
final class ComputingThreads: TaskExecutor {
    static let shared = ComputingThreads()

    private let condition = NSCondition()
    nonisolated(unsafe) private var jobs: [UnownedJob] = []
    nonisolated(unsafe) private var next = 0

    private init() {
        for number in 1...max(ProcessInfo.processInfo.activeProcessorCount, 1) {
            let thread = Thread { [self] in work() }
            thread.name = "tests compute \(number)"
            // Simulated worlds are values of some kilobytes.
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        condition.lock()
        jobs.append(job)
        condition.signal()
        condition.unlock()
    }

    private func work() {
        // On Linux it is the thread that is nice, not the process. With more than this the suites would wait for all
        // else that the machine does: at 10, two busy programs left them a tenth of it.
        setpriority(.init(PRIO_PROCESS.rawValue), 0, 2)
        while true { take().runSynchronously(on: asUnownedTaskExecutor()) }
    }

    private func take() -> UnownedJob {
        condition.lock()
        defer { condition.unlock() }
        while next == jobs.count { condition.wait() }
        defer {
            next += 1
            if next == jobs.count {
                jobs.removeAll(keepingCapacity: true)
                next = 0
            }
        }
        return jobs[next]
    }
}

/// Has tests run on `ComputingThreads`.
struct Computes: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(ComputingThreads.shared) { try await function() }
    }
}

extension Trait where Self == Computes {
    /// The tests compute for long, and leave Swift's own threads to others.
    static var computes: Computes { Computes() }
}

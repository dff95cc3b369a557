// Runs scenarios on all processors.

import Dispatch
import Foundation
import Simulator
import Synchronization

/// Runs scenarios on all processors: each thread takes the next seed that nobody has.
struct SimulationSweep: Sendable {
    /// One scenario in so many is run twice, and its two hashes compared.
    static let comparedOneIn: UInt64 = 50

    private let range: SeedRange
    private let outcome: @Sendable (UInt64) -> SweepOutcome

    /// A sweep over the seeds of a range.
    ///
    /// - Parameters:
    ///   - range: from the first seed to the last.
    ///   - outcome: runs the scenario of a seed.
    init(_ range: SeedRange, outcome: @escaping @Sendable (UInt64) -> SweepOutcome) {
        self.range = range
        self.outcome = outcome
    }

    /// What the threads share.
    private final class Board: Sendable {
        let next = Atomic<UInt64>(0)
        let tally = Mutex(SweepTally())
    }

    /// Runs all scenarios.
    ///
    /// - Parameter progress: told ten times a second how far it is.
    /// - Returns: what all threads have found together.
    func run(progress: (SweepTally) -> Void) -> SweepTally {
        TrapNotice.install()
        let board = Board()
        let threads = min(UInt64(ProcessInfo.processInfo.activeProcessorCount), range.count)
        let ended = DispatchSemaphore(value: 0)
        for thread in 0..<Int(threads) {
            Thread.detachNewThread {
                work(board, thread)
                ended.signal()
            }
        }
        var running = threads
        while running > 0 {
            if ended.wait(timeout: .now() + .milliseconds(100)) == .success { running -= 1 }
            progress(board.tally.withLock { $0 })
        }
        return board.tally.withLock { $0 }
    }

    private func work(_ board: Board, _ thread: Int) {
        while true {
            let place = board.next.wrappingAdd(1, ordering: .relaxed).oldValue
            guard place < range.count else { return }
            TrapNotice.begin(range[place], thread: thread)
            let outcome = outcome(at: place)
            TrapNotice.end(thread: thread)
            board.tally.withLock { $0.add(outcome, at: place) }
        }
    }

    private func outcome(at place: UInt64) -> SweepOutcome {
        let seed = range[place]
        var first = outcome(seed)
        if place.isMultiple(of: Self.comparedOneIn), outcome(seed).traceHash != first.traceHash {
            first.invariant = SweepOutcome.isNotReproducible
        }
        return first
    }
}

extension SweepOutcome {
    /// What a sweep keeps of simulated trackers.
    init(_ result: ScenarioResult) {
        self.init(
            seed: result.seed, traceHash: result.traceHash, events: result.events,
            simulatedSeconds: result.simulatedSeconds, invariant: result.violations.first?.invariant.rawValue)
        (census, profile) = (result.census, result.profile)
    }

    /// What a sweep keeps of a swarm.
    init(_ result: TransferResult) {
        self.init(
            seed: result.seed, traceHash: result.traceHash, events: result.events,
            simulatedSeconds: result.simulatedSeconds, invariant: result.violations.first?.invariant.rawValue)
    }
}

// Says which seeds were under way when the program traps, for a trap comes back from its seed.

import Foundation

/// One seed for each thread that simulates.
enum TrapNotice {
    /// More threads than that are not told of.
    private static let maxThreads = 256

    /// Kept for the whole life of the program, since a signal may come at any time.
    nonisolated(unsafe) private static let seeds = UnsafeMutablePointer<UInt64>.allocate(capacity: maxThreads)
    nonisolated(unsafe) private static let isUnderWay = UnsafeMutablePointer<Bool>.allocate(capacity: maxThreads)
    nonisolated(unsafe) private static let former = UnsafeMutablePointer<sigaction>.allocate(capacity: 2)

    /// From here on a trap is told.
    ///
    /// To be called once, before there are other threads.
    static func install() {
        seeds.initialize(repeating: 0, count: maxThreads)
        isUnderWay.initialize(repeating: false, count: maxThreads)
        former.initialize(repeating: sigaction(), count: 2)
        for (place, signal) in [SIGILL, SIGTRAP].enumerated() {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { signal in TrapNotice.tell(signal) }
            sigaction(signal, &action, former + place)
        }
    }

    static func begin(_ seed: UInt64, thread: Int) {
        guard thread < maxThreads else { return }
        seeds[thread] = seed
        isUnderWay[thread] = true
    }

    static func end(thread: Int) {
        guard thread < maxThreads else { return }
        isUnderWay[thread] = false
    }

    /// Runs where a signal has struck: no allocation, no lock.
    ///
    /// The signal comes again to whom it came before.
    private static func tell(_ signal: Int32) {
        write("\nThe simulator has trapped. Under way, one of them the culprit (run it alone to see which):\n")
        for thread in 0..<maxThreads where isUnderWay[thread] {
            write("  tracker replay ")
            write(seeds[thread])
            write("\n")
        }
        sigaction(signal, former + (signal == SIGILL ? 0 : 1), nil)
    }

    private static func write(_ text: StaticString) {
        _ = Foundation.write(STDERR_FILENO, text.utf8Start, text.utf8CodeUnitCount)
    }

    private static func write(_ number: UInt64) {
        var digits: InlineArray<20, UInt8> = .init(repeating: 0)
        var start = 20
        var rest = number
        repeat {
            start -= 1
            digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        withUnsafeBytes(of: digits) { bytes in
            _ = Foundation.write(STDERR_FILENO, bytes.baseAddress! + start, 20 - start)
        }
    }
}

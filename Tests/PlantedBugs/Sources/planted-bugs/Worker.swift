// One sweep for one mistake, in a process of its own.

import Foundation
import Primitives
import Simulator
import TrackerLogic

/// One sweep for one mistake, in a process of its own: the logic may trap, and that is a find like any other.
enum Worker {
    /// The seed under way, for whoever handles a trap.
    nonisolated(unsafe) private static let seed = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)

    /// Looks for a mistake, or without one for anything at all, from a seed on; prints one line.
    static func run(_ plant: Plant, isPlanted: Bool, from start: UInt64, count: Int) {
        for signal in [SIGILL, SIGTRAP] {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in Worker.trapped() }
            sigaction(signal, &action, nil)
        }
        for number in 0..<count {
            seed.pointee = start + UInt64(number)
            let result = plant.scenario(seed.pointee, isPlanted: isPlanted).run()
            let violation = result.violations.first { !isPlanted || plant.checkers.contains($0.invariant) }
            guard let violation else { continue }
            if isPlanted, let alarm = plant.scenario(seed.pointee, isPlanted: false).run().violations.first {
                print("false \(seed.pointee) \(alarm.invariant.rawValue)")
                continue
            }
            return print("found \(seed.pointee) \(violation.invariant.rawValue)")
        }
        print("none")
    }

    /// Runs where a signal has struck: no allocation, no lock.
    private static func trapped() {
        write("found ")
        write(seed.pointee)
        write(" trap\n")
        _exit(0)
    }

    private static func write(_ text: StaticString) {
        _ = Foundation.write(STDOUT_FILENO, text.utf8Start, text.utf8CodeUnitCount)
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
            _ = Foundation.write(STDOUT_FILENO, bytes.baseAddress! + start, 20 - start)
        }
    }
}

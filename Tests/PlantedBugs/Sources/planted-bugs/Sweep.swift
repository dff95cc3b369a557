// All sweeps, on all processors.

import Dispatch
import Foundation
import Simulator
import Synchronization
import TrackerLogic

/// What came of the search for one mistake from one starting point.
struct Find: Sendable {
    /// The starting point.
    var from: UInt64
    /// Seeds tried, the one that found it included.
    var seeds: Int
    /// The invariant that was broken; nil where nothing was found.
    var checker: String?
    /// Seeds that alarm without the mistake as well.
    var falseAlarms: [String] = []

    /// The last seed tried.
    var seed: UInt64 { from + UInt64(seeds) - 1 }
}

/// All sweeps, on all processors.
struct Sweep: Sendable {
    /// Between two starting points: far more than any budget.
    static let stride: UInt64 = 1_000_000

    var plants: [Plant]
    var starts: Int
    /// nil for each plant's own.
    var budget: Int?

    func budget(of plant: Plant) -> Int { budget ?? plant.budget }

    /// Looks for all of them.
    ///
    /// - Returns: for each plant, its finds from all starting points.
    func run(progress: @escaping @Sendable (String) -> Void) -> [[Find]] {
        let finds = Mutex(Array(repeating: [Find](), count: plants.count))
        Sweep.onAllProcessors(plants.count * starts) { job in
            let (place, start) = (job / starts, job % starts)
            let from = UInt64(start) * Sweep.stride + 1
            let find = Sweep.find(plants[place], isPlanted: true, from: from, count: budget(of: plants[place]))
            progress("\(plants[place].bug.rawValue) from \(from): \(find.checker ?? "not found") after \(find.seeds)")
            finds.withLock { $0[place].append(find) }
        }
        return finds.withLock { $0 }
    }

    /// Runs scenarios without any mistake, as all plants make them.
    ///
    /// - Returns: alarms, which are false.
    func control(_ count: Int) -> [String] {
        let alarms = Mutex([String]())
        let share = max(1, count / max(1, plants.count))
        Sweep.onAllProcessors(plants.count) { place in
            // Seeds that no other search has tried.
            let from = UInt64(starts) * Sweep.stride + UInt64(place * share) + 1
            let find = Sweep.find(plants[place], isPlanted: false, from: from, count: share)
            guard let checker = find.checker else { return }
            alarms.withLock {
                $0.append("seed \(find.seed) among those of \(plants[place].bug): \(checker)")
            }
        }
        return alarms.withLock { $0 }
    }

    static func onAllProcessors(_ count: Int, _ work: @escaping @Sendable (Int) -> Void) {
        let next = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: ProcessInfo.processInfo.activeProcessorCount) { _ in
            while true {
                let job = next.withLock { value in
                    value += 1
                    return value - 1
                }
                guard job < count else { return }
                work(job)
            }
        }
    }

    /// Has a process of its own look for a mistake.
    static func find(_ plant: Plant, isPlanted: Bool, from: UInt64, count: Int) -> Find {
        let text = output(
            of: ["--worker", plant.bug.rawValue, isPlanted ? "planted" : "clean", "\(from)", "\(count)"])
        var find = Find(from: from, seeds: count)
        var isEnded = false
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            switch words.first {
            case "false": find.falseAlarms.append("seed \(words[1]) among those of \(plant.bug): \(words[2])")
            case "found":
                find.seeds = Int((UInt64(words[1]) ?? from) - from) + 1
                find.checker = String(words[2])
                isEnded = true
            case "none": isEnded = true
            default: break
            }
        }
        // A process that dies without a word has found something, too.
        if !isEnded { find.checker = "death" }
        return find
    }

    /// What this program prints in a process of its own.
    static func output(of arguments: [String]) -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        do { try process.run() } catch { preconditionFailure("a process cannot be started: \(error)") }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text
    }
}

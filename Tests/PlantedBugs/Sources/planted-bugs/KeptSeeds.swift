// Runs that broke a promise, and have to break it again.

import Foundation
import Synchronization
import TrackerLogic

/// Runs that broke a promise, each with the mistake that broke it: `seeds.txt`, a line for each.
///
/// A seed alone rots: any new draw makes another scenario of it, which keeps its promise for ever and no longer reaches
/// what it was kept for. Here each is run twice. With its mistake it has to break the promise that the line names, so
/// that it still reaches the place; without, it has to keep all of them. `--keep-seeds` writes the file anew.
struct KeptSeeds {
    struct Line: Sendable {
        var plant: Plant
        var seed: UInt64
        var checker: String

        var text: String { "\(plant.bug.rawValue) \(seed) \(checker)" }
    }

    private static let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../seeds.txt")
    private static let head = "# Mistake, seed, and the promise that it breaks there (KeptSeeds.swift)."

    var lines: [Line]

    /// What is in the file; stops the program where that makes no sense.
    static func read() -> KeptSeeds {
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { stop("there is no \(file.path)") }
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line -> Line in
            let words = line.split(separator: " ").map(String.init)
            guard words.count == 3, let plant = Plant.find(words[0]), let seed = UInt64(words[1]) else {
                stop("\(file.path): \(line): a mistake, a seed and a promise, please")
            }
            return Line(plant: plant, seed: seed, checker: words[2])
        }
        return KeptSeeds(lines: lines)
    }

    /// What a sweep of all mistakes has found.
    init(_ sweep: Sweep, _ finds: [[Find]]) {
        lines = zip(sweep.plants, finds).flatMap { plant, finds in
            finds.compactMap { find in find.checker.map { Line(plant: plant, seed: find.seed, checker: $0) } }
                .sorted { $0.seed < $1.seed }
        }
    }

    private init(lines: [Line]) { self.lines = lines }

    func write() {
        let text = ([KeptSeeds.head] + lines.map(\.text)).joined(separator: "\n") + "\n"
        do { try text.write(to: KeptSeeds.file, atomically: true, encoding: .utf8) } catch {
            stop("\(KeptSeeds.file.path) cannot be written: \(error)")
        }
    }

    /// Runs each with its mistake and without.
    ///
    /// - Parameter plants: the mistakes in question; seeds of others are left alone.
    /// - Returns: in words, the seeds that do not reach their mistake any more, and the mistakes that have none.
    func check(_ plants: [Plant]) -> [String] {
        let asked = lines.filter { line in plants.contains { $0.bug == line.plant.bug } }
        let faults = Mutex([String]())
        Sweep.onAllProcessors(asked.count) { place in
            let line = asked[place]
            let find = Sweep.find(line.plant, isPlanted: true, from: line.seed, count: 1)
            guard find.checker != line.checker || !find.falseAlarms.isEmpty else { return }
            let found = find.falseAlarms.first ?? find.checker ?? "nothing"
            faults.withLock { $0.append("\(line.text): breaks \(found) now") }
        }
        let without = plants.filter { plant in !asked.contains { $0.plant.bug == plant.bug } }
        return faults.withLock { $0.sorted() } + without.map { "\($0.bug.rawValue) has no seed" }
    }
}

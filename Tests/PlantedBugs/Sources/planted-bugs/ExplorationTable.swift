// All explorations, and the table of what came of them.

import Foundation
import Simulator
import Synchronization
import TrackerLogic

/// All explorations, each in a process of its own (the logic may trap), and the table of what came of them.
struct ExplorationTable: Sendable {
    private struct Row: Sendable {
        var bug: String
        var bounds: String
        var checker: String?
        var states = 0
        var transitions = 0
        var length = 0
        /// Whether it is found where messages come once and in order, too.
        var isFoundInOrder = false
        /// What the logic without the mistake breaks in as many states.
        var alarm: String?
    }

    private var rows: [Row] = []

    /// Mistakes that were not found.
    var missed: [String] { rows.filter { $0.checker == nil }.map(\.bug) }
    var alarms: [String] { rows.compactMap { row in row.alarm.map { "\($0) within the bounds of \(row.bug)" } } }

    init(_ explorations: [Exploration]) {
        let rows = Mutex([Row?](repeating: nil, count: explorations.count))
        Sweep.onAllProcessors(explorations.count) { place in
            let row = ExplorationTable.row(explorations[place])
            rows.withLock { $0[place] = row }
        }
        self.rows = rows.withLock { $0.compactMap { $0 } }
    }

    /// Has a process of its own walk.
    private static func row(_ exploration: Exploration) -> Row {
        let text = Sweep.output(of: ["--explore-worker", exploration.bug.rawValue])
        var row = Row(bug: exploration.bug.rawValue, bounds: exploration.bounds)
        var isEnded = false
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            switch words.first {
            case "walked" where words.count == 3:
                (row.states, row.transitions) = (Int(words[1]) ?? 0, Int(words[2]) ?? 0)
            case "found" where words.count == 3: (row.checker, row.length) = (words[1], Int(words[2]) ?? 0)
            case "false" where words.count == 2: row.alarm = words[1]
            case "unsuspected": row.alarm = "not suspected where states are joined,"
            case "in-order": row.isFoundInOrder = true
            case "end": isEnded = true
            default: break
            }
        }
        if !row.isFoundInOrder, !Exploration.onlyInDisorder.contains(exploration.bug) {
            row.alarm = "not found where messages come in order,"
        }
        if !isEnded { row.alarm = "death" }
        return row
    }

    /// Looks for one mistake, and walks as far without it; prints what came of it.
    static func work(_ exploration: Exploration) {
        let explorer = exploration.walk(isPlanted: true)
        print("walked \(explorer.states) \(explorer.transitions)")
        if let fault = explorer.fault, exploration.checkers.contains(fault.invariant) {
            print("found \(fault.invariant.rawValue) \(explorer.trace().count)")
        }
        // The walk that looks for broken promises only must not miss it, either.
        if exploration.walk(isPlanted: true, reduction: .joined).fault == nil { print("unsuspected") }
        let inOrder = exploration.walk(isPlanted: true, reduction: .compact, network: .inOrder)
        if inOrder.fault != nil { print("in-order") }
        let control = exploration.walk(isPlanted: false, maxStates: max(1, explorer.states))
        if let alarm = control.fault { print("false \(alarm.invariant.rawValue)") }
        print("end")
    }

    var markdown: String {
        let head = [
            "mistake", "within", "found by", "states", "transitions", "steps of the shortest trace", "in order",
        ]
        var lines = [head, head.map { _ in "---" }]
        for row in rows {
            lines.append([
                row.bug, row.bounds, row.checker ?? "nobody", "\(row.states)", "\(row.transitions)",
                row.checker == nil ? "–" : "\(row.length)", row.isFoundInOrder ? "found" : "–",
            ])
        }
        return lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }
}

// The table of planted mistakes.

import TrackerLogic

/// The table of planted mistakes: who found each, and after how many seeds.
struct Table {
    private struct Row {
        var cells: [String]
    }

    private static let head = ["mistake", "found by", "seeds until found: median", "least", "most", "budget"]

    private var rows: [Row] = []
    /// Mistakes that some search did not find.
    private(set) var missed = 0

    init(_ sweep: Sweep, _ finds: [[Find]]) {
        for (plant, finds) in zip(sweep.plants, finds) {
            let isMissed = finds.contains { $0.checker == nil }
            if isMissed { missed += 1 }
            // A search that failed stands for more seeds than any that did not.
            let counts = finds.map { $0.checker == nil ? Int.max : $0.seeds }.sorted()
            func text(_ count: Int) -> String { count == .max ? "not found" : "\(count)" }
            var checkers: [String] = []
            for checker in finds.compactMap(\.checker).sorted() where !checkers.contains(checker) {
                checkers.append(checker)
            }
            rows.append(
                Row(cells: [
                    plant.bug.rawValue, checkers.isEmpty ? "nobody" : checkers.joined(separator: ", "),
                    text(counts[counts.count / 2]), text(counts[0]), text(counts[counts.count - 1]),
                    "\(sweep.budget(of: plant))",
                ]))
        }
    }

    var markdown: String {
        let lines = [Table.head, Table.head.map { _ in "---" }] + rows.map(\.cells)
        return lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }

    var text: String {
        let lines = [Table.head] + rows.map(\.cells)
        let widths = Table.head.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
        return lines.map { cells in
            cells.indices.map { column in
                let space = String(repeating: " ", count: widths[column] - cells[column].count)
                // Words to the left, numbers to the right.
                return column < 2 ? cells[column] + space : space + cells[column]
            }.joined(separator: "  ")
        }.joined(separator: "\n")
    }
}

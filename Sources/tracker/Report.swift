// What commands tell: text for people, JSON for programs.

import ArgumentParser
import Foundation
import Primitives

/// The flag of all commands that report.
struct ReportOptions: ParsableArguments {
    @Flag(name: .customLong("json"), help: "Report as one JSON object on standard output.")
    var isJSON = false

    /// Writes an object as JSON, keys sorted; what is nil is left out.
    func writeJSON(_ object: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        Terminal.output.write(String(decoding: try encoder.encode(object), as: UTF8.self) + "\n")
    }
}

/// Writes an object as JSON on a line of its own: an event of many.
func writeJSONLine(_ object: some Encodable) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(object) else { return }
    Terminal.output.write(String(decoding: data, as: UTF8.self) + "\n")
}

/// Rows of cells under each other.
struct TextTable {
    enum Alignment {
        case left
        case right
    }

    var alignments: [Alignment]
    private var rows: [[String]] = []

    init(_ alignments: Alignment...) { self.alignments = alignments }

    /// All columns to the left; each row has as many cells as the first.
    init(rows: [[String]]) {
        alignments = Array(repeating: .left, count: rows.first?.count ?? 0)
        precondition(rows.allSatisfy { $0.count == alignments.count }, "a row has a cell for each column")
        self.rows = rows
    }

    mutating func add(_ cells: String...) {
        precondition(cells.count == alignments.count, "a row has a cell for each column")
        rows.append(cells)
    }

    /// The table with its columns aligned.
    ///
    /// - Parameters:
    ///   - indent: stands before each row.
    ///   - header: styles the first row; nil leaves it plain.
    /// - Returns: a line for each row, each with its end.
    func text(indent: String = "", header: ((String) -> String)? = nil) -> String {
        let widths = alignments.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        var text = ""
        for (number, row) in rows.enumerated() {
            var cells: [String] = []
            for (column, cell) in row.enumerated() {
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                cells.append(alignments[column] == .right ? padding + cell : cell + padding)
            }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            text += indent + (number == 0 ? header?(line) ?? line : line) + "\n"
        }
        return text
    }
}

enum Figures {
    /// As in `1,234,567`.
    static func grouped(_ number: some BinaryInteger) -> String {
        var groups: [String] = []
        var rest = number.magnitude
        while rest >= 1000 {
            groups.append(String(String(1000 + rest % 1000).dropFirst()))
            rest /= 1000
        }
        return (number < 0 ? "-" : "") + ([String(rest)] + groups.reversed()).joined(separator: ",")
    }

    /// As in `1 peer`, `2 peers`.
    static func counted(_ number: some BinaryInteger, _ noun: String) -> String {
        "\(grouped(number)) \(noun)\(number == 1 ? "" : "s")"
    }

    /// As in `1.4 GiB`.
    static func bytes(_ count: Int) -> String {
        guard count >= 1024 else { return counted(count, "byte") }
        var value = Double(count)
        var unit = 0
        while value >= 1024, unit < 5 {
            value /= 1024
            unit += 1
        }
        return "\(decimal(value, 1)) \(["", "KiB", "MiB", "GiB", "TiB", "PiB"][unit])"
    }

    /// `30 min`, `1 h 30 min`, `2 d 3 h`: the two largest units.
    static func span(seconds: Int) -> String {
        let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)]
        var parts: [String] = []
        var rest = max(0, seconds)
        for (name, length) in units where parts.count < 2 {
            if rest >= length { parts.append("\(rest / length) \(name)") } else if !parts.isEmpty { break }
            rest %= length
        }
        return parts.isEmpty ? "0 s" : parts.joined(separator: " ")
    }

    static func milliseconds(_ span: Primitives.Duration) -> String {
        "\(decimal(Double(span.nanoseconds) / 1e6, 1)) ms"
    }

    /// With so many digits after the point.
    static func decimal(_ value: Double, _ digits: Int) -> String {
        value.formatted(.number.precision(.fractionLength(digits)).grouping(.never).locale(Locale(identifier: "en")))
    }
}

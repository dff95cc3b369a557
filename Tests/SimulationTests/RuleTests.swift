// The list of rules, the page that explains them and the sources that name them say the same.

import Foundation
import PeerLogic
import Simulator
import Testing
import TrackerLogic

@Suite("Rules")
struct RuleTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")

    /// A row of the table in docs/rules.md.
    private struct Row {
        var number: Int
        var name: String
        var why: String
        var files: [String]
        var invariants: [String]
        var plantedBugs: [String]

        init?(_ line: Substring) {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 5, let head = cells[0].firstMatch(of: /\*\*(\d+)\*\* `(\w+)`: .+\./),
                let number = Int(head.1)
            else { return nil }
            self.number = number
            name = String(head.2)
            why = cells[1]
            func names(_ cell: String) -> [String] { cell.matches(of: /`([^`]+)`/).map { String($0.1) } }
            (files, invariants, plantedBugs) = (names(cells[2]), names(cells[3]), names(cells[4]))
        }
    }

    private func names(_ rule: Rule) -> [String] {
        rule.plantedBugs.map(\.rawValue) + rule.plantedPeerBugs.map(\.rawValue)
    }

    private func text(_ path: String) throws -> String {
        try String(contentsOf: RuleTests.root.appending(path: path), encoding: .utf8)
    }

    @Test
    func `each rule is checked, and breaks where a mistake is planted`() {
        for rule in Rule.allCases {
            #expect(!rule.invariants.isEmpty && !names(rule).isEmpty, "rule \(rule.rawValue)")
        }
        // Each mistake breaks one rule; an invariant may serve several.
        #expect(
            Rule.allCases.flatMap(\.plantedBugs).map(\.rawValue).sorted()
                == PlantedBug.allCases.map(\.rawValue).sorted())
        #expect(
            Rule.allCases.flatMap(\.plantedPeerBugs).map(\.rawValue).sorted()
                == PlantedPeerBug.allCases.map(\.rawValue).sorted())
        #expect(Set(Rule.allCases.flatMap(\.invariants)) == Set(Invariant.allCases))
    }

    @Test
    func `the page of rules has them all, and the files that keep them are there`() throws {
        let rows = try text("docs/rules.md").split(separator: "\n").compactMap { Row($0) }
        #expect(rows.map(\.number) == Rule.allCases.map(\.rawValue))
        for (row, rule) in zip(rows, Rule.allCases) {
            #expect(row.name == "\(rule)")
            #expect(row.why.count > 20, "rule \(rule.rawValue) does not say why")
            #expect(row.invariants == rule.invariants.map(\.rawValue))
            #expect(row.plantedBugs == names(rule))
            #expect(!row.files.isEmpty)
            for file in row.files { #expect((try? text(file)) != nil, "rule \(rule.rawValue): there is no \(file)") }
        }
    }

    /// A number that stands for nothing, or a document that is not here, explains nothing.
    @Test
    func `whatever sources and documents refer to is here`() throws {
        var count = 0
        for folder in ["Sources", "Tests", "docs"] {
            let names = try FileManager.default.subpathsOfDirectory(
                atPath: RuleTests.root.appending(path: folder).path)
            for name in names
            where !name.contains(".build/") && ["swift", "md", "py"].contains(name.split(separator: ".").last) {
                guard let text = try? text("\(folder)/\(name)") else { continue }
                for match in text.matches(of: /\brules? (\d+)\b/) {
                    count += 1
                    let number = Int(match.1) ?? 0
                    #expect(Rule(rawValue: number) != nil, "\(folder)/\(name): there is no rule \(number)")
                }
                let stray = text.firstMatch(of: /\b(design|requirements) \(?[A-Z]?\d+(\.\d+)?\b/)
                #expect(stray == nil, "\(folder)/\(name): \(stray?.output.0 ?? "")")
            }
        }
        #expect(count > 20)
    }
}

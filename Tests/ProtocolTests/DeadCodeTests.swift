// What is declared and never named again is dead, and goes.

import Foundation
import Testing

@Suite("Dead code")
struct DeadCodeTests {
    /// Declared because a protocol of others wants it, or the compiler; nobody here names it.
    private static let wanted: Set<String> = [
        "Main", "OutboundIn", "OutboundOut", "channelWritabilityChanged", "handlerRemoved", "customMirror",
    ]

    private static let introducers: Set<String> = [
        "func", "var", "let", "struct", "enum", "class", "actor", "typealias", "case",
    ]

    /// A name that is declared, and where.
    private struct Declaration {
        var path: String
        var line: Int
    }

    /// The names that these sources declare once and never use.
    ///
    /// `sources` are by path: those that may declare what is dead. `others` are more texts in which a name may be used.
    static func dead(in sources: [String: String], besides others: [String] = []) -> [String] {
        var declarations: [String: [Declaration]] = [:]
        var uses: [String: Int] = [:]
        for (path, source) in sources {
            let tokens = SwiftTokenizer.tokens(of: source).filter { $0.kind != .comment && $0.kind != .string }
            for (place, token) in tokens.enumerated() where token.kind == .word {
                uses[token.text, default: 0] += 1
                guard place > 0, introducers.contains(tokens[place - 1].text) else { continue }
                // A case with a value is named by that; one with a list of conditions is a pattern.
                let next = place + 1 < tokens.count ? tokens[place + 1].text : ""
                if tokens[place - 1].text == "case", next == "=" || next == ":" || next == "." { continue }
                declarations[token.text, default: []].append(Declaration(path: path, line: token.line))
            }
        }
        for source in others {
            for token in SwiftTokenizer.tokens(of: source) where token.kind == .word {
                uses[token.text, default: 0] += 1
            }
        }
        return declarations.filter { name, places in
            // The system's constants stand in patterns.
            places.count == 1 && uses[name] == 1 && !wanted.contains(name) && name != name.uppercased()
        }.map { name, places in "\(places[0].path):\(places[0].line): \(name)" }.sorted()
    }

    @Test func `no declaration is dead`() throws {
        var sources: [String: String] = [:]
        var others: [String] = []
        for path in try PurityRules.swiftFiles(below: PurityTests.root) {
            // Links to Sources would count everything twice.
            guard !path.hasPrefix("Tests/PlantedBugs/Sources/") || path.contains("/planted-bugs/") else { continue }
            let text = try String(contentsOf: PurityTests.root.appending(path: path), encoding: .utf8)
            if path.hasPrefix("Sources/") { sources[path] = text } else { others.append(text) }
        }
        #expect(sources.count > 300)
        let dead = Self.dead(in: sources, besides: others)
        #expect(dead.isEmpty, "\n\(dead.joined(separator: "\n"))")
    }

    @Test func `what is named once is seen, and what is used is not`() {
        let source = """
            /// Calls `forgotten`, says this comment.
            struct Room {
                var size = 1
                let unread = 2
                func forgotten() {}
                func used() -> Int { size }
                enum Kind: String {
                    case named = "named"
                    case lost
                    case found
                }
                func all(_ kind: Kind) -> Int {
                    switch kind {
                    case .found: used()
                    default: 0
                    }
                }
            }
            """
        #expect(
            Self.dead(in: ["A.swift": source], besides: ["Room().all(.found)"]) == [
                "A.swift:4: unread", "A.swift:5: forgotten", "A.swift:9: lost",
            ])
    }
}

// The modules and the arrows between them, as four places say it: Package.swift, the `import`s of the sources, the
// table of docs/architecture.md, and the drawing there and at the head of Package.swift.

import Foundation

/// What each module may import, or does: of ours and of libraries.
struct ModuleMap: Equatable {
    /// By module, the names of what it imports.
    var arrows: [String: Set<String>] = [:]

    /// What comes with the system or the toolchain, which no package has to name.
    static let system: Set<String> = [
        "Darwin", "Dispatch", "Foundation", "Glibc", "Musl", "Swift", "Synchronization", "Testing",
    ]

    /// Only the arrows between these modules themselves.
    var ours: ModuleMap { ModuleMap(arrows: arrows.mapValues { $0.intersection(arrows.keys) }) }

    // MARK: Where it is written

    /// The targets of a Package.swift with the targets and products that they name.
    ///
    /// `kinds` are of `target`, `executableTarget` and `testTarget`.
    static func declared(by package: String, kinds: Set<String> = ["target", "executableTarget"]) -> ModuleMap {
        let code = SwiftTokenizer.tokens(of: package).filter { $0.kind != .comment }
        var map = ModuleMap()
        for index in code.indices.dropFirst() where kinds.contains(code[index].text) && code[index - 1].text == "." {
            guard index + 4 < code.count, code[index + 2].text == "name" else { continue }
            var depth = 0
            var isInDependencies = false
            var names: Set<String> = []
            var label = ""
            for place in (index + 1)..<code.count {
                let token = code[place]
                if token.kind == .punctuation { depth += token.text == "(" ? 1 : token.text == ")" ? -1 : 0 }
                if depth == 0 { break }
                if token.text == "," { label = "" }
                if token.kind == .word, place + 1 < code.count, code[place + 1].text == ":" {
                    label = token.text
                    isInDependencies = depth == 1 ? token.text == "dependencies" : isInDependencies
                }
                // The package of a product is no module.
                if token.kind == .string, isInDependencies, label != "package" { names.insert(token.text) }
            }
            map.arrows[code[index + 4].text] = names
        }
        return map
    }

    /// What the sources of each module below a folder import, without what the system brings.
    static func imported(by sources: [(path: String, text: String)], folder: String = "Sources") -> ModuleMap {
        var map = ModuleMap()
        for (path, text) in sources {
            let parts = path.split(separator: "/").map(String.init)
            guard parts.count > 2, parts[0] == folder else { continue }
            let code = SwiftTokenizer.tokens(of: text).filter { $0.kind != .comment }
            var names: Set<String> = []
            for (index, token) in code.enumerated() where token.kind == .word && token.text == "import" {
                let kinds = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
                let next = index + 1 < code.count && kinds.contains(code[index + 1].text) ? index + 2 : index + 1
                if next < code.count { names.insert(code[next].text) }
            }
            map.arrows[parts[1], default: []].formUnion(names.subtracting(system))
        }
        return map
    }

    /// The table of docs/architecture.md: the module in the first column, what it imports of ours in the third, before
    /// a semicolon; libraries come behind it.
    static func tabled(in document: String) -> ModuleMap {
        var map = ModuleMap()
        var isTable = false
        for line in document.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("| module |") {
                isTable = true
                continue
            }
            guard isTable, line.hasPrefix("|") else {
                isTable = false
                continue
            }
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 3, cells[0].hasPrefix("`") else { continue }
            let own = cells[2].split(separator: ";", omittingEmptySubsequences: false).first ?? ""
            let names = own.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            map.arrows[cells[0].replacing("`", with: "")] = Set(names).subtracting(["–", ""])
        }
        return map
    }

    /// The floors of a drawing: lines that begin with a number, and then have names; `°` marks what is pure.
    ///
    /// `margin` is what stands before each line, as `//` in a comment.
    static func floors(in text: String, margin: String = "") -> [String: Int] {
        var floors: [String: Int] = [:]
        for line in text.split(separator: "\n") where line.hasPrefix(margin) {
            let words = line.dropFirst(margin.count).split(separator: " ")
            guard words.count > 1, let floor = words.first.flatMap({ Int(String($0)) }) else { continue }
            for word in words.dropFirst() { floors[String(word.replacing("°", with: ""))] = floor }
        }
        return floors
    }

    // MARK: What may be wrong with it

    /// The floor of each module: 0 for one that imports none of ours, else one more than the highest of these.
    ///
    /// - Returns: without those that stand in a circle, or above one.
    var floors: [String: Int] {
        var floors: [String: Int] = [:]
        while true {
            let free = ours.arrows.filter { module, imports in
                floors[module] == nil && imports.allSatisfy { floors[$0] != nil }
            }
            if free.isEmpty { return floors }
            for (module, imports) in free { floors[module] = 1 + (imports.compactMap { floors[$0] }.max() ?? -1) }
        }
    }

    /// Modules that import one another, or stand above such.
    var circle: [String] { arrows.keys.filter { floors[$0] == nil }.sorted() }

    /// Where two maps differ, in sentences.
    static func differences(
        _ left: ModuleMap, _ leftName: String, _ right: ModuleMap, _ rightName: String
    ) -> [String] {
        var found: [String] = []
        for module in Set(left.arrows.keys).union(right.arrows.keys).sorted() {
            guard let one = left.arrows[module], let other = right.arrows[module] else {
                found.append("\(module) is not in \(left.arrows[module] == nil ? leftName : rightName)")
                continue
            }
            for name in one.subtracting(other).sorted() { found.append("\(module) → \(name) is not in \(rightName)") }
            for name in other.subtracting(one).sorted() { found.append("\(module) → \(name) is not in \(leftName)") }
        }
        return found
    }
}

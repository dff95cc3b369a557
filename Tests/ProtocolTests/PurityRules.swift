// The rules of the house (docs/architecture.md), as a machine checks them: which module may import what, what pure
// logic may not name, and how files look.

import Foundation

/// A rule broken, and where.
struct Breach: Hashable, CustomStringConvertible {
    var path: String
    /// Counted from 1; 0 for a whole file.
    var line: Int
    var message: String

    var description: String { "\(path):\(line): \(message)" }
}

enum PurityRules {
    /// What each module may import of our own and of the system.
    ///
    /// The rest of the world is for the other modules, whose arrows `ModuleMapTests` checks.
    static let imports: [String: [String]] = [
        "Primitives": [],
        "Wire": ["Primitives"],
        "TrackerLogic": ["Primitives", "Wire"],
        "PeerLogic": ["Primitives", "Wire"],
        "Simulator": ["Primitives", "Wire", "TrackerLogic", "PeerLogic"],
        "Datagrams": ["Primitives", "Glibc"],
    ]
    static let pureModules = ["Primitives", "Wire", "TrackerLogic", "PeerLogic", "Simulator"]

    static let maxLines = 500
    static let maxLogicLines = 400
    static let maxColumns = 120
    /// In which the head comment of a source file begins.
    static let headLines = 3

    /// Words that pure logic may not use, with the reason.
    static let forbiddenWords: [String: String] = {
        let reasons: [(String, [String])] = [
            (
                "reads a clock; time is an argument",
                [
                    "ContinuousClock", "SuspendingClock", "Date", "DispatchTime", "clock_gettime", "gettimeofday",
                    "timespec_get", "mach_absolute_time", "CFAbsoluteTimeGetCurrent",
                ]
            ),
            (
                "draws from the system's randomness; use RandomStream",
                [
                    "SystemRandomNumberGenerator", "RandomNumberGenerator", "randomElement", "shuffled", "arc4random",
                    "arc4random_uniform", "getrandom", "getentropy", "drand48", "rand", "srand", "UUID",
                ]
            ),
            (
                "runs things at once; the logic is one step after another",
                [
                    "async", "await", "actor", "Task", "TaskGroup", "withTaskGroup", "AsyncStream", "AsyncSequence",
                    "MainActor", "globalActor", "Thread", "Mutex", "Atomic", "nonisolated",
                ]
            ),
            (
                "has an order that changes from run to run; use an array, or a flat table",
                ["Dictionary", "Set", "Hasher", "hashValue", "AnyHashable", "ObjectIdentifier"]
            ),
            ("stops the program without a word of what was expected; use precondition", ["fatalError"]),
            (
                "reaches the outside world",
                [
                    "CommandLine", "ProcessInfo", "FileManager", "getenv", "readLine", "_silgen_name", "_extern",
                    "dlsym",
                ]
            ),
        ]
        var words: [String: String] = [:]
        for (reason, names) in reasons { for name in names { words[name] = reason } }
        return words
    }()

    /// Functions that pure logic may not call; the same word may be a name of ours behind a dot.
    static let forbiddenCalls = ["print", "debugPrint", "dump", "time", "random"]

    // MARK: The whole tree

    /// Checks everything below the repository's root.
    ///
    /// - Returns: breaches, in order of their paths.
    static func check(root: URL) throws -> [Breach] {
        var breaches: [Breach] = []
        for path in try swiftFiles(below: root) {
            let source = try String(contentsOf: root.appending(path: path), encoding: .utf8)
            breaches += check(source, path: path)
        }
        for path in ["Makefile", ".ci/run", "Package.swift"] {
            guard let text = try? String(contentsOf: root.appending(path: path), encoding: .utf8) else { continue }
            for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
            where line.contains("SWIFT_DETERMINISTIC_HASHING") {
                breaches.append(Breach(path: path, line: number + 1, message: "deterministic hashing hides leaks"))
            }
        }
        return breaches
    }

    /// Paths of all Swift files below the root but in hidden folders.
    static func swiftFiles(below root: URL) throws -> [String] {
        func walk(_ folder: URL, _ prefix: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().flatMap { name in
                let url = folder.appending(path: name)
                var isFolder: ObjCBool = false
                guard !name.hasPrefix("."), FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder)
                else { return [String]() }
                if isFolder.boolValue { return try walk(url, "\(prefix)\(name)/") }
                return name.hasSuffix(".swift") ? [prefix + name] : []
            }
        }
        return try walk(root, "")
    }

    // MARK: One file

    static func check(_ source: String, path: String) -> [Breach] {
        let parts = path.split(separator: "/").map(String.init)
        let module = parts.first == "Sources" && parts.count > 2 ? parts[1] : nil
        let isPure = module.map(pureModules.contains) ?? false
        let tokens = SwiftTokenizer.tokens(of: source)
        var found: [(line: Int, message: String)] = tidiness(source, isPure: isPure)
        found += head(tokens, isSource: module != nil)
        found += importBreaches(tokens, module: module)
        if isPure {
            let code = tokens.filter { $0.kind != .comment }
            found += impurities(code)
            found += unembeddables(code)
        }
        if module != nil { found += promises(tokens) }
        if path == "Package.swift" { found += dependencyBreaches(tokens.filter { $0.kind != .comment }) }
        return found.map { Breach(path: path, line: $0.line, message: $0.message) }
    }

    private static func tidiness(_ source: String, isPure: Bool) -> [(line: Int, message: String)] {
        var found: [(line: Int, message: String)] = []
        var lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        if lines.last == "" { lines.removeLast() }
        let limit = isPure ? maxLogicLines : maxLines
        if lines.count > limit { found.append((0, "has \(lines.count) lines, more than \(limit)")) }
        for (number, line) in lines.enumerated() {
            if line.utf8.contains(UInt8(ascii: "\t")) { found.append((number + 1, "has a tab")) }
            if line.utf8.count > maxColumns, line.count > maxColumns {
                found.append((number + 1, "has \(line.count) columns, more than \(maxColumns)"))
            }
        }
        return found
    }

    /// Every file begins with a comment or an import; in Sources a comment is among the first lines.
    private static func head(_ tokens: [SwiftToken], isSource: Bool) -> [(line: Int, message: String)] {
        guard let first = tokens.first else { return [(1, "is empty")] }
        if first.line == 1, first.kind == .comment { return [] }
        let comment = tokens.first { $0.kind == .comment }?.line ?? .max
        let isImport = first.line == 1 && ["import", "@"].contains(first.text)
        if isImport, !isSource || comment <= headLines { return [] }
        return [(1, "does not begin by saying what it is for")]
    }

    /// Work that was put off.
    private static func promises(_ tokens: [SwiftToken]) -> [(line: Int, message: String)] {
        var found: [(line: Int, message: String)] = []
        for comment in tokens where comment.kind == .comment {
            for (number, line) in comment.text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
                let words = line.split { !$0.isLetter }
                for word in ["TODO", "FIXME", "XXX", "HACK"] where words.contains(Substring(word)) {
                    found.append((comment.line + number, "\(word): do it, or write an issue"))
                }
            }
        }
        return found
    }

    private static func importBreaches(
        _ tokens: [SwiftToken], module: String?
    ) -> [(line: Int, message: String)] {
        guard let module else { return [] }
        let code = tokens.filter { $0.kind != .comment }
        var found: [(line: Int, message: String)] = []
        for (index, token) in code.enumerated() where token.kind == .word && token.text == "import" {
            var next = index + 1
            let kinds = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
            if next < code.count, kinds.contains(code[next].text) { next += 1 }
            guard next < code.count else { continue }
            let imported = code[next].text
            if let allowed = imports[module] {
                if !allowed.contains(imported) { found.append((token.line, "\(module) may not import \(imported)")) }
            }
        }
        return found
    }

    // MARK: Pure logic

    private static func impurities(_ code: [SwiftToken]) -> [(line: Int, message: String)] {
        var found: [(line: Int, message: String)] = []
        for (index, token) in code.enumerated() {
            func text(_ ahead: Int) -> String? {
                let place = index + ahead
                return code.indices.contains(place) && code[place].kind != .string ? code[place].text : nil
            }
            if token.kind == .word {
                let isCall = text(1) == "(" && !["func", "case"].contains(text(-1))
                if let reason = forbiddenWords[token.text] {
                    found.append((token.line, "\(token.text) \(reason)"))
                } else if token.text == "random", isCall, text(-1) == "." {
                    found.append((token.line, "random( draws from the system's randomness; use RandomStream"))
                } else if token.text == "shuffle", isCall, text(-1) == ".", text(2) != "&" {
                    found.append((token.line, "shuffle( is the standard library's; use RandomStream's"))
                } else if token.text == "hash", isCall, text(2) == "into" {
                    found.append((token.line, "hash(into: has a seed that changes from run to run"))
                } else if forbiddenCalls.contains(token.text), isCall, text(-1) != "." {
                    found.append((token.line, "\(token.text)( reaches the outside world"))
                }
            }
            if token.kind == .punctuation, token.text == "[", isDictionary(code, from: index) {
                found.append((token.line, "a dictionary has an order that changes from run to run"))
            }
        }
        return found
    }

    /// Whether a bracket opens a dictionary type or literal, rather than an array or a subscript.
    ///
    /// A subscript stands right behind what it belongs to. In anything else, a colon on the bracket's own level makes a
    /// dictionary, unless it belongs to a `?` that has space on both sides.
    private static func isDictionary(_ code: [SwiftToken], from open: Int) -> Bool {
        if open > 0, code[open].isAdjacent {
            let before = code[open - 1]
            let isOperand = before.kind == .word || before.kind == .number || before.kind == .string
            if isOperand || [")", "]", "}", "?", "!", ">"].contains(before.text) { return false }
        }
        var depth = 0
        var ternaries = 0
        for index in open..<code.count where code[index].kind == .punctuation {
            switch code[index].text {
            case "[", "(", "{": depth += 1
            case "]", ")", "}":
                depth -= 1
                if depth == 0 { return false }
            case "?" where depth == 1 && !code[index].isAdjacent: ternaries += 1
            case ":" where depth == 1:
                if ternaries == 0 { return true }
                ternaries -= 1
            default: break
            }
        }
        return false
    }

    // MARK: The package

    /// Compares the dependencies of the pure modules in Package.swift with what they may import.
    private static func dependencyBreaches(_ code: [SwiftToken]) -> [(line: Int, message: String)] {
        var found: [(line: Int, message: String)] = []
        var seen: Set<String> = []
        for index in code.indices where ["target", "executableTarget"].contains(code[index].text) {
            guard index > 0, code[index - 1].text == ".", index + 4 < code.count, code[index + 2].text == "name" else {
                continue
            }
            let module = code[index + 4].text
            guard let allowed = imports[module] else { continue }
            seen.insert(module)
            var depth = 0
            var isInDependencies = false
            for token in code[(index + 1)...] {
                if token.text == "(", token.kind == .punctuation { depth += 1 }
                if token.text == ")", token.kind == .punctuation {
                    depth -= 1
                    if depth == 0 { break }
                }
                if token.kind == .word { isInDependencies = token.text == "dependencies" || isInDependencies }
                if token.kind == .word, token.text.hasSuffix("Settings") { isInDependencies = false }
                if isInDependencies, token.kind == .string, !allowed.contains(token.text) {
                    found.append((token.line, "\(module) may not depend on \(token.text)"))
                }
                if token.kind == .word, token.text == "unsafeFlags" {
                    found.append((token.line, "\(module) may not use unsafe flags"))
                }
            }
        }
        for module in pureModules where !seen.contains(module) {
            found.append((0, "the package has no target \(module)"))
        }
        return found
    }
}

// The logic is pure, the files are tidy: checked for every file of the repository, and the check is checked.

import Foundation
import Testing

@Suite("Purity")
struct PurityTests {
    /// The repository's root, found from this very file.
    static let root = URL(filePath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    @Test func `the repository keeps its rules`() throws {
        let breaches = try PurityRules.check(root: Self.root)
        #expect(breaches.isEmpty, "\n\(breaches.map(\.description).joined(separator: "\n"))")
    }

    @Test func `the check sees the whole repository`() throws {
        let paths = try PurityRules.swiftFiles(below: Self.root)
        #expect(paths.contains("Package.swift"))
        #expect(paths.contains("Tests/ProtocolTests/PurityTests.swift"))
        for module in PurityRules.pureModules {
            #expect(paths.contains { $0.hasPrefix("Sources/\(module)/") }, "\(module) has no files")
        }
        #expect(!paths.contains { $0.contains("/.") || $0.hasPrefix(".") })
    }

    /// Whether this is a checkout, rather than an archive, and git is at hand.
    static let hasGit = (try? git("rev-parse", "--is-inside-work-tree")) == "true\n"

    static func git(_ arguments: String...) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["git", "-C", root.path, "-c", "safe.directory=*"] + arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = Pipe()
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }

    @Test(.enabled(if: hasGit))
    func `nothing that was built is in the repository`() throws {
        let paths = try Self.git("ls-files").split(separator: "\n")
        let built = paths.filter { path in
            path.split(separator: "/").contains { $0.hasPrefix(".build") || $0 == "__pycache__" }
                || [".o", ".a", ".so", ".wasm", ".sqlite", ".profraw", ".pyc"].contains { path.hasSuffix($0) }
        }
        #expect(built.isEmpty)
        #expect(paths.contains("Package.swift"))
    }

    // MARK: The check is checked

    /// Code that breaks a rule, in a line of its own, and a part of what is said of it.
    static let breaches: [(code: String, message: String)] = [
        ("import Foundation", "may not import Foundation"),
        ("import Glibc", "may not import Glibc"),
        ("import Dispatch", "may not import Dispatch"),
        ("import Synchronization", "may not import Synchronization"),
        ("import Server", "may not import Server"),
        ("@preconcurrency import Foundation", "may not import Foundation"),
        ("public import Foundation", "may not import Foundation"),
        ("import struct Foundation.Data", "may not import Foundation"),
        ("import func Glibc.time", "may not import Glibc"),
        ("let a1 = ContinuousClock().now", "ContinuousClock"),
        ("let a2 = SuspendingClock.now", "SuspendingClock"),
        ("let a3 = Date()", "Date"),
        ("func a4() { clock_gettime(0, nil) }", "clock_gettime"),
        ("let a5 = time(nil)", "time("),
        ("let a6 = Glibc.gettimeofday", "gettimeofday"),
        ("var b1 = SystemRandomNumberGenerator()", "SystemRandomNumberGenerator"),
        ("let b2 = Int.random(in: 0..<5)", "random("),
        ("let b3 = UInt64.random(in: 0...9, using: &generator)", "random("),
        ("let b4 = [1, 2].randomElement()", "randomElement"),
        ("let b5 = [1, 2].shuffled()", "shuffled"),
        ("func b6() { elements.shuffle() }", "shuffle("),
        ("func b7() { elements.shuffle(using: &generator) }", "shuffle("),
        ("let b8 = \"\\([1, 2].shuffled())\"", "shuffled"),
        ("let b9 = #\"\\#(Bool.random())\"#", "random("),
        ("func b10() { _ = random() }", "random("),
        ("func c1() async {}", "async"),
        ("let c2 = await c1()", "await"),
        ("let c3 = Task { 1 }", "Task"),
        ("actor C4 {}", "actor"),
        ("nonisolated(unsafe) var c5 = 0", "nonisolated"),
        ("let d1 = Dictionary<Int, Int>()", "Dictionary"),
        ("let d2: [Int: String]", "a dictionary"),
        ("let d3 = [1: 2]", "a dictionary"),
        ("let d4: [Int:Int] = [:]", "a dictionary"),
        ("let d5: Set<Int> = []", "Set"),
        ("func d6(_ x: [String : [Int]]?) {}", "a dictionary"),
        ("let d7 = [[1: 2]]", "a dictionary"),
        ("let d8 = f(x ? [a: b] : nil)", "a dictionary"),
        ("let d9 = [x ? 1 : 2: 3]", "a dictionary"),
        ("func d10(into hasher: inout Hasher) {}", "Hasher"),
        ("let d11 = 5.hashValue", "hashValue"),
        ("func d12() { x.hash(into: &y) }", "hash(into"),
        ("let d13: Array<[Int: Int]>", "a dictionary"),
        ("func e1() { fatalError() }", "fatalError"),
        ("let g1 = [a].map(\\.name)", "key path"),
        ("let g2 = [a].contains(where: \\.isUp)", "key path"),
        ("let g3 = \\A.name", "key path"),
        ("let g4 = [a].compactMap(\\.self)", "key path"),
        ("func g5(_ x: WritableKeyPath<A, Int>) {}", "WritableKeyPath"),
        ("let g6 = \"\\([a].map(\\.name))\"", "key path"),
        ("struct G7: Codable {}", "Codable"),
        ("extension G8: Encodable {}", "Encodable"),
        ("struct G9: Sendable, Decodable {}", "Decodable"),
        ("enum G10: String, CodingKey { case a }", "CodingKey"),
        ("let g11 = Mirror(reflecting: a)", "Mirror"),
        ("func h1() throws {}", "throws does not say"),
        ("func h2() throws -> Int { 1 }", "throws does not say"),
        ("init(h3: Int) throws { self.init() }", "throws does not say"),
        ("let h4: () throws -> Void", "throws does not say"),
        ("func h5() { do { try a() } catch { b() } }", "do does not say"),
        ("func h6() { do { if x { try a() } } catch { b() } }", "do does not say"),
        ("func h7(_ error: any Error) {}", "any Error"),
        ("func h8() throws(any Error) {}", "any Error"),
        ("let i1 = 1 << 32", "shifted out"),
        ("let i2 = 1 << 31", "shifted out"),
        ("let i3 = random.below(1 << 50)", "shifted out"),
        ("let i4 = 1 &<< 40", "shifted out"),
        ("let i5: Int = 1 << 40", "shifted out"),
        ("let i8: UInt32 = 1 << 32", "shifted out"),
        ("let i6 = x | 3 << 3_2", "shifted out"),
        ("let i7 = Int(UInt32.max)", "Int(UInt32.max"),
        ("let j1 = String(describing: a)", "String(describing"),
        ("let j2 = String(reflecting: a)", "String(reflecting"),
        ("// TODO: later", "TODO"),
        ("/* one\n FIXME two */", "FIXME"),
        ("func e2() { print(1) }", "print("),
        ("let e3 = CommandLine.arguments", "CommandLine"),
        ("@_silgen_name(\"time\") func e4() -> Int", "_silgen_name"),
        ("let f1 = \"a\tb\"", "tab"),
        ("let f2 = \"\(String(repeating: "x", count: 120))\"", "columns"),
    ]

    /// Code that looks like a breach, and is none.
    static let innocents = [
        "let a = table[row: 3]", "let a = f(x)[row: 3, column: 4]", "let a = x?[at: 1] ?? y![at: 2]",
        "let a = [1, 2, 3]", "let a = [Int]()", "let a: [(key: Int, value: Int)] = []", "let a = [x ? 1 : 2, 3]",
        "let a = [f(x: 1), g { (y: Int) in y }]", "let a: [8 of Int] = [1, 2, 3, 4, 5, 6, 7, 8]",
        "let a = array[x ? 1 : 2]", "let a: [any P<[Int]>] = []", "let a = x.map { [y] in y }",
        "func f() { random.shuffle(&elements) }", "let a = world.random.below(5)", "func random(_ x: Int) {}",
        "mutating func shuffle<Element>(_ elements: inout [Element]) {}", "let time = now", "let a = entry.time(of: 3)",
        "func time(of x: Int) {}", "case time(Int)", "let a = hash(bytes, secret: 1)", "struct A: Hashable {}",
        "// import Foundation, Date, Dictionary, async", "/* Task /* nested await */ Set */",
        "let a = \"Dictionary Set async [1: 2] Date() .random()\"", "let a = #\"a \"quoted\" Set \\(notCode)\"#",
        "let a = \"\"\"\n    Set \"Dictionary\" async\n    \"\"\"", "let a = \"\\(x) Set \\\"Date\\\"\"",
        "let `async` = 1", "let isAsync = setAccess(dated)", "/// A todo list: asynchronous, not a hack.",
        "func f() throws(E) {}", "func f() throws(E) -> Int { 1 }", "let a: () throws(E) -> Void", "func throwing() {}",
        "do throws(E) { try a() } catch { b() }", "do { a() }", "do { a() }; if x { b() }", "let a = try? b()",
        "let a = [b].map { $0.name }", "let a = \"\\\\.name\"", "let a = \"\\n\"", "/// \\.name, Codable, throws.",
        "let a = 1 << 30", "let a: UInt64 = 1 << 62", "let a: Int64 = 1 << 62", "let a: UInt32 = 1 << 31",
        "let a = UInt64(1) << 40",
        "let a = x << 40",
        "let a = 1 << bits", "let a = b < 1 << 4", "let a = UInt64(UInt32.max)", "let a = Int(clamping: UInt32.max)",
        "let a: any P = b", "let a = String(b)", "let a = String(decoding: b, as: UTF8.self)",
        "switch x { case [1, 2]: break; default: break }", "let a = (x: 1, y: [2])", "let a = \"\u{E9}\u{E8}\"",
    ]

    private static let head = "/// A file of the tests.\n\n"

    @Test(arguments: breaches)
    func `a breach in the logic is caught, in its line`(_ breach: (code: String, message: String)) {
        for module in PurityRules.pureModules {
            let source = Self.head + "let before = 1\n" + breach.code + "\nlet after = 1\n"
            let found = PurityRules.check(source, path: "Sources/\(module)/Folder/File.swift")
            #expect(found.contains { $0.message.contains(breach.message) }, "\(found)")
            let lines = 4..<4 + breach.code.split(separator: "\n").count
            #expect(found.allSatisfy { lines.contains($0.line) }, "\(found)")
        }
    }

    @Test(arguments: innocents)
    func `what only looks like a breach is let pass`(_ code: String) {
        let found = PurityRules.check(Self.head + code + "\n", path: "Sources/TrackerLogic/File.swift")
        #expect(found.isEmpty)
    }

    @Test(arguments: [
        ("Primitives", ["Wire", "TrackerLogic", "PeerLogic", "Simulator"], []),
        ("Wire", ["TrackerLogic", "PeerLogic", "Simulator", "Datagrams"], ["Primitives"]),
        ("TrackerLogic", ["PeerLogic", "Simulator", "Datagrams"], ["Primitives", "Wire"]),
        ("PeerLogic", ["TrackerLogic", "Simulator"], ["Primitives", "Wire"]),
        ("Simulator", ["Server", "Datagrams", "tracker"], ["Primitives", "Wire", "TrackerLogic", "PeerLogic"]),
        ("Datagrams", ["Wire", "TrackerLogic", "Server", "Foundation"], ["Primitives", "Glibc"]),
        ("Server", [], ["TrackerLogic", "Web", "Wire", "Foundation", "Glibc"]),
    ])
    func `each module imports what the map allows it`(_ module: String, _ forbidden: [String], _ allowed: [String]) {
        for (names, count) in [(forbidden, 1), (allowed, 0)] {
            for name in names {
                let found = PurityRules.check(Self.head + "import \(name)\n", path: "Sources/\(module)/File.swift")
                #expect(found.map(\.line) == Array(repeating: 3, count: count), "\(module) imports \(name)")
            }
        }
    }

    @Test func `outside the logic, the world may be used, but files are tidy`() {
        let worldly = Self.head + "import Foundation\nlet a = Date()\nlet b = [1: 2]\nfunc c() async { print(1) }\n"
        #expect(PurityRules.check(worldly, path: "Sources/Server/File.swift").isEmpty)
        #expect(PurityRules.check(worldly, path: "Tests/RuntimeTests/FileTests.swift").isEmpty)
        let untidy = Self.head + "let a = 1\t\n"
        #expect(PurityRules.check(untidy, path: "Tests/RuntimeTests/FileTests.swift").map(\.line) == [3])
        #expect(PurityRules.check(untidy, path: "Benchmarks/Sources/File.swift").map(\.line) == [3])
    }

    @Test func `files are not too long, and say what they are for`() {
        func lines(_ count: Int) -> String { Self.head + String(repeating: "let a = 1\n", count: count - 2) }
        #expect(PurityRules.check(lines(400), path: "Sources/Wire/File.swift").isEmpty)
        #expect(PurityRules.check(lines(401), path: "Sources/Wire/File.swift").map(\.line) == [0])
        #expect(PurityRules.check(lines(500), path: "Sources/Server/File.swift").isEmpty)
        #expect(PurityRules.check(lines(501), path: "Sources/Server/File.swift").map(\.line) == [0])
        #expect(PurityRules.check(lines(501), path: "Tests/A/File.swift").map(\.line) == [0])

        func check(_ source: String, _ path: String) -> Int { PurityRules.check(source, path: path).count }
        #expect(check("import Primitives\n\nlet a = 1\n", "Sources/Wire/File.swift") == 1)
        #expect(check("import Primitives\n\n/// A.\nlet a = 1\n", "Sources/Wire/File.swift") == 0)
        #expect(check("let a = 1\n", "Sources/Server/File.swift") == 1)
        #expect(check("import Testing\n\nlet a = 1\n", "Tests/A/File.swift") == 0)
        #expect(check("let a = 1\n", "Tests/A/File.swift") == 1)
        #expect(check("\n/// A.\n", "Tests/A/File.swift") == 1)
        #expect(check("", "Tests/A/File.swift") == 1)

        // No line is too long: neither code nor the rows of tables, nor the lines of texts.
        let long = String(repeating: "x", count: 120)
        #expect(check(Self.head + "/// | \(long) |\n", "Sources/Wire/File.swift") == 1)
        #expect(check(Self.head + "let a = \"\"\"\n    \(long)\n    \"\"\"\n", "Sources/Wire/File.swift") == 1)
        #expect(check(Self.head + "f(\n    \"\(long)\")\n", "Sources/Wire/File.swift") == 1)
        #expect(check(Self.head + "let a = \"\(long)\"\n", "Sources/Wire/File.swift") == 1)
        #expect(check(Self.head + "/// \(long)\n", "Sources/Wire/File.swift") == 1)
    }

    @Test func `the package's dependencies are those of the map`() throws {
        let package = try String(contentsOf: Self.root.appending(path: "Package.swift"), encoding: .utf8)
        func check(_ old: String, _ new: String) -> [String] {
            #expect(package.contains(old), "the package no longer says \(old)")
            let changed = package.replacingOccurrences(of: old, with: new)
            return PurityRules.check(changed, path: "Package.swift").map(\.message)
        }
        let wire = ".target(name: \"Wire\", dependencies: [\"Primitives\"]"
        #expect(check(wire, wire).isEmpty)
        #expect(
            check(wire, ".target(name: \"Wire\", dependencies: [\"Primitives\", \"Server\"]")
                == ["Wire may not depend on Server"])
        #expect(
            check(wire, ".target(name: \"Wire\", dependencies: [.product(name: \"Crypto\", package: \"swift-crypto\")]")
                == ["Wire may not depend on Crypto", "Wire may not depend on swift-crypto"])
        #expect(check(wire, ".target(name: \"Wired\", dependencies: []").contains("the package has no target Wire"))
    }

    // MARK: In the real tree

    @Test func `a breach planted in a real file fails the check of the whole tree, with file and line`() throws {
        let copy = FileManager.default.temporaryDirectory.appending(path: "purity-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: copy) }
        for name in ["Sources", "Package.swift"] {
            try FileManager.default.copyItem(at: Self.root.appending(path: name), to: copy.appending(path: name))
        }
        let before = Set(try PurityRules.check(root: copy))

        // Each breach into a file of its own while there are enough, and always below what was there.
        let files = try PurityRules.swiftFiles(below: copy).filter { path in
            PurityRules.pureModules.contains { path.hasPrefix("Sources/\($0)/") }
        }
        var planted: [(path: String, line: Int, message: String)] = []
        var ends: [String: Int] = [:]
        for (number, breach) in Self.breaches.enumerated() {
            let path = files[number * 7 % files.count]
            let url = copy.appending(path: path)
            let source = try String(contentsOf: url, encoding: .utf8)
            try (source + breach.code + "\n").write(to: url, atomically: true, encoding: .utf8)
            let line = source.split(separator: "\n", omittingEmptySubsequences: false).count
            ends[path] = line + breach.code.split(separator: "\n").count - 1
            let offset = breach.code.hasPrefix("/*") ? 1 : 0
            planted.append((path, line + offset, breach.message))
        }
        let makefile = copy.appending(path: "Makefile")
        try "test:\n\tSWIFT_DETERMINISTIC_HASHING=1 swift test\n".write(to: makefile, atomically: true, encoding: .utf8)
        planted.append(("Makefile", 2, "deterministic hashing"))

        let found = Set(try PurityRules.check(root: copy)).subtracting(before)
        for (path, line, message) in planted {
            #expect(
                found.contains { $0.path == path && $0.line == line && $0.message.contains(message) },
                "\(path):\(line) \(message) is not found")
        }
        let elsewhere = found.filter { breach in
            breach.line > 0 && !planted.contains { $0.path == breach.path && $0.line == breach.line }
        }
        #expect(elsewhere.isEmpty)
    }
}

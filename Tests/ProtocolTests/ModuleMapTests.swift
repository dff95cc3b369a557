// The modules of the house and the arrows between them: Package.swift, sources and docs/architecture.md say the same.

import Foundation
import Testing

@Suite("Module map")
struct ModuleMapTests {
    private static func text(_ path: String) throws -> String {
        try String(contentsOf: PurityTests.root.appending(path: path), encoding: .utf8)
    }

    /// All that is wrong with a map.
    ///
    /// `sources` are by path, from `Sources/` on; `document` is docs/architecture.md.
    private static func faults(
        package: String, sources: [(path: String, text: String)], document: String
    ) -> [String] {
        let declared = ModuleMap.declared(by: package)
        let tests = ModuleMap.declared(by: package, kinds: ["testTarget"])
        let imported = ModuleMap.imported(by: sources)
        var found = ModuleMap.differences(declared, "Package.swift", imported, "the sources' imports")
        found += ModuleMap.differences(
            declared.ours, "Package.swift", ModuleMap.tabled(in: document), "the table of docs/architecture.md")
        if !declared.circle.isEmpty { found.append("in a circle: \(declared.circle.joined(separator: ", "))") }
        for (drawing, name) in [
            (ModuleMap.floors(in: document), "docs/architecture.md"),
            (ModuleMap.floors(in: package, margin: "//"), "Package.swift"),
        ] where drawing != declared.floors {
            for module in Set(drawing.keys).union(declared.floors.keys).sorted()
            where drawing[module] != declared.floors[module] {
                let place = declared.floors[module].map { "floor \($0)" } ?? "no floor"
                found.append("\(module) belongs on \(place) in the drawing of \(name)")
            }
        }
        // A test target may name more than it imports.
        for (module, imports) in ModuleMap.imported(by: sources, folder: "Tests").arrows {
            guard let named = tests.arrows[module] else { continue }
            for name in imports.subtracting(named).sorted() {
                found.append("\(module) → \(name) is not in Package.swift")
            }
        }
        return found
    }

    private static func realSources() throws -> [(path: String, text: String)] {
        try PurityRules.swiftFiles(below: PurityTests.root)
            .filter { ($0.hasPrefix("Sources/") || $0.hasPrefix("Tests/")) && !$0.hasPrefix("Tests/PlantedBugs/") }
            .map { ($0, try text($0)) }
    }

    @Test func `package, sources and documentation have the same modules and arrows, and no circle`() throws {
        let faults = Self.faults(
            package: try Self.text("Package.swift"), sources: try Self.realSources(),
            document: try Self.text("docs/architecture.md"))
        #expect(faults.isEmpty, "\n\(faults.joined(separator: "\n"))")
        #expect(ModuleMap.declared(by: try Self.text("Package.swift")).arrows.count > 12)
    }

    // MARK: The check is checked

    private static let package = """
        // 1 House
        // 0 Ground Street
        let package = Package(
            targets: [
                .target(name: "Ground", swiftSettings: [.define("A")]),
                .target(name: "Street", dependencies: [.product(name: "Paving", package: "stones")]),
                .executableTarget(name: "House", dependencies: ["Ground"], exclude: ["a.txt"]),
                .testTarget(name: "HouseTests", dependencies: ["House", "Ground"]),
            ])
        """
    private static let document = """
        1  House
        0  Ground°  Street

        | module | what lives there | imports |
        |---|---|---|
        | `Ground` | all | – |
        | `Street` | cars | –; stones |
        | `House` | people | Ground |

        | other | x | y |
        """
    private static let sources: [(path: String, text: String)] = [
        ("Sources/Ground/A.swift", "import Foundation\nlet a = 1\n"),
        ("Sources/Street/A.swift", "import Paving\n"),
        ("Sources/House/Rooms/A.swift", "import struct Ground.Plot\n// import Street\nlet b = \"import Street\"\n"),
        ("Tests/HouseTests/A.swift", "import House\nimport Testing\n"),
    ]

    @Test func `a map that is right has no faults`() {
        #expect(Self.faults(package: Self.package, sources: Self.sources, document: Self.document) == [])
    }

    @Test(arguments: [
        ("[\"Ground\"]", "[\"Ground\", \"Street\"]", "House → Street is not in the sources' imports"),
        ("[\"Ground\"]", "[\"Ground\", \"Street\"]", "House → Street is not in the table"),
        ("dependencies: [\"Ground\"], ", "", "House → Ground is not in Package.swift"),
        ("[.product(name: \"Paving\", package: \"stones\")]", "[]", "Street → Paving is not in Package.swift"),
        ("\"Ground\", swift", "\"Ground\", dependencies: [\"House\"], swift", "in a circle: Ground, House"),
        ("// 0 Ground Street", "// 0 Ground", "Street belongs on floor 0 in the drawing of Package.swift"),
        ("// 1 House", "// 2 House", "House belongs on floor 1 in the drawing of Package.swift"),
        ("[\"House\", \"Ground\"]", "[\"Ground\"]", "HouseTests → House is not in Package.swift"),
        (".target(name: \"Street\"", ".target(name: \"Lane\"", "Street is not in Package.swift"),
    ])
    func `a fault that is planted in the package is found`(_ old: String, _ new: String, _ fault: String) {
        #expect(Self.package.contains(old))
        let package = Self.package.replacingOccurrences(of: old, with: new)
        let found = Self.faults(package: package, sources: Self.sources, document: Self.document)
        #expect(found.contains { $0.hasPrefix(fault) }, "\(found)")
    }

    @Test(arguments: [
        ("| people | Ground |", "| people | – |", "House → Ground is not in the table of docs/architecture.md"),
        ("| people | Ground |", "| people | Ground, Street |", "House → Street is not in Package.swift"),
        ("| `House` | people | Ground |\n", "", "House is not in the table of docs/architecture.md"),
        ("1  House", "0  House", "House belongs on floor 1 in the drawing of docs/architecture.md"),
    ])
    func `a fault that is planted in the documentation is found`(_ old: String, _ new: String, _ fault: String) {
        #expect(Self.document.contains(old))
        let document = Self.document.replacingOccurrences(of: old, with: new)
        let found = Self.faults(package: Self.package, sources: Self.sources, document: document)
        #expect(found.contains(fault), "\(found)")
    }

    @Test func `an import that is planted in the sources is found`() {
        let planted = Self.sources + [("Sources/Ground/B.swift", "import House\n")]
        let found = Self.faults(package: Self.package, sources: planted, document: Self.document)
        #expect(found == ["Ground → House is not in Package.swift"])
    }
}

// swift-tools-version: 6.2
//
// Mutants: thousands of small mistakes in the logic, made by a machine. `mutate` reads the logic's sources, and writes
// them again so that each mistake is a choice by one number (Sources/mutate). The package in `Judge` compiles what it
// wrote once, and tries one mistake after another. `make mutants` does both; docs/mutants.md has what came of it.

import PackageDescription

let package = Package(
    name: "mutants",
    platforms: [.macOS(.v15)],
    dependencies: [.package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1")],
    targets: [
        .executableTarget(
            name: "mutate",
            dependencies: [
                .product(name: "SwiftOperators", package: "swift-syntax"),
                .product(name: "SwiftParser", package: "swift-syntax"),
                .product(name: "SwiftSyntax", package: "swift-syntax"),
            ])
    ],
    swiftLanguageModes: [.v6])

// swift-tools-version: 6.2
//
// The logic with all its mutants (written by `mutate` into ../.build/mutated), the simulator as it is, and `judge`,
// which tries one mutant after another.

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let aboutSources = [
    "DatagramTests.swift", "DeadCodeTests.swift", "ModuleMap.swift", "ModuleMapTests.swift", "PurityRules.swift",
    "PurityRules+Embedded.swift", "PurityTests.swift", "SwiftTokens.swift",
]

let package = Package(
    name: "judge",
    platforms: [.macOS(.v15)],
    targets: [
        .target(name: "MutationTable"),
        .target(name: "Mutation", dependencies: ["MutationTable"], swiftSettings: settings),
        .target(name: "Primitives", swiftSettings: settings),
        .target(name: "Wire", dependencies: ["Primitives"], swiftSettings: settings),
        .target(name: "TrackerLogic", dependencies: ["Mutation", "Wire", "Primitives"], swiftSettings: settings),
        .target(name: "PeerLogic", dependencies: ["Mutation", "Wire", "Primitives"], swiftSettings: settings),
        .target(
            name: "Simulator",
            dependencies: ["TrackerLogic", "PeerLogic", "Wire", "Primitives"],
            swiftSettings: settings),
        .executableTarget(
            name: "judge",
            dependencies: ["Mutation", "MutationTable", "Simulator", "TrackerLogic", "PeerLogic", "Primitives"],
            swiftSettings: settings),
        // Those of the product that are about the logic, and not about its sources.
        .testTarget(
            name: "ProtocolTests", dependencies: ["TrackerLogic", "PeerLogic", "Wire", "Primitives"],
            exclude: aboutSources, swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6])

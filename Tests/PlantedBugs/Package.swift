// swift-tools-version: 6.2
//
// The simulator against mistakes that were planted on purpose: apart from the product's package, whose logic has none
// of them. The sources of the logic and of the simulator are the product's own (symbolic links), compiled with
// `PLANTED_BUGS`.

import PackageDescription

let settings: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .define("PLANTED_BUGS"),
]

let package = Package(
    name: "planted-bugs",
    platforms: [.macOS(.v15)],
    targets: [
        .target(name: "Primitives", swiftSettings: settings),
        .target(name: "Wire", dependencies: ["Primitives"], swiftSettings: settings),
        .target(name: "TrackerLogic", dependencies: ["Wire", "Primitives"], swiftSettings: settings),
        .target(name: "PeerLogic", dependencies: ["Wire", "Primitives"], swiftSettings: settings),
        .target(
            name: "Simulator",
            dependencies: ["TrackerLogic", "PeerLogic", "Wire", "Primitives"],
            swiftSettings: settings),
        .executableTarget(
            name: "planted-bugs",
            dependencies: ["Simulator", "TrackerLogic", "PeerLogic", "Primitives"],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6])

// swift-tools-version: 6.2
//
// The house (docs/architecture.md has what lives in each room, and the arrows). A module imports from the floors below
// it, and stands as low as that lets it:
//
//   6  tracker
//   5  Server  PeerHost
//   4  Settings  LoadGenerator  Transfers
//   3  Storage  Web  Client            Simulator°
//   2  Bus  Torrents                   TrackerLogic°  PeerLogic°
//   1  Datagrams                       Wire°
//   0                                  Primitives°
//
// What is marked ° is pure: no Foundation, no clock, no system randomness, no async, no hash-table order.
// `Tests/ProtocolTests/PurityTests.swift` enforces it, and `ModuleMapTests.swift` beside it the map.

import PackageDescription

/// `PLANTED_BUGS=1 swift build --scratch-path .build-planted` makes a tracker with mistakes, one of which the
/// environment variable `PLANTED_BUG` names: for tests of what a tracker in service finds out by itself.
let planted: [SwiftSetting] = Context.environment["PLANTED_BUGS"] == "1" ? [.define("PLANTED_BUGS")] : []

let strict: [SwiftSetting] =
    planted + [
        .treatAllWarnings(as: .error),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ]

/// The simulator runs whole clusters by the thousand in every test run, so the logic is optimised in debug builds, too.
///
/// `swift test` runs as many scenarios as a release build does. `precondition`s stay; `assert` is not used.
let logic: [SwiftSetting] =
    strict + [
        .unsafeFlags(
            ["-O", "-whole-module-optimization", "-disable-batch-mode", "-num-threads", "2"],
            .when(configuration: .debug))
    ]

/// glibc shows `recvmmsg`, `sendmmsg` and `in6_pktinfo` only to GNU sources, so they live in a target of their own.
let gnu: [SwiftSetting] = strict
let gnuC: [CSetting] = [.define("_GNU_SOURCE")]

let package = Package(
    name: "swarmkeeper",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "tracker", targets: ["tracker"]),
        .library(name: "TrackerLogic", targets: ["TrackerLogic"]),
        .library(name: "Simulator", targets: ["Simulator"]),
        .library(name: "Datagrams", targets: ["Datagrams"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // Pure logic.
        .target(name: "Primitives", swiftSettings: logic),
        .target(name: "Wire", dependencies: ["Primitives"], swiftSettings: logic),
        .target(name: "TrackerLogic", dependencies: ["Wire", "Primitives"], swiftSettings: logic),
        .target(name: "PeerLogic", dependencies: ["Wire", "Primitives"], swiftSettings: logic),
        .target(
            name: "Simulator",
            dependencies: ["TrackerLogic", "PeerLogic", "Wire", "Primitives"],
            swiftSettings: logic),

        // The real world.
        .target(name: "Datagrams", dependencies: ["Primitives"], cSettings: gnuC, swiftSettings: gnu),
        .target(
            name: "Bus",
            dependencies: [
                "Datagrams", "Wire", "Primitives",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ],
            swiftSettings: strict),
        .target(
            name: "Storage",
            dependencies: [
                "TrackerLogic", "Wire", "Primitives",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .target(
            name: "Client",
            dependencies: ["Datagrams", "TrackerLogic", "Wire", "Primitives"],
            swiftSettings: strict),
        .target(
            name: "Torrents",
            dependencies: [
                "Wire", "Primitives",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: strict),
        .target(
            name: "Transfers",
            dependencies: [
                "Client", "Datagrams", "Torrents", "PeerLogic", "Wire", "Primitives",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .target(
            name: "LoadGenerator",
            dependencies: [
                "Client", "Datagrams", "TrackerLogic", "Primitives",
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ],
            swiftSettings: strict),
        .target(
            name: "Settings",
            dependencies: [
                "Bus", "Storage", "Client", "Datagrams", "TrackerLogic", "Wire", "Primitives",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .target(
            name: "Web",
            dependencies: [
                "Bus", "Datagrams", "TrackerLogic", "Wire", "Primitives",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOExtras", package: "swift-nio-extras"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            resources: [
                .embedInCode("openapi.yaml"), .embedInCode("Console"), .embedInCode("peer-openapi.yaml"),
                .embedInCode("PeerPage"), .embedInCode("Playground"),
            ],
            swiftSettings: strict),
        .target(
            name: "PeerHost",
            dependencies: [
                "Transfers", "Web", "Client", "Datagrams", "Torrents", "PeerLogic", "Wire", "Primitives",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: strict),
        .target(
            name: "Server",
            dependencies: [
                "Bus", "Storage", "Settings", "Torrents", "Web", "Datagrams", "TrackerLogic", "Wire", "Primitives",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: strict),
        .executableTarget(
            name: "tracker",
            dependencies: [
                "Server", "PeerHost", "Web", "Settings", "Bus", "Transfers", "Client", "Torrents", "LoadGenerator",
                "Simulator", "TrackerLogic", "PeerLogic", "Wire", "Primitives",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: strict),

        // Proof.
        .testTarget(
            name: "ProtocolTests",
            dependencies: ["Primitives", "Wire", "TrackerLogic", "PeerLogic", "Datagrams"],
            swiftSettings: strict),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["Simulator", "TrackerLogic", "PeerLogic", "Wire", "Primitives"],
            exclude: ["census-rare.txt", "golden-hashes.txt", "Transcripts"],
            swiftSettings: strict),
        .testTarget(
            name: "RuntimeTests",
            dependencies: [
                "Server", "PeerHost", "Web", "Settings", "LoadGenerator", "Transfers", "Client", "Torrents", "Storage",
                "Bus", "Datagrams", "TrackerLogic", "PeerLogic", "Wire", "Primitives",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)

// swift-tools-version: 6.2
//
// Measuring only: apart from the product's package, so that nobody who builds a tracker builds this.

import PackageDescription

let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "swarmkeeper", path: "..")],
    targets: [
        .executableTarget(
            name: "echo",
            dependencies: [.product(name: "Datagrams", package: "swarmkeeper")],
            swiftSettings: strict),
        .executableTarget(
            name: "simulator",
            dependencies: [
                .product(name: "Simulator", package: "swarmkeeper"),
                .product(name: "TrackerLogic", package: "swarmkeeper"),
            ],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)

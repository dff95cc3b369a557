// swift-tools-version: 6.2
//
// Measuring only: apart from the product's package, so that nobody who builds a tracker builds this.

import PackageDescription

let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "swarmkeeper", path: "..")],
    targets: [
        .executableTarget(
            name: "echo",
            dependencies: [.product(name: "Datagrams", package: "swarmkeeper")],
            swiftSettings: [
                .treatAllWarnings(as: .error),
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ])
    ],
    swiftLanguageModes: [.v6]
)

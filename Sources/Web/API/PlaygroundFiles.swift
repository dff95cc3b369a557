// The files of the simulator's page, by name: `Playground/` beside this folder.

/// The files of the simulator's page, by name; a test compares the list with the folder.
enum PlaygroundFiles {
    static var index: [UInt8] { PackageResources.playground_html }

    static var all: [(name: String, bytes: [UInt8])] {
        [
            ("simulator.mjs", PackageResources.simulator_mjs)
        ]
    }
}

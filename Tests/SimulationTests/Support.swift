// What the simulation tests share.

import Foundation

enum Sweep {
    /// Scenarios in a sweep: some thousands in every build, for the simulator is optimised in debug builds, too; or as
    /// many as `SWARMKEEPER_SCENARIOS` says.
    static var count: Int {
        ProcessInfo.processInfo.environment["SWARMKEEPER_SCENARIOS"].flatMap(Int.init) ?? 4000
    }

    /// Into how many parts a sweep is cut, which run side by side.
    static let parts = 16

    /// The seeds of one part.
    static func seeds(part: Int) -> Range<UInt64> {
        let each = (count + parts - 1) / parts
        return UInt64(part * each)..<UInt64((part + 1) * each)
    }

    /// Whether kept files are to be written anew.
    static var isRewriting: Bool { ProcessInfo.processInfo.environment["REWRITE"] == "1" }
}

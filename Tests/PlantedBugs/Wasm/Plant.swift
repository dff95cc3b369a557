// What the module with mistakes to plant lets its host do beside what the simulator's does.

import Simulator
import TrackerLogic

/// The names of all mistakes of trackers, one a line.
@_expose(wasm, "mistakes")
@_cdecl("mistakes")
public func mistakes() -> UInt32 { Texts.say(PlantedBug.allCases.map { $0.rawValue }) }

/// Plants a mistake into all scenarios and walks from now on.
///
/// - Parameter place: in the list of `mistakes`; beyond its end is none.
/// - Returns: whether there is one now.
@_expose(wasm, "plant")
@_cdecl("plant")
public func plant(_ place: UInt32) -> UInt32 {
    let all = PlantedBug.allCases
    Planted.bug = place < all.count ? all[Int(place)] : nil
    return Planted.bug == nil ? 0 : 1
}

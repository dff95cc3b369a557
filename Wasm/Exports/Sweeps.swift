// Sweeps: scenarios by their numbers, their hashes, and what they break.

import Simulator
import TrackerLogic

// One thread, and one call after another.
nonisolated(unsafe) private var last: ScenarioResult?

/// The scenario that the page's numbers mean, as `tracker simulate` runs it.
///
/// `profile` is a place among all profiles; `stress` one in the list of harsher conditions, or any other number for
/// none; `seed` fixes everything else.
private func scenario(_ profile: UInt32, _ stress: UInt32, _ seed: UInt64) -> Scenario {
    let stresses = Stress.allCases
    return Run(
        seed: seed, profile: Profile.allCases[Int(profile)],
        stress: stress < stresses.count ? stresses[Int(stress)] : nil, nodes: nil, seconds: nil
    ).scenario
}

/// The profiles' names, one a line.
@_expose(wasm, "profiles")
@_cdecl("profiles")
public func profiles() -> UInt32 { Texts.say(Run.profileNames) }

/// The names of the stresses, one a line.
@_expose(wasm, "stresses")
@_cdecl("stresses")
public func stresses() -> UInt32 { Texts.say(Run.stressNames) }

/// Runs a scenario; `violations` and `events` are about it then.
///
/// - Returns: its trace hash.
@_expose(wasm, "run")
@_cdecl("run")
public func run(_ profile: UInt32, _ stress: UInt32, _ seed: UInt64) -> UInt64 {
    let result = scenario(profile, stress, seed).run()
    last = result
    return result.traceHash
}

/// Runs a scenario and writes its trace down, the last line of which tells its hash.
@_expose(wasm, "trace")
@_cdecl("trace")
public func trace(_ profile: UInt32, _ stress: UInt32, _ seed: UInt64) -> UInt32 {
    let result = scenario(profile, stress, seed).run(recordsTrace: true)
    last = result
    return Texts.say(result.trace)
}

/// The promises that the last run broke, one a line; 0 where it broke none.
@_expose(wasm, "violations")
@_cdecl("violations")
public func violations() -> UInt32 { Texts.say(last?.violations.map { $0.description } ?? []) }

/// Transitions of the last run.
@_expose(wasm, "events")
@_cdecl("events")
public func events() -> UInt32 { UInt32(clamping: last?.events ?? 0) }

// What the module lets its host do.

import Simulator
import TrackerLogic

/// One thread, and one call after another.
nonisolated(unsafe) private var text: [UInt8] = []
nonisolated(unsafe) private var last: ScenarioResult?

/// What the module lets its host do: run a scenario, learn what came of it, and read its trace.
///
/// A profile or stress is called by its place in the list of names. Text is UTF-8 in the module's memory, from
/// `text_base` on; what makes a text returns its length in bytes, and it stays until the next call.
func say(_ lines: [String]) -> UInt32 {
    text.removeAll(keepingCapacity: true)
    for line in lines {
        text.append(contentsOf: line.utf8)
        text.append(UInt8(ascii: "\n"))
    }
    // A buffer of no bytes need not have an address.
    text.append(0)
    return UInt32(text.count - 1)
}

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

/// Where the text begins in the module's memory; asked anew after each call that makes one.
@_expose(wasm, "text_base")
@_cdecl("text_base")
public func textBase() -> UInt32 { text.withUnsafeBufferPointer { UInt32(UInt(bitPattern: $0.baseAddress)) } }

/// The profiles' names, one a line.
@_expose(wasm, "profiles")
@_cdecl("profiles")
public func profiles() -> UInt32 { say(Run.profileNames) }

/// The names of the stresses, one a line.
@_expose(wasm, "stresses")
@_cdecl("stresses")
public func stresses() -> UInt32 { say(Run.stressNames) }

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
    return say(result.trace)
}

/// The promises that the last run broke, one a line; 0 where it broke none.
@_expose(wasm, "violations")
@_cdecl("violations")
public func violations() -> UInt32 { say(last?.violations.map { $0.description } ?? []) }

/// Transitions of the last run.
@_expose(wasm, "events")
@_cdecl("events")
public func events() -> UInt32 { UInt32(clamping: last?.events ?? 0) }

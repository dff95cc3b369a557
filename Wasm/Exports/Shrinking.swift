// Shrinking, a few tries a call.

import Primitives
import Simulator

/// Shrinking, a few tries a call, so that the host can show what is tried, and stop.
enum Shrinking {
    /// Tries in one call, at most; it ends before where one of them has helped.
    private static let triesACall = 20

    // One thread, and one call after another.
    nonisolated(unsafe) private static var steps: ShrinkSteps?

    static func begin(_ slot: UInt32) -> UInt32 {
        Plays.with(slot) { play in
            steps = ShrinkSteps(play.run, play.result)
            guard let steps else {
                return Texts.refuse("the run breaks no promise, so there is nothing to shrink")
            }
            return tell(steps, [])
        }
    }

    static func next() -> UInt32 {
        guard var search = steps else { return Texts.refuse("nothing is being shrunk; begin with a run") }
        steps = nil
        let before = search.smallest
        let first = search.tries.count
        while !search.isDone, search.smallest == before, search.tries.count < first + triesACall { search.next(4) }
        steps = search
        return tell(search, search.tries[first...])
    }

    private static func tell(_ search: ShrinkSteps, _ tried: ArraySlice<ShrinkSteps.Try>) -> UInt32 {
        let run = search.smallest
        let options = run.scenario.options
        return Texts.say { json in
            json.object { json in
                json.member("tries", search.tries.count)
                json.member("invariant", search.invariant.rawValue)
                json.member("words", run.words)
                json.member("command", run.command)
                json.member("summary", options.summary)
                json.member("left") { json in
                    json.object { json in
                        json.member("trackers", run.onlyTrackers?.count ?? options.nodeCount)
                        json.member(
                            "clients", run.onlyClients?.count ?? options.clientCount + options.scraperCount)
                        json.member("faults") { $0.number(run.faults?.count) }
                        json.member("injections") { $0.number(run.injections?.count) }
                        json.member("seconds", Int(options.coreLength.wholeSeconds))
                        json.member("whatIfs", run.whatIfs.count)
                    }
                }
                json.member("tried") { json in
                    json.array { json in
                        for tried in tried {
                            json.object { json in
                                json.member("words", tried.run.words)
                                json.member("fails", tried.isFailing)
                            }
                        }
                    }
                }
                json.member("done", search.isDone)
            }
        }
    }
}

/// Begins to make the run in a slot smaller, as long as it breaks the same promise first.
@_expose(wasm, "shrink")
@_cdecl("shrink")
public func shrink(_ slot: UInt32) -> UInt32 { Shrinking.begin(slot) }

/// Tries some smaller runs, and tells the smallest so far.
@_expose(wasm, "shrink_next")
@_cdecl("shrink_next")
public func shrinkNext() -> UInt32 { Shrinking.next() }

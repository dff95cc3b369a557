// Runs that are looked at: opened by their words, and shown step by step.

import Primitives
import Simulator

/// Runs that are looked at: up to four of them are open, each in a slot.
enum Plays {
    static let slotCount = 4

    // One thread, and one call after another.
    nonisolated(unsafe) static var slots: [Play?] = Array(repeating: nil, count: slotCount)

    private static func noSlot(_ slot: UInt32) -> String {
        "there are slots 0 to \(slotCount - 1), and no slot \(slot)"
    }

    /// Does something with the run in a slot, or says that there is none.
    static func with(_ slot: UInt32, _ act: (inout Play) -> UInt32) -> UInt32 {
        guard slot < slotCount else { return Texts.refuse(noSlot(slot)) }
        // Taken out, so that it is changed in its place.
        guard var play = slots[Int(slot)] else {
            return Texts.refuse("no run is open in slot \(slot); open one")
        }
        slots[Int(slot)] = nil
        let result = act(&play)
        slots[Int(slot)] = play
        return result
    }

    static func open(_ slot: UInt32, _ words: String) -> UInt32 {
        guard slot < slotCount else { return Texts.refuse(noSlot(slot)) }
        do throws(WordsRefused) {
            let run = try Run(words: words)
            let play = Play(run, sharing: best(for: run, slot))
            slots[Int(slot)] = play
            return Texts.say { json in json.object { tell(play, &$0) } }
        } catch {
            return Texts.refuse(error.description)
        }
    }

    /// Of the open runs, the one that has most in common with a run.
    private static func best(for run: Run, _ slot: UInt32) -> Play? {
        var best: (play: Play, steps: Int)?
        for play in slots {
            guard let play, let steps = play.stepsShared(with: run), steps > best?.steps ?? -1 else { continue }
            best = (play, steps)
        }
        return best?.play
    }

    // MARK: - What came of it

    private static func tell(_ play: Play, _ json: inout JSON) {
        let result = play.result
        json.member("words", play.run.words)
        json.member("command", play.run.command)
        json.member("summary", play.scenario.options.summary)
        json.member("seed", "\(result.seed)")
        json.member("profile", result.profileName)
        json.key("stress")
        if let stress = play.run.stress { json.string(stress.rawValue) } else { json.null() }
        json.member("names", result.names.short)
        json.member("clients", play.scenario.options.clientCount)
        json.member("scrapers", play.scenario.options.scraperCount)
        json.member("hash", SweepReport.text(hash: result.traceHash))
        json.member("steps", play.steps)
        json.member("nanoseconds") { $0.number(play.time(of: play.steps).nanoseconds) }
        json.member("coreEnds") { $0.number(play.scenario.options.coreLength.nanoseconds) }
        json.member("waits", result.waitsForPlayer)
        json.member("kinds", TraceKinds.named.map { $0.name })
        json.member("violations") { json in
            json.array { json in
                for violation in result.violations {
                    json.object { json in
                        json.member("invariant", violation.invariant.rawValue)
                        json.member("detail", violation.detail)
                        json.member("step", play.step(at: violation.time))
                        json.member("time") { $0.time(violation.time) }
                    }
                }
            }
        }
        json.member("reasons", result.reasons)
        json.member("whatIfs") { $0.array { tell(whatIfs: play, &$0) } }
        guard let story = play.run.story else { return }
        json.member("story") { json in
            json.object { json in
                json.member("name", story.rawValue)
                json.member("title", story.title)
                json.member("sentence", story.sentence)
            }
        }
    }

    private static func tell(whatIfs play: Play, _ json: inout JSON) {
        for (place, whatIf) in play.run.whatIfs.enumerated() {
            json.object { json in
                json.member("step", whatIf.step)
                json.member("words", whatIf.description)
                json.key("unmet")
                if let unmet = play.result.unmetWhatIfs.first(where: { $0.place == place }) {
                    json.string(unmet.reason)
                } else {
                    json.null()
                }
            }
        }
    }

    // MARK: - Steps

    static func steps(_ play: Play, _ from: Int, _ count: Int) -> UInt32 {
        let record = play.record
        let first = min(from, record.steps + 1)
        let end = first + min(count, record.steps + 1 - first)
        return Texts.say { json in
            json.object { json in
                json.member("from", first)
                json.member("time") { $0.array { for step in first..<end { $0.time(record.times[step]) } } }
                json.member("event") { $0.array { for step in first..<end { $0.number(Int(record.events[step])) } } }
                json.member("cause") { $0.array { for step in first..<end { $0.number(record.cause(of: step)) } } }
                json.member("trackers") {
                    $0.array { for step in first..<end { $0.number(Int(record.trackers[step])) } }
                }
                json.member("kinds") { $0.array { for step in first..<end { $0.number(Int(record.kinds[step])) } } }
                json.member("lines") { $0.array { for step in first..<end { tell(record.lines(of: step), &$0) } } }
                json.member("columns") { json in
                    json.array { json in
                        for step in first..<end {
                            let standing = record.standing[step]
                            if step > first, record.standing[step - 1] == standing {
                                json.null()
                            } else {
                                json.array { for column in record.standings[Int(standing)] { $0.string(column) } }
                            }
                        }
                    }
                }
            }
        }
    }

    private static func tell(_ lines: ArraySlice<String>, _ json: inout JSON) {
        if lines.count == 1 { return json.string(lines[lines.startIndex]) }
        if lines.isEmpty { return json.string("") }
        json.array { for line in lines { $0.string(line) } }
    }

    static func state(_ play: inout Play, _ step: Int) -> UInt32 {
        let state = play.state(after: step)
        return Texts.say { json in
            json.array { json in
                for tracker in state {
                    json.object { json in
                        json.member("place", tracker.place)
                        json.member("title", tracker.title)
                        json.member("items") { json in
                            json.array { json in
                                for item in tracker.items {
                                    json.array { json in
                                        json.string(item.title)
                                        json.string(item.text)
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    static func pending(_ play: inout Play, _ step: Int) -> UInt32 {
        let pending = play.pending(after: step)
        return Texts.say { json in
            json.array { json in
                for event in pending {
                    json.object { json in
                        json.member("id", Int(event.id))
                        json.member("kind", event.kind.rawValue)
                        json.member("from") { $0.number(event.from) }
                        json.member("to") { $0.number(event.to) }
                        json.member("name", event.name)
                        json.member("text", event.text)
                        json.member("sentStep", play.sentStep(of: event.id))
                        json.member("at") { $0.time(event.time) }
                    }
                }
            }
        }
    }
}

/// Opens the run that the words in the room name, in a slot; JSON: what came of it, or `{"error": …}`.
@_expose(wasm, "open")
@_cdecl("open")
public func open(_ slot: UInt32, _ byteCount: UInt32) -> UInt32 { Plays.open(slot, Texts.taken(byteCount)) }

/// Closes what is open in a slot, so that its memory is free.
@_expose(wasm, "close")
@_cdecl("close")
public func close(_ slot: UInt32) { if slot < Plays.slotCount { Plays.slots[Int(slot)] = nil } }

/// So many steps from one on, in columns.
@_expose(wasm, "steps")
@_cdecl("steps")
public func steps(_ slot: UInt32, _ from: UInt32, _ count: UInt32) -> UInt32 {
    Plays.with(slot) { Plays.steps($0, Int(clamping: from), Int(clamping: count)) }
}

/// The state of each tracker after a step.
@_expose(wasm, "state")
@_cdecl("state")
public func state(_ slot: UInt32, _ step: UInt32) -> UInt32 {
    Plays.with(slot) { Plays.state(&$0, Int(clamping: step)) }
}

/// What is under way or waits after a step, soonest first.
@_expose(wasm, "pending")
@_cdecl("pending")
public func pending(_ slot: UInt32, _ step: UInt32) -> UInt32 {
    Plays.with(slot) { Plays.pending(&$0, Int(clamping: step)) }
}

/// What is drawn of a run.
@_expose(wasm, "picture")
@_cdecl("picture")
public func picture(_ slot: UInt32) -> UInt32 { Plays.with(slot) { Plays.picture($0) } }

/// A message or a datagram by the id of its event, with all that is in it.
@_expose(wasm, "message")
@_cdecl("message")
public func message(_ slot: UInt32, _ id: UInt32) -> UInt32 { Plays.with(slot) { Plays.message($0, UInt64(id)) } }

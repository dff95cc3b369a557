// What-ifs: each does what it says, and the promises hold whatever a person does.

import Primitives
import Simulator
import Testing

@Suite("What-ifs", .computes)
struct WhatIfTests {
    /// Three trackers in quorum mode to which nothing happens; 3 is master from 2.1 s on.
    private static let quiet = "story=clean-start"

    private func play(_ words: String) throws -> Play { Play(try Run(words: words)) }

    private func quiet(_ whatIfs: [WhatIf]) throws -> Play {
        var run = try Run(words: WhatIfTests.quiet)
        run.whatIfs = whatIfs
        let play = Play(run)
        #expect(play.result.violations.isEmpty, "\(run.words)")
        #expect(run.scenario.run().traceHash == play.result.traceHash, "\(run.words)")
        return play
    }

    private func step(at seconds: Double) throws -> Int {
        try play(WhatIfTests.quiet).step(at: Instant(nanoseconds: Int64(seconds * 1e9)))
    }

    private func seconds(_ time: Instant?) -> Double { Double(time?.nanoseconds ?? -1) / 1e9 }

    private func lines(_ play: Play, from: Double = 0, until: Double = 1000) -> [String] {
        (0...play.steps).filter { (from...until).contains(seconds(play.time(of: $0))) }
            .flatMap { Array(play.record.lines(of: $0)) }
    }

    private func column(_ play: Play, _ tracker: Int, at time: Double) -> String {
        let step = play.step(at: Instant(nanoseconds: Int64(time * 1e9)))
        return play.record.standings[Int(play.record.standing[step])][tracker]
    }

    /// A message under way from the master to a slave after a step, with its id.
    private func message(_ name: String, after step: Int, to: Int) throws -> (id: UInt64, step: Int, at: Instant) {
        var play = try play(WhatIfTests.quiet)
        for step in step..<play.steps {
            if let found = play.pending(after: step).first(where: { $0.name == name && $0.to == to }) {
                return (found.id, step, found.time)
            }
        }
        return try #require(nil, "no \(name) is under way to place \(to)")
    }

    // MARK: - Messages

    @Test func `a message that is dropped never arrives`() throws {
        let prepare = try message("PREPARE", after: step(at: 8), to: 0)
        let whole = try play(WhatIfTests.quiet)
        #expect(whole.letter(prepare.id)?.flight.fate == "arrived")
        let branch = try quiet([WhatIf(after: prepare.step, .drop(prepare.id))])
        let letter = try #require(branch.letter(prepare.id))
        #expect(letter.flight.fate == "lost" && letter.flight.endStep == prepare.step)
        #expect(!branch.record.events.contains(UInt32(prepare.id)))
        #expect(
            lines(branch).contains { $0.hasPrefix("the player loses PREPARE [1.3] ") && $0.hasSuffix(", from 3 to 1") })
        #expect(branch.result.traceHash != whole.result.traceHash)
    }

    @Test func `a message that is delayed comes so much later`() throws {
        let prepare = try message("PREPARE", after: step(at: 8), to: 1)
        let branch = try quiet([WhatIf(after: prepare.step, .delay(prepare.id, milliseconds: 1500))])
        let flight = try #require(branch.letter(prepare.id)?.flight)
        #expect(flight.fate == "arrived" && flight.endedAt == prepare.at + .milliseconds(1500))
        #expect(
            lines(branch).contains {
                $0.hasPrefix("the player holds PREPARE ") && $0.hasSuffix("back for 1.500 s more")
            })
    }

    @Test func `a client's datagram and a reply are lost and put off alike`() throws {
        var whole = try play(WhatIfTests.quiet)
        for kind in [PendingEvent.Kind.datagram, .reply] {
            var found: (step: Int, event: PendingEvent)?
            for step in try step(at: 6)..<whole.steps where found == nil {
                found = whole.pending(after: step).first { $0.kind == kind }.map { (step, $0) }
            }
            let (step, event) = try #require(found)
            let lost = try quiet([WhatIf(after: step, .drop(event.id))])
            #expect(lost.letter(event.id)?.flight.fate == "lost")
            let late = try quiet([WhatIf(after: step, .delay(event.id, milliseconds: 700))])
            #expect(late.letter(event.id)?.flight.endedAt == event.time + .milliseconds(700))
        }
    }

    // MARK: - Trackers

    @Test func `a tracker that is killed is down for so long, and another is elected`() throws {
        let branch = try quiet([WhatIf(after: step(at: 8), .kill(2, milliseconds: 8000))])
        #expect(lines(branch).contains("tracker 3 dies: the player; is down for 8.000 s"))
        for time in [8.01, 12, 15.9] { #expect(column(branch, 2, at: time) == "-") }
        #expect(column(branch, 2, at: 16.5) != "-")
        #expect(column(branch, 1, at: 12).hasPrefix("M "))
    }

    @Test func `who is killed for good comes back when the world is healed`() throws {
        let branch = try quiet([
            WhatIf(after: step(at: 8), .kill(2, milliseconds: 0)),
            WhatIf(after: step(at: 8) + 1, .kill(1, milliseconds: 0)),
        ])
        #expect(lines(branch).contains("tracker 3 dies: the player; is down for good"))
        // A majority is gone, and nothing is decided.
        for time in [9, 20, 25.9] { #expect(column(branch, 2, at: time) == "-" && column(branch, 1, at: time) == "-") }
        #expect(column(branch, 0, at: 20).hasPrefix("S") == false)
        for place in 0..<3 {
            #expect(column(branch, place, at: 53).hasPrefix("M ") || column(branch, place, at: 53).hasPrefix("S "))
        }
    }

    @Test func `a tracker that is paused does nothing, and goes on`() throws {
        let eight = try step(at: 8)
        let branch = try quiet([WhatIf(after: eight, .pause(0, milliseconds: 3000))])
        let began = seconds(branch.time(of: eight))
        let own = lines(branch, from: began + 0.001, until: began + 2.999).filter {
            // Its disk goes on.
            $0.hasPrefix("tracker 1 ") && !$0.contains("has not been told yet")
        }
        #expect(own.isEmpty)
        #expect(lines(branch, from: began + 2.999, until: began + 3.2).contains { $0.hasPrefix("tracker 1 hears") })
        let putOff = (0..<branch.flightCount).map { branch.flight($0) }.filter {
            $0.to == 0 && $0.kind == .message && (began + 0.02...began + 2.5).contains(seconds($0.sentAt))
        }
        #expect(putOff.count > 3 && putOff.allSatisfy { seconds($0.endedAt) >= began + 3 && $0.fate == "arrived" })
    }

    @Test func `whoever is cut off hears nobody, and is not heard`() throws {
        let branch = try quiet([WhatIf(after: step(at: 8), .cut([2], milliseconds: 5000))])
        let flights = (0..<branch.flightCount).map { branch.flight($0) }.filter { $0.kind == .message }
        let within = flights.filter { (8.02...12.9).contains(seconds($0.sentAt)) }
        let across = within.filter { ($0.from == 2) != ($0.to == 2) }
        #expect(across.count > 5 && across.allSatisfy { $0.fate == "lost" && $0.id == 0 })
        let beside = within.filter { $0.from != 2 && $0.to != 2 }
        #expect(beside.count > 5 && beside.allSatisfy { $0.fate == "arrived" })
        #expect(lines(branch).contains { $0.hasPrefix("the player begins: partition {3} | {1, 2}, for 5.000 s") })
        #expect(branch.periods.contains { $0.kind == .links && seconds($0.until) - seconds($0.from) == 5 })
    }

    @Test func `a tracker that is fenced off has no bus for so long`() throws {
        let eight = try step(at: 8)
        let branch = try quiet([WhatIf(after: eight, .fence(1, milliseconds: 4000))])
        let began = seconds(branch.time(of: eight))
        #expect(branch.periods.contains { $0.kind == .noBus && $0.trackers == [1] })
        #expect(
            lines(branch, from: began, until: began + 0.2).contains {
                $0.hasPrefix("tracker 2 notices that it has no bus")
            })
        #expect(lines(branch, from: began + 3.9, until: began + 4.1).contains { $0.hasPrefix("tracker 2 has its bus") })
    }

    @Test func `a full disk refuses every write`() throws {
        let branch = try quiet([
            WhatIf(after: step(at: 8), .disk(0, milliseconds: 3000)),
            WhatIf(after: step(at: 8), .disk(1, milliseconds: 3000)),
        ])
        #expect(lines(branch, from: 8, until: 11).contains { $0.contains("failed: the disk is full") })
        #expect(!lines(branch, from: 11.1).contains { $0.contains("failed: the disk is full") })
        #expect(branch.result.tally.aborts > 0)
    }

    @Test func `the operator has the role handed over`() throws {
        let branch = try quiet([WhatIf(after: step(at: 8), .hand(2, id: 1))])
        #expect(lines(branch).contains { $0.contains("is commanded: hand over to 1") })
        #expect(column(branch, 0, at: 9).hasPrefix("M "))
    }

    // MARK: - Waking

    @Test func `who is woken is back at once, from whatever he was in`() throws {
        let (eight, ten) = (try step(at: 8), 10.0)
        func woken(_ action: WhatIf.Action, _ node: Int) throws -> Play {
            let first = try quiet([WhatIf(after: eight, action)])
            let then = first.step(at: Instant(nanoseconds: Int64(ten * 1e9)))
            return try quiet([WhatIf(after: eight, action), WhatIf(after: then, .wake(node))])
        }
        let killed = try woken(.kill(2, milliseconds: 0), 2)
        #expect(column(killed, 2, at: 9.9) == "-" && column(killed, 2, at: 10.3) != "-")
        let paused = try woken(.pause(0, milliseconds: 9000), 0)
        #expect(lines(paused, from: 9.9, until: 10.1).contains { $0.hasPrefix("tracker 1 hears") })
        let cut = try woken(.cut([2], milliseconds: 15_000), 2)
        let later = (0..<cut.flightCount).map { cut.flight($0) }.filter {
            $0.kind == .message && (10.1...14).contains(seconds($0.sentAt)) && $0.from == 2
        }
        #expect(later.count > 3 && later.allSatisfy { $0.fate == "arrived" })
        #expect(cut.periods.allSatisfy { $0.kind != .links || seconds($0.until) < 10.1 })
        let fenced = try woken(.fence(1, milliseconds: 9000), 1)
        #expect(lines(fenced, from: 9.9, until: 10.3).contains { $0.hasPrefix("tracker 2 has its bus") })
    }

    // MARK: - The network

    @Test func `the player is the network: nothing comes but what he lets come`() throws {
        let eight = try step(at: 8)
        var list = [WhatIf(after: eight, .net)]
        var branch = try quiet(list)
        #expect(branch.result.waitsForPlayer && branch.steps == eight)
        // Time goes on, and nothing arrives.
        for _ in 0..<120 { list.append(WhatIf(after: branch.steps + list.count - 1, .time)) }
        branch = try quiet(list)
        #expect(branch.steps == eight + 120 && branch.result.waitsForPlayer)
        let flights = (0..<branch.flightCount).map { branch.flight($0) }
        #expect(flights.allSatisfy { $0.endStep ?? 0 <= eight || $0.id == 0 })
        let waiting = branch.pending(after: branch.steps).filter { [.message, .datagram, .reply].contains($0.kind) }
        #expect(waiting.count > 10)
        // The last of them first.
        let chosen = try #require(waiting.last { $0.kind == .message })
        list.append(WhatIf(after: branch.steps, .take(chosen.id)))
        let taken = try quiet(list)
        #expect(taken.steps == branch.steps + 1 && taken.time(of: taken.steps) == branch.time(of: branch.steps))
        #expect(taken.record.events[taken.steps] == UInt32(chosen.id))
        #expect(taken.record.cause(of: taken.steps) == chosen.sent(in: taken))
        // Then all the others, in their order, at once.
        list.append(WhatIf(after: taken.steps, .auto))
        let whole = try quiet(list)
        #expect(!whole.result.waitsForPlayer)
        let held = waiting.filter { $0.id != chosen.id && $0.time <= taken.time(of: taken.steps) }
        let next = whole.record.events[(taken.steps + 1)...].prefix(held.count)
        #expect(held.count > 10 && Array(next) == held.map { UInt32($0.id) })
        #expect(whole.time(of: taken.steps + held.count) == taken.time(of: taken.steps))
    }

    // MARK: - What comes to nothing

    @Test func `what cannot be done does nothing, and says why`() throws {
        let eight = try step(at: 8)
        let branch = try quiet([
            WhatIf(after: eight, .drop(999_999)), WhatIf(after: eight, .drop(1)),
            WhatIf(after: eight, .kill(7, milliseconds: 9)),
            WhatIf(after: eight, .wake(0)), WhatIf(after: eight, .auto), WhatIf(after: eight, .take(5)),
            WhatIf(after: eight + 1, .cut([0, 1, 2], milliseconds: 9)), WhatIf(after: 9_000_000, .net),
        ])
        let reasons = branch.result.unmetWhatIfs.map(\.reason)
        #expect(branch.result.unmetWhatIfs.map(\.place) == Array(0..<8))
        for (reason, part) in zip(
            reasons,
            [
                "no event 999999 is there yet", "event 1 is not under way any more", "no tracker at place 7",
                "tracker 1 is up, and is neither held nor cut off", "the network works by itself",
                "the player is not the network; put net before it", "nobody is left", "the run ends before it",
            ])
        { #expect(reason.hasPrefix(part) || reason.contains(part), "\(reason)") }
        #expect(lines(branch).contains { $0.contains("what-if \(eight).wake.0 comes to nothing: ") })
        // It is another run in name, and the same in all that happens.
        let whole = try play(WhatIfTests.quiet)
        #expect(branch.steps == whole.steps && branch.result.traceHash != whole.result.traceHash)
        #expect(branch.record.events == whole.record.events && branch.record.times == whole.record.times)
    }

    @Test func `in a world that is healed, trouble is healed anew before it is looked at`() throws {
        for seconds in [30.0, 45, 47, 53] {
            let branch = try quiet([WhatIf(after: step(at: seconds), .kill(2, milliseconds: 4000))])
            #expect(lines(branch).filter { $0 == "the world is healed" }.count == 2)
            #expect(lines(branch).last == "the world is looked at")
            #expect(self.seconds(branch.time(of: branch.steps)) > seconds + 4 + 28)
        }
    }
}

extension PendingEvent {
    fileprivate func sent(in play: Play) -> Int { play.sentStep(of: id) }
}

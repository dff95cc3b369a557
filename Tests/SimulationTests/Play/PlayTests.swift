// Runs that are looked at from all sides: steps, branches, causes, the state at any step.

import Foundation
import Primitives
import Simulator
import Testing

@Suite("Played runs", .computes)
struct PlayTests {
    private func play(_ words: String) throws -> Play { Play(try Run(words: words)) }

    private func goldenRows() throws -> [(profile: String, seed: UInt64, hash: String)] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "golden-hashes.txt")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
            let parts = line.split(separator: " ")
            return (String(parts[0]), try #require(UInt64(parts[1])), String(parts[2]))
        }
    }

    @Test func `who only looks changes nothing: the golden hashes are those of played runs`() throws {
        for row in try goldenRows() {
            let play = try play("seed=\(row.seed)&profile=\(row.profile)")
            #expect(String(play.result.traceHash, radix: 16) == row.hash)
            #expect(!play.result.waitsForPlayer && play.result.unmetWhatIfs.isEmpty)
        }
    }

    @Test(arguments: Profile.allCases)
    func `steps are those of the trace`(_ profile: Profile) throws {
        let play = try play("seed=3&profile=\(profile.rawValue)&stress=lossy")
        let lines = try Run(words: play.run.words).scenario.run(recordsTrace: true).lines
        #expect((0...play.steps).flatMap { Array(play.record.lines(of: $0)) } == lines.map(\.text))
        #expect(zip(play.record.times, play.record.times.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(play.steps == play.result.steps)
    }

    // MARK: - Causes

    @Test(arguments: Profile.clusters)
    func `a message that arrives has its sending as cause`(_ profile: Profile) throws {
        let play = try play("seed=5&profile=\(profile.rawValue)")
        var (arrived, ids) = (0, [UInt64]())
        for place in 0..<play.flightCount {
            let flight = play.flight(place)
            if flight.id == 0 {
                #expect(flight.fate == "lost" && flight.endStep == flight.sentStep)
                continue
            }
            ids.append(flight.id)
            #expect(play.sentStep(of: flight.id) == flight.sentStep)
            guard let end = flight.endStep else { continue }
            #expect(end > flight.sentStep)
            // One that was put off comes by another event than the one that it was.
            guard play.record.events[end] == UInt32(flight.id) else { continue }
            arrived += 1
            #expect(play.record.cause(of: end) == flight.sentStep)
        }
        #expect(arrived > 500)
        #expect(ids == ids.sorted())
        for step in 1...play.steps { #expect(play.record.cause(of: step) < step) }
    }

    @Test func `the message that a tracker hears is the one that came`() throws {
        let play = try play("story=master-dies")
        var heard = 0
        for place in 0..<play.flightCount {
            let flight = play.flight(place)
            guard flight.kind == .message, flight.fate == "arrived", let step = flight.endStep,
                let letter = play.letter(flight.id)
            else { continue }
            heard += 1
            let name = "tracker \(flight.to + 1) hears \(flight.from + 1): \(letter.text)"
            #expect(play.record.lines(of: step).contains { $0.hasPrefix(name) }, "\(name)")
            #expect(letter.byteCount > 20 && letter.content.count >= 4)
        }
        #expect(heard > 100)
        #expect(play.letter(999_999) == nil)
    }

    // MARK: - Any step

    @Test(arguments: Profile.allCases)
    func `the state at a step is that of the run stopped there`(_ profile: Profile) throws {
        var play = try play("seed=3&profile=\(profile.rawValue)")
        for step in stride(from: 50, to: play.steps, by: 331) {
            // The last step of its time, for a run is stopped by time.
            let time = play.time(of: step)
            let stopped = play.scenario.run(recordsTrace: true, stopsAt: time).state
            let state = play.state(after: play.step(at: time))
            var lines: [String] = []
            for tracker in state {
                let width = tracker.items.map(\.title.count).max() ?? 0
                lines.append(
                    "\(tracker.title) at \(stopped[lines.count].split(separator: " ").suffix(2).joined(separator: " "))"
                )
                lines += tracker.items.map {
                    "  \($0.title)\(String(repeating: " ", count: width - $0.title.count))  \($0.text)"
                }
            }
            #expect(lines == stopped, "step \(step)")
        }
    }

    @Test func `whoever goes to and fro sees the same as who goes straight on`() throws {
        var play = try play("seed=2&profile=paxos&stress=disks")
        var straight = try Play(Run(words: play.run.words))
        var random = RandomStream(seed: 1, stream: 1)
        var step = 0
        for _ in 0..<60 {
            step = random.oneIn(3) ? random.below(play.steps + 1) : max(0, step - random.below(30))
            let state = play.state(after: step)
            let pending = play.pending(after: step)
            #expect(pending == straight.pending(after: step))
            #expect(state.map(\.title) == straight.state(after: step).map(\.title))
            #expect(
                state.flatMap { $0.items.map(\.text) } == straight.state(after: step).flatMap { $0.items.map(\.text) })
            straight = try Play(Run(words: play.run.words))
        }
        #expect(play.pending(after: play.steps + 99) == play.pending(after: play.steps))
    }

    @Test func `what waits comes at its time, unless somebody meddles`() throws {
        var play = try play("seed=9&profile=classic")
        var checked = 0
        for step in stride(from: 100, to: play.steps, by: 97) {
            for event in play.pending(after: step).prefix(6) {
                // One that is put off, or that a death has made void, is not among the next.
                guard let next = play.record.events[step...].firstIndex(of: UInt32(event.id)) else { continue }
                checked += 1
                #expect(next > step && play.time(of: next) == event.time)
                #expect(play.sentStep(of: event.id) <= step)
            }
        }
        #expect(checked > 200)
    }

    // MARK: - Branches

    private func expectSame(_ one: Play, _ other: Play, through last: Int) {
        #expect(one.record.times[...last] == other.record.times[...last])
        #expect(one.record.events[...last] == other.record.events[...last])
        #expect((0..<last).allSatisfy { one.record.lines(of: $0) == other.record.lines(of: $0) })
        #expect(
            (0..<last).allSatisfy { step in
                one.record.standings[Int(one.record.standing[step])]
                    == other.record.standings[Int(other.record.standing[step])]
            })
    }

    @Test(arguments: Profile.clusters)
    func `a branch is the original up to its step, and the same whether it shares a beginning or not`(
        _ profile: Profile
    ) throws {
        let words = "seed=7&profile=\(profile.rawValue)"
        let original = try play(words)
        var random = RandomStream(seed: 9, stream: 9)
        var last = original
        var list: [WhatIf] = []
        for _ in 0..<8 {
            let step = (list.last?.step ?? 0) + 1 + random.below(max(1, last.steps / 6))
            let node = random.below(original.result.names.short.count)
            list.append(
                WhatIf(after: step, random.oneIn(2) ? .kill(node, milliseconds: 900) : .pause(node, milliseconds: 700)))
            var run = original.run
            run.whatIfs = list
            let shared = Play(run, sharing: last)
            let fresh = Play(run)
            #expect(shared.result.traceHash == fresh.result.traceHash)
            #expect(shared.result.unmetWhatIfs == fresh.result.unmetWhatIfs)
            #expect(shared.steps == fresh.steps)
            expectSame(shared, fresh, through: fresh.steps)
            #expect(
                (0..<fresh.flightCount).map { shared.flight($0) } == (0..<fresh.flightCount).map { fresh.flight($0) })
            #expect(shared.record.marks.map(\.transition) == fresh.record.marks.map(\.transition))
            expectSame(shared, last, through: min(step, last.steps))
            #expect(run.scenario.run().traceHash == fresh.result.traceHash)
            last = shared
        }
        #expect(last.result.traceHash != original.result.traceHash)
        // And back.
        let back = Play(original.run, sharing: last)
        #expect(back.result.traceHash == original.result.traceHash)
        expectSame(back, original, through: original.steps)
    }

    @Test func `checkpoints have a bound, however long the run`() throws {
        let play = try play("seed=17&profile=paxos&nodes=7&seconds=120")
        #expect(play.steps > 20_000)
        #expect(play.checkpointCount <= Play.maxCheckpoints + 1)
    }

    // MARK: - Stories

    @Test(arguments: Story.allCases)
    func `a story is told in sentences, one a line of its transcript`(_ story: Story) throws {
        let play = try play("story=\(story.rawValue)")
        let guide = play.guide
        // Head and hash are no steps.
        #expect(guide.count == story.tell().count - 2)
        #expect(play.result.violations.isEmpty)
        for (step, line) in zip(guide, story.tell().dropFirst()) {
            #expect(line.hasSuffix(step.text))
            #expect(play.record.lines(of: step.step).contains(step.text))
            #expect(step.sentence.hasSuffix(".") && step.sentence.first?.isUppercase == true)
            #expect(!step.sentence.contains(";"))
        }
        #expect(zip(guide, guide.dropFirst()).allSatisfy { $0.step <= $1.step && $0.time <= $1.time })
        #expect(!story.title.isEmpty && story.sentence.hasSuffix("."))
    }
}

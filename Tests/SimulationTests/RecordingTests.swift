// What simulated trackers leave behind of their lives replays to what they did.

import Primitives
import Simulator
import Testing
import TrackerLogic
import Wire

@Suite("Recordings", .computes)
struct RecordingTests {
    /// Bytes of a ring through which lives of a minute go several times.
    static let small = 256 << 10
    static let header = 4096

    @Test(arguments: Profile.allCases, [nil] + Stress.allCases.filter { $0 != .hours })
    func `a life replays to the same effects, from its beginning or from its middle`(
        _ profile: Profile, _ stress: Stress?
    ) throws {
        for seed: UInt64 in 0..<2 {
            let run = Run(seed: seed, profile: profile, stress: stress)
            for byteCount in [RecordingTests.small, 2 << 20] {
                for bytes in run.scenario.recordings(byteCount: byteCount + RecordingTests.header).joined() {
                    guard let recording = try? Recording(bytes) else {
                        // A life that ended before its first image was whole; in the large ring, one of a few steps.
                        continue
                    }
                    var replay = Replay(recording)
                    var checks = LifeChecks()
                    while let step = replay.next() {
                        guard step.agrees == true else {
                            Issue.record("\(run.command): step \(replay.count) differs: \(step.recorded.event)")
                            return
                        }
                        let broken = checks.check(replay.node, after: step.recorded.event, replay.effects)
                        #expect(broken == nil, "\(run.command): step \(replay.count): \(broken?.text ?? "")")
                    }
                    #expect(replay.count > 0)
                }
            }
        }
    }

    @Test
    func `a ring begins in the middle of a life, and holds the end of it`() throws {
        let all = Scenario(seed: 3, profile: .paxos).recordings(byteCount: RecordingTests.small + RecordingTests.header)
        let recordings = all.joined().compactMap { try? Recording($0) }
        let late = recordings.filter { $0.from.monotonic > $0.began.monotonic }
        #expect(!late.isEmpty)
    }

    @Test(arguments: [(Profile.classic, Stress.partitions), (.paxos, .members), (.rotating, .groups), (.alone, .rules)])
    func `an image is all of a tracker, part by part`(_ profile: Profile, _ stress: Stress) throws {
        let scenario = Run(seed: 5, profile: profile, stress: stress).scenario
        var compared = 0
        for bytes in scenario.recordings(byteCount: (2 << 20) + RecordingTests.header).joined() {
            guard let recording = try? Recording(bytes) else { continue }
            var replay = Replay(recording)
            while replay.next() != nil {
                guard replay.count % 61 == 0 else { continue }
                let image = replay.node.image
                let read = try #require(TrackerNode(image: image))
                #expect(Parts.of(read) == Parts.of(replay.node))
                #expect(read.image == image)
                compared += 1
            }
        }
        #expect(compared > 20)
    }

    @Test
    func `what is cut or flipped is no recording, or a shorter one, and never traps`() throws {
        let all = Scenario(seed: 1, profile: .classic).recordings(
            byteCount: RecordingTests.small + RecordingTests.header)
        let bytes = try #require(all.joined().max { replayed($0) < replayed($1) })
        let whole = replayed(bytes)
        #expect(whole > 100)
        var random = RandomStream(seed: 7)
        for _ in 0..<200 {
            var spoilt = bytes
            for _ in 0...random.below(3) { spoilt[random.below(spoilt.count)] ^= UInt8(1 << random.below(8)) }
            #expect(replayed(spoilt) <= whole)
        }
        for _ in 0..<50 { #expect(replayed(Array(bytes.prefix(random.below(bytes.count)))) <= whole) }
        var image = try Recording(bytes).node.image
        for length in stride(from: 0, to: image.count, by: max(1, image.count / 500)) {
            #expect(TrackerNode(image: Array(image.prefix(length))) == nil)
        }
        image.append(0)
        #expect(TrackerNode(image: image) == nil)
    }

    /// Steps whose effects are the recorded ones.
    private func replayed(_ bytes: [UInt8]) -> Int {
        guard let recording = try? Recording(bytes) else { return 0 }
        var replay = Replay(recording)
        while let step = replay.next() { if step.agrees == false { break } }
        return replay.count
    }

    @Test
    func `several recordings are one story`() throws {
        let scenario = Scenario(seed: 3, profile: .paxos)
        let recordings = scenario.recordings(byteCount: (8 << 20) + RecordingTests.header).joined().compactMap {
            try? Recording($0)
        }
        let story = RecordedStory(recordings, keepsCaptures: true)
        #expect(story.isAsRecorded)
        #expect(story.broken.isEmpty)
        #expect(story.verdicts.allSatisfy { $0.contains("effects: the same in ") })
        // Clocks of simulated trackers differ: whoever hears may seem to be before who speaks.
        #expect(story.history.transmissions.count > 1000)
        #expect(story.history.transitions.contains { $0.kind == .becameMaster })
        #expect(zip(story.lines, story.lines.dropFirst()).allSatisfy { $0.time <= $1.time })
        #expect(story.diagram().svg().hasPrefix("<svg"))
        #expect(story.capture.bytes.count > 100_000)
        let moment = RecordedStory(recordings, stopsAt: Instant(nanoseconds: 5_000_000_000), telling: [0])
        #expect(moment.state.first == "tracker 1 at 5.000 s")
    }

    @Test
    func `a copy that is made while steps are recorded is a recording`() throws {
        let lives = Scenario(seed: 2, profile: .alone).recordings(byteCount: (2 << 20) + RecordingTests.header).joined()
        var copies = 0
        for bytes in lives { copies += try copiesOfLife(Recording(bytes)) }
        #expect(copies > 50)
    }

    /// Records a life once more, and copies what is recorded after each step.
    private func copiesOfLife(_ life: Recording) throws -> Int {
        var source = life
        let room = RecordingRoom(byteCount: (64 << 10) + RecordingTests.header)
        var recorder = Recorder(room: room, life: source.life, now: source.from)
        let image = source.node.image
        var node = source.node
        var effects = Effects()
        var copies = 0
        while let step = source.next() {
            if recorder.wantsImage, let ticket = recorder.beginImage(byteCount: image.count, now: step.now) {
                recorder.take(node.image, of: ticket)
            }
            // What came of the last one is still there.
            recorder.record(step.event, now: step.now, effects)
            node.step(step.event, now: step.now, into: &effects)
            recorder.stepped(effects, node.state.position)
            if effects.messages.count + effects.persists.count > 4 { effects.removeAll() }
            var copy = [UInt8](repeating: 0, count: room.bytes.count)
            let isWritten = room.copy { part, offset in
                copy.replaceSubrange(offset..<offset + part.count, with: part)
                return true
            }
            #expect(isWritten)
            if let recording = try? Recording(copy) {
                var replay = Replay(recording)
                while let step = replay.next() { #expect(step.agrees == true) }
                copies += 1
            }
        }
        recorder.end()
        #expect(room.summary?.endedInOrder == true)
        return copies
    }

    /// What fills a ring's end may be as short as eight bytes, and no whole frame.
    @Test
    func `the steps go on past the end of a ring, whatever is left there`() throws {
        var ends: [Int: ClockReading] = [:]
        var compared = 0
        for extra in 0..<64 {
            let byteCount = RecordingTests.small + RecordingTests.header + 8 * extra
            let all = Scenario(seed: 3, profile: .paxos).recordings(byteCount: byteCount)
            for (life, bytes) in all.joined().enumerated() {
                guard var recording = try? Recording(bytes) else { continue }
                var end: ClockReading?
                while let step = recording.next() { end = step.now }
                guard let known = ends[life] else {
                    ends[life] = end
                    continue
                }
                #expect(end == known, "in a ring of \(byteCount) bytes")
                compared += 1
            }
        }
        #expect(compared > 100)
    }

    @Test
    func `of a file that is cut off the steps before the cut replay`() throws {
        let all = Scenario(seed: 3, profile: .paxos).recordings(byteCount: RecordingTests.small + RecordingTests.header)
        for bytes in all.joined() {
            guard let whole = try? Recording(bytes) else { continue }
            #expect(whole.missingByteCount == 0)
            #expect(throws: RecordingUnreadable.damaged) { try Recording(bytes + [0]) }
            #expect(throws: RecordingUnreadable.notARecording) { try Recording(Array(bytes[..<100])) }
            let count = RecordingTests.steps(whole)
            var counts: [Int] = []
            for cut in stride(from: RecordingTests.header, to: bytes.count, by: 4099) {
                guard let part = try? Recording(Array(bytes[..<cut])) else { continue }
                #expect(part.missingByteCount == bytes.count - cut)
                counts.append(RecordingTests.steps(part))
            }
            // Behind the newest step of a ring that has come round lie the oldest ones.
            #expect(counts.allSatisfy { $0 <= count })
            #expect(counts.last ?? 0 > 0)
        }
    }

    private static func steps(_ recording: Recording) -> Int {
        var replay = Replay(recording)
        while let step = replay.next() { #expect(step.agrees != false) }
        return replay.count
    }

    @Test
    func `a state that is too large for the ring is told, and not kept`() {
        let room = RecordingRoom(byteCount: (64 << 10) + RecordingTests.header)
        let now = ClockReading(monotonic: Instant(nanoseconds: 5), wall: WallTime(milliseconds: 6))
        var recorder = Recorder(room: room, life: Life(id: 1, incarnation: 2), now: now)
        #expect(recorder.wantsImage)
        #expect(recorder.beginImage(byteCount: 1 << 20, now: now) == nil)
        #expect(recorder.status.isTooLarge)
        #expect(!recorder.wantsImage)
        for _ in 0..<1000 {
            recorder.record(.deadlineReached, now: now, Effects())
            recorder.stepped(Effects(), .start)
        }
        #expect(recorder.wantsImage)
        #expect(recorder.status.since == nil)
    }
}

/// All stored parts of a value, a line each, but for indexes and counts that follow from the rest.
private enum Parts {
    static func of(_ value: Any) -> [String] {
        var lines: [String] = []
        walk(value, "", &lines)
        return lines
    }

    private static func walk(_ value: Any, _ path: String, _ lines: inout [String]) {
        // Their order is of no account, and made anew.
        if ["SlotIndex", "AddressCounts"].contains("\(type(of: value))") { return }
        let mirror = Mirror(reflecting: value)
        if mirror.children.isEmpty || value is [UInt8] {
            lines.append("\(path)=\(value)")
            return
        }
        for (number, child) in mirror.children.enumerated() {
            walk(child.value, "\(path).\(child.label ?? "\(number)")", &lines)
        }
    }
}

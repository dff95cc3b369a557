// What recordings of real trackers tell, in the words and pictures of simulated ones.

import Primitives
import TrackerLogic
import Wire

/// What recordings of real trackers tell, in the words and pictures of simulated ones.
///
/// Each recording is replayed, and the steps of all are told in the order of their times: by the monotonic clock where
/// all ran on one machine, else by wall clocks, which may differ, so that an answer may seem to come before its
/// question.
public struct RecordedStory: Sendable {
    /// What came of one recording.
    public struct Part: Sendable {
        /// The tracker's place among the columns.
        public var place: Int
        /// Its life.
        public var life: Life
        /// The version of the program that made the recording.
        public var program: String
        /// Steps that were run.
        public var steps = 0
        /// The first step whose effects were others, counted from 1, and when that was.
        public var difference: (step: Int, time: Instant, text: String)?
        /// Bytes that the file lacks at its end.
        public var missingByteCount: Int
        /// Whether the last step has no effects on record: the life ended in it.
        public var endedInStep = false
        /// The last step told, with nothing behind it on record.
        public var end = Instant(nanoseconds: 0)
    }

    /// A promise that the replay found broken.
    public struct Broken: Sendable {
        /// When.
        public var time: Instant
        /// At which tracker's place.
        public var place: Int
        /// What.
        public var text: String
    }

    /// How the trackers are called.
    public let names: TrackerNames
    /// One for each recording, in the order of their beginnings.
    public private(set) var parts: [Part] = []
    /// One line a step.
    public private(set) var lines: [TraceLine] = []
    /// For pictures and captures.
    public private(set) var history = History()
    /// In the order of time.
    public private(set) var broken: [Broken] = []
    /// How trackers stood at the moment that was asked for.
    public private(set) var state: [String] = []
    /// The wall clock at its beginning.
    public let began: WallTime

    /// Replays recordings and tells of them.
    ///
    /// - Parameters:
    ///   - recordings: at least one, in any order.
    ///   - moment: where it ends, to tell how trackers stand there; nil for the whole story.
    ///   - places: of the trackers of which that is told; empty for all.
    ///   - keepsCaptures: whether clients' datagrams and the messages' bytes are kept, for a capture.
    ///   - key: where it is told so that it can be shown to anybody, a secret by which clients get their names.
    public init(
        _ recordings: [Recording], stopsAt moment: Instant? = nil, telling places: [Int] = [],
        keepsCaptures: Bool = false, anonymous key: SipHash? = nil
    ) {
        let clients = key.map { TraceNames.pseudonyms($0) } ?? .addresses
        precondition(!recordings.isEmpty, "a story is told of something")
        let clock = StoryClock(recordings)
        let order = recordings.indices.sorted {
            (clock.time(recordings[$0].from, of: recordings[$0]), $0)
                < (clock.time(recordings[$1].from, of: recordings[$1]), $1)
        }
        var ids: [UInt32] = []
        for place in order where !ids.contains(recordings[place].life.id) { ids.append(recordings[place].life.id) }
        ids.sort()
        names = TrackerNames(ids)
        began = clock.wall
        var trace = Trace(names: names, clients: clients, isRecording: true)
        var teller = StoryTeller(count: ids.count, keepsCaptures: keepsCaptures)
        var lives = order.map {
            StoryLife(recordings[$0], place: ids.firstIndex(of: recordings[$0].life.id) ?? 0, clock)
        }
        parts = lives.map {
            Part(
                place: $0.place, life: $0.recording.life, program: $0.recording.program,
                missingByteCount: $0.recording.missingByteCount)
        }
        while let number = lives.indices.filter({ lives[$0].next != nil }).min(by: { lives[$0].at < lives[$1].at }) {
            if let moment, lives[number].at > moment { break }
            guard let step = lives[number].step() else { continue }
            let (place, time) = (lives[number].place, lives[number].at)
            if parts[number].steps == 0 { teller.begins(lives[number].recording, place, at: time) }
            parts[number].steps += 1
            parts[number].endedInStep = step.agrees == nil
            parts[number].end = time
            if step.agrees == false, parts[number].difference == nil {
                let text = TraceText.describe(step.recorded.event, names: clients)
                parts[number].difference = (parts[number].steps, time, text)
            }
            trace.line(
                time, place, step.recorded.event, lives[number].replay.effects, lives[number].replay.node.inspection)
            teller.tell(step.recorded.event, lives[number].replay.effects, lives[number].life, place, at: time)
            // What stays broken is found with each step.
            if let text = lives[number].broken ?? teller.crossCheck(lives[number].replay.node, place),
                !broken.suffix(RecordedStory.rememberedCount).contains(where: { $0.text == text && $0.place == place })
            {
                broken.append(Broken(time: time, place: place, text: text))
                trace.line(time, about: 1 << UInt32(place), "VIOLATION \(text)")
            }
            lives[number].advance()
            if lives[number].next == nil {
                let recording = lives[number].recording
                let isEnd = recording.endedInOrder && recording.missingByteCount == 0
                let text = isEnd ? "stops in good order" : "its recording ends"
                let kind: History.Kind = isEnd ? .stopped : .died
                teller.history.transitions.append(History.Transition(time: time, node: place, kind: kind, text: text))
                trace.show(place, "-")
                trace.line(time, .lives, of: place, text)
            }
        }
        history = teller.history
        lines = trace.takeLines()
        guard let moment else { return }
        for place in places.isEmpty ? Array(ids.indices) : places {
            guard let life = lives.last(where: { $0.place == place && $0.from <= moment }) else { continue }
            state += RecordedStory.tell(life, at: moment, names, clients)
        }
    }

    private static func tell(
        _ life: StoryLife, at moment: Instant, _ names: TrackerNames, _ clients: TraceNames
    ) -> [String] {
        let account = life.replay.node.account(
            now: life.monotonic(moment), since: { "\(Figure.seconds(life.storyTime($0))) s" },
            client: { clients.name($0) })
        let width = account.items.map { $0.title.count }.max() ?? 0
        return ["\(names[life.place]) at \(Figure.seconds(moment)) s"]
            + account.items.map { "  \($0.title)\(String(repeating: " ", count: width - $0.title.count))  \($0.text)" }
    }

    /// Whether all effects were the recorded ones.
    public var isAsRecorded: Bool { parts.allSatisfy { $0.difference == nil } }

    /// Each recording in a line.
    public var verdicts: [String] {
        parts.map { part in
            let who = "\(names[part.place]), life \(String(part.life.incarnation, radix: 16))"
            let end =
                part.missingByteCount > 0
                ? "; its file is cut off, and what was in the last \(part.missingByteCount) bytes is not told"
                : part.endedInStep ? "; the life ended in the last of them" : ""
            guard let difference = part.difference else {
                return "\(who): effects: the same in \(part.steps) steps\(end)"
            }
            return
                "\(who): effects: others in step \(difference.step) of \(part.steps), at "
                + "\(Figure.seconds(difference.time)) s: \(difference.text)"
        }
    }

    /// The story as a picture, of its last part where it is long, and of what led to the first broken promise where
    /// there is one and no moment is asked for.
    public func diagram(
        from: Instant? = nil, until: Instant? = nil, hasKeepalives: Bool = false
    ) -> SpaceTimeDiagram {
        var diagram = SpaceTimeDiagram(
            title: "recorded: \(names.short.count == 1 ? "1 tracker" : "\(names.short.count) trackers")",
            lanes: names.short.indices.map { names[$0] })
        diagram.caption = caption
        diagram.add(history, hasKeepalives: hasKeepalives)
        for violation in broken.prefix(RecordedStory.drawnCount) {
            diagram.marks.append(
                SpaceTimeDiagram.Mark(violation.time, lane: violation.place, .violation, violation.text))
        }
        let turn = from == nil ? broken.first.map { $0.time + RecordedStory.aftermath } : nil
        diagram.clip(from: from, until: until ?? turn, maxArrows: ScenarioResult.maxArrows)
        return diagram
    }

    /// So long after a promise was first broken a picture ends.
    private static let aftermath = Duration.milliseconds(20)
    /// More of them would hide what led to the first.
    private static let drawnCount = 3
    /// So many of the last are not told again.
    private static let rememberedCount = 16

    /// What came of the recordings, in one line.
    private var caption: String {
        guard isAsRecorded else {
            let others = zip(parts, verdicts).filter { $0.0.difference != nil }
            return others.map { $0.1 }.joined(separator: "; ")
        }
        return "effects: the same in \(parts.reduce(0) { $0 + $1.steps }) steps"
    }

    /// All that clients and trackers sent, in the order of time.
    public var capture: PacketCapture { history.capture(comment: verdicts.joined(separator: "; "), names) }
}

/// One time for all recordings.
private struct StoryClock: Sendable {
    /// Whether all share a monotonic clock.
    let isShared: Bool
    /// What is 0 s.
    private let start: Int64
    let wall: WallTime

    init(_ recordings: [Recording]) {
        let isShared = recordings[0].boot != 0 && recordings.allSatisfy { $0.boot == recordings[0].boot }
        self.isShared = isShared
        start =
            recordings.map { StoryClock.nanoseconds($0.from.monotonic, of: $0, isShared) }.min() ?? 0
        wall = recordings.map { $0.from.wall }.min() ?? WallTime(milliseconds: 0)
    }

    private static func nanoseconds(_ time: Instant, of recording: Recording, _ isShared: Bool) -> Int64 {
        isShared
            ? time.nanoseconds
            : recording.began.wall.milliseconds &* 1_000_000 &+ (time - recording.began.monotonic).nanoseconds
    }

    func time(_ now: ClockReading, of recording: Recording) -> Instant { self.time(now.monotonic, of: recording) }

    func time(_ time: Instant, of recording: Recording) -> Instant {
        Instant(nanoseconds: StoryClock.nanoseconds(time, of: recording, isShared) &- start)
    }
}

/// A life that is replayed.
private struct StoryLife: Sendable {
    let recording: Recording
    let place: Int
    let from: Instant
    private let clock: StoryClock
    private(set) var replay: Replay
    private var checks = LifeChecks()
    /// The step that is told next; nil behind the last.
    private(set) var next: RecordedStep?
    /// When that is, and while it is told, when it was.
    private(set) var at: Instant
    private(set) var broken: String?

    init(_ recording: Recording, place: Int, _ clock: StoryClock) {
        self.recording = recording
        self.place = place
        self.clock = clock
        from = clock.time(recording.from, of: recording)
        replay = Replay(recording)
        at = from
        advance()
    }

    /// As it is now; a newcomer is given its number on the way.
    var life: Life { replay.node.inspection.life }

    mutating func step() -> Replay.Step? {
        guard let step = replay.next() else {
            next = nil
            return nil
        }
        broken = checks.check(replay.node, after: step.recorded.event, replay.effects)?.text
        return step
    }

    mutating func advance() {
        next = replay.peek()
        if let next { at = max(at, clock.time(next.now, of: recording)) }
    }

    func storyTime(_ monotonic: Instant) -> Instant { clock.time(monotonic, of: recording) }

    /// The tracker's clock at a time of the story.
    func monotonic(_ moment: Instant) -> Instant {
        moment + (recording.from.monotonic - from)
    }
}

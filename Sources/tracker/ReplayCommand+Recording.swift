// `tracker replay FILE…`: what real trackers have recorded.

import ArgumentParser
import Foundation
import Primitives
import Settings
import Simulator
import TrackerLogic
import Wire

extension ReplayCommand {
    /// Refuses what only a seed has.
    func checkRecordings() throws {
        let isThere = FileManager.default.fileExists(atPath:)
        if let seed = subjects.first(where: { UInt64($0) != nil && !isThere($0) }) {
            throw ValidationError(
                "\(seed) is a seed, and one seed is replayed at a time: write `tracker replay \(seed)` alone")
        }
        let given =
            options.given
            + [
                ("--words", words != nil), ("--swarm", options.swarm), ("--clients", clients != nil),
                ("--only-trackers", onlyTrackers != nil), ("--only-clients", onlyClients != nil),
                ("--faults", faults != nil), ("--injections", chosenInjections != nil),
                ("--without", without != nil), ("--shrink", shrink), ("--what-if", !whatIfs.isEmpty),
                ("--peer", !peers.isEmpty),
            ].filter { $0.1 }.map { $0.0 }
        if !given.isEmpty {
            throw ValidationError("a recording is replayed as it is: leave out \(given.joined(separator: ", "))")
        }
        for path in subjects where !isThere(path) {
            throw ValidationError("\"\(path)\" is neither a seed nor a file with a recording")
        }
    }

    /// Replays what trackers have recorded, and shows it as one story.
    func replayRecordings() async throws {
        let recordings = try subjects.map { path throws(Failure) in try Self.recording(path) }
        let (moment, keepsCaptures) = (Self.time(at), pcap != nil)
        var ids: [UInt32] = []
        for recording in recordings where !ids.contains(recording.life.id) { ids.append(recording.life.id) }
        let places = try places(TrackerNames(ids.sorted()))
        var random = SystemRandomNumberGenerator()
        let key = anonymous ? SipHash(key0: random.next(), key1: random.next()) : nil
        let story = await onThread {
            RecordedStory(
                recordings, stopsAt: moment, telling: places, keepsCaptures: keepsCaptures, anonymous: key)
        }
        let filter = TraceFilter(
            from: Self.time(from), until: Self.time(until), trackers: places, kinds: try chosenKinds())
        if report.isJSON {
            try report.writeJSON(RecordingDocument(story, at == nil && !quiet ? filter : nil))
        } else {
            tell(story, filter)
        }
        guard at == nil else { return }
        if let svg {
            let diagram = story.diagram(
                from: Self.time(from), until: Self.time(until), hasKeepalives: keepalives)
            try Self.write(Array(diagram.svg().utf8), to: svg)
        }
        if let pcap { try Self.write(story.capture.bytes, to: pcap) }
        if !story.isAsRecorded || !story.broken.isEmpty { throw Failure(.failed, nil) }
    }

    private static func recording(_ path: String) throws(Failure) -> Recording {
        let bytes = try Failure.telling(.system) { try BoundedFile.read(path, atMost: Recording.maxByteCount) }
        do throws(RecordingUnreadable) {
            return try Recording(bytes)
        } catch {
            switch error {
            case .notARecording: throw Failure(.usage, "\(path) is no recording of a tracker")
            case .otherVersion(let version):
                throw Failure(
                    .usage, "\(path) is a recording of version \(version); replay it with the release that made it")
            case .damaged:
                throw Failure(
                    .system,
                    "\(path) is damaged, or was made by a release whose state this one cannot read: replay it with that"
                )
            case .noImage:
                throw Failure(
                    .system,
                    "\(path) holds no whole image of the tracker's state to begin from: the state was too large for a "
                        + "recording, or the file is damaged")
            }
        }
    }

    private func tell(_ story: RecordedStory, _ filter: TraceFilter) {
        guard at == nil else { return Terminal.output.write(story.state.joined(separator: "\n") + "\n") }
        if !quiet {
            let places = filter.trackers.isEmpty ? nil : filter.trackers
            var lines = story.names.heads(columns: places)
            for line in story.lines where filter.holds(line) {
                lines.append(line.words(columns: places))
                guard lines.count >= 1000 else { continue }
                Terminal.output.write(lines.joined(separator: "\n") + "\n")
                lines = []
            }
            Terminal.output.write(lines.joined(separator: "\n") + "\n")
        }
        for broken in story.broken.prefix(5) {
            Terminal.errors.write(
                "\(story.names[broken.place]) at \(Self.seconds(broken.time)) s: a promise is broken: \(broken.text)\n")
        }
        for verdict in story.verdicts { Terminal.errors.write(verdict + "\n") }
    }

    private static func seconds(_ time: Primitives.Instant) -> String {
        String(format: "%.6f", Double(time.nanoseconds) / 1e9)
    }

    private struct RecordingDocument: Encodable {
        struct Part: Encodable {
            var tracker: String
            var life: String
            var program: String
            var steps: Int
            var difference: Int?
            var missingBytes: Int?
        }

        struct Broken: Encodable {
            var tracker: String
            var seconds: Double
            var detail: String
        }

        var recordings: [Part]
        var violations: [Broken]
        var began: Double
        var trace: [String]?
        var state: [String]?

        init(_ story: RecordedStory, _ filter: TraceFilter?) {
            recordings = story.parts.map {
                Part(
                    tracker: story.names[$0.place], life: String($0.life.incarnation, radix: 16), program: $0.program,
                    steps: $0.steps, difference: $0.difference?.step,
                    missingBytes: $0.missingByteCount > 0 ? $0.missingByteCount : nil)
            }
            violations = story.broken.map {
                Broken(
                    tracker: story.names[$0.place], seconds: Double($0.time.nanoseconds) / 1e9, detail: $0.text)
            }
            began = Double(story.began.milliseconds) / 1000
            state = story.state.isEmpty ? nil : story.state
            guard let filter else { return }
            let places = filter.trackers.isEmpty ? nil : filter.trackers
            trace = story.lines.filter(filter.holds).map { $0.words(columns: places) }
        }
    }
}

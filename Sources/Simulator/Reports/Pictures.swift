// What came of a run of a cluster, as a space-time diagram, as a capture, and as a failure in a few lines.

import Primitives
import TrackerLogic

extension ScenarioResult {
    /// Messages in one picture; more cannot be told apart.
    public static let maxArrows = 600

    /// The run as a picture, of its last part where it is long.
    ///
    /// - Parameters:
    ///   - run: what was run, with its history.
    ///   - from: where the picture begins at the earliest; nil for the beginning of the run.
    ///   - until: where it ends; nil for the end of the run.
    ///   - hasKeepalives: whether signs of life are drawn, too.
    /// - Returns: a picture of `maxArrows` messages at most.
    public func diagram(
        of run: Run, from: Instant? = nil, until: Instant? = nil, hasKeepalives: Bool = false
    ) -> SpaceTimeDiagram {
        let options = run.scenario.options
        let lanes = names.short.indices.map { names[$0] }
        var diagram = SpaceTimeDiagram(
            title: "seed \(seed), profile \(profile.rawValue), \(options.nodeCount) trackers", lanes: lanes)
        diagram.caption = "trace hash \(SweepReport.text(hash: traceHash))"
        diagram.add(history, hasKeepalives: hasKeepalives)
        for violation in violations {
            diagram.marks.append(
                SpaceTimeDiagram.Mark(
                    violation.time, lane: 0, .violation, "\(violation.invariant.rawValue): \(violation.detail)"))
        }
        diagram.notes = reasons
        diagram.clip(from: from, until: until, maxArrows: ScenarioResult.maxArrows)
        return diagram
    }

    /// The profile, as a command line names it.
    public var profileName: String { profile.rawValue }

    /// The line of the trace at which the violation was seen; where what went wrong has left no line, the last before.
    public var firstBadEvent: String? {
        lines.last { !$0.text.hasPrefix("VIOLATION ") }?.words()
    }

    /// A failure with all that is needed to see it again; the trace was recorded.
    public func failure(of run: Run) -> String {
        var lines = violations.map { violation in
            "seed \(seed), profile \(profile.rawValue): \(violation.invariant.rawValue) violated at "
                + "\(Figure.seconds(violation.time)) s: \(violation.detail)"
        }
        if !reasons.isEmpty {
            lines.append("  why:")
            lines += reasons.map { "    \($0)" }
        }
        lines.append("  options:         \(run.scenario.options.summary)")
        if let firstBadEvent { lines.append("  first bad event: \(firstBadEvent)") }
        lines.append("  replay:          \(run.command)")
        return lines.joined(separator: "\n") + "\n"
    }
}

extension SpaceTimeDiagram.Topic {
    /// What a message of this name is about.
    init(messageName name: String) {
        self =
            switch name {
            case "PREPARE", "OK", "ERROR", "COMMIT": .vote
            case "SUSPECT", "ELECTION", "ANSWER", "COORDINATOR", "HANDOVER": .election
            case "FORWARD", "ANSWERED", "CONFIRM", "CONFIRMED": .request
            case "KEEPALIVE": .life
            default: .join
            }
    }
}

extension History.Kind {
    /// What a tracker is from then on; nil where that does not change it.
    public var condition: SpaceTimeDiagram.Condition? {
        switch self {
        case .started, .steppedDown: .newcomer
        case .died, .stopped: .down
        case .stands: .candidate
        case .becameMaster: .master
        case .follows: .slave
        case .committed, .aborted, .suspects, .clockStep, .paused, .busLost, .busConnected, .transfer,
            .storageFailed, .fenced, .other:
            nil
        }
    }
}

extension SpaceTimeDiagram {
    /// Draws what happened.
    mutating func add(_ history: History, hasKeepalives: Bool) {
        for transition in history.transitions { add(transition) }
        for period in history.periods { add(period) }
        for message in history.transmissions {
            let topic = Topic(messageName: message.name)
            guard hasKeepalives || topic != .life else { continue }
            arrows.append(
                Arrow(
                    message.name, topic, from: message.from, to: message.to, sentAt: message.sentAt,
                    receivedAt: message.receivedAt))
        }
        // In the order of sending; they were written down as they came.
        let order = arrows.indices.sorted { (arrows[$0].sentAt, $0) < (arrows[$1].sentAt, $1) }
        arrows = order.map { arrows[$0] }
    }

    private mutating func add(_ transition: History.Transition) {
        let (time, lane) = (transition.time, transition.node)
        if let condition = transition.kind.condition { changes.append(Change(time, lane: lane, condition)) }
        let sign: Sign
        switch transition.kind {
        case .started: sign = .start
        case .died, .stopped: sign = .crash
        case .stands, .becameMaster, .steppedDown, .suspects: sign = .election
        case .committed: sign = .commit
        case .aborted: sign = .abort
        case .clockStep: sign = .fault
        // The band beside the line tells when it was held, and for how long.
        case .paused: return
        case .follows, .busLost, .busConnected, .transfer, .storageFailed, .fenced, .other: sign = .note
        }
        marks.append(Mark(time, lane: lane, sign, transition.words))
    }

    private mutating func add(_ period: History.Period) {
        let trouble: Trouble
        switch period.kind {
        case .links: trouble = .partition
        case .held: trouble = .pause
        case .noBus: trouble = .fence
        case .dark: trouble = .darkness
        case .disk: trouble = .disk
        // The line itself tells.
        case .down: return
        }
        spans.append(
            Span(from: period.from, until: period.until, lanes: period.trackers, trouble, period.text))
    }
}

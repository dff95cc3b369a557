// What is wrong in a simulated cluster at the moment by the simulator's doing.

import Primitives

/// What is wrong just now with links, trackers or disks, by the simulator's doing.
struct LinkFault: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        /// Links carry nothing.
        case deaf
        /// Links hold what they are given.
        case clogged
        /// Links take longer.
        case slow
        /// A tracker is dead.
        case down
        /// A tracker is held.
        case held
        /// A tracker has no bus.
        case noBus
        /// No client reaches a tracker, nor the other way round.
        case dark
        /// A tracker's writes fail, or take long; both are put right at once.
        case disk
        /// A tracker's writes fail in an unknown way, until it dies.
        case brokenDisk

        var isOfLinks: Bool { self == .deaf || self == .clogged || self == .slow }
    }

    /// From the first tracker to the second, by their places.
    struct Link: Sendable, Hashable {
        var from: Int
        var to: Int
    }

    var kind: Kind
    /// Whose doing: `fault 26`.
    var cause: String
    /// What and between whom: `partition {1, 2} | {3}`.
    var text: String
    /// Places, one bit each.
    var trackers: UInt32
    var links: [Link] = []
    var beganAt: Instant
    /// nil where something else than time ends it.
    var endsAt: Instant?
    /// Which of the history's periods it is.
    var period: Int?
}

/// What is wrong in a simulated cluster at the moment by the simulator's doing, so that it can be told between whom it
/// is, when it began and when it ended.
///
/// Kept only where somebody wants to read the story.
struct LinkFaults: Sendable {
    private(set) var all: [LinkFault] = []

    mutating func begin(_ trouble: LinkFault) { all.append(trouble) }

    /// Takes out what is over by now, in the order of its end.
    mutating func takeEnded(by now: Instant) -> [LinkFault] {
        take { $0.endsAt.map { $0 <= now } ?? false }.enumerated()
            .sorted { ($0.element.endsAt!, $0.offset) < ($1.element.endsAt!, $1.offset) }.map { $0.element }
    }

    /// Takes out what troubles one tracker in one of these ways.
    mutating func take(_ kinds: [LinkFault.Kind], of node: Int) -> [LinkFault] {
        take { kinds.contains($0.kind) && !$0.kind.isOfLinks && $0.trackers == 1 << UInt32(node) }
    }

    mutating func takeAll(where isOver: (LinkFault.Kind) -> Bool) -> [LinkFault] { take { isOver($0.kind) } }

    /// A new trouble takes the place of older ones of its kind.
    ///
    /// - Returns: those that are left without a link, or a tracker.
    mutating func takeOver(
        _ links: [LinkFault.Link], _ kind: LinkFault.Kind, _ trackers: UInt32
    ) -> [LinkFault] {
        guard kind.isOfLinks else { return kind == .dark ? take { $0.kind == kind && $0.trackers == trackers } : [] }
        for place in all.indices where all[place].kind == kind { all[place].links.removeAll { links.contains($0) } }
        return take { $0.kind == kind && $0.links.isEmpty }
    }

    /// A tracker hears the others again, and is heard.
    ///
    /// - Returns: those that are left without a link.
    mutating func free(_ node: Int) -> [LinkFault] {
        for place in all.indices where all[place].kind == .deaf {
            all[place].links.removeAll { $0.from == node || $0.to == node }
        }
        return take { $0.kind == .deaf && $0.links.isEmpty }
    }

    /// What troubles a tracker in one of these ways, the latest first.
    func find(_ kinds: [LinkFault.Kind], of node: Int) -> LinkFault? {
        all.last { kinds.contains($0.kind) && $0.trackers >> UInt32(node) & 1 == 1 }
    }

    private mutating func take(_ isOver: (LinkFault) -> Bool) -> [LinkFault] {
        guard all.contains(where: isOver) else { return [] }
        let over = all.filter(isOver)
        all.removeAll(where: isOver)
        return over
    }
}

extension World {
    /// Whether anybody wants to read what happens.
    var isTold: Bool { trace.isRecording || keepsMarks }
    /// Whether what happens to trackers is kept for a picture.
    var keepsMarks: Bool { keepsHistory || player.isWatching }

    /// Something begins to go wrong.
    ///
    /// `duration` is how long it is to last, as far as that is known; with `endsByTime` it is over then, whatever
    /// happens.
    mutating func begin(
        _ kind: LinkFault.Kind, _ cause: String, _ text: String, trackers: UInt32,
        links: [LinkFault.Link] = [], for duration: Duration? = nil, endsByTime: Bool = false,
        isQuiet: Bool = false
    ) {
        guard isTold else { return }
        for over in troubles.takeOver(links, kind, trackers) { end(over, at: now, "gives way to \(cause)") }
        var trouble = LinkFault(
            kind: kind, cause: cause, text: text, trackers: trackers, links: links, beganAt: now,
            endsAt: endsByTime ? duration.map { now + $0 } : nil)
        if !isQuiet {
            let length = duration.map { ", for \(Figure.seconds($0)) s" } ?? ""
            trace.line(now, .faults, about: trackers, "\(trouble.cause) begins: \(trouble.text)\(length)")
        }
        if keepsMarks {
            trouble.period = history.periods.count
            history.periods.append(
                History.Period(
                    kind: kind.period, from: now, until: nil,
                    trackers: nodes.indices.filter { trackers >> UInt32($0) & 1 == 1 },
                    text: "\(trouble.cause): \(trouble.text)"))
        }
        troubles.begin(trouble)
    }

    /// Something is well again; `how` is a verb, where it does not just end.
    mutating func end(_ trouble: LinkFault, at time: Instant, _ how: String = "ends") {
        let length = Figure.seconds(time - trouble.beganAt)
        trace.line(time, .faults, about: trouble.trackers, "\(trouble.cause) \(how) after \(length) s: \(trouble.text)")
        if let period = trouble.period { history.periods[period].until = time }
    }

    /// Tells of what time has ended.
    mutating func endTroubles() { for over in troubles.takeEnded(by: now) { end(over, at: over.endsAt ?? now) } }

    /// A tracker hears the others again, and is heard.
    mutating func endLinks(of node: Int) { for over in troubles.free(node) { end(over, at: now) } }

    /// Something has ended what troubled a tracker.
    mutating func endTroubles(_ kinds: [LinkFault.Kind], of node: Int, _ how: String = "ends") {
        guard isTold else { return }
        for over in troubles.take(kinds, of: node) { end(over, at: now, how) }
    }
}

extension LinkFault.Kind {
    fileprivate var period: History.Period.Kind {
        switch self {
        case .deaf, .clogged, .slow: .links
        case .down: .down
        case .held: .held
        case .noBus: .noBus
        case .dark: .dark
        case .disk, .brokenDisk: .disk
        }
    }
}

// One line of a cluster's trace.

import Primitives

/// What a line of a trace is about; a line may be about several things.
public struct TraceKinds: OptionSet, Sendable, Hashable {
    /// One bit a kind.
    public let rawValue: UInt16

    /// A set of the bits below.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Trackers hear each other, or say something.
    public static let messages = TraceKinds(rawValue: 1 << 0)
    /// Who is master: SUSPECT, ELECTION, ANSWER, COORDINATOR, HANDOVER, and what comes of them.
    public static let elections = TraceKinds(rawValue: 1 << 1)
    /// What is decided: PREPARE, OK, ERROR, COMMIT, FETCH, ENTRIES, and entries that were refused.
    public static let votes = TraceKinds(rawValue: 1 << 2)
    /// Who is part of the cluster: HELLO, WELCOME, chunks of the state, members, merges.
    public static let joins = TraceKinds(rawValue: 1 << 3)
    /// Clients, their datagrams and replies, and their requests between trackers.
    public static let clients = TraceKinds(rawValue: 1 << 4)
    /// Writes, and what became of them.
    public static let disk = TraceKinds(rawValue: 1 << 5)
    /// What goes wrong by the simulator's doing: where it begins, and where it ends.
    public static let faults = TraceKinds(rawValue: 1 << 6)
    /// Trackers start, stop, die, and lose or get their bus.
    public static let lives = TraceKinds(rawValue: 1 << 7)
    /// What the operator commands.
    public static let commands = TraceKinds(rawValue: 1 << 8)

    /// In the order in which they are named to people.
    public static let named: [(name: String, kinds: TraceKinds)] = [
        ("messages", .messages), ("elections", .elections), ("votes", .votes), ("joins", .joins),
        ("clients", .clients), ("disk", .disk), ("faults", .faults), ("lives", .lives), ("commands", .commands),
    ]

    /// - Parameter name: one of `named`.
    public init?(name: String) {
        guard let known = TraceKinds.named.first(where: { $0.name == name }) else { return nil }
        self = known.kinds
    }
}

/// One line of a cluster's trace: when, about whom, of which kinds, how all trackers stood, and what happened.
public struct TraceLine: Sendable, Hashable {
    /// Since the world began.
    public var time: Instant
    /// The places of the trackers that it is about, one bit each; 0 where it is about no single ones.
    public var trackers: UInt32
    /// Empty for what everybody wants to see: the world is healed, a promise is broken.
    public var kinds: TraceKinds
    /// How each tracker stood.
    public var columns: [String]
    /// What happened.
    public var text: String

    /// Takes the fields as they are.
    public init(time: Instant, trackers: UInt32, kinds: TraceKinds, columns: [String], text: String) {
        self.time = time
        self.trackers = trackers
        self.kinds = kinds
        self.columns = columns
        self.text = text
    }

    /// How wide a column is, at least.
    static let width = 16
    /// How wide the time is.
    static let timeWidth = 13

    /// The whole line: time, columns, what happened.
    ///
    /// - Parameter places: of the trackers whose columns are shown; nil for all.
    /// - Returns: one line without its end.
    public func words(columns places: [Int]? = nil) -> String {
        var line = Figure.microseconds(time)
        for place in places ?? Array(columns.indices) where columns.indices.contains(place) {
            line += " │ "
            line += TraceLine.padded(columns[place])
        }
        return line + " │ " + text
    }

    static func padded(_ text: String) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}

/// Which lines of a trace somebody wants to see.
public struct TraceFilter: Sendable, Hashable {
    /// Nothing before it is shown; nil for the beginning.
    public var from: Instant?
    /// Nothing after it is shown; nil for the end.
    public var until: Instant?
    /// Places of trackers; empty for all.
    public var trackers: [Int]
    /// Empty for all.
    public var kinds: TraceKinds

    /// Takes the fields as they are.
    public init(from: Instant? = nil, until: Instant? = nil, trackers: [Int] = [], kinds: TraceKinds = []) {
        self.from = from
        self.until = until
        self.trackers = trackers
        self.kinds = kinds
    }

    /// Whether a line is to be seen; what concerns the whole world is, where its time is right.
    public func holds(_ line: TraceLine) -> Bool {
        if let from, line.time < from { return false }
        if let until, line.time > until { return false }
        if !kinds.isEmpty, !line.kinds.isEmpty, kinds.isDisjoint(with: line.kinds) { return false }
        if trackers.isEmpty || line.kinds.isEmpty { return true }
        return trackers.contains { line.trackers >> UInt32($0) & 1 == 1 }
    }
}

/// How the trackers of a run are called: by the number that they were configured with.
///
/// Who has none is called by its place, in a word that is no number: it may be given another one in each of its lives.
public struct TrackerNames: Sendable, Hashable {
    /// By place: `3`, or `u3` for the third, which has no number of its own.
    public let short: [String]

    /// Takes the numbers by place; 0 for a tracker that is given one by the master.
    public init(_ ids: [UInt32]) {
        short = ids.enumerated().map { place, id in id == 0 ? "u\(place + 1)" : "\(id)" }
    }

    /// `tracker 3`.
    public subscript(place: Int) -> String { "tracker \(short[place])" }

    /// The place of the tracker that is called so; nil where none is.
    public func place(of name: String) -> Int? { short.firstIndex(of: name) }

    /// `{1, 2}`.
    func list(_ places: some Sequence<Int>) -> String {
        "{\(places.map { short[$0] }.joined(separator: ", "))}"
    }

    /// The head of a trace: the names of its columns, and what stands in them.
    public func heads(columns places: [Int]? = nil) -> [String] {
        let title = "seconds"
        var line = String(repeating: " ", count: TraceLine.timeWidth - title.count) + title
        for place in places ?? Array(short.indices) where short.indices.contains(place) {
            line += " │ "
            line += TraceLine.padded(self[place])
        }
        var legend = """
            columns: role, epoch promised, last entry applied (+ one more accepted) · roles: M master, m master not \
            serving yet, S slave, s slave not in good standing, C candidate, N newcomer, F fenced, - down
            """
        if short.contains(where: { $0.hasPrefix("u") }) {
            legend += " · u: has no number of its own; #: the number that it has now"
        }
        return [legend, line + " │ what happens"]
    }
}

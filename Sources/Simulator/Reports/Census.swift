// What happened how often, to see what a sweep never meets.

import Primitives

/// How often each kind of thing happened in scenarios: what trackers said and heard, what was refused, which parts they
/// played one after another, which writes failed, and what went wrong in which state.
///
/// A sweep in which something never happens says nothing about it. Nobody counts unless it is asked for.
public struct Census: Sendable, Hashable {
    /// What is counted together.
    public enum Group: Int, Sendable, Hashable, CaseIterable {
        /// Messages between trackers, as they are sent: once, however many are to hear them.
        case said
        /// The same, as they are heard.
        case heard
        /// What else happens to trackers.
        case events
        /// Why votes were refused.
        case votesRefused
        /// Why trackers were not let in.
        case joinsRefused
        /// What clients were told over UDP.
        case clientsRefused
        /// What was told over HTTP.
        case visitorsRefused
        /// What became of changes at consoles.
        case changes
        /// What trackers said of themselves.
        case observed
        /// Why masters ceased to be one.
        case stepDowns
        /// Which part was played after which.
        case turns
        /// Which writes failed, and how.
        case writesFailed
        /// Which faults hit trackers that played which part.
        case faultsInRoles
        /// Which faults hit trackers with which writes on their way to the disk.
        case faultsAtWrites
        /// What was done to trackers at which bad moments.
        case injections
        /// What was done at bad moments to trackers that played which part.
        case blows

        /// What the group is called, in words.
        public var title: String {
            switch self {
            case .said: "messages said"
            case .heard: "messages heard"
            case .events: "events"
            case .votesRefused: "votes refused"
            case .joinsRefused: "joins refused"
            case .clientsRefused: "refusals over UDP"
            case .visitorsRefused: "refusals over HTTP"
            case .changes: "changes at consoles"
            case .observed: "observations"
            case .stepDowns: "reasons to step down"
            case .turns: "from part to part"
            case .writesFailed: "writes that failed"
            case .faultsInRoles: "faults in parts"
            case .faultsAtWrites: "faults with writes"
            case .injections: "injections"
            case .blows: "injections in parts"
            }
        }
    }

    /// A count with its name.
    public struct Row: Sendable, Hashable {
        /// What it is counted with.
        public var group: Group
        /// What is counted, in words.
        public var name: String
        /// How often it happened.
        public var count: Int
    }

    /// By group, then in the order of its names.
    private var counts: [[Int]]

    /// Nothing has happened.
    public init() { counts = Group.allCases.map { Array(repeating: 0, count: $0.names.count) } }

    /// Something has happened; `place` is its place among the names of the group.
    mutating func note(_ group: Group, _ place: Int) { counts[group.rawValue][place] += 1 }

    /// How often something happened; nil where the group knows nothing of that name.
    public func count(_ group: Group, _ name: String) -> Int? {
        group.names.firstIndex(of: name).map { counts[group.rawValue][$0] }
    }

    /// All counts, in the order of the groups and their names.
    public var rows: [Row] {
        Group.allCases.flatMap { group in
            zip(group.names, counts[group.rawValue]).map { Row(group: group, name: $0, count: $1) }
        }
    }

    /// Adds what happened elsewhere.
    public static func += (left: inout Census, right: Census) {
        for group in left.counts.indices {
            for place in left.counts[group].indices { left.counts[group][place] += right.counts[group][place] }
        }
    }
}

/// What happened in the scenarios of each profile.
public struct CensusByProfile: Sendable, Hashable {
    /// By profile, in the order of `Profile.allCases`.
    private var censuses = Array(repeating: Census(), count: Profile.allCases.count)
    /// Scenarios of each profile.
    private var scenarios = Array(repeating: 0, count: Profile.allCases.count)

    /// Nothing has happened.
    public init() {}

    private static func place(_ profile: Profile) -> Int { Profile.allCases.firstIndex(of: profile) ?? 0 }

    /// Adds what happened in a scenario.
    public mutating func add(_ census: Census, _ profile: Profile) {
        censuses[CensusByProfile.place(profile)] += census
        scenarios[CensusByProfile.place(profile)] += 1
    }

    /// The profiles that were met, in the order of `Profile.allCases`.
    public var profiles: [Profile] { Profile.allCases.filter { scenarioCount($0) > 0 } }

    /// Scenarios of a profile.
    public func scenarioCount(_ profile: Profile) -> Int { scenarios[CensusByProfile.place(profile)] }

    /// What happened in all scenarios of a profile.
    public subscript(profile: Profile) -> Census { censuses[CensusByProfile.place(profile)] }

    /// What happened in all scenarios together.
    public var all: Census {
        var sum = Census()
        for census in censuses { sum += census }
        return sum
    }

    /// A line of a table.
    public struct Line: Sendable, Hashable {
        /// What is counted, in words.
        public var name: String
        /// How often it happened, in the order of `profiles`.
        public var counts: [Int]
    }

    /// A table of a group, its zeros first, then the rarest.
    public func lines(_ group: Census.Group) -> [Line] {
        let lines = group.names.map { name in
            Line(name: name, counts: profiles.map { self[$0].count(group, name) ?? 0 })
        }
        let sorted = lines.enumerated().sorted { left, right in
            let (one, other) = (left.element.counts.reduce(0, +), right.element.counts.reduce(0, +))
            return (one, left.offset) < (other, right.offset)
        }
        return sorted.map { $0.element }
    }
}

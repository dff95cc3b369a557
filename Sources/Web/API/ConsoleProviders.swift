// What the console asks of the process beyond status and orders: faults on purpose, settings, swarms.

import Primitives
import TrackerLogic
import Wire

/// From what a tracker is cut off on purpose.
public enum FaultTarget: Sendable, Hashable {
    /// From the peers: UDP and HTTP.
    case peers
    /// From all other trackers.
    case bus
    /// From one other tracker, both ways.
    case tracker(UInt32)

    /// As the API names it.
    public var id: String {
        switch self {
        case .peers: "peers"
        case .bus: "bus"
        case .tracker(let id): "tracker-\(id)"
        }
    }

    /// The target of a name; nil where there is none.
    init?(id: String) {
        switch id {
        case "peers": self = .peers
        case "bus": self = .bus
        default:
            guard id.hasPrefix("tracker-"), let number = UInt32(id.dropFirst(8)), number > 0 else { return nil }
            self = .tracker(number)
        }
    }

    /// What is to be expected of it, for the page.
    public var expectation: String {
        switch self {
        case .peers:
            "Clients hear nothing from this tracker, and it hears nothing from them; they go to the other trackers. "
                + "Its part in the cluster stays as it is: as a slave it votes, as master it decides what the others "
                + "hand on to it."
        case .bus:
            "This tracker hears no other and none hears it. It answers nobody: as master it steps down, and the others "
                + "elect another within the detection time. What it shows is what it knew. When the cut ends, it "
                + "catches up and follows."
        case .tracker(let id):
            "Tracker \(id) and this one do not hear each other; both still hear the rest. A master and a slave that "
                + "are cut apart go on as long as enough voters are heard: the slave is behind until the cut ends, and "
                + "may ask for an election, which the others refuse while they hear the master."
        }
    }
}

/// A cut that is in force.
public struct InjectedFault: Sendable, Equatable {
    /// From what.
    public var target: FaultTarget
    /// When it began.
    public var since: WallTime
    /// When it ends by itself.
    public var until: WallTime
    /// Until then, by a clock that nobody sets.
    public var remaining: Duration

    /// Takes the fields as they are.
    public init(target: FaultTarget, since: WallTime, until: WallTime, remaining: Duration) {
        self.target = target
        self.since = since
        self.until = until
        self.remaining = remaining
    }
}

/// Cuts this tracker off on purpose, for a while.
public protocol FaultProvider: Sendable {
    /// Those in force, in the order in which they began.
    var faults: [InjectedFault] { get }
    /// Begins a cut, or gives one that is in force another end.
    ///
    /// - Returns: false where too many are in force, or a tracker without a bus has nothing to be cut off from.
    func cut(_ target: FaultTarget, for span: Duration) -> Bool
    /// Ends a cut; nil: all of them.
    ///
    /// - Returns: whether there was one.
    func mend(_ target: FaultTarget?) -> Bool
}

/// What came of the wish to stop or to start the node.
public enum NodeSwitchOutcome: Sendable, Equatable {
    /// It has stopped, or runs.
    case done
    /// In a sentence, with what to do.
    case refused(String)
}

/// Stops the node and starts it again, while the process and its console stay.
public protocol NodeSwitch: Sendable {
    /// Hands the role over, answers who waits, leaves in good order, and answers nobody.
    ///
    /// - Parameter name: the cluster's, where the stop is wanted though nobody would be left to answer.
    /// - Returns: when it has stopped, or why it is not stopped.
    func stopNode(name: String?) async -> NodeSwitchOutcome
    /// Joins again, as after a restart.
    func startNode() async -> NodeSwitchOutcome
}

/// The settings as they are in force, for people.
public struct SettingsInForce: Sendable, Equatable {
    /// Where a value comes from.
    public enum Source: String, Sendable, Hashable {
        /// The console, now or for each start.
        case console
        case flag
        case environment
        case file
        case `default`
    }

    /// One setting.
    public struct Setting: Sendable, Equatable {
        /// Its path in the file.
        public var key: String
        /// As in the file; nil where it is secret.
        public var value: String?
        /// Where it was given last.
        public var source: Source
        /// Without dashes.
        public var flag: String
        /// In one sentence.
        public var about: String
        /// As one types it; nil where the console cannot change it.
        public var typed: String?
        /// What the console has kept for each start, as in the file.
        public var kept: String?
        /// What goes before that at each start.
        public var keptOverriddenBy: Source?

        /// Takes the fields as they are; the console neither changes nor keeps it.
        public init(key: String, value: String?, source: Source, flag: String, about: String) {
            self.key = key
            self.value = value
            self.source = source
            self.flag = flag
            self.about = about
        }
    }

    /// What a profile promises, and what it loses.
    public struct Profile: Sendable, Equatable {
        /// As on the command line; `alone` for a tracker without a bus.
        public var name: String
        /// In a sentence.
        public var promises: String
        /// In a sentence.
        public var givesUp: String

        /// Takes the fields as they are.
        public init(name: String, promises: String, givesUp: String) {
            self.name = name
            self.promises = promises
            self.givesUp = givesUp
        }
    }

    /// The cluster's name.
    public var name: String
    /// In the order of the documentation.
    public var settings: [Setting]
    /// The one in force.
    public var profile: Profile
    /// Counts the changes: the number in their ETag.
    public var revision: UInt64

    /// Takes the fields as they are.
    public init(name: String, settings: [Setting], profile: Profile, revision: UInt64 = 1) {
        self.name = name
        self.settings = settings
        self.profile = profile
        self.revision = revision
    }
}

/// What a node that answers says of one thing.
public enum Sought<Value: Sendable>: Sendable {
    /// It is here.
    case found(Value)
    /// There is no such thing.
    case absent

    /// Nil where there is no such thing.
    var found: Value? { if case .found(let value) = self { value } else { nil } }
}

/// Reads the swarms, page by page.
public protocol SwarmProvider: Sendable {
    /// A page of the list of all swarms.
    ///
    /// - Returns: nil where the node does not answer.
    func swarms(_ query: SwarmQuery) async -> SwarmsPage?
    /// One swarm; nil where the node does not answer.
    func swarm(_ infoHash: InfoHash) async -> Sought<(row: SwarmRow, asOf: WallTime)>?
    /// A page of a swarm's peers; nil where the node does not answer.
    func peers(of infoHash: InfoHash, _ query: PeerQuery) async -> Sought<PeersPage>?
}

/// The parts from which the console's pages are fed; what is nil is not offered.
public struct ConsoleParts: Sendable {
    /// What has happened, and the figures of the last minutes.
    public var events: (log: TransitionLog, history: History)?
    /// The swarms.
    public var swarms: (any SwarmProvider)?
    /// Cuts on purpose.
    public var faults: (any FaultProvider)?
    /// The settings in force, and their changes.
    public var settings: (any SettingsProvider)?
    /// Stops and starts the node.
    public var node: (any NodeSwitch)?
    /// Who may log in.
    public var accounts: (any AccountProvider)?
    /// Whether there are accounts already, before the node runs.
    public var hasAccounts = false
    /// Whether a file names accounts: then everybody logs in, also before they are in force.
    public var expectsAccounts = false
    /// Keeps torrent files.
    public var files: (any TorrentFileProvider)?
    /// Records the tracker.
    public var recordings: (any RecordingProvider)?
    /// What the simulator's page runs; nil where the program has found none.
    public var simulator: SimulatorModule?
    /// In the name of the cookie: the cluster's name and the port.
    public var cookieSuffix = ""

    /// None.
    public init() {}
}

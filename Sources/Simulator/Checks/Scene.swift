// What all checkers look at.

import Primitives
import TrackerLogic
import Wire

/// What all checkers look at: trackers as they were after their last steps, what is on their disks, what has been
/// decided and what the swarms then were; and where they say what is wrong.
struct Scene: Sendable {
    /// A run ends at its first violations; what comes after them is only their consequence.
    private static let maxViolations = 4
    /// Answers of a group that are remembered.
    static let groupAnswerCount = 1024

    let promises: Promises
    let configurations: [NodeConfiguration]
    /// Whether clients ask a multicast group.
    let isGroup: Bool
    private(set) var violations: [Violation] = []

    var nodes: [NodeRecord]
    /// Every life that there has been, and whose.
    var lives: [(life: Life, node: Int)] = []
    /// The ids that vote, as decided (quorum mode).
    var members: [UInt32]
    /// When they last changed.
    var membersSince: Instant?
    var log = DecidedLog()
    /// The swarms after the last entry that is decided (quorum mode).
    var model = SwarmModel()
    var history = CountHistory()
    /// Downloads that each entry has completed, by its index from 1 (quorum mode).
    private var completions: [UInt32] = []
    /// What people keep at the console after that entry.
    var console = ConsoleModel()
    var directory = DirectoryWatch()
    /// What entries have settled of a group's requests (quorum mode).
    var settled = SettledWatch()
    var access = AccessHistory()
    var clocks = ClockWatch()
    /// Whether wall clocks differ by less than the life of a connection id allows, and always have.
    ///
    /// False for good once one was set, alone or along with another fault: its times are in tables and in what was
    /// promised.
    var hasGoodClocks = false

    init(_ profile: Profile, _ configurations: [NodeConfiguration]) {
        promises = Promises(profile)
        self.configurations = configurations
        isGroup = configurations.first?.cluster.entry == .group
        nodes = configurations.map { NodeRecord(configuration: $0, nodeCount: configurations.count) }
        members = configurations.first?.cluster.members ?? []
        if promises.diskDecides, members.isEmpty { members = configurations.map { $0.id } }
    }

    mutating func violate(_ invariant: Invariant, at time: Instant, _ detail: String) {
        guard violations.count < Scene.maxViolations else { return }
        violations.append(Violation(invariant, at: time, detail))
    }

    /// Whether the age of a connection id is the same by all clocks.
    var areAgesKnown: Bool { hasGoodClocks || nodes.count == 1 }

    // MARK: - Who is who

    func name(_ node: Int) -> String { "tracker \(nodes[node].id == 0 ? "without number" : "\(nodes[node].id)")" }

    func node(withID id: UInt32) -> Int? { id == 0 ? nil : nodes.firstIndex { $0.id == id } }

    func node(of life: Life) -> Int? { lives.last { $0.life == life }?.node }

    /// What a tracker has come to know.
    mutating func note(_ event: Event, _ kind: EventKind, node: Int, at time: Instant) {
        guard kind.isMessage || kind == .persisted || kind == .persistFailed else { return }
        switch event {
        case .persisted(let token): nodes[node].disk.noteCompletion(token, isWritten: true)
        case .persistFailed(let token, _): nodes[node].disk.noteCompletion(token, isWritten: false)
        case .messageReceived(let message):
            // Where all share a bus it hears what is for others, too: it leaves that alone, and does not count it.
            if case .one(let addressee) = message.destination, nodes[node].view?.life != addressee { break }
            if let sender = self.node(withID: message.sender.id) { nodes[node].heardAt[sender] = time }
        default: break
        }
    }

    // MARK: - What is decided

    /// An entry has completed so many downloads.
    mutating func note(completions count: UInt32, in index: UInt64) {
        while UInt64(completions.count) < index { completions.append(0) }
        completions[Int(index) - 1] = count
    }

    func completions(in index: UInt64) -> UInt64 {
        index > 0 && index <= UInt64(completions.count) ? UInt64(completions[Int(index) - 1]) : 0
    }

    // MARK: - What is true

    /// The entry since which a reason for a refusal may have been one, of a request that was sent after so many.
    ///
    /// A refusal changes nothing and is not confirmed: a master that has been succeeded and does not know it yet, cut
    /// off for no longer than the detection time, refuses for what it knows.
    func entryKnown(toAll index: UInt64) -> UInt64 {
        nodes.reduce(index) { least, node in
            guard let view = node.view, view.leads != nil else { return least }
            return min(least, view.position.index)
        }
    }

    /// Whether the state of things is a reason to refuse an announce, or was one since it was sent.
    ///
    /// In survivor mode nobody knows from outside what its tracker took for the state.
    func isJustified(
        _ refusal: Refusal, _ infoHash: InfoHash, port: UInt16, _ address: SocketAddress, passkey: [UInt8],
        since index: UInt64, _ step: borrowing Step
    ) -> Bool {
        let limits = nodes[step.node].configuration.limits
        let index = entryKnown(toAll: index)
        switch refusal {
        case .portZero: return port == 0
        case .infoHashNotAllowed, .infoHashDenied, .passkeyMissing, .passkeyUnknown:
            return !promises.repliesAreLinear
                || access.refused(infoHash, passkey: passkey, with: refusal, since: index)
        case .trackerFull: return !promises.repliesAreLinear || access.wasFull(limits, since: index)
        case .addressFull:
            // In a cluster, peers come and go while the request is on its way to the master.
            return !promises.answersAtOnce
                || model.peers(near: address) >= limits.peersPerAddress(among: model.peerCount)
        case .swarmFull:
            return !promises.repliesAreLinear
                || history.mostPeers(of: infoHash, since: index) >= limits.peersPerSwarm
        case .connectionIDExpired, .malformedAnnounce, .malformedScrape, .unknownAction, .notStored, .storageFailed,
            .busy, .notServing, .scrapeNeedsPasskey:
            return false
        }
    }

    /// Whether an announce may have been let in that is in an entry, and was sent after so many.
    ///
    /// Its master had applied all entries before that one but for the last two, which may have been under way.
    func isAdmitted(
        _ infoHash: InfoHash, passkey: [UInt8], entry: UInt64, since index: UInt64
    ) -> Bool {
        !promises.repliesAreLinear
            || access.admitted(infoHash, passkey: passkey, since: min(index, entry - min(entry, 3)))
    }

    /// Whether a tracker loses its disk in a step.
    static func failsNow(_ effects: borrowing Effects) -> Bool {
        effects.observations.contains { if case .storageFailed(.broken, _) = $0 { true } else { false } }
    }

    /// Whether counts are those of a state that a scrape may see.
    func isRight(
        _ told: [(infoHash: InfoHash, counts: SwarmCounts)], since index: UInt64, _ step: borrowing Step,
        _ before: NodeView
    ) -> Bool {
        if promises.repliesAreLinear { return history.latest(told, in: index...max(index, model.index)) != nil }
        // Only the master's own table is known, and only where nothing has changed meanwhile.
        guard step.view.leads != nil, step.view.position == before.position, let table = step.table else {
            return true
        }
        return told.allSatisfy { table.counts(of: $0.infoHash) == $0.counts }
    }
}

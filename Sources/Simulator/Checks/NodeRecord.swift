// What the checkers remember of one tracker from step to step.

import Primitives
import TrackerLogic
import Wire

/// What the checkers remember of one tracker from step to step.
struct NodeRecord: Sendable {
    /// What it was told in this life.
    var configuration: NodeConfiguration
    /// What it was like after its last step; nil while it is down.
    var view: NodeView? { didSet { if let given = view?.life.id, given != 0 { id = given } } }
    /// As `view`; only `mutating` methods look at a record without copying all of it.
    var lastView: NodeView? { mutating get { view } }
    /// Requests that waited after its last step.
    var waitingRequests: Int { mutating get { view?.waitingRequests ?? 0 } }
    /// Replies and answers that it has given, but for connection ids.
    var answerCount = 0
    /// Who voted as it saw it after its last step.
    var knownVoters: [UInt32] { mutating get { view?.voters ?? [] } }
    /// Since when they have voted, as it saw it.
    var votersSince: Instant?
    /// The number that it has, or had last; 0 before it was given one.
    private(set) var id: UInt32
    var disk = VoterRecord()
    /// The last entry that was decided when its disk was lost: until it has that, it does not hold the whole state.
    var decidedAtLoss: UInt64 = 0
    /// Whether its disk was lost, and it has not said since that it holds the whole state.
    var isLost = false
    /// When its disk was last lost.
    var lostAt: Instant?
    /// What it has proposed last, oldest first.
    private(set) var proposals: [Entry] = []
    /// The epochs that it led and stood for when last asked.
    var led: Epoch?
    var stood: Epoch?
    /// When it last heard from each of the others what was for it, or for all.
    var heardAt: [Instant]
    /// Updates that its clients wait for, in the order of the log.
    var expectedReplies: [ExpectedReply] = []
    /// What its clock said as it took its last step.
    var wall: WallTime?
    /// The same of its monotonic clock; nil where nobody has looked at it.
    var monotonic: Instant?
    /// Errors that it had withheld in this life by the end of its last step.
    var withheld: UInt64 = 0
    /// Requests that it had given up in this life by then.
    var timedOut: UInt64 = 0
    /// Whether it has lost its disk in this life.
    var hasFailed = false
    /// Of a tracker alone, the entry that it is writing.
    var writing: (token: PersistToken, entry: Entry)?
    /// Numbers of its clients' requests in this life that are in the log, in rising order.
    private var decidedNumbers: [UInt64] = []

    /// Proposals that are remembered: one is under way at a time, but who is cut off may come back with an old one.
    private static let proposalCount = 64
    private static let numberCount = 4096

    /// Whether it is like it was after its last step.
    mutating func isAsSeen(_ now: borrowing NodeView) -> Bool {
        guard let view else { return false }
        return view == now
    }

    init(configuration: NodeConfiguration, nodeCount: Int) {
        self.configuration = configuration
        id = configuration.id
        heardAt = Array(repeating: Instant(nanoseconds: 0), count: nodeCount)
    }

    mutating func begin(_ view: NodeView, at time: Instant) {
        self.view = view
        led = nil
        stood = nil
        expectedReplies = []
        decidedNumbers = []
        writing = nil
        hasFailed = false
        withheld = 0
        timedOut = 0
        for node in heardAt.indices { heardAt[node] = time }
    }

    mutating func propose(_ proposed: Entry) {
        // The same value by a further attempt takes no room from others.
        proposals.removeAll { $0.position == proposed.position }
        if proposals.count == NodeRecord.proposalCount { proposals.removeFirst() }
        proposals.append(proposed)
    }

    /// What its counters say of the step that it has taken.
    ///
    /// - Returns: errors that it has withheld, and requests that it has given up.
    mutating func count(_ counters: Counters) -> (withheld: UInt64, timedOut: UInt64) {
        defer { (withheld, timedOut) = (counters.errorsWithheld, counters.timedOut) }
        return (counters.errorsWithheld - withheld, counters.timedOut - timedOut)
    }

    /// - Returns: whether it was not in the log before.
    mutating func decide(number: UInt64) -> Bool {
        if let last = decidedNumbers.last, number <= last {
            var place = decidedNumbers.count
            while place > 0, decidedNumbers[place - 1] >= number { place -= 1 }
            if place < decidedNumbers.count, decidedNumbers[place] == number { return false }
            decidedNumbers.insert(number, at: place)
        } else {
            decidedNumbers.append(number)
        }
        if decidedNumbers.count > NodeRecord.numberCount { decidedNumbers.removeFirst(NodeRecord.numberCount / 2) }
        return true
    }
}

/// An update that somebody waits for, and what the swarm was like right after it.
struct ExpectedReply: Sendable {
    struct Place: Sendable, Hashable {
        var index: UInt64
        var ordinal: UInt32
        var chain: UInt64
    }

    var place: Place
    /// Cluster time of the entry.
    var time: WallTime
    /// When the first tracker applied it.
    var decidedAt: Instant
    var announced: Announced
    /// nil in survivor mode, where nobody can say.
    var swarm: SwarmModel.Swarm?
    /// Where the swarm is not known, its counts, if nothing came behind the update that changed them.
    var counts: SwarmCounts?
    /// The interval that was decided last, in seconds; nil where none was, or nobody can say.
    var interval: UInt32?
    var isAnswered = false
}

/// What was aborted, and in whose epoch.
struct AbortedValue: Sendable, Hashable {
    var chain: UInt64
    var epoch: Epoch
}

/// A request in an entry that was aborted.
struct RefusedTicket: Sendable {
    var life: Life
    var number: UInt64
    /// In which the entry was aborted.
    var epoch: Epoch
    var announced: Announced
    /// Where the client was told: whose request, and when.
    var client = 0
    var transactionID = TransactionID(0)
    var toldAt = Instant(nanoseconds: 0)
}

/// The checkers of a simulated cluster: they watch every transition of every tracker from outside and compare it with
/// what was promised.
///
/// They know the logic by its effects, by what is on the simulated disks, and by the few values of `NodeSight`. What
/// has been decided they learn from those who apply it (`DecidedLog`); in quorum mode they carry each entry over to a
/// model of the swarms, in the order of the log, at the moment at which the first tracker applies it.
///
/// *Why that shows linearizability* (Herlihy and Wing 1990): a history of requests is linearizable if each can be given
/// a moment between its sending and its answer so that all of them, carried out one after another in the order of those
/// moments, give the answers that were seen. Nothing is gained by a search for such moments, for the log is a witness:
///
/// - An announce takes effect when the first tracker applies its entry. Entries are first applied in the order of their
///   indices (checked), and within an entry updates follow each other. A reply is only right if its update was applied
///   by then, and its request sent before (checked), so the moment lies within; and if it says what the model says
///   right after that update (checked).
/// - A scrape takes effect at some moment after its sending and before its answer, so it has seen a prefix of the log
///   at least as long as when it was sent and at most as long as when it was answered, and all of its counts are of
///   that one prefix (checked). Prefixes only grow, so scrapes and announces can be ordered by the moments at which
///   their prefixes were reached.
/// - A request without an answer may have taken effect or not, each copy that was heard at most once (checked).
///
/// A valid witness is all that the definition asks for; it holds for all info hashes at once, so for each.

import Primitives
import TrackerLogic
import Wire

package struct ClusterChecks: Sendable {
    /// A run ends at its first violations; what comes after them is only their consequence.
    static let maxViolations = 4

    let promises: ClusterPromises
    let configurations: [NodeConfiguration]
    /// Whether clients ask a multicast group.
    let isGroup: Bool
    package private(set) var violations: [Violation] = []

    var nodes: [NodeRecord]
    var epochs = EpochRegister()
    var log = DecidedLog()
    /// The ids that vote, as decided (quorum mode).
    var members: [UInt32]
    /// When they last changed.
    var membersSince: Instant?

    /// The swarms after the last entry that is decided (quorum mode).
    var model = SwarmModel()
    var history = CountHistory()
    var access = AccessHistory()
    var visits = VisitBook()
    /// Since when nobody has a reason to be in trouble.
    var wellSince: Instant?
    var clocks = ClockWatch()
    /// The interval that clients are told, in seconds, where one is decided (quorum mode).
    var toldInterval: UInt32?
    var lastDecidedTime = WallTime(milliseconds: 0)

    var books: [RequestBook]
    var ledger: PeerLedger
    var rules: RuleRecord
    /// The client that sends from, and that listens on, a port; -1 for none.
    private var clientsByPort: [Int16]
    private var peersByPort: [Int16]
    /// Every life that there has been, and whose.
    var lives: [(life: Life, node: Int)] = []
    /// Replies of a group to its clients: by whom.
    var groupAnswers: [(place: Witness.Place, answerer: Ask.Answerer)] = []

    /// In a group, the latest of what anybody may have to answer: also one who starts later.
    var groupWitnesses: [Witness] = []
    var stops: StopRecord
    /// Whether what is found on a disk is being carried over.
    var isSettling = false
    /// Values that were aborted.
    var abortedValues: [AbortedValue] = []
    /// Requests in aborted entries whose clients have not been told.
    var refused: [RefusedTicket] = []
    /// Those whose clients have.
    var dead: [RefusedTicket] = []

    package init(profile: Profile, configurations: [NodeConfiguration], clientAddresses: [SocketAddress]) {
        promises = ClusterPromises(profile)
        self.configurations = configurations
        isGroup = configurations.first?.cluster?.entry == .group
        nodes = configurations.map { NodeRecord(configuration: $0, nodeCount: configurations.count) }
        members = configurations.first?.cluster?.members ?? []
        if promises.diskDecides, members.isEmpty { members = configurations.map { $0.id } }
        books = clientAddresses.map(RequestBook.init(address:))
        ledger = PeerLedger(clientCount: clientAddresses.count)
        rules = RuleRecord(nodeCount: configurations.count)
        stops = StopRecord(nodeCount: configurations.count)
        clientsByPort = Array(repeating: -1, count: 1 << 16)
        peersByPort = clientsByPort
        for (client, address) in clientAddresses.enumerated() {
            clientsByPort[Int(address.port)] = Int16(clamping: client)
        }
    }

    package mutating func violate(_ invariant: Invariant, at time: Instant, _ detail: String) {
        guard violations.count < ClusterChecks.maxViolations else { return }
        violations.append(Violation(invariant, at: time, detail))
    }

    // MARK: - Clients

    func client(at address: SocketAddress) -> Int? {
        let client = Int(clientsByPort[Int(address.port)])
        if client >= 0, books[client].address == address { return client }
        return books.firstIndex { $0.address == address }
    }

    /// The client that listens at an address, as its announces say.
    func client(listeningAt address: SocketAddress) -> Int? {
        func listens(_ client: Int) -> Bool {
            books[client].address.high == address.high && books[client].address.low == address.low
                && books[client].asks.contains { $0.announce?.port == address.port }
        }
        let client = Int(peersByPort[Int(address.port)])
        if client >= 0, listens(client) { return client }
        return books.indices.first(where: listens)
    }

    /// A client has sent a datagram.
    ///
    /// - Parameter node: whom; nil for the multicast group.
    package mutating func clientSent(client: Int, bytes: [UInt8], node: Int?, at time: Instant) {
        let (nodeCount, decided) = (nodes.count, log.lastIndex)
        books[client].send(Ask(bytes, nodeCount: nodeCount, decidedBefore: decided, at: time), bytes)
        guard case .announce(let request)? = try? TrackerRequest(bytes.span.bytes) else { return }
        peersByPort[Int(request.port)] = Int16(clamping: client)
        ledger.sent(request, by: client, listening(request, client))
    }

    private func listening(_ request: AnnounceRequest, _ client: Int) -> SocketAddress {
        var address = books[client].address
        address.port = request.port
        return address
    }

    /// A datagram has reached a client.
    package mutating func clientReceived(client: Int, bytes: [UInt8], at time: Instant) {
        // Replies are checked when they leave. That one comes to whom it is for is the network's affair.
    }

    /// Datagrams are about to be handed to a node.
    ///
    /// - Parameter wall: the node's clock; nil where nobody has looked at it.
    package mutating func willHear(_ batch: DatagramBatch, node: Int, wall: WallTime? = nil, at time: Instant) {
        let span = batch.bytes.span.bytes
        for datagram in batch.datagrams {
            guard let client = client(at: datagram.remote) else { continue }
            let start = Int(datagram.offset)
            let bytes = span.extracting(start..<start + Int(datagram.byteCount))
            let isNew = books[client].hear(
                bytes, node: node, nodeCount: nodes.count, decidedBefore: log.lastIndex,
                wall: areAgesKnown ? wall : nil, at: time)
            guard case .announce(let request)? = try? TrackerRequest(bytes) else { continue }
            let address = listening(request, client)
            // A bit on the way has made another request of it.
            if isNew { ledger.spoiled(request, by: client, address) }
            if request.event == .stopped { ledger.heardStop(request.infoHash, by: client, address) }
        }
    }

    // MARK: - Nodes

    /// A life of a node begins: its record has been read back, and it has not taken a step yet.
    package mutating func started(
        node: Int, machine: TrackerNode, record: DiskRecord, at time: Instant
    ) {
        let sight = NodeSight(machine, inCluster: !promises.diskDecides)
        began(node, sight, record, at: time)
        guard promises.diskDecides else { return }
        settle(record, ClusterStep(node: node, time: time, sight: sight, table: machine.state.table))
        checkState(machine.state, node, at: time)
    }

    /// A node is about to take a step.
    package mutating func willStep(node: Int, event: Event, wall: WallTime, at time: Instant) {
        clocks.note(wall, at: time)
        if case .datagramsReceived(let batch) = event { willHear(batch, node: node, wall: wall, at: time) }
        nodes[node].wall = wall
    }

    /// Whether the age of a connection id is the same by all clocks.
    private var areAgesKnown: Bool { rules.hasGoodClocks || nodes.count == 1 }

    /// A visitor asks a tracker over HTTP.
    ///
    /// - Parameter life: of the tracker, as the world counts them.
    package mutating func visited(_ request: ClientRequest, node: Int, life: Int, at time: Instant) {
        visits.add(
            Visit(request: request, node: node, life: life, askedAt: time, decidedBefore: log.lastIndex))
    }

    /// A node has taken a step, and its effects are about to be carried out.
    ///
    /// - Parameter machine: looked at only; `inout`, for a node that is lent is copied.
    /// - Returns: what the node is like now.
    package mutating func stepped(
        node: Int, event: Event, machine: inout TrackerNode, record: DiskRecord, effects: Effects, at time: Instant
    ) -> NodeSight {
        let sight = NodeSight(
            &machine, knowing: nodes[node].knownVoters, inCluster: !promises.diskDecides)
        if nodes[node].isAsSeen(sight), ClusterChecks.isQuiet(event, effects) {
            note(event, node: node, at: time)
            return sight
        }
        let before = nodes[node].lastSight
        var applied: [[UInt8]] = []
        var table: SwarmTable?
        // What a lone master was about to decide when it died, it has decided, and finds so as it begins anew; even if
        // it was about to join others, and is no voter any more.
        let isSettling = !promises.hasOneHistory && before?.position.index == sight.position.index &- 1
        if let before, before.isWhole && sight.isWhole || isSettling, before.position.index < sight.position.index {
            for index in (before.position.index + 1)...sight.position.index {
                // A log that is cut short may have let go of it within the step.
                var entry = machine.committedEntry(at: index) ?? event.entry(index)
                if promises.diskDecides { entry = durable(index, in: record, node, at: time) }
                if let entry { applied.append(entry) }
            }
            table = machine.state.table
        } else if !effects.replies.isEmpty || !effects.answers.isEmpty || ClusterChecks.isMerged(effects) {
            table = machine.state.table
        }
        var step = ClusterStep(node: node, time: time, sight: sight, applied: applied, table: table)
        if !applied.isEmpty { step.gone = gone(effects) }
        watch(step, before, event, effects)
        if ClusterChecks.isMaster(effects) { checkMaster(machine.state, node, at: time) }
        return sight
    }

    /// Whether a tracker says that it has become master.
    private static func isMaster(_ effects: borrowing Effects) -> Bool {
        effects.observations.contains { if case .becameMaster = $0 { true } else { false } }
    }

    /// Of a tracker alone, an entry that it has applied: what its log in memory says does not count.
    private mutating func durable(
        _ index: UInt64, in record: DiskRecord, _ node: Int, at time: Instant
    ) -> [UInt8]? {
        if let entry = record.entry(index), (try? EntryHeader(entry))?.index == index { return entry }
        violate(.appliedIsDurable, at: time, "\(name(node)) applies entry \(index), which is not on its disk")
        return nil
    }

    /// Whether a tracker has heard that another lives, or looked at its clock, and has done nothing.
    ///
    /// Where it is as it was, too, there is nothing to check. Most steps are so.
    @inline(__always)
    private static func isQuiet(_ event: Event, _ effects: borrowing Effects) -> Bool {
        switch event {
        case .deadlineReached: effects.isNothing
        case .messageReceived(let message): if case .keepalive = message.body { effects.isNothing } else { false }
        case .started, .datagramsReceived, .requestReceived, .persisted, .persistFailed, .busConnected, .busLost,
            .commandReceived, .reportMade:
            false
        }
    }

    /// A write of a node has become durable.
    package mutating func wrote(node: Int, change: Persist.Change, at time: Instant) {
        checkWrite(node, change, at: time)
        if promises.diskDecides, case .replaceAll(let chunks) = change { emptied(by: chunks, node, at: time) }
        nodes[node].disk.apply(change, givesUpHistories: !promises.hasOneHistory)
        // Until then the tracker could be of no quorum that does not know of that vote.
        if promises.votersRemember, case .promise(let promise) = change, promise.isWhole {
            nodes[node].disk.forgetLost()
            nodes[node].isLost = false
        }
    }

    /// A life of a node has ended.
    package mutating func died(node: Int, at time: Instant) {
        nodes[node].sight = nil
        nodes[node].witnesses = []
    }

    /// A node has lost its disk with all that was on it; the next life begins blank.
    package mutating func memoryLost(node: Int, at time: Instant) {
        nodes[node].disk.lose(remembersVote: true)
        nodes[node].decidedAtLoss = log.lastIndex
        nodes[node].isLost = true
        if !promises.epochsOutliveMemory { epochs.forget(id: nodes[node].id) }
        // A lone survivor's memory is all there is.
        if !promises.membersDecide { ledger.close() }
    }

    /// From now on, who asks over HTTP is told nothing of trouble.
    package mutating func allIsWell(since time: Instant) { wellSince = time }

    /// Wall clocks differ so little that no connection id goes bad before its time.
    package mutating func clocksAreGood() { rules.hasGoodClocks = true }
}

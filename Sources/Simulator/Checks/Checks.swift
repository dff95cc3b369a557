// The checkers of a simulated cluster.

import Primitives
import TrackerLogic
import Wire

/// The checkers of a simulated cluster: they watch every transition of every tracker from outside and compare it with
/// what was promised.
///
/// They know the logic by its effects, by what is on the simulated disks, and by the few values of `NodeView`. What
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
package struct Checks: Sendable {
    var scene: Scene
    private var votes = Votes()
    private var aborts = Aborts()
    private var log = Log()
    private var swarms = Swarms()
    var requests: Requests
    private var replies = Replies()
    private var visits = Visits()
    private var merges: Merges
    private var mergeSides: MergeSides
    private var elections: Elections
    private var majorities: Majorities
    private var stops: Stops
    private var bounds: Bounds
    var fetches: Fetches
    private var errors: ErrorWatch
    private var repeats: Repeats
    private var handovers: HandoverWatch
    private var forwards: ForwardWatch
    private var groupNotes: GroupNotes
    private var groupBook: GroupBook
    private(set) var standing: Standing
    private(set) var tellings: Tellings
    /// When a tracker has last withheld an error.
    private(set) var withheldAt: Instant?
    var console: Console
    var clients = ClientOrder()
    var end = End()

    package init(profile: Profile, configurations: [NodeConfiguration], clientAddresses: [SocketAddress]) {
        let count = configurations.count
        scene = Scene(profile, configurations)
        requests = Requests(clientAddresses: clientAddresses, nodeCount: count)
        merges = Merges(nodeCount: count)
        mergeSides = MergeSides(nodeCount: count)
        console = Console(nodeCount: count)
        elections = Elections(nodeCount: count)
        majorities = Majorities(nodeCount: count)
        stops = Stops(nodeCount: count)
        bounds = Bounds(nodeCount: count)
        fetches = Fetches(nodeCount: count)
        errors = ErrorWatch(nodeCount: count)
        repeats = Repeats(nodeCount: count)
        handovers = HandoverWatch(nodeCount: count)
        forwards = ForwardWatch(nodeCount: count)
        groupNotes = GroupNotes(nodeCount: count)
        groupBook = GroupBook(nodeCount: count)
        tellings = Tellings(nodeCount: count)
        standing = Standing(nodeCount: count)
    }

    var promises: Promises { scene.promises }

    package var violations: [Violation] { scene.violations }

    /// How many shards were emptied.
    var emptiedShards: Int { stops.count }

    /// How often sides of each kind have met in merges.
    var mergeCounts: MergeSides.Counts { mergeSides.counts }

    // MARK: - What the world says

    /// From then on, who asks over HTTP is told nothing of trouble; nil where there may be some again.
    mutating func allIsWell(since time: Instant?) { visits.wellSince = time }

    /// A client has sent a datagram to a node; nil for the multicast group.
    package mutating func clientSent(client: Int, bytes: [UInt8], node: Int?, at time: Instant) {
        requests.sent(client: client, bytes: bytes, node: node, at: time, scene)
        if let fault = clients.sent(client, bytes) { scene.violate(.trackersAreTold, at: time, fault) }
    }

    /// A visitor asks a tracker over HTTP, in a life of it, as the world counts them.
    mutating func visited(_ request: ClientRequest, node: Int, life: Int, at time: Instant) {
        visits.add(
            Visit(request: request, node: node, life: life, askedAt: time, decidedBefore: scene.log.lastIndex))
    }

    /// Requests over HTTP that wait for an answer; those whose tracker has died since have lost their connection.
    ///
    /// `lives` are those of the trackers now, as the world counts them.
    mutating func openVisits(inLives lives: [Int]) -> [Visit] { visits.openVisits(inLives: lives) }

    /// Datagrams are about to be handed to a node; `wall` is its clock, or nil where nobody has looked at it.
    package mutating func willHear(_ batch: DatagramBatch, node: Int, wall: WallTime? = nil, at time: Instant) {
        requests.willHear(batch, node: node, wall: wall, at: time, scene)
    }

    /// A write of a node has become durable.
    package mutating func wrote(node: Int, change: Persist.Change, at time: Instant) {
        votes.checkWrite(node, change, at: time, &scene)
        if promises.diskDecides, case .replaceAll(let chunks) = change {
            stops.emptied(by: chunks, node, at: time, &scene, &requests)
        }
        scene.nodes[node].disk.apply(change, givesUpHistories: !promises.hasOneHistory)
        // Until then the tracker could be of no quorum that does not know of that vote.
        if promises.votersRemember, case .promise(let promise) = change, promise.hasFullState {
            scene.nodes[node].disk.forgetLost()
            scene.nodes[node].isLost = false
        }
    }

    /// A tracker has stopped in good order, as its disk says, and does not want the swarms to be kept.
    mutating func leftInOrder(node: Int) { stops.leftInOrder(node: node, scene) }

    /// A node has lost its disk with all that was on it; the next life begins blank.
    package mutating func memoryLost(node: Int, at time: Instant) {
        scene.nodes[node].disk.lose(remembersVote: true)
        scene.nodes[node].decidedAtLoss = scene.log.lastIndex
        scene.nodes[node].isLost = true
        scene.nodes[node].lostAt = time
        if !promises.epochsOutliveMemory { votes.forgetEpochs(of: scene.nodes[node].id) }
        // A lone survivor's memory is all there is.
        if !promises.membersDecide { requests.ledger.close() }
    }

    /// When a tracker last heard another one, whatever that said, or when its life began.
    func lastHeard(_ other: Int, by node: Int) -> Instant { scene.nodes[node].heardAt[other] }

    /// A tracker is held until a time.
    mutating func held(_ node: Int, from begin: Instant, until end: Instant) {
        forwards.held(node, until: end)
        if scene.nodes[node].view?.isFenced == false { groupBook.held(node, from: begin, until: end) }
    }

    /// Whether a tracker of a group has booked a datagram that nobody has answered.
    mutating func hasBooked(_ node: Int) -> Bool { groupBook.hasBooked(node) }

    /// Since when the oldest datagram waits that a tracker of a group has booked, and nobody has answered.
    ///
    /// `leadsSince` is since when it may have led; nil for a slave. What a new master has heard longer than `limit`
    /// before that may have been answered by the last one.
    mutating func oldestInGroup(
        at node: Int, leadsSince: Instant?, limit: Duration, now time: Instant
    ) -> Instant? {
        groupBook.oldest(at: node, leadsSince: leadsSince, limit: limit, now: time)
    }

    /// Since when the oldest request over HTTP waits at a tracker, in a life of it as the world counts them.
    func oldestVisit(at node: Int, inLife life: Int) -> Instant? { visits.oldest(at: node, inLife: life) }

    // MARK: - Lives

    /// A life of a node begins: its record has been read back, and it has not taken a step yet.
    mutating func started(node: Int, machine: TrackerNode, record: DiskRecord, at time: Instant) {
        let view = NodeView(machine, inCluster: !promises.diskDecides)
        scene.nodes[node].configuration = machine.configuration
        began(node, view, record, at: time)
        console.holds(machine.state.accounts, node)
        let (known, promised) = (record.promise?.epoch ?? .zero, machine.inspection.promised)
        if promised < known {
            scene.violate(
                .promiseIsKept, at: time,
                "\(scene.name(node)) begins with epoch \(promised), and has promised \(known) on its disk")
        }
        guard promises.diskDecides else { return }
        var step = Step(node: node, time: time, view: view, table: machine.state.table)
        step.files = machine.state.files
        settle(record, step)
        end.checkState(machine.state, node, at: time, &scene, &requests)
    }

    /// A life begins, with a record on its disk.
    package mutating func began(_ node: Int, _ view: NodeView, _ record: DiskRecord, at time: Instant) {
        votes.began(node, view, record, at: time, &scene)
        tellings.began(node)
        standing.began(node)
        repeats.began(node)
        handovers.began(node)
        scene.directory.close(node, at: time)
        forwards.began(node)
        groupNotes.began(node)
        groupBook.began(node)
        scene.nodes[node].expectedReplies = swarms.expectedReplies(after: view.position.index)
    }

    /// What a tracker alone finds on its disk as it begins is decided, told or not; nobody is answered for it any more.
    private mutating func settle(_ record: DiskRecord, _ step: borrowing Step) {
        swarms.isSettling = true
        defer { swarms.isSettling = false }
        // Of the same index, and without swarms.
        if stops.takeReplaced(step.node) { scene.log.forgetState(scene.log.lastIndex) }
        for (offset, entry) in record.entries.enumerated() {
            let index = record.firstIndex + UInt64(offset)
            if let decided = log.settle(entry, at: index, step, &scene) { take(decided, step) }
        }
    }

    /// A life of a node has ended.
    package mutating func died(node: Int, at time: Instant) {
        scene.nodes[node].view = nil
        scene.nodes[node].expectedReplies = []
    }

    // MARK: - Steps

    /// A node is about to take a step.
    mutating func willStep(node: Int, event: Event, _ kind: EventKind, reading: ClockReading, at time: Instant) {
        scene.clocks.note(reading.wall, at: time)
        if kind == .datagrams, case .datagramsReceived(let batch) = event {
            willHear(batch, node: node, wall: reading.wall, at: time)
        }
        (scene.nodes[node].wall, scene.nodes[node].monotonic) = (reading.wall, reading.monotonic)
        if kind == .keepalive || kind == .leave { standing.hear(event, node, at: time, promises) }
    }

    /// A node has taken a step, and its effects are about to be carried out.
    ///
    /// The result is what the node is like now. `machine` is looked at only; it is `inout`, for a node that is lent is
    /// copied.
    mutating func stepped(
        node: Int, event: Event, _ kind: EventKind, machine: inout TrackerNode, record: DiskRecord, effects: Effects,
        at time: Instant
    ) -> NodeView {
        let view = NodeView(
            &machine, knowing: scene.nodes[node].knownVoters, inCluster: !promises.diskDecides)
        if Checks.isQuiet(kind, event, effects, of: view.life.id), scene.nodes[node].isAsSeen(view) {
            scene.note(event, kind, node: node, at: time)
            return view
        }
        guard let before = scene.nodes[node].lastView else {
            noteDead(node, at: time)
            return view
        }
        var applied: [Entry] = []
        var table: SwarmTable?
        // What a lone master was about to decide when it died, it has decided, and finds so as it begins anew; even if
        // it was about to join others, and is no voter any more.
        let isSettling = !promises.hasOneHistory && before.position.index == view.position.index &- 1
        if before.hasFullState && view.hasFullState || isSettling,
            before.position.index < view.position.index
        {
            for index in (before.position.index + 1)...view.position.index {
                // A log that is cut short may have let go of it within the step.
                var entry = machine.committedEntry(at: index)
                if entry == nil, kind == .entries { entry = event.entry(index) }
                if promises.diskDecides { entry = log.durable(index, in: record, node, at: time, &scene) }
                if let entry { applied.append(entry) }
            }
            table = machine.state.table
        } else if !effects.replies.isEmpty || !effects.answers.isEmpty || Merges.isMerged(effects) {
            table = machine.state.table
        }
        let given = scene.nodes[node].count(machine.counters)
        let step = Step(
            node: node, time: time, view: view, applied: applied, table: table,
            files: applied.isEmpty ? nil : machine.state.files, gone: applied.isEmpty ? [] : log.gone(effects),
            withheld: given.withheld, timedOut: given.timedOut, kind: kind, isReal: true)
        watch(step, before, event, effects)
        if !promises.hasOneHistory {
            if mergeSides.wantsState(step, event, effects, scene) {
                mergeSides.look(machine.state, step, event, effects, &scene)
            }
            if Checks.isTransfer(effects) { console.holds(machine.state.accounts, node) }
        }
        if applied.contains(where: { $0.changesConsole }) {
            console.check(machine.state, node, at: time, &scene)
            if !promises.hasOneHistory, !Checks.isTransfer(effects) {
                console.checkTimes(machine.state.accounts, after: applied, node, at: time, &scene)
            }
        }
        if Checks.isMaster(effects) {
            end.checkMaster(machine.state, node, at: time, &scene, &requests, &stops)
        }
        return view
    }

    /// A tracker has taken a step.
    package mutating func watch(_ step: consuming Step, _ event: Event, _ effects: Effects) {
        step.kind = EventKind(event)
        if !step.applied.isEmpty { step.gone = log.gone(effects) }
        guard let before = scene.nodes[step.node].lastView else { return noteDead(step.node, at: step.time) }
        watch(step, before, event, effects)
    }

    /// Shows a step to all checkers; `before` is what the node was like before it.
    private mutating func watch(_ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects) {
        if promises.answersAtOnce {
            stops.noteStop(event, effects, step, before, &scene)
            aborts.noteNotStored(event, effects, step, &scene)
        }
        scene.note(event, step.kind, node: step.node, at: step.time)
        if step.kind == .command, case .commandReceived(.setFileTorrents(let torrents)) = event {
            scene.directory.commanded(step.node, torrents, at: step.time)
        }
        if step.view.life != before.life { scene.lives.append((step.view.life, step.node)) }
        votes.checkEpoch(step, &scene, &stops)
        follow(step, before)
        for observation in effects.observations {
            if case .aborted(let index, _) = observation { aborts.aborted(index, step, &scene) }
            if case .swarmsEmptied = observation { stops.beganEmpty(step, scene, &requests) }
            if case .becameMaster = observation { stops.goesOn(step.node) }
            switch observation {
            case .registryChanged, .commandRefused, .commandDropped: scene.directory.close(step.node, at: step.time)
            default: break
            }
        }
        for persist in effects.persists {
            scene.nodes[step.node].disk.ask(persist)
            if scene.isGroup, case .saveChunk(let chunk) = persist.change { scene.settled.check(chunk, step, &scene) }
            guard case .append(let entry) = persist.change else { continue }
            votes.checkOwnAppend(entry, step, &scene, &stops, &aborts)
            if promises.answersAtOnce { scene.nodes[step.node].writing = (persist.token, entry) }
        }
        for message in effects.messages {
            votes.check(message, step, before, &scene, &stops, &aborts)
            repeats.check(message, step, &scene)
        }
        majorities.check(step, before, event, effects, &scene)
        checkAnswers(step, before, event, effects)
        let isHeard = step.kind != .fetchChunk || standing.hears(event, step.node)
        elections.check(step, before, event, effects, isHeard: isHeard, &scene)
        handovers.check(step, before, event, effects, &scene)
        merges.check(step, event, effects, &scene)
        if !promises.hasOneHistory { mergeSides.note(step, before, event, effects) }
        requests.checkKept(step, before, effects, &scene)
        if step.isReal { forwards.check(step, before, event, effects, &scene) }
        replies.forgetExpectedReplies(step, &scene)
        bounds.check(step, event, effects, &scene)
        fetches.check(step, before, event, effects, &scene)
        tellings.check(step, before, event, effects, &scene)
        standing.check(step, before, event, effects, &scene)
        if scene.nodes[step.node].knownVoters != step.view.voters { scene.nodes[step.node].votersSince = step.time }
        scene.nodes[step.node].view = step.view
    }

    /// What was said to clients.
    private mutating func checkAnswers(_ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects) {
        if !effects.replies.isEmpty {
            replies.checkReplies(effects, step, before, event, &scene, &requests, &aborts, majorities, &groupNotes)
        }
        if !effects.answers.isEmpty {
            visits.checkAnswers(effects, step, before, event, &scene, &aborts, majorities)
        }
        if step.withheld > 0 { withheldAt = step.time }
        if !effects.replies.isEmpty || step.withheld > 0 { errors.check(step, effects, &scene) }
        if Scene.failsNow(effects) { scene.nodes[step.node].hasFailed = true }
        if promises.answersAtOnce { replies.checkAnswered(step, &scene) }
        guard step.isReal else { return }
        if scene.isGroup {
            let promised = scene.nodes[step.node].disk.promised
            groupNotes.check(step, event, effects, promised: promised, &scene)
            groupBook.check(step, before, event, effects, requests, &scene)
        }
    }

    /// The entries that a tracker has applied in this step, one after another.
    private mutating func follow(_ step: borrowing Step, _ before: NodeView) {
        guard log.mayFollow(step, before, &scene) else { return }
        var position = before.position
        for entry in step.applied {
            switch log.follow(entry, after: &position, step, before, &scene) {
            case .stray: return
            case .known: break
            case .new(let decided): take(decided, step)
            }
            if !promises.repliesAreLinear { swarms.expectReplies(entry, step, &scene) }
        }
        log.observe(step.view, step.node, at: step.time, &scene)
    }

    /// A value is decided.
    private mutating func take(_ decided: Log.Decided, _ step: borrowing Step) {
        merges.noteWords(decided.entry, step, &scene)
        aborts.checkAborted(decided.entry, decided.tickets, step, &scene, &requests)
        guard decided.isNext else { return stops.noteEmptied(by: decided.entry, scene, &requests) }
        swarms.carryOver(decided, step, &scene, &requests, &elections, &stops)
    }
}

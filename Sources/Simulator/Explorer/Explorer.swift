// Walks over all schedules of a small cluster.

import Primitives
import TrackerLogic
import Wire

/// Walks over all schedules of a small cluster, breadth first, over the step function that the product runs.
///
///     start ──► every move of every node ──► states not seen before ──► … until there are none
///
/// A *move* is: a message comes, at any time and as often as it likes; a write is durable, or fails; a client asks; a
/// node dies and comes back, with any first part of its writes under way made durable; a node stands for master; a node
/// asks again what was not answered. Messages come in any order; each node has a clock of its own.
///
/// What is abstracted, and why no fault is missed or invented that safety depends on:
/// - *Time.* A node's time passes only where it stands or asks again, in leaps. How long something takes is not
///   explored; which comes first is. Cluster time stands still.
/// - *The failure detector* decides nothing (rule 1). KEEPALIVE and SUSPECT are not carried: any node may
///   miss the master at any time, and hears then that the others do, as by their SUSPECTs come late; the number of such
///   elections is bounded. A node that died is taken for down by the others at once (a LEAVE in its name).
/// - *Loss* is no move: a message that is lost is one that never comes, and checkers look at what has happened only.
/// - *Quick disks.* Nothing else comes to a node while it writes. What other nodes do meanwhile may as well come before
///   or after; and the node may die before each write, and between it and the news of it (`completeAllWrites`).
///   What comes to the *same* node meanwhile is left out: a bound, which `Disks.slow` lifts.
///
/// What makes fewer states of it (the last two are held against walks that do without, in tests):
/// - *Fingerprints* leave out what makes no difference: `TrackerNode.absorb`, `ExplorerHistory`, `DiskRecord.absorb`.
/// - *Copies.* Two equal messages under way to one node are one: the second may have been lost.
/// - *The dead.* Messages that can do nothing any more at their receiver are taken away (`LocalSpace.isDead`), and who
///   does nothing now is not heard now: it may as well come later.
/// - *The covered*, and *the joined*: see `VisitedStates`.
/// - *Words.* Where every message may come again, and one makes a node say something and changes nothing else, the node
///   has said it at once: a state with more under way covers one with less. Only where states are joined, for else the
///   schedules that are found would not be the shortest.
///
/// *In order* (`Network.inOrder`) is the other network: each message comes once, after what its sender sent before, and
/// is lost only when its receiver dies, as over a broker. What is under way to a node is then a list for each sender,
/// and no state covers another; but a state has fewer moves, so that greater bounds are walked through.
///
/// Breadth first, so that the first violation has a shortest trace (of joined states: a short one). States are told
/// apart by fingerprints of 128 bits; only those of the last two layers are kept whole.
public struct Explorer {
    /// How large a world is walked through.
    public let options: ExplorerOptions
    var space: LocalSpace
    var histories: [ExplorerHistory] = []
    private var knownHistories = PrintTable()
    private var visited: VisitedStates
    /// For each state: from which it was reached first, and by which move.
    private var parents: [UInt32] = []
    private var moves: [UInt64] = []
    /// States whose moves are still to be walked: number, words.
    private var layer: [UInt32] = []
    private var nextLayer: [UInt32] = []
    private(set) var start: ExplorerWorld

    /// Moves that were made.
    public private(set) var transitions = 0
    /// States that were walked from.
    public private(set) var expanded = 0
    /// Moves of the longest schedule walked so far.
    public private(set) var depth = 0
    /// The first broken promise; nil while there is none.
    public private(set) var fault: ExplorerFault?
    /// The move that broke a promise, and the state in which it was made.
    private var lastMove: (parent: UInt32, move: Move)?
    /// Whether all states within the bounds were seen.
    public private(set) var isExhausted = false

    /// States of the cluster that were seen.
    public var states: Int { visited.count }
    /// States but for the messages under way.
    public var kernels: Int { visited.kernelCount }
    /// States of single nodes, and steps that were computed.
    public var localStates: Int { space.states.count }
    /// Steps of single nodes that were computed.
    public var localSteps: Int { space.steps.count }

    /// A walk at its beginning; options that do not fit together trap.
    public init(_ options: ExplorerOptions) {
        precondition(options.isSound, "states with messages in order are not joined")
        self.options = options
        space = LocalSpace(options)
        start = ExplorerWorld(nodes: options.nodes)
        visited = VisitedStates(nodes: options.nodes, options.reduction)
        begin()
    }

    private mutating func begin() {
        var prologue = ExplorerPrologue(options)
        prologue.run()
        for node in 0..<options.nodes { start.words[node] = space.intern(prologue.states[node]) }
        var history = ExplorerHistory(requests: options.requests + options.scrapes)
        let views = (0..<options.nodes).map { space.views[Int(start.words[$0])] }
        for node in 0..<options.nodes {
            if let fault = history.absorb(prologue.facts(of: node), of: node, views) { self.fault = fault }
        }
        start.history = intern(history)
        fault = fault ?? prologue.fault
        reach(start, parent: .max, Move(.wait, 0))
        swap(&layer, &nextLayer)
    }

    private mutating func intern(_ history: ExplorerHistory) -> UInt32 {
        let number = UInt32(histories.count)
        if let old = knownHistories.insert(history.fingerprint, number: number) { return old }
        histories.append(history)
        return number
    }

    // MARK: - The walk

    /// Walks one layer.
    ///
    /// - Returns: whether there is more to walk.
    @discardableResult
    public mutating func walkLayer() -> Bool {
        guard fault == nil, !layer.isEmpty else { return finish() }
        if let limit = options.depth, depth >= limit { return false }
        depth += 1
        nextLayer.removeAll(keepingCapacity: true)
        let stride = start.wordCount + 1
        // Covered by its own layer: nothing is found later for it.
        let isCovered = stridden(stride).map { visited.isCovered(layer[$0]) }
        var world = start
        for place in stridden(stride) where !isCovered[place / stride] {
            if options.deliversUtterancesAtOnce, visited.isCovered(layer[place]) { continue }
            for word in 0..<stride - 1 { world.words[word] = layer[place + 1 + word] }
            visited.take(layer[place], &world)
            expanded += 1
            expand(world, layer[place])
            if fault != nil { return false }
            if states >= options.maxStates { return false }
        }
        swap(&layer, &nextLayer)
        return layer.isEmpty ? finish() : true
    }

    /// Where the states of a layer begin.
    private func stridden(_ stride: Int) -> StrideTo<Int> { Swift.stride(from: 0, to: layer.count, by: stride) }

    private mutating func finish() -> Bool {
        isExhausted = fault == nil && layer.isEmpty
        return false
    }

    /// Walks all.
    public mutating func walk() { while walkLayer() {} }

    private mutating func expand(_ world: ExplorerWorld, _ number: UInt32) {
        eachMove(of: world) { $0.take($1, world, number) }
    }

    /// Calls with each move that may be made in a state, but for those at which a node dies between two of its writes.
    ///
    /// Not all of them are within the bounds: `apply` says.
    mutating func eachMove(of world: ExplorerWorld, _ take: (inout Explorer, Move) -> Void) {
        for receiver in 0..<options.nodes {
            let local = world.words[receiver]
            let due = space.due(world.words[world.setPlace(receiver)], at: local)
            for place in 0..<space.sets.count(of: due) {
                take(&self, Move(.deliver, receiver, space.sets.envelope(place, of: due)))
            }
        }
        for node in 0..<options.nodes { eachMove(of: world, at: node, take) }
    }

    private mutating func eachMove(
        of world: ExplorerWorld, at node: Int, _ take: (inout Explorer, Move) -> Void
    ) {
        let queueCount = space.views[Int(world.words[node])].queueCount
        if queueCount > 0 {
            take(&self, Move(.write, node))
            if world.spent(.failures) < options.failures { take(&self, Move(.failWrite, node)) }
        }
        if world.spent(.elections) < options.elections {
            take(&self, Move(.stand, node, space.suspicion(by: node, world)))
        }
        if world.spent(.requests) < options.requests {
            take(&self, Move(.request, node, UInt32(world.spent(.requests))))
        }
        if world.spent(.scrapes) < options.scrapes {
            take(&self, Move(.request, node, UInt32(options.requests + world.spent(.scrapes))))
        }
        if world.spent(.waits) < options.waits { take(&self, Move(.wait, node)) }
        if mayDie(node, world) {
            for surviving in 0...queueCount { take(&self, Move(.restart, node, UInt32(surviving))) }
        }
    }

    private func mayDie(_ node: Int, _ world: ExplorerWorld) -> Bool {
        world.spent(.restarts) < options.restarts && (options.mortal ?? node) == node
    }

    // MARK: - Moves

    private mutating func take(_ move: Move, _ world: ExplorerWorld, _ number: UInt32) {
        guard fault == nil else { return }
        var next = world
        transitions += 1
        let isMove = apply(move, to: &next)
        if fault != nil {
            lastMove = (number, move)
            return
        }
        guard isMove else { return }
        reach(next, parent: number, move)
        for death in deaths(in: move, world) { take(death, world, number) }
    }

    /// The same move, with the death of its node between two of the writes that it makes.
    mutating func deaths(in move: Move, _ world: ExplorerWorld) -> [Move] {
        guard !move.isDeath, mayDie(move.node, world) else { return [] }
        let cuts = space.step(move, of: world.words[move.node]).cuts
        return cuts == 0 ? [] : (1...UInt8(cuts)).map { Move(move.kind, move.node, move.argument, cut: $0) }
    }

    /// Forgets a broken promise, for whoever looks at what would be.
    mutating func takeFault() -> ExplorerFault? {
        let found = fault
        fault = nil
        return found
    }

    /// - Returns: whether the move is within the bounds, and one at all.
    mutating func apply(_ move: Move, to world: inout ExplorerWorld) -> Bool {
        let before = world.words[move.node]
        switch move.kind {
        case .deliver:
            guard options.network != .again else { break }
            let place = world.setPlace(move.node)
            world.words[place] = space.sets.removing(move.argument, from: world.words[place])
        case .write, .stand, .restart: break
        case .failWrite: world.spend(.failures)
        case .wait: world.spend(.waits)
        case .request:
            world.spend(Int(move.argument) < options.requests ? .requests : .scrapes)
            var history = histories[Int(world.history)]
            history.came(Int(move.argument), to: space.views[Int(before)].life)
            world.history = intern(history)
        }
        guard applyLocal(move, to: &world) else { return false }
        if move.isDeath, fault == nil, !announceDeath(move, before, &world) { return false }
        switch move.kind {
        case .stand: return world.words[move.node] != before && space.step(move, of: before).stood > 0
        case .wait: return world.words[move.node] != before
        case .deliver, .write, .failWrite, .request, .restart: return true
        }
    }

    /// A node has died and come back; the others take its former life for down.
    private mutating func announceDeath(_ move: Move, _ before: UInt32, _ world: inout ExplorerWorld) -> Bool {
        world.spend(.restarts)
        if options.network == .inOrder { world.words[world.setPlace(move.node)] = 0 }
        let leaveMessage = space.syntheticMessage(.leave, of: before)
        for other in 0..<options.nodes where other != move.node && fault == nil {
            let envelope = space.envelope(leaveMessage, from: move.node, to: other)
            guard applyLocal(Move(.deliver, other, envelope), to: &world) else { return false }
        }
        return true
    }

    private mutating func applyLocal(_ move: Move, to world: inout ExplorerWorld) -> Bool {
        let before = world.words[move.node]
        let step = space.step(move, of: before)
        if step.stood > 0 {
            guard world.spent(.elections) + step.stood <= options.elections else { return false }
            world.spend(.elections, step.stood)
        }
        world.words[move.node] = step.next
        if step.fault > 0 {
            fault = space.faults[step.fault]
            return true
        }
        for place in step.envelopesStart..<step.envelopesStart + step.envelopeCount {
            post(space.outgoing[Int(place)], &world)
        }
        if step.next != before {
            let place = world.setPlace(move.node)
            world.words[place] = space.pruned(world.words[place], at: step.next)
        }
        check(step, move, &world)
        return true
    }

    /// A message that is under way already is not posted again: a second copy lost is a schedule, too.
    private mutating func post(_ envelope: UInt32, _ world: inout ExplorerWorld) {
        let receiver = space.envelopes[Int(envelope)].receiver
        guard !space.isDead(envelope, at: world.words[receiver]) else { return }
        let place = world.setPlace(receiver)
        world.words[place] = space.posting(envelope, to: world.words[place])
    }

    /// Delivers what only makes a node speak, until that is all said: what comes of it covers the state as it was.
    private mutating func deliverUtterances(_ world: inout ExplorerWorld, _ note: (Move) -> Void = { _ in }) {
        guard options.deliversUtterancesAtOnce else { return }
        var isChanged = true
        while isChanged {
            isChanged = false
            for node in 0..<options.nodes {
                let utterances = space.utterances(world.words[world.setPlace(node)], at: world.words[node])
                let before = world.words
                for envelope in Array(space.sets[utterances]) { post(envelope, &world) }
                if world.words == before { continue }
                isChanged = true
                for envelope in Array(space.sets[before[world.setPlace(node)]])
                where space.step(Move(.deliver, node, envelope), of: world.words[node]).isUtterance(
                    to: world.words[node])
                {
                    note(Move(.deliver, node, envelope))
                }
            }
        }
    }

    private mutating func check(_ step: LocalStep, _ move: Move, _ world: inout ExplorerWorld) {
        let hasFacts = step.facts > 0 || step.factsBefore > 0
        guard hasFacts || step.loses else { return }
        let views = (0..<options.nodes).map { space.views[Int(world.words[$0])] }
        if hasFacts {
            var history = histories[Int(world.history)]
            for facts in [step.factsBefore, step.facts] where facts > 0 && fault == nil {
                fault = history.absorb(space.facts[facts], of: move.node, views)
            }
            world.history = intern(history)
        }
        if fault == nil, step.loses { fault = histories[Int(world.history)].lost(views) }
    }

    private mutating func reach(_ world: ExplorerWorld, parent: UInt32, _ move: Move) {
        var world = world
        deliverUtterances(&world)
        guard let number = visited.insert(world, &space.sets) else { return }
        if number == parents.count, options.reduction != .compact {
            parents.append(parent)
            moves.append(move.packed)
        }
        nextLayer.append(number)
        for word in 0..<world.wordCount { nextLayer.append(world.words[word]) }
    }

    // MARK: - Traces

    /// A shortest way to the violation, in words; empty where there was none, or states are told apart in little room.
    ///
    /// With `deliversUtterancesAtOnce`, what was said at
    /// once is in it where something came of it, and another way may be shorter by such steps.
    public func trace() -> [String] {
        guard let lastMove, options.reduction != .compact else { return [] }
        var path = [lastMove.move]
        var number = lastMove.parent
        while number != .max, parents[Int(number)] != .max {
            path.append(Move(packed: moves[Int(number)]))
            number = parents[Int(number)]
        }
        return ExplorerTrace(space, start).tell(withUtterances(path.reversed()))
    }

    /// A path with the deliveries that were made at once, where it needs them.
    private func withUtterances(_ path: [Move]) -> [Move] {
        var explorer = self
        explorer.fault = nil
        var world = start
        var all: [(move: Move, utterances: [UInt32]?)] = []
        for move in path {
            var words: [Move] = []
            explorer.deliverUtterances(&world) { words.append($0) }
            for word in words {
                let step = explorer.space.step(word, of: world.words[word.node])
                all.append((word, Array(explorer.space.envelopes(of: step))))
            }
            all.append((move, nil))
            _ = explorer.apply(move, to: &world)
        }
        var needed: [UInt32] = []
        var kept: [Move] = []
        for (move, utterances) in all.reversed() {
            if let utterances, !utterances.contains(where: needed.contains) { continue }
            kept.append(move)
            if move.kind == .deliver { needed.append(move.argument) }
        }
        return kept.reversed()
    }
}

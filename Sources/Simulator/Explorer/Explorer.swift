/// Walks over all schedules of a small cluster, breadth first, over the step function that the product runs.
///
///     start ──► every move of every node ──► states not seen before ──► … until there are none
///
/// A *move* is: a message comes, is lost or comes twice; a write is durable, or fails; a client asks; a node dies and
/// comes back, with any first part of its writes under way made durable; a node stands for master; a node asks again
/// what was not answered. Messages come in any order; each node has a clock of its own.
///
/// What is abstracted, and why no fault is missed or invented that safety depends on:
/// - *Time.* A node's time passes only where it stands or asks again, in leaps. How long something takes is not
///   explored; which comes first is. Cluster time stands still.
/// - *The failure detector* decides nothing (design 3.4, rule 1). KEEPALIVE and SUSPECT are not carried: any node may
///   miss the master at any time, and hears then that the others do, as by their SUSPECTs come late; the number of such
///   elections is bounded. A node that died is taken for down by the others at once (a LEAVE in its name).
/// - *Copies.* Two equal messages under way to one node are one: the second may have been lost.
/// - *The dead.* Messages that can do nothing any more at their receiver are taken away (`LocalSpace.isDead`), and who
///   does nothing now is not heard now: it may as well come later. With `losesTheLate`, what comes from masters of the
///   past comes soon or never.
/// - What `TrackerNode.absorb` leaves out of a node's fingerprint.
///
/// Breadth first, so that the first violation has a shortest trace. States are told apart by a fingerprint of 128 bits;
/// only those of the last two layers are kept whole.

import Primitives
import TrackerLogic
import Wire

public struct Explorer {
    public let options: ExplorerOptions
    var space: LocalSpace
    var histories: [ExplorerHistory] = []
    private var knownHistories = PrintTable()
    private var visited = PrintTable(capacity: 1 << 16)
    /// For each state: from which it was reached first, and by which move.
    private var parents: [UInt32] = []
    private var moves: [UInt64] = []
    /// States whose moves are still to be walked: number, count of words, words.
    private var layer: [UInt32] = []
    private var nextLayer: [UInt32] = []
    private(set) var start: ExplorerWorld

    public private(set) var transitions = 0
    public private(set) var depth = 0
    public private(set) var fault: ExplorerFault?
    /// The move that broke a promise, and the state in which it was made.
    private var lastMove: (parent: UInt32, move: Move)?
    /// Whether all states within the bounds were seen.
    public private(set) var isExhausted = false

    public var states: Int { parents.count }
    /// States of single nodes, and steps that were computed.
    public var localStates: Int { space.states.count }
    public var localSteps: Int { space.steps.count }

    public init(_ options: ExplorerOptions) {
        self.options = options
        space = LocalSpace(options)
        start = ExplorerWorld(nodes: options.nodes)
        begin()
    }

    private mutating func begin() {
        var prologue = ExplorerPrologue(options)
        prologue.run()
        for node in 0..<options.nodes { start.words[node] = space.intern(prologue.states[node]) }
        var history = ExplorerHistory(requests: options.requests + options.scrapes)
        let sights = (0..<options.nodes).map { space.sights[Int(start.words[$0])] }
        for node in 0..<options.nodes {
            if let fault = history.absorb(prologue.facts(of: node), of: node, sights, requestsIn: { _ in [] }) {
                self.fault = fault
            }
        }
        start.history = intern(history)
        fault = fault ?? prologue.fault
        reach(start, parent: .max, Move(.lose, 0))
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
        var place = 0
        var world = ExplorerWorld(nodes: options.nodes)
        while place < layer.count {
            let (number, count) = (layer[place], Int(layer[place + 1]))
            world.words.removeAll(keepingCapacity: true)
            world.words.append(contentsOf: layer[place + 2..<place + 2 + count])
            place += 2 + count
            expand(world, number)
            if fault != nil { return false }
            if states >= options.maxStates { return false }
        }
        swap(&layer, &nextLayer)
        return layer.isEmpty ? finish() : true
    }

    private mutating func finish() -> Bool {
        isExhausted = fault == nil && layer.isEmpty
        return false
    }

    /// Walks all.
    public mutating func walk() { while walkLayer() {} }

    private mutating func expand(_ world: ExplorerWorld, _ number: UInt32) {
        for place in world.firstLetter..<world.words.count {
            let letter = world.words[place]
            let receiver = space.letters[Int(letter)].receiver
            let local = world.words[receiver]
            // What does nothing now may as well come later.
            guard !space.step(Move(.deliver, receiver, letter), of: local).isNothing(to: local) else { continue }
            take(Move(.deliver, receiver, letter), world, number, letterAt: options.keepsLetters ? nil : place)
            if world.spent(.repeats) < options.repeats { take(Move(.repeatedly, receiver, letter), world, number) }
            if world.spent(.losses) < options.losses {
                take(Move(.lose, receiver, letter), world, number, letterAt: place)
            }
        }
        for node in 0..<options.nodes { expand(world, number, node) }
    }

    private mutating func expand(_ world: ExplorerWorld, _ number: UInt32, _ node: Int) {
        let queueCount = space.sights[Int(world.words[node])].queueCount
        if queueCount > 0 {
            take(Move(.write, node), world, number)
            if world.spent(.failures) < options.failures { take(Move(.failWrite, node), world, number) }
        }
        if world.spent(.elections) < options.elections {
            let others = (0..<options.nodes).filter { $0 != node }.map { world.words[$0] }
            take(Move(.stand, node, space.suspicion(of: others)), world, number)
        }
        if world.spent(.requests) < options.requests {
            take(Move(.request, node, UInt32(world.spent(.requests))), world, number)
        }
        if world.spent(.scrapes) < options.scrapes {
            take(Move(.request, node, UInt32(options.requests + world.spent(.scrapes))), world, number)
        }
        if world.spent(.waits) < options.waits { take(Move(.wait, node), world, number) }
        if world.spent(.restarts) < options.restarts, (options.mortal ?? node) == node {
            for surviving in 0...queueCount { take(Move(.restart, node, UInt32(surviving)), world, number) }
        }
    }

    // MARK: - Moves

    private mutating func take(_ move: Move, _ world: ExplorerWorld, _ number: UInt32, letterAt place: Int? = nil) {
        guard fault == nil else { return }
        var next = world
        if let place { next.remove(letterAt: place) }
        transitions += 1
        let isMove = apply(move, to: &next)
        if fault != nil {
            lastMove = (number, move)
            return
        }
        guard isMove else { return }
        // Who has less under way, and is the same otherwise, can do no more.
        if next.history == world.history, next.words.count < world.words.count,
            next.words[..<options.nodes] == world.words[..<options.nodes]
        {
            return
        }
        reach(next, parent: number, move)
    }

    /// - Returns: whether the move is within the bounds, and one at all.
    private mutating func apply(_ move: Move, to world: inout ExplorerWorld) -> Bool {
        switch move.kind {
        case .lose:
            world.spend(.losses)
            return true
        case .deliver, .write: break
        case .repeatedly: world.spend(.repeats)
        case .failWrite: world.spend(.failures)
        case .stand: break
        case .wait: world.spend(.waits)
        case .request: world.spend(Int(move.argument) < options.requests ? .requests : .scrapes)
        case .restart: return applyRestart(move, to: &world)
        }
        if move.kind == .request {
            var history = histories[Int(world.history)]
            history.came(Int(move.argument), to: space.sights[Int(world.words[move.node])].life)
            world.history = intern(history)
        }
        let before = world.words[move.node]
        guard applyLocal(move, to: &world) else { return false }
        switch move.kind {
        case .stand: return world.words[move.node] != before && space.step(move, of: before).stood > 0
        case .wait: return world.words[move.node] != before
        case .deliver, .repeatedly, .lose, .write, .failWrite, .request, .restart: return true
        }
    }

    /// The node dies and comes back; the others take its former life for down.
    private mutating func applyRestart(_ move: Move, to world: inout ExplorerWorld) -> Bool {
        world.spend(.restarts)
        let farewell = space.rumour(.leave, of: world.words[move.node])
        guard applyLocal(move, to: &world) else { return false }
        for other in 0..<options.nodes where other != move.node && fault == nil {
            let letter = space.letter(farewell, from: move.node, to: other)
            guard applyLocal(Move(.deliver, other, letter), to: &world) else { return false }
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
        for letter in step.letters where !isDead(letter, world) { world.put(letter) }
        if step.next != before { bury(move.node, &world) }
        check(step, move, &world)
        return true
    }

    /// Takes away the letters that can do nothing any more at a node.
    private mutating func bury(_ node: Int, _ world: inout ExplorerWorld) {
        var kept = world.firstLetter
        for place in world.firstLetter..<world.words.count {
            let letter = world.words[place]
            let isTouched = space.letters[Int(letter)].receiver == node || space.letters[Int(letter)].sender == node
            if isTouched, isDead(letter, world) { continue }
            world.words[kept] = letter
            kept += 1
        }
        world.words.removeLast(world.words.count - kept)
    }

    private mutating func isDead(_ number: UInt32, _ world: ExplorerWorld) -> Bool {
        let letter = space.letters[Int(number)]
        if space.isDead(number, at: world.words[letter.receiver]) { return true }
        guard options.losesTheLate, case .prepare = letter.message.body else { return false }
        // It is refused as too old, and its sender knows that.
        let receiver = space.sights[Int(world.words[letter.receiver])]
        let sender = space.sights[Int(world.words[letter.sender])]
        return letter.message.epoch < receiver.promised && receiver.promised <= sender.promised
            && space.isRefused(number, at: world.words[letter.receiver])
    }

    private mutating func check(_ step: LocalStep, _ move: Move, _ world: inout ExplorerWorld) {
        let mayLose = move.kind == .write || move.kind == .restart || !options.isDiskSlow(move.node)
        guard step.facts > 0 || mayLose else { return }
        let sights = (0..<options.nodes).map { space.sights[Int(world.words[$0])] }
        if step.facts > 0 {
            var history = histories[Int(world.history)]
            let local = Int(world.words[move.node])
            fault = history.absorb(space.facts[step.facts], of: move.node, sights) { position in
                space.states[local].machine.committedEntry(at: position.index).map(LocalSpace.requests(in:)) ?? []
            }
            world.history = intern(history)
        }
        if fault == nil, mayLose { fault = histories[Int(world.history)].lost(sights) }
    }

    private mutating func reach(_ world: ExplorerWorld, parent: UInt32, _ move: Move) {
        let number = UInt32(parents.count)
        guard visited.insert(world.fingerprint, number: number) == nil else { return }
        parents.append(parent)
        moves.append(move.packed)
        nextLayer.append(number)
        nextLayer.append(UInt32(world.words.count))
        nextLayer.append(contentsOf: world.words)
    }

    // MARK: - Traces

    /// The shortest way to the violation, in words; empty where there was none.
    public func trace() -> [String] {
        guard let lastMove else { return [] }
        var path = [lastMove.move]
        var number = lastMove.parent
        while number != .max, parents[Int(number)] != .max {
            path.append(Move(packed: moves[Int(number)]))
            number = parents[Int(number)]
        }
        return ExplorerTrace(space, start).tell(path.reversed())
    }
}

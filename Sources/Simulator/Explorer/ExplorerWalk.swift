// A walk of one's own through the choices of the explorer.

import Primitives
import TrackerLogic
import Wire

/// A walk of one's own through the choices of the explorer: at each state one chooses what comes next, goes back, and
/// tries something else, with the promises watching.
///
/// States are numbered as they are visited, from 0; a state that one comes to in two ways is one. What makes no
/// difference to the explorer makes none here: a message that does nothing where it comes is no choice, and a lost
/// message is one that is never chosen.
public struct ExplorerWalk {
    /// Something that may come next.
    public struct Choice: Sendable, Hashable {
        /// Whose step it is, by its place from 0.
        public var tracker: Int
        /// In words.
        public var text: String
        /// What of it is under way: whose message it is, by place; nil where it is no message.
        public var sender: Int?
        /// The state that it leads to, where that was visited already.
        public var state: Int?
        /// Whether it breaks a promise.
        public var isBreaking: Bool
        let move: Move
    }

    private struct State {
        var world: ExplorerWorld
        /// From which it was reached first, by which move; nil for the first.
        var origin: (state: Int, move: Move)?
        var depth: Int
    }

    /// A step from one visited state to another.
    public struct Edge: Sendable, Hashable {
        /// The one that it leaves.
        public var from: Int
        /// The one that it comes to.
        public var to: Int
    }

    /// States of one walk, at most.
    public static let maxStates = 20_000

    /// The bounds.
    public let options: ExplorerOptions
    private var explorer: Explorer
    private var states: [State] = []
    private var known = PrintTable()
    /// In the order in which they were gone first.
    public private(set) var edges: [Edge] = []
    /// Where it stands.
    public private(set) var state = 0
    /// The ways that were gone to where it stands: states, and moves from one to the next.
    private var path: [(state: Int, move: Move)] = []
    /// What may come next.
    public private(set) var choices: [Choice] = []
    /// The promise that the last choice has broken; nothing comes after it.
    public private(set) var broken: ExplorerFault?
    private var lastMove: Move?

    /// A walk at its beginning.
    public init(_ options: ExplorerOptions) {
        var options = options
        // Each state for itself: what covers what is no affair of a walker's.
        options.reduction = .apart
        self.options = options
        explorer = Explorer(options)
        _ = visit(explorer.start, nil)
        look()
    }

    /// States that were visited.
    public var visitedCount: Int { states.count }
    /// Choices behind where it stands.
    public var depth: Int { path.count }
    /// The states behind where it stands, the first first.
    public var statesBehind: [Int] { path.map { $0.state } }

    // MARK: - Going

    /// Makes a choice.
    ///
    /// - Parameter number: a place among the choices, from 0.
    /// - Returns: whether there is such a choice, and room for one more state.
    public mutating func choose(_ number: Int) -> Bool {
        guard broken == nil, choices.indices.contains(number), states.count < ExplorerWalk.maxStates else {
            return false
        }
        let move = choices[number].move
        var world = states[state].world
        _ = explorer.apply(move, to: &world)
        if let fault = explorer.takeFault() {
            broken = fault
            lastMove = move
            choices = []
            return true
        }
        let next = visit(world, (state, move))
        path.append((state, move))
        let edge = Edge(from: state, to: next)
        if !edges.contains(edge) { edges.append(edge) }
        state = next
        look()
        return true
    }

    /// Takes the last choice back.
    ///
    /// - Returns: whether there was one.
    public mutating func back() -> Bool {
        if broken != nil {
            (broken, lastMove) = (nil, nil)
        } else {
            guard let last = path.popLast() else { return false }
            state = last.state
        }
        look()
        return true
    }

    /// Goes to a state that was visited, the way on which it was reached first.
    ///
    /// - Returns: whether it was visited.
    public mutating func go(to number: Int) -> Bool {
        guard states.indices.contains(number) else { return false }
        (broken, lastMove) = (nil, nil)
        path.removeAll()
        var place = number
        while let origin = states[place].origin {
            path.append(origin)
            place = origin.state
        }
        path.reverse()
        state = number
        look()
        return true
    }

    /// - Returns: the number of a state, a new one where it was not visited.
    private mutating func visit(_ world: ExplorerWorld, _ origin: (state: Int, move: Move)?) -> Int {
        if let old = known.insert(world.fingerprint, number: UInt32(states.count)) { return Int(old) }
        states.append(State(world: world, origin: origin, depth: path.count))
        return states.count - 1
    }

    // MARK: - Looking

    /// Finds what may come next.
    private mutating func look() {
        let world = states[state].world
        var moves: [Move] = []
        explorer.eachMove(of: world) { explorer, move in
            moves.append(move)
            moves += explorer.deaths(in: move, world)
        }
        choices = moves.compactMap { choice($0, world) }
    }

    /// A move as a choice; nil where it is none.
    private mutating func choice(_ move: Move, _ world: ExplorerWorld) -> Choice? {
        var next = world
        let isMove = explorer.apply(move, to: &next)
        let isBreaking = explorer.takeFault() != nil
        guard isMove || isBreaking else { return nil }
        let sender = move.kind == .deliver ? explorer.space.envelopes[Int(move.argument)].sender : nil
        return Choice(
            tracker: move.node, text: words(of: move, world), sender: sender,
            state: isBreaking ? nil : known.find(next.fingerprint).map { Int($0) }, isBreaking: isBreaking, move: move)
    }

    private func words(of move: Move, _ world: ExplorerWorld) -> String {
        let name = "tracker \(move.node + 1)"
        let queue = explorer.space.states[Int(world.words[move.node])].queue
        let what: String
        switch move.kind {
        case .deliver:
            let envelope = explorer.space.envelopes[Int(move.argument)]
            what = "\(name) hears \(envelope.sender + 1): \(envelope.message.text)"
        case .write: what = "\(name) has \(queue.first?.change.name ?? "a write") on its disk"
        case .failWrite: what = "\(name) cannot write \(queue.first?.change.name ?? "it"): the disk is full"
        case .stand: what = "\(name) misses the master with all others, and stands"
        case .wait: what = "\(name) waits until it asks again"
        case .request:
            let number = Int(move.argument)
            what =
                number < options.requests
                ? "announce \(number + 1) comes to \(name)" : "scrape \(number - options.requests + 1) comes to \(name)"
        case .restart:
            let survivors = Int(move.argument)
            what =
                queue.isEmpty
                ? "\(name) dies and comes back"
                : "\(name) dies and comes back, with \(survivors) of \(Words.counted(queue.count, "write")) made"
        }
        return move.cut == 0 ? what : "\(what); it dies behind its write \(move.cut), and comes back"
    }

    /// How each tracker stands: role, epoch promised, last entry applied, and the writes under way.
    public var standings: [String] {
        (0..<options.nodes).map { node in
            let local = explorer.space.states[Int(states[state].world.words[node])]
            let writes = local.queue.map { $0.change.name }.joined(separator: ", ")
            return TraceText.column(local.machine.inspection) + (writes.isEmpty ? "" : ", writes \(writes)")
        }
    }

    /// The messages under way to each tracker, in words; some of them may do nothing where they come.
    public var underWay: [[String]] {
        let world = states[state].world
        return (0..<options.nodes).map { node in
            explorer.space.sets[world.words[world.setPlace(node)]].map { number in
                let envelope = explorer.space.envelopes[Int(number)]
                return "\(envelope.sender + 1): \(envelope.message.text)"
            }
        }
    }

    /// The way to where it stands, a line a choice.
    public var story: [String] {
        let moves = path.map { $0.move } + (lastMove.map { [$0] } ?? [])
        return ExplorerTrace(explorer.space, explorer.start).tell(moves)
    }
}

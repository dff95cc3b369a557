// All states of the cluster that were reached.

import TrackerLogic

/// All states of the cluster that were reached: none is walked from twice, and none from which another can do more.
///
/// There are four ways to tell states apart (`ExplorerOptions.Reduction`).
///
/// A state *covers* another when it is the same in all but the messages under way, and has all the messages of the
/// other. What the other can do, it can do, too, and comes to states that cover the other's: a message that nobody
/// takes harms nobody, for it may be lost. Checkers look at nodes and history, never at messages. So a state that is
/// covered by one reached before need not be walked from, and no violation is missed; as the walk is breadth first,
/// none is found later, either.
///
/// States are *joined* when all that are the same but for the messages under way count as one, which has all the
/// messages that any of them has, and is walked from again whenever it gets more. It covers each of them, so no
/// violation is missed; but some that are found may need messages that are never under way together.
struct VisitedStates {
    private let nodes: Int
    private let reduction: ExplorerOptions.Reduction
    /// The first state of each kernel, or each state.
    private var table = PrintTable(capacity: 1 << 16)
    /// Of states that are told apart in little room.
    private var compact = PrintSet()
    /// For each state, what is under way to each node, and the next state with the same kernel.
    private var records: [UInt32] = []
    private(set) var count = 0

    /// The end of a list of states.
    private static let end = UInt32.max
    /// Covered by a state that was reached later; of joined states: walked from, with all messages that it has.
    private static let covered = UInt32.max - 1

    init(nodes: Int, _ reduction: ExplorerOptions.Reduction) {
        self.nodes = nodes
        self.reduction = reduction
    }

    /// Of states that are told apart: their kernels, for comparison.
    private var kernels = PrintTable()

    /// Distinct kernels: states but for the messages under way.
    var kernelCount: Int {
        switch reduction {
        case .apart: kernels.count
        case .compact: 0
        case .covered, .joined: table.count
        }
    }

    private func next(_ state: UInt32) -> UInt32 { records[Int(state) * (nodes + 1) + nodes] }
    private mutating func setNext(_ state: UInt32, _ next: UInt32) { records[Int(state) * (nodes + 1) + nodes] = next }

    /// Whether a state need not be walked from (again).
    func isCovered(_ state: UInt32) -> Bool {
        switch reduction {
        case .apart, .compact: false
        case .covered, .joined: next(state) == VisitedStates.covered
        }
    }

    /// Notes that a state is walked from now, with all messages that it has got.
    mutating func take(_ state: UInt32, _ world: inout ExplorerWorld) {
        guard reduction == .joined else { return }
        for node in 0..<nodes { world.words[world.setPlace(node)] = records[Int(state) * (nodes + 1) + node] }
        setNext(state, VisitedStates.covered)
    }

    /// Notes a state.
    ///
    /// - Returns: its number, where it has to be walked from.
    mutating func insert(_ world: ExplorerWorld, _ sets: inout EnvelopeSets) -> UInt32? {
        let number = UInt32(count)
        switch reduction {
        case .apart:
            guard table.insert(world.fingerprint, number: number) == nil else { return nil }
            count += 1
            _ = kernels.insert(world.kernel, number: number)
            return number
        case .compact:
            guard compact.insert(world.fingerprint) else { return nil }
            count += 1
            return number
        case .covered: return insertUncovered(world, sets)
        case .joined:
            guard let old = table.insert(world.kernel, number: number) else {
                append(world, next: VisitedStates.end)
                return number
            }
            return join(old, world, &sets)
        }
    }

    private mutating func join(_ state: UInt32, _ world: ExplorerWorld, _ sets: inout EnvelopeSets) -> UInt32? {
        guard !covers(state, world, sets) else { return nil }
        let place = Int(state) * (nodes + 1)
        for node in 0..<nodes {
            records[place + node] = sets.union(records[place + node], world.words[world.setPlace(node)])
        }
        guard next(state) == VisitedStates.covered else { return nil }
        setNext(state, VisitedStates.end)
        return state
    }

    private mutating func insertUncovered(_ world: ExplorerWorld, _ sets: EnvelopeSets) -> UInt32? {
        let number = UInt32(count)
        let kernel = world.kernel
        guard let head = table.insert(kernel, number: number) else {
            append(world, next: VisitedStates.end)
            return number
        }
        var state = head
        while state != VisitedStates.end {
            if covers(state, world, sets) { return nil }
            state = next(state)
        }
        // Those that are covered now go out of the list.
        var first = head
        var last = VisitedStates.end
        state = head
        while state != VisitedStates.end {
            let following = next(state)
            if isCovered(state, by: world, sets) {
                if last == VisitedStates.end { first = following } else { setNext(last, following) }
                setNext(state, VisitedStates.covered)
            } else {
                last = state
            }
            state = following
        }
        if first == VisitedStates.end || first != head {
            table.replace(kernel, number: number)
            append(world, next: first)
        } else {
            append(world, next: next(head))
            setNext(head, number)
        }
        return number
    }

    private mutating func append(_ world: ExplorerWorld, next: UInt32) {
        for node in 0..<nodes { records.append(world.words[world.setPlace(node)]) }
        records.append(next)
        count += 1
    }

    private func covers(_ state: UInt32, _ world: ExplorerWorld, _ sets: EnvelopeSets) -> Bool {
        let place = Int(state) * (nodes + 1)
        for node in 0..<nodes where !sets.isSubset(world.words[world.setPlace(node)], of: records[place + node]) {
            return false
        }
        return true
    }

    private func isCovered(_ state: UInt32, by world: ExplorerWorld, _ sets: EnvelopeSets) -> Bool {
        let place = Int(state) * (nodes + 1)
        for node in 0..<nodes where !sets.isSubset(records[place + node], of: world.words[world.setPlace(node)]) {
            return false
        }
        return true
    }
}

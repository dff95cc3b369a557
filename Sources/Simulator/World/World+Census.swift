// What is counted, where somebody wants it.

import Primitives
import TrackerLogic
import Wire

/// The counts of a world, and which part each tracker played last.
struct CensusTaker: Sendable {
    var census = Census()
    fileprivate var parts: [Census.Part]

    init(nodeCount: Int) { parts = Array(repeating: .down, count: nodeCount) }
}

extension World {
    /// A tracker has taken a step, and its effects are about to be carried out.
    mutating func count(_ node: Int, _ event: Event) {
        if case .messageReceived(let message) = event {
            takeNote(.heard, Int(message.body.tag) - 1)
        } else if let place = Census.place(of: event) {
            takeNote(.events, place)
        }
        for message in effects.messages { count(message.body) }
        for number in effects.replies.datagrams.indices { countRefusal(effects.replies.payload(number)) }
        for answer in effects.answers {
            guard case .failure(let refusal) = answer.content else { continue }
            takeNote(.visitorsRefused, Census.refusals.firstIndex(of: refusal) ?? 0)
        }
        for observation in effects.observations {
            takeNote(.observed, Census.place(of: observation))
            if case .steppedDown(_, let reason) = observation { takeNote(.stepDowns, Census.place(of: reason)) }
            if case .changeEnded(_, let outcome) = observation { takeNote(.changes, Census.place(of: outcome)) }
        }
        turn(node, to: part(of: node))
    }

    private mutating func takeNote(_ group: Census.Group, _ place: Int) { taker?.census.note(group, place) }

    private mutating func count(_ body: ClusterMessage.Body) {
        takeNote(.said, Int(body.tag) - 1)
        switch body {
        case .error(_, let reason): takeNote(.votesRefused, reason == .cannotStore ? 0 : 1)
        case .refused(let refusal): takeNote(.joinsRefused, JoinRefusal.allCases.firstIndex(of: refusal) ?? 0)
        default: break
        }
    }

    private mutating func countRefusal(_ bytes: [UInt8]) {
        guard bytes.count > 8, bytes[3] == 3 else { return }
        let place = Census.refusals.firstIndex { refusal in
            refusal.text.withUTF8Buffer { $0.elementsEqual(bytes[8...]) }
        }
        if let place { takeNote(.clientsRefused, place) }
    }

    /// Which part a tracker plays.
    private mutating func part(of node: Int) -> Census.Part {
        guard let inspection = nodes[node].inspection else { return .down }
        return Census.Part(inspection, hasBus: !hasBus || connectivity[node].isToldOnBus)
    }

    private mutating func turn(_ node: Int, to part: Census.Part) {
        guard let before = taker?.parts[node], before != part else { return }
        taker?.parts[node] = part
        // Nobody turns into what he is.
        let column = part.rawValue - (part.rawValue > before.rawValue ? 1 : 0)
        takeNote(.turns, Census.place(before.rawValue, column, of: Census.Part.allCases.count - 1))
    }

    /// A tracker's life has ended.
    mutating func countEnd(of node: Int) {
        guard case .some = taker else { return }
        turn(node, to: .down)
    }

    /// A group of writes has failed.
    mutating func countFailure(_ writes: [Persist], _ failure: StorageFailure) {
        guard case .some = taker else { return }
        let column = Census.failures.firstIndex(of: failure) ?? 0
        for write in writes {
            let row = Census.Write(write.change).rawValue
            takeNote(.writesFailed, Census.place(row, column, of: Census.failures.count))
        }
    }

    /// A fault that comes by the clock hits some trackers.
    mutating func countFault(_ kind: Fault.Kind, at hit: [Int]) {
        guard case .some = taker else { return }
        for node in hit where connectivity[node].isThere {
            let part = part(of: node).rawValue
            takeNote(.faultsInRoles, Census.place(kind.rawValue, part, of: Census.Part.allCases.count))
            let columns = Census.Write.allCases.count + 1
            let writes = nodes[node].disk.writesUnderWay
            if writes.isEmpty { takeNote(.faultsAtWrites, Census.place(kind.rawValue, 0, of: columns)) }
            for write in Census.Write.allCases where writes.contains(where: { Census.Write($0) == write }) {
                takeNote(.faultsAtWrites, Census.place(kind.rawValue, write.rawValue + 1, of: columns))
            }
        }
    }

    /// A tracker is hit at a bad moment.
    mutating func countInjection(_ moment: Moment, _ blow: Census.Blow, at node: Int) {
        guard case .some = taker else { return }
        takeNote(.injections, Census.place(moment.rawValue, blow.rawValue, of: Census.Blow.allCases.count))
        let part = part(of: node).rawValue
        takeNote(.blows, Census.place(blow.rawValue, part, of: Census.Part.allCases.count))
    }
}

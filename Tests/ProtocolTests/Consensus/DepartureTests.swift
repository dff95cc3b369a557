// The orderly stop, and what is remembered of it.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct DepartureTests {
    private var departure = Departure()

    private static func after(_ lastStop: Departure.LastStop) -> Departure {
        var departure = Departure()
        switch lastStop {
        case .forgotten: break
        case .recalling: departure.recall()
        case .inOrder(let index): departure.recalled(through: index)
        }
        return departure
    }

    @Test func `a tracker that has crashed has no note, and stays`() {
        #expect(departure.lastStop == .forgotten)
        #expect(!departure.wasInOrder)
        #expect(!departure.isRecalling)
        #expect(!departure.isLeaving)
        #expect(departure.leavesAt == nil)
        #expect(!departure.stopsAll)
        #expect(!departure.hasBegunEmpty)
    }

    // MARK: - Leaving

    @Test mutating func `who leaves has a deadline, and then is gone`() {
        departure.leave(by: .at(500))
        #expect(departure.isLeaving)
        #expect(departure.leavesAt == .at(500))
        departure.leave(by: .at(900))
        #expect(departure.leavesAt == .at(900), "the last word counts")
        #expect(!departure.isLast)
        departure.leave(by: .at(900), isLast: true)
        #expect(departure.isLast, "whoever has nobody to hand its clients to takes none any more")
        #expect(!departure.stopsAll)
        departure.left()
        #expect(!departure.isLeaving)
        #expect(departure.leavesAt == nil)
    }

    @Test mutating func `that all are to stop is news once`() {
        #expect(departure.stopAll() == true)
        #expect(departure.stopsAll)
        #expect(departure.stopAll() == false)
        #expect(departure.stopsAll)
        #expect(!departure.isLeaving, "when is for its node to say")
    }

    // MARK: - Coming back

    @Test mutating func `a note is taken back before it counts`() {
        departure.recall()
        #expect(departure.lastStop == .recalling)
        #expect(departure.isRecalling)
        #expect(!departure.wasInOrder, "nothing is said before")
        departure.recalled(through: 8)
        #expect(departure.lastStop == .inOrder(lastIndex: 8))
        #expect(!departure.isRecalling)
        #expect(departure.wasInOrder)
    }

    @Test(
        arguments: [
            (.forgotten, 9, .forgotten),
            (.recalling, 9, .recalling),
            (.inOrder(lastIndex: 8), 7, .inOrder(lastIndex: 8)),
            (.inOrder(lastIndex: 8), 8, .inOrder(lastIndex: 8)),
            (.inOrder(lastIndex: 8), 9, .forgotten),
        ] as [(Departure.LastStop, UInt64, Departure.LastStop)])
    func `a vote for what the last life has not left makes its end of no account`(
        _ before: Departure.LastStop, _ index: UInt64, _ after: Departure.LastStop
    ) {
        var departure = Self.after(before)
        departure.votes(for: index)
        #expect(departure.lastStop == after)
    }

    @Test(
        arguments: [
            (.forgotten, 9, .forgotten),
            (.recalling, 9, .recalling),
            (.inOrder(lastIndex: 8), 7, .inOrder(lastIndex: 8)),
            (.inOrder(lastIndex: 8), 8, .inOrder(lastIndex: 8)),
            (.inOrder(lastIndex: 8), 9, .inOrder(lastIndex: 9)),
        ] as [(Departure.LastStop, UInt64, Departure.LastStop)])
    func `a master that empties the swarms may first decide what others had left`(
        _ before: Departure.LastStop, _ index: UInt64, _ after: Departure.LastStop
    ) {
        var departure = Self.after(before)
        departure.welcomed(servesFrom: index)
        #expect(departure.lastStop == after)
    }

    @Test mutating func `what a welcome adds may be voted for, and no more`() {
        departure.recalled(through: 8)
        departure.welcomed(servesFrom: 9)
        departure.votes(for: 9)
        #expect(departure.wasInOrder)
        departure.votes(for: 10)
        #expect(!departure.wasInOrder)
    }

    @Test(arguments: [.forgotten, .recalling, .inOrder(lastIndex: 8)] as [Departure.LastStop])
    func `when the cluster goes on, no end is of any account`(_ before: Departure.LastStop) {
        var departure = Self.after(before)
        departure.forget()
        #expect(departure.lastStop == .forgotten)
        #expect(!departure.isRecalling && !departure.wasInOrder)
    }

    // MARK: - Beginning empty

    @Test mutating func `that the swarms were emptied is news once in an office`() {
        departure.begin(empty: false)
        #expect(!departure.hasBegunEmpty)
        #expect(departure.noteEmptied() == true)
        #expect(departure.hasBegunEmpty)
        #expect(departure.noteEmptied() == false)
        departure.begin(empty: false)
        #expect(departure.noteEmptied() == true, "the next office begins anew")
        departure.begin(empty: true)
        #expect(departure.hasBegunEmpty)
        #expect(departure.noteEmptied() == false, "this master has emptied them itself")
    }
}

// Making way for another tracker, event by event.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct HandoverTests {
    private static let successor = Life(3, life: 7)
    private var handover = Handover()

    @Test func `at first none is under way`() {
        var handover = handover
        #expect(handover.successor == nil)
        #expect(!handover.isUnderWay)
        #expect(handover.deadline == nil)
        #expect(handover.takeRefusal(now: .at(.max / 1_000_000)) == nil)
    }

    @Test mutating func `one that began has a successor and a deadline, and nobody was told`() {
        handover.begin(to: Self.successor, until: .at(900))
        #expect(handover.successor == Self.successor)
        #expect(handover.isUnderWay)
        #expect(handover.deadline == .at(900))
        #expect(handover.isDue(now: .at(0), pause: .seconds(9)))
    }

    @Test(arguments: [(899, false), (900, true), (901, true)] as [(Int64, Bool)])
    func `at its deadline this master keeps the role`(_ now: Int64, _ isOver: Bool) {
        var handover = handover
        handover.begin(to: Self.successor, until: .at(900))
        _ = handover.announce(now: .at(800))
        #expect(handover.takeRefusal(now: .at(now)) == (isOver ? Self.successor : nil))
        #expect(handover.isUnderWay == !isOver)
        #expect(handover.successor == (isOver ? nil : Self.successor))
        #expect(handover.deadline == (isOver ? nil : .at(900)))
        #expect(handover.takeRefusal(now: .at(now)) == nil, "it is told once")
    }

    @Test mutating func `the successor is told at once, and again after each pause`() {
        handover.begin(to: Self.successor, until: .at(900))
        #expect(handover.announce(now: .at(100)) == false, "this is the first time")
        #expect(!handover.isDue(now: .at(149), pause: .milliseconds(50)))
        #expect(handover.isDue(now: .at(150), pause: .milliseconds(50)))
        #expect(handover.announce(now: .at(160)) == true, "it may have missed what was decided last")
        #expect(!handover.isDue(now: .at(209), pause: .milliseconds(50)))
        #expect(handover.isDue(now: .at(210), pause: .milliseconds(50)))
        #expect(handover.deadline == .at(900), "telling it puts nothing off")
    }

    @Test mutating func `one that is cancelled leaves nothing behind`() {
        handover.begin(to: Self.successor, until: .at(900))
        _ = handover.announce(now: .at(100))
        handover.cancel()
        #expect(handover.successor == nil)
        #expect(!handover.isUnderWay)
        #expect(handover.deadline == nil)
        #expect(handover.takeRefusal(now: .at(900)) == nil)
        #expect(handover.isDue(now: .at(100), pause: .seconds(9)))
    }

    @Test mutating func `the next successor was told nothing of what the last one was`() {
        handover.begin(to: Self.successor, until: .at(900))
        _ = handover.announce(now: .at(100))
        handover.begin(to: Life(2), until: .at(1900))
        #expect(handover.successor == Life(2))
        #expect(handover.deadline == .at(1900))
        #expect(handover.isDue(now: .at(100), pause: .seconds(9)))
        #expect(handover.announce(now: .at(101)) == false)
    }
}

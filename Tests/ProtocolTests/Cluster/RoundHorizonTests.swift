// One word of a member that lies must not use up the rounds of epochs.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct RoundHorizonTests {
    private func suspect(_ trio: inout Trio, round: UInt64) {
        trio.tell(3, .suspect(at: .start), from: 2, in: Epoch(round: round, id: 2))
    }

    @Test func `a round a little ahead is believed at once, each time`() {
        var trio = Trio.serving()
        let known = trio.epoch(3).round
        for step in 1...3 as ClosedRange<UInt64> { suspect(&trio, round: known + step * NumberBounds.roundStep) }
        #expect(trio[3].counters.implausible == 0)
    }

    @Test func `of rounds far ahead one is believed in a detection time`() {
        var trio = Trio.serving()
        let known = trio.epoch(3).round
        suspect(&trio, round: known + NumberBounds.roundJump)
        #expect(trio[3].counters.implausible == 0)
        suspect(&trio, round: known + 2 * NumberBounds.roundJump)
        #expect(trio[3].counters.implausible == 1)
        trio.run(.seconds(2))
        suspect(&trio, round: known + 2 * NumberBounds.roundJump)
        #expect(trio[3].counters.implausible == 1)
    }

    @Test func `one jump beyond is believed in the end, where others have been led there`() {
        var trio = Trio.serving()
        let round = trio.epoch(3).round + NumberBounds.roundJump + NumberBounds.roundStep
        suspect(&trio, round: round)
        #expect(trio[3].counters.implausible == 1)
        trio.run(.seconds(2))
        suspect(&trio, round: round)
        #expect(trio[3].counters.implausible == 1)
    }

    /// Four million words, as fast as they can be said, and ten seconds on end.
    @Test func `a flood of ever greater rounds comes nowhere near the last one`() {
        var trio = Trio.serving()
        var round = trio.epoch(3).round
        for _ in 0..<2000 {
            round += NumberBounds.roundJump
            suspect(&trio, round: round)
        }
        #expect(trio[3].counters.implausible == 1999)
        trio.run(.seconds(10))
        #expect(trio.masters == [3])
        #expect(trio.epoch(3).round < NumberBounds.round / 1000)
    }

    @Test func `an election with the last round there is leaves the cluster able to elect`() throws {
        var trio = Trio.serving()
        trio.tell(1, .election, from: 2, in: Epoch(round: NumberBounds.round, id: 2))
        trio.crash(3)
        trio.run(.seconds(8))
        #expect(trio.masters == [2])
        #expect(try trio.announce(.v4(1), at: 1) != nil)
        trio.restart(1)
        trio.run(.seconds(3))
        #expect(trio.isServing(1))
    }

    /// It could not read its own promise back.
    @Test func `who has promised the last round never stands beyond it`() {
        let last = Epoch(round: NumberBounds.round, id: 1)
        var trio = Trio(.paxos) { id, configuration in if id == 1 { configuration.cluster.members = [1] } }
        trio.startAt(last, 1)
        trio.run(.seconds(20))
        #expect(trio.masters.isEmpty)
        #expect(trio.disk(1).promise.map { $0.epoch <= last } ?? true)
    }
}

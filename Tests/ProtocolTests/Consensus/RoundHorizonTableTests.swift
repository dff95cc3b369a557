// How far a round that is told may be ahead, to the last one.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct RoundHorizonTableTests {
    private static let step = NumberBounds.roundStep
    private static let jump = NumberBounds.roundJump
    private static let pause = Duration.seconds(2)
    private var horizon = RoundHorizon()

    private mutating func admits(_ round: UInt64, known: UInt64 = 1000, at milliseconds: Int64) -> Bool {
        horizon.admits(round, known: known, now: .at(milliseconds), pause: Self.pause)
    }

    @Test(
        arguments: [
            (0, true),
            (1000, true),
            (1000 + NumberBounds.roundStep, true),
            (1000 + NumberBounds.roundStep + 1, true),
            (1000 + NumberBounds.roundJump, true),
            (1000 + NumberBounds.roundJump + 1, false),
            (NumberBounds.round, false),
        ] as [(UInt64, Bool)])
    func `of all that was known, a round is believed up to a jump ahead`(_ round: UInt64, _ isBelieved: Bool) {
        var tests = self
        #expect(tests.admits(round, at: 0) == isBelieved)
    }

    @Test mutating func `a round within a step is believed again and again, and costs no jump`() {
        for _ in 0..<3 { #expect(admits(1000 + Self.step, at: 0) == true) }
        #expect(admits(1000 + Self.step + 1, at: 0) == true)
    }

    @Test(arguments: [(1999, false), (2000, true), (2001, true)] as [(Int64, Bool)])
    func `the next jump is believed a pause after the last`(_ now: Int64, _ isBelieved: Bool) {
        var tests = self
        #expect(tests.admits(1000 + Self.step + 1, at: 0) == true)
        #expect(tests.admits(1000 + Self.step + 1, at: now) == isBelieved)
        #expect(tests.admits(1000 + Self.step, at: now) == true, "a step is believed at any time")
    }

    @Test mutating func `a refusal within the pause does not begin it anew`() {
        #expect(admits(1000 + Self.jump, at: 0) == true)
        #expect(admits(1000 + Self.jump, at: 1999) == false)
        #expect(admits(1000 + Self.jump, at: 2000) == true)
    }

    @Test mutating func `a round beyond a jump is not believed, and costs the jump`() {
        #expect(admits(1000 + Self.jump + 1, at: 0) == false)
        #expect(admits(1000 + Self.jump + Self.step + 1, at: 1999) == false)
        #expect(admits(1000 + Self.jump + Self.step + 1, at: 2000) == true)
    }

    @Test mutating func `a round beyond a jump moves what is plausible by that jump, and not further`() {
        #expect(admits(1000 + 5 * Self.jump, at: 0) == false)
        #expect(admits(1000 + Self.jump + Self.step, at: 0) == true, "a step behind the jump is plausible at once")
        #expect(admits(1000 + Self.jump + Self.step + 1, at: 0) == false)
    }

    @Test mutating func `jump by jump, whatever others have been led to is believed in the end`() {
        let round = 1000 + 3 * Self.jump
        #expect(admits(round, at: 0) == false)
        #expect(admits(round, at: 2000) == false)
        #expect(admits(round, at: 4000) == true)
    }

    @Test mutating func `what is known counts where it is greater than what is plausible`() {
        #expect(admits(NumberBounds.round, at: 0) == false)
        let known = 1000 + 2 * Self.jump
        #expect(admits(known + Self.step, known: known, at: 0) == true)
        #expect(admits(known + Self.step + 1, known: known, at: 0) == false)
    }
}

// For how long those are waited for who were told another interval on the other side of a partition (rule 21).

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct MergedIntervalTests {
    /// A life of 10 s with an interval of 7 s, of 23 s with one of 18 s.
    private static let policy = IntervalPolicy(base: 7, jitter: 1, targetRate: 1)

    /// A side that was told intervals, each at its second.
    private static func side(_ told: (seconds: UInt32, at: UInt32)...) throws -> Repository {
        var side = Repository()
        for interval in told {
            side.time = interval.at
            try side.apply(.setInterval(interval.seconds))
        }
        return side
    }

    /// What is decided first where another side is merged at a second.
    private static func longer(_ own: Repository, _ other: Repository, at time: UInt32) -> UInt32? {
        policy.longer(than: own.state.told, in: other.state.told, at: time)
    }

    @Test func `what the other side tells, or told as long ago as its clients may wait, is waited for here`() throws {
        let own = try Self.side((7, 1_000))
        #expect(Self.longer(own, try Self.side((18, 1_000)), at: 5_000) == 18)
        let before = try Self.side((18, 1_000), (7, 1_047))
        #expect(Self.longer(own, before, at: 1_047 + 23) == 18)
        #expect(Self.longer(own, before, at: 1_047 + 24) == nil)
        #expect(Self.longer(try Self.side(), before, at: 1_047) == 18)
    }

    @Test func `where this side waits for as long, nothing is decided`() throws {
        let other = try Self.side((18, 1_000), (7, 1_047))
        #expect(Self.longer(try Self.side((18, 1_000)), other, at: 1_050) == nil)
        #expect(Self.longer(try Self.side((18, 1_000), (7, 1_047)), other, at: 1_050) == nil)
        #expect(Self.longer(try Self.side((20, 1_000), (7, 1_048)), other, at: 1_050) == nil)
        #expect(Self.longer(try Self.side((18, 1_000), (7, 1_046)), other, at: 1_050) == 18)
        #expect(Self.longer(try Self.side((17, 1_000), (7, 1_049)), other, at: 1_050) == 18)
        // The other may have told it just now.
        #expect(Self.longer(try Self.side((18, 1_000), (7, 1_049)), try Self.side((18, 1_000)), at: 1_050) == 18)
        #expect(Self.longer(try Self.side(), try Self.side(), at: 1_050) == nil)
    }

    @Test func `nobody makes this side wait for longer than it ever tells`() throws {
        #expect(Self.longer(try Self.side((7, 1_000)), try Self.side((86_400, 1_000)), at: 1_000) == 28)
    }

    /// As a merge decides it: for nobody is the interval another than before.
    @Test func `its silent peers live as long as was told, and nobody is told it now`() throws {
        var own = try Self.side((7, 1_000))
        own.time = 1_062
        try own.apply(.setInterval(18), .setInterval(7))
        #expect(Self.policy.interval(own.state.told) == 7)
        #expect(Self.policy.lifetime(own.state.told, at: 1_062 + 23) == 23)
        #expect(Self.policy.lifetime(own.state.told, at: 1_062 + 24) == 10)
    }
}

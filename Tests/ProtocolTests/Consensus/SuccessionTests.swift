// How many are to stand before a tracker, when the master is missed.

import Primitives
import Testing
import TrackerLogic

@Suite struct SuccessionTests {
    typealias Policy = ClusterConfiguration.ElectionPolicy

    /// Tracker 2 of four, at index 100, and the indices of 1, 3 and 4.
    struct Row: Sendable, CustomTestStringConvertible {
        var policy = Policy.highest
        var last: UInt32 = 0
        var own: UInt64? = 100
        var others: [UInt64?] = [100, 100, 100]
        var couldNotRecover = false
        var cutThrough: UInt64?
        var rank: Int

        var testDescription: String {
            "\(own.map { "\($0)" } ?? "-") among \(others.map { $0.map { "\($0)" } ?? "-" }), \(policy) after \(last)"
                + (couldNotRecover ? ", could not recover" : "") + (cutThrough.map { ", cut through \($0)" } ?? "")
        }
    }

    private func rank(_ row: Row) -> Int {
        let others = zip([1, 3, 4] as [UInt32], row.others).map { Succession.Candidate(id: $0, index: $1) }
        let succession = Succession(
            own: Succession.Candidate(id: 2, index: row.own), couldNotRecover: row.couldNotRecover,
            cutThrough: row.cutThrough)
        let rank = succession.rank(among: others, by: row.policy, after: row.last)
        #expect(succession.rank(among: others.reversed(), by: row.policy, after: row.last) == rank)
        return rank
    }

    @Test(arguments: [
        Row(rank: 2),
        Row(last: 3, rank: 2),
        Row(policy: .lowest, rank: 1),
        Row(policy: .next, rank: 1),
        Row(policy: .next, last: 1, rank: 0),
        Row(policy: .next, last: 2, rank: 3),
        Row(policy: .next, last: 3, rank: 2),
        Row(policy: .next, last: 4, rank: 1),
    ])
    func `those that are in step stand in the policy's order`(_ row: Row) { #expect(rank(row) == row.rank) }

    @Test(arguments: [
        // Eight entries are a step, nine are not.
        Row(others: [100, 92, 100], rank: 2),
        Row(others: [100, 91, 100], rank: 1),
        Row(others: [100, 91, 91], rank: 0),
        Row(policy: .lowest, others: [91, 100, 100], rank: 0),
        // Those behind stand last, whatever the policy.
        Row(others: [91, 100, 100], rank: 2),
        Row(policy: .lowest, others: [91, 91, 91], rank: 0),
        // The furthest may be this tracker, or another.
        Row(own: 109, others: [109, 109, 100], rank: 1),
        Row(own: 109, others: [109, 109, 101], rank: 2),
        Row(own: 95, others: [103, 94, 103], rank: 1),
        // Of whom nothing is known, it is not behind.
        Row(others: [nil, nil, nil], rank: 2),
        Row(others: [nil, 91, nil], rank: 1),
    ])
    func `whoever is far behind stands later than this one`(_ row: Row) { #expect(rank(row) == row.rank) }

    @Test(arguments: [
        Row(others: [100, 100, 108], rank: 2),
        // All that are in step go first, those behind as the policy says.
        Row(own: 91, rank: 3),
        Row(own: 92, rank: 2),
        Row(own: 91, others: [91, 100, 91], rank: 2),
        Row(own: 91, others: [91, 91, 100], rank: 2),
        Row(policy: .lowest, own: 91, others: [91, 91, 100], rank: 2),
        Row(policy: .lowest, own: 91, others: [100, 91, 91], rank: 1),
        Row(policy: .lowest, own: 91, others: [nil, nil, 100], rank: 3),
        Row(own: nil, others: [8, 8, 8], rank: 2),
        Row(own: nil, others: [9, 9, 9], rank: 3),
        Row(own: nil, others: [nil, nil, nil], rank: 2),
    ])
    func `who is far behind itself lets all others go first that are not`(_ row: Row) {
        #expect(rank(row) == row.rank)
    }

    @Test(arguments: [
        Row(policy: .lowest, couldNotRecover: true, rank: 1),
        Row(policy: .lowest, others: [100, 100, 101], couldNotRecover: true, rank: 3),
        Row(policy: .lowest, others: [100, 100, 101], couldNotRecover: false, rank: 1),
        // Among those that lack something, the policy decides.
        Row(policy: .lowest, others: [91, 99, 101], couldNotRecover: true, rank: 3),
        Row(policy: .highest, others: [91, 99, 101], couldNotRecover: true, rank: 2),
        Row(policy: .lowest, own: 102, others: [100, 100, 101], couldNotRecover: true, rank: 1),
    ])
    func `who found nobody to send what it lacks lets others go first, if it lacks one entry`(_ row: Row) {
        #expect(rank(row) == row.rank)
    }

    @Test(arguments: [
        Row(others: [100, 99, 98], cutThrough: 98, rank: 2),
        Row(others: [100, 99, 98], cutThrough: 99, rank: 1),
        Row(others: [100, 99, 98], cutThrough: 100, rank: 0),
        Row(others: [nil, nil, nil], cutThrough: 100, rank: 2),
        Row(others: [100, 92, 91], cutThrough: 0, rank: 1),
        // What this one has cut, it does not lack.
        Row(policy: .lowest, own: 95, others: [100, 100, 100], cutThrough: 96, rank: 1),
    ])
    func `whoever lacks what this one has cut stands later`(_ row: Row) { #expect(rank(row) == row.rank) }

    @Test func `who is alone is first`() {
        for couldNotRecover in [false, true] {
            let succession = Succession(
                own: Succession.Candidate(id: 2, index: nil), couldNotRecover: couldNotRecover, cutThrough: 9)
            #expect(succession.rank(among: [], by: .next, after: 2) == 0)
        }
    }

    @Test(arguments: Policy.allCases)
    func `those who know the same of each other stand one after another, each in a turn of its own`(_ policy: Policy) {
        var random = RandomStream(seed: 5)
        for _ in 0..<300 {
            let count = 1 + random.below(5)
            let all = (1...count).map {
                Succession.Candidate(id: UInt32($0), index: UInt64(100 + random.below(20)))
            }
            let last = UInt32(random.below(count + 2))
            let ranks = all.map { own in
                Succession(own: own, couldNotRecover: false, cutThrough: nil)
                    .rank(among: all.filter { $0.id != own.id }, by: policy, after: last)
            }
            #expect(ranks.sorted() == Array(0..<count))
        }
    }
}

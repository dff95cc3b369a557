// What makes a quorum, and in which order trackers stand.

import Testing
import TrackerLogic

@Suite struct ElectorateTests {
    struct Count: Sendable, CustomTestStringConvertible {
        var voters: [UInt32]
        var needed: [UInt32] = []
        var ids: [UInt32]
        var decides: Bool

        var testDescription: String { "\(ids) of \(voters)" + (needed.isEmpty ? "" : ", with \(needed)") }
    }

    @Test(arguments: [
        Count(voters: [1], ids: [], decides: false),
        Count(voters: [1], ids: [1], decides: true),
        Count(voters: [1, 2], ids: [2], decides: false),
        Count(voters: [1, 2], ids: [1, 2], decides: true),
        Count(voters: [1, 2, 3], ids: [3], decides: false),
        Count(voters: [1, 2, 3], ids: [3, 1], decides: true),
        Count(voters: [1, 2, 3, 4], ids: [1, 2], decides: false),
        Count(voters: [1, 2, 3, 4], ids: [1, 2, 4], decides: true),
        // Who has no vote does not count.
        Count(voters: [1, 2, 3], ids: [1, 4, 5], decides: false),
        Count(voters: [1, 2, 3], ids: [1, 4, 2], decides: true),
        Count(voters: [], ids: [], decides: false),
        Count(voters: [], ids: [1], decides: false),
        // Policy `all`: a majority, and everybody in it.
        Count(voters: [1, 2, 3], needed: [3], ids: [1, 2], decides: false),
        Count(voters: [1, 2, 3], needed: [3], ids: [1, 3], decides: true),
        Count(voters: [1, 2, 3], needed: [3], ids: [3], decides: false),
        Count(voters: [1, 2, 3], needed: [1, 2, 3], ids: [1, 3], decides: false),
        Count(voters: [1, 2, 3], needed: [1, 2, 3], ids: [1, 2, 3], decides: true),
    ])
    func `a quorum is more than half of the voters, and all who are needed`(_ count: Count) {
        let electorate = Electorate(voters: count.voters, needed: count.needed)
        #expect(electorate.isQuorum(count.ids) == count.decides)
        #expect(electorate.isQuorum { count.ids.contains($0) } == count.decides)
    }

    @Test(arguments: [
        Count(voters: [1], ids: [], decides: false),
        Count(voters: [1], ids: [1], decides: true),
        Count(voters: [1, 2], ids: [1], decides: true),
        Count(voters: [1, 2, 3], ids: [1], decides: false),
        Count(voters: [1, 2, 3], ids: [1, 3], decides: true),
        Count(voters: [1, 2, 3, 4], ids: [1], decides: false),
        Count(voters: [1, 2, 3, 4], ids: [1, 2], decides: true),
        Count(voters: [1, 2, 3], ids: [1, 4, 5], decides: false),
        Count(voters: [1, 2, 3], needed: [3], ids: [2], decides: false),
        Count(voters: [1, 2, 3], needed: [3], ids: [3], decides: true),
        Count(voters: [], ids: [], decides: true),
    ])
    func `no quorum is left without half of the voters, or without one who is needed`(_ count: Count) {
        #expect(Electorate(voters: count.voters, needed: count.needed).isBlocked(by: count.ids) == count.decides)
    }

    @Test(arguments: [
        Count(voters: [1, 2], ids: [1], decides: false),
        Count(voters: [1, 2], ids: [2, 1], decides: true),
        Count(voters: [1, 2], ids: [3, 2, 1], decides: true),
        Count(voters: [1, 2], ids: [3, 2], decides: false),
        // Who is needed and has no vote is not asked.
        Count(voters: [1], needed: [2], ids: [1], decides: true),
    ])
    func `all are all voters, whoever else there is`(_ count: Count) {
        #expect(Electorate(voters: count.voters, needed: count.needed).isUnanimous(count.ids) == count.decides)
    }

    @Test func `a voter is one that is named`() {
        let electorate = Electorate(voters: [2, 5], needed: [7])
        #expect([1, 2, 5, 7].filter(electorate.includes) == [2, 5])
    }

    private static func subsets(of ids: [UInt32]) -> [[UInt32]] {
        (0..<1 << ids.count).map { mask in ids.indices.filter { mask >> $0 & 1 == 1 }.map { ids[$0] } }
    }

    @Test(arguments: 1...5 as ClosedRange<UInt32>)
    func `any two quorums have a voter in common, also when one member has come`(_ count: UInt32) {
        let before = Electorate(voters: Array(1...count))
        let after = Electorate(voters: Array(1...count + 1))
        let earlier = Self.subsets(of: before.voters).filter { before.isQuorum($0) }
        let later = Self.subsets(of: after.voters).filter { after.isQuorum($0) }
        #expect(!earlier.isEmpty && !later.isEmpty)
        for one in earlier {
            #expect(earlier.allSatisfy { !Set(one).isDisjoint(with: $0) })
            #expect(later.allSatisfy { !Set(one).isDisjoint(with: $0) })
        }
    }

    @Test(arguments: 1...5 as ClosedRange<UInt32>)
    func `a vote is blocked when and only when those that are left are no quorum`(_ count: UInt32) {
        for needed in [[], [1], [1, count]] {
            let electorate = Electorate(voters: Array(1...count), needed: needed)
            for ids in Self.subsets(of: electorate.voters) {
                let rest = electorate.voters.filter { !ids.contains($0) }
                #expect(electorate.isBlocked(by: ids) == !electorate.isQuorum(rest))
            }
        }
    }

    // MARK: - The order

    typealias ElectionPolicy = ClusterConfiguration.ElectionPolicy

    @Test(
        arguments: [
            (.highest, 0, [4, 3, 2, 1]),
            (.highest, 3, [4, 3, 2, 1]),
            (.lowest, 3, [1, 2, 3, 4]),
            (.next, 0, [1, 2, 3, 4]),
            (.next, 1, [2, 3, 4, 1]),
            (.next, 3, [4, 1, 2, 3]),
            (.next, 4, [1, 2, 3, 4]),
            (.next, 9, [1, 2, 3, 4]),
        ] as [(ElectionPolicy, UInt32, [UInt32])])
    func `trackers stand in the policy's order`(_ policy: ElectionPolicy, _ last: UInt32, _ order: [UInt32]) {
        #expect(policy.order([3, 1, 4, 2], after: last) == order)
    }

    @Test(
        arguments: [
            (.highest, [false, false, true]),
            (.lowest, [true, false, false]),
            (.next, [false, false, false]),
        ] as [(ElectionPolicy, [Bool])])
    func `the role is for a tracker that the policy likes better, and no other`(
        _ policy: ElectionPolicy, _ likes: [Bool]
    ) {
        #expect([1, 2, 3].map { policy.prefers($0, to: 2) } == likes)
    }
}

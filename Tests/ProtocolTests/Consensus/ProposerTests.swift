// Agreement on one entry after another, event by event.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct ProposerTests {
    private static let epoch = Epoch(4, by: 3)
    private static let ballot = Ballot(epoch: epoch, attempt: 0, index: 7)
    /// Ballots that differ from the one proposed in one field.
    private static let others = [
        Ballot(epoch: Epoch(3, by: 3), attempt: 0, index: 7), Ballot(epoch: Epoch(4, by: 2), attempt: 0, index: 7),
        Ballot(epoch: Epoch(4, by: 3), attempt: 1, index: 7), Ballot(epoch: Epoch(4, by: 3), attempt: 0, index: 6),
        Ballot(epoch: Epoch(4, by: 3), attempt: 0, index: 8),
    ]
    private static let three = Electorate(voters: [1, 2, 3])

    private static func proposing(_ kind: Proposer.Kind = .fresh, at milliseconds: Int64 = 100) -> Proposer {
        var proposer = Proposer()
        proposer.begin(sentAt: .at(0))
        _ = proposer.propose(kind, epoch, index: 7, now: .at(milliseconds))
        return proposer
    }

    @Test func `at first nothing is under way`() {
        var proposer = Proposer()
        #expect(proposer.isIdle)
        #expect(proposer.proposed == nil)
        #expect(proposer.attempt == 0)
        #expect(!proposer.hasErrors)
        #expect(proposer.supporters.isEmpty)
        #expect(proposer.decision(Electorate(voters: [])) == .open)
        #expect(proposer.takeCommit() == false)
    }

    // MARK: - Proposing

    @Test(arguments: [.fresh, .inherited, .void] as [Proposer.Kind])
    func `a proposal names epoch, attempt and index`(_ kind: Proposer.Kind) {
        var proposer = Proposer()
        #expect(proposer.propose(kind, Self.epoch, index: 7, now: .at(100)) == Self.ballot)
        #expect(proposer.proposed == Self.ballot)
        #expect(!proposer.isIdle)
        #expect(proposer.kind == kind)
        #expect(proposer.attempt == 0)
        #expect(!proposer.hasErrors && proposer.supporters.isEmpty)
        #expect(proposer.decision(Self.three) == .open)
    }

    @Test func `after each refusal the next attempt has a number of its own, until one is decided`() {
        var proposer = Self.proposing()
        for attempt in 1...3 as ClosedRange<UInt32> {
            proposer.refused(.void)
            #expect(proposer.isIdle)
            #expect(proposer.attempt == attempt)
            let ballot = proposer.propose(.void, Self.epoch, index: 7, now: .at(100))
            #expect(ballot == Ballot(epoch: Self.epoch, attempt: attempt, index: 7))
        }
        proposer.committed()
        #expect(proposer.isIdle)
        #expect(proposer.attempt == 0)
        let next = proposer.propose(.fresh, Self.epoch, index: 8, now: .at(100))
        #expect(next == Ballot(epoch: Self.epoch, attempt: 0, index: 8))
    }

    @Test func `one entry at a time is under way`() async {
        await #expect(processExitsWith: .failure) {
            var proposer = Proposer()
            _ = proposer.propose(.fresh, Epoch(4, by: 3), index: 7, now: .at(0))
            _ = proposer.propose(.fresh, Epoch(4, by: 3), index: 8, now: .at(0))
        }
    }

    /// What ends an entry's way, by name.
    private static let endings: [(name: String, end: @Sendable (inout Proposer) -> Void)] = [
        ("committed", { $0.committed() }), ("refused", { $0.refused(.again) }), ("reset", { $0.reset() }),
        ("begin", { $0.begin(sentAt: .at(0)) }),
    ]

    @Test(arguments: endings.map(\.name))
    func `votes and kind end with their entry`(_ name: String) throws {
        let ending = try #require(Self.endings.first { $0.name == name })
        var proposer = Self.proposing(.void)
        proposer.okReceived(from: 1, Self.ballot)
        proposer.okReceived(from: 3, Self.ballot)
        proposer.errorReceived(from: 2, Self.ballot)
        ending.end(&proposer)
        #expect(proposer.proposed == nil)
        #expect(proposer.kind == .fresh)
        #expect(proposer.supporters.isEmpty)
        #expect(!proposer.hasErrors)
        #expect(![1, 2, 3].contains(where: proposer.hasVoted))
        #expect(proposer.decision(Self.three) == .open)
    }

    @Test func `an office begins with the first attempt, and owes nothing`() {
        var proposer = Self.proposing()
        proposer.committed()
        _ = proposer.propose(.fresh, Self.epoch, index: 8, now: .at(100))
        proposer.refused(.again)
        proposer.begin(sentAt: .at(0))
        #expect(proposer.attempt == 0)
        proposer.committed()
        proposer.reset()
        #expect(proposer.takeCommit() == false, "what it owed is for the next master to say")
    }

    @Test(arguments: [(349, false), (350, true), (351, true)] as [(Int64, Bool)])
    func `what is missing is asked for again a pause after it was`(_ now: Int64, _ isDue: Bool) {
        var proposer = Self.proposing(at: 100)
        #expect(proposer.takeResend(now: .at(now), pause: .milliseconds(250)) == isDue)
        #expect(proposer.takeResend(now: .at(350), pause: .milliseconds(250)) == !isDue, "and then notes that")
        var begun = Proposer()
        begun.begin(sentAt: .at(100))
        #expect(begun.takeResend(now: .at(now), pause: .milliseconds(250)) == isDue, "the candidate had asked")
    }

    @Test(arguments: [(1099, false), (1100, true), (1101, true)] as [(Int64, Bool)])
    func `who could not store it tries again a pause after the proposal, however often it was sent`(
        _ now: Int64, _ isDue: Bool
    ) {
        var proposer = Self.proposing(at: 100)
        proposer.okReceived(from: 1, Self.ballot)
        _ = proposer.takeResend(now: .at(1000), pause: .milliseconds(250))
        #expect(!proposer.mayRetryErrors(now: .at(now), pause: .seconds(1)), "there is nobody to")
        proposer.errorReceived(from: 2, Self.ballot)
        #expect(proposer.mayRetryErrors(now: .at(now), pause: .seconds(1)) == isDue)
    }

    @Test(arguments: [(2099, false), (2100, true)] as [(Int64, Bool)])
    func `what nobody has stored is not proposed again before all have had time to refuse it`(
        _ now: Int64, _ isDue: Bool
    ) {
        var proposer = Self.proposing(at: 100)
        proposer.errorReceived(from: 2, Self.ballot)
        #expect(proposer.mayRetryErrors(now: .at(now), pause: .seconds(1)) == isDue)
    }

    // MARK: - Votes

    @Test(arguments: others)
    func `a vote on another ballot counts for nothing`(_ other: Ballot) {
        var proposer = Self.proposing()
        proposer.okReceived(from: 1, other)
        proposer.errorReceived(from: 2, other)
        #expect(proposer == Self.proposing())
    }

    @Test func `a vote on nothing counts for nothing`() {
        var proposer = Proposer()
        proposer.okReceived(from: 1, Self.ballot)
        proposer.errorReceived(from: 2, Self.ballot)
        #expect(proposer == Proposer())
    }

    @Test func `a voter counts once`() {
        var proposer = Self.proposing()
        proposer.okReceived(from: 1, Self.ballot)
        proposer.okReceived(from: 1, Self.ballot)
        proposer.errorReceived(from: 2, Self.ballot)
        proposer.errorReceived(from: 2, Self.ballot)
        #expect(proposer.supporters == [1])
        #expect(proposer.decision(Electorate(voters: [1, 2, 3, 4, 5])) == .open)
        proposer.forgetErrors(of: 2)
        #expect(!proposer.hasErrors)
    }

    @Test func `an OK after an error counts, an error after an OK does not`() {
        var proposer = Self.proposing()
        proposer.errorReceived(from: 1, Self.ballot)
        #expect(proposer.hasErrors)
        #expect(proposer.hasVoted(1) && !proposer.hasVoted(2))
        proposer.okReceived(from: 1, Self.ballot)
        #expect(proposer.supporters == [1])
        #expect(!proposer.hasErrors)
        #expect(proposer.hasVoted(1))
        proposer.errorReceived(from: 1, Self.ballot)
        #expect(proposer.supporters == [1])
        #expect(!proposer.hasErrors)
    }

    @Test func `the votes of a life that has ended are forgotten, and no others`() {
        var proposer = Self.proposing()
        proposer.okReceived(from: 1, Self.ballot)
        proposer.okReceived(from: 4, Self.ballot)
        proposer.errorReceived(from: 2, Self.ballot)
        proposer.errorReceived(from: 3, Self.ballot)
        proposer.forgetVotes(of: 1)
        proposer.forgetVotes(of: 2)
        #expect(proposer.supporters == [4])
        #expect([1, 2, 3, 4].filter(proposer.hasVoted) == [3, 4])
        proposer.okReceived(from: 1, Self.ballot)
        #expect(proposer.supporters == [4, 1], "its next life votes")
    }

    @Test func `who tries again has said nothing yet, and its OK stays`() {
        var proposer = Self.proposing()
        proposer.okReceived(from: 1, Self.ballot)
        proposer.errorReceived(from: 2, Self.ballot)
        proposer.errorReceived(from: 3, Self.ballot)
        proposer.forgetErrors(of: 1)
        proposer.forgetErrors(of: 2)
        #expect([1, 2, 3].filter(proposer.hasVoted) == [1, 3])
        #expect(proposer.hasErrors)
    }

    struct Poll: Sendable, CustomTestStringConvertible {
        var voters: [UInt32]
        var needed: [UInt32] = []
        var oks: [UInt32] = []
        var errors: [UInt32] = []
        var decision: Proposer.Decision

        var testDescription: String { "\(oks) against \(errors) of \(voters) with \(needed): \(decision)" }
    }

    @Test(arguments: [
        Poll(voters: [3], decision: .open),
        Poll(voters: [3], oks: [3], decision: .committed),
        Poll(voters: [3], errors: [3], decision: .refusedByAll),
        Poll(voters: [1, 2, 3], oks: [3], decision: .open),
        Poll(voters: [1, 2, 3], oks: [3, 1], decision: .committed),
        Poll(voters: [1, 2, 3], oks: [3, 1], errors: [2], decision: .committed),
        Poll(voters: [1, 2, 3], errors: [1], decision: .open),
        Poll(voters: [1, 2, 3], errors: [1, 2], decision: .refused),
        Poll(voters: [1, 2, 3], oks: [3], errors: [1, 2], decision: .refused),
        Poll(voters: [1, 2, 3], errors: [1, 2, 3], decision: .refusedByAll),
        // Half of the voters commit nothing, and block everything.
        Poll(voters: [1, 2, 3, 4], oks: [3, 4], decision: .open),
        Poll(voters: [1, 2, 3, 4], errors: [1, 2], decision: .refused),
        // Who has no vote does not count.
        Poll(voters: [1, 2, 3], oks: [3, 7], decision: .open),
        Poll(voters: [1, 2, 3], errors: [1, 7], decision: .open),
        // Policy `all`.
        Poll(voters: [1, 2, 3], needed: [1, 2, 3], oks: [3, 1], decision: .open),
        Poll(voters: [1, 2, 3], needed: [1, 2, 3], oks: [3, 1], errors: [2], decision: .refused),
        Poll(voters: [1, 2, 3], needed: [1, 2, 3], oks: [1, 2, 3], decision: .committed),
    ])
    func `a quorum of OKs commits, and errors refuse where none can exist`(_ poll: Poll) {
        var proposer = Self.proposing()
        for voter in poll.oks { proposer.okReceived(from: voter, Self.ballot) }
        for voter in poll.errors { proposer.errorReceived(from: voter, Self.ballot) }
        #expect(proposer.decision(Electorate(voters: poll.voters, needed: poll.needed)) == poll.decision)
    }

    // MARK: - Decided

    @Test(
        arguments: [
            (.fresh, true, 100, .drop),
            (.fresh, false, 100, .void),
            (.fresh, false, 9999, .void),
            (.inherited, true, 1099, .wait),
            (.inherited, true, 1100, .again),
            (.inherited, false, 1101, .again),
            (.void, false, 1099, .wait),
            (.void, true, 100, .drop),
            (.void, false, 1101, .again),
        ] as [(Proposer.Kind, Bool, Int64, Proposer.Consequence)])
    func `only what is this master's own and nowhere is given up`(
        _ kind: Proposer.Kind, _ isNowhere: Bool, _ now: Int64, _ consequence: Proposer.Consequence
    ) {
        var proposer = Self.proposing(kind, at: 100)
        _ = proposer.takeResend(now: .at(900), pause: .milliseconds(250))
        #expect(proposer.consequence(isNowhere: isNowhere, now: .at(now), pause: .seconds(1)) == consequence)
    }

    // MARK: - Empty entries

    private static let replaced = Ballot(epoch: epoch, attempt: 0, index: 7)
    private static let empty = Ballot(epoch: epoch, attempt: 1, index: 7)

    /// An empty entry is under way, in the place of one that two of three voters have refused.
    private static func replacing(at milliseconds: Int64 = 200) -> Proposer {
        var proposer = proposing()
        for voter in [1, 2] as [UInt32] { proposer.errorReceived(from: voter, replaced) }
        proposer.refused(.void)
        _ = proposer.propose(.void, epoch, index: 7, now: .at(milliseconds))
        return proposer
    }

    /// How an empty entry is left by refusals of it, and by votes on the one in whose place it is.
    private static func end(
        _ proposer: inout Proposer, at milliseconds: Int64, refusedBy voters: [UInt32] = [1, 2, 3]
    ) -> Proposer.Consequence {
        for voter in voters { proposer.errorReceived(from: voter, empty) }
        proposer.countRefusers(three)
        let decision = proposer.decision(three)
        #expect(decision == .refused || decision == .refusedByAll)
        return proposer.consequence(
            isNowhere: decision == .refusedByAll, now: .at(milliseconds), pause: .seconds(1))
    }

    @Test func `with all disks full, an empty entry and the one in whose place it is are given up`() {
        var proposer = Self.replacing()
        proposer.errorReceived(from: 3, Self.replaced)
        #expect(Self.end(&proposer, at: 300) == .drop)
    }

    @Test func `as long as a voter may have stored what was refused, the empty entry stays`() {
        var silent = Self.replacing()
        #expect(Self.end(&silent, at: 300) == .wait)
        #expect(Self.end(&silent, at: 1200) == .again)
        var stored = Self.replacing()
        stored.okReceived(from: 3, Self.replaced)
        stored.errorReceived(from: 3, Self.replaced)
        #expect(Self.end(&stored, at: 1200) == .again)
        var reborn = Self.replacing()
        reborn.errorReceived(from: 3, Self.replaced)
        reborn.forgetVotes(of: 3)
        #expect(Self.end(&reborn, at: 1200) == .again)
    }

    @Test func `what was proposed again is not given up, though all refuse it now: an earlier attempt may be stored`() {
        var proposer = Self.proposing()
        proposer.okReceived(from: 1, Self.replaced)
        proposer.errorReceived(from: 2, Self.replaced)
        proposer.refused(.again)
        _ = proposer.propose(.fresh, Self.epoch, index: 7, now: .at(2000))
        for voter in [1, 2, 3] as [UInt32] { proposer.errorReceived(from: voter, Self.empty) }
        #expect(proposer.decision(Self.three) == .refused)
        #expect(proposer.consequence(isNowhere: false, now: .at(2000), pause: .seconds(1)) == .void)
        // Nor is the empty one in its place.
        proposer.refused(.void)
        let void = proposer.propose(.void, Self.epoch, index: 7, now: .at(3000))
        for voter in [1, 2, 3] as [UInt32] {
            proposer.errorReceived(from: voter, Self.empty)
            proposer.errorReceived(from: voter, void)
        }
        proposer.countRefusers(Self.three)
        #expect(proposer.decision(Self.three) == .refused)
        // What comes after it begins anew.
        proposer.committed()
        _ = proposer.propose(.fresh, Self.epoch, index: 8, now: .at(4000))
        for voter in [1, 2, 3] as [UInt32] {
            proposer.errorReceived(from: voter, Ballot(epoch: Self.epoch, attempt: 0, index: 8))
        }
        #expect(proposer.decision(Self.three) == .refusedByAll)
    }

    @Test func `what one who has gone since has stored is not given up`() {
        var proposer = Self.proposing()
        proposer.okReceived(from: 1, Self.replaced)
        for voter in [2, 3] as [UInt32] { proposer.errorReceived(from: voter, Self.replaced) }
        #expect(proposer.decision(Electorate(voters: [2, 3])) == .refused)
    }

    @Test(arguments: [(2199, .wait), (2200, .drop)] as [(Int64, Proposer.Consequence)])
    func `all have time to say that they cannot store the empty one`(
        _ now: Int64, _ consequence: Proposer.Consequence
    ) {
        var proposer = Self.replacing()
        proposer.errorReceived(from: 3, Self.replaced)
        #expect(Self.end(&proposer, at: now, refusedBy: [1, 2]) == consequence)
        #expect(!proposer.mayRetryErrors(now: .at(2199), pause: .seconds(1)))
    }

    @Test func `who has refused one entry has not refused the next`() {
        var proposer = Self.replacing()
        proposer.errorReceived(from: 3, Self.replaced)
        proposer.committed()
        _ = proposer.propose(.void, Self.epoch, index: 8, now: .at(200))
        for voter in [1, 2, 3] as [UInt32] {
            proposer.errorReceived(from: voter, Ballot(epoch: Self.epoch, attempt: 0, index: 8))
        }
        proposer.countRefusers(Self.three)
        #expect(proposer.decision(Self.three) == .refused)
    }

    @Test func `that an entry is decided is told once`() {
        var proposer = Self.proposing()
        #expect(proposer.takeCommit() == false)
        proposer.committed()
        #expect(proposer.takeCommit() == true)
        #expect(proposer.takeCommit() == false)
    }

    @Test func `the next proposal tells it as well, and a refusal tells nothing`() {
        var proposer = Self.proposing()
        proposer.committed()
        _ = proposer.propose(.fresh, Self.epoch, index: 8, now: .at(200))
        #expect(proposer.takeCommit() == false)
        proposer.refused(.again)
        #expect(proposer.takeCommit() == false)
    }
}

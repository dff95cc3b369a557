// The master that a tracker follows: its welcome, the attempts that are void, and asking for entries.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct FollowingTests {
    private static let master = Life(3, life: 7)
    private static let epoch = Epoch(4, by: 3)
    private static let pause = Duration.milliseconds(250)

    /// A tracker that has heard a master at 100 ms.
    private static func following(isWelcomed: Bool = false) -> Office {
        var office = Office()
        office.begin()
        office.busConnected()
        office.follow(master, epoch, since: .at(100))
        if isWelcomed { office.welcomed(at: 9, attempt: 0) }
        return office
    }

    @Test func `a master that is heard is followed, and not yet its welcome had`() {
        let office = Self.following()
        #expect(office.following?.life == Self.master)
        #expect(office.following?.epoch == Self.epoch)
        #expect(office.following?.since == .at(100))
        #expect(office.following?.attempt == 0)
        #expect(office.following?.isWelcomed == false)
        #expect(!office.isWelcomed)
    }

    @Test(arguments: [
        (master, epoch, true, true),
        (master, Epoch(4, by: 2), true, false),
        (master, Epoch(5, by: 3), true, false),
        (Life(3, life: 8), epoch, false, false),
        (Life(2, life: 7), epoch, false, false),
    ])
    func `one life in one epoch is followed`(_ life: Life, _ epoch: Epoch, _ isLife: Bool, _ isBoth: Bool) {
        var office = Self.following()
        #expect(office.follows(life) == isLife)
        #expect(office.follows(life, in: epoch) == isBoth)
        #expect(!office.isWelcomed(by: life, in: epoch))
        office.welcomed(at: 9, attempt: 0)
        #expect(office.isWelcomed(by: life, in: epoch) == isBoth)
        office.unfollow()
        #expect(!office.follows(life) && !office.follows(life, in: epoch) && !office.isWelcomed(by: life, in: epoch))
    }

    @Test(arguments: [
        (master, ClusterRole.newcomer, epoch, true),
        (master, .slave, epoch, true),
        (master, .candidate, epoch, false),
        (master, .candidate, Epoch(5, by: 3), true),
        (master, .slave, Epoch(5, by: 2), true),
        (master, .newcomer, Epoch(4, by: 2), false),
        (master, .newcomer, .zero, false),
        (Life(3, life: 8), .newcomer, Epoch(5, by: 3), false),
    ])
    func `what a master said before it was elected, and comes late, does not end its office`(
        _ life: Life, _ role: ClusterRole, _ epoch: Epoch, _ isResignation: Bool
    ) {
        var office = Self.following(isWelcomed: true)
        #expect(office.isResignation(of: life, as: role, in: epoch) == isResignation)
        office.unfollow()
        #expect(!office.isResignation(of: life, as: role, in: epoch))
    }

    @Test func `another epoch of the same master begins without its welcome`() {
        var office = Self.following(isWelcomed: true)
        office.raiseAttempt(to: 4)
        _ = office.takeFetch(now: .at(200), pause: Self.pause)
        office.follow(Self.master, Epoch(5, by: 3), since: .at(300))
        #expect(office.following?.epoch == Epoch(5, by: 3))
        #expect(office.following?.since == .at(300))
        #expect(office.following?.attempt == 0)
        #expect(!office.isWelcomed)
        office.welcomed(at: 9, attempt: nil)
        #expect(office.takeFetch(now: .at(300), pause: Self.pause) == true, "of this one nothing was asked yet")
    }

    @Test func `a word by name tells since when the master hears this tracker, if it is the master's`() {
        var office = Self.following()
        office.noteHeard(by: Life(3, life: 8), now: .at(200))
        #expect(office.following?.since == .at(100))
        office.noteHeard(by: Self.master, now: .at(300))
        #expect(office.following?.since == .at(300))
        #expect(!office.isWelcomed)
    }

    @Test func `whoever is dismissed, or strays, asks anew`() {
        var dismissed = Self.following(isWelcomed: true)
        dismissed.dismissed(now: .at(500))
        #expect(!dismissed.isWelcomed)
        #expect(dismissed.following?.since == .at(500))
        #expect(dismissed.follows(Self.master, in: Self.epoch))

        var void = Self.following(isWelcomed: true)
        void.revokeWelcome()
        #expect(!void.isWelcomed)
        #expect(void.following?.since == .at(100))
        #expect(void.follows(Self.master, in: Self.epoch))
    }

    @Test func `what is said of a master is of no account where nobody is followed`() {
        var office = Self.following()
        office.unfollow()
        let before = office
        office.noteHeard(by: Self.master, now: .at(200))
        office.welcomed(at: 9, attempt: 3)
        office.dismissed(now: .at(200))
        office.revokeWelcome()
        office.raiseAttempt(to: 3)
        office.entryDecided()
        office.entriesReceived()
        #expect(office.takeFetch(now: .at(200), pause: Self.pause) == false)
        #expect(office == before)
        #expect(!office.isWelcomed)
    }

    // MARK: - The next entry

    @Test(arguments: [(2, nil, 2), (2, 1, 2), (2, 2, 2), (2, 3, 3)] as [(UInt32, UInt32?, UInt32)])
    func `a welcome tells which attempts are void, if it means the next entry`(
        _ known: UInt32, _ attempt: UInt32?, _ after: UInt32
    ) {
        var office = Self.following()
        office.raiseAttempt(to: known)
        office.welcomed(at: 9, attempt: attempt)
        #expect(office.isWelcomed)
        #expect(office.following?.attempt == after)
        #expect(office.following?.decidedThrough == 9)
        #expect(office.following?.since == .at(100))
    }

    @Test(arguments: [(2, 1, 2), (2, 2, 2), (2, 3, 3)] as [(UInt32, UInt32, UInt32)])
    func `an attempt that is void stays void until the entry is decided`(
        _ known: UInt32, _ attempt: UInt32, _ after: UInt32
    ) {
        var office = Self.following(isWelcomed: true)
        office.raiseAttempt(to: known)
        office.raiseAttempt(to: attempt)
        #expect(office.following?.attempt == after)
        office.dismissed(now: .at(200))
        #expect(office.following?.attempt == after)
        office.entryDecided()
        #expect(office.following?.attempt == 0)
    }

    @Test func `entries are asked for by who is welcomed`() {
        var office = Self.following()
        #expect(office.takeFetch(now: .at(100), pause: Self.pause) == false)
        office.welcomed(at: 9, attempt: nil)
        #expect(office.takeFetch(now: .at(100), pause: Self.pause) == true)
    }

    @Test(arguments: [(349, false), (350, true), (351, true)] as [(Int64, Bool)])
    func `entries are asked for again a pause after they were, or when some have come`(_ now: Int64, _ isDue: Bool) {
        var office = Self.following(isWelcomed: true)
        _ = office.takeFetch(now: .at(100), pause: Self.pause)
        var received = office
        #expect(office.takeFetch(now: .at(now), pause: Self.pause) == isDue)
        #expect(
            office.takeFetch(now: .at(350), pause: Self.pause) == !isDue,
            "the pause begins with what was asked, not with what was not")
        received.entriesReceived()
        #expect(received.takeFetch(now: .at(now), pause: Self.pause) == true)
    }
}

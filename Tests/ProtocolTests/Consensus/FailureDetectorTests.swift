// Missing the master, and when it is whose turn to stand, event by event.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct FailureDetectorTests {
    private static let master = Life(3, life: 7)
    /// With a detection time of two seconds.
    private var detector = FailureDetector(detectionTime: .seconds(2))

    // MARK: - The master

    @Test(arguments: [(2999, false), (3000, true), (3001, true)] as [(Int64, Bool)])
    func `a master is silent a detection time after it was heard`(_ now: Int64, _ isSilent: Bool) {
        var detector = detector
        detector.expectMaster(from: .at(1000))
        #expect(detector.silentAt == .at(3000))
        #expect(detector.deadline == .at(3000))
        #expect(detector.isSilent(now: .at(now)) == isSilent)
    }

    @Test(arguments: [(1499, false), (1500, true), (1501, true)] as [(Int64, Bool)])
    func `a master that is gone is missed when it is told to be`(_ now: Int64, _ isSilent: Bool) {
        var detector = detector
        detector.expectMaster(from: .at(1000))
        detector.expectMaster(by: .at(1500))
        #expect(detector.deadline == .at(1500))
        #expect(detector.isSilent(now: .at(now)) == isSilent)
    }

    // MARK: - Suspicion

    @Test mutating func `the master is missed since it was missed first`() {
        detector.expectMaster(from: .at(1000))
        #expect(!detector.isSuspecting)
        #expect(detector.suspect(now: .at(3000)) == true)
        #expect(detector.isSuspecting)
        #expect(detector.suspectingSince == .at(3000))
        #expect(detector.deadline == nil, "that is noticed")
        #expect(detector.suspect(now: .at(3100)) == false)
        #expect(detector.suspectingSince == .at(3000))
    }

    @Test mutating func `whoever misses it no more is to notice again`() {
        detector.expectMaster(from: .at(1000))
        _ = detector.suspect(now: .at(3000))
        detector.stopSuspecting()
        #expect(!detector.isSuspecting)
        #expect(detector.suspectingSince == nil)
        #expect(detector.deadline == .at(3000), "when the master was heard is another matter")
        #expect(detector.suspect(now: .at(3200)) == true)
        #expect(detector.suspectingSince == .at(3200))
    }

    @Test mutating func `that it is missed is said at once, and again after each pause`() {
        _ = detector.suspect(now: .at(3000))
        #expect(detector.takeSuspicionNotice(now: .at(3000), pause: .milliseconds(250)) == true)
        #expect(detector.takeSuspicionNotice(now: .at(3249), pause: .milliseconds(250)) == false)
        #expect(detector.takeSuspicionNotice(now: .at(3250), pause: .milliseconds(250)) == true)
        #expect(detector.takeSuspicionNotice(now: .at(3499), pause: .milliseconds(250)) == false)
        _ = detector.suspect(now: .at(3499))
        #expect(detector.takeSuspicionNotice(now: .at(3499), pause: .milliseconds(250)) == false, "that was no news")
        detector.stopSuspecting()
        _ = detector.suspect(now: .at(3499))
        #expect(detector.takeSuspicionNotice(now: .at(3499), pause: .milliseconds(250)) == true)
    }

    @Test(arguments: [(4999, false), (5000, true), (5001, true)] as [(Int64, Bool)])
    func `a master is lost when it was missed for a detection time`(_ now: Int64, _ isLost: Bool) {
        var detector = detector
        #expect(!detector.isLost(now: .at(now)))
        _ = detector.suspect(now: .at(3000))
        #expect(detector.isLost(now: .at(now)) == isLost)
        detector.stopSuspecting()
        #expect(!detector.isLost(now: .at(now)))
    }

    // MARK: - Whose turn it is

    @Test func `who is first stands at once`() {
        var detector = detector
        #expect(detector.takeTurn(now: .at(3000), after: .zero) == true)
        #expect(detector.standsAt == .at(3000))
    }

    @Test(arguments: [(3299, false), (3300, true), (3301, true)] as [(Int64, Bool)])
    func `a turn stays when it was, whatever the pause would be now`(_ now: Int64, _ isDue: Bool) {
        var detector = detector
        #expect(detector.takeTurn(now: .at(3000), after: .milliseconds(300)) == false)
        #expect(detector.standsAt == .at(3300))
        #expect(detector.takeTurn(now: .at(now), after: isDue ? .seconds(9) : .zero) == isDue)
        #expect(detector.standsAt == .at(3300))
    }

    @Test mutating func `a turn that is lost is waited for anew`() {
        _ = detector.takeTurn(now: .at(3000), after: .milliseconds(300))
        detector.loseTurn()
        #expect(detector.standsAt == nil)
        #expect(detector.takeTurn(now: .at(3300), after: .milliseconds(300)) == false)
        #expect(detector.standsAt == .at(3600))
    }

    @Test mutating func `there is no turn without suspicion`() {
        _ = detector.suspect(now: .at(3000))
        _ = detector.takeTurn(now: .at(3000), after: .milliseconds(300))
        detector.stopSuspecting()
        #expect(detector.standsAt == nil)
        _ = detector.suspect(now: .at(3100))
        #expect(detector.standsAt == nil)
        #expect(detector.takeTurn(now: .at(3300), after: .milliseconds(300)) == false)
    }

    // MARK: - Masters that do not answer

    @Test mutating func `a master that never answered is missed at once`() {
        detector.expectMaster(from: .at(900))
        detector.ignore(Self.master, now: .at(1000))
        #expect(detector.silentAt == .at(1000))
        #expect(detector.ignored?.life == Self.master)
        #expect(detector.ignored?.until == .at(21_000))
    }

    @Test(arguments: [(1000, true), (20_999, true), (21_000, false), (21_001, false)] as [(Int64, Bool)])
    func `it is not heeded for ten detection times, and others are`(_ now: Int64, _ isIgnored: Bool) {
        var detector = detector
        #expect(!detector.ignores(Self.master, now: .at(now)))
        detector.ignore(Self.master, now: .at(1000))
        #expect(detector.ignores(Self.master, now: .at(now)) == isIgnored)
        #expect(detector.ignoredLife(now: .at(now)) == (isIgnored ? Self.master : nil))
        #expect(!detector.ignores(Life(3, life: 8), now: .at(now)), "its next life is another matter")
        #expect(!detector.ignores(Life(2, life: 7), now: .at(now)))
    }

    @Test mutating func `it is heeded when it answers itself`() {
        detector.ignore(Self.master, now: .at(1000))
        detector.noteAnswer(of: Life(3, life: 8))
        #expect(detector.ignores(Self.master, now: .at(1001)))
        detector.noteAnswer(of: Self.master)
        #expect(detector.ignored == nil)
        #expect(!detector.ignores(Self.master, now: .at(1001)))
    }

    @Test mutating func `one is ignored at a time, the last`() {
        detector.ignore(Self.master, now: .at(1000))
        detector.ignore(Life(2), now: .at(1500))
        #expect(!detector.ignores(Self.master, now: .at(1500)))
        #expect(detector.ignoredLife(now: .at(21_499)) == Life(2))
    }

    // MARK: - A master's quorum

    @Test(arguments: [(1000, true), (2999, true), (3000, false), (3001, false)] as [(Int64, Bool)])
    func `a master may speak for less than a detection time after its quorum did`(_ now: Int64, _ isFollowed: Bool) {
        var detector = detector
        detector.noteFollowed(now: .at(1000))
        #expect(detector.wasFollowed(now: .at(now)) == isFollowed)
    }

    @Test mutating func `that a master is missed and that it is followed are two things`() {
        detector.noteFollowed(now: .at(1000))
        detector.ignore(Self.master, now: .at(1000))
        _ = detector.suspect(now: .at(1000))
        #expect(detector.wasFollowed(now: .at(2999)))
    }
}

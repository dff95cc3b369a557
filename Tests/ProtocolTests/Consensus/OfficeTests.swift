// Which part a tracker plays, and whether it may speak: its phases, event by event. Whom it follows is in
// `FollowingTests`.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct OfficeTests {
    private static let master = Life(3, life: 7)
    private static let epoch = Epoch(4, by: 3)
    private static let phases: [Office.Phase] = [
        .restoring, .following, .candidate, .master, .draining, .failed, .stopped,
    ]

    /// A tracker in a phase, with a bus; one that follows is installed, a master has opened its doors.
    private static func office(_ phase: Office.Phase) -> Office {
        var office = Office()
        office.busConnected()
        if phase == .restoring { return office }
        office.begin()
        office.follow(master, epoch, since: .at(100))
        office.welcomed(at: 9, attempt: 0)
        switch phase {
        case .restoring, .following: break
        case .candidate: office.stand()
        case .master:
            office.stand()
            office.lead()
            office.openDoors()
        case .draining: office.drain()
        case .failed: office.fail()
        case .stopped: office.stop()
        }
        return office
    }

    private static let standing = Office.ServiceConditions(
        applied: 10, promised: epoch, holdsState: true, isSuspecting: false)

    // MARK: - May it speak?

    @Test func `a master that serves and a slave that hears it may speak, and nobody else`() {
        for phase in Self.phases {
            let office = Self.office(phase)
            #expect(office.phase == phase)
            #expect(office.maySpeak(Self.standing) == (phase == .following || phase == .master), "\(phase)")
        }
    }

    @Test func `only who hears and is heard takes part`() {
        let taking = Self.phases.filter { Self.office($0).takesPart }
        #expect(taking == [.following, .candidate, .master])
    }

    @Test(
        arguments: [
            (9, epoch, true, false, false),
            (10, epoch, true, false, true),
            (11, epoch, true, false, true),
            (10, Epoch(4, by: 2), true, false, false),
            (10, Epoch(5, by: 3), true, false, false),
            (10, epoch, false, false, false),
            (10, epoch, true, true, false),
        ] as [(UInt64, Epoch, Bool, Bool, Bool)])
    func `a slave speaks that has caught up, in the epoch that it has promised, whole, and without suspicion`(
        _ applied: UInt64, _ promised: Epoch, _ holdsState: Bool, _ isSuspecting: Bool, _ speaks: Bool
    ) {
        var office = Self.office(.following)
        office.serve(from: 10)
        let standing = Office.ServiceConditions(
            applied: applied, promised: promised, holdsState: holdsState, isSuspecting: isSuspecting)
        #expect(office.maySpeak(standing) == speaks)
    }

    @Test func `a slave without a bus, a master or its welcome is silent`() {
        var office = Self.office(.following)
        office.dismissed(now: .at(200))
        #expect(!office.maySpeak(Self.standing))
        office.welcomed(at: 9, attempt: 0)
        #expect(office.maySpeak(Self.standing))
        office.unfollow()
        #expect(!office.maySpeak(Self.standing))
        office.follow(Self.master, Self.epoch, since: .at(300))
        #expect(!office.maySpeak(Self.standing), "it has not been welcomed yet")
        office.welcomed(at: 9, attempt: 0)
        office.busLost()
        #expect(!office.maySpeak(Self.standing))
        office.follow(Self.master, Self.epoch, since: .at(400))
        office.welcomed(at: 9, attempt: 0)
        #expect(!office.maySpeak(Self.standing), "whoever it believes to follow")
        office.busConnected()
        #expect(office.maySpeak(Self.standing))
    }

    @Test func `a master speaks when its doors are open, and of nothing else is it asked`() {
        var office = Self.office(.candidate)
        office.lead()
        #expect(!office.isServing)
        #expect(!office.maySpeak(Self.standing))
        office.openDoors()
        #expect(office.isServing)
        office.serve(from: 100)
        let standing = Office.ServiceConditions(applied: 0, promised: .zero, holdsState: false, isSuspecting: true)
        #expect(office.maySpeak(standing))
    }

    @Test func `what a slave serves from is what it was told last`() {
        var office = Self.office(.following)
        office.serve(from: 11)
        #expect(office.servesFrom == 11)
        #expect(!office.maySpeak(Self.standing))
        office.serve(from: 9)
        #expect(office.maySpeak(Self.standing))
    }

    // MARK: - Phases

    @Test func `at first it reads its record, and has neither bus nor master`() {
        let office = Office()
        #expect(office.phase == .restoring)
        #expect(!office.isServing)
        #expect(office.servesFrom == 0)
        #expect(office.following == nil)
        #expect(!office.isBusUp)
    }

    @Test func `when it has read its record, it looks for a master`() {
        var office = Office()
        office.begin()
        #expect(office.phase == .following)
    }

    @Test func `who stands follows nobody, and who gives up looks for a master`() {
        var office = Self.office(.following)
        office.stand()
        #expect(office.phase == .candidate)
        #expect(office.following == nil)
        office.giveUp()
        #expect(office.phase == .following)
        #expect(office.following == nil)
    }

    @Test func `who is elected is master, with its doors closed`() {
        var office = Self.office(.candidate)
        office.lead()
        #expect(office.phase == .master)
        #expect(office.following == nil)
        #expect(!office.isServing)
    }

    @Test func `a master that steps down has closed its doors, and answers nobody before it is told from where`() {
        var office = Self.office(.master)
        office.serve(from: 3)
        office.depose()
        #expect(office.phase == .following)
        #expect(!office.isServing)
        #expect(office.following == nil)
        #expect(office.servesFrom == .max)
        #expect(office.isBusUp)
        office.stand()
        office.lead()
        #expect(!office.maySpeak(Self.standing), "the next office opens its own doors")
    }

    @Test(arguments: [.following, .candidate, .master] as [Office.Phase])
    func `who leaves follows nobody`(_ phase: Office.Phase) {
        var office = Self.office(phase)
        office.drain()
        #expect(office.phase == .draining)
        #expect(office.following == nil)
        #expect(office.isBusUp)
        office.stop()
        #expect(office.phase == .stopped)
    }

    @Test func `who has lost its disk has failed`() {
        for phase in Self.phases {
            var office = Self.office(phase)
            office.fail()
            #expect(office.phase == .failed)
            #expect(!office.maySpeak(Self.standing) && !office.takesPart)
        }
    }

    // MARK: - The bus

    @Test func `without a bus nobody is followed`() {
        var office = Self.office(.following)
        #expect(office.isBusUp)
        office.busLost()
        #expect(!office.isBusUp)
        #expect(office.following == nil)
        #expect(office.phase == .following)
        office.busConnected()
        #expect(office.isBusUp)
        #expect(office.following == nil, "its master has to be heard again")
    }

    // MARK: - What would be our own mistake

    @Test func `a node starts once`() async {
        await #expect(processExitsWith: .failure) {
            var office = Office()
            office.begin()
            office.begin()
        }
    }

    @Test func `only a master serves, and only a master steps down`() async {
        await #expect(processExitsWith: .failure) {
            var office = Office()
            office.begin()
            office.openDoors()
        }
        await #expect(processExitsWith: .failure) {
            var office = Office()
            office.begin()
            office.depose()
        }
    }
}

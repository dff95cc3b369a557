// An announcer that follows a download from its start to its end.

import PeerLogic
import Primitives
import Testing
import Wire

@Suite("Announcer: downloads")
struct AnnouncerDownloadTests {
    typealias Rig = AnnouncerTests.Rig

    /// A download whose start has been announced, at second 2, with an interval of 600 s.
    private func running() -> Rig {
        var rig = Rig()
        rig.at(0, .downloadStarted(AnnouncerTests.subject, AnnouncerTests.half))
        rig.connect(1)
        #expect(rig.sent == ["announce started"])
        rig.at(2, .datagramReceived(AnnouncerTests.announceReply(rig.transaction, interval: 600)))
        return rig
    }

    private func answer(_ rig: inout Rig, _ second: Int64, interval: UInt32 = 600) {
        rig.at(second, .datagramReceived(AnnouncerTests.announceReply(rig.transaction, interval: interval)))
    }

    @Test
    func `it is announced at the pace that the tracker asks for`() {
        var rig = running()
        for round: Int64 in 1...3 {
            let due = 2 + round * 600
            #expect(rig.deadline == due)
            rig.at(due, .deadlineReached)
            #expect(rig.sent == ["connect"])
            rig.connect(due)
            #expect(rig.sent == ["announce none"])
            answer(&rig, due)
        }
        #expect(!rig.announcer.isWaiting)
        #expect(!rig.announcer.isIdle)
    }

    @Test(arguments: [(0, 60), (59, 60), (61, 61), (86_400, 86_400), (UInt32.max, 86_400)] as [(UInt32, Int64)])
    func `intervals beyond reason are not believed`(_ told: UInt32, _ waits: Int64) {
        var rig = Rig()
        rig.at(0, .downloadStarted(AnnouncerTests.subject, AnnouncerTests.half))
        rig.connect(0)
        answer(&rig, 0, interval: told)
        #expect(rig.deadline == waits)
    }

    @Test
    func `numbers are told with the next announce`() {
        var rig = running()
        rig.at(3, .downloadProgressed(Announcer.Progress(downloaded: 900, left: 100, uploaded: 5)))
        #expect(rig.effects == Announcer.Effects())
        rig.at(40, .updateWanted)
        #expect(rig.sent == ["announce none"])
        #expect(rig.sentAnnounce?.downloaded == 900)
        #expect(rig.sentAnnounce?.left == 100)
        #expect(rig.sentAnnounce?.uploaded == 5)
    }

    @Test
    func `completion is told at once, and once`() {
        var rig = running()
        rig.at(30, .downloadCompleted(AnnouncerTests.whole))
        #expect(rig.sent == ["announce completed"])
        #expect(rig.sentAnnounce?.left == 0)
        answer(&rig, 31)
        #expect(rig.deadline == 631)
        rig.at(631, .deadlineReached)
        rig.connect(631)
        #expect(rig.sent == ["announce none"])
    }

    @Test
    func `completion waits for an answer to the start`() {
        var rig = Rig()
        rig.at(0, .downloadStarted(AnnouncerTests.subject, AnnouncerTests.half))
        rig.connect(1)
        rig.at(2, .downloadCompleted(AnnouncerTests.whole))
        #expect(rig.sent == [])
        rig.at(16, .deadlineReached)
        #expect(rig.sent == ["announce started"])
        answer(&rig, 17)
        #expect(rig.sent == ["announce completed"])
        answer(&rig, 18)
        #expect(rig.deadline == 618)
    }

    @Test
    func `completion takes the place of a regular announce`() {
        var rig = running()
        rig.at(40, .updateWanted)
        let old = rig.transaction
        rig.at(41, .downloadCompleted(AnnouncerTests.whole))
        #expect(rig.sent == ["announce completed"])
        #expect(rig.transaction != old)
    }

    @Test
    func `stopping is the end, whatever was on its way`() {
        var rig = running()
        rig.at(30, .downloadCompleted(AnnouncerTests.whole))
        rig.at(31, .downloadStopped(AnnouncerTests.whole))
        #expect(rig.sent == ["announce stopped"])
        rig.at(32, .downloadCompleted(AnnouncerTests.whole))
        #expect(rig.sent == [])
        rig.at(46, .deadlineReached)
        #expect(rig.sent == ["announce stopped"])
        answer(&rig, 47)
        #expect(rig.announcer.isIdle)
        #expect(rig.deadline == nil)
        rig.at(50, .downloadStopped(AnnouncerTests.whole))
        rig.at(51, .updateWanted)
        #expect(rig.effects == Announcer.Effects())
    }

    @Test
    func `a start that was not heard is told again`() {
        var rig = Rig()
        rig.at(0, .downloadStarted(AnnouncerTests.subject, AnnouncerTests.half))
        while rig.effects.outcomes.isEmpty, let due = rig.deadline { rig.at(due, .deadlineReached) }
        #expect(rig.effects.outcomes == [.timedOut])
        #expect(rig.seconds == 7665)
        // It goes on trying, at the interval that holds for want of an answer.
        #expect(rig.deadline == 9465)
        rig.at(9465, .deadlineReached)
        rig.connect(9465)
        #expect(rig.sent == ["announce started"])
    }

    @Test
    func `refusals are met with growing patience, and the event is kept`() {
        var rig = Rig()
        rig.at(0, .downloadStarted(AnnouncerTests.subject, AnnouncerTests.half))
        rig.connect(0)
        var second: Int64 = 0
        for wait: Int64 in [15, 30, 60, 120] {
            rig.at(second, .datagramReceived(AnnouncerTests.errorReply(rig.transaction, "tracker is full")))
            #expect(rig.effects.outcomes.count == 1)
            #expect(rig.deadline == second + wait)
            second += wait
            rig.at(second, .deadlineReached)
            if rig.sent == ["connect"] { rig.connect(second) }
            #expect(rig.sent == ["announce started"])
        }
        answer(&rig, second)
        rig.at(second + 10, .updateWanted)
        #expect(rig.sent == ["announce none"])
    }

    @Test
    func `whoever is asked to update asks at once`() {
        var rig = running()
        rig.at(100, .updateWanted)
        #expect(rig.sent == ["connect"])
        rig.at(115, .deadlineReached)
        rig.at(145, .deadlineReached)
        #expect(rig.deadline == 205)
        rig.at(150, .updateWanted)
        #expect(rig.sent == ["connect"])
        #expect(rig.deadline == 165)
    }

    @Test
    func `the announce URL goes along`() throws {
        var subject = AnnouncerTests.subject
        subject.urlData = Array("/abc/announce?x=1".utf8)
        var rig = Rig()
        rig.at(0, .downloadStarted(subject, AnnouncerTests.half))
        rig.connect(0)
        let bytes = try #require(rig.effects.sends.first)
        #expect(AnnounceOptions.urlData(bytes.span.bytes) == subject.urlData)
    }
}

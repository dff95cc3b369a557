import PeerLogic
import Primitives
import Testing
import Wire

/// What trackers are told when a peer leaves.
@Suite("Farewells to trackers")
struct FarewellTests {
    /// What a tracker was told, in order.
    private func told(_ stage: Stage, _ tracker: Int) -> [AnnounceEvent] {
        stage.actions.compactMap { action in
            if case .announceOverHTTP(tracker, let request) = action { request.event } else { nil }
        }
    }

    private func answer(_ stage: inout Stage, _ tracker: Int) {
        stage.step(
            .trackerAnswered(tracker: tracker, .announced(interval: 1_800, seeders: 0, leechers: 0, peers: [])))
    }

    /// A session that one tracker of its first tier knows; which one, by the session's draw, and all others.
    private func known(_ stage: inout Stage, count: Int) throws -> (knowing: Int, others: [Int]) {
        let knowing = try #require((0..<count).first { told(stage, $0) == [.started] })
        answer(&stage, knowing)
        return (knowing, (0..<count).filter { $0 != knowing })
    }

    @Test func `who knows us is told, and nobody else`() throws {
        var stage = Stage(trackers: [[.http, .http], [.http]])
        let (knowing, others) = try known(&stage, count: 3)
        stage.step(.stopped)
        #expect(told(stage, knowing) == [.started, .stopped])
        answer(&stage, knowing)
        #expect(stage.session.isStopped)
        for other in others { #expect(told(stage, other).isEmpty) }
    }

    @Test func `where it is silent others are told in its place, those of its tier first, and one answer is enough`()
        throws
    {
        var stage = Stage(trackers: [[.http, .http, .http], [.http, .http]])
        let (_, others) = try known(&stage, count: 5)
        stage.step(.stopped)
        stage.pass(.milliseconds(1_400))
        for other in others { #expect(told(stage, other).isEmpty) }
        stage.pass(.milliseconds(200))
        #expect(others.filter { told(stage, $0) == [.stopped] }.count == 3, "three, and not all")
        for other in others where other < 3 { #expect(told(stage, other) == [.stopped], "of the same tier") }
        #expect(!stage.session.isStopped)
        answer(&stage, others[0])
        #expect(stage.session.isStopped)
    }

    @Test func `where all are silent it ends after five seconds`() throws {
        var stage = Stage(trackers: [[.http, .http]])
        _ = try known(&stage, count: 2)
        stage.step(.stopped)
        stage.pass(.milliseconds(4_900))
        #expect(!stage.session.isStopped)
        stage.pass(.milliseconds(200))
        #expect(stage.session.isStopped)
    }

    @Test func `who has completed, and has no answer to that, tells it with the farewell`() throws {
        var have = Bitfield(count: 10, isFull: true)
        have.remove(9)
        var stage = Stage(have: have, trackers: [[.http, .http, .http]], webSeedCount: 1)
        let (knowing, others) = try known(&stage, count: 3)
        stage.step(.webPieceReceived(seed: 0, piece: 9))
        stage.step(.pieceVerified(piece: 9, digests: []))
        stage.step(.pieceStored(piece: 9))
        #expect(told(stage, knowing) == [.started, .completed])
        stage.step(.stopped)
        stage.pass(.milliseconds(1_600))
        let heir = try #require(others.first { told(stage, $0) == [.completed] })
        let other = try #require(others.first { told(stage, $0) == [.stopped] })
        answer(&stage, other)
        #expect(!stage.session.isStopped, "the heir is not told yet that it ends")
        answer(&stage, heir)
        #expect(told(stage, heir) == [.completed, .stopped])
        #expect(!stage.session.isStopped)
        answer(&stage, heir)
        #expect(stage.session.isStopped)
    }

    /// It would take us for one who stays, until we are forgotten.
    @Test func `who answers late that we have completed is told that we have stopped`() {
        var have = Bitfield(count: 10, isFull: true)
        have.remove(9)
        var stage = Stage(have: have, trackers: [[.http]], webSeedCount: 1)
        answer(&stage, 0)
        stage.step(.webPieceReceived(seed: 0, piece: 9))
        stage.step(.pieceVerified(piece: 9, digests: []))
        stage.step(.pieceStored(piece: 9))
        stage.step(.stopped)
        stage.pass(.seconds(2))
        #expect(told(stage, 0) == [.started, .completed, .completed])
        answer(&stage, 0)
        #expect(told(stage, 0) == [.started, .completed, .completed, .stopped])
        #expect(!stage.session.isStopped)
        answer(&stage, 0)
        #expect(stage.session.isStopped)
    }

    @Test func `what was lost and had again is no second download`() {
        var have = Bitfield(count: 10, isFull: true)
        have.remove(9)
        var stage = Stage(have: have, trackers: [[.http]], webSeedCount: 1)
        answer(&stage, 0)
        for _ in 0..<2 {
            stage.step(.webPieceReceived(seed: 0, piece: 9))
            stage.step(.pieceVerified(piece: 9, digests: []))
            stage.step(.pieceStored(piece: 9))
            answer(&stage, 0)
            stage.step(.pieceLost(piece: 9))
        }
        #expect(told(stage, 0) == [.started, .completed])
    }

    @Test(arguments: [(1, 60), (2, 120), (3, 240)])
    func `who has no connection announces after a minute, then after twice as long each time`(
        _ count: Int, _ seconds: Int64
    ) {
        var stage = Stage(trackers: [[.http]])
        for number in 1..<count {
            answer(&stage, 0)
            stage.pass(.seconds(60 << Int64(number - 1)) + .seconds(1))
        }
        answer(&stage, 0)
        #expect(told(stage, 0).count == count)
        stage.pass(.seconds(seconds) - .seconds(1))
        #expect(told(stage, 0).count == count)
        stage.pass(.seconds(2))
        #expect(told(stage, 0).count == count + 1)
    }
}

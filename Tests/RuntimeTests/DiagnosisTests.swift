import Bus
import Datagrams
import Primitives
import Server
import Testing
import TrackerLogic
import Web
import Wire

/// Why is nobody answered? Each case in words, and the cause first.
@Suite("Diagnosis")
struct DiagnosisTests {
    /// Tracker 1 of three.
    struct Case {
        var node = MetricsNodeTests.status(role: .slave)
        var cluster = ClusterStatus(
            life: Life(id: 1, incarnation: 1), mode: .quorum, epoch: .zero, master: nil, isServing: false,
            isFenced: false, voters: [1, 2, 3], position: .start, digest: 0, trackers: [])
        var bus = BusStatus(endpoint: "local")
        var tally = BusTally()

        init(up: [UInt32] = [1, 2, 3]) {
            bus.isConnected = true
            cluster.trackers = [1, 2, 3].map { id in
                TrackerView(
                    life: Life(id: id, incarnation: UInt64(id)), role: up.contains(id) ? .slave : nil, epoch: .zero,
                    silence: .zero, position: .start, agreement: .same, hasFullState: true, hasVote: true)
            }
        }

        /// Another tracker has said that its disk is full.
        mutating func fill(_ id: UInt32) {
            let place = Int(id) - 1
            var report = TrackerReport()
            report.disk = .full
            cluster.trackers[place].report = HeardReport(
                life: cluster.trackers[place].life, report: report, heardAt: Instant(nanoseconds: 0),
                clockDifference: 0)
        }

        var found: [Finding] { Diagnosis.findings(node, cluster, bus: bus, tally: tally) }
        var reasons: [String] { found.filter(\.isSilence).map(\.text) }
        var warnings: [String] { found.filter { !$0.isSilence }.map(\.text) }
    }

    @Test
    func `while all is well there is nothing to say`() {
        var all = Case()
        (all.cluster.isServing, all.cluster.master) = (true, 3)
        #expect(all.found == [])
    }

    @Test
    func `the first start names the member that is awaited`() {
        var first = Case(up: [1, 2])
        (first.cluster.isForming, first.cluster.neverHeard) = (true, [3])
        #expect(
            first.reasons == ["waits for tracker 3, which has never been heard: all members have to be up once"])
        first.cluster.neverHeard = [2, 3]
        #expect(
            first.reasons == [
                "waits for trackers 2 and 3, which have never been heard: all members have to be up once"
            ])
        first.cluster.neverHeard = []
        #expect(first.reasons == ["waits for tracker 3: all members have to be up once, at one time"])
    }

    @Test
    func `another key is said, with how often and from where, before what follows from it`() {
        var foreign = Case(up: [1])
        foreign.bus.refusals = [BusRefusal(sender: "10.0.0.7", reason: .otherKey, count: 9, silentSeconds: 1)]
        #expect(
            foreign.reasons == [
                "another key (9 messages refused from 10.0.0.7)",
                "no majority (1 of 3): trackers 2 and 3 are not heard",
            ])
        // Clients are not told addresses.
        #expect(foreign.found.first?.words == "another key")
        // It is over.
        foreign.bus.refusals[0].silentSeconds = 100
        #expect(foreign.reasons == ["no majority (1 of 3): trackers 2 and 3 are not heard"])
    }

    @Test
    func `a lost bus says all; what is not heard over it is nobody's fault`() {
        var lost = Case(up: [1])
        (lost.bus.isConnected, lost.bus.lastProblem) = (false, "it closed the connection")
        #expect(lost.reasons == ["the bus is lost (it closed the connection)"])
    }

    @Test
    func `no majority, elections, and fetching the state`() {
        #expect(Case(up: [1]).reasons == ["no majority (1 of 3): trackers 2 and 3 are not heard"])
        #expect(Case(up: [1, 2]).reasons == ["there is no master: an election is under way"])
        var fetching = Case()
        (fetching.cluster.isFetching, fetching.cluster.master) = (true, 3)
        #expect(fetching.reasons == ["fetches the whole state from tracker 3"])
        // A master is heard, which waits until what the newcomer said in an earlier life counts no more.
        var newcomer = Case()
        newcomer.cluster.trackers[2].role = .master
        #expect(newcomer.reasons == ["waits until tracker 3, the master, lets it in"])
    }

    @Test
    func `other members and other settings name the tracker`() async throws {
        var refused = Case(up: [1])
        refused.cluster.refusal = .otherSettings
        #expect(
            refused.reasons == [
                "this tracker may not join: it was told other settings than the cluster; give all trackers the same"
            ])
    }

    @Test
    func `a full disk alone is not why nobody is answered; too many of them are`() {
        var full = Case()
        (full.cluster.isServing, full.cluster.master, full.node.storageFailure) = (true, 3, .full)
        #expect(full.reasons == [])
        #expect(
            full.warnings == [
                "disk full at this tracker: its vote is missing; the others store what is announced"
            ])
        full.fill(2)
        #expect(
            full.reasons == [
                "disk full at this tracker: announces are refused: too few trackers can store them",
                "the disk fails at tracker 2: announces are refused",
            ])
        var alone = Case()
        (alone.cluster.mode, alone.cluster.isServing, alone.node.storageFailure) = (nil, true, .full)
        #expect(alone.reasons == ["disk full: announces are refused until they can be stored"])
        alone.node.role = .failed
        #expect(alone.reasons == ["the disk failed, and nobody can say what is on it"])
    }

    @Test
    func `one that is down and one whose disk is full are two that cannot store`() {
        let words = "tracker 3 is not heard: too few trackers can store what is announced"
        var full = Case(up: [1, 2])
        (full.cluster.isServing, full.cluster.master) = (true, 1)
        // One alone is not enough.
        #expect(full.found == [])
        full.fill(2)
        #expect(full.reasons == ["the disk fails at tracker 2, and \(words)"])
        #expect(full.warnings == [])
        // As the other one says it.
        var own = Case(up: [1, 2])
        (own.cluster.isServing, own.cluster.master, own.node.storageFailure) = (true, 2, .full)
        #expect(own.reasons == ["disk full at this tracker, and \(words)"])
        #expect(own.warnings == [])
        // In survivor mode those that are down have no vote.
        own.fill(2)
        (own.cluster.mode, own.cluster.voters) = (.survivor, [1, 2])
        #expect(
            own.reasons == [
                "disk full at this tracker: announces are refused: too few trackers can store them",
                "the disk fails at tracker 2: announces are refused",
            ])
        // Of five, three are left that can.
        var five = Case(up: [1, 2])
        (five.cluster.isServing, five.cluster.master, five.cluster.voters) = (true, 1, [1, 2, 3, 4, 5])
        for id in [4, 5] as [UInt32] {
            five.cluster.trackers.append(
                TrackerView(
                    life: Life(id: id, incarnation: 1), role: .slave, epoch: .zero, silence: .zero, position: .start,
                    agreement: .same, hasFullState: true, hasVote: true))
        }
        five.fill(2)
        #expect(five.reasons == [] && five.warnings == ["the disk fails at tracker 2: a vote is missing"])
        // A disk of one that has no vote takes none.
        five.cluster.voters = [1, 2, 3]
        five.cluster.trackers[1].report = nil
        five.fill(4)
        #expect(five.reasons == [] && five.warnings == ["the disk fails at tracker 4: a vote is missing"])
    }

    @Test
    func `where too few can store a promise, that comes before the election that it keeps from its end`() {
        let words = "no election can end, for too few trackers can store their promise"
        let election = "there is no master: an election is under way"
        var full = Case(up: [1, 2])
        full.node.storageFailure = .full
        full.fill(2)
        let found = [
            "disk full at this tracker, and tracker 3 is not heard: \(words)",
            "the disk fails at tracker 2, and tracker 3 is not heard: \(words)",
        ]
        #expect(full.reasons == found + [election])
        // Another cluster on the same network is no cause of that.
        full.bus.refusals = [BusRefusal(sender: "10.0.0.7", reason: .otherCluster, count: 1, silentSeconds: 1)]
        #expect(full.reasons == found + [election] && full.warnings.count == 1)
        // All are there.
        var all = Case()
        (all.node.storageFailure, all.node.role) = (.full, .candidate)
        all.fill(2)
        #expect(all.reasons.first == "disk full at this tracker: \(words)")
        // Where enough can store, the election ends.
        var one = Case(up: [1, 2, 3])
        one.fill(2)
        #expect(one.reasons == [election] && one.warnings == ["the disk fails at tracker 2: a vote is missing"])
    }

    @Test
    func `where too few are heard, or not all at the first start, room on a disk would not help`() {
        var lone = Case(up: [1])
        lone.node.storageFailure = .full
        #expect(lone.reasons.first == "no majority (1 of 3): trackers 2 and 3 are not heard")
        #expect(lone.reasons.count == 2 && lone.warnings == [])
        var first = Case(up: [1, 2])
        (first.cluster.isForming, first.node.storageFailure) = (true, .full)
        #expect(first.reasons.first == "waits for tracker 3: all members have to be up once, at one time")
        first.cluster.trackers[2].role = .newcomer
        first.fill(2)
        #expect(first.reasons.first?.hasPrefix("disk full at this tracker: no election can end") == true)
        // Who is cut off does not know whether the others are there.
        var lost = Case(up: [1])
        (lost.bus.isConnected, lost.node.storageFailure) = (false, .full)
        #expect(lost.reasons.first == "the bus is lost")
        #expect(!lost.found.contains { $0.text.contains("not heard") })
    }

    @Test
    func `another cluster's name is why, where nobody else is heard, and else is only told`() {
        let refusal = BusRefusal(sender: "10.0.0.7", reason: .otherCluster, count: 1, silentSeconds: 1)
        var stray = Case(up: [1])
        stray.bus.refusals = [refusal]
        #expect(
            stray.reasons == [
                "another cluster name (1 message refused from 10.0.0.7)",
                "no majority (1 of 3): trackers 2 and 3 are not heard",
            ])
        // Two clusters may share a network, and each of them be well.
        var well = Case()
        (well.cluster.isServing, well.cluster.master, well.bus.refusals) = (true, 3, [refusal])
        #expect(well.reasons == [])
        #expect(well.warnings == ["another cluster name (1 message refused from 10.0.0.7)"])
        // A broker tells no addresses.
        well.bus.refusals[0].sender = "bus session 3f"
        #expect(well.warnings == ["another cluster name (1 message refused from bus session 3f)"])
    }

    @Test
    func `at the start it is said what is awaited`() {
        var cluster = Case().cluster
        #expect(Diagnosis.awaited(cluster) == "the bus, and for a master, which takes 2 of trackers 1, 2 and 3")
        cluster.isForming = true
        let first = "the bus, and for a master that lets it in; a new cluster begins when"
        #expect(Diagnosis.awaited(cluster) == "\(first) trackers 2 and 3 are there, too")
        cluster.voters = [1, 2]
        #expect(Diagnosis.awaited(cluster) == "\(first) tracker 2 is there, too")
        cluster.voters = [1]
        #expect(Diagnosis.awaited(cluster) == "the bus")
        cluster.mode = .survivor
        #expect(Diagnosis.awaited(cluster) == "the bus, and for the master if there is one")
    }

    @Test
    func `what the kernel drops is told, and is no cause of silence`() {
        var all = Case()
        all.cluster.isServing = true
        let found = Diagnosis.findings(all.node, all.cluster, bus: all.bus, tally: all.tally, lostDatagrams: 3)
        #expect(
            found.map(\.text) == [
                "the kernel dropped 3 datagrams of clients in the last five minutes: the receive buffer was full"
            ])
        #expect(found.allSatisfy { !$0.isSilence })
    }

    @Test
    func `the log says it once it lasts, and once`() {
        var log = SilenceLog()
        let one = Finding(.noMajority, isSilence: true, "no majority")
        var other = Finding(.otherKey, isSilence: true, "another key", detail: "1 message")
        #expect(log.look([]) == nil)
        #expect(log.look([one]) == nil)
        #expect(log.look([one]) == .silent(one))
        #expect(log.look([one]) == nil)
        #expect(log.look([other]) == nil)
        other.detail = "2 messages"
        #expect(log.look([other]) == .silent(other))
        #expect(log.look([other]) == nil)
        #expect(log.look([]) == .over)
        #expect(log.look([]) == nil)
        // What is over before the next look is not worth a line.
        #expect(log.look([one]) == nil)
        #expect(log.look([]) == nil)
    }
}

/// What the loop measures.
@Suite("Loop tally")
struct LoopTallyTests {
    private func at(_ micros: Int64) -> Instant { Instant(nanoseconds: 1_000_000_000 + micros * 1000) }

    @Test
    func `the way over the bus and back is what the echo does not account for`() {
        var tally = LoopTally()
        var report = TrackerReport()
        let sent = at(0)
        report.echoes = [
            .init(incarnation: 1, stamp: UInt64(sent.nanoseconds), held: 900),
            // Another's, and nonsense.
            .init(incarnation: 2, stamp: 5, held: 0), .init(incarnation: 1, stamp: .max, held: 0),
            .init(incarnation: 1, stamp: UInt64(sent.nanoseconds), held: 3_600_000_000),
        ]
        tally.heard(report, of: Life(id: 2, incarnation: 9), own: 1, at: at(1_400))
        #expect(tally.figures.roundTrips.counts.reduce(0, +) == 1)
        #expect(tally.figures.roundTrips.sum == 500)
        var own = TrackerReport()
        tally.stamp(
            &own, ClockReading(monotonic: at(2_000), wall: WallTime(milliseconds: 1_800_000_000_000)))
        #expect(own.echoes == [.init(incarnation: 9, stamp: 0, held: 600)])
        #expect(own.wallTime == 1_800_000_000_000)
    }

    @Test
    func `answers are timed from the first time that a client asked`() {
        var tally = LoopTally()
        let client = SocketAddress(ipv4: 0x7F00_0001, port: 5)
        func request(_ action: UInt8, _ transaction: UInt8) -> DatagramBatch {
            var batch = DatagramBatch()
            batch.append([UInt8](repeating: 0, count: 8) + [0, 0, 0, action, 0, 0, 0, transaction], remote: client)
            return batch
        }
        func reply(_ transaction: UInt8) -> DatagramBatch {
            var batch = DatagramBatch()
            batch.append([0, 0, 0, 1, 0, 0, 0, transaction], remote: client)
            return batch
        }
        tally.heard(request(1, 7), at: at(0))
        tally.heard(request(1, 7), at: at(100))
        tally.heard(request(2, 8), at: at(200))
        tally.heard(request(0, 9), at: at(200))
        for transaction in [7, 8, 9, 7] as [UInt8] { tally.replied(reply(transaction), at: at(1_000)) }
        #expect(tally.figures.announces.sum == 1_000 && tally.figures.scrapes.sum == 800)
        #expect(tally.figures.announces.counts.reduce(0, +) == 1)
    }

    @Test
    func `writes and commits are timed, whatever order they come in`() {
        var tally = LoopTally()
        func append(_ token: UInt64, _ index: UInt64) -> Persist {
            Persist(token: PersistToken(token), change: .append(.opaque(index, [])))
        }
        tally.submitted([append(1, 10), append(2, 11)], at: at(0))
        tally.submitted([append(3, 11)], at: at(100))
        tally.written(PersistToken(1), at: at(500))
        #expect(tally.figures.writes.counts.reduce(0, +) == 0)
        tally.written(PersistToken(2), at: at(500))
        tally.written(PersistToken(3), at: at(600))
        #expect(tally.figures.writes.sum == 1_000)
        tally.applied(through: 10, at: at(700))
        #expect(tally.figures.commits.sum == 700 && tally.awaitsCommit)
        // The second try of entry 11 counts.
        tally.applied(through: 11, at: at(800))
        #expect(tally.figures.commits.sum == 1_400 && !tally.awaitsCommit)
    }
}

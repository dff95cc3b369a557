import Bus
import Primitives
import TrackerLogic
import Web
import Wire

/// A cluster in which nothing happens, for tests of the API.
struct StillCluster: ClusterProvider {
    static let report: ClusterReport = {
        func view(_ id: UInt32, _ role: ClusterRole?, _ index: UInt64, silence: Duration) -> TrackerView {
            var view = TrackerView(
                life: Life(id: id, incarnation: UInt64(id) << 60), role: role, epoch: Epoch(round: 3, id: 2),
                silence: silence, position: Position(index: index, chain: 1), lag: index < 20 ? 20 - index : 0,
                agreement: index > 20 ? .ahead : .same, hasFullState: true, hasVote: true)
            view.report = HeardReport(
                life: view.life, report: own, heardAt: Instant(nanoseconds: 0), clockDifference: 250)
            view.reportAge = .milliseconds(500)
            return view
        }
        var status = ClusterStatus(
            life: Life(id: 1, incarnation: 1 << 60), mode: .quorum, epoch: Epoch(round: 3, id: 2), master: 2,
            isServing: true, isFenced: false, voters: [1, 2, 3], position: Position(index: 20, chain: 1), digest: 0xABC,
            trackers: [
                view(1, .slave, 20, silence: .zero), view(2, .master, 21, silence: .milliseconds(125)),
                view(3, nil, 15, silence: .seconds(70)),
            ])
        status.mismatched = [
            MismatchedTracker(
                life: Life(id: 4, incarnation: 4), settings: [.keepalive], heardAt: Instant(nanoseconds: 0))
        ]
        var bus = BusStatus(endpoint: "stomp://broker:61613")
        bus.broker = "broker:61613"
        (bus.isConnected, bus.sent, bus.received, bus.dropped) = (true, 201, 202, 203)
        (bus.rejected, bus.repaired, bus.reconnections, bus.lastProblem) = (204, 205, 206, "it was closed")
        var tally = BusTally()
        (tally.messagesIn, tally.messagesOut, tally.malformed, tally.dropped) = (211, 212, 213, 214)
        tally.otherVersion = 215
        var elections = ElectionTally()
        (elections.suspicions, elections.candidacies, elections.victories, elections.stepDowns) = (221, 222, 223, 224)
        (elections.transfers, elections.merges, elections.divergences) = (225, 226, 227)
        bus.refusals = [BusRefusal(sender: "10.0.0.7", reason: .otherKey, count: 9, silentSeconds: 0.5)]
        var report = ClusterReport(status: status, bus: bus, tally: tally, elections: elections)
        report.own = own
        report.name = "still"
        report.findings = [Finding(.otherKey, isSilence: false, "another key", detail: "9 messages from 10.0.0.7")]
        report.figures.lostByKernel = 236
        report.figures.commits.record(.microseconds(860))
        return report
    }()

    static let own: TrackerReport = {
        var own = TrackerReport()
        (own.version, own.host, own.clients, own.console) = (
            "1", "one.example", "udp://one.example:6969", "127.0.0.1:1"
        )
        (own.durability, own.disk, own.announceRate) = (.process, .full, 231)
        own.commits = .init(median: 860, p99: 2_500)
        own.roundTrips = .init(median: 250, p99: 1_000)
        (own.openFiles, own.maxFiles, own.receiveBuffer, own.wantedReceiveBuffer) = (232, 233, 234, 235)
        own.lostDatagrams = 236
        own.heard = [.init(id: 1, silence: 1, isUp: true), .init(id: 3, silence: .max, isUp: false)]
        return own
    }()

    func cluster() async -> ClusterReport? { Self.report }

    func carryOut(_ order: ClusterOrder) async -> OrderOutcome {
        switch order {
        case .addMember(let id): .members([1, 2, 3, id])
        case .removeMember(let id): .members([1, 2, 3].filter { $0 != id })
        case .replaceMember(let id, let other): .members([1, 2, 3].filter { $0 != id } + [other])
        case .handOver(to: 9): .refused("tracker 9 cannot take over: it is no voter, or not in sync")
        case .handOver: .handedOver
        case .elect: .steppedDown(2)
        case .stop: .stopping
        case .change: .changed(.done(at: 1))
        }
    }
}

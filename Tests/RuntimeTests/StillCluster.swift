import Primitives
import Runtime
import TrackerLogic
import Wire

/// A cluster in which nothing happens, for tests of the API.
struct StillCluster: ClusterProvider {
    static let report: ClusterReport = {
        func sight(_ id: UInt32, _ role: ClusterRole?, _ index: UInt64, silence: Duration) -> TrackerSight {
            TrackerSight(
                life: Life(id: id, incarnation: UInt64(id) << 60), role: role, epoch: Epoch(round: 3, id: 2),
                silence: silence, position: Position(index: index, chain: 1), agreement: index > 20 ? .ahead : .same,
                isWhole: true, hasVote: true)
        }
        let status = ClusterStatus(
            life: Life(id: 1, incarnation: 1 << 60), mode: .quorum, epoch: Epoch(round: 3, id: 2), master: 2,
            isServing: true, isFenced: false, voters: [1, 2, 3], position: Position(index: 20, chain: 1), digest: 0xABC,
            trackers: [
                sight(1, .slave, 20, silence: .zero), sight(2, .master, 21, silence: .milliseconds(125)),
                sight(3, nil, 15, silence: .seconds(70)),
            ])
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
        return ClusterReport(status: status, bus: bus, tally: tally, elections: elections)
    }()

    func cluster() async -> ClusterReport? { Self.report }

    func carryOut(_ order: ClusterOrder) async -> OrderOutcome {
        switch order {
        case .addMember(let id): .members([1, 2, 3, id])
        case .removeMember(let id): .members([1, 2, 3].filter { $0 != id })
        case .replaceMember(let id, let other): .members([1, 2, 3].filter { $0 != id } + [other])
        case .handOver(to: 9): .refused("tracker 9 cannot take over: it is no voter, or not in sync")
        case .handOver: .handedOver
        }
    }
}

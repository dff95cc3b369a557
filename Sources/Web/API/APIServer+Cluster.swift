// The API's pages on the cluster, and the orders that it takes.

import HTTPTypes
import TrackerLogic
import Wire

extension APIServer {
    private struct MembersOrder: Decodable {
        var add: Int64?
        var remove: Int64?
    }

    private struct HandoverOrder: Decodable {
        var to: Int64
    }

    private struct StopOrder: Decodable {
        var name: String
    }

    func clusterReport() async -> ClusterReport? {
        let outcome = await patience.wait { [cluster] in await cluster.cluster() }
        guard case .finished(let report) = outcome else { return nil }
        return report
    }

    private func knownCluster() async throws -> ClusterDocument {
        guard let report = await clusterReport() else {
            throw APIError(.serviceUnavailable, "the tracker's logic does not answer")
        }
        return ClusterDocument(report)
    }

    func clusterPage() async throws -> Response { try .json(try await knownCluster()) }

    func trackersPage() async throws -> Response {
        try .json(TrackersDocument(trackers: try await knownCluster().trackers))
    }

    func changeMembers(_ request: Request) async throws -> Response {
        let wanted = try request.json(MembersOrder.self)
        let order: ClusterOrder
        switch (try id("add", wanted.add), try id("remove", wanted.remove)) {
        case (let added?, nil): order = .addMember(added)
        case (nil, let removed?): order = .removeMember(removed)
        case (let added?, let removed?): order = .replaceMember(removed, by: added)
        case (nil, nil): throw APIError(.badRequest, "name a tracker by \"add\", by \"remove\", or one by each")
        }
        return try await carryOut(order)
    }

    func handOver(_ request: Request) async throws -> Response {
        let to = try request.json(HandoverOrder.self).to
        guard let to = try id("to", to) else { preconditionFailure("a number that is there stays there") }
        return try await carryOut(.handOver(to: to))
    }

    func forceElection() async throws -> Response { try await carryOut(.elect) }

    /// Wants the cluster's name, so that nobody stops one by a slip of the hand.
    func stopCluster(_ request: Request) async throws -> Response {
        let name = try request.json(StopOrder.self).name
        let own = try await knownCluster().name
        guard name == own else {
            throw APIError(
                .badRequest,
                "this cluster has another name than that: \"name\" has to be the one of \"/api/v1/cluster\"")
        }
        return try await carryOut(.stop)
    }

    /// - Throws: `APIError` (400) where it is 0, which is no tracker's number.
    func id(_ name: String, _ number: Int64?) throws(APIError) -> UInt32? {
        guard let number else { return nil }
        guard let id = UInt32(exactly: number), id > 0 else {
            throw APIError(.badRequest, "\(name) has to be the number of a tracker, from 1 to \(UInt32.max)")
        }
        return id
    }

    private func carryOut(_ order: ClusterOrder) async throws -> Response {
        // It has a patience of its own, longer than that of a look at the status.
        let outcome = await cluster.carryOut(order)
        switch (outcome, order) {
        case (.members(let members), _): return try .json(MembersDocument(members: members))
        case (.handedOver, .handOver(let id)), (.isMaster, .handOver(let id)):
            return try .json(
                HandoverDocument(master: id, wasMaster: outcome == .isMaster))
        case (.steppedDown(let id), _): return try .json(ElectionDocument(formerMaster: id))
        // This one may have stopped before it heard what came of it.
        case (.stopping, _), (.stopped, .stop): return try .json(StopDocument())
        case (.handedOver, _), (.isMaster, _): preconditionFailure("only a handover hands over")
        case (.changed, _): preconditionFailure("no change was asked for")
        case (.refused(let reason), _): throw APIError(.conflict, reason)
        case (.busy, _): throw APIError(.conflict, "another order is being carried out; try again when it is done")
        case (.late, _):
            throw APIError(.gatewayTimeout, "it has not come to pass so far; /api/v1/cluster shows how things are")
        case (.stopped, _): throw APIError(.serviceUnavailable, "the tracker has stopped")
        }
    }
}

// The API's pages on the cluster, and the orders that it takes: parameters stand in the query, for bodies are not read.

import HTTPTypes
import TrackerLogic
import Wire

extension APIServer {
    func clusterReport() async -> ClusterReport? {
        let outcome = await patience.wait { [cluster] in await cluster.cluster() }
        guard case .finished(let report) = outcome else { return nil }
        return report
    }

    func clusterPage() async throws -> Response {
        guard let report = await clusterReport() else {
            throw APIError(.serviceUnavailable, "the tracker's logic does not answer")
        }
        return try .json(ClusterDocument(report))
    }

    func changeMembers(_ request: Request) async throws -> Response {
        let order: ClusterOrder
        switch (try id("add", of: request), try id("remove", of: request)) {
        case (let added?, nil): order = .addMember(added)
        case (nil, let removed?): order = .removeMember(removed)
        case (let added?, let removed?): order = .replaceMember(removed, by: added)
        case (nil, nil): throw APIError(.badRequest, "name a tracker by ?add=ID, ?remove=ID or both")
        }
        return try await carryOut(order)
    }

    func handOver(_ request: Request) async throws -> Response {
        guard let id = try id("to", of: request) else {
            throw APIError(.badRequest, "name the tracker that is to be master by ?to=ID")
        }
        return try await carryOut(.handOver(to: id))
    }

    func stopCluster() async throws -> Response { try await carryOut(.stop) }

    private func id(_ name: String, of request: Request) throws -> UInt32? {
        guard let text = request.parameter(name) else { return nil }
        guard let id = UInt32(text), id > 0 else {
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
        // This one may have stopped before it heard what came of it.
        case (.stopping, _), (.stopped, .stop): return try .json(StopDocument())
        case (.handedOver, _), (.isMaster, _): preconditionFailure("only a handover hands over")
        case (.changed, _): preconditionFailure("no change was asked for")
        case (.refused(let reason), _): throw APIError(.conflict, reason)
        case (.busy, _): throw APIError(.conflict, "another order is being carried out; try again when it is done")
        case (.late, _):
            throw APIError(.gatewayTimeout, "it has not come to pass so far; /api/cluster shows how things are")
        case (.stopped, _): throw APIError(.serviceUnavailable, "the tracker has stopped")
        }
    }
}

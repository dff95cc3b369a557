// Orders to a cluster.

import Foundation

extension ConsoleClient {
    /// Changes who votes.
    ///
    /// - Parameters:
    ///   - added: the id of a tracker that is to vote; nil for none.
    ///   - removed: the id of a voter that is to lose its vote; nil for none.
    /// - Returns: the ids that vote now.
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    public func changeMembers(adding added: UInt32?, removing removed: UInt32?) async throws(TrackerClientError)
        -> [UInt32]
    {
        struct Members: Decodable { var members: [UInt32] }
        struct Order: Encodable {
            var add: UInt32?
            var remove: UInt32?
        }
        let body = try await order("members", Order(add: added, remove: removed))
        let answer: Members = try decode(body, "the members of a cluster")
        return answer.members
    }

    /// Makes another tracker master.
    ///
    /// - Parameter id: the tracker that is to be master.
    /// - Returns: whether it was master already.
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    @discardableResult
    public func handOver(to id: UInt32) async throws(TrackerClientError) -> Bool {
        struct Outcome: Decodable { var wasMaster: Bool? }
        struct Order: Encodable { var to: UInt32 }
        let body = try await order("handover", Order(to: id))
        let outcome: Outcome = try decode(body, "what came of a handover")
        return outcome.wasMaster == true
    }

    /// Stops all trackers of the cluster.
    ///
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    public func stopCluster() async throws(TrackerClientError) {
        struct Order: Encodable { var name: String }
        // The API wants the name, so that nobody stops a cluster by a slip of the hand; this is no slip.
        _ = try await order("stop", Order(name: try await cluster().name ?? ""))
    }

    /// Has a cluster elect a master anew.
    ///
    /// - Returns: the tracker that was master, and may be elected again.
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    public func elect() async throws(TrackerClientError) -> UInt32 {
        struct Outcome: Decodable { var formerMaster: UInt32 }
        struct Order: Encodable {}
        let outcome: Outcome = try decode(try await order("election", Order()), "what came of an election")
        return outcome.formerMaster
    }

    private func order(_ name: String, _ order: some Encodable) async throws(TrackerClientError) -> [UInt8] {
        guard let body = try? JSONEncoder().encode(order) else {
            preconditionFailure("an order is numbers and text, which JSON can say")
        }
        return try await ask(
            "POST", "/api/v1/cluster/\(name)", body: Array(body), within: ConsoleClient.orderTimeout)
    }
}

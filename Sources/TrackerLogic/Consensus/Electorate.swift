// Who votes, and what makes a quorum (docs/protocol.md).

/// Who votes, and what makes a quorum (docs/protocol.md).
///
/// In quorum mode the voters are the committed members; in survivor mode they are the trackers that the master believes
/// active. `needed` is the policy `all`: a majority, and everybody in it.
///
/// Invariant in quorum mode: any two quorums of one set of members have a voter in common, and so have any two quorums
/// of sets that differ by one member.
package struct Electorate: Sendable, Hashable {
    /// In rising order.
    package var voters: [UInt32]
    /// Voters without whom there is no quorum.
    package var needed: [UInt32] = []

    package init(voters: [UInt32], needed: [UInt32] = []) {
        self.voters = voters
        self.needed = needed
    }

    package func includes(_ id: UInt32) -> Bool { voters.contains(id) }

    /// Whether these ids, each named once, decide.
    @inline(__always)
    package func isQuorum(_ ids: some Sequence<UInt32>) -> Bool {
        ids.count(where: includes) > voters.count / 2 && needed.allSatisfy(ids.contains)
    }

    /// Whether those of the voters decide of whom this holds.
    @inline(__always)
    package func isQuorum(where holds: (UInt32) -> Bool) -> Bool {
        voters.count(where: holds) > voters.count / 2 && needed.allSatisfy(holds)
    }

    /// Whether no quorum is left without these.
    package func isBlocked(by ids: [UInt32]) -> Bool {
        voters.count - ids.count(where: includes) <= voters.count / 2 || needed.contains(where: ids.contains)
    }

    /// Whether these are all the voters there are.
    package func isUnanimous(_ ids: [UInt32]) -> Bool { voters.allSatisfy(ids.contains) }
}

extension ClusterConfiguration.ElectionPolicy {
    /// The order in which trackers stand for master, the preferred one first.
    ///
    /// - Parameters:
    ///   - ids: in any order, each once.
    ///   - last: the id of the last master; 0 where there was none.
    /// - Returns: the same ids.
    package func order(_ ids: [UInt32], after last: UInt32) -> [UInt32] {
        switch self {
        case .highest: ids.sorted(by: >)
        case .lowest: ids.sorted()
        case .next: ids.filter { $0 > last }.sorted() + ids.filter { $0 <= last }.sorted()
        }
    }

    /// Whether a tracker is to have the role rather than the one that has it now.
    package func prefers(_ id: UInt32, to master: UInt32) -> Bool {
        switch self {
        case .highest: id > master
        case .lowest: id < master
        // The turn goes on when the master is lost, not before.
        case .next: false
        }
    }
}

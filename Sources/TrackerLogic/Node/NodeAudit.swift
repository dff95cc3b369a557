// What a node keeps for speed, looked at.

extension TrackerNode {
    /// Looks whether counts, orders and indexes are what a search would find: for simulated worlds and tests.
    ///
    /// - Returns: the first thing that is not, in words; nil where all is right.
    package func audit() -> String? {
        state.table.audit() ?? router.audit() ?? state.accounts.audit() ?? state.files.audit()
    }
}

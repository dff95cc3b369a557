// Is a tracker in sync.

import TrackerLogic

/// Whether a tracker is in sync: what `tracker status` answers, and what a rolling restart waits for.
extension ClusterView {
    /// Whether a tracker is in sync; the raw values are what `tracker status` shows.
    public enum Step: String, Sendable, Hashable, CaseIterable {
        /// In step, as the election counts it: under load some entries are on their way at any time.
        case inStep = "yes"
        /// Of the same history, and far from its end.
        case behind
        /// Its history is far longer than that of the tracker that was asked, so that only time can tell.
        case ahead
        /// Its history is another one.
        case apart = "no"
        /// It ends so far back that nobody can tell any more whether it is the same.
        case farBehind = "far behind"
        /// It has not the whole state yet.
        case fetches
        /// The tracker that was asked follows nobody, so that it cannot tell how it stands itself.
        case noMaster = "no master"
    }

    /// Whether a tracker is in step with the one that was asked; of that one itself, with its master.
    ///
    /// Entries count either way: where one is a few ahead, the other has them in a moment.
    ///
    /// - Parameter tracker: one of `trackers`.
    /// - Returns: `inStep` where a rolling restart may go on.
    public func step(of tracker: Tracker) -> Step {
        guard tracker.isWhole else { return .fetches }
        let isNear = tracker.lag <= Int64(Succession.inStepCount)
        if tracker.isThis, master == 0, mode != "alone" { return .noMaster }
        switch tracker.agreement {
        case "same": return isNear ? .inStep : .behind
        case "ahead":
            let lead = tracker.commitIndex > commitIndex ? tracker.commitIndex - commitIndex : 0
            return lead <= Succession.inStepCount ? .inStep : .ahead
        case "different": return .apart
        // Who is there was near when it last said where it is, though that is cut from the log by now.
        default: return isNear && tracker.role != "down" ? .inStep : .farBehind
        }
    }
}

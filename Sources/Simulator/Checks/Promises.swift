// What a profile promises.

import TrackerLogic

/// What a profile promises, and so what its runs are held to.
///
/// A tracker alone promises all that quorum mode does, as the only voter that there is, and more.
///
/// Quorum mode (`paxos`) promises agreement. Survivor mode goes on with whoever is there, on both sides of a partition
/// if need be: there can be several histories at one time, and of two of them one is given up in the end. What is said
/// of *the* log in quorum mode is said there of each history.
package struct Promises: Sendable, Hashable {
    /// There is one history: an index holds one value, at all trackers, for ever.
    ///
    /// Survivor mode: two trackers that say that their histories are equal hold the same; no more.
    package var hasOneHistory: Bool
    /// An entry is decided once a quorum of the *members* has it on disk.
    ///
    /// Survivor mode: a quorum of those who are active in the master's view, who may be the master alone.
    package var membersDecide: Bool
    /// Whoever votes holds the whole state, and says what is on its disk.
    ///
    /// Survivor mode: a tracker without memory may be alone, and must serve nevertheless.
    package var votersRemember: Bool
    /// Replies show the one history in its order, and never an old state of it.
    ///
    /// Survivor mode: they show what the tracker that is asked takes for the state. Their form, whom they go to and
    /// how often is checked there, and the counts of a scrape that the master answers.
    package var repliesAreLinear: Bool
    /// A master that does not hear a quorum falls silent.
    ///
    /// Survivor mode: it takes itself for the last survivor.
    package var minorityIsSilent: Bool
    /// An epoch is not used again even by a tracker that has lost its memory.
    ///
    /// Survivor mode: a tracker that is alone and remembers nothing cannot know what it has used.
    package var epochsOutliveMemory: Bool
    /// An update whose client is told that it is not stored never is.
    ///
    /// Survivor mode: not in the epoch in which it was aborted. The other side of a partition may have stored it.
    package var abortsAreFinal: Bool
    /// Everybody who is active has stored what is decided (`--vote all`): whoever the master has heard lately.
    package var allDecide: Bool

    /// What is on the disk of the only voter is decided, told or not: a tracker alone begins with all of it, and with
    /// everything that was answered.
    package var diskDecides: Bool
    /// Whoever waits for an update is answered in the step in which it is applied, or told in the step in which its
    /// tracker hears that it was not stored.
    ///
    /// Clusters: by the tracker that heard the request, which may have given it up.
    package var answersAtOnce: Bool

    package init(_ profile: Profile) {
        diskDecides = profile == .alone
        answersAtOnce = profile == .alone
        let hasQuorum =
            switch profile {
            case .paxos, .alone: true
            case .classic, .rotating, .lowest: false
            }
        hasOneHistory = hasQuorum
        membersDecide = hasQuorum
        votersRemember = hasQuorum
        repliesAreLinear = hasQuorum
        minorityIsSilent = hasQuorum
        epochsOutliveMemory = hasQuorum
        abortsAreFinal = hasQuorum
        allDecide =
            switch profile {
            case .rotating, .lowest: true
            case .classic, .paxos, .alone: false
            }
    }
}

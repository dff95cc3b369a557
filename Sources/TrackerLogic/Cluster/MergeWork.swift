/// Taking in what a tracker knows that was on the other side of a partition (rule 12; survivor mode).
///
///     chunk asked for ──► its updates queue ──► they go into the log, a few with each entry ──► next chunk ──► … ──►
///     all decided ──► the other fetches the state
///
/// The other's history is not continued: what it knows is said again in this history, by updates that newer knowledge
/// overrules. So they may come in any order, twice, or from several trackers that know the same.
///
/// Invariant: one merge at a time; the updates of one chunk at a time.

import Primitives
import Wire

struct MergeWork: Sendable, Hashable {
    let source: Life
    /// Where its history ended.
    let position: Position
    /// Whether its swarms count; else only access rules and registry are taken in.
    let hasSwarms: Bool
    /// The chunk that is awaited.
    var chunk: UInt32 = 0
    /// When it was last asked for; nil where it is to be asked for at once.
    var askedAt: Instant?
    let beganAt: Instant
    /// Updates that are not gathered yet, the next one last.
    var updates: [Update] = []
    /// Whether all chunks have come.
    var isComplete = false
    /// The entry with the last of the updates, at the latest.
    var lastIndex: UInt64 = 0
    var updateCount = 0
    /// Updates among them that were more than honest sides can bring.
    var leftOutCount = 0

    /// An entry was refused, perhaps with some of the updates: what is still unknown here is found once more.
    mutating func beginAnew() {
        chunk = 0
        updates = []
        isComplete = false
        lastIndex = 0
    }
}

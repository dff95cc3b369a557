// What the trackers of a group tell each other of requests that are answered without an entry.

import Primitives
import TrackerLogic
import Wire

/// In a group all have heard a request, and one answers it: connects and scrapes, which are in no entry, it tells the
/// others of, and whoever has heard that, or has answered one himself, does not answer it again (docs/protocol.md, *A
/// group*).
///
///     heard by all ── answered by the master, who says so in the same step ──► known to whoever hears that
///                                                        known, and answered again within twelve seconds ──► wrong
struct GroupNotes: Sendable {
    /// A request of a client.
    struct Known: Sendable, Hashable {
        var client: Int
        /// Of the ask.
        var number: Int
        var at: Instant
    }

    /// A note of one request, under the name that trackers have for it.
    private struct Note: Sendable {
        var key: UInt64
        var client: Int
        var number: Int
    }

    /// For so long a tracker remembers what was answered: twelve seconds by a clock that may be fast.
    private static let memory = Duration.seconds(10)
    private static let count = 128

    /// By tracker: what it knows in this life to be answered, oldest first.
    private var known: [[Known]]
    /// The last notes, of any tracker.
    private var notes: [Note] = []
    /// What this step has answered so far.
    private var answered: [Known] = []

    init(nodeCount: Int) { known = Array(repeating: [], count: nodeCount) }

    /// A life begins, and knows nothing.
    mutating func began(_ node: Int) { known[node] = [] }

    /// A connect or a scrape was answered.
    ///
    /// - Returns: whether that tracker knew that it had been.
    mutating func answers(_ node: Int, client: Int, number: Int, at time: Instant) -> Bool {
        answered.append(Known(client: client, number: number, at: time))
        return known[node].contains {
            $0.client == client && $0.number == number && time - $0.at < GroupNotes.memory
        }
    }

    /// A tracker has taken a step of which all replies were looked at; `promised` is the epoch that its disk has
    /// promised.
    mutating func check(
        _ step: borrowing Step, _ event: Event, _ effects: Effects, promised: Epoch, _ scene: inout Scene
    ) {
        defer { answered.removeAll(keepingCapacity: true) }
        if step.kind == .answered, case .messageReceived(let message) = event,
            case .answered(let answers) = message.body,
            message.epoch == promised, step.view.isServing, step.view.leads == nil
        {
            for answer in answers where answer.content == .counts([]) { hears(step, answer.number) }
        }
        let replies = effects.replies.datagrams.count { effects.replies.action(of: $0) & 1 == 0 }
        guard replies > 0, step.view.leads != nil else { return }
        var keys: [UInt64] = []
        for message in effects.messages {
            guard case .answered(let answers) = message.body, message.destination == .all else { continue }
            keys += answers.lazy.filter { $0.content == .counts([]) }.map { $0.number }
        }
        if keys.count < replies {
            scene.violate(
                .answeredOnce, at: step.time,
                "\(scene.name(step.node)) answers \(replies) connects and scrapes of the group, and tells of "
                    + "\(keys.count)")
        }
        // Whose name is whose is plain where there is one.
        guard keys.count == 1, answered.count == 1 else { return }
        if notes.count == GroupNotes.count { notes.removeFirst(GroupNotes.count / 2) }
        notes.append(Note(key: keys[0], client: answered[0].client, number: answered[0].number))
        learn(step.node, answered[0])
    }

    private mutating func hears(_ step: borrowing Step, _ key: UInt64) {
        guard let note = notes.last(where: { $0.key == key }) else { return }
        learn(step.node, Known(client: note.client, number: note.number, at: step.time))
    }

    private mutating func learn(_ node: Int, _ request: Known) {
        if known[node].count == GroupNotes.count { known[node].removeFirst(GroupNotes.count / 2) }
        known[node].append(request)
    }
}

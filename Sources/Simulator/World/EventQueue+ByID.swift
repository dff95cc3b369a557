// What waits in a queue of events, by its id: looked at, taken out of its turn, and put off.

import Primitives

/// What waits in a queue of events, by its id: looked at, taken out of its turn, and put off.
///
/// For people who meddle; each of these looks at all that waits, a few hundred events.
extension EventQueue {
    /// An event that waits.
    package struct Waiting: Sendable {
        package var id: UInt64
        package var time: Instant
        package var event: Event
    }

    /// All that waits, in the order in which it comes.
    package var waiting: [Waiting] {
        keys.map { Waiting(id: $0.id, time: $0.time, event: event(of: $0)) }
            .sorted { ($0.time, $0.id) < ($1.time, $1.id) }
    }

    /// An event that waits; nil where none has this id.
    package func find(_ id: UInt64) -> Waiting? {
        keys.first { $0.id == id }.map { Waiting(id: id, time: $0.time, event: event(of: $0)) }
    }

    /// Takes an event out of its turn; nil where none has this id.
    package mutating func take(id: UInt64) -> (time: Instant, event: Event)? {
        guard let place = keys.firstIndex(where: { $0.id == id }) else { return nil }
        return take(at: place)
    }

    /// Takes out the first of those that are wanted, in the order in which they come; nil where none is.
    package mutating func takeFirst(where isWanted: (Event) -> Bool) -> (time: Instant, event: Event)? {
        var first: Int?
        for place in keys.indices where isWanted(event(of: keys[place])) {
            if let known = first, !keys[place].isBefore(keys[known]) { continue }
            first = place
        }
        return first.flatMap { take(at: $0) }
    }

    /// Lets an event come at another time; it keeps its id, and so its place among those of that time.
    ///
    /// - Returns: whether one has this id.
    @discardableResult
    package mutating func move(_ id: UInt64, to time: Instant) -> Bool {
        guard let place = keys.firstIndex(where: { $0.id == id }) else { return false }
        move(at: place, to: time)
        return true
    }
}

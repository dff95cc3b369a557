// What is going to happen, in the order of (time, sequence).

import Primitives

/// What is going to happen, in the order of (time, sequence): of two events at one time, the one that was put in first
/// comes first.
///
/// A heap of small keys; the events themselves lie still in slots beside it.
package struct EventQueue<Event: Sendable>: Sendable {
    struct Key: Sendable {
        var time: Instant
        /// The sequence, and below it the slot: so one comparison orders what comes at one time.
        var place: UInt64

        var slot: Int { Int(place & (1 << Key.slotBits - 1)) }

        var id: UInt64 { place >> Key.slotBits }

        func isBefore(_ other: Key) -> Bool { time == other.time ? place < other.place : time < other.time }

        /// Far more events than wait at once, and room for 2⁴⁰ that come one after another.
        static var slotBits: UInt64 { 24 }
    }

    /// Children of one key: with four, half as many levels as with two, and the four lie side by side.
    private static var width: Int { 4 }

    /// A heap: the first is the next.
    private(set) var keys: [Key] = []
    private var slots: [Event?] = []
    private var freeSlots: [Int] = []
    /// The id of the event that was put in last; 0 before the first.
    package private(set) var lastID: UInt64 = 0
    /// The id of the event that was taken last; 0 before the first.
    package private(set) var takenID: UInt64 = 0

    package init() {}

    package var count: Int { keys.count }

    /// When the next event comes; nil where none waits.
    package var nextTime: Instant? { keys.first?.time }

    /// - Returns: the event's id, by which it can be found: ids rise from 1, and none comes again.
    @discardableResult
    package mutating func put(_ event: Event, at time: Instant) -> UInt64 {
        lastID += 1
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
            slots[slot] = event
        } else {
            slot = slots.count
            slots.append(event)
        }
        precondition(slot < 1 << Key.slotBits, "fewer than 2^24 events wait at one time")
        keys.append(Key(time: time, place: lastID << Key.slotBits | UInt64(slot)))
        rise(keys.count - 1)
        return lastID
    }

    /// The next event, taken out.
    package mutating func take() -> (time: Instant, event: Event)? {
        guard let first = keys.first else { return nil }
        let last = keys.removeLast()
        if !keys.isEmpty {
            keys[0] = last
            sink(0)
        }
        return (first.time, event(takenBy: first))
    }

    /// The event of a key that is no more in the heap.
    private mutating func event(takenBy key: Key) -> Event {
        // Moved, not copied: an event holds messages and bytes.
        var taken: Event?
        swap(&taken, &slots[key.slot])
        guard let event = taken else { preconditionFailure("an event lies in its slot until it is taken") }
        freeSlots.append(key.slot)
        takenID = key.id
        return event
    }

    // MARK: - Out of turn

    /// The event of a key in the heap.
    func event(of key: Key) -> Event {
        guard let event = slots[key.slot] else { preconditionFailure("an event lies in its slot until it is taken") }
        return event
    }

    /// Takes out the event at a place in the heap.
    mutating func take(at place: Int) -> (time: Instant, event: Event) {
        let key = keys[place]
        let last = keys.removeLast()
        if place < keys.count {
            keys[place] = last
            settle(place)
        }
        return (key.time, event(takenBy: key))
    }

    /// Gives the event at a place in the heap another time.
    mutating func move(at place: Int, to time: Instant) {
        keys[place].time = time
        settle(place)
    }

    /// Where a key stands that was put there.
    private mutating func settle(_ place: Int) {
        let key = keys[place]
        sink(place)
        if keys[place].place == key.place { rise(place) }
    }

    private mutating func rise(_ start: Int) {
        // Through a pointer: else each exchange asks anew whether the heap is its own.
        keys.withUnsafeMutableBufferPointer { heap in
            var place = start
            let key = heap[place]
            while place > 0 {
                let parent = (place - 1) / EventQueue.width
                guard key.isBefore(heap[parent]) else { break }
                heap[place] = heap[parent]
                place = parent
            }
            heap[place] = key
        }
    }

    private mutating func sink(_ start: Int) {
        keys.withUnsafeMutableBufferPointer { heap in
            var place = start
            let key = heap[place]
            while true {
                let first = EventQueue.width * place + 1
                guard first < heap.count else { break }
                let end = min(first + EventQueue.width, heap.count)
                var child = first
                var other = first + 1
                while other < end {
                    if heap[other].isBefore(heap[child]) { child = other }
                    other += 1
                }
                guard heap[child].isBefore(key) else { break }
                heap[place] = heap[child]
                place = child
            }
            heap[place] = key
        }
    }
}

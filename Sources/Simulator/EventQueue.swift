/// What is going to happen, in the order of (time, sequence): of two events at one time, the one that was put in
/// first comes first.
///
/// A binary heap of small keys; the events themselves lie still in slots beside it.

import Primitives

package struct EventQueue<Event: Sendable>: Sendable {
    private struct Key: Sendable {
        var time: Instant
        var sequence: UInt64
        var slot: Int

        func isBefore(_ other: Key) -> Bool {
            time == other.time ? sequence < other.sequence : time < other.time
        }
    }

    private var heap: [Key] = []
    private var slots: [Event?] = []
    private var freeSlots: [Int] = []
    private var lastSequence: UInt64 = 0

    package init() {}

    package var count: Int { heap.count }

    package mutating func put(_ event: Event, at time: Instant) {
        lastSequence += 1
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
            slots[slot] = event
        } else {
            slot = slots.count
            slots.append(event)
        }
        heap.append(Key(time: time, sequence: lastSequence, slot: slot))
        rise(heap.count - 1)
    }

    /// The next event, taken out.
    package mutating func take() -> (time: Instant, event: Event)? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink(0)
        }
        guard let event = slots[first.slot] else { preconditionFailure("an event lies in its slot until it is taken") }
        slots[first.slot] = nil
        freeSlots.append(first.slot)
        return (first.time, event)
    }

    private mutating func rise(_ start: Int) {
        var place = start
        let key = heap[place]
        while place > 0 {
            let parent = (place - 1) / 2
            guard key.isBefore(heap[parent]) else { break }
            heap[place] = heap[parent]
            place = parent
        }
        heap[place] = key
    }

    private mutating func sink(_ start: Int) {
        var place = start
        let key = heap[place]
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
            guard heap[child].isBefore(key) else { break }
            heap[place] = heap[child]
            place = child
        }
        heap[place] = key
    }
}

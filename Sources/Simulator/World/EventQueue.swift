// What is going to happen, in the order of (time, sequence).

import Primitives

/// What is going to happen, in the order of (time, sequence): of two events at one time, the one that was put in first
/// comes first.
///
/// A heap of small keys; the events themselves lie still in slots beside it.
package struct EventQueue<Event: Sendable>: Sendable {
    private struct Key: Sendable {
        var time: Instant
        /// The sequence, and below it the slot: so one comparison orders what comes at one time.
        var place: UInt64

        var slot: Int { Int(place & (1 << Key.slotBits - 1)) }

        func isBefore(_ other: Key) -> Bool { time == other.time ? place < other.place : time < other.time }

        /// Far more events than wait at once, and room for 2⁴⁰ that come one after another.
        static var slotBits: UInt64 { 24 }
    }

    /// Children of one key: with four, half as many levels as with two, and the four lie side by side.
    private static var width: Int { 4 }

    private var heap: [Key] = []
    private var slots: [Event?] = []
    private var freeSlots: [Int] = []
    private var lastSequence: UInt64 = 0

    package init() {}

    package var count: Int { heap.count }

    /// When the next event comes; nil where none waits.
    package var nextTime: Instant? { heap.first?.time }

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
        precondition(slot < 1 << Key.slotBits, "fewer than 2^24 events wait at one time")
        heap.append(Key(time: time, place: lastSequence << Key.slotBits | UInt64(slot)))
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
        // Moved, not copied: an event holds messages and bytes.
        var taken: Event?
        swap(&taken, &slots[first.slot])
        guard let event = taken else { preconditionFailure("an event lies in its slot until it is taken") }
        freeSlots.append(first.slot)
        return (first.time, event)
    }

    private mutating func rise(_ start: Int) {
        // Through a pointer: else each exchange asks anew whether the heap is its own.
        heap.withUnsafeMutableBufferPointer { heap in
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
        heap.withUnsafeMutableBufferPointer { heap in
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

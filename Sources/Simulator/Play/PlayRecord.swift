// What a played run has shown so far, step by step.

import Primitives

/// What a played run has shown so far, step by step: numbers in columns, and lines of text.
///
/// Everything is kept in the order of its step, so that a branch takes over what came before it.
package struct PlayRecord: Sendable {
    /// A copy of a message or a datagram on its way.
    struct Flight: Sendable {
        var load: Traffic.Load
        /// A tracker's place, or for a datagram its client's.
        var from: UInt16
        /// A tracker's place, or for a reply its client's.
        var to: UInt16
        /// Of its arrival, as it was sent; 0 where it was lost at once.
        var id: UInt64
        var sentStep: Int
        var endStep = 0
        var sentAt: Instant
        var endedAt = Instant(nanoseconds: 0)
        var fate: Traffic.Fate
        var isAgain: Bool
    }

    /// A transition of a tracker, and its step.
    package struct Mark: Sendable {
        package var step: Int
        package var transition: History.Transition
    }

    // By step; the first is step 0, before anything.

    package private(set) var times: [Instant] = []
    /// The id of the event that was the step; 0 for step 0.
    package private(set) var events: [UInt32] = []
    /// The last id that was given out by the end of the step.
    private(set) var lastIDs: [UInt32] = []
    package private(set) var trackers: [UInt32] = []
    package private(set) var kinds: [UInt16] = []
    /// How many lines there are by the end of the step.
    private(set) var lineEnds: [UInt32] = []
    /// Which of `standings` it is.
    package private(set) var standing: [UInt32] = []

    /// What the trackers' columns show, each time that it has changed.
    package private(set) var standings: [[String]] = []
    private(set) var lines: [String] = []
    private(set) var flights: [Flight] = []
    /// Flights by the ids of their events, which rise; one that was put off has several.
    private(set) var flightIDs: [(id: UInt64, flight: Int)] = []
    package private(set) var marks: [Mark] = []

    /// The last step.
    package var steps: Int { times.count - 1 }

    init(trackers count: Int) { standings = [Array(repeating: "-", count: count)] }

    // MARK: - Writing

    /// Takes in a step that a world has just made, and empties what the world has noted.
    mutating func add(_ world: inout World) {
        times.append(world.now)
        events.append(UInt32(truncatingIfNeeded: world.player.event))
        lastIDs.append(0)
        trackers.append(0)
        kinds.append(0)
        lineEnds.append(0)
        standing.append(0)
        note(&world)
    }

    /// Takes in what has come to the present step: by itself, by a what-if, or at the end.
    mutating func note(_ world: inout World) {
        let step = steps
        lastIDs[step] = UInt32(truncatingIfNeeded: world.queue.lastID)
        if !world.trace.lines.isEmpty {
            for line in world.trace.takeLines() { add(line, step) }
        }
        lineEnds[step] = UInt32(lines.count)
        standing[step] = UInt32(standings.count - 1)
        for transition in world.history.transitions { marks.append(Mark(step: step, transition: transition)) }
        world.history.transitions.removeAll(keepingCapacity: true)
        if !world.player.traffic.isEmpty {
            add(world.player.traffic, step)
            world.player.traffic.removeAll()
        }
    }

    private mutating func add(_ line: TraceLine, _ step: Int) {
        lines.append(line.text)
        trackers[step] |= line.trackers
        kinds[step] |= line.kinds.isEmpty ? TraceKinds.everybody.rawValue : line.kinds.rawValue
        if standings[standings.count - 1] != line.columns { standings.append(line.columns) }
    }

    private mutating func add(_ traffic: Traffic, _ step: Int) {
        let time = times[step]
        for sent in traffic.sent {
            if sent.id > 0 { flightIDs.append((sent.id, flights.count)) }
            flights.append(
                Flight(
                    load: sent.load, from: UInt16(truncatingIfNeeded: sent.from),
                    to: UInt16(truncatingIfNeeded: sent.to), id: sent.id, sentStep: step, sentAt: time,
                    fate: sent.id > 0 ? .underWay : .lost,
                    isAgain: sent.isAgain))
        }
        for (from, to) in traffic.putOff {
            if let flight = flight(from) { flightIDs.append((to, flight)) }
        }
        for (id, fate) in traffic.ended {
            guard let flight = flight(id) else { continue }
            flights[flight].endStep = step
            flights[flight].endedAt = time
            flights[flight].fate = fate
        }
    }

    /// Forgets what came after a step.
    mutating func cut(after step: Int) {
        guard step < steps else { return }
        let count = step + 1
        let lastID = UInt64(lastIDs[step])
        times.removeLast(times.count - count)
        events.removeLast(events.count - count)
        lastIDs.removeLast(lastIDs.count - count)
        trackers.removeLast(trackers.count - count)
        kinds.removeLast(kinds.count - count)
        lineEnds.removeLast(lineEnds.count - count)
        standing.removeLast(standing.count - count)
        lines.removeLast(lines.count - Int(lineEnds[step]))
        standings.removeLast(standings.count - Int(standing[step]) - 1)
        while let last = marks.last, last.step > step { marks.removeLast() }
        while let last = flights.last, last.sentStep > step { flights.removeLast() }
        while let last = flightIDs.last, last.id > lastID { flightIDs.removeLast() }
        for place in flights.indices where flights[place].endStep > step {
            flights[place].endStep = 0
            flights[place].endedAt = Instant(nanoseconds: 0)
            flights[place].fate = .underWay
        }
    }

    // MARK: - Reading

    /// The step that has put an event into the queue; 0 for what was there before the first.
    package func cause(ofEvent id: UInt64) -> Int {
        // The first step by whose end the id was given out.
        var (low, high) = (0, lastIDs.count)
        while low < high {
            let middle = (low + high) / 2
            if UInt64(lastIDs[middle]) < id { low = middle + 1 } else { high = middle }
        }
        return min(low, steps)
    }

    /// The step that has caused a step; 0 for what was there before the first.
    package func cause(of step: Int) -> Int { cause(ofEvent: UInt64(events[step])) }

    /// Which flight has, or had, an id.
    func flight(_ id: UInt64) -> Int? {
        var (low, high) = (0, flightIDs.count)
        while low < high {
            let middle = (low + high) / 2
            if flightIDs[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return low < flightIDs.count && flightIDs[low].id == id ? flightIDs[low].flight : nil
    }

    /// The lines of a step.
    package func lines(of step: Int) -> ArraySlice<String> {
        lines[(step == 0 ? 0 : Int(lineEnds[step - 1]))..<Int(lineEnds[step])]
    }
}

extension TraceKinds {
    /// Of lines that everybody wants to see, where a step is told as one number.
    static let everybody = TraceKinds(rawValue: 1 << 14)
}

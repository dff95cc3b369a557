// What a person does to a run: a what-if, and its text.

import Primitives

/// What a person does to a run after one of its steps.
///
/// A *step* is one transition of the world, counted from 1; step 0 is before the first. What waits is named by its
/// event id (`EventQueue`), trackers by their places from 0. `412.drop.9981`: after step 412, the event 9981, a message
/// under way, is lost.
public struct WhatIf: Sendable, Hashable, CustomStringConvertible {
    /// What may be done.
    public enum Action: Sendable, Hashable {
        /// A message or a datagram under way is lost.
        case drop(UInt64)
        /// It comes so many milliseconds later.
        case delay(UInt64, milliseconds: Int)
        /// A tracker dies, and is down for so long; 0 for good, which is until the world is healed.
        case kill(Int, milliseconds: Int)
        /// A tracker is held, as by SIGSTOP.
        case pause(Int, milliseconds: Int)
        /// Trackers are cut off from the others.
        case cut([Int], milliseconds: Int)
        /// A tracker loses its bus.
        case fence(Int, milliseconds: Int)
        /// A tracker's disk is full.
        case disk(Int, milliseconds: Int)
        /// A tracker comes back, or goes on: its pause, its cut and the loss of its bus end.
        case wake(Int)
        /// The operator of a tracker wants the role handed over, to an id.
        case hand(Int, id: UInt32)
        /// From here on the player is the network: messages and datagrams wait.
        case net
        /// One of them is delivered now. A step of its own.
        case take(UInt64)
        /// Time goes on to the next thing that is no message. A step of its own.
        case time
        /// The network works by itself again, and brings what waits.
        case auto
    }

    /// After which step.
    public var step: Int
    /// What is done.
    public var action: Action

    /// Takes the fields as they are.
    public init(after step: Int, _ action: Action) {
        self.step = step
        self.action = action
    }

    /// What-ifs of one run, at most.
    public static let maxCount = 1000
    /// Steps of any run: more than a world takes (`World.maxEvents`).
    static let stepRange = 0...9_999_999
    /// How long a trouble or a delay lasts: up to a minute.
    public static let millisecondsRange = 1...60_000

    /// Whether it makes a step of its own.
    var isStep: Bool {
        switch action {
        case .take, .time: true
        case .drop, .delay, .kill, .pause, .cut, .fence, .disk, .wake, .hand, .net, .auto: false
        }
    }

    // MARK: - Text

    /// For example `412.drop.9981`.
    public var description: String { "\(step).\(name)\(arguments.map { ".\($0)" }.joined())" }

    private var name: String {
        switch action {
        case .drop: "drop"
        case .delay: "delay"
        case .kill: "kill"
        case .pause: "pause"
        case .cut: "cut"
        case .fence: "fence"
        case .disk: "disk"
        case .wake: "wake"
        case .hand: "hand"
        case .net: "net"
        case .take: "take"
        case .time: "time"
        case .auto: "auto"
        }
    }

    private var arguments: [String] {
        switch action {
        case .drop(let id), .take(let id): ["\(id)"]
        case .delay(let id, let milliseconds): ["\(id)", "\(milliseconds)"]
        case .kill(let place, let milliseconds), .pause(let place, let milliseconds),
            .fence(let place, let milliseconds), .disk(let place, let milliseconds):
            ["\(place)", "\(milliseconds)"]
        case .cut(let places, let milliseconds): [places.map { "\($0)" }.joined(separator: "-"), "\(milliseconds)"]
        case .wake(let place): ["\(place)"]
        case .hand(let place, let id): ["\(place)", "\(id)"]
        case .net, .time, .auto: []
        }
    }

    /// Numbers for the trace's hash.
    var words: [UInt64] {
        switch action {
        case .drop(let id): [1, id]
        case .delay(let id, let milliseconds): [2, id, UInt64(milliseconds)]
        case .kill(let place, let milliseconds): [3, UInt64(place), UInt64(milliseconds)]
        case .pause(let place, let milliseconds): [4, UInt64(place), UInt64(milliseconds)]
        case .cut(let places, let milliseconds): [5, UInt64(milliseconds)] + places.map { UInt64($0) }
        case .fence(let place, let milliseconds): [6, UInt64(place), UInt64(milliseconds)]
        case .disk(let place, let milliseconds): [7, UInt64(place), UInt64(milliseconds)]
        case .wake(let place): [8, UInt64(place)]
        case .hand(let place, let id): [9, UInt64(place), UInt64(id)]
        case .net: [10]
        case .take(let id): [11, id]
        case .time: [12]
        case .auto: [13]
        }
    }
}

/// Words that name no run, and why not.
public struct WordsRefused: Error, Hashable, CustomStringConvertible {
    /// A sentence for people: what is wrong, and what to write instead.
    public let description: String

    init(_ description: String) { self.description = description }
}

extension WhatIf {
    /// Reads what `description` writes.
    ///
    /// - Throws: a sentence that says what is wrong with it.
    public init(_ text: some StringProtocol) throws(WordsRefused) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { String($0) }
        guard parts.count >= 2, let step = WhatIf.number(parts[0], in: WhatIf.stepRange) else {
            throw WordsRefused(
                "the what-if \"\(WhatIf.shortened(text))\" does not begin with a step; write STEP.ACTION, for example "
                    + "412.kill.2.8000")
        }
        var reader = WhatIfReader(String(text), Array(parts.dropFirst(2)))
        let action = try WhatIf.action(parts[1], &reader)
        try reader.end()
        self.init(after: step, action)
    }

    private static func action(_ name: String, _ reader: inout WhatIfReader) throws(WordsRefused) -> Action {
        switch name {
        case "drop": .drop(try reader.id())
        case "delay": .delay(try reader.id(), milliseconds: try reader.milliseconds())
        case "kill": .kill(try reader.place(), milliseconds: try reader.milliseconds(orZero: true))
        case "pause": .pause(try reader.place(), milliseconds: try reader.milliseconds())
        case "cut": .cut(try reader.places(), milliseconds: try reader.milliseconds())
        case "fence": .fence(try reader.place(), milliseconds: try reader.milliseconds())
        case "disk": .disk(try reader.place(), milliseconds: try reader.milliseconds())
        case "wake": .wake(try reader.place())
        case "hand": .hand(try reader.place(), id: try reader.trackerID())
        case "net": .net
        case "take": .take(try reader.id())
        case "time": .time
        case "auto": .auto
        default:
            throw WordsRefused(
                "the what-if \"\(shortened(reader.text))\" asks for \"\(shortened(name))\", which nobody can do; there "
                    + "are drop, delay, kill, pause, cut, fence, disk, wake, hand, net, take, time and auto")
        }
    }

    static func number(_ text: String, in range: ClosedRange<Int>) -> Int? {
        // `Int` reads signs, too.
        guard !text.isEmpty, text.utf8.count <= 9, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int(text).flatMap { range.contains($0) ? $0 : nil }
    }

    static func shortened(_ text: some StringProtocol) -> String {
        text.count <= 40 ? String(text) : text.prefix(39) + "…"
    }

    /// Reads what stands behind each other in `412.kill.2.8000,500.wake.2`.
    ///
    /// - Throws: a sentence about the first that is wrong; they stand in the order of their steps, and behind one that
    ///   makes a step comes none of the step before.
    public static func list(_ text: some StringProtocol) throws(WordsRefused) -> [WhatIf] {
        var list: [WhatIf] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) { list.append(try WhatIf(part)) }
        try check(list)
        return list
    }

    /// Refuses what-ifs that are out of order, or too many.
    public static func check(_ list: [WhatIf]) throws(WordsRefused) {
        guard list.count <= maxCount else {
            throw WordsRefused("there are \(list.count) what-ifs, and a run has \(maxCount) at most; leave some out")
        }
        for (last, next) in zip(list, list.dropFirst()) {
            if next.step < last.step {
                throw WordsRefused("the what-if \(next) stands behind \(last); put them in the order of their steps")
            }
            if last.isStep, next.step == last.step {
                throw WordsRefused(
                    "the what-if \(next) stands behind \(last), which makes step \(last.step + 1); begin it with "
                        + "\(last.step + 1)")
            }
        }
    }
}

/// Reads the numbers of a what-if.
private struct WhatIfReader {
    let text: String
    private let parts: [String]
    private var next = 0

    init(_ text: String, _ parts: [String]) {
        self.text = text
        self.parts = parts
    }

    private mutating func part(_ what: String) throws(WordsRefused) -> String {
        guard next < parts.count else { throw refused("lacks \(what)") }
        next += 1
        return parts[next - 1]
    }

    private func refused(_ why: String) -> WordsRefused {
        WordsRefused(
            "the what-if \"\(WhatIf.shortened(text))\" \(why); write STEP.ACTION and its numbers, for example "
                + "412.drop.9981, 412.kill.2.8000 or 412.cut.0-2.5000")
    }

    private mutating func number(_ what: String, in range: ClosedRange<Int>) throws(WordsRefused) -> Int {
        let part = try part(what)
        guard let number = WhatIf.number(part, in: range) else {
            throw refused(
                "has \"\(WhatIf.shortened(part))\" for \(what), which is a number of \(range.lowerBound) to "
                    + "\(range.upperBound)")
        }
        return number
    }

    mutating func id() throws(WordsRefused) -> UInt64 {
        UInt64(try number("the id of an event", in: 1...999_999_999))
    }

    mutating func place() throws(WordsRefused) -> Int {
        try number("the place of a tracker", in: 0...Run.nodeRange.upperBound - 1)
    }

    mutating func places() throws(WordsRefused) -> [Int] {
        let part = try part("the places of trackers")
        var places: [Int] = []
        for text in part.split(separator: "-", omittingEmptySubsequences: false) {
            guard let place = WhatIf.number(String(text), in: 0...Run.nodeRange.upperBound - 1),
                !places.contains(place)
            else { throw refused("has \"\(WhatIf.shortened(part))\" for places of trackers, which are written 0-2") }
            places.append(place)
        }
        return places.sorted()
    }

    mutating func trackerID() throws(WordsRefused) -> UInt32 {
        UInt32(try number("the id of a tracker", in: 1...999_999_999))
    }

    mutating func milliseconds(orZero isZeroFine: Bool = false) throws(WordsRefused) -> Int {
        let range = WhatIf.millisecondsRange
        return try number("milliseconds", in: (isZeroFine ? 0 : range.lowerBound)...range.upperBound)
    }

    func end() throws(WordsRefused) {
        if next < parts.count { throw refused("has more numbers than it needs") }
    }
}

// A space-time diagram (Lamport, 1978).

import Primitives

/// A space-time diagram (Lamport, 1978): trackers as vertical lines, time downwards, messages as arrows between them.
///
/// The picture is one SVG document without scripts or references, readable on light and on dark ground. Time is not to
/// scale: moments at which nothing happens are cut short, and moments at which much happens are drawn out; the numbers
/// on the left tell. `SpaceTimeDiagram+Drawing.swift` draws it.
public struct SpaceTimeDiagram: Sendable, Hashable {
    /// What a tracker is, as its line shows it.
    public enum Condition: String, Sendable, Hashable, CaseIterable {
        /// Dead, or not started yet.
        case down
        /// It runs, and neither follows nor leads.
        case newcomer
        case slave
        case candidate
        case master
    }

    /// What a message is about, as its colour shows it.
    public enum Topic: String, Sendable, Hashable, CaseIterable {
        /// Votes on entries.
        case vote
        /// Who is master.
        case election
        /// Who is part of the cluster, and what newcomers are given.
        case join
        /// Clients' requests between trackers.
        case request
        /// Signs of life.
        case life
    }

    /// What happened at a point of a line.
    public enum Sign: String, Sendable, Hashable, CaseIterable {
        case commit
        case election
        case crash
        case start
        case abort
        /// Something that the simulator did in a moment.
        case fault
        case note
        /// A promise was broken: a line through the whole picture.
        case violation
    }

    /// What is wrong for a while, as the colour of its band shows it.
    public enum Trouble: String, Sendable, Hashable, CaseIterable {
        /// Links between trackers carry nothing, or late.
        case partition
        /// Trackers have no bus.
        case fence
        /// Trackers are held.
        case pause
        /// Trackers have no clients.
        case darkness
        /// Disks fail, or are slow.
        case disk

        /// Whether it is drawn beside the lines of its trackers, as well as on the right.
        var isOfLanes: Bool { self != .partition }
    }

    /// A time in which something was wrong.
    public struct Span: Sendable, Hashable {
        /// When it began.
        public var from: Instant
        /// nil where it did not end.
        public var until: Instant?
        /// Which lanes it is drawn beside.
        public var lanes: [Int]
        /// Of which kind.
        public var trouble: Trouble
        /// Shown where a reader points at it.
        public var text: String

        /// Takes the fields as they are.
        public init(from: Instant, until: Instant?, lanes: [Int], _ trouble: Trouble, _ text: String) {
            self.from = from
            self.until = until
            self.lanes = lanes
            self.trouble = trouble
            self.text = text
        }
    }

    /// From a time on, a tracker is something else.
    public struct Change: Sendable, Hashable {
        /// From when on.
        public var time: Instant
        /// From 0.
        public var lane: Int
        /// How the lane is drawn from there on.
        public var condition: Condition

        /// Takes the fields as they are.
        public init(_ time: Instant, lane: Int, _ condition: Condition) {
            self.time = time
            self.lane = lane
            self.condition = condition
        }
    }

    /// A message from one lane to another.
    public struct Arrow: Sendable, Hashable {
        /// Shown beside it.
        public var name: String
        /// Gives its colour.
        public var topic: Topic
        /// The sender's lane.
        public var from: Int
        /// The receiver's lane.
        public var to: Int
        /// Where it begins.
        public var sentAt: Instant
        /// nil where it never came.
        public var receivedAt: Instant?

        /// Takes the fields as they are.
        public init(_ name: String, _ topic: Topic, from: Int, to: Int, sentAt: Instant, receivedAt: Instant?) {
            self.name = name
            self.topic = topic
            self.from = from
            self.to = to
            self.sentAt = sentAt
            self.receivedAt = receivedAt
        }
    }

    /// A sign on a lane.
    public struct Mark: Sendable, Hashable {
        /// Where it stands.
        public var time: Instant
        /// From 0.
        public var lane: Int
        /// Its shape.
        public var sign: Sign
        /// Shown beside it.
        public var text: String

        /// Takes the fields as they are.
        public init(_ time: Instant, lane: Int, _ sign: Sign, _ text: String) {
            self.time = time
            self.lane = lane
            self.sign = sign
            self.text = text
        }
    }

    /// What the picture is of.
    public var title: String
    /// Under the title: what is left out, for instance.
    public var caption = ""
    /// The names of the trackers.
    public var lanes: [String]
    /// In the order of time, each list.
    public var changes: [Change] = []
    /// In the order in which they were sent.
    public var arrows: [Arrow] = []
    /// In order of time.
    public var marks: [Mark] = []
    /// In the order of their beginnings.
    public var spans: [Span] = []
    /// Under the picture, below the promises that were broken.
    public var notes: [String] = []

    /// A diagram with lanes on which nothing happens.
    public init(title: String, lanes: [String]) {
        self.title = title
        self.lanes = lanes
    }

    /// Leaves out all but the last messages, and what was before them; a picture of everything would be a wall.
    ///
    /// Lines go on from what they were.
    ///
    /// - Parameters:
    ///   - from: nothing before.
    ///   - until: nothing after.
    ///   - maxArrows: so many messages at most; earlier ones are left out.
    public mutating func clip(from: Instant?, until: Instant?, maxArrows: Int) {
        let end = until ?? Instant(nanoseconds: .max)
        var start = from ?? Instant(nanoseconds: 0)
        arrows.removeAll { $0.sentAt < start || $0.sentAt > end }
        let all = arrows.count
        if all > maxArrows {
            arrows.removeFirst(all - maxArrows)
            start = arrows.first.map { max(start, $0.sentAt) } ?? end
        }
        for place in arrows.indices where arrows[place].receivedAt.map({ $0 > end }) ?? false {
            // It came later: drawn to the lower edge.
            arrows[place].receivedAt = end
        }
        marks.removeAll { $0.time < start || $0.time > end }
        spans.removeAll { $0.from > end || $0.until.map { $0 < start } ?? false }
        for place in spans.indices {
            spans[place].from = max(spans[place].from, start)
            // It went on: drawn to the lower edge.
            if let until = spans[place].until, until > end { spans[place].until = nil }
        }
        var last: [Change?] = Array(repeating: nil, count: lanes.count)
        for change in changes where change.time < start { last[change.lane] = change }
        changes.removeAll { $0.time < start || $0.time > end }
        changes.insert(
            contentsOf: last.compactMap { $0 }.map { Change(start, lane: $0.lane, $0.condition) }, at: 0)
        if all > maxArrows {
            let notice = "the last \(maxArrows) of \(all) messages, from \(Figure.seconds(start)) s on"
            caption = caption.isEmpty ? notice : "\(caption); \(notice)"
        }
    }
}

// What a played run shows: messages and what became of them, the state of trackers, and what waits.

import Primitives
import TrackerLogic
import Wire

extension Play {
    /// A copy of a message or a datagram, as people see it.
    public struct Flight: Sendable, Hashable {
        /// Message, datagram or reply.
        public var kind: PendingEvent.Kind
        /// `PREPARE`, `announce`.
        public var name: String
        /// What a message is about; nil for datagrams.
        public var topic: SpaceTimeDiagram.Topic?
        /// A tracker's place, or of a datagram its client's.
        public var from: Int
        /// A tracker's place, or of a reply its client's.
        public var to: Int
        /// The event that it is, as it was sent; 0 where it was lost at once.
        public var id: UInt64
        /// In which step it was sent.
        public var sentStep: Int
        /// When it was sent.
        public var sentAt: Instant
        /// In which step it came or was lost; nil while it is under way.
        public var endStep: Int?
        /// When it came or was lost; nil while it is under way.
        public var endedAt: Instant?
        /// `arrived`, `again` (a second copy), `lost`, `nobody` (it came, and nobody was there), or `under way`.
        public var fate: String
    }

    /// How many copies of messages and datagrams there are.
    public var flightCount: Int { record.flights.count }

    /// One of them, in the order in which they were sent.
    public func flight(_ place: Int) -> Flight {
        let flight = record.flights[place]
        let (kind, name, topic): (PendingEvent.Kind, String, SpaceTimeDiagram.Topic?) =
            switch flight.load {
            case .message(let letter):
                (.message, letter.message.body.name, .init(messageName: letter.message.body.name))
            case .datagram(_, let bytes): (.datagram, TraceText.action(bytes, isReply: false), nil)
            case .reply(_, let bytes): (.reply, TraceText.action(bytes, isReply: true), nil)
            }
        let hasEnded = flight.endStep > 0 || flight.fate == .lost
        let isLostAtOnce = flight.id == 0
        return Flight(
            kind: kind, name: name, topic: topic, from: Int(flight.from), to: Int(flight.to), id: flight.id,
            sentStep: flight.sentStep, sentAt: flight.sentAt,
            endStep: hasEnded ? (isLostAtOnce ? flight.sentStep : flight.endStep) : nil,
            endedAt: hasEnded ? (isLostAtOnce ? flight.sentAt : flight.endedAt) : nil,
            fate: Play.words(of: flight.fate, isAgain: flight.isAgain))
    }

    private static func words(of fate: Traffic.Fate, isAgain: Bool) -> String {
        switch fate {
        case .underWay: "under way"
        case .arrived: isAgain ? "again" : "arrived"
        case .lost: "lost"
        case .nobody: "nobody"
        }
    }

    /// How a tracker stands.
    public struct Standing: Sendable {
        /// From 0.
        public var place: Int
        /// How it is called.
        public var title: String
        /// Line by line, in the order in which they are to be read.
        public var items: [(title: String, text: String)]
    }

    /// The state of each tracker after a step.
    public mutating func state(after step: Int) -> [Standing] {
        var world = world(after: step)
        return world.nodes.indices.map {
            Standing(place: $0, title: world.trace.names[$0], items: world.items(of: $0))
        }
    }

    /// What is under way or waits after a step, soonest first.
    public mutating func pending(after step: Int) -> [PendingEvent] { world(after: step).pending }

    /// Which step has put an event into the queue.
    public func sentStep(of id: UInt64) -> Int { record.cause(ofEvent: id) }

    /// When a step was, or when the last one was.
    public func time(of step: Int) -> Instant { record.times[max(0, min(step, steps))] }

    /// The last step by a time.
    public func step(at time: Instant) -> Int {
        var (low, high) = (0, steps)
        while low < high {
            let middle = (low + high + 1) / 2
            if record.times[middle] <= time { low = middle } else { high = middle - 1 }
        }
        return low
    }

    // MARK: - One message

    /// A message or a datagram with all that is in it.
    public struct Letter: Sendable, Hashable {
        /// Between whom, when, and what became of it.
        public var flight: Flight
        /// In a few words.
        public var text: String
        /// A line a field.
        public var content: [String]
        /// As bytes.
        public var byteCount: Int
    }

    /// The message or datagram that an event is, or was; nil where it is none.
    public func letter(_ id: UInt64) -> Letter? {
        guard let place = record.flight(id) else { return nil }
        let flight = flight(place)
        switch record.flights[place].load {
        case .message(let letter):
            var bytes: [UInt8] = []
            letter.message.encode(into: &bytes)
            return Letter(
                flight: flight, text: letter.message.text, content: letter.message.content,
                byteCount: bytes.count)
        case .datagram(_, let bytes):
            let content = Datagrams.request(bytes)
            return Letter(
                flight: flight, text: content.joined(separator: ", "), content: content, byteCount: bytes.count)
        case .reply(let place, let bytes):
            let content = Datagrams.reply(bytes, isIPv6: !addresses[place].isIPv4)
            return Letter(
                flight: flight, text: content.joined(separator: ", "), content: content, byteCount: bytes.count)
        }
    }
}

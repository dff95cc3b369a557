// Makes sealed frames of one session.

import Primitives
import Wire

/// Makes sealed frames of one session: gives data frames their numbers.
package struct FrameMaker: Sendable {
    private let key: BusKey
    /// Random, drawn each time that the bus starts; never 0.
    package let session: UInt64
    /// The number that the next data frame gets.
    package private(set) var nextSequence: UInt64 = 1

    package init(key: BusKey, session: UInt64) {
        precondition(session != 0, "a session has a number")
        self.key = key
        self.session = session
    }

    /// The next frame of what waits.
    ///
    /// - Parameters:
    ///   - queue: what waits; what the frame holds is taken out.
    ///   - limit: bytes of the whole frame at most.
    /// - Returns: the incarnation that it is for, 0 for all, and its bytes; nil where nothing waits.
    package mutating func data(
        from queue: inout OutgoingQueue, limit: Int
    ) -> (destination: UInt64, frame: [UInt8])? {
        guard var draft = draft(from: &queue, limit: limit) else { return nil }
        seal(&draft.frame)
        return draft
    }

    /// The next frame of what waits, before it is sealed: only copies bytes, for those who hold a lock meanwhile.
    package mutating func draft(
        from queue: inout OutgoingQueue, limit: Int
    ) -> (destination: UInt64, frame: [UInt8])? {
        guard !queue.isEmpty else { return nil }
        let overhead = BusFrameHead.byteCount + BusFrameHead.macByteCount
        var frame: [UInt8] = []
        frame.reserveCapacity(min(limit, queue.byteCount + 2 * overhead))
        head(.messages).encode(into: &frame)
        guard let body = queue.nextBody(limit: limit - overhead, into: &frame) else { return nil }
        frame[BusFrameHead.kindOffset] = body.kind.rawValue
        nextSequence += 1
        return (body.destination, frame)
    }

    package func seal(_ frame: inout [UInt8]) { key.seal(&frame) }

    package func greeting(_ greeting: BusGreeting) -> [UInt8] { control(.greeting) { greeting.encode(into: &$0) } }

    package func wanted(_ wanted: BusWanted) -> [UInt8] { control(.wanted) { wanted.encode(into: &$0) } }

    package func mark(oldest: UInt64) -> [UInt8] { control(.mark) { $0.append(bigEndian: oldest) } }

    private func head(_ kind: BusFrameKind) -> BusFrameHead {
        BusFrameHead(kind: kind, cluster: key.cluster, session: session, sequence: nextSequence)
    }

    private func control(_ kind: BusFrameKind, _ body: (inout [UInt8]) -> Void) -> [UInt8] {
        var frame: [UInt8] = []
        head(kind).encode(into: &frame)
        body(&frame)
        key.seal(&frame)
        return frame
    }
}

/// Walks over the replies of a step: those to announces in their order, whatever stands between them.

import Primitives
import TrackerLogic
import Wire

struct ReplyCursor {
    /// One reply to a datagram.
    struct Reply {
        var datagram: Datagram
        var bytes: [UInt8]

        var action: UInt32 { bytes.count >= 8 ? bytes.span.bytes.u32(at: 0) : .max }
        var transactionID: TransactionID {
            TransactionID(bytes.count >= 8 ? bytes.span.bytes.u32(at: 4) : 0)
        }
    }

    private let effects: Effects
    private var nextDatagram = 0
    private var nextAnswer = 0

    init(_ effects: Effects) { self.effects = effects }

    /// The next reply to an announce, if `isWanted` takes it.
    mutating func nextAnnounce(where isWanted: (Reply) -> Bool) -> Reply? {
        while nextDatagram < effects.replies.datagrams.count {
            let reply = Reply(
                datagram: effects.replies.datagrams[nextDatagram], bytes: effects.replies.payload(nextDatagram))
            if reply.action == 1 {
                guard isWanted(reply) else { return nil }
                nextDatagram += 1
                return reply
            }
            nextDatagram += 1
        }
        return nil
    }

    /// The next answer to somebody over HTTP.
    mutating func answer() -> Answer? {
        guard nextAnswer < effects.answers.count else { return nil }
        defer { nextAnswer += 1 }
        return effects.answers[nextAnswer]
    }
}

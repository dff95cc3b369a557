// One reply to a datagram.

import Primitives
import TrackerLogic
import Wire

/// One reply to a datagram.
struct Reply {
    var datagram: Datagram
    var bytes: [UInt8]

    var action: UInt32 { bytes.count >= 8 ? bytes.span.bytes.u32(at: 0) : .max }
    var transactionID: TransactionID { TransactionID(bytes.count >= 8 ? bytes.span.bytes.u32(at: 4) : 0) }
}

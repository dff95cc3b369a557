// All that happens, as one number.

import Primitives

/// All that happens, as one number.
///
/// The number takes in every transition: what happened, to whom, when, what was sent and written, and the state it led
/// to. Two runs with one hash went the same way. Nothing in it depends on the process, the build or a hash table.
struct TraceHash: Sendable {
    private(set) var value: UInt64 = 0x5377_6D6B_5472_6163

    mutating func absorb(_ word: UInt64) { value = mixed(value ^ word) &+ 0x9E37_79B9_7F4A_7C15 }

    mutating func absorb(_ bytes: [UInt8]) { absorb(checksum(bytes.span.bytes)) }
}

// A member that lies.

import Primitives
import TrackerLogic
import Wire

/// A member that lies: it knows the cluster's key, and says what no tracker would.
///
/// Each message that it sends may have a number in it changed to one of those at which arithmetic breaks. What it
/// changes deep inside, in entries and in chunks of the state, is sealed anew, so that no checksum gives it away. It
/// promises nothing, and nothing is promised to those who listen to it, but that none of them traps, ever.
struct ByzantineMember: Sendable {
    private var random: RandomStream
    private(set) var lies = 0

    init(random: RandomStream) { self.random = random }

    /// What it says in the place of a message.
    mutating func twist(_ message: ClusterMessage) -> ClusterMessage {
        var twisted = message
        switch message.body {
        case .prepare(let entry, let position) where random.oneIn(2):
            twisted.body = .prepare(entry: twist(entry: entry), at: position)
        case .answer(let answer) where answer.pending != nil && random.oneIn(2):
            let pending = answer.pending.map { twist(entry: $0) }
            twisted.body = .answer(VoterAnswer(position: answer.position, pending: pending))
        case .entries(var entries, let position) where !entries.isEmpty && random.oneIn(2):
            let place = random.below(entries.count)
            entries[place] = twist(entry: entries[place])
            twisted.body = .entries(entries, at: position)
        case .chunk(let number, let index, let bytes) where bytes.count > 40 && random.oneIn(2):
            twisted.body = .chunk(number: number, index: index, bytes: twist(chunk: bytes))
        default: twisted = twistAnywhere(message)
        }
        if twisted != message { lies += 1 }
        return twisted
    }

    /// The same message, of an epoch that nobody has promised.
    mutating func twistEpoch(_ message: ClusterMessage) -> ClusterMessage {
        var twisted = message
        twisted.epoch.round = number()
        var bytes: [UInt8] = []
        twisted.encode(into: &bytes)
        guard let read = try? ClusterMessage(bytes) else { return message }
        lies += 1
        return read
    }

    /// Writes a number over some bytes; what can no longer be read is said as it was.
    private mutating func twistAnywhere(_ message: ClusterMessage) -> ClusterMessage {
        var bytes: [UInt8] = []
        message.encode(into: &bytes)
        for _ in 0..<4 {
            var changed = bytes
            // Magic and version stay, and mostly the sender: a stranger is not listened to.
            patch(&changed, from: random.oneIn(8) ? 4 : 16)
            if let twisted = try? ClusterMessage(changed) { return twisted }
        }
        return message
    }

    /// An entry that says something else; what no receiver would read is said as it was.
    private mutating func twist(entry: Entry) -> Entry {
        var (header, bytes) = (entry.header, entry.bytes)
        switch random.below(9) {
        case 0: header.index = number()
        case 1: header.time = WallTime(milliseconds: Int64(bitPattern: number()))
        case 2: header.updateCount = UInt32(truncatingIfNeeded: number())
        case 3: header.ticketsOffset = UInt32(truncatingIfNeeded: number())
        case 4: header.previous = number()
        case 5: header.epoch.round = number()
        case 6: header.attempt = UInt32(truncatingIfNeeded: number())
        default: patch(&bytes, from: EntryHeader.byteCount)
        }
        header.seal(&bytes)
        return (try? Entry(bytes)) ?? entry
    }

    private mutating func twist(chunk: [UInt8]) -> [UInt8] {
        var bytes = Array(chunk.dropLast(8))
        patch(&bytes, from: 2)
        let sum = checksum(bytes.span.bytes)
        bytes.append(bigEndian: sum)
        return bytes
    }

    private mutating func patch(_ bytes: inout [UInt8], from first: Int) {
        guard bytes.count > first else { return }
        let offset = first + random.below(bytes.count - first)
        var word: [UInt8] = []
        word.append(bigEndian: number())
        for place in 0..<[1, 2, 4, 8][random.below(4)] where offset + place < bytes.count {
            bytes[offset + place] = word[place]
        }
    }

    /// A number at which sums overflow, or places end.
    private mutating func number() -> UInt64 {
        switch random.below(10) {
        case 0: 0
        case 1: .max
        case 2: .max - UInt64(random.below(16))
        case 3: UInt64(1) << 63
        case 4: NumberBounds.index - UInt64(random.below(3))
        case 5: NumberBounds.roundJump - UInt64(random.below(3))
        case 6: UInt64(UInt32.max) << 32 | UInt64(UInt32.max - 1)
        case 7: 1 << UInt64(random.below(64))
        case 8: UInt64(random.below(1000))
        default: random.next()
        }
    }
}

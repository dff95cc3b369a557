// Short names for the values that the tables about single machines are full of.

import Primitives
import TrackerLogic
import Wire

extension Instant {
    /// So many milliseconds after the clock's origin.
    static func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }
}

extension Epoch {
    init(_ round: UInt64, by id: UInt32) { self.init(round: round, id: id) }
}

extension Life {
    /// A life of a tracker, the first one by default.
    init(_ id: UInt32, life: UInt64 = 1) { self.init(id: id, incarnation: life) }
}

extension Entry {
    /// An entry as a master makes it; `waiting` are the numbers of the requests that wait for its first update.
    static func made(
        _ index: UInt64, after previous: UInt64 = 0, _ epoch: Epoch = Epoch(1, by: 1), attempt: UInt32 = 0,
        updates: [Update] = [.setInterval(60)], waiting: [UInt64] = []
    ) -> Entry {
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        for update in updates { update.encode(into: &bytes) }
        let header = EntryHeader(
            index: index, epoch: epoch, attempt: attempt, time: WallTime(milliseconds: 1000), origin: 1,
            updateCount: UInt32(updates.count), ticketsOffset: UInt32(bytes.count), previous: previous)
        var tickets = Tickets()
        for number in waiting { _ = tickets.append(ordinal: 0, life: Life(1), number: number) }
        tickets.encode(into: &bytes)
        let chain = header.seal(&bytes)
        return Entry(sealed: bytes, header, chain: chain)
    }

    /// An entry of so many bytes, which say nothing: for what must not look at them.
    static func opaque(_ index: UInt64, byteCount: Int) -> Entry {
        let header = EntryHeader(index: index, epoch: .zero, time: WallTime(milliseconds: 0), updateCount: 0)
        return Entry(sealed: Array(repeating: 0, count: byteCount), header, chain: 1)
    }
}

extension SnapshotChunk {
    /// A chunk that is sound, with no contents.
    static func sound(_ number: UInt32, at index: UInt64, chain: UInt64 = 1) -> SnapshotChunk {
        var bytes: [UInt8] = [2, UInt8(ascii: number == 0 ? "R" : "S")]
        bytes.append(bigEndian: number)
        bytes.append(bigEndian: index)
        bytes.append(bigEndian: 1000 as Int64)
        bytes.append(bigEndian: chain)
        let sum = checksum(bytes.span.bytes)
        bytes.append(bigEndian: sum)
        return SnapshotChunk(number: number, index: index, bytes: bytes)
    }

    /// Says that there are no more.
    static func none(_ number: UInt32, at index: UInt64) -> SnapshotChunk {
        SnapshotChunk(number: number, index: index, bytes: [])
    }
}

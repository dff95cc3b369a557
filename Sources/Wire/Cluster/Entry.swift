// An entry of the log, whole.

import Primitives

/// An entry of the log that is known to be whole: its bytes, with their header and their running hash.
///
/// Bytes that came from elsewhere become an entry by being checked, once, where they come in; a master's own by being
/// sealed. From there on nobody checks them again.
public struct Entry: Sendable, Hashable {
    /// As the bytes say.
    public private(set) var header: EntryHeader
    /// All of it, as it goes to the disk and to the other trackers.
    public private(set) var bytes: [UInt8]
    /// The running hash of the log up to and including this entry.
    public let chain: UInt64

    /// The place in the log that it brings a state to.
    public var position: Position { Position(index: header.index, chain: chain) }

    /// Checks bytes that came from a disk or from another tracker.
    ///
    /// - Throws: `EntryDamaged` where they are no entry, or not the one that was written.
    public init(_ bytes: [UInt8]) throws(EntryDamaged) {
        var chain: UInt64 = 0
        header = try EntryHeader(bytes, chain: &chain)
        self.bytes = bytes
        self.chain = chain
    }

    /// Takes what has just been sealed.
    ///
    /// - Parameters:
    ///   - bytes: the entry, with its header in its place.
    ///   - header: which was sealed, with the offset of its tickets.
    ///   - chain: what `EntryHeader.seal` has returned.
    public init(sealed bytes: [UInt8], _ header: EntryHeader, chain: UInt64) {
        self.header = header
        self.bytes = bytes
        self.chain = chain
    }

    /// The same value, proposed by another ballot.
    public func proposed(_ ballot: Ballot, isAlone: Bool) -> Entry {
        var entry = self
        EntryHeader.restamp(&entry.bytes, epoch: ballot.epoch, attempt: ballot.attempt, isAlone: isAlone)
        entry.header.epoch = ballot.epoch
        entry.header.attempt = ballot.attempt
        entry.header.isAlone = isAlone
        return entry
    }

    /// Whether this one and another at its place may both have been decided, in survivor mode: they are neither the
    /// same value, nor of one master, nor is the other what was decided to make this one void.
    ///
    /// What one alone has decided need not be its master's: whoever keeps its own vote as decided says so in the epoch
    /// that it has promised by then, in which a master may have proposed something else.
    public func rivals(_ other: Entry) -> Bool {
        guard chain != other.chain, header.index == other.header.index, header.updateCount > 0,
            header.epoch != other.header.epoch || other.header.isAlone && !header.isAlone
        else { return false }
        guard other.header.updateCount == 0, let void = try? Tickets(other.bytes, other.header) else { return true }
        return void != (try? Tickets(bytes, header))
    }

    /// Whether it takes swarms out, whole shards of them, and does nothing else.
    public var emptiesSwarms: Bool {
        var count: UInt32 = 0
        var cursor = UpdateCursor(header)
        while let update = try? cursor.next(bytes) {
            guard case .emptyShard = update else { return false }
            count += 1
        }
        return count > 0 && count == header.updateCount
    }

    /// The interval that it sets last, in seconds; nil where it sets none.
    public var interval: UInt32? {
        var last: UInt32?
        var cursor = UpdateCursor(header)
        while let update = try? cursor.next(bytes) { if case .setInterval(let seconds) = update { last = seconds } }
        return last
    }
}

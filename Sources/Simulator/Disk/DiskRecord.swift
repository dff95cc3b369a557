// What is on a node's disk for certain.

import Primitives
import TrackerLogic
import Wire

/// What is on a node's disk for certain: its promise, the chunks of its snapshot, and the entries after them.
package struct DiskRecord: Sendable, Equatable {
    package var promise: Promise?
    /// In the order of their numbers.
    package private(set) var chunks: [SnapshotChunk] = []
    package private(set) var entries: [Entry] = []
    /// The index of the first of `entries`.
    package private(set) var firstIndex: UInt64 = 1

    package init() {}

    /// The last entry that the record holds, or held before it was trimmed.
    package var lastIndex: UInt64 { firstIndex + UInt64(entries.count) - 1 }

    package func entry(_ index: UInt64) -> Entry? {
        guard index >= firstIndex, index <= lastIndex else { return nil }
        return entries[Int(index - firstIndex)]
    }

    /// - Returns: whether it could be carried out; an entry that leaves a gap in the log cannot.
    package mutating func apply(_ change: Persist.Change) -> Bool {
        switch change {
        case .promise(let new):
            promise = new
        case .append(let entry):
            let index = entry.header.index
            if entries.isEmpty { firstIndex = index }
            guard index >= firstIndex, index <= lastIndex + 1 else { return false }
            entries.removeLast(Int(lastIndex + 1 - index))
            entries.append(entry)
        case .saveChunk(let chunk):
            put(chunk)
        case .trim(let through):
            guard through >= firstIndex else { return true }
            entries.removeFirst(min(entries.count, Int(through - firstIndex) + 1))
            firstIndex = through + 1
        case .replaceAll(let new):
            firstIndex = lastIndex + 1
            entries = []
            chunks = []
            for chunk in new { put(chunk) }
        }
        return true
    }

    private mutating func put(_ chunk: SnapshotChunk) {
        let place = chunks.firstIndex { $0.number >= chunk.number } ?? chunks.count
        if place < chunks.count, chunks[place].number == chunk.number {
            chunks[place] = chunk
        } else {
            chunks.insert(chunk, at: place)
        }
    }

    // MARK: - Planted damage

    mutating func forgetLastEntry() { if !entries.isEmpty { entries.removeLast() } }

    mutating func forgetChunk(_ place: Int) { if place < chunks.count { chunks.remove(at: place) } }
}

extension TrackerNode {
    /// A node that has read a record back, and has not started yet.
    ///
    /// - Parameters:
    ///   - record: what is on its disk.
    ///   - through: entries after this one are left out.
    ///   - configuration: shards are counted as the record says.
    ///   - secret: the cluster's; drawn where there is none, or the record has one.
    ///   - random: what the node draws from.
    /// - Returns: a node that knows what the record holds.
    /// - Throws: what of it cannot be read.
    static func recovered(
        from record: DiskRecord, through: UInt64 = .max, configuration: NodeConfiguration,
        secret: ClusterSecret? = nil, random: inout RandomStream
    ) throws(RecordDamaged) -> TrackerNode {
        let incarnation = random.next()
        let drawn = ClusterSecret(random.next(), random.next(), random.next(), random.next())
        var node = TrackerNode(
            configuration: configuration, incarnation: incarnation, secret: secret ?? drawn,
            record: record.promise, seed: random.next())
        do throws(ChunkDamaged) {
            for chunk in record.chunks { try node.restore(chunk) }
        } catch {
            throw .chunk(error)
        }
        do throws(EntryDamaged) {
            for (offset, entry) in record.entries.enumerated() where record.firstIndex + UInt64(offset) <= through {
                try node.restore(entry: entry.bytes)
            }
        } catch {
            throw .entry(error)
        }
        return node
    }
}

/// A part of a record that cannot be read back.
enum RecordDamaged: Error, CustomStringConvertible {
    case chunk(ChunkDamaged)
    case entry(EntryDamaged)

    var description: String {
        switch self {
        case .chunk(let damage): "\(damage)"
        case .entry(let damage): "\(damage)"
        }
    }
}

// Reads a node's record back into a node.

import Datagrams
import Foundation
import Logging
import Primitives
import Settings
import Storage
import TrackerLogic
import Wire

/// Reads a node's record back into a node: the promise, the snapshot, and the log after it.
struct RecordReader {
    let configuration: ServerConfiguration
    let logger: Logger

    /// Opens the record and reads it.
    ///
    /// A record that is damaged is set aside where there is a cluster to fetch the state from: its tracker begins as
    /// one that has lost its memory, and so without a vote, rather than vote with holes. One that is alone says so and
    /// stops, unless its operator accepts the loss.
    ///
    /// - Throws: `StoreError`; the store is closed then.
    func open() throws -> (Store, TrackerNode) {
        do {
            return try openAsItIs()
        } catch let error as StoreError where error.isUnreadable || error.isPartial {
            if configuration.acceptsLoss { return try openWithWhatIsLeft(error) }
            guard configuration.node.cluster.hasBus, error.isUnreadable else { throw error }
            let place = try Store.setAside(
                directory: configuration.dataDirectory, durability: configuration.durability)
            logger.error(
                """
                \(error.cause) It has been moved away for you: this tracker joins its cluster as a newcomer, without a \
                vote until it holds the whole state
                """,
                metadata: ["record": "\(place)"])
            return try openAsItIs()
        }
    }

    private func openAsItIs() throws -> (Store, TrackerNode) {
        let store = try Store.open(directory: configuration.dataDirectory, options: options)
        do {
            for note in store.notes { logger.warning("\(note)") }
            return (store, try node(from: store))
        } catch {
            store.close()
            throw error
        }
    }

    private var options: StoreOptions {
        var options = StoreOptions()
        options.durability = configuration.durability
        options.shardCount = configuration.node.shardCount
        return options
    }

    /// Begins a record with what is left of a damaged one, which stays beside it.
    private func openWithWhatIsLeft(_ error: StoreError) throws -> (Store, TrackerNode) {
        var options = options
        options.acceptsLoss = true
        var left: [Persist.Change] = []
        // Where not even a part can be read, nothing is left.
        if let damaged = try? Store.open(directory: configuration.dataDirectory, options: options) {
            defer { damaged.close() }
            var node = try node(from: damaged)
            left = node.takeRestored()
        }
        let place = try Store.setAside(directory: configuration.dataDirectory, durability: configuration.durability)
        let store = try Store.open(directory: configuration.dataDirectory, options: self.options)
        defer { store.close() }
        try store.recover { record in
            // What it began with: it has promised that much, whatever is left.
            guard case .promise(var promise) = record else { return }
            if case .promise(let old)? = left.first {
                promise = Promise(
                    epoch: max(promise.epoch, old.epoch), incarnation: old.incarnation, secret: old.secret,
                    shardCount: old.shardCount)
                left.removeFirst()
            }
            promise.hasFullState = true
            left.insert(.promise(promise), at: 0)
        }
        try store.write(left)
        store.close()
        logger.error(
            "\(error.cause) The loss was accepted: the tracker goes on with what is left of it",
            metadata: ["record": "\(place)"])
        return try openAsItIs()
    }

    /// A node that holds what its earlier lives have answered.
    ///
    /// - Throws: `StoreError` where the record is not whole, and the loss not accepted: the node must not serve with
    ///   holes.
    func node(from store: Store) throws -> TrackerNode {
        var system = SystemRandomNumberGenerator()
        var node: TrackerNode?
        var entries = 0
        let isLenient = store.acceptsLoss
        var isCutShort = false
        func restoring(_ promise: Promise?, _ body: (inout TrackerNode) throws -> Void) rethrows {
            var restored =
                node
                ?? TrackerNode(
                    // 0 stands for nobody.
                    configuration: planted(configuration.node), incarnation: max(system.next(), 1),
                    secret: ClusterSecret(system.next(), system.next(), system.next(), system.next()),
                    record: promise, seed: system.next())
            // One owner at a time: a copy of the table would double it.
            node = nil
            defer { node = restored }
            try body(&restored)
        }
        try store.recover { record in
            do {
                switch record {
                case .promise(let promise):
                    guard promise.hasFullState || configuration.node.cluster.hasBus || isLenient else {
                        throw StoreError.incomplete(path: store.path)
                    }
                    restoring(promise) { _ in }
                case .chunk(let chunk): try restoring(nil) { node in try node.restore(chunk) }
                case .entry(_, let bytes):
                    guard !isCutShort else { return }
                    try restoring(nil) { node in try node.restore(entry: bytes) }
                    entries += 1
                }
            } catch let error as ChunkDamaged {
                guard !isLenient else { return }
                throw StoreError.damaged(
                    path: store.path, detail: "chunk \(error.number) of the snapshot cannot be read")
            } catch is EntryDamaged {
                // What follows an entry that is lost means something else without it.
                isCutShort = isLenient
                guard !isLenient else { return }
                throw StoreError.damaged(path: store.path, detail: "an entry of the log cannot be read")
            }
        }
        restoring(nil) { _ in }
        guard let node else { preconditionFailure("a node was made") }
        let counts = node.state.table.counts
        logger.info(
            "record read",
            metadata: [
                "data": "\(configuration.dataDirectory)", "torrents": "\(counts.torrents)", "peers": "\(counts.peers)",
                "registered": "\(node.state.registry.count)", "entries": "\(entries)", "index": "\(node.state.index)",
            ])
        return node
    }
}

#if PLANTED_BUGS
    /// With the mistake that the environment names: only in a program that is built with mistakes.
    private func planted(_ configuration: NodeConfiguration) -> NodeConfiguration {
        var configuration = configuration
        let name = ProcessInfo.processInfo.environment["PLANTED_BUG"] ?? ""
        configuration.plantedBug = PlantedBug(rawValue: name)
        return configuration
    }
#else
    private func planted(_ configuration: NodeConfiguration) -> NodeConfiguration { configuration }
#endif

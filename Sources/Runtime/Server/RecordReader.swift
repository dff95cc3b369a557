/// Reads a node's record back into a node: the promise, the snapshot, and the log after it.

import Datagrams
import Foundation
import Logging
import Primitives
import TrackerLogic
import Wire

struct RecordReader {
    let configuration: ServerConfiguration
    let logger: Logger

    /// Opens the record and reads it.
    ///
    /// A record that nobody can read is set aside where there is a cluster to fetch the state from: its tracker begins
    /// with an empty one, and so without a vote, rather than vote with holes.
    ///
    /// - Throws: `StoreError`; the store is closed then.
    func open() throws -> (Store, TrackerNode) {
        do {
            return try openAsItIs()
        } catch let error as StoreError where configuration.node.cluster != nil && error.isUnreadable {
            let place = try Store.setAside(directory: configuration.dataDirectory)
            logger.error(
                "\(error.description) It has been moved away for you: this tracker joins its cluster as a newcomer",
                metadata: ["record": "\(place)"])
            return try openAsItIs()
        }
    }

    private func openAsItIs() throws -> (Store, TrackerNode) {
        var options = StoreOptions()
        options.durability = configuration.durability
        let store = try Store.open(directory: configuration.dataDirectory, options: options)
        do {
            return (store, try node(from: store))
        } catch {
            store.close()
            throw error
        }
    }

    /// A node that holds what its earlier lives have answered.
    ///
    /// - Throws: `StoreError` where the record is not whole: the node must not serve with holes.
    func node(from store: Store) throws -> TrackerNode {
        var system = SystemRandomNumberGenerator()
        var node: TrackerNode?
        var entries = 0
        func restoring(_ promise: Promise?, _ body: (inout TrackerNode) throws -> Void) rethrows {
            var restored =
                node
                ?? TrackerNode(
                    // 0 stands for nobody.
                    configuration: configuration.node, incarnation: max(system.next(), 1),
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
                    guard promise.isWhole || configuration.node.cluster != nil else {
                        throw StoreError.notWhole(path: store.path)
                    }
                    restoring(promise) { _ in }
                case .chunk(let chunk): try restoring(nil) { node in try node.restore(chunk) }
                case .entry(_, let bytes):
                    try restoring(nil) { node in try node.restore(entry: bytes) }
                    entries += 1
                }
            } catch let error as ChunkDamaged {
                throw StoreError.damaged(
                    path: store.path, detail: "chunk \(error.number) of the snapshot cannot be read")
            } catch is EntryDamaged {
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

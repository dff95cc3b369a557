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
                    configuration: configuration.node, incarnation: system.next(),
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

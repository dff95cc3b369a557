// The record of one transfer, opened once.

import Foundation
import Primitives
import Wire

/// The record of one transfer, opened when it is needed first, and kept open.
///
/// Only jobs of the engine's `recorder` use it, so that nothing is done at the same time.
final class ResumeRecord: @unchecked Sendable {
    let path: String
    private let infoHash: InfoHash
    private var opened: ResumeStore?

    init(path: String, infoHash: InfoHash) {
        self.path = path
        self.infoHash = infoHash
    }

    /// The store, opened; nil where there is no file and none is to be made.
    ///
    /// A file that somebody has taken away is made anew: what was noted there is of no use to the next start.
    func store(makes: Bool = true) throws -> ResumeStore? {
        let exists = FileManager.default.fileExists(atPath: path)
        if let opened, exists { return opened }
        opened = nil
        guard exists || makes else { return nil }
        let store = try ResumeStore(path: path, infoHash: infoHash)
        opened = store
        return store
    }

    /// Closes the file and takes it away.
    func delete() {
        opened = nil
        for suffix in ["", "-wal", "-shm", "-journal"] {
            try? FileManager.default.removeItem(atPath: path + suffix)
        }
    }
}

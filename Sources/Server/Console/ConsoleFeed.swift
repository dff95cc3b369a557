// What the console shows of one process, over all lives of its node.

import Primitives
import Synchronization
import TrackerLogic
import Web

/// What the console shows of one process, over all lives of its node: what has happened, the figures of the last
/// minutes, and from what the tracker is cut off.
final class ConsoleFeed: Sendable {
    let log: TransitionLog
    let history = History()
    let cuts: Cuts
    private let recorder: Mutex<TransitionRecorder>

    /// - Parameters:
    ///   - incarnation: of the process's first life.
    ///   - id: the tracker's number; 0 while it has none.
    ///   - cuts: from what it is cut off.
    init(incarnation: UInt64, id: UInt32, cuts: Cuts) {
        log = TransitionLog(incarnation: incarnation)
        recorder = Mutex(TransitionRecorder(log: log, id: id))
        self.cuts = cuts
    }

    /// Another life of the node begins, perhaps by another number.
    func begins(as id: UInt32) { recorder.withLock { $0.begins(as: id) } }

    /// Takes down what has happened.
    func record(_ body: (inout TransitionRecorder) -> Void) { recorder.withLock { body(&$0) } }
}

// Events and writes as numbers for the trace's hash, and writes in a few words.

import TrackerLogic
import Wire

extension Event {
    /// A number for the trace's hash.
    var tag: UInt64 {
        switch self {
        case .started: 1
        case .datagramsReceived: 2
        case .requestReceived: 3
        case .persisted: 4
        case .persistFailed: 5
        case .deadlineReached: 6
        case .commandReceived: 7
        case .messageReceived: 8
        case .busConnected: 9
        case .busLost: 10
        case .reportMade: 11
        }
    }
}

extension StorageFailure {
    var tag: UInt64 {
        switch self {
        case .full: 1
        case .locked: 2
        case .readOnly: 3
        case .broken: 4
        }
    }
}

extension Persist.Change {
    var name: String {
        switch self {
        case .promise(let promise): "promise \(promise.epoch)"
        case .append(let entry): "entry \(entry.header.index) of \(entry.bytes.count) bytes"
        case .saveChunk(let chunk): "chunk \(chunk.number) at \(chunk.index)"
        case .trim(let through): "trim through \(through)"
        case .replaceAll: "replacement of all"
        }
    }
}

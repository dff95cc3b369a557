// Writes that a node has asked for, and what each of them is.

import Primitives
import Wire

/// The writes under way, oldest first: they complete in the order in which they were asked for.
struct WriteQueue: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case promise(Epoch)
        case entry(Ballot)
        /// All of the state, where the disk had fallen behind or a newcomer has it at last.
        case everything(index: UInt64)
        /// The mark that the record holds the whole state.
        case fullStateMark
        case chunk(Int)
        case trim
        case final
        /// That the last life had left in good order is taken back.
        case stopRecalled
    }

    fileprivate struct Write: Sendable, Hashable {
        var token: PersistToken
        var kind: Kind
    }

    private var writes: [Write] = []
    private var lastToken: UInt64 = 0
    /// Why the last write was not made; nil where it was.
    private(set) var failure: StorageFailure?

    var isEmpty: Bool { writes.isEmpty }
    var count: Int { writes.count }
    var kinds: [Kind] { writes.map { $0.kind } }

    /// Whether a promise is on its way to the disk.
    var hasPromise: Bool { writes.contains { if case .promise = $0.kind { true } else { false } } }

    /// Whether the note of an orderly stop is being taken back.
    var hasRecall: Bool { writes.contains { if case .stopRecalled = $0.kind { true } else { false } } }

    /// - Returns: the token by which its completion is told.
    mutating func append(_ kind: Kind) -> PersistToken {
        lastToken += 1
        let token = PersistToken(lastToken)
        writes.append(Write(token: token, kind: kind))
        return token
    }

    mutating func take(_ token: PersistToken) -> Kind {
        precondition(!writes.isEmpty && writes[0].token == token, "writes complete in the order they were asked for")
        // The last one is taken without moving any.
        return (writes.count == 1 ? writes.removeLast() : writes.removeFirst()).kind
    }

    /// A write was made.
    ///
    /// - Returns: whether the one before it was not.
    mutating func succeeded() -> Bool {
        defer { failure = nil }
        return failure != nil
    }

    /// A write was not made.
    ///
    /// - Returns: whether the one before it was.
    mutating func failed(_ failure: StorageFailure) -> Bool {
        defer { self.failure = failure }
        return self.failure == nil
    }
}

extension WriteQueue {
    mutating func walk(_ archive: inout Archive) {
        writes.walk(&archive)
        lastToken.walk(&archive)
        failure.walk(&archive)
    }
}

extension WriteQueue.Write: Archived {
    static var blank: WriteQueue.Write { WriteQueue.Write(token: PersistToken(0), kind: .trim) }

    mutating func walk(_ archive: inout Archive) {
        token.rawValue.walk(&archive)
        kind.walk(&archive)
    }
}

extension WriteQueue.Kind: Archived {
    static var blank: WriteQueue.Kind { .trim }

    private var tag: UInt8 {
        switch self {
        case .promise: 0
        case .entry: 1
        case .everything: 2
        case .fullStateMark: 3
        case .chunk: 4
        case .trim: 5
        case .final: 6
        case .stopRecalled: 7
        }
    }

    mutating func walk(_ archive: inout Archive) {
        var epoch = if case .promise(let epoch) = self { epoch } else { Epoch.zero }
        var ballot = if case .entry(let ballot) = self { ballot } else { Ballot.blank }
        var index: UInt64 = if case .everything(let index) = self { index } else { 0 }
        var chunk = if case .chunk(let number) = self { number } else { 0 }
        switch archive.tag(tag) {
        case 0:
            epoch.walk(&archive)
            self = .promise(epoch)
        case 1:
            ballot.walk(&archive)
            self = .entry(ballot)
        case 2:
            index.walk(&archive)
            self = .everything(index: index)
        case 3: self = .fullStateMark
        case 4:
            chunk.walk(&archive)
            self = .chunk(chunk)
        case 5: self = .trim
        case 6: self = .final
        case 7: self = .stopRecalled
        default: archive.refuse()
        }
    }
}

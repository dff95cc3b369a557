// What has happened in the cluster, as this tracker saw it: the last ten thousand transitions.

import Primitives
import Synchronization
import Wire

/// Something that has happened, for the timeline.
public struct Transition: Sendable, Equatable {
    /// What sort of thing; a promise, like the keys of the API.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The master is missed.
        case election
        /// A tracker stands for master.
        case vote
        /// Entries were decided; `count` of them.
        case commit
        /// A tracker has become master.
        case master
        /// A master is none any more.
        case stepDown
        /// A tracker follows a master.
        case follow
        /// The whole state is fetched, or is there.
        case transfer
        /// Something went wrong, or was broken on purpose.
        case fault
        /// It works again.
        case mended
        /// Members, rules, torrents or the like have changed.
        case change
    }

    /// Counted from 1 in each life of the tracker that tells.
    public var number: UInt64
    /// By the clock of the tracker that tells.
    public var at: WallTime
    /// Whose lane it belongs into.
    public var tracker: UInt32
    /// What sort of thing.
    public var kind: Kind
    /// In a sentence.
    public var text: String
    /// Nil where it has none.
    public var epoch: Epoch?
    /// The numbers of transitions that have led to it, as far as this tracker can tell.
    public var causes: [UInt64]
    /// Entries, for a commit.
    public var count: UInt64?

    /// Takes the fields as they are.
    public init(
        number: UInt64 = 0, at: WallTime, tracker: UInt32, kind: Kind, text: String, epoch: Epoch? = nil,
        causes: [UInt64] = [], count: UInt64? = nil
    ) {
        self.number = number
        self.at = at
        self.tracker = tracker
        self.kind = kind
        self.text = text
        self.epoch = epoch
        self.causes = causes
        self.count = count
    }
}

/// The last transitions, in order: the oldest go.
public final class TransitionLog: Sendable {
    /// Transitions that are kept.
    public static let capacity = 10_000
    /// Of them, commits: they come all the time, and are to push nothing else out.
    static let commitCapacity = 1_000

    private struct State {
        var transitions: [Transition] = []
        var commits = 0
        var last: UInt64 = 0
    }

    /// Of the life that tells: numbers begin anew in each.
    public let incarnation: UInt64
    private let state = Mutex(State())

    /// An empty log of one life.
    public init(incarnation: UInt64) { self.incarnation = incarnation }

    /// Appends a transition, and gives it its number.
    @discardableResult
    public func append(_ transition: Transition) -> UInt64 {
        state.withLock { state in
            state.last += 1
            var transition = transition
            transition.number = state.last
            if transition.kind == .commit {
                if state.commits == TransitionLog.commitCapacity {
                    state.transitions.firstIndex { $0.kind == .commit }.map { _ = state.transitions.remove(at: $0) }
                } else {
                    state.commits += 1
                }
            }
            state.transitions.append(transition)
            if state.transitions.count > TransitionLog.capacity {
                if state.transitions.removeFirst().kind == .commit { state.commits -= 1 }
            }
            return state.last
        }
    }

    /// The number of the newest; 0 before the first.
    var last: UInt64 { state.withLock { $0.last } }

    /// The transitions after a number, oldest first.
    ///
    /// - Parameters:
    ///   - number: 0 for all that are kept.
    ///   - count: how many at most.
    /// - Returns: none where nothing has happened since.
    public func after(_ number: UInt64, atMost count: Int) -> [Transition] {
        state.withLock { state in
            guard let last = state.transitions.last, last.number > number else { return [] }
            // Numbers rise, with gaps where commits have gone.
            var (low, high) = (0, state.transitions.count)
            while low < high {
                let middle = (low + high) / 2
                if state.transitions[middle].number > number { high = middle } else { low = middle + 1 }
            }
            return Array(state.transitions[low...].prefix(count))
        }
    }

    /// What a reader is told that it has seen: `INCARNATION-NUMBER`.
    func id(of transition: Transition) -> String { "\(hexadecimal(incarnation))-\(transition.number)" }

    /// The number that an id names; 0 where it is of another life, or none.
    func number(of id: String?) -> UInt64 {
        guard let id, id.utf8.count < 64 else { return 0 }
        let parts = id.split(separator: "-")
        guard parts.count == 2, parts[0] == hexadecimal(incarnation), let number = UInt64(parts[1]) else { return 0 }
        return number
    }
}

/// 16 hexadecimal digits: JavaScript has no integers beyond 2^53.
func hexadecimal(_ number: UInt64) -> String {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: number)
    return hexadecimal(bytes)
}

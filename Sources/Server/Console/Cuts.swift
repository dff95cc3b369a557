// From what this tracker is cut off on purpose, and until when.

import Datagrams
import Primitives
import Synchronization
import Web

/// From what this tracker is cut off on purpose, and until when: each cut ends by itself, whatever becomes of who asked
/// for it, and all are over when the process is.
///
/// The node's thread asks with each batch of datagrams, so that question is one load of an atomic.
package final class Cuts: FaultProvider {
    /// Cuts at once: the peers, the bus, and as many trackers as a matrix shows.
    static let maxCuts = 16

    private struct Cut {
        var target: FaultTarget
        var since: WallTime
        var until: WallTime
        var end: Instant
    }

    private let cuts = Mutex<[Cut]>([])
    /// When the cut from the peers ends, in nanoseconds of the monotonic clock; 0 for none.
    private let peersEnd = Atomic<Int64>(0)
    private let hasBus: Bool
    /// Told of each change: what begins, or ends (nil for what it ends by itself).
    private let changed = Mutex<(@Sendable (FaultTarget, _ begins: Bool) -> Void)?>(nil)

    package init(hasBus: Bool) { self.hasBus = hasBus }

    /// Has a function told of each cut that begins or ends; called once, before the first.
    package func onChange(_ tell: @escaping @Sendable (FaultTarget, _ begins: Bool) -> Void) {
        changed.withLock { $0 = tell }
    }

    // MARK: - Asking

    /// Whether clients are not heard, and not answered.
    package var isCutFromPeers: Bool {
        let end = peersEnd.load(ordering: .relaxed)
        return end != 0 && Clock.monotonic().nanoseconds < end
    }

    package var isCutFromBus: Bool { isInForce(.bus) }

    /// The trackers that are neither heard nor told anything.
    package var trackers: [UInt32] {
        let now = Clock.monotonic()
        return cuts.withLock { cuts in
            cuts.compactMap { cut in
                guard case .tracker(let id) = cut.target, cut.end > now else { return nil }
                return id
            }
        }
    }

    private func isInForce(_ target: FaultTarget) -> Bool {
        let now = Clock.monotonic()
        return cuts.withLock { $0.contains { $0.target == target && $0.end > now } }
    }

    package var faults: [InjectedFault] {
        let now = Clock.monotonic()
        return cuts.withLock { cuts in
            cuts.filter { $0.end > now }.map { cut in
                InjectedFault(target: cut.target, since: cut.since, until: cut.until, remaining: cut.end - now)
            }
        }
    }

    // MARK: - Changing

    package func cut(_ target: FaultTarget, for span: Primitives.Duration) -> Bool {
        if target != .peers, !hasBus { return false }
        let now = Clock.read()
        let end = now.monotonic + span
        let isNew = cuts.withLock { cuts -> Bool? in
            let until = WallTime(milliseconds: now.wall.milliseconds + span.wholeMilliseconds)
            if let place = cuts.firstIndex(where: { $0.target == target }) {
                cuts[place].until = until
                cuts[place].end = end
                return false
            }
            guard cuts.count < Cuts.maxCuts else { return nil }
            cuts.append(Cut(target: target, since: now.wall, until: until, end: end))
            return true
        }
        guard let isNew else { return false }
        if target == .peers { peersEnd.store(end.nanoseconds, ordering: .relaxed) }
        if isNew { tell(target, begins: true) }
        endLater(target, end)
        return true
    }

    package func mend(_ target: FaultTarget?) -> Bool {
        let ended = cuts.withLock { cuts in
            let ended = cuts.filter { target == nil || $0.target == target }.map(\.target)
            cuts.removeAll { target == nil || $0.target == target }
            return ended
        }
        for target in ended { end(target) }
        return !ended.isEmpty
    }

    /// Ends a cut when its time has come, unless it has been given another end meanwhile.
    private func endLater(_ target: FaultTarget, _ end: Instant) {
        Task.detached { [self] in
            while true {
                let left = end - Clock.monotonic()
                guard left > .zero else { break }
                try? await Task.sleep(for: .nanoseconds(left.nanoseconds))
            }
            let isOver = cuts.withLock { cuts in
                guard let place = cuts.firstIndex(where: { $0.target == target && $0.end == end }) else { return false }
                cuts.remove(at: place)
                return true
            }
            if isOver { self.end(target) }
        }
    }

    private func end(_ target: FaultTarget) {
        if target == .peers { peersEnd.store(0, ordering: .relaxed) }
        tell(target, begins: false)
    }

    private func tell(_ target: FaultTarget, begins: Bool) { changed.withLock { $0 }?(target, begins) }
}

/// The other trackers, as far as this one has heard of them, and the failure detector over them.
///
/// The list is never persisted (requirements C2). Being heard means nothing for safety: epochs and quorums alone do
/// (design 3.4, rule 1).
///
///     unknown ── heard ──► up ── silent for the detection time, or `leave` ──► down ── heard ──► up
///
/// Invariants: one entry an id; at most `maxCount` of them; a second life of an id is not heard while the first is up.

import Primitives
import Wire

struct Neighbour: Sendable, Hashable {
    var life: Life
    var heardAt: Instant
    var isUp = true
    /// The epoch of its last message.
    var epoch = Epoch.zero
    var role = ClusterRole.newcomer
    var position = Position.start
    var isWhole = false
    /// The epoch in which this master has welcomed it, and since when it has been in step.
    var installedIn = Epoch.zero
    var inStepSince: Instant?
    /// The last time that it missed the master, and of which epoch.
    var suspectedAt: Instant?
    var suspectedEpoch = Epoch.zero
    /// Whether it is blank, and which blank lives it has heard.
    var isBlank = false
    var heardBlank: [Life] = []
    /// Requests of it that this master has seen, in its epoch.
    var seen = SeenWindow()
    /// The last of them that were refused, for when the answer was lost.
    var refused: [AnsweredRequest] = []
    /// Since when a vote has been awaited from it.
    var voteAwaitedSince: Instant?
    /// Whether it was dropped from the active list for not voting; until it says hello anew.
    var isDropped = false
}

extension Neighbour {
    /// Refusals that are remembered.
    private static let maxRefused = 256

    mutating func remember(_ refusal: AnsweredRequest) {
        if refused.count >= Neighbour.maxRefused { refused.removeFirst(Neighbour.maxRefused / 2) }
        refused.append(refusal)
    }
}

struct Neighbours: Sendable, Hashable {
    /// Trackers that one cluster may have, this one not counted.
    static let maxCount = 63

    /// In rising order of id.
    private(set) var all: [Neighbour] = []

    func place(of id: UInt32) -> Int? { all.firstIndex { $0.life.id == id } }

    subscript(place: Int) -> Neighbour {
        get { all[place] }
        _modify { yield &all[place] }
    }

    subscript(id id: UInt32) -> Neighbour? { place(of: id).map { all[$0] } }

    /// What hearing somebody came to.
    enum Hearing: Sendable, Hashable {
        /// Known and up.
        case known(Int)
        /// New, or back, or in a new life.
        case appeared(Int)
        /// Another life has this id and is up.
        case taken(by: Life)
        /// There is no room for one more.
        case noRoom
    }

    /// Notes a sign of life.
    mutating func heard(_ life: Life, now: Instant, detectionTime: Duration) -> Hearing {
        if let place = place(of: life.id) {
            if all[place].life == life {
                let wasUp = all[place].isUp
                all[place].heardAt = now
                all[place].isUp = true
                return wasUp ? .known(place) : .appeared(place)
            }
            guard !all[place].isUp || now - all[place].heardAt >= detectionTime else {
                return .taken(by: all[place].life)
            }
            all[place] = Neighbour(life: life, heardAt: now)
            return .appeared(place)
        }
        if all.count >= Neighbours.maxCount {
            guard let oldest = all.indices.filter({ !all[$0].isUp }).min(by: { all[$0].heardAt < all[$1].heardAt })
            else { return .noRoom }
            all.remove(at: oldest)
        }
        let place = all.firstIndex { $0.life.id > life.id } ?? all.count
        all.insert(Neighbour(life: life, heardAt: now), at: place)
        return .appeared(place)
    }

    /// Takes those for down that were not heard for the detection time.
    ///
    /// - Returns: their ids.
    mutating func markSilent(now: Instant, detectionTime: Duration) -> [UInt32] {
        var gone: [UInt32] = []
        for place in all.indices where all[place].isUp && now - all[place].heardAt >= detectionTime {
            all[place].isUp = false
            gone.append(all[place].life.id)
        }
        return gone
    }

    /// When the next one will have been silent for too long.
    func silenceDeadline(_ detectionTime: Duration) -> Instant? {
        all.reduce(nil) { earliest($0, $1.isUp ? $1.heardAt + detectionTime : nil) }
    }

    mutating func markDown(_ place: Int) { all[place].isUp = false }

    /// All of them may have changed while nothing was heard.
    mutating func forgetAll() { all = [] }
}

/// Which numbered requests of one life have been seen: all below a floor, and a window above it.
struct SeenWindow: Sendable, Hashable {
    /// Requests that one tracker may have under way.
    static let width = 16_384

    private var floor: UInt64 = 0
    private var words: [UInt64] = []

    /// Notes a number.
    ///
    /// - Returns: whether it is new, and within the window.
    mutating func insert(_ number: UInt64) -> Bool {
        guard number >= floor, number < floor + UInt64(SeenWindow.width) else { return false }
        if words.isEmpty { words = Array(repeating: 0, count: SeenWindow.width / 64) }
        let bit = Int(number % UInt64(SeenWindow.width))
        guard words[bit / 64] & (1 << UInt64(bit % 64)) == 0 else { return false }
        words[bit / 64] |= 1 << UInt64(bit % 64)
        return true
    }

    /// Forgets a number: the request was not taken after all.
    mutating func remove(_ number: UInt64) {
        guard !words.isEmpty, number >= floor else { return }
        let bit = Int(number % UInt64(SeenWindow.width))
        words[bit / 64] &= ~(1 << UInt64(bit % 64))
    }

    /// Nothing below this number will come that anybody waits for.
    mutating func raise(to newFloor: UInt64) {
        guard newFloor > floor else { return }
        if words.isEmpty || newFloor - floor >= UInt64(SeenWindow.width) {
            words = []
        } else {
            for number in floor..<newFloor {
                let bit = Int(number % UInt64(SeenWindow.width))
                words[bit / 64] &= ~(1 << UInt64(bit % 64))
            }
        }
        floor = newFloor
    }
}

// The other trackers, as far as this one has heard of them, and the failure detector over them.

import Primitives
import Wire

/// Another tracker, as far as this one has heard of it.
struct Neighbour: Sendable, Hashable {
    var life: Life
    /// When this life was first heard, and last.
    private(set) var appearedAt: Instant
    var heardAt: Instant
    var isUp = true
    /// The epoch of its last message.
    var epoch = Epoch.zero
    /// The greatest epoch of its messages: those of a life only rise, so it hears no master of a lower one.
    var promised = Epoch.zero
    var role = ClusterRole.newcomer
    var hasFullState = false
    private(set) var progress = Progress()
    var suspicion = Suspicion()
    var memory = Memory()
    /// What this node keeps of it as its master.
    var follower = Follower()
    /// When it was last spoken to as another master.
    var addressedAt: Instant?
}

extension Neighbour {
    /// How far it has come.
    struct Progress: Sendable, Hashable {
        /// What it had applied when it last said so.
        var position = Position.start
        /// What this node had applied then: only so a position that is an interval old tells how far behind it is.
        var comparedAt: UInt64 = 0
    }

    /// The last time that it missed the master, and of which epoch.
    struct Suspicion: Sendable, Hashable {
        var at: Instant?
        var epoch = Epoch.zero
    }

    /// What it has forgotten, as it says.
    struct Memory: Sendable, Hashable {
        /// Whether it has said hello without a memory, and nothing since that tells of one.
        var isForgetful = false
        /// Whether it is blank, and which blank lives it has heard.
        var isBlank = false
        var heardBlank: [Life] = []
        /// The epoch in which a quorum without this life has followed this master after its hello.
        var confirmedIn = Epoch.zero
    }

    /// What a master keeps of whom it has welcomed, or may welcome.
    struct Follower: Sendable, Hashable {
        /// Refusals that are remembered.
        private static let maxRefused = 256

        /// The epoch in which this master has welcomed it, and since when it has been in step.
        var welcomedIn = Epoch.zero
        var inStepSince: Instant?
        /// Requests of it that this master has seen, in its epoch.
        var seen = SeenWindow()
        /// The last of them that were refused, for when the answer was lost.
        var refused: [AnsweredRequest] = []
        /// Since when a vote has been awaited from it.
        var voteAwaitedSince: Instant?
        /// When it was last asked for that vote.
        var voteAskedAt = Instant(nanoseconds: 0)
        /// Whether it was dropped from the active list for not voting; until it says hello anew.
        var isDropped = false

        mutating func remember(_ refusal: AnsweredRequest) {
            if refused.count >= Follower.maxRefused { refused.removeFirst(Follower.maxRefused / 2) }
            refused.append(refusal)
        }
    }

    init(_ life: Life, appearedAt: Instant) {
        self.init(life: life, appearedAt: appearedAt, heardAt: appearedAt)
    }

    var position: Position { progress.position }

    /// Notes where another tracker is.
    ///
    /// - Parameters:
    ///   - position: the last entry that it has applied, as it says.
    ///   - own: the index that this node has applied itself.
    mutating func note(_ position: Position, whileAt own: UInt64) {
        progress = Progress(position: position, comparedAt: own)
    }

    /// Entries that it was behind this node when it last said where it is.
    var lag: UInt64 {
        progress.comparedAt > progress.position.index ? progress.comparedAt - progress.position.index : 0
    }
}

/// The other trackers, as far as this one has heard of them, and the failure detector over them.
///
/// The list is never persisted. Being heard means nothing for safety: epochs and quorums alone do
/// (rule 1).
///
///     unknown ── heard ──► up ── silent for the detection time, or `leave` ──► down ── heard ──► up
///
/// Invariants: one entry an id; at most `maxCount` of them; a second life of an id is not heard while the first is up.
struct Neighbours: Sendable, Hashable {
    /// Trackers that one cluster may have, this one not counted.
    static let maxCount = 63

    /// In rising order of id.
    private(set) var all: [Neighbour] = []
    /// Lives that another life of their id has displaced, and of which this master has seen requests in its epoch; the
    /// latest last.
    private(set) var displaced: [Neighbour] = []
    private static let maxDisplacedCount = 16

    func place(of id: UInt32) -> Int? { all.firstIndex { $0.life.id == id } }

    subscript(place: Int) -> Neighbour {
        get { all[place] }
        _modify { yield &all[place] }
    }

    subscript(id id: UInt32) -> Neighbour? { place(of: id).map { all[$0] } }

    /// What a message tells about its sender's life.
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
            displace(at: place, by: Neighbour(life, appearedAt: now))
            return .appeared(place)
        }
        if all.count >= Neighbours.maxCount {
            guard let oldest = all.indices.filter({ !all[$0].isUp }).min(by: { all[$0].heardAt < all[$1].heardAt })
            else { return .noRoom }
            all.remove(at: oldest)
        }
        let place = all.firstIndex { $0.life.id > life.id } ?? all.count
        all.insert(Neighbour(life, appearedAt: now), at: place)
        return .appeared(place)
    }

    /// Another life has an id now.
    ///
    /// What was seen of the last one is kept: it may be the one that lives. (It was held for a while, and a message
    /// that its earlier life had sent came late.) When it goes on, what it forwards again must not be taken again.
    private mutating func displace(at place: Int, by newcomer: Neighbour) {
        let last = all[place]
        all[place] = newcomer
        if let known = displaced.firstIndex(where: { $0.life == newcomer.life }) {
            let returning = displaced.remove(at: known)
            all[place].follower.seen = returning.follower.seen
            all[place].follower.refused = returning.follower.refused
        }
        guard last.follower.seen != SeenWindow() else { return }
        if displaced.count == Neighbours.maxDisplacedCount { displaced.removeFirst() }
        displaced.append(last)
    }

    /// A master begins its epoch: it has welcomed nobody yet, and seen no request of anybody.
    mutating func beginEpoch() {
        displaced = []
        for place in all.indices { all[place].follower = Neighbour.Follower() }
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

    /// Whom this tracker hears, or has heard, as it tells the others.
    func heard(now: Instant) -> [TrackerReport.Heard] {
        all.map { other in
            let silence = max(now - other.heardAt, .zero).nanoseconds
            let seconds = silence / 1_000_000_000 + (silence % 1_000_000_000 > 0 ? 1 : 0)
            return TrackerReport.Heard(id: other.life.id, silence: UInt16(clamping: seconds), isUp: other.isUp)
        }
    }

    /// When the next one will have been silent for too long.
    func silenceDeadline(_ detectionTime: Duration) -> Instant? {
        var deadline: Instant?
        for place in all.indices where all[place].isUp {
            deadline = earliest(deadline, all[place].heardAt + detectionTime)
        }
        return deadline
    }

    /// Those that count as active, and one's own id, in rising order.
    ///
    /// - Parameters:
    ///   - own: the id of this tracker.
    ///   - epoch: of a master: only whom it has welcomed in it counts.
    ///   - known: what they were at an earlier look; given back where they are the same, for most steps change none of
    ///     them, and a list that is at hand costs nothing.
    /// - Returns: the ids that vote in survivor mode.
    func voters(with own: UInt32, welcomedIn epoch: Epoch?, knowing known: [UInt32]) -> [UInt32] {
        var count = 0
        var areSame = true
        eachVoter(with: own, welcomedIn: epoch) { id in
            if count >= known.count || known[count] != id { areSame = false }
            count += 1
        }
        if areSame, count == known.count { return known }
        var voters: [UInt32] = []
        voters.reserveCapacity(count)
        eachVoter(with: own, welcomedIn: epoch) { voters.append($0) }
        return voters
    }

    @inline(__always)
    private func eachVoter(with own: UInt32, welcomedIn epoch: Epoch?, _ body: (UInt32) -> Void) {
        var isOwnDone = false
        // By their places: a neighbour holds lists, and a copy of it would hold them, too.
        for place in all.indices where all[place].isUp && all[place].hasFullState && !all[place].follower.isDropped {
            if let epoch, all[place].follower.welcomedIn != epoch { continue }
            let id = all[place].life.id
            if !isOwnDone, id > own {
                isOwnDone = true
                body(own)
            }
            body(id)
        }
        if !isOwnDone { body(own) }
    }

    /// Whether one with this id is heard and follows the master of an epoch, or was welcomed by it.
    ///
    /// Who has lost its memory has no vote to follow with, unless it is on its way to get one.
    func follows(_ id: UInt32, _ epoch: Epoch) -> Bool {
        guard let place = place(of: id), all[place].isUp,
            !all[place].memory.isForgetful || all[place].memory.confirmedIn == epoch
        else { return false }
        return all[place].epoch == epoch || all[place].follower.welcomedIn == epoch
    }

    mutating func markDown(_ place: Int) { all[place].isUp = false }

    /// All of them may have changed while nothing was heard.
    mutating func forgetAll() { all = [] }
}

/// Which numbered requests of one life have been seen: all below a floor, and a window above it.
struct SeenWindow: Sendable, Hashable {
    /// Requests that one tracker may have under way.
    static let width = 131_072
    /// What the window begins with; it doubles when numbers need it.
    private static let leastWidth = 16_384

    private var floor: UInt64 = 0
    /// A bit for each number from the floor on, at the number's remainder.
    private var words: [UInt64] = []

    private func place(of number: UInt64) -> (word: Int, bit: UInt64) {
        let bit = Int(number % UInt64(words.count * 64))
        return (bit / 64, 1 << UInt64(bit % 64))
    }

    private func isInside(_ number: UInt64) -> Bool { number >= floor && number - floor < UInt64(words.count * 64) }

    private mutating func grow(toHold number: UInt64) {
        let old = self
        var width = max(SeenWindow.leastWidth, words.count * 64)
        while number - floor >= UInt64(width) { width *= 2 }
        words = Array(repeating: 0, count: width / 64)
        for number in old.floor..<old.floor + UInt64(old.words.count * 64) {
            let (from, bit) = old.place(of: number)
            guard old.words[from] & bit != 0 else { continue }
            let (word, newBit) = place(of: number)
            words[word] |= newBit
        }
    }

    /// Notes a number.
    ///
    /// - Returns: whether it is new, and within the window.
    mutating func insert(_ number: UInt64) -> Bool {
        guard number >= floor, number - floor < UInt64(SeenWindow.width) else { return false }
        if !isInside(number) { grow(toHold: number) }
        let (word, bit) = place(of: number)
        guard words[word] & bit == 0 else { return false }
        words[word] |= bit
        return true
    }

    /// Forgets a number: the request was not taken after all.
    mutating func remove(_ number: UInt64) {
        guard isInside(number) else { return }
        let (word, bit) = place(of: number)
        words[word] &= ~bit
    }

    /// Nothing below this number will come that anybody waits for.
    mutating func raise(to newFloor: UInt64) {
        guard newFloor > floor else { return }
        if isInside(newFloor) {
            for number in floor..<newFloor {
                let (word, bit) = place(of: number)
                words[word] &= ~bit
            }
        } else {
            words = []
        }
        floor = newFloor
    }
}

extension Neighbours {
    mutating func walk(_ archive: inout Archive) {
        all.walk(&archive)
        displaced.walk(&archive)
    }
}

extension Neighbour: Archived {
    static var blank: Neighbour { Neighbour(life: .blank, appearedAt: .blank, heardAt: .blank) }

    mutating func walk(_ archive: inout Archive) {
        life.walk(&archive)
        appearedAt.walk(&archive)
        heardAt.walk(&archive)
        isUp.walk(&archive)
        epoch.walk(&archive)
        promised.walk(&archive)
        role.walk(&archive)
        hasFullState.walk(&archive)
        progress.position.walk(&archive)
        progress.comparedAt.walk(&archive)
        suspicion.at.walk(&archive)
        suspicion.epoch.walk(&archive)
        memory.isForgetful.walk(&archive)
        memory.isBlank.walk(&archive)
        memory.heardBlank.walk(&archive)
        memory.confirmedIn.walk(&archive)
        follower.walk(&archive)
        addressedAt.walk(&archive)
    }
}

extension Neighbour.Follower {
    mutating func walk(_ archive: inout Archive) {
        welcomedIn.walk(&archive)
        inStepSince.walk(&archive)
        seen.walk(&archive)
        refused.walk(&archive)
        voteAwaitedSince.walk(&archive)
        voteAskedAt.walk(&archive)
        isDropped.walk(&archive)
    }
}

extension SeenWindow {
    mutating func walk(_ archive: inout Archive) {
        floor.walk(&archive)
        words.walk(&archive)
    }
}

// What comes from the bus passes here.

import Primitives
import Wire

/// What comes from the bus passes here: only authentic frames of senders that live now, each once, become messages.
///
///     ┌─────────┐ any frame with a good MAC ┌──────────┐ a greeting that names us ┌────────┐
///     │ unknown ├──────────────────────────►│ unproven ├─────────────────────────►│ proven │
///     └─────────┘      we greet it          └──────────┘  what was held is taken  └────────┘
///          ▲                                      │ most silent of too many             │ silent for a minute
///          └──────────────────────────────────────┴─────────────────────────────────────┘
///
/// A MAC shows who made a frame, not when: whoever has recorded the bus of last week could play it again. So each
/// tracker names the sessions that it hears in its greetings. Our own session was drawn at random when we came: whoever
/// names it under the key made that frame after that, and lives in our time. Until then what he says is held, within
/// bounds. Clocks take no part in it; they may be as wrong as they like. Within a session, numbers tell replays.
///
/// A sender that is forgotten and comes back goes on where it was: what it has said before stays said. It proves itself
/// by a greeting behind something new, which a recording does not have.
///
/// Where frames can be repeated (multicast), a `RepairWindow` a sender finds what is missing; else a `ReplayWindow`.
package struct BusGate: Sendable {
    package enum Limits {
        /// Senders known at a time: more than a cluster has trackers.
        package static let peers = 64
        /// Of those, senders that have not proved to live; replays can make as many as there are.
        package static let unproven = 16
        /// Bytes held of an unproven sender.
        ///
        /// He needs two messages of ours to prove himself, so some milliseconds.
        package static let heldByteCount = 1 << 20
        /// A sender this long silent is forgotten; each tracker greets every second.
        package static let silence = Duration.seconds(60)
        /// Forgotten sessions whose last number is remembered; each start of a tracker makes one, and 16 bytes.
        package static let formerSessions = 4096
        /// What a sender says of frames that it lacks is of now: behind what was heard of it so long before.
        static let freshness = Duration.seconds(2)
        package static let greetingInterval = Duration.seconds(1)
        /// Greetings beyond those of every second, for newcomers: so many at once, and then one each 50 ms.
        static let greetingCredit = 8
        static let greetingCreditInterval = Duration.milliseconds(50)
        /// Extra greetings for one sender.
        ///
        /// One that lives needs two or three; a replay gets no more than these.
        static let greetingsPerPeer = 20
    }

    /// What the frames came to.
    package struct Output: Sendable {
        /// For the inbox.
        package var messages: [[UInt8]] = []
        /// Data frames of ours that others lack.
        package var wanted: [ClosedRange<UInt64>] = []
        /// Authentic frames of this cluster in another version of the bus: rejected, and worth telling.
        package var foreigners: [BusFrameOrigin] = []

        package init() {}
    }

    private struct Peer: Sendable {
        var session: UInt64
        var isProven = false
        var heard: Instant
        var greetings = 0
        /// The least number seen; where its window begins.
        var base: UInt64
        /// What came in an earlier time, before it was forgotten: up to here nothing is taken.
        var floor: UInt64
        /// The greatest number that was known when it was last looked at, and the time before.
        var greatestLately: UInt64 = 0
        var greatestBefore: UInt64 = 0
        var lookedAt: Instant
        var held: [[UInt8]] = []
        var heldByteCount = 0
        var replay = ReplayWindow()
        var repair = RepairWindow()
        var reassembly = Reassembly()
    }

    /// A session that is forgotten, and the greatest number that came of it.
    private struct Former: Sendable {
        var session: UInt64
        var greatest: UInt64
    }

    private let key: BusKey
    private let session: UInt64
    private let incarnation: UInt64
    private let repairs: Bool
    /// Whether each frame may come twice, because we hear two brokers.
    package var hearsTwice = false
    private var random: RandomStream
    private var peers: [Peer] = []
    /// The longest forgotten first.
    private var former: [Former] = []
    /// The peer that was heard last is likely to be the next, too.
    private var recent = 0
    private var greetingCredit = Limits.greetingCredit
    private var creditedAt: Instant?
    private var isGreetingUrgent = true
    private var lastGreeting: Instant?
    package private(set) var received: UInt64 = 0
    package private(set) var rejected: UInt64 = 0
    package private(set) var repaired: UInt64 = 0
    /// Whose frames were refused for their key or their cluster.
    package private(set) var refused = RefusedSenders()

    /// A gate that has heard nobody.
    ///
    /// - Parameters:
    ///   - key: under which MACs are right.
    ///   - session: our own, whose frames come back from a bus that has no better way.
    ///   - incarnation: messages for others are left alone.
    ///   - repairs: whether lost frames can be had again.
    ///   - seed: of the random pauses.
    package init(key: BusKey, session: UInt64, incarnation: UInt64, repairs: Bool, seed: UInt64) {
        self.key = key
        self.session = session
        self.incarnation = incarnation
        self.repairs = repairs
        random = RandomStream(seed: seed)
    }

    /// Sessions that have proved to live.
    package var provenCount: Int { peers.count { $0.isProven } }

    /// Bytes that are held in all, for unproven senders and in unfinished messages.
    package var heldByteCount: Int { peers.reduce(0) { $0 + $1.heldByteCount + $1.reassembly.byteCount } }

    /// Counts what was no frame at all, such as a foreign message on our topic.
    package mutating func reject() { rejected += 1 }

    // MARK: Frames

    /// Takes a frame, whoever sent it.
    ///
    /// - Parameters:
    ///   - frame: as it came.
    ///   - source: where it came from, if the bus tells.
    ///   - now: the monotonic clock.
    ///   - output: gets the messages in it, and what else is to be done.
    package mutating func receive(
        _ frame: [UInt8], from source: SocketAddress? = nil, now: Instant, into output: inout Output
    ) {
        guard let head = try? BusFrameHead(frame) else { return refuse(frame, &output) }
        guard head.cluster == key.cluster else {
            refused.note(source, session: head.session, .otherCluster, now: now)
            return reject()
        }
        // Our own come back from brokers and multicast alike. Who forges one of those reaches nobody with it.
        guard head.session != session else { return }
        guard key.isAuthentic(frame) else {
            refused.note(source, session: head.session, .otherKey, now: now)
            return reject()
        }
        guard let body = try? BusBody(head.kind, of: frame) else { return reject() }
        guard let index = peer(of: head, now) else { return reject() }
        peers[index].heard = now
        if case .greeting(let greeting) = body { receive(greeting, head, of: index, now, &output) }
        guard peers[index].isProven else {
            if head.kind.isData { hold(frame, head, of: index) }
            wantGreeting(of: index)
            return
        }
        if repairs, now - peers[index].lookedAt >= Limits.freshness {
            peers[index].greatestBefore = peers[index].greatestLately
            peers[index].greatestLately = peers[index].repair.greatest ?? 0
            peers[index].lookedAt = now
        }
        switch body {
        case .messages, .part: take(body, head, frame, of: index, now, &output)
        case .greeting(let greeting): noteNext(head.sequence, greeting.oldest, of: index, now)
        case .mark(let oldest): noteNext(head.sequence, oldest, of: index, now)
        case .wanted(let wanted): receive(wanted, head, of: index, now, &output)
        }
    }

    /// Rejects what is no frame of this version, and tells of what is one of another.
    private mutating func refuse(_ frame: [UInt8], _ output: inout Output) {
        reject()
        guard let origin = BusFrameOrigin(frame), origin.version != BusFrameHead.version,
            origin.cluster == key.cluster, key.isAuthentic(frame)
        else { return }
        output.foreigners.append(origin)
    }

    private mutating func take(
        _ body: BusBody, _ head: BusFrameHead, _ frame: [UInt8], of index: Int, _ now: Instant,
        _ output: inout Output
    ) {
        if repairs {
            switch peers[index].repair.receive(head.sequence, now: now, random: &random) {
            case .new: break
            case .repaired: repaired += 1
            // A repetition that another receiver asked for; nobody's fault.
            case .duplicate: return
            }
        } else {
            guard peers[index].replay.receive(head.sequence) else {
                if !hearsTwice { reject() }
                return
            }
        }
        switch body {
        case .messages(let items):
            for item in items where item.destination == 0 || item.destination == incarnation {
                received += 1
                output.messages.append(Array(frame[item.range]))
            }
        case .part(let part):
            guard part.destination == 0 || part.destination == incarnation else { return }
            let others = heldByteCount - peers[index].reassembly.byteCount
            let room = max(0, min(Reassembly.Limits.byteCount, Reassembly.Limits.totalByteCount - others))
            do throws(BusFrameError) {
                let message = try peers[index].reassembly.receive(part, of: frame, now: now, room: room)
                guard let message else { return }
                received += 1
                output.messages.append(message)
            } catch {
                reject()
            }
        case .greeting, .wanted, .mark: preconditionFailure("only data are taken")
        }
    }

    private mutating func noteNext(_ next: UInt64, _ oldest: UInt64, of index: Int, _ now: Instant) {
        guard repairs else { return }
        peers[index].repair.noteNext(next, oldest: oldest, now: now, random: &random)
    }

    private mutating func receive(
        _ wanted: BusWanted, _ head: BusFrameHead, of index: Int, _ now: Instant, _ output: inout Output
    ) {
        guard repairs else { return }
        // It says the number that comes next: one that came long ago was recorded.
        guard head.sequence > peers[index].greatestBefore else { return reject() }
        if wanted.session == session {
            output.wanted += wanted.ranges
        } else if let index = peers.firstIndex(where: { $0.session == wanted.session && $0.isProven }) {
            for range in wanted.ranges { peers[index].repair.noteRequest(range, now: now) }
        }
    }

    // MARK: Who lives

    private mutating func receive(
        _ greeting: BusGreeting, _ head: BusFrameHead, of index: Int, _ now: Instant, _ output: inout Output
    ) {
        guard let own = greeting.acquaintances.first(where: { $0.session == session }) else { return }
        if !own.isProven { isGreetingUrgent = true }
        guard !peers[index].isProven, peers[index].floor == 0 || head.sequence > peers[index].floor + 1 else { return }
        peers[index].isProven = true
        if repairs {
            peers[index].repair.start(at: max(peers[index].base, peers[index].floor + 1))
        } else if peers[index].floor > 0 {
            peers[index].replay.start(behind: peers[index].floor)
        }
        let held = peers[index].held
        peers[index].held = []
        peers[index].heldByteCount = 0
        for frame in held {
            guard let head = try? BusFrameHead(frame), let body = try? BusBody(head.kind, of: frame) else {
                preconditionFailure("what is held was read before")
            }
            take(body, head, frame, of: index, now, &output)
        }
    }

    private mutating func hold(_ frame: [UInt8], _ head: BusFrameHead, of index: Int) {
        guard head.sequence > peers[index].floor else { return }
        peers[index].base = min(peers[index].base, head.sequence)
        guard peers[index].heldByteCount + frame.count <= Limits.heldByteCount else { return }
        peers[index].held.append(frame)
        peers[index].heldByteCount += frame.count
    }

    private mutating func wantGreeting(of index: Int) {
        guard peers[index].greetings < Limits.greetingsPerPeer else { return }
        isGreetingUrgent = true
    }

    /// The index of a sender, who is remembered from now on.
    ///
    /// - Returns: nil where there are too many.
    private mutating func peer(of head: BusFrameHead, _ now: Instant) -> Int? {
        if recent < peers.count, peers[recent].session == head.session { return recent }
        if let index = peers.firstIndex(where: { $0.session == head.session }) {
            recent = index
            return index
        }
        forgetSilent(now)
        let unproven = peers.indices.filter { !peers[$0].isProven }
        if unproven.count >= Limits.unproven || peers.count >= Limits.peers {
            guard let silent = unproven.min(by: { peers[$0].heard < peers[$1].heard }) else { return nil }
            peers.remove(at: silent)
        }
        let floor = former.first { $0.session == head.session }?.greatest ?? 0
        peers.append(
            Peer(session: head.session, heard: now, base: max(head.sequence, floor + 1), floor: floor, lookedAt: now))
        recent = peers.count - 1
        return recent
    }

    private mutating func forgetSilent(_ now: Instant) {
        for index in peers.indices where peers[index].isProven && now - peers[index].heard > Limits.silence {
            let greatest = repairs ? peers[index].repair.greatest ?? 0 : peers[index].replay.greatest
            former.removeAll { $0.session == peers[index].session }
            if former.count == Limits.formerSessions { former.removeFirst() }
            former.append(Former(session: peers[index].session, greatest: max(greatest, peers[index].floor)))
        }
        peers.removeAll { now - $0.heard > Limits.silence }
    }

    // MARK: What we have to say

    /// When `takeGreeting` or `takeWanted` has something to say.
    package func nextDeadline(now: Instant) -> Instant {
        var deadline = lastGreeting.map { $0 + Limits.greetingInterval } ?? now
        if isGreetingUrgent { deadline = min(deadline, creditAvailable(now)) }
        if repairs {
            for peer in peers { deadline = earliest(deadline, peer.repair.nextDue) ?? deadline }
        }
        return deadline
    }

    private func creditAvailable(_ now: Instant) -> Instant {
        guard greetingCredit == 0, let creditedAt else { return now }
        return creditedAt + Limits.greetingCreditInterval
    }

    /// A greeting, where one is due.
    ///
    /// - Parameters:
    ///   - now: the monotonic clock.
    ///   - oldest: the first of our data frames that can be had again.
    /// - Returns: nil where none is due.
    package mutating func takeGreeting(now: Instant, oldest: UInt64) -> BusGreeting? {
        if let before = creditedAt {
            let earned = (now - before).nanoseconds / Limits.greetingCreditInterval.nanoseconds
            if earned > 0 {
                greetingCredit = min(Limits.greetingCredit, greetingCredit + Int(clamping: earned))
                creditedAt = now
            }
        } else {
            creditedAt = now
        }
        let isPeriodic = lastGreeting.map { now - $0 >= Limits.greetingInterval } ?? true
        guard isPeriodic || isGreetingUrgent && greetingCredit > 0 else { return nil }
        if !isPeriodic { greetingCredit -= 1 }
        isGreetingUrgent = false
        lastGreeting = now
        forgetSilent(now)
        for index in peers.indices where !peers[index].isProven { peers[index].greetings += 1 }
        return BusGreeting(
            oldest: oldest, acquaintances: peers.map { .init(session: $0.session, isProven: $0.isProven) })
    }

    /// Greets at once: the bus was found again.
    package mutating func greetSoon() { isGreetingUrgent = true }

    /// Which data frames of others to ask for now.
    package mutating func takeWanted(now: Instant) -> [BusWanted] {
        guard repairs else { return [] }
        var all: [BusWanted] = []
        for index in peers.indices where peers[index].isProven {
            var ranges: [ClosedRange<UInt64>] = []
            peers[index].repair.takeDue(now: now, limit: BusBody.Limits.ranges, into: &ranges)
            if !ranges.isEmpty { all.append(BusWanted(session: peers[index].session, ranges: ranges)) }
        }
        return all
    }
}

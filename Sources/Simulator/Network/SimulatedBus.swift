// The way between trackers.

import Primitives

/// How bad a bus is.
public struct SimulatedBusOptions: Sendable, Hashable {
    /// Messages in a thousand that are lost, for each who should hear them.
    public var lossPerMille = 0
    /// Messages in a thousand that arrive twice.
    public var repeatPerMille = 0
    /// Messages in a thousand that arrive much later than the others.
    public var stragglerPerMille = 0
    /// Messages in a thousand that arrive once more, long after, perhaps at a later life of the tracker.
    public var redeliveredPerMille = 0
    /// The shortest that a message takes.
    public var minDelay = Duration.microseconds(200)
    /// The longest, but for stragglers.
    public var maxDelay = Duration.milliseconds(10)
    /// The longest that a straggler takes.
    public var maxStragglerDelay = Duration.seconds(3)
    /// The longest until a message comes once more.
    public var maxRedeliveryDelay = Duration.seconds(10)
    /// Whether messages on one link overtake each other.
    public var isReordering = false
    /// Whether everybody hears what is meant for one.
    public var isShared = false
    /// How long a tracker takes to get onto the bus, at most.
    public var maxConnectDelay = Duration.milliseconds(50)
    /// How long a tracker takes to notice that it has lost its bus, at most.
    public var maxNoticeDelay = Duration.milliseconds(100)

    /// A bus that loses nothing.
    public init() {}

    /// Faultless, after the faults.
    static let healed = SimulatedBusOptions()
}

/// The way between trackers: a broker, or a multicast group, that loses, repeats, delays, reorders and holds messages,
/// and delivers old ones again; and links that work in one direction, or slowly, or not at all.
///
/// It carries values. Each ordered pair of trackers has its own link, with its own chance; who has lost its bus neither
/// sends nor hears.
package struct SimulatedBus: Sendable {
    private struct Link: Sendable {
        var random: RandomStream
        /// Until when nothing gets through.
        var blockedUntil = Instant(nanoseconds: 0)
        /// Until when all is held.
        var cloggedUntil = Instant(nanoseconds: 0)
        /// Until when all takes longer, and by how much.
        var slowUntil = Instant(nanoseconds: 0)
        var extraDelay = Duration.zero
        /// When what was sent last arrives, where nothing overtakes.
        var lastArrival = Instant(nanoseconds: 0)

        mutating func carry(_ options: SimulatedBusOptions, _ now: Instant) -> Fate {
            var fate = Fate()
            guard blockedUntil <= now, !hits(options.lossPerMille) else { return fate }
            fate.first = arrival(options, now)
            if hits(options.repeatPerMille) { fate.second = arrival(options, now) }
            if hits(options.redeliveredPerMille) {
                fate.third = now + random.between(.milliseconds(1), options.maxRedeliveryDelay)
            }
            return fate
        }

        private mutating func arrival(_ options: SimulatedBusOptions, _ now: Instant) -> Instant {
            var delay = random.between(options.minDelay, options.maxDelay)
            if hits(options.stragglerPerMille) {
                delay = random.between(options.maxDelay, options.maxStragglerDelay)
            }
            if slowUntil > now { delay = delay + extraDelay }
            var time = max(now, cloggedUntil) + delay
            if !options.isReordering {
                time = max(time, lastArrival)
                lastArrival = time
            }
            return time
        }

        private mutating func hits(_ perMille: Int) -> Bool { perMille > 0 && random.below(1000) < perMille }

        /// Trouble that is not over ends.
        mutating func heal(at time: Instant) {
            blockedUntil = min(blockedUntil, time)
            cloggedUntil = min(cloggedUntil, time)
            slowUntil = min(slowUntil, time)
            lastArrival = Instant(nanoseconds: 0)
        }
    }

    package var options: SimulatedBusOptions
    private let count: Int
    /// By sender, then receiver.
    private var links: [Link]

    package init(count: Int, options: SimulatedBusOptions, seed: UInt64) {
        self.count = count
        self.options = options
        links = (0..<count * count).map { Link(random: RandomStream(seed, .link, $0 / count, $0 % count)) }
    }

    /// When the copies of a message arrive; nil for none.
    package struct Fate: Sendable {
        package var first: Instant?
        package var second: Instant?
        /// Delivered again.
        package var third: Instant?
    }

    package mutating func carry(from sender: Int, to receiver: Int, now: Instant) -> Fate {
        links[sender * count + receiver].carry(options, now)
    }

    // MARK: - Trouble

    /// Cuts the trackers of `side`, one bit each, off from the others; one way, they still hear the others.
    package mutating func split(_ side: UInt32, isOneWay: Bool, until time: Instant) {
        for sender in 0..<count {
            for receiver in 0..<count {
                let (here, there) = (side >> UInt32(sender) & 1, side >> UInt32(receiver) & 1)
                guard here != there, !isOneWay || here == 1 else { continue }
                links[sender * count + receiver].blockedUntil = time
            }
        }
    }

    package mutating func block(from sender: Int, to receiver: Int, until time: Instant) {
        links[sender * count + receiver].blockedUntil = time
    }

    /// Whether all that two trackers say to each other arrives, and soon; of a time before, whether it has since then.
    package func isClear(between one: Int, and other: Int, now: Instant) -> Bool {
        for place in [one * count + other, other * count + one] {
            let link = links[place]
            if link.blockedUntil > now || link.cloggedUntil > now || link.slowUntil > now { return false }
        }
        return true
    }

    /// Whether two trackers do not hear each other, in neither direction.
    func isCut(between one: Int, and other: Int, now: Instant) -> Bool {
        [one * count + other, other * count + one].allSatisfy {
            links[$0].blockedUntil > now || links[$0].cloggedUntil > now
        }
    }

    /// Whether a tracker does not hear somebody, or is not heard.
    func isBlocked(_ node: Int, now: Instant) -> Bool {
        (0..<count).contains {
            links[node * count + $0].blockedUntil > now || links[$0 * count + node].blockedUntil > now
        }
    }

    /// A tracker hears everybody again, and is heard; until when it was not is still known.
    mutating func unblock(_ node: Int, at time: Instant) {
        for other in 0..<count {
            for place in [node * count + other, other * count + node] {
                links[place].blockedUntil = min(links[place].blockedUntil, time)
            }
        }
    }

    package mutating func clog(from sender: Int, to receiver: Int, until time: Instant) {
        links[sender * count + receiver].cloggedUntil = time
    }

    package mutating func slow(from sender: Int, to receiver: Int, by delay: Duration, until time: Instant) {
        links[sender * count + receiver].slowUntil = time
        links[sender * count + receiver].extraDelay = delay
    }

    /// All works, from here on, and what is on its way arrives; until when a link did not work is still known.
    package mutating func heal(at time: Instant) {
        options = .healed
        for place in links.indices { links[place].heal(at: time) }
    }
}

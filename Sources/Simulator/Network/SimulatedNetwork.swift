// A network that loses, repeats, delays and reorders datagrams, and flips their bits.

import Primitives

/// How bad a network is.
///
/// Each copy of a datagram is delayed on its own, so that later ones overtake it.
public struct NetworkOptions: Sendable, Hashable {
    /// Datagrams in a thousand that are lost.
    public var lossPerMille = 0
    /// Datagrams in a thousand that arrive twice.
    public var repeatPerMille = 0
    /// Datagrams in a thousand that arrive much later than the others.
    public var stragglerPerMille = 0
    /// Datagrams in a thousand in which a bit flips.
    public var flipPerMille = 0
    /// The shortest that a datagram takes.
    public var minDelay = Duration.microseconds(200)
    /// The longest, but for stragglers.
    public var maxDelay = Duration.milliseconds(40)
    /// The delay of stragglers, at most.
    public var maxStragglerDelay = Duration.seconds(20)

    /// A network that loses nothing.
    public init() {}

    /// Faultless, after the faults.
    static let healed: NetworkOptions = {
        var options = NetworkOptions()
        options.maxDelay = .milliseconds(20)
        return options
    }()
}

/// What becomes of one datagram.
struct DatagramFate: Sendable {
    /// When its copies arrive; nil for none.
    var first: Duration?
    var second: Duration?
}

extension NetworkOptions {
    /// What becomes of one datagram, by the chance of its path.
    func carry(_ random: inout RandomStream) -> DatagramFate {
        var fate = DatagramFate()
        guard !hits(lossPerMille, &random) else { return fate }
        fate.first = delay(&random)
        if hits(repeatPerMille, &random) { fate.second = delay(&random) }
        return fate
    }

    /// Which bit of a datagram flips, counted from the first of the first byte.
    func flippedBit(of byteCount: Int, _ random: inout RandomStream) -> Int? {
        guard byteCount > 0, hits(flipPerMille, &random) else { return nil }
        return random.below(byteCount * 8)
    }

    private func hits(_ perMille: Int, _ random: inout RandomStream) -> Bool {
        perMille > 0 && random.below(1000) < perMille
    }

    private func delay(_ random: inout RandomStream) -> Duration {
        if hits(stragglerPerMille, &random) { return random.between(maxDelay, maxStragglerDelay) }
        return random.between(minDelay, maxDelay)
    }
}

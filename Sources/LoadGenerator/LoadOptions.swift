// What `tracker load` shall do to a tracker.

import Client
import Datagrams
import Primitives
import TrackerLogic

/// What `tracker load` shall do to a tracker.
public struct LoadOptions: Sendable, Hashable {
    /// The tracker; nothing is sent anywhere else.
    public var target: SocketAddress
    /// How the next request is paced.
    public var pace = Pace.closed(inFlight: 256)
    /// What the peers do.
    public var work = Work.mixed
    /// How long to measure; for `.fill`, the longest that it may take.
    public var duration = Duration.seconds(5)
    /// How long to run before measuring, so that caches and tables are warm; not for `.fill`.
    public var warmUp = Duration.seconds(1)
    /// Swarms, 1…2³¹.
    public var torrents = 1000
    /// Peers in all swarms together, at most 64,512 for each source; each is in one swarm.
    ///
    /// 100,000, and from one source as many as a Swarmkeeper takes from one address.
    public var peers = 100_000
    /// Client addresses, 1…16,384; more than one needs a target in 127.0.0.0/8, where all of them are ours.
    public var sources: Int
    /// Announces among the requests, 0…1; the others are scrapes.
    public var announceShare = 0.98
    /// Peers that complete their download among those that announce, 0…1.
    public var completedShare = 0.01
    /// Peers that stop among those that announce, 0…1.
    public var stoppedShare = 0.01
    /// Peers that begin as seeders, 0…1.
    public var seederShare = 0.3
    /// Sent as it is: 0 and −1 leave the number to the tracker.
    public var numWant: Int32 = 50
    /// Info hashes a scrape, 1…74.
    public var scrapeHashes = 4
    /// After this time a request is lost.
    public var patience = Duration.seconds(1)
    /// The peers are in the swarms already, from an earlier fill with the same numbers: none begins with `started`.
    public var isFilled = false
    /// Names the torrents and the peers: the same seed finds the same swarms again.
    public var seed: UInt64 = 1

    /// When a request leaves.
    public enum Pace: Sendable, Hashable {
        /// So many requests are under way at any time: finds the most that a tracker can do.
        case closed(inFlight: Int)
        /// So many requests leave each second, whatever comes back: finds the latency under that load. It is
        /// measured from when a request *should* have left, so that a tracker that stalls is charged for all who
        /// wait meanwhile ("coordinated omission").
        case open(rate: Int)
    }

    /// What the peers do.
    public enum Work: Sendable, Hashable {
        /// Random peers announce and scrape, for as long as asked.
        case mixed
        /// Each peer announces `started` once, again only where no answer came.
        case fill
    }

    /// A second of warm-up and five of mixed work on a tracker.
    public init(target: SocketAddress) {
        self.target = target
        sources = target.isIPv4 && target.isLoopback ? 64 : 1
        if sources == 1 { peers = LoadOptions.peersPerAddress }
    }

    /// What a Swarmkeeper with the default settings takes from one address.
    private static let peersPerAddress = Limits().peersPerAddress

    /// Gives the peers so many addresses that a tracker takes each for a NAT at most: a thousand peers behind each,
    /// where there are enough; elsewhere than on loopback there is one.
    public mutating func spread() {
        if sources > 1 { sources = max(sources, min(16_384, peers / 1000)) }
    }

    /// What to know before it starts, in sentences: that the peers have too few addresses; nil where all is well.
    public var notice: String? {
        let most = (peers + sources - 1) / max(sources, 1)
        let bound = LoadOptions.peersPerAddress
        guard sources > 0, most > bound else { return nil }
        let whose =
            sources == 1
            ? "All \(grouped(peers)) peers have one address"
            : "\(grouped(peers)) peers have \(grouped(sources)) addresses"
        return "\(whose), and a Swarmkeeper takes \(grouped(bound)) peers of each unless told otherwise: it refuses "
            + "the others with \"\(Refusal.addressFull.text)\", which counts as errors here. "
            + "Start the tracker under test with --limit-peers-per-address \(most), "
            + "or have --peers \(bound * sources) at most."
    }

    /// - Throws: `.invalid`, with what would be valid.
    package func validate() throws(LoadError) {
        func need(_ isValid: Bool, _ text: String) throws(LoadError) {
            guard isValid else { throw .invalid(text) }
        }
        try need(!target.isUnspecified && target.port != 0, "the target needs an address and a port")
        switch pace {
        case .closed(let inFlight):
            try need((1...LoadFlights.limit).contains(inFlight), "1 to \(LoadFlights.limit) requests can be in flight")
        case .open(let rate):
            try need((1...10_000_000).contains(rate), "the rate is 1 to 10,000,000 requests a second")
            try need(work == .mixed, "a fill is as fast as its answers: it has no rate")
        }
        try need(
            duration >= .milliseconds(100) && duration <= .seconds(86_400), "the load lasts 0.1 seconds to 1 day")
        try need(warmUp >= .zero && warmUp <= .seconds(3_600), "the warm-up lasts 0 to 3,600 seconds")
        try need((1...1 << 31).contains(torrents), "there are 1 to 2,147,483,648 torrents")
        try need((1...16_384).contains(sources), "there are 1 to 16,384 client addresses")
        try need(
            sources == 1 || (target.isIPv4 && target.isLoopback),
            "several client addresses need a tracker in 127.0.0.0/8: elsewhere this host has no others to speak from")
        let most = sources * LoadPopulation.portsPerSource
        let addresses = sources == 1 ? "one client address" : "\(grouped(sources)) client addresses"
        try need(
            (1...most).contains(peers),
            "\(addresses) can be 1 to \(grouped(most)) peers (one a port from 1,024 up); ask for fewer, or load from "
                + "several hosts")
        for share in [announceShare, completedShare, stoppedShare, seederShare] {
            try need((0...1).contains(share), "shares are 0 to 1")
        }
        try need(completedShare + stoppedShare <= 1, "the shares of completed and stopped are at most 1 together")
        try need((1...74).contains(scrapeHashes), "a scrape has 1 to 74 info hashes")
        try need(
            patience >= .milliseconds(10) && patience <= .seconds(60), "a request is waited for 10 ms to 60 s")
    }
}

/// Why a load could not be run.
public enum LoadError: Error, Sendable, Hashable, CustomStringConvertible {
    case invalid(String)
    case noSuchHost(TrackerClientError)
    case silent(SocketAddress)
    /// The tracker answers `connect` with this error.
    case refused(SocketAddress, String)
    case socket(SocketError)

    /// A sentence that names the cause and the way out.
    public var description: String {
        switch self {
        case .invalid(let text):
            "This load cannot be run: \(text)."
        case .noSuchHost(let error):
            "This load cannot be run: \(error.description)."
        case .silent(let target):
            "Nobody answers at \(target) over UDP: is a tracker running there, and does no firewall drop the requests?"
        case .refused(let target, let text):
            "The tracker at \(target) gives out no connection ids; it says \"\(text)\"."
        case .socket(let error):
            error.description
        }
    }
}

/// A number for people: 1,234,567.
func grouped(_ number: some BinaryInteger) -> String {
    let digits = String(number.magnitude)
    var text = number < 0 ? "-" : ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index).isMultiple(of: 3) { text.append(",") }
        text.append(digit)
    }
    return text
}

// Asking a tracker, as a client does: `tracker announce` and `tracker scrape`.

import Primitives
import Wire

/// One tracker, over whichever protocol its URL names.
public protocol TrackerClient: Sendable {
    var url: TrackerURL { get }

    /// Announces once, and waits for the answer.
    ///
    /// - Parameter announce: what it says.
    /// - Returns: what the tracker answers; the peers in its order.
    /// - Throws: `TrackerClientError` where no answer is to be had, or it is a refusal.
    func announce(_ announce: ClientAnnounce) async throws(TrackerClientError) -> ClientAnnounceReply

    /// Asks for the counts of swarms.
    ///
    /// - Parameter infoHashes: any number; 74 go in one request.
    /// - Returns: as many, in the order asked.
    /// - Throws: `TrackerClientError` where one of the requests fails.
    func scrape(_ infoHashes: [InfoHash]) async throws(TrackerClientError) -> [ClientScrapeReply]
}

/// How patient a client is, and what it tells of itself.
public struct ClientOptions: Sendable {
    /// How long to try, all attempts together.
    public var timeout = Duration.seconds(60)
    /// How long BEP 15 waits for the first answer; each later wait is twice as long, up to 256 times.
    public var firstWait = Duration.seconds(15)
    /// Told before each further attempt, from a thread of the client's.
    public var onRetry: (@Sendable (ClientRetry) -> Void)?
    /// Sent as `User-Agent` over HTTP.
    public var userAgent = "swarmkeeper"

    /// BEP 15's waits, for a minute in all.
    public init() {}
}

/// A request that is sent again, because no answer came.
public struct ClientRetry: Sendable, Hashable {
    /// The host that was silent.
    public var host: String
    /// How long it was silent.
    public var waited: Duration
    /// Until the client gives up.
    public var left: Duration
}

/// What an announce says.
public struct ClientAnnounce: Sendable, Hashable {
    /// Of the swarm that is announced to.
    public var infoHash: InfoHash
    /// The same in all announces of one download.
    public var peerID: PeerID
    /// Where the peer listens; never 0.
    public var port: UInt16
    /// Bytes.
    public var uploaded: UInt64 = 0
    /// Bytes.
    public var downloaded: UInt64 = 0
    /// Bytes still to be had; 0 makes a seeder.
    public var left: UInt64
    /// What has happened; `none` for a regular announce.
    public var event = AnnounceEvent.none
    /// Peers wanted; nil leaves the number to the tracker.
    public var numWant: Int?
    /// Tells over HTTP, with the peer id, that announces over IPv4 and IPv6 are one client's (BEP 7).
    public var key: [UInt8]?
    /// What the tracker gave as `tracker id` before; over HTTP only.
    public var trackerID: [UInt8]?

    /// An announce of a peer that has downloaded nothing yet.
    public init(infoHash: InfoHash, peerID: PeerID, port: UInt16, left: UInt64) {
        self.infoHash = infoHash
        self.peerID = peerID
        self.port = port
        self.left = left
    }
}

/// What a tracker answers an announce, over whichever protocol.
public struct ClientAnnounceReply: Sendable, Hashable {
    /// Who answered.
    public var server: SocketAddress
    /// From the request to its answer.
    public var roundTrip: Duration
    /// Seconds.
    public var interval: UInt32
    /// Seconds; only over HTTP, and not always.
    public var minInterval: UInt32?
    /// nil where the tracker does not say, which only HTTP allows.
    public var seeders: UInt32?
    /// Nil where the tracker does not say, which only HTTP allows.
    public var leechers: UInt32?
    /// Only over HTTP, and not always.
    public var completed: UInt32?
    /// For the person behind the client.
    public var warning: String?
    /// To be said in the next announce; only over HTTP, and not always.
    public var trackerID: [UInt8]?
    /// In the tracker's order.
    public var peers: [HTTPAnnounceReply.Peer]
}

/// What a tracker answers of one swarm in a scrape.
public struct ClientScrapeReply: Sendable, Hashable {
    /// The swarm's.
    public var infoHash: InfoHash
    /// nil where the tracker says that it does not know the torrent: over UDP it says zeros.
    public var counts: Counts?

    /// The counts of one swarm.
    public struct Counts: Sendable, Hashable {
        /// Peers that have everything.
        public var seeders: UInt32
        /// All other peers.
        public var leechers: UInt32
        /// Downloads that were completed.
        public var completed: UInt32
    }
}

/// Why a tracker's answer is not to be had.
public enum TrackerClientError: Error, Sendable, Hashable {
    /// The name cannot be looked up.
    case noSuchHost(String, reason: String)
    /// Nobody listens there, or there is no way there.
    case unreachable(String, reason: String)
    /// No answer in time.
    case silent(String, after: Duration)
    /// The tracker says no, in its own words.
    case refused(String)
    /// The answer makes no sense.
    case malformed(String)
    /// HTTP, and not 200.
    case status(Int, reason: String)
    /// BEP 48: the URL has no scrape URL beside it.
    case noScrape(String)

    /// Whether there was an answer at all.
    public var isAnswer: Bool {
        switch self {
        case .refused, .malformed, .status, .noScrape: true
        case .noSuchHost, .unreachable, .silent: false
        }
    }
}

extension TrackerClientError: CustomStringConvertible {
    /// A sentence for a person, with what to look at.
    public var description: String {
        switch self {
        case .noSuchHost(let host, let reason):
            "the host \"\(host)\" cannot be found: \(reason); check its spelling, or give its address"
        case .unreachable(let host, let reason):
            "\(host) cannot be reached: \(reason); is the tracker running, and is this its port?"
        case .silent(let host, let waited):
            "\(host) gave no answer within \(durationText(Int(waited.wholeSeconds))); is a tracker running there, and "
                + "does no firewall drop the requests?"
        case .refused(let message): "the tracker refuses: \(message)"
        case .malformed(let what): "the answer makes no sense: \(what)"
        case .status(let code, let reason): "the server answers \(code) \(reason); is this a tracker's announce URL?"
        case .noScrape(let url):
            "\(url) cannot be scraped: the last part of its path does not begin with \"announce\" (BEP 48)"
        }
    }
}

extension TrackerURL {
    /// A client for the tracker of this URL.
    public func client(_ options: ClientOptions = ClientOptions()) -> any TrackerClient {
        switch scheme {
        case .udp: UDPTrackerClient(url: self, options: options)
        case .http: HTTPTrackerClient(url: self, options: options)
        }
    }
}

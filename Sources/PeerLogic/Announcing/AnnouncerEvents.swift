// What can happen to an announcer, and what it wants done.

import Primitives
import Wire

extension Announcer {
    /// What can happen to an announcer.
    public enum Event: Sendable, Equatable {
        /// Somebody wants one announce, and to know what comes of it.
        case announceWanted(Subject, Progress, AnnounceEvent)
        /// Somebody wants the counts of 1 to 74 swarms. A new wish takes the place of one that is under way.
        case scrapeWanted([InfoHash])
        /// A download, or a seeder's upload, has begun: it is announced until it stops.
        case downloadStarted(Subject, Progress)
        /// Its numbers have changed; the next announce tells them.
        case downloadProgressed(Progress)
        /// It is whole, after having been begun in parts.
        case downloadCompleted(Progress)
        /// It is over: the tracker is told, and that is the end.
        case downloadStopped(Progress)
        /// Somebody does not want to wait for the next announce, or the next try.
        case updateWanted
        /// A datagram from the tracker's address.
        case datagramReceived([UInt8])
        /// `nextDeadline` has come. A spurious one does nothing.
        case deadlineReached
    }

    /// What an announcer wants done, into a buffer that its owner keeps.
    public struct Effects: Sendable, Equatable {
        /// Datagrams to the tracker.
        public var sends: [[UInt8]] = []
        /// What has come of requests.
        public var outcomes: [Outcome] = []

        /// An empty buffer.
        public init() {}

        /// Forgets what was carried out and keeps the room.
        public mutating func removeAll() {
            sends.removeAll(keepingCapacity: true)
            outcomes.removeAll(keepingCapacity: true)
        }
    }

    /// How a request has ended.
    public enum Outcome: Sendable, Equatable {
        /// The tracker has answered an announce.
        case announced(TrackerReply.Announce)
        /// In the order asked.
        case scraped([TrackerReply.Scrape])
        /// The tracker has said no, in its own words.
        case refused(message: [UInt8])
        /// The tracker has answered with something that is no answer.
        case malformed
        /// The tracker has not answered for as long as `RetryTimeouts` lasts.
        case timedOut
    }

    /// What an announce is about, which stays the same while a download lives.
    public struct Subject: Sendable, Hashable {
        /// Of the swarm that is announced to.
        public var infoHash: InfoHash
        /// The same in all announces of the download.
        public var peerID: PeerID
        /// The port on which the peer listens.
        public var port: UInt16
        /// Tells the peer from others after its address has changed: random, the same in all its announces.
        public var key: UInt32
        /// Peers wanted; negative for the tracker's default.
        public var numWant: Int32
        /// Path and query of the announce URL, for BEP 41; empty for none.
        public var urlData: [UInt8]

        /// Takes the fields as they are.
        public init(
            infoHash: InfoHash, peerID: PeerID, port: UInt16, key: UInt32 = 0, numWant: Int32 = -1,
            urlData: [UInt8] = []
        ) {
            self.infoHash = infoHash
            self.peerID = peerID
            self.port = port
            self.key = key
            self.numWant = numWant
            self.urlData = urlData
        }
    }

    /// How far a download has come, in bytes.
    public struct Progress: Sendable, Hashable {
        /// Since the download's `started`.
        public var downloaded: UInt64
        /// Still to be downloaded; 0 for a seeder.
        public var left: UInt64
        /// Since the download's `started`.
        public var uploaded: UInt64

        /// Takes the fields as they are.
        public init(downloaded: UInt64 = 0, left: UInt64 = 0, uploaded: UInt64 = 0) {
            self.downloaded = downloaded
            self.left = left
            self.uploaded = uploaded
        }
    }

    /// For how long a silent tracker is asked, and which intervals of a talking one are believed.
    public struct RetryTimeouts: Sendable, Hashable {
        /// Before the first retransmission; each further wait is twice as long.
        public var firstWait = Duration.seconds(15)
        /// After so many the request has timed out: 8 makes 15 * (2⁹ − 1) seconds, a good two hours.
        public var maxRetransmissions = 8
        /// Announces come no closer than this, whatever the tracker says, but for events.
        public var minInterval = Duration.seconds(60)
        /// Announces come no further apart than this, whatever the tracker says.
        public var maxInterval = Duration.seconds(86_400)

        /// The waits of BEP 15; intervals between a minute and a day are believed.
        public init() {}

        /// BEP 15's 15 * 2 ^ n.
        func wait(afterSilences count: Int) -> Duration { firstWait * (1 << Int64(min(count, 8))) }

        func bounded(interval seconds: UInt32) -> Duration {
            min(max(.seconds(Int64(seconds)), minInterval), maxInterval)
        }
    }

    enum Request: Sendable, Hashable {
        case announce(AnnounceEvent)
        case scrape([InfoHash])
    }
}

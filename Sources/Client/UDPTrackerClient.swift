// A tracker over UDP (BEP 15).

import Datagrams
import Primitives
import Wire

/// A tracker over UDP (BEP 15), with the back-off of the specification.
///
/// "If a response is not received after 15 * 2 ^ n seconds, the client should retransmit the request, where n starts at
/// 0 and is increased up to 8 … Note that it is necessary to re-request a connection ID when it has expired."
///
/// Deviation: a name with several addresses has all of them asked to connect at once, and the first to answer is taken,
/// so that a dead IPv6 route does not cost fifteen seconds.
struct UDPTrackerClient: TrackerClient {
    let url: TrackerURL
    let options: ClientOptions

    func announce(_ announce: ClientAnnounce) async throws(TrackerClientError) -> ClientAnnounceReply {
        try await onOwnThread { [self] () throws(TrackerClientError) in
            var exchange = try UDPExchange(url, options)
            // BEP 41: nothing is said of the usual path.
            let urlData = ["", "/", "/announce"].contains(url.path) ? [] : Array(url.path.utf8)
            let key = UInt32.random(in: 0...UInt32.max)
            let (reply, roundTrip) = try exchange.ask { connectionID, transactionID in
                let request = AnnounceRequest(
                    connectionID: connectionID, transactionID: transactionID, infoHash: announce.infoHash,
                    peerID: announce.peerID, downloaded: announce.downloaded, left: announce.left,
                    uploaded: announce.uploaded, event: announce.event, key: key,
                    numWant: Int32(clamping: announce.numWant ?? -1), port: announce.port)
                var bytes: [UInt8] = []
                request.encode(into: &bytes, urlData: urlData)
                return bytes
            }
            guard case .announce(_, let content) = reply, let server = exchange.server else {
                throw .malformed("an announce is answered with something else")
            }
            return ClientAnnounceReply(
                server: server, roundTrip: roundTrip, interval: content.interval, seeders: content.seeders,
                leechers: content.leechers, peers: content.peers.map { HTTPAnnounceReply.Peer(address: $0) })
        }
    }

    func scrape(_ infoHashes: [InfoHash]) async throws(TrackerClientError) -> [ClientScrapeReply] {
        try await onOwnThread { [self] () throws(TrackerClientError) in
            var exchange = try UDPExchange(url, options)
            var replies: [ClientScrapeReply] = []
            var rest = infoHashes[...]
            while !rest.isEmpty {
                let part = Array(rest.prefix(ScrapeRequest.maxInfoHashes))
                rest = rest.dropFirst(part.count)
                let (reply, _) = try exchange.ask { connectionID, transactionID in
                    var bytes: [UInt8] = []
                    ScrapeRequest(connectionID: connectionID, transactionID: transactionID, infoHashes: part)
                        .encode(into: &bytes)
                    return bytes
                }
                guard case .scrape(_, let counts) = reply else {
                    throw .malformed("a scrape is answered with something else")
                }
                guard counts.count == part.count else {
                    throw .malformed("\(part.count) info hashes are answered with \(counts.count) counts")
                }
                for (infoHash, count) in zip(part, counts) {
                    let counts = ClientScrapeReply.Counts(
                        seeders: count.seeders, leechers: count.leechers, completed: count.completed)
                    replies.append(ClientScrapeReply(infoHash: infoHash, counts: counts))
                }
            }
            return replies
        }
    }
}

/// A conversation with one tracker: connects as often as need be, and asks.
struct UDPExchange {
    private let host: String
    private let options: ClientOptions
    private let start: Instant
    private var sockets: [ClientSocket]
    private var connection: Connection?

    private struct Connection {
        var socket: ClientSocket
        var id: ConnectionID
        var since: Instant
    }

    /// BEP 15: "A client can use a connection ID until one minute after it has received it".
    private static let connectionLifetime = Duration.seconds(60)
    /// The longest datagram that there is.
    private static let maxByteCount = 65_535

    init(_ url: TrackerURL, _ options: ClientOptions) throws(TrackerClientError) {
        start = Clock.monotonic()
        host = url.host.contains(":") ? "[\(url.host)]:\(url.port)" : "\(url.host):\(url.port)"
        self.options = options
        sockets = []
        var failure: SystemReason?
        for address in try SocketAddress.lookUp(url.host, port: url.port) {
            do {
                sockets.append(try ClientSocket(.datagram, to: address))
            } catch {
                failure = error
            }
        }
        if let failure, sockets.isEmpty { throw .unreachable(host, reason: failure.description) }
    }

    /// Who answers.
    var server: SocketAddress? { connection?.socket.peer }

    private var deadline: Instant { start + options.timeout }

    /// Asks, again and again, until there is an answer or the time is over.
    ///
    /// - Parameter request: the bytes of a request.
    /// - Returns: the answer, and how long it took since the request was last sent.
    /// - Throws: `TrackerClientError` where there is no answer in time, or it makes no sense.
    mutating func ask(
        _ request: (ConnectionID, TransactionID) -> [UInt8]
    ) throws(TrackerClientError) -> (TrackerReply, Duration) {
        var attempt = 0
        // The same id each time, so that a late answer counts too.
        let transactionID = TransactionID(UInt32.random(in: 0...UInt32.max))
        while true {
            let connection = try connected()
            let sent = Clock.monotonic()
            try send(request(connection.id, transactionID), to: connection.socket)
            let until = min(deadline, sent + wait(attempt))
            let arrived = try receive(from: [connection.socket], transactionID, until: until)
            if let (_, reply) = arrived { return (reply, Clock.monotonic() - sent) }
            attempt += 1
            try mayRetry(after: Clock.monotonic() - sent)
        }
    }

    private func wait(_ attempt: Int) -> Duration { options.firstWait * Int64(1 << min(attempt, 8)) }

    private func mayRetry(after waited: Duration) throws(TrackerClientError) {
        let now = Clock.monotonic()
        guard now < deadline else { throw .silent(host, after: now - start) }
        options.onRetry?(ClientRetry(host: host, waited: waited, left: deadline - now))
    }

    /// The connection that there is, or a new one where it is too old.
    private mutating func connected() throws(TrackerClientError) -> Connection {
        if let connection, Clock.monotonic() < connection.since + Self.connectionLifetime { return connection }
        var attempt = 0
        let transactionID = TransactionID(UInt32.random(in: 0...UInt32.max))
        var bytes: [UInt8] = []
        ConnectRequest(transactionID: transactionID).encode(into: &bytes)
        while true {
            let sent = Clock.monotonic()
            for socket in sockets { try send(bytes, to: socket) }
            let until = min(deadline, sent + wait(attempt))
            if let (socket, reply) = try receive(from: sockets, transactionID, until: until) {
                guard case .connect(_, let id) = reply else {
                    throw .malformed("a connect is answered with something else")
                }
                let connection = Connection(socket: socket, id: id, since: Clock.monotonic())
                self.connection = connection
                return connection
            }
            attempt += 1
            try mayRetry(after: Clock.monotonic() - sent)
        }
    }

    private mutating func send(_ bytes: [UInt8], to socket: ClientSocket) throws(TrackerClientError) {
        do {
            _ = try socket.send(bytes[...])
        } catch {
            try drop(socket, error)
        }
    }

    /// Gives an address up; the conversation too, where it was the last or the chosen one.
    private mutating func drop(_ socket: ClientSocket, _ reason: SystemReason) throws(TrackerClientError) {
        sockets.removeAll { $0 === socket }
        if sockets.isEmpty || connection?.socket === socket {
            throw .unreachable(host, reason: reason.description)
        }
    }

    /// Waits for the answer to a request; what answers something else is passed over.
    private mutating func receive(
        from candidates: [ClientSocket], _ transactionID: TransactionID, until: Instant
    ) throws(TrackerClientError) -> (ClientSocket, TrackerReply)? {
        var candidates = candidates
        while true {
            let ready = ClientSocket.wait(candidates, until: until)
            guard !ready.isEmpty else { return nil }
            for socket in ready.map({ candidates[$0] }) {
                let bytes: [UInt8]?
                do {
                    bytes = try socket.receive(atMost: Self.maxByteCount)
                } catch {
                    try drop(socket, error)
                    candidates.removeAll { $0 === socket }
                    continue
                }
                guard let bytes, bytes.count >= 8, bytes.span.bytes.u32(at: 4) == transactionID.rawValue else {
                    continue
                }
                return (socket, try Self.reply(bytes, isIPv6: !socket.peer.isIPv4))
            }
        }
    }

    private static func reply(_ bytes: [UInt8], isIPv6: Bool) throws(TrackerClientError) -> TrackerReply {
        let reply: TrackerReply
        do throws(TrackerReply.Malformed) {
            reply = try TrackerReply(bytes, isIPv6: isIPv6)
        } catch {
            switch error {
            case .short: throw .malformed("it is too short")
            case .ragged: throw .malformed("its length is no whole number of peers or counts")
            case .unknownAction(let action): throw .malformed("its action is \(action)")
            }
        }
        guard case .error(_, let message) = reply else { return reply }
        throw .refused(shownText(message))
    }
}

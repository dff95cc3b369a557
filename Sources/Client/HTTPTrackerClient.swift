// A tracker over HTTP (BEP 3, 7, 23, 48).

import Datagrams
import Primitives
import Wire

/// A tracker over HTTP (BEP 3, 7, 23, 48).
struct HTTPTrackerClient: TrackerClient {
    let url: TrackerURL
    let options: ClientOptions

    func announce(_ announce: ClientAnnounce) async throws(TrackerClientError) -> ClientAnnounceReply {
        try await onOwnThread { [self] () throws(TrackerClientError) in
            var request = HTTPAnnounceRequest(
                infoHash: announce.infoHash, peerID: announce.peerID, port: announce.port, left: announce.left)
            request.uploaded = announce.uploaded
            request.downloaded = announce.downloaded
            request.event = announce.event
            request.numWant = announce.numWant
            request.key = announce.key
            request.trackerID = announce.trackerID
            let start = Clock.monotonic()
            let answer = try get(Self.joined(url.announceTarget, request.encodedQuery()))
            let (reply, peers) = try Self.decoded(answer) { bytes throws(HTTPReplyError) in
                try HTTPAnnounceReply.decode(bytes)
            }
            return ClientAnnounceReply(
                server: answer.server, roundTrip: Clock.monotonic() - start, interval: reply.interval,
                minInterval: reply.minInterval, seeders: reply.seeders, leechers: reply.leechers,
                completed: reply.completed, warning: reply.warningMessage, trackerID: reply.trackerID, peers: peers)
        }
    }

    func scrape(_ infoHashes: [InfoHash]) async throws(TrackerClientError) -> [ClientScrapeReply] {
        try await onOwnThread { [self] () throws(TrackerClientError) in
            guard let target = url.scrapeTarget else { throw .noScrape(url.description) }
            var replies: [ClientScrapeReply] = []
            var rest = infoHashes[...]
            while !rest.isEmpty {
                let part = Array(rest.prefix(HTTPScrapeRequest.maxInfoHashes))
                rest = rest.dropFirst(part.count)
                let query = HTTPScrapeRequest(infoHashes: part).encodedQuery()
                let reply = try Self.decoded(try get(Self.joined(target, query))) { bytes throws(HTTPReplyError) in
                    try HTTPScrapeReply(decoding: bytes)
                }
                for infoHash in part {
                    let counts = reply.files.first { $0.infoHash == infoHash }.map {
                        ClientScrapeReply.Counts(seeders: $0.seeders, leechers: $0.leechers, completed: $0.completed)
                    }
                    replies.append(ClientScrapeReply(infoHash: infoHash, counts: counts))
                }
            }
            return replies
        }
    }

    private static func joined(_ target: String, _ query: [UInt8]) -> String {
        "\(target)\(target.contains("?") ? "&" : "?")\(String(decoding: query, as: UTF8.self))"
    }

    private func get(_ target: String) throws(TrackerClientError) -> HTTPGet.Answer {
        try HTTPGet(
            host: url.host, port: url.port, target: target, headers: [("User-Agent", options.userAgent)],
            deadline: Clock.monotonic() + options.timeout, redirections: 3
        ).run()
    }

    /// Reads the body of an answer.
    ///
    /// Some trackers put a failure reason under a status other than 200.
    private static func decoded<Reply>(
        _ answer: HTTPGet.Answer, _ decode: ([UInt8]) throws(HTTPReplyError) -> Reply
    ) throws(TrackerClientError) -> Reply {
        do throws(HTTPReplyError) {
            let reply = try decode(answer.body)
            if answer.status == 200 { return reply }
        } catch {
            if case .refused(let failure) = error { throw .refused(failure.reason) }
            if answer.status == 200 { throw .malformed(error.description) }
        }
        throw .status(answer.status, reason: answer.reason)
    }
}

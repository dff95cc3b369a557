// Torrents that a cluster is given.

import Foundation
import Primitives

extension ConsoleClient {
    /// A torrent that a cluster has taken in.
    public struct Published: Sendable, Hashable {
        /// As the console says it: 40 hexadecimal digits.
        public var infoHash: String
        /// For people.
        public var name: String
        /// With the trackers of the cluster and of the torrent.
        public var magnet: String
        /// Whether the file was not there before.
        public var isNew: Bool

        /// Those of the cluster, as far as they tell theirs, and behind them the torrent's own.
        public var trackers: [String] {
            (URLComponents(string: magnet)?.queryItems ?? []).filter { $0.name == "tr" }.compactMap(\.value)
        }
    }

    /// Gives a .torrent file to a cluster, which registers it by that.
    ///
    /// - Parameters:
    ///   - file: its bytes.
    ///   - mustBeNew: whether it is an error that it is there already.
    /// - Returns: what the cluster calls it.
    /// - Throws: `.refused` with the console's words, and a way out where there is one.
    public func publish(_ file: [UInt8], mustBeNew: Bool = false) async throws(TrackerClientError) -> Published {
        struct Answer: Decodable {
            var infoHash: String
            var name: String
            var magnet: String
        }
        var headers = [("Content-Type", "application/x-bittorrent")]
        if mustBeNew { headers.append(("If-None-Match", "*")) }
        let reply = try await reply(
            "POST", "/api/v1/torrents", body: file, headers: headers, within: ConsoleClient.uploadTimeout)
        if let advice = Self.advice(reply.status) {
            throw .refused((Self.words(reply) ?? "\(reply.status) \(reply.reason)") + "; " + advice)
        }
        let answer: Answer = try decode(try Self.body(of: reply), "a torrent that was taken in")
        return Published(
            infoHash: shownText(answer.infoHash.utf8), name: shownText(answer.name.utf8), magnet: answer.magnet,
            isNew: reply.status == 201)
    }

    /// What to do about an upload that was refused.
    private static func advice(_ status: Int) -> String? {
        switch status {
        case 401: "give the console's token (on a command line with --token-file)"
        case 403: "publishing needs the role uploader"
        case 412: "without --new that is no error"
        case 413: "make it smaller with larger pieces (torrent create --piece-length)"
        case 429: "try again in a minute"
        default: nil
        }
    }
}

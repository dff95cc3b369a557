// `tracker scrape`.

import ArgumentParser
import Client
import Web
import Wire

/// `tracker scrape`.
struct ScrapeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scrape",
        abstract: "Ask a tracker how many peers share torrents.",
        discussion: """
            Any number of info hashes; 74 go in one request. A tracker that does not know a torrent says zeros over \
            UDP.

            JSON: url, torrents (infoHash, seeders, leechers, completed). The counts of a torrent that the tracker \
            says it does not know are left out.
            """)

    @OptionGroup var target: TrackerTarget

    @Argument(help: ArgumentHelp("40 hexadecimal digits each.", valueName: "infohash"), transform: readInfoHash)
    var infoHashes: [InfoHash]

    @OptionGroup var report: ReportOptions

    func run() async throws {
        let client = target.client()
        let replies: [ClientScrapeReply]
        do throws(TrackerClientError) {
            replies = try await client.scrape(infoHashes)
        } catch {
            throw Failure(error)
        }
        if report.isJSON {
            try report.writeJSON(Document(url: "\(client.url)", torrents: replies.map { Document.Torrent($0) }))
        } else {
            var table = TextTable(.left, .right, .right, .right)
            table.add("info hash", "seeders", "leechers", "completed")
            for reply in replies {
                func cell(_ count: UInt32?) -> String { count.map { Figures.grouped($0) } ?? "unknown" }
                table.add(
                    "\(reply.infoHash)", cell(reply.counts?.seeders), cell(reply.counts?.leechers),
                    cell(reply.counts?.completed))
            }
            Terminal.output.write(table.text { Terminal.output.styled($0, .bold) })
        }
    }

    private struct Document: Encodable {
        struct Torrent: Encodable {
            var infoHash: String
            var seeders: UInt32?
            var leechers: UInt32?
            var completed: UInt32?

            init(_ reply: ClientScrapeReply) {
                infoHash = "\(reply.infoHash)"
                seeders = reply.counts?.seeders
                leechers = reply.counts?.leechers
                completed = reply.counts?.completed
            }
        }

        var url: String
        var torrents: [Torrent]
    }
}

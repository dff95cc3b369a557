// `tracker torrent create`.

import ArgumentParser
import Foundation
import Wire

/// `tracker torrent create`.
struct TorrentCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make a .torrent file of files or directories.",
        discussion: """
            \(TorrentMaking.discussion)

            JSON: file, name, infoHash, infoHashV2 (of a hybrid), magnet, totalBytes, pieceBytes, pieces, files, \
            skipped.
            """)

    @OptionGroup var making: TorrentMaking
    @OptionGroup var report: ReportOptions

    func run() async throws {
        let made = try await making.make(isQuiet: report.isJSON)
        if report.isJSON { try report.writeJSON(made.document) } else { made.tell() }
    }
}

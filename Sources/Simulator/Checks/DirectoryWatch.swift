// What trackers were commanded to keep from the operator's directory of torrents.

import Primitives
import TrackerLogic
import Wire

/// What trackers were commanded to keep from the operator's directory of torrents: a file that every command has which
/// may be at work is not taken out by any of them.
struct DirectoryWatch: Sendable {
    private struct Command: Sendable {
        var node: Int
        var kept: [InfoHash]
        /// When it was carried out, refused, overtaken, or forgotten with its tracker's life; nil until then.
        var closedAt: Instant?
    }

    /// For so long the next master may find undecided what a command has led to.
    private static let aftermath = Duration.seconds(10)

    private var commands: [Command] = []

    /// A tracker is commanded.
    mutating func commanded(_ node: Int, _ torrents: [FileTorrent], at time: Instant) {
        close(node, at: time)
        commands.removeAll { $0.closedAt.map { time - $0 > DirectoryWatch.aftermath } ?? false }
        commands.append(
            Command(node: node, kept: torrents.lazy.filter { $0.isKept }.map { $0.torrent.infoHash }))
    }

    /// What a tracker was commanded is over.
    mutating func close(_ node: Int, at time: Instant) {
        for place in commands.indices where commands[place].node == node && commands[place].closedAt == nil {
            commands[place].closedAt = time
        }
    }

    /// Whether a torrent file is in all that may be at work at a time.
    func isKept(_ infoHash: InfoHash, at time: Instant) -> Bool {
        let atWork = commands.filter { $0.closedAt.map { time - $0 <= DirectoryWatch.aftermath } ?? true }
        return !atWork.isEmpty && atWork.allSatisfy { $0.kept.contains(infoHash) }
    }
}

// What people and programs are told of a transfer while it runs.

import Foundation
import PeerLogic
import Primitives
import Transfers
import Wire

/// What is told of a transfer while it runs: a bar on a terminal, a line now and then elsewhere, or JSON, an object a
/// line.
struct TransferTeller: Sendable {
    private let isJSON: Bool
    private var lastLine: ContinuousClock.Instant?
    private var lastState = ""
    private var hasBar = false
    /// Which tracker has answered last, for the bar.
    private var tracker = ""
    private static let width = 24
    /// For people who read a log.
    private static let lineInterval = Swift.Duration.seconds(10)

    init(isJSON: Bool) { self.isJSON = isJSON }

    // MARK: - Events

    mutating func tell(_ event: TransferEvent) {
        guard let said = Said(event) else { return }
        if isJSON { return writeJSONLine(said) }
        if let words = said.words { line(words) }
    }

    /// An event, for programs; what does not belong to it is left out.
    struct Said: Encodable {
        var event: String
        var address: String?
        var client: String?
        var url: String?
        var infoHash: String?
        var name: String?
        var pieces: Int?
        var of: Int?
        var bytes: Int?
        var piece: Int?
        var peers: Int?
        var seeders: Int?
        var leechers: Int?
        var tracker: Int?
        var reason: String?
        var wrongPieces: [Int]?
        /// For people; nil where they need not know.
        var words: String?

        private enum CodingKeys: CodingKey {
            case event, address, client, url, infoHash, name, pieces, of, bytes, piece, peers, seeders, leechers
            case tracker, reason, wrongPieces
        }

        init?(_ event: TransferEvent) {
            self.event = ""
            switch event {
            case .listening(let address): set("listening", "listens at \(address)") { $0.address = "\(address)" }
            case .added(_, let infoHash, let name):
                set("added", nil) { ($0.infoHash, $0.name) = ("\(infoHash)", name) }
            case .unusable(_, let url, let reason): set("unusable", reason) { ($0.url, $0.reason) = (url, reason) }
            case .checked(_, let have, let count):
                set("checked", have > 0 ? "\(have) of \(count) pieces are here already" : nil) {
                    ($0.pieces, $0.of) = (have, count)
                }
            case .metadataReceived(_, let name, let length):
                set("metadata", "\(name), \(Figures.bytes(length))") { ($0.name, $0.bytes) = (name, length) }
            case .peerLeft(_, let address, let reason):
                set("peerLeft", nil) { ($0.address, $0.reason) = ("\(address)", reason) }
            case .verified(_, let verification):
                set("verified", verification.isRight ? "all files are read back and right" : nil) {
                    ($0.pieces, $0.wrongPieces) = (verification.pieceCount, verification.wrongPieces)
                }
            case .fileChanged(_, let path):
                set("fileChanged", "another program has changed \(path), which is looked at again") { $0.name = path }
            case .failed(_, let reason): set("failed", nil) { $0.reason = reason }
            case .removed: set("removed", nil)
            case .observed(_, let observation): observe(observation)
            }
        }

        private mutating func set(_ event: String, _ words: String?, _ change: (inout Said) -> Void = { _ in }) {
            self.event = event
            self.words = words
            change(&self)
        }

        private mutating func observe(_ observation: TorrentSession.Observation) {
            switch observation {
            case .linkReady(_, let address, let peerID):
                set("peerJoined", nil) { ($0.address, $0.client) = ("\(address)", ClientName.of(peerID)) }
            case .pieceGained(let piece): set("piece", nil) { $0.piece = piece }
            case .pieceWasWrong(let piece, let senders):
                set("pieceWasWrong", "piece \(piece) was wrong and is fetched again") {
                    ($0.piece, $0.peers) = (piece, senders)
                }
            case .banned(let address):
                set("banned", "\(address) has sent wrong data and is not spoken to any more") {
                    $0.address = "\(address)"
                }
            case .completed: set("completed", "all is here")
            case .ratioReached: set("ratioReached", "the ratio is reached")
            case .diskTrouble(let problem):
                let reason = problem.description
                set("diskTrouble", "\(reason); what has come waits in memory, and is written when it can be") {
                    $0.reason = reason
                }
            case .diskMended: set("diskMended", "the disk takes data again")
            case .trackerAnswered(let tracker, let seeders, let leechers, let peers):
                set("trackerAnswered", nil) {
                    ($0.tracker, $0.seeders, $0.leechers, $0.peers) = (tracker, seeders, leechers, peers)
                }
            case .trackerFailed(let tracker, let reason):
                set("trackerFailed", nil) { ($0.tracker, $0.reason) = (tracker, reason) }
            }
        }
    }

    // MARK: - Progress

    private struct Progress: Encodable {
        var event = "progress"
        var state: String
        var totalBytes: Int?
        var missingBytes: Int?
        var receivedBytes: Int
        var sentBytes: Int
        var wastedBytes: Int
        var downloadRate: Int
        var uploadRate: Int
        var secondsLeft: Int?
        var ratio: Double?
        var peers: Int
        var knownPeers: Int
        var tracker: String?
    }

    mutating func tell(_ snapshot: TransferSnapshot) {
        let answered = snapshot.trackers.filter { $0.answeredAt != nil }.max { $0.answeredAt! < $1.answeredAt! }
        let tracker = answered.map { $0.address.map { "\($0)" } ?? $0.url }
        if isJSON {
            return writeJSONLine(
                Progress(
                    state: "\(snapshot.state)", totalBytes: snapshot.totalLength, missingBytes: snapshot.missing,
                    receivedBytes: snapshot.received, sentBytes: snapshot.sent, wastedBytes: snapshot.wasted,
                    downloadRate: snapshot.downloadRate, uploadRate: snapshot.uploadRate,
                    secondsLeft: snapshot.secondsLeft, ratio: snapshot.ratio, peers: snapshot.peers.count,
                    knownPeers: snapshot.knownPeerCount, tracker: tracker))
        }
        let text = Self.text(snapshot, tracker)
        if Terminal.errors.isTerminal {
            Terminal.errors.write("\r\u{1B}[K" + text)
            hasBar = true
            return
        }
        let state = "\(snapshot.state)"
        let isNew = state != lastState && !state.contains("%")
        if !isNew, let lastLine, ContinuousClock.now - lastLine < Self.lineInterval { return }
        lastState = state
        lastLine = .now
        Terminal.errors.write(text + "\n")
    }

    private static func text(_ snapshot: TransferSnapshot, _ tracker: String?) -> String {
        var parts: [String] = []
        if let have = snapshot.have, let wanted = snapshot.wanted, let total = snapshot.totalLength {
            let missing = snapshot.missing ?? 0
            let share = total > 0 ? Double(total - min(missing, total)) / Double(total) : 1
            let full = Int((Double(width) * min(max(share, 0), 1)).rounded(.down))
            let bar = String(repeating: "█", count: full) + String(repeating: "░", count: width - full)
            parts.append("\(bar) \(Int(share * 100)) % of \(Figures.bytes(total))")
            if have.setCount < wanted.setCount { parts.append("\(Figures.bytes(snapshot.downloadRate))/s") }
        }
        parts.append("\(snapshot.state)")
        if let left = snapshot.secondsLeft, left > 0 { parts.append("\(Figures.span(seconds: left)) left") }
        if snapshot.uploadRate > 0 { parts.append("\(Figures.bytes(snapshot.uploadRate))/s up") }
        parts.append(Figures.counted(snapshot.peers.count, "peer"))
        if let tracker {
            parts.append("tracker \(tracker)")
        } else if let problem = snapshot.trackers.compactMap(\.problem).first {
            parts.append("no tracker: \(problem)")
        }
        return parts.joined(separator: ", ")
    }

    /// Ends the bar.
    mutating func close() {
        if hasBar { Terminal.errors.write("\n") }
        hasBar = false
    }

    private mutating func line(_ words: String) {
        if hasBar { Terminal.errors.write("\r\u{1B}[K") }
        hasBar = false
        Terminal.errors.write(words + "\n")
    }
}

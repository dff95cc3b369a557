// `tracker torrent verify`.

import ArgumentParser
import Primitives
import Torrents
import Wire

/// `tracker torrent verify`.
struct TorrentVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check data against a .torrent file.",
        discussion: """
            Reads everything and changes nothing. Ends with 0 where each file is there and right, with 1 otherwise.

            JSON: right, wrongPieces (their indexes, from 0), pieces, files (path, bytes, state, pieces, wrongPieces; \
            foundBytes and reason where they say more). A state is right, missing, unreadable, size or wrong. A \
            piece that spans two files counts for both.
            """)

    @Argument(help: ArgumentHelp("A .torrent file, v1 or hybrid.", valueName: "torrent"))
    var torrent: String

    @Argument(help: "The data, or the directory in which it is under the torrent's name.")
    var path: String

    @OptionGroup var report: ReportOptions

    func run() async throws {
        let info = try readTorrent(torrent).info
        let verifier = TorrentVerifier(info: info, path: path)
        let isShown = !report.isJSON
        let result = await onThread { () -> TorrentVerifier.Result? in
            var bar = ProgressBar("verifying", isShown: isShown)
            return verifier.verify { progress in
                let share = Double(progress.done) / Double(max(1, progress.total))
                bar.update(share, note: "\(Figures.bytes(progress.done)) of \(Figures.bytes(progress.total))")
            }
        }
        guard let result else {
            throw Failure(.failed, "\(torrent) is of version 2 only; data is verified for v1 and hybrid torrents")
        }
        if report.isJSON {
            try report.writeJSON(Document(info, result))
        } else {
            Terminal.output.write(text(info, result))
        }
        // What is wrong has been said.
        guard result.isRight else { throw Failure(.failed, nil) }
    }

    private func text(_ info: TorrentInfo, _ result: TorrentVerifier.Result) -> String {
        let rightCount = info.pieceCount - result.wrongPieces.count
        let wrong = result.files.filter { $0.state != .right }
        var text = "\(Figures.grouped(rightCount)) of \(Figures.counted(info.pieceCount, "piece")) right, "
        text += "\(Figures.grouped(result.files.count - wrong.count)) of "
        text += "\(Figures.counted(result.files.count, "file"))\n"
        var table = TextTable(.left, .left)
        for file in wrong {
            table.add(TorrentShowCommand.path(info.files[file.index]), Self.words(file, info.files[file.index].length))
        }
        return text + table.text(indent: "  ")
    }

    private static func words(_ file: TorrentVerifier.File, _ length: Int) -> String {
        switch file.state {
        case .right: "right"
        case .missing: "is not there"
        case .unreadable(let reason): "cannot be read: \(reason)"
        case .size(let size): "has \(Figures.counted(size, "byte")) instead of \(Figures.grouped(length))"
        case .wrong:
            "\(Figures.grouped(file.wrongPieceCount)) of \(Figures.counted(file.pieceCount, "piece")) wrong"
        }
    }

    private struct Document: Encodable {
        struct File: Encodable {
            var path: String
            var bytes: Int
            var state: String
            var pieces: Int
            var wrongPieces: Int
            var foundBytes: Int?
            var reason: String?

            init(_ file: TorrentVerifier.File, _ info: TorrentInfo) {
                path = TorrentShowCommand.path(info.files[file.index])
                bytes = info.files[file.index].length
                pieces = file.pieceCount
                wrongPieces = file.wrongPieceCount
                switch file.state {
                case .right: state = "right"
                case .missing: state = "missing"
                case .wrong: state = "wrong"
                case .unreadable(let text):
                    state = "unreadable"
                    reason = text
                case .size(let size):
                    state = "size"
                    foundBytes = size
                }
            }
        }

        var right: Bool
        var wrongPieces: [Int]
        var pieces: Int
        var files: [File]

        init(_ info: TorrentInfo, _ result: TorrentVerifier.Result) {
            right = result.isRight
            wrongPieces = result.wrongPieces
            pieces = info.pieceCount
            files = result.files.map { File($0, info) }
        }
    }
}

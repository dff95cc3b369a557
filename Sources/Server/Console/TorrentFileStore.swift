// Torrent files between the console and the log.

import Foundation
import Primitives
import Synchronization
import Torrents
import TrackerLogic
import Web
import Wire

/// Torrent files between the console and the log: checked here, cut into parts, and sent to whoever is master.
///
///     parts ─► the next ── done ──► the next … ──► the head: it is there whole
///               ▲  └── nobody has said, or the master has changed ── again, after a while
///               └───── another part is wanted ── from there on
///
/// An upload that is given up is forgotten by the log itself, a minute after its last part.
final class TorrentFileStore: TorrentFileProvider {
    /// How long nobody may say what became of a part, before the upload is given up.
    static let patience = Swift.Duration.seconds(30)
    /// Before a part is sent again.
    private static let pause = Swift.Duration.milliseconds(300)
    /// Uploads at once at this tracker: the log takes eight of all trackers together.
    private static let maxUploads = 4

    let maxByteCount: Int
    private let change: @Sendable (ConsoleChange) async -> ChangeOutcome
    private let isStopped: @Sendable () -> Bool
    private let file: @Sendable (InfoHash) async -> TrackerLogic.TorrentFile?
    private let trackers: @Sendable () async -> [String]
    private let uploads = Mutex(0)

    /// - Parameters:
    ///   - maxByteCount: of a file.
    ///   - change: brings a change into the log.
    ///   - isStopped: whether there is no node that could; then nobody waits for a master.
    ///   - file: what is applied here.
    ///   - trackers: the announce URLs of the cluster.
    init(
        maxByteCount: Int, change: @escaping @Sendable (ConsoleChange) async -> ChangeOutcome,
        isStopped: @escaping @Sendable () -> Bool,
        file: @escaping @Sendable (InfoHash) async -> TrackerLogic.TorrentFile?,
        trackers: @escaping @Sendable () async -> [String]
    ) {
        self.maxByteCount = maxByteCount
        self.change = change
        self.isStopped = isStopped
        self.file = file
        self.trackers = trackers
    }

    // MARK: - Uploads

    func upload(_ bytes: [UInt8], expected: Expectation) async -> UploadOutcome {
        let metainfo: Metainfo
        do {
            metainfo = try Metainfo(decoding: bytes)
        } catch {
            return .malformed("\(error)")
        }
        guard let infoHash = metainfo.trackerInfoHashes.first, let hash = Bytes32(sha256(bytes)) else {
            return .malformed("it has no info hash")
        }
        let isFree = uploads.withLock { count in
            guard count < Self.maxUploads else { return false }
            count += 1
            return true
        }
        guard isFree else { return .failed(.dropped("others upload as much already; try again in a moment")) }
        defer { uploads.withLock { $0 -= 1 } }
        let wasThere = await file(infoHash) != nil
        if wasThere, expected == .nothing { return .failed(.outdated(at: await file(infoHash)?.changedAt ?? 0)) }
        let upload = UploadID(infoHash: infoHash, number: .random(in: 0 ... .max))
        let head = TorrentFileHead(
            upload: upload, name: Array(metainfo.info.name.bytes.prefix(TorrentFileHead.maxNameByteCount)),
            contentByteCount: UInt64(clamping: metainfo.totalLength), byteCount: UInt32(clamping: bytes.count),
            sha256: hash)
        let outcome = await send(bytes, head, expected)
        guard case .done(let index) = outcome else {
            // It would be forgotten in any case; this is sooner.
            if !isStopped() { _ = await change(.dropUpload(upload)) }
            return .failed(outcome)
        }
        return .done(await describe(metainfo, infoHash, changedAt: index), isNew: !wasThere)
    }

    private func send(_ bytes: [UInt8], _ head: TorrentFileHead, _ expected: Expectation) async -> ChangeOutcome {
        var number: UInt32 = 0
        var silentSince = ContinuousClock.now
        while true {
            let step: ConsoleChange
            if let part = UploadPart(number, of: bytes, head.upload) {
                step = .uploadPart(part)
            } else {
                step = .finishUpload(head, expected: expected)
            }
            let outcome = await change(step)
            switch outcome {
            case .done:
                if case .finishUpload = step { return outcome }
                number += 1
                silentSince = .now
            case .partWanted(let wanted):
                guard silentSince.duration(to: .now) < Self.patience else {
                    return .dropped("the upload was interrupted too often; try again")
                }
                // The whole file is sent anew where nothing is known of it any more.
                number = wanted
                if wanted == 0 { try? await Task.sleep(for: Self.pause) }
            case .dropped:
                guard silentSince.duration(to: .now) < Self.patience, !Task.isCancelled, !isStopped() else {
                    return outcome
                }
                try? await Task.sleep(for: Self.pause)
            case .outdated, .refused: return outcome
            }
        }
    }

    // MARK: - Looking

    func torrent(_ infoHash: InfoHash) async -> UploadedTorrent? {
        guard let file = await file(infoHash), let metainfo = try? Metainfo(decoding: Array(file.parts.joined())) else {
            return nil
        }
        return await describe(metainfo, infoHash, changedAt: file.changedAt)
    }

    private func describe(_ metainfo: Metainfo, _ infoHash: InfoHash, changedAt: UInt64) async -> UploadedTorrent {
        let files = metainfo.info.files.filter { !$0.isPadding }
        var link = MagnetLink(metainfo, infoHash: metainfo.infoHashV1, infoHashV2: metainfo.infoHashV2)
        // This cluster first: the file may name trackers that are long gone.
        link.trackers = await trackers() + link.trackers
        return UploadedTorrent(
            infoHash: infoHash, name: "\(metainfo.info.name)", byteCount: UInt64(clamping: metainfo.totalLength),
            pieceByteCount: UInt64(clamping: metainfo.info.pieceLength), fileByteCount: UInt64(metainfo.bytes.count),
            files: files.prefix(UploadedTorrent.maxFiles).map { file in
                .init(
                    path: file.path.map(\.description).joined(separator: "/"), byteCount: UInt64(clamping: file.length))
            }, fileCount: files.count, magnet: link.text, changedAt: changedAt)
    }

    func bytes(of infoHash: InfoHash) async -> (parts: [[UInt8]], changedAt: UInt64)? {
        await file(infoHash).map { ($0.parts, $0.changedAt) }
    }

    func remove(_ infoHash: InfoHash, expected: Expectation) async -> ChangeOutcome {
        await change(.removeTorrentFile(infoHash, expected: expected))
    }

    func magnet(_ infoHash: InfoHash, name: String) async -> String {
        MagnetLink(infoHash: infoHash, displayName: Array(name.utf8), trackers: await trackers()).text
    }
}

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
    private let reason: @Sendable (InfoHash) -> String?
    private let uploads = Mutex(0)

    /// - Parameters:
    ///   - maxByteCount: of a file.
    ///   - change: brings a change into the log.
    ///   - isStopped: whether there is no node that could; then nobody waits for a master.
    ///   - file: what is applied here.
    ///   - trackers: the announce URLs of the cluster.
    ///   - reason: why a torrent that is registered has no file here; nil where nobody here knows.
    init(
        maxByteCount: Int, change: @escaping @Sendable (ConsoleChange) async -> ChangeOutcome,
        isStopped: @escaping @Sendable () -> Bool,
        file: @escaping @Sendable (InfoHash) async -> TrackerLogic.TorrentFile?,
        trackers: @escaping @Sendable () async -> [String], reason: @escaping @Sendable (InfoHash) -> String?
    ) {
        self.maxByteCount = maxByteCount
        self.change = change
        self.isStopped = isStopped
        self.file = file
        self.trackers = trackers
        self.reason = reason
    }

    // MARK: - Uploads

    func upload(_ bytes: [UInt8], expected: Expectation) async -> UploadOutcome {
        let metainfo: Metainfo
        do {
            metainfo = try Metainfo(decoding: bytes)
        } catch {
            return .malformed("\(error)")
        }
        if metainfo.trailingByteCount > 0 {
            let rest = metainfo.trailingByteCount
            return .malformed(
                "the torrent ends at byte \(bytes.count - rest), and "
                    + (rest == 1 ? "one more byte follows" : "\(rest) more bytes follow")
                    + "; download it anew, or cut off what is behind its end")
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
        let head = TorrentFileHead(metainfo, of: infoHash, sha256: hash, origin: .console)
        let outcome = await send(bytes, head, expected)
        guard case .done(let index) = outcome else { return .failed(outcome) }
        return .done(await describe(metainfo, infoHash, head.origin, changedAt: index), isNew: !wasThere)
    }

    /// Sends a file part by part, and waits until it is there whole.
    ///
    /// - Parameters:
    ///   - bytes: of the whole file.
    ///   - head: what it is called and has to be.
    ///   - expected: what its torrent's file is now.
    ///   - pause: after each part.
    /// - Returns: what became of it; where it is not done, nothing is left of it.
    func send(
        _ bytes: [UInt8], _ head: TorrentFileHead, _ expected: Expectation, pause: Swift.Duration = .zero
    ) async -> ChangeOutcome {
        let outcome = await sendAll(bytes, head, expected, pause)
        if case .done = outcome { return outcome }
        // It would be forgotten in any case; this is sooner.
        if !isStopped() { _ = await change(.dropUpload(head.upload)) }
        return outcome
    }

    private func sendAll(
        _ bytes: [UInt8], _ head: TorrentFileHead, _ expected: Expectation, _ pause: Swift.Duration
    ) async -> ChangeOutcome {
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
                if pause > .zero { try? await Task.sleep(for: pause) }
                guard !Task.isCancelled else { return .dropped("the tracker stops") }
                silentSince = .now
            case .partWanted(let wanted):
                guard silentSince.duration(to: .now) < Self.patience, !Task.isCancelled else {
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
        return await describe(metainfo, infoHash, file.head.origin, changedAt: file.changedAt)
    }

    private func describe(
        _ metainfo: Metainfo, _ infoHash: InfoHash, _ origin: AccountOrigin, changedAt: UInt64
    ) async -> UploadedTorrent {
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
            }, fileCount: files.count, magnet: link.text, origin: origin, changedAt: changedAt)
    }

    func bytes(of infoHash: InfoHash) async -> (parts: [[UInt8]], changedAt: UInt64)? {
        await file(infoHash).map { ($0.parts, $0.changedAt) }
    }

    func reasonWithoutFile(_ infoHash: InfoHash) async -> String {
        reason(infoHash)
            ?? "its file is on its way, or larger than one that is kept whole: the master's log has the reason"
    }

    func remove(_ infoHash: InfoHash, expected: Expectation) async -> ChangeOutcome {
        await change(.removeTorrentFile(infoHash, expected: expected))
    }

    func magnet(_ infoHash: InfoHash, name: String) async -> String {
        MagnetLink(infoHash: infoHash, displayName: Array(name.utf8), trackers: await trackers()).text
    }
}

extension TorrentFileHead {
    /// A new upload of a torrent file.
    init(_ metainfo: Metainfo, of infoHash: InfoHash, sha256: Bytes32, origin: AccountOrigin) {
        self.init(
            upload: UploadID(infoHash: infoHash, number: .random(in: 0 ... .max)),
            name: Array(metainfo.info.name.bytes.prefix(TorrentFileHead.maxNameByteCount)),
            contentByteCount: UInt64(clamping: metainfo.totalLength), byteCount: UInt32(clamping: metainfo.bytes.count),
            sha256: sha256, origin: origin)
    }
}

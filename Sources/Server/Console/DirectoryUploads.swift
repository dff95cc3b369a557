// The files of the operator's directory of torrents, on their way to all trackers.

import Foundation
import Logging
import Primitives
import ServiceLifecycle
import Settings
import Synchronization
import Torrents
import TrackerLogic
import Wire

/// What this process knows of the operator's directory of torrents, and of the files there that are to be kept whole.
///
///     the directory is read ──► the registry is in force, by this master's word ──► what is missing or another goes up
///     this tracker becomes master otherwise ──► what is registered and missing goes up, if the directory here has it
///
/// A master that dies in the middle of it leaves the rest to the next one, which has a directory of its own.
final class DirectoryUploads: Sendable {
    private struct State {
        var listing = TorrentListing()
        /// Whether the registry was made from this very listing.
        var isInForce = false
    }

    private let state = Mutex(State())
    /// When something may have to be done.
    let occasions: AsyncStream<Void>
    private let occasion: AsyncStream<Void>.Continuation

    init() {
        // A second occasion for the same look is the same one.
        (occasions, occasion) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The directory was read.
    func read(_ listing: TorrentListing) { state.withLock { $0 = State(listing: listing) } }

    /// Something has happened to the node; on its thread.
    func observed(_ observation: Observation) {
        let isRegistered = if case .registryChanged = observation { true } else { false }
        let isElected = if case .becameMaster = observation { true } else { false }
        guard isRegistered || isElected else { return }
        state.withLock { $0.isInForce = isRegistered }
        occasion.yield()
    }

    /// There may be more to do.
    func lookAgain() { occasion.yield() }

    /// The files that are to be kept whole, and whether they take the place of others from files.
    var wanted: (files: [TorrentListing.File], mayReplace: Bool) {
        state.withLock { ($0.listing.files, $0.isInForce) }
    }

    /// A file is not kept whole, for a reason in a sentence; nil: it is.
    func note(_ reason: String?, for infoHash: InfoHash) { state.withLock { $0.listing.reasons[infoHash] = reason } }

    /// Why a torrent's file is not kept whole, as far as this process knows.
    func reason(for infoHash: InfoHash) -> String? { state.withLock { $0.listing.reasons[infoHash] } }
}

/// Sends the files of the directory to all trackers, while this one is master: one file after another, part by part,
/// with a pause after each, so that announces do not wait.
struct DirectoryUploader: Service {
    /// After each part: 3 MB a second at most, whatever the disks can do.
    private static let pause = Duration.milliseconds(5)
    /// Before what could not be sent is sent again.
    private static let patience = Duration.seconds(10)
    /// Files that the node is asked about at once.
    private static let batch = 256

    /// What is to be done with a file.
    private enum Need {
        case nothing
        case upload
        /// A person's is there.
        case leave
    }

    let uploads: DirectoryUploads
    let host: NodeHost
    let store: TorrentFileStore
    let logger: Logger

    func run() async throws {
        for await _ in uploads.occasions.cancelOnGracefulShutdown() {
            await cancelWhenGracefulShutdown { await look() }
        }
    }

    /// Sends what is missing.
    private func look() async {
        let (files, mayReplace) = uploads.wanted
        var (sent, left, failed) = (0, 0, 0)
        var isToBeRepeated = false
        for start in stride(from: 0, to: files.count, by: Self.batch) {
            let part = files[start..<min(files.count, start + Self.batch)]
            guard !Task.isCancelled, let needs = await needs(of: part, mayReplace: mayReplace) else { return }
            for (file, need) in zip(part, needs) {
                switch need {
                case .nothing: continue
                case .leave: left += 1
                case .upload:
                    guard !Task.isCancelled, await isMaster else { return }
                    switch await send(file) {
                    case .done:
                        sent += 1
                        uploads.note(nil, for: file.infoHash)
                    case .outdated: continue
                    case .dropped: isToBeRepeated = true
                    case .partWanted: isToBeRepeated = true
                    case .refused(let reason):
                        failed += 1
                        uploads.note(reason, for: file.infoHash)
                        guard failed <= TorrentDirectory.maxComplaints else { continue }
                        logger.warning(
                            "only name and size of a torrent are registered: \(reason)",
                            metadata: ["file": "\(file.path)"])
                    }
                }
            }
        }
        if sent + left + failed > 0 {
            logger.notice(
                "the directory's torrent files are kept whole",
                metadata: ["sent": "\(sent)", "left to uploads": "\(left)", "by name only": "\(failed)"])
        }
        guard isToBeRepeated else { return }
        try? await Task.sleep(for: .nanoseconds(Self.patience.nanoseconds))
        uploads.lookAgain()
    }

    private var isMaster: Bool {
        get async { await host.status()?.role == .master }
    }

    /// - Returns: nil where this tracker is no master.
    private func needs(of files: ArraySlice<TorrentListing.File>, mayReplace: Bool) async -> [Need]? {
        guard await isMaster else { return nil }
        return await host.current?.inbox.ask { node in
            files.map { file in
                let held = node.state.files.find(file.infoHash)?.head
                if held?.origin == .console { return .leave }
                guard node.state.registry.find(file.infoHash) != nil else { return .nothing }
                return held == nil || mayReplace && held?.sha256 != file.sha256 ? .upload : .nothing
            }
        }
    }

    private func send(_ file: TorrentListing.File) async -> ChangeOutcome {
        if let reason = await refusal(of: file) { return .refused(reason) }
        let bytes: [UInt8]
        do {
            bytes = try BoundedFile.read(file.path, atMost: file.byteCount)
        } catch {
            return .refused("\(error)")
        }
        guard Bytes32(sha256(bytes)) == file.sha256, let metainfo = try? Metainfo(decoding: bytes) else {
            return .refused("the file has changed since the directory was read; have it read again (SIGHUP)")
        }
        let head = TorrentFileHead(metainfo, of: file.infoHash, sha256: file.sha256, origin: .file)
        return await store.send(bytes, head, .any, pause: .nanoseconds(Self.pause.nanoseconds))
    }

    /// Why a file need not be read at all; waits for a while where only others are in the way.
    private func refusal(of file: TorrentListing.File) async -> String? {
        for _ in 0..<60 {
            let answer = await host.current?.inbox.ask { node -> (isBusy: Bool, reason: String?) in
                let limits = node.configuration.limits
                let reason = node.state.refusal(
                    ofFile: file.infoHash, byteCount: UInt32(clamping: file.byteCount), limits)
                return (node.state.files.uploadCount >= limits.uploads, reason)
            }
            guard let answer, answer.isBusy, !Task.isCancelled else { return answer?.reason }
            try? await Task.sleep(for: .seconds(1))
        }
        return nil
    }
}

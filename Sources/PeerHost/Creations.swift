// Torrents that are made of what lies in the peer's directory: hashed, published, handed over to be seeded.

import Client
import Foundation
import Glibc
import Primitives
import Synchronization
import Torrents
import Web
import Wire

/// Torrents that are made of what lies in the peer's directory, one after another: each takes all cores while it
/// hashes.
///
///     hashing ──► publishing ──► done        each can become failed, or cancelled
///
/// The files that were made lie in a hidden folder until they are forgotten; nothing of this survives a restart.
final class Creations: Sendable {
    /// That wait or are made.
    static let maxWaiting = 16
    /// That have ended and are still told of.
    static let maxEnded = 20

    private struct Job {
        var view: PeerCreation
        var order: PeerCreationOrder
        var watch: Watch
    }

    /// How far the hashing is; written by the thread that hashes.
    private final class Watch: Sendable {
        let isCancelled = Atomic(false)
        let done = Atomic(0)
        let total = Atomic(0)
        let beganAt = Mutex<ContinuousClock.Instant?>(nil)
    }

    private struct State {
        /// The oldest first.
        var jobs: [Job] = []
        var lastID = 0
    }

    private let directory: PeerDirectory
    private let version: String
    private let state = Mutex(State())
    private let waiting: AsyncStream<String>
    private let wait: AsyncStream<String>.Continuation

    init(directory: PeerDirectory, version: String) {
        (self.directory, self.version) = (directory, version)
        (waiting, wait) = AsyncStream.makeStream(of: String.self)
        let folder = directory.hiddenFolder
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        where name.hasSuffix(".torrent") {
            unlink("\(folder)/\(name)")
        }
    }

    // MARK: - What people want

    /// Those that wait or are made, and the last that have ended; the oldest first.
    var all: [PeerCreation] {
        state.withLock { state in state.jobs.map(Self.view) }
    }

    private static func view(_ job: Job) -> PeerCreation {
        var view = job.view
        view.byteCount = job.watch.total.load(ordering: .relaxed)
        let done = job.watch.done.load(ordering: .relaxed)
        guard view.state == .hashing else { return view }
        view.progress = view.byteCount > 0 ? Double(done) / Double(view.byteCount) : 0
        guard let began = job.watch.beganAt.withLock({ $0 }) else { return view }
        let (seconds, attoseconds) = began.duration(to: .now).components
        let elapsed = Double(seconds) + Double(attoseconds) / 1e18
        guard elapsed > 0.1, done > 0 else { return view }
        view.rate = Int(Double(done) / elapsed)
        if view.rate > 0 { view.secondsLeft = (view.byteCount - done + view.rate - 1) / view.rate }
        return view
    }

    /// Takes an order, and has it wait for its turn.
    ///
    /// - Throws: `PeerRefusal`, for what is no path below the directory, no console, or too much.
    func begin(_ order: PeerCreationOrder) throws(PeerRefusal) -> PeerCreation {
        let parts = try PeerDirectory.parts(order.path)
        guard let name = parts.last else {
            throw PeerRefusal(.invalid, "name a file or a folder below the peer's directory")
        }
        try directory.check(parts)
        if let console = order.publish { _ = try Self.client(of: console) }
        if let length = order.pieceLength,
            length.nonzeroBitCount != 1 || !(16_384...TorrentInfo.maxPieceLength).contains(length)
        {
            throw PeerRefusal(.invalid, "pieceLength is a power of two from 16384 to \(TorrentInfo.maxPieceLength)")
        }
        let taken = state.withLock { state -> (begun: PeerCreation, forgotten: [String])? in
            guard state.jobs.count(where: { !$0.view.state.isEnd }) < Self.maxWaiting else { return nil }
            state.lastID += 1
            let view = PeerCreation(id: "\(state.lastID)", path: order.path, name: name)
            state.jobs.append(Job(view: view, order: order, watch: Watch()))
            let ended = state.jobs.filter { $0.view.state.isEnd }.map(\.view.id)
            let forgotten = Array(ended.dropLast(Self.maxEnded))
            state.jobs.removeAll { forgotten.contains($0.view.id) }
            return (view, forgotten)
        }
        guard let taken else {
            throw PeerRefusal(.full, "\(Self.maxWaiting) torrents are being made already; wait for one, or cancel it")
        }
        for id in taken.forgotten { unlink(file(id)) }
        wait.yield(taken.begun.id)
        return taken.begun
    }

    /// Cancels one that waits or is made, or forgets one that has ended.
    func end(_ id: String) throws(PeerRefusal) {
        let isKnown = state.withLock { state in
            guard let index = state.jobs.firstIndex(where: { $0.view.id == id }) else { return false }
            if state.jobs[index].view.state.isEnd {
                state.jobs.remove(at: index)
                unlink(file(id))
            } else {
                state.jobs[index].watch.isCancelled.store(true, ordering: .relaxed)
                state.jobs[index].view.state = .cancelled
                state.jobs[index].view.progress = 0
            }
            return true
        }
        guard isKnown else { throw Self.unknown }
    }

    /// The file that was made.
    func bytes(of id: String) throws(PeerRefusal) -> [UInt8] {
        guard let view = all.first(where: { $0.id == id }) else { throw Self.unknown }
        guard view.hash != nil, let data = FileManager.default.contents(atPath: file(id)) else {
            throw PeerRefusal(.conflict, "the torrent has not been made; wait for the end of the hashing")
        }
        return [UInt8](data)
    }

    private static let unknown = PeerRefusal(.unknown, "no torrent of this number is being made, or was")

    private func file(_ id: String) -> String { "\(directory.hiddenFolder)/creation-\(id).torrent" }

    /// Ends all that is being made.
    func stop() {
        wait.finish()
        state.withLock { state in
            for job in state.jobs { job.watch.isCancelled.store(true, ordering: .relaxed) }
        }
    }

    // MARK: - The work

    /// Makes one after another, until `stop`.
    func run(for host: PeerHost) async {
        for await id in waiting {
            guard let job = state.withLock({ state in state.jobs.first { $0.view.id == id && !$0.view.state.isEnd } })
            else { continue }
            do throws(PeerRefusal) {
                try await make(job, for: host)
                change(id) { $0.state = .done }
            } catch {
                change(id) { view in
                    view.state = .failed
                    view.reason = error.words
                }
            }
        }
    }

    /// Changes how one is seen; one that has been cancelled stays so.
    private func change(_ id: String, _ body: (inout PeerCreation) -> Void) {
        state.withLock { state in
            guard let index = state.jobs.firstIndex(where: { $0.view.id == id }), !state.jobs[index].view.state.isEnd
            else { return }
            body(&state.jobs[index].view)
        }
    }

    private func make(_ job: Job, for host: PeerHost) async throws(PeerRefusal) {
        let (id, order) = (job.view.id, job.order)
        let metainfo = try await hashed(job)
        let magnet = MagnetLink(metainfo, infoHash: metainfo.infoHashV1).text
        change(id) { view in
            (view.hash, view.magnet) = (metainfo.infoHashV1.map { "\($0)" }, magnet)
            view.progress = 1
            if order.publish != nil { view.state = .publishing }
        }
        var published: [String] = []
        if let console = order.publish, !job.watch.isCancelled.load(ordering: .relaxed) {
            let client = try Self.client(of: console)
            do throws(TrackerClientError) {
                let answer = try await client.publish(metainfo.bytes)
                published = answer.trackers
                change(id) { view in (view.published, view.magnet) = (console.url, answer.magnet) }
            } catch {
                throw PeerRefusal(.conflict, "the torrent is made, but not published: \(error)")
            }
        }
        guard order.seeds, !job.watch.isCancelled.load(ordering: .relaxed) else { return }
        let own = Set(metainfo.trackers.flatMap { $0 })
        try await host.seed(
            metainfo.bytes, at: order.path, extraTrackers: published.filter { !own.contains($0) })
        change(id) { $0.isSeeding = true }
    }

    private func hashed(_ job: Job) async throws(PeerRefusal) -> Metainfo {
        let (order, watch) = (job.order, job.watch)
        // Looked at again: some time may have passed since.
        let parts = try PeerDirectory.parts(order.path)
        try directory.check(parts)
        var maker = TorrentMaker(path: directory.absolute(parts))
        maker.pieceLength = order.pieceLength
        maker.trackers = order.trackers.first ?? []
        maker.furtherTiers = Array(order.trackers.dropFirst())
        maker.webSeeds = order.webSeeds
        maker.comment = order.comment.isEmpty ? nil : order.comment
        maker.isPrivate = order.isPrivate
        maker.createdBy = "Swarmkeeper \(version)"
        maker.creationDate = WallTime(milliseconds: Int64(Date().timeIntervalSince1970) * 1_000)
        watch.beganAt.withLock { $0 = .now }
        let (ready, file) = (maker, file(job.view.id))
        do throws(TorrentMakerError) {
            return try await onOwnThread { () throws(TorrentMakerError) in
                let result = try ready.make { progress in
                    watch.total.store(progress.total, ordering: .relaxed)
                    watch.done.store(progress.done, ordering: .relaxed)
                } goesOn: {
                    !watch.isCancelled.load(ordering: .relaxed)
                }
                do {
                    try Data(result.metainfo.bytes).write(to: URL(filePath: file), options: .atomic)
                } catch {
                    throw .unreadable(file, reason: "it cannot be written: \(error.localizedDescription)")
                }
                return result.metainfo
            }
        } catch {
            throw PeerRefusal(.invalid, error.description.replacing("\(directory.path)/", with: ""))
        }
    }

    /// - Throws: `PeerRefusal`, for what is no console's address.
    private static func client(of console: PeerCreationOrder.Console) throws(PeerRefusal) -> ConsoleClient {
        let place: TrackerURL
        do throws(TrackerURLError) {
            place = try TrackerURL(console.url.contains("://") ? console.url : "http://\(console.url)")
        } catch {
            throw PeerRefusal(.invalid, error.description)
        }
        guard place.scheme == .http, place.path.isEmpty || place.path == "/" else {
            throw PeerRefusal(
                .invalid, "\(quoted(console.url)) is no console; write for example http://127.0.0.1:6970")
        }
        guard console.token?.utf8.allSatisfy({ (33...126).contains($0) }) != false else {
            throw PeerRefusal(.invalid, "the console's token has printable characters without blanks only")
        }
        return ConsoleClient(host: place.host, port: place.port, token: console.token)
    }
}

// Many torrents, one loop: what a program calls.

import Datagrams
import PeerLogic
import Primitives
import Synchronization
import Wire

/// Many torrents at one peer: sockets, files, hashes and trackers around a `TorrentSession` each.
///
/// A thread of its own runs the loop (`EngineLoop`); others hash, write and ask. Every call may come from any thread.
public final class TransferEngine: Sendable {
    private let inbox: Inbox

    /// Starts the engine: its sockets listen, its threads run.
    ///
    /// - Parameters:
    ///   - options: what holds for all torrents.
    ///   - onEvent: called on the loop's thread, and must return at once.
    /// - Throws: `TransferError` where an address cannot be listened on.
    public init(
        _ options: EngineOptions, onEvent: @escaping @Sendable (TransferEvent) -> Void = { _ in }
    ) throws(TransferError) {
        inbox = try EngineLoop.start(options, onEvent)
    }

    /// Ends the engine without a word to trackers, if `stop` was not called.
    deinit { inbox.close() }

    /// Adds a torrent, and begins with it unless it is to be paused.
    ///
    /// - Throws: `.usage` for what is no torrent of ours (v2 only), `.duplicate`, `.disk` where there is no directory.
    public func add(
        _ source: TorrentSource, _ options: TransferOptions
    ) async throws(TransferError) -> TransferID {
        let torrent = try PreparedTorrent(source)
        return try await ask { loop throws(TransferError) in try loop.add(torrent, options) }
    }

    /// Removes a torrent: trackers are told in the background, and its files are gone when it returns.
    ///
    /// - Parameters:
    ///   - id: which one.
    ///   - deletingData: whether the torrent's own files go, too.
    /// - Throws: `.unknown` where there is none.
    public func remove(_ id: TransferID, deletingData: Bool = false) async throws(TransferError) {
        try await askForLater { loop, answer throws(TransferError) in
            try loop.remove(id, deletingData: deletingData) { answer(.success(())) }
        }
    }

    /// Closes all connections of a torrent.
    public func pause(_ id: TransferID) async throws(TransferError) {
        try await ask { loop throws(TransferError) in try loop.transfer(id).pause() }
    }

    /// Goes on with a torrent that is paused, or has failed.
    public func resume(_ id: TransferID) async throws(TransferError) {
        try await ask { loop throws(TransferError) in try loop.transfer(id).resume() }
    }

    /// Hashes all that is on the disk again, and goes on from that.
    public func recheck(_ id: TransferID) async throws(TransferError) {
        try await ask { loop throws(TransferError) in try loop.transfer(id).recheck() }
    }

    /// Says which files are wanted, by their places in the torrent; nil for all.
    public func setWanted(_ id: TransferID, files: Set<Int>?) async throws(TransferError) {
        try await ask { loop throws(TransferError) in try loop.transfer(id).setWanted(files) }
    }

    /// Sets limits, slots and ratio of one torrent; port and local announces stay the engine's.
    public func setSettings(_ id: TransferID, _ settings: SessionSettings) async throws(TransferError) {
        try await ask { loop throws(TransferError) in
            try loop.transfer(id).setSettings(settings)
            loop.shareLimits()
        }
    }

    /// Sets the limits of all torrents together, in bytes a second; nil for none.
    public func setLimits(download: Int?, upload: Int?) async throws(TransferError) {
        try await ask { loop throws(TransferError) in loop.setLimits(download: download, upload: upload) }
    }

    /// Names peers of a torrent.
    public func addPeers(_ id: TransferID, _ addresses: [SocketAddress]) async throws(TransferError) {
        try await ask { loop throws(TransferError) in
            try loop.transfer(id).step(.peersFound(addresses, .person))
        }
    }

    /// Asks trackers now rather than at the next time.
    public func update(_ id: TransferID) async throws(TransferError) {
        try await ask { loop throws(TransferError) in try loop.transfer(id).step(.updateWanted) }
    }

    /// Reads all wanted files back and hashes them; `Verification` comes as an event, too.
    public func verifyAll(_ id: TransferID) async throws(TransferError) -> Verification {
        try await askForLater { loop, answer throws(TransferError) in try loop.transfer(id).verifyAll(answer) }
    }

    /// All transfers as they are, the oldest first.
    public func snapshots() async -> [TransferSnapshot] {
        (try? await ask { loop throws(TransferError) in loop.snapshots() }) ?? []
    }

    /// One transfer as it is.
    public func snapshot(_ id: TransferID) async throws(TransferError) -> TransferSnapshot {
        try await ask { loop throws(TransferError) in try loop.transfer(id).snapshot() }
    }

    /// All transfers as they are, the oldest first, without their connections and files: cheap for many.
    public func summaries() async -> [TransferSnapshot] {
        (try? await ask { loop throws(TransferError) in loop.snapshots(isWhole: false) }) ?? []
    }

    /// The raw info dictionary; nil while it is not known.
    public func metadata(_ id: TransferID) async throws(TransferError) -> [UInt8]? {
        try await ask { loop throws(TransferError) in try loop.transfer(id).content?.metadata }
    }

    /// The addresses at which peers may call, with their ports.
    public func listenAddresses() async -> [SocketAddress] {
        (try? await ask { loop throws(TransferError) in loop.listenAddresses }) ?? []
    }

    /// Ends all transfers: trackers are told within some seconds, what is verified is noted.
    ///
    /// Later calls throw.
    public func stop() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            if !inbox.post({ loop in loop.stop { continuation.resume() } }) { continuation.resume() }
        }
    }

    private func ask<Value: Sendable>(
        _ body: @escaping @Sendable (EngineLoop) throws(TransferError) -> Value
    ) async throws(TransferError) -> Value {
        try await askForLater { loop, answer throws(TransferError) in answer(.success(try body(loop))) }
    }

    /// Asks for something that takes a while: the body has the answer given once, unless it throws.
    private func askForLater<Value: Sendable>(
        _ body:
            @escaping @Sendable (
                EngineLoop, _ answer: @escaping @Sendable (Result<Value, TransferError>) -> Void
            ) throws(TransferError) -> Void
    ) async throws(TransferError) -> Value {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value, TransferError>, Never>) in
            let isTaken = inbox.post { loop in
                do throws(TransferError) {
                    try body(loop) { continuation.resume(returning: $0) }
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
            if !isTaken { continuation.resume(returning: .failure(.engineStopped)) }
        }
        return try result.get()
    }
}

extension TransferError {
    static let engineStopped = TransferError(.stopped, "The transfers have been stopped; start the program again.")
}

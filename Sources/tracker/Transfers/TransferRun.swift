// One torrent from its begin to its end, for `get` and `seed`.

import ArgumentParser
import Foundation
import PeerLogic
import Primitives
import Synchronization
import Transfers
import UnixSignals
import Wire

/// One torrent from its begin to its end, with a progress bar for people or events for programs.
struct TransferRun: Sendable {
    var source: TorrentSource
    var engine: EngineOptions
    var options: TransferOptions
    var isJSON: Bool
    var giveUpAfter: Primitives.Duration?
    /// Whether it ends when all that is wanted is here and checked; else it goes on until it is told to end, or until
    /// the ratio is reached.
    var endsWhenComplete: Bool

    private enum Wake: Sendable {
        case event(TransferEvent)
        case tick
        case signal
    }

    func run() async throws(Failure) {
        let (wakes, wake) = AsyncStream.makeStream(of: Wake.self, bufferingPolicy: .unbounded)
        let engine: TransferEngine
        let id: TransferID
        do throws(TransferError) {
            engine = try TransferEngine(self.engine) { wake.yield(.event($0)) }
            id = try await engine.add(source, options)
        } catch {
            throw Failure(error.kind == .usage ? .failed : .system, error.description)
        }
        let signals = Task {
            for await _ in await UnixSignalsSequence(trapping: .sigint, .sigterm) { wake.yield(.signal) }
        }
        let ticks = Task {
            while !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(500))
                wake.yield(.tick)
            }
        }
        defer {
            signals.cancel()
            ticks.cancel()
        }
        var teller = TransferTeller(isJSON: isJSON)
        let problem = await follow(engine, id, wakes, &teller)
        teller.close()
        // The second signal does not wait for trackers.
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await engine.stop() }
            group.addTask { for await wake in wakes { if case .signal = wake { return } } }
            await group.next()
            group.cancelAll()
        }
        if let problem { throw problem }
    }

    /// Goes on until there is an end.
    private func follow(
        _ engine: TransferEngine, _ id: TransferID, _ wakes: AsyncStream<Wake>, _ teller: inout TransferTeller
    ) async -> Failure? {
        var moved = ContinuousClock.now
        var movedBytes = -1
        var isRatioReached = false
        var isVerified = false
        var isChecked = false
        var isHere = options.isSeedOnly
        for await wake in wakes {
            switch wake {
            case .signal:
                if isHere { return nil }
                return Failure(.interrupted, "ended before all was here; the same command goes on with it")
            case .event(let event):
                teller.tell(event)
                switch event {
                case .failed(_, let reason): return Failure(.failed, reason)
                case .observed(_, .ratioReached): isRatioReached = true
                case .observed(_, .completed): isHere = true
                case .checked(_, 0, let count) where options.isSeedOnly:
                    return Failure(
                        .failed,
                        "none of the \(Figures.counted(count, "piece")) is in \(options.directory); --path is the "
                            + "directory in which the torrent's file or directory lies")
                case .checked: isChecked = true
                case .verified(_, let verification):
                    guard verification.isRight else {
                        let count = Figures.counted(verification.wrongPieces.count, "piece")
                        return Failure(
                            .failed, "\(count) on the disk are not what was written there; run it again with --recheck")
                    }
                    isVerified = true
                default: break
                }
                if isVerified, endsWhenComplete || isRatioReached { return nil }
                if isRatioReached, options.isSeedOnly { return nil }
            case .tick:
                guard let snapshot = try? await engine.snapshot(id) else { continue }
                teller.tell(snapshot)
                if snapshot.missing == 0 { isHere = true }
                if isChecked, endsWhenComplete, snapshot.missing == 0, snapshot.received == 0 {
                    // All was here before: it is read back all the same, once.
                    isChecked = false
                    _ = try? await engine.verifyAll(id)
                }
                let bytes = snapshot.received + snapshot.sent
                if bytes != movedBytes { (moved, movedBytes) = (.now, bytes) }
                if case .checking = snapshot.state { moved = .now }
                guard let giveUpAfter, moved.duration(to: .now) >= .nanoseconds(giveUpAfter.nanoseconds) else {
                    continue
                }
                return Failure(.unavailable, "given up: \(snapshot.state); nothing has moved for \(giveUpAfter.text)")
            }
        }
        return nil
    }
}

extension Primitives.Duration {
    fileprivate var text: String { Figures.span(seconds: Int(max(wholeSeconds, 1))) }
}

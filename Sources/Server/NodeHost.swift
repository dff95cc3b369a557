// The node and what serves clients with it: runs, is stopped by the console, and runs again.

import Datagrams
import Foundation
import Logging
import Primitives
import ServiceLifecycle
import Settings
import Synchronization
import TrackerLogic
import Web
import Wire

/// The node and what serves clients with it, which the console can stop and start; the process and its console stay.
///
///     serving ── stop ──► stopping: gives its role away, answers who waits ──► stopped ── start ──► serving anew
///        └── the process is to end, its disk fails, or the whole cluster stops: `run` returns
///
/// A stop by the console is what SIGTERM does, but for the process: the tracker leaves in good order, its sockets are
/// closed and its record too. A start reads the record again and joins as any tracker does that has been restarted.
final class NodeHost: Service, Sendable {
    /// One life of the node, with its listeners.
    struct Run: Sendable {
        var service: NodeService
        var pages: [HTTPService]
        var group: ServiceGroup
        /// As the record had them.
        var accounts: Accounts

        /// Takes down what was made and is not going to run.
        func abandon() async {
            for page in pages { await page.close() }
            service.abandon()
        }
    }

    private enum Phase: Sendable {
        /// Can transition to: stopping.
        case serving(Run)
        /// Can transition to: stopped.
        case stopping(Run)
        /// With what was last known. Can transition to: serving.
        case stopped(NodeStatus, ClusterReport)
    }

    private struct State {
        var phase: Phase
        /// Whoever waits for the stop to be over.
        var stoppers: [CheckedContinuation<NodeSwitchOutcome, Never>] = []
        /// Whoever wants a start.
        var starter: CheckedContinuation<NodeSwitchOutcome, Never>?
        var hasEnded = false
        /// Whether the settings of the next life are being changed.
        var isChanging = false
    }

    /// The cluster's.
    let clusterName: String
    private let state: Mutex<State>
    /// The accounts as they were known last; nil before the node has any state.
    private let known: Mutex<Accounts?>
    /// Whether there were accounts when the process began.
    let hadAccounts: Bool
    private let make: @Sendable () async throws -> Run
    private let starts: AsyncStream<Void>
    private let start: AsyncStream<Void>.Continuation
    private let logger: Logger

    /// A host whose first life is ready to be run.
    ///
    /// - Parameters:
    ///   - first: not running yet.
    ///   - clusterName: as it has to be typed before the last tracker is stopped.
    ///   - logger: for stops and starts.
    ///   - make: makes another life, when the console wants one.
    init(
        _ first: Run, clusterName: String, logger: Logger, make: @escaping @Sendable () async throws -> Run
    ) {
        state = Mutex(State(phase: .serving(first)))
        known = Mutex(first.accounts.count > 0 ? first.accounts : nil)
        hadAccounts = first.accounts.count > 0
        self.clusterName = clusterName
        self.make = make
        self.logger = logger
        // A second wish for the same start is the same wish.
        (starts, start) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The life that serves; nil while there is none.
    var current: NodeService? {
        state.withLock { state in
            switch state.phase {
            case .serving(let run), .stopping(let run): run.service
            case .stopped: nil
            }
        }
    }

    // MARK: - Running

    func run() async throws {
        defer { close() }
        while let run = serving {
            try await withGracefulShutdownHandler {
                try await run.group.run()
            } onGracefulShutdown: {
                Task { await run.group.triggerGracefulShutdown() }
            }
            guard await settle(run) else { return }
            guard await startAgain() else { return }
        }
    }

    private var serving: Run? {
        state.withLock { if case .serving(let run) = $0.phase { run } else { nil } }
    }

    /// The life has ended.
    ///
    /// - Returns: whether the console has stopped it; else the process is to end.
    private func settle(_ run: Run) async -> Bool {
        let isStopped = state.withLock { if case .stopping = $0.phase { true } else { false } }
        guard isStopped, !Task.isShuttingDownGracefully else { return false }
        let (node, report) = run.service.lastWords
        if let accounts = run.service.accounts { known.withLock { $0 = accounts } }
        state.withLock { state in
            state.phase = .stopped(node, report)
            for stopper in state.stoppers { stopper.resume(returning: .done) }
            state.stoppers = []
        }
        logger.notice("stopped by the console; it starts again when the console says so")
        return true
    }

    /// Waits for the wish to start, until one succeeds.
    ///
    /// - Returns: false where the process is to end.
    private func startAgain() async -> Bool {
        for await _ in starts.cancelOnGracefulShutdown() {
            let outcome: NodeSwitchOutcome
            do {
                let run = try await make()
                state.withLock { $0.phase = .serving(run) }
                outcome = .done
                logger.notice("started by the console")
            } catch {
                logger.error("the tracker cannot start: \(error)")
                outcome = .refused("\(error)")
            }
            state.withLock { state in
                state.starter?.resume(returning: outcome)
                state.starter = nil
            }
            if outcome == .done { return true }
        }
        return false
    }

    /// Nobody waits any more for what will not come.
    private func close() {
        state.withLock { state in
            state.hasEnded = true
            for stopper in state.stoppers { stopper.resume(returning: .done) }
            state.stoppers = []
            state.starter?.resume(returning: .refused("the process ends"))
            state.starter = nil
        }
        start.finish()
    }

    /// Has the node obey; a stopped one is told the same by its files when it starts.
    func command(_ command: OperatorCommand) { current?.inbox.put { $0.commands.append(command) } }
}

// MARK: - The console's switch

extension NodeHost: NodeSwitch {
    func stopNode(name: String?) async -> NodeSwitchOutcome {
        if name != clusterName, let reason = await reasonToHesitate() { return .refused(reason) }
        return await withCheckedContinuation { continuation in
            let run = state.withLock { state -> Run? in
                switch state.phase {
                case .serving(let run):
                    state.phase = .stopping(run)
                    state.stoppers.append(continuation)
                    return run
                case .stopping:
                    state.stoppers.append(continuation)
                    return nil
                case .stopped:
                    continuation.resume(returning: .done)
                    return nil
                }
            }
            guard let run else { return }
            logger.notice("the console stops this tracker")
            Task.detached { await run.group.triggerGracefulShutdown() }
        }
    }

    /// Why a stop wants the cluster's name: nobody would be left to answer.
    private func reasonToHesitate() async -> String? {
        guard let report = await current?.cluster() else { return nil }
        let status = report.status
        let others = status.trackers.filter { $0.life != status.life && $0.role != nil }.map(\.life.id)
        let isLast: Bool
        switch status.mode {
        case nil: isLast = true
        case .survivor: isLast = others.isEmpty
        case .quorum:
            isLast =
                status.voters.contains(status.life.id)
                && status.voters.count(where: others.contains) < status.voters.count / 2 + 1
        }
        guard isLast else { return nil }
        return
            "without this tracker nobody answers: the others that are there are too few. An orderly stop of all "
            + "empties the swarms, unless --keep-swarms keeps them. To stop it all the same, give the cluster's name"
    }

    func startNode() async -> NodeSwitchOutcome {
        await withCheckedContinuation { continuation in
            let answer = state.withLock { state -> NodeSwitchOutcome? in
                guard !state.hasEnded else { return .refused("the process ends") }
                switch state.phase {
                case .serving: return .done
                case .stopping: return .refused("the tracker is stopping; try again when it has")
                case .stopped:
                    guard state.starter == nil else { return .refused("the tracker is starting already") }
                    guard !state.isChanging else {
                        return .refused("its settings are being changed; try again in a moment")
                    }
                    state.starter = continuation
                    return nil
                }
            }
            if let answer { return continuation.resume(returning: answer) }
            start.yield()
        }
    }
}

// MARK: - Other settings for the next life

extension NodeHost {
    /// Keeps the node stopped while its settings are changed, until `endChange`.
    ///
    /// - Returns: why they cannot be changed now, and what to do; nil where they can.
    func beginChange() -> String? {
        state.withLock { state in
            guard case .stopped = state.phase, !state.hasEnded else {
                return "settings are changed while the tracker is stopped; stop it first: POST /api/v1/node/stop"
            }
            guard state.starter == nil, !state.isChanging else {
                return "the tracker is starting, or its settings are being changed; try again in a moment"
            }
            state.isChanging = true
            return nil
        }
    }

    func endChange() { state.withLock { $0.isChanging = false } }

    /// How the cluster was when the node stopped; nil while there is one.
    var lastReport: ClusterReport? { stopped?.report }
}

// MARK: - What is asked of the node

extension NodeHost: StatusProvider, ClusterProvider {
    private var stopped: (status: NodeStatus, report: ClusterReport)? {
        state.withLock { if case .stopped(let status, let report) = $0.phase { (status, report) } else { nil } }
    }

    func status() async -> NodeStatus? {
        if let stopped { return stopped.status }
        return await current?.status()
    }

    func cluster() async -> ClusterReport? {
        if let stopped { return stopped.report }
        return await current?.cluster()
    }

    func carryOut(_ order: ClusterOrder) async -> OrderOutcome {
        guard let current else {
            return .refused("this tracker is stopped: start it, or give the order to another tracker's console")
        }
        return await current.carryOut(order)
    }
}

extension NodeHost: SwarmProvider {
    func swarms(_ query: SwarmQuery) async -> SwarmsPage? { await current?.swarms.swarms(query) }

    func swarm(_ infoHash: InfoHash) async -> Sought<(row: SwarmRow, asOf: WallTime)>? {
        await current?.swarms.swarm(infoHash)
    }

    func peers(of infoHash: InfoHash, _ query: PeerQuery) async -> Sought<PeersPage>? {
        await current?.swarms.peers(of: infoHash, query)
    }
}

// MARK: - What people keep at the console

extension NodeHost: AccountProvider {
    func isAbreast() async -> Bool {
        // One that is stopped reaches nobody, and says so.
        guard let current else { return true }
        return await current.inbox.ask { $0.isAbreast(at: Clock.read()) } ?? false
    }

    func accounts() async -> Accounts? {
        // Where the node has stopped, or does not answer, those that were known count.
        let applied = current?.accounts
        return known.withLock { known in
            if let applied { known = applied }
            return known
        }
    }

    func change(_ change: ConsoleChange) async -> ChangeOutcome {
        switch await carryOut(.change(change)) {
        case .changed(let outcome):
            // Whoever is told finds it here: the node takes in first what has come before the answer.
            if case .done = outcome { _ = await current?.inbox.ask { $0.state.index } }
            return outcome
        case .refused(let reason): return .dropped(reason)
        case .busy: return .dropped("too many changes are under way; try again in a moment")
        case .late: return .dropped("nothing can be decided now: nobody has said what became of it")
        case .stopped: return .dropped("the tracker has stopped")
        case .members, .handedOver, .isMaster, .steppedDown, .stopping:
            preconditionFailure("a change is answered as one")
        }
    }
}

extension NodeHost {
    /// The torrent files, as console and operator keep them.
    func files(atMost byteCount: Int, _ uploads: DirectoryUploads) -> TorrentFileStore {
        TorrentFileStore(
            maxByteCount: byteCount, change: { [self] in await change($0) },
            isStopped: { [self] in current == nil },
            file: { [self] infoHash in await current?.inbox.ask { $0.state.files.find(infoHash) } ?? nil },
            trackers: { [self] in await cluster()?.announceURLs ?? [] }, reason: { uploads.reason(for: $0) })
    }
}

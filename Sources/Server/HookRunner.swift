// Runs the operator's command when this tracker becomes master, or no longer is.

import Foundation
import Logging
import Settings
import Synchronization
import Wire

/// What a hook is told.
package struct HookState: Sendable, Equatable {
    package var isMaster: Bool
    package var id: UInt32
    package var epoch: Epoch
    /// The master's id; 0 while there is none.
    package var master: UInt32

    package init(isMaster: Bool, id: UInt32, epoch: Epoch, master: UInt32) {
        self.isMaster = isMaster
        self.id = id
        self.epoch = epoch
        self.master = master
    }
}

/// Runs the operator's command when this tracker becomes master, or no longer is: for a floating address, or DNS.
///
///     idle ── the role changes ──► running ── ends, or takes too long and is stopped ──► idle
///       ▲                            │ the role changes meanwhile: the last word is kept   │
///       └────────────────────────────┴── where it differs from what was told last ◄────────┘
///
/// Never two commands at once, and never a queue of them: what counts is the state as it is, not how it came about. So
/// a master that is deposed and elected again while `--on-slave` runs sees `--on-slave` end, and then `--on-master`.
package final class HookRunner: Sendable {
    /// How long a command may run before it is told to end (SIGTERM): what waits longer for an address or a name server
    /// would hold up what comes next.
    package static let patience = Swift.Duration.seconds(10)
    /// How long it may take to end before it is killed.
    static let lastPatience = Swift.Duration.seconds(2)

    private struct State {
        /// What was last told to a command.
        var told: HookState?
        var latest: HookState?
        var isRunning = false
        var idlers: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let hooks: Hooks
    private let logger: Logger
    private let patience: Swift.Duration

    package init(_ hooks: Hooks, logger: Logger, patience: Swift.Duration = HookRunner.patience) {
        self.hooks = hooks
        self.logger = logger
        self.patience = patience
    }

    /// The role has changed, or the epoch.
    ///
    /// Returns at once.
    package func changed(_ new: HookState) {
        guard !hooks.isEmpty else { return }
        let isFirst = state.withLock { state in
            state.latest = new
            guard !state.isRunning else { return false }
            state.isRunning = true
            return true
        }
        if isFirst { Task.detached { await self.catchUp() } }
    }

    /// Returns when no command runs and none is due.
    package func finish() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.isRunning { state.idlers.append(continuation) }
                return !state.isRunning
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Runs commands until what was told last is how it is.
    private func catchUp() async {
        while let next = takeNext() { await run(next) }
    }

    private func takeNext() -> HookState? {
        let (next, idlers) = state.withLock { state -> (HookState?, [CheckedContinuation<Void, Never>]) in
            if let latest = state.latest, latest.differs(from: state.told) {
                state.told = latest
                return (latest, [])
            }
            state.isRunning = false
            defer { state.idlers = [] }
            return (nil, state.idlers)
        }
        for idler in idlers { idler.resume() }
        return next
    }

    private func run(_ new: HookState) async {
        guard let command = new.isMaster ? hooks.onMaster : hooks.onSlave else { return }
        let name = new.isMaster ? "on-master" : "on-slave"
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", command]
        process.standardInput = FileHandle.nullDevice
        // What it writes goes where the log goes, and never among what the program itself puts out.
        process.standardOutput = FileHandle.standardError
        process.environment = ProcessInfo.processInfo.environment.merging(environment(of: new)) { $1 }
        let (ends, ending) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { ended in
            ending.yield(ended.terminationReason == .exit ? ended.terminationStatus : -ended.terminationStatus)
            ending.finish()
        }
        do {
            try process.run()
        } catch {
            logger.error("the command of \(name) cannot be run: \(error.localizedDescription)")
            return
        }
        logger.info("running a command", metadata: ["hook": "\(name)", "process": "\(process.processIdentifier)"])
        let watch = Task { await self.watch(process, name) }
        var status: Int32 = 0
        for await end in ends { status = end }
        watch.cancel()
        guard status != 0 else { return }
        let how = status > 0 ? "failed with exit code \(status)" : "was ended by signal \(-status)"
        logger.error("the command of \(name) \(how); is it right, and may this user run it?")
    }

    /// Ends a command that takes too long, with all that it has started.
    private func watch(_ process: Process, _ name: String) async {
        let processes = process.processIdentifier
        guard (try? await Task.sleep(for: patience)) != nil else { return }
        logger.error("the command of \(name) takes longer than \(patience); it is stopped")
        Self.signal(processes, SIGTERM)
        guard (try? await Task.sleep(for: HookRunner.lastPatience)) != nil else { return }
        Self.signal(processes, SIGKILL)
    }

    /// To the command's process group where it has one, which it then leads; else to itself.
    private static func signal(_ process: pid_t, _ number: Int32) {
        if getpgid(process) == process { kill(-process, number) } else { kill(process, number) }
    }

    /// Names that no setting has: a command may run this program.
    private func environment(of new: HookState) -> [String: String] {
        var variables = [
            "TRACKER_ROLE": new.isMaster ? "master" : "slave", "TRACKER_ID": "\(new.id)",
            "TRACKER_EPOCH": "\(new.epoch)", "TRACKER_MASTER": "\(new.master)",
        ]
        if let advertised = hooks.advertised { variables["TRACKER_ADVERTISE"] = advertised }
        return variables
    }
}

extension HookState {
    /// Whether a command has to be told: of another role, or of another term as master.
    fileprivate func differs(from told: HookState?) -> Bool {
        guard let told else { return true }
        return isMaster != told.isMaster || isMaster && epoch != told.epoch
    }
}

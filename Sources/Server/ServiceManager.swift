// What systemd, or another service manager that speaks sd_notify(3), is told of a tracker.

import Bus
import Datagrams
import Foundation
import Logging
import Primitives
import ServiceLifecycle
import Synchronization
import TrackerLogic
import Web
import Wire

/// What systemd, or another service manager that speaks sd_notify(3), is told of a tracker.
///
///     READY=1      it listens, and answers clients: alone, or as a part of its cluster
///     STATUS=      role, epoch and master, when they change
///     WATCHDOG=1   twice in each period of the watchdog, while the node's own thread answers
///     RELOADING=1  SIGHUP came; READY=1 follows when what it asked for is in force
///     STOPPING=1   it hands over and stops
///
/// A tracker that waits for its cluster is not ready, and yet not stuck: until it is ready it asks for more time
/// (EXTEND_TIMEOUT_USEC), as long as its thread answers. Where no manager wants to know (`NOTIFY_SOCKET` is not set),
/// nothing of this happens.
public final class ServiceManager: Sendable {
    private struct State {
        var isReady = false
        var isStopping = false
        /// The last line that was sent.
        var status = ""
        var heartbeat: Instant?
        var extended: Instant?
    }

    /// Between two looks at the node.
    static let period = Duration.seconds(1)
    /// Between two before it is ready, so that whoever waits for it waits no longer than needed.
    static let eagerPeriod = Duration.milliseconds(100)
    /// How often more time is asked for while it is not ready.
    static let extensionPeriod = Duration.seconds(10)
    /// How much.
    static let extensionSpan = Duration.seconds(60)

    /// Half of what the manager waits for a sign of life; nil where it does not wait.
    package let heartbeatPeriod: Duration?
    private let socket: NotifySocket
    private let state = Mutex(State())

    /// The service manager that the environment names; nil where no manager wants to know.
    ///
    /// - Parameters:
    ///   - environment: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` count.
    ///   - processID: the watchdog may be meant for another process than this.
    public init?(environment: [String: String], processID: Int32 = ProcessInfo.processInfo.processIdentifier) {
        guard let name = environment["NOTIFY_SOCKET"], let socket = NotifySocket(name) else { return nil }
        self.socket = socket
        let isForUs = environment["WATCHDOG_PID"].map { $0 == "\(processID)" } ?? true
        let wait = environment["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        // A year is as good as for ever, and no product of it overflows.
        let isWatched = isForUs && (1...31_536_000_000_000).contains(wait)
        heartbeatPeriod = isWatched ? .microseconds(max(wait / 2, 1)) : nil
    }

    /// Between two looks at the node: never so long that a heartbeat comes late.
    package func period(now: Instant) -> Duration {
        let wanted = state.withLock { $0.isReady } ? ServiceManager.period : ServiceManager.eagerPeriod
        return min(wanted, heartbeatPeriod.map { max($0 / 2, .milliseconds(1)) } ?? wanted)
    }

    /// The record is read, which may take a while.
    func opensRecord() { _ = socket.send("STATUS=Reading the record") }

    /// The node has answered.
    ///
    /// - Parameters:
    ///   - report: what it said; nil where there is no node any more.
    ///   - now: the monotonic clock.
    package func looked(_ report: ClusterReport?, now: Instant) {
        guard let report else { return }
        let line = ServiceManager.line(report)
        state.withLock { state in
            guard !state.isStopping else { return }
            var message: [String] = []
            let becomesReady = !state.isReady && report.status.isServing
            let isDue = heartbeatPeriod.map { period in
                // Rather a look too early than one too late.
                state.heartbeat.map { now - $0 >= period - min(ServiceManager.period, period / 2) } ?? true
            }
            if becomesReady { message.append("READY=1") }
            if line != state.status { message.append("STATUS=\(line)") }
            if isDue == true { message.append("WATCHDOG=1") }
            let wantsTime =
                !state.isReady && !becomesReady
                && state.extended.map { now - $0 >= ServiceManager.extensionPeriod } ?? true
            if wantsTime {
                message.append("EXTEND_TIMEOUT_USEC=\(ServiceManager.extensionSpan.nanoseconds / 1000)")
            }
            // What could not be sent is sent at the next look.
            guard !message.isEmpty, socket.send(message.joined(separator: "\n")) else { return }
            if becomesReady { state.isReady = true }
            state.status = line
            if isDue == true { state.heartbeat = now }
            if wantsTime { state.extended = now }
        }
    }

    /// SIGHUP came.
    package func beginsToReload(now: Instant) {
        guard state.withLock({ $0.isReady && !$0.isStopping }) else { return }
        _ = socket.send("RELOADING=1\nMONOTONIC_USEC=\(now.nanoseconds / 1000)")
    }

    /// What SIGHUP asked for is in force, or refused.
    package func hasReloaded() {
        guard state.withLock({ $0.isReady && !$0.isStopping }) else { return }
        _ = socket.send("READY=1")
    }

    package func stops() {
        state.withLock { $0.isStopping = true }
        _ = socket.send("STOPPING=1\nSTATUS=Handing over, and stopping")
    }

    /// For people: one line, as `systemctl status` shows it.
    package static func line(_ report: ClusterReport) -> String {
        let status = report.status
        guard status.mode != nil else {
            return status.isServing ? "Alone, epoch \(status.epoch)" : "Alone; clients get no answer now"
        }
        if report.bus?.isConnected == false { return "The bus is lost; clients get no answer" }
        let place =
            switch status.master {
            case status.life.id: "Master of epoch \(status.epoch)"
            case let master?: "Follows tracker \(master), epoch \(status.epoch)"
            case nil: "Knows no master, epoch \(status.epoch)"
            }
        let heard = status.trackers.count { $0.role != nil }
        let crowd = "\(heard) of \(status.trackers.count) known trackers \(heard == 1 ? "is" : "are") there"
        let reason = report.findings.first { $0.isSilence }.map { ": \($0.text)" } ?? " now"
        return "\(place); \(crowd)\(status.isServing ? "" : "; clients get no answer\(reason)")"
    }
}

/// Looks at the node again and again, and tells the manager; a node whose thread hangs is told of no more.
package struct ServiceReporter: Service {
    private let manager: ServiceManager
    private let provider: any ClusterProvider
    private let now: @Sendable () -> Instant
    private let sleep: @Sendable (Duration) async throws -> Void

    /// Looks at the node for a manager, period by period.
    ///
    /// - Parameters:
    ///   - manager: told how the tracker fares.
    ///   - provider: tells of the node and its cluster.
    ///   - now: reads the clock; a test has one of its own.
    ///   - sleep: waits by the same clock.
    package init(
        _ manager: ServiceManager, _ provider: any ClusterProvider,
        now: @escaping @Sendable () -> Instant = Clock.monotonic,
        sleep: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: .nanoseconds($0.nanoseconds))
        }
    ) {
        self.manager = manager
        self.provider = provider
        self.now = now
        self.sleep = sleep
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let report = await provider.cluster()
                let now = now()
                guard !Task.isCancelled else { break }
                manager.looked(report, now: now)
                try? await sleep(manager.period(now: now))
            }
        }
        manager.stops()
    }
}

// A node with its thread.

import Bus
import Datagrams
import Foundation
import Logging
import Primitives
import ServiceLifecycle
import Settings
import Storage
import Synchronization
import TrackerLogic
import Web
import Wire

/// The node's disk failed while it served: it has fallen silent, and the process should end.
public struct RecordLost: Error, CustomStringConvertible {
    /// Where the record is kept.
    public var directory: String

    /// What has happened, and what to do.
    public var description: String {
        "The disk under \(directory) failed, and nobody can say what is on it. The tracker has stopped rather than "
            + "answer what it cannot keep. Check the disk, then start the tracker again: it says whether its record is "
            + "whole."
    }
}

/// Beside the node itself, what a tracker of a cluster has.
struct ClusterParts: Sendable {
    /// Nil for a tracker that is alone.
    var bus: (any Bus)?
    var hooks = Hooks()
    /// The cluster's.
    var name = ""
    /// What the console shows.
    var feed: ConsoleFeed
    /// Of the operator's directory of torrents.
    var uploads: DirectoryUploads
    /// What is recorded.
    var recordings: RecordingBoard
}

/// A node with its thread, its sockets and its record, as a service that starts, drains and stops.
final class NodeService: Service, Sendable {
    /// How the loop came to its end.
    private enum End: Sendable {
        case drained
        case recordLost
    }

    let inbox: NodeInbox
    /// What this tracker has seen of its cluster.
    let observer: ElectionObserver
    let bus: (any Bus)?
    let orders: PendingOrders
    /// What it has measured and found out.
    let latest: LatestFigures
    /// The swarms as lists.
    let swarms: SwarmView
    private let feed: ConsoleFeed
    private let uploads: DirectoryUploads
    private let recordings: RecordingBoard
    private let clusterName: String
    /// The others as they were last known: a node that has lost its bus forgets them.
    private let crowd = Mutex<(trackers: [TrackerView], at: Instant)>(([], Instant(nanoseconds: 0)))
    /// The console's accounts and sessions as they are applied; nil before the node has any state.
    private let kept = Mutex<Accounts?>(nil)
    /// How the node was when it was last looked at.
    private let last: Mutex<(node: NodeStatus, view: ClusterStatus)>
    private let orderHandler: OrderHandler
    private let addresses = Mutex<[ProcessFacts.Listener]>([])
    private let silence = Mutex(SilenceLog())
    private let receiver: BusReceiver
    private let hooks: HookRunner
    private let requests: PendingRequests
    private let store: Store
    private let directory: String
    private let logger: Logger
    /// What this tracker waits for at its start, until that is told.
    private let awaited: Mutex<String?>
    /// What the thread takes with it when it starts.
    private let parts: Mutex<Parts?>

    private struct Parts: @unchecked Sendable {
        // Made here, owned by the node's thread from its start on, and by nobody else.
        var node: TrackerNode
        var sockets: DatagramSockets
        var poller: Poller
    }

    init(
        node: TrackerNode, sockets: DatagramSockets, store: Store, directory: String, cluster: ClusterParts,
        latest: LatestFigures, logger: Logger
    ) throws {
        precondition(
            node.configuration.cluster.hasBus == (cluster.bus != nil),
            "a tracker of a cluster has a bus, and no other has")
        let poller = try Poller()
        let waker = poller.waker
        let inbox = NodeInbox { waker.wake() }
        self.inbox = inbox
        self.latest = latest
        (feed, uploads, recordings) = (cluster.feed, cluster.uploads, cluster.recordings)
        requests = PendingRequests(inbox: inbox, latest: latest, cuts: cluster.feed.cuts)
        swarms = SwarmView(inbox: inbox)
        clusterName = cluster.name
        orders = PendingOrders(inbox: inbox)
        bus = cluster.bus
        let life = node.inspection.life
        last = Mutex((node.status, node.clusterStatus(now: Clock.monotonic())))
        let orderHandler = OrderHandler(
            inbox: inbox, orders: orders, relay: cluster.bus.map { OrderRelay(bus: $0, logger: logger) })
        self.orderHandler = orderHandler
        receiver = BusReceiver(inbox: inbox, incarnation: life.incarnation, logger: logger) { message in
            orderHandler.received(message)
        }
        hooks = HookRunner(cluster.hooks, logger: logger)
        observer = ElectionObserver(id: life.id)
        awaited = Mutex(cluster.bus == nil ? nil : Diagnosis.awaited(node.clusterStatus(now: Clock.monotonic())))
        parts = Mutex(Parts(node: node, sockets: sockets, poller: poller))
        self.store = store
        self.directory = directory
        self.logger = logger
        feed.cuts.onChange { [weak self] in self?.cutChanged($0, begins: $1) }
    }

    /// Takes requests from HTTP.
    var requestHandler: some RequestHandler { requests }

    /// The console's accounts and sessions as they are applied; nil before the node has any state.
    var accounts: Accounts? { kept.withLock { $0 } }

    /// Where it listens for clients, once that is known.
    var listeners: [ProcessFacts.Listener] { addresses.withLock { $0 } }

    func note(_ listeners: [ProcessFacts.Listener]) { addresses.withLock { $0 = listeners } }

    /// Gives back the record of a service that is not going to run.
    func abandon() { store.close() }

    /// What went over the bus.
    var busTally: BusTally { receiver.tally }

    func run() async throws {
        try startStore()
        bus?.start(inbox: receiver)
        let end = await withGracefulShutdownHandler {
            await withCheckedContinuation { continuation in startThread { continuation.resume(returning: $0) } }
        } onGracefulShutdown: {
            self.inbox.put { $0.commands.append(.drain) }
        }
        requests.close()
        orderHandler.close()
        // The node's last word, that it leaves, is still on its way.
        await bus?.stop()
        store.close()
        await hooks.finish()
        guard case .drained = end else { throw RecordLost(directory: directory) }
    }

    private func startThread(_ ended: @escaping @Sendable (End) -> Void) {
        let thread = Thread { [self] in
            guard let parts = parts.withLock({ parts in parts.take() }) else {
                preconditionFailure("a node's service runs once")
            }
            nonisolated(unsafe) var end = End.drained
            var outlets = NodeOutlets(
                submit: { [store] in store.submit($0) },
                answer: { [requests] in requests.answer($0) },
                observe: { [self] observations in
                    if observations.contains(where: \.isRecordLost) { end = .recordLost }
                    observe(observations)
                })
            outlets.isCutFromPeers = { [cuts = feed.cuts] in cuts.isCutFromPeers }
            outlets.publish = { [latest] in latest.publish($0) }
            outlets.keepAccounts = { [self] accounts in kept.withLock { $0 = accounts } }
            outlets.recorder = recordings.begin(parts.node.inspection.life, version: latest.report.version.description)
            outlets.examine = { [self] in examine($0, $1, $2, announceRate: $3) }
            if let bus {
                outlets.send = { [receiver] messages in
                    receiver.sent(messages.count)
                    bus.send(messages)
                }
                outlets.droppedMessages = { [receiver] in receiver.dropped($0) }
            }
            let loop = NodeLoop(
                node: parts.node, sockets: parts.sockets, poller: parts.poller, inbox: inbox, outlets: outlets)
            loop.run()
            ended(end)
        }
        thread.name = "tracker node"
        thread.start()
    }

    private func startStore() throws {
        try store.start(
            onCompletion: { [inbox] results in
                inbox.put { input in
                    for (token, failure) in results {
                        input.writeResults.append(WriteResult(token: token, failure: failure))
                    }
                }
            },
            onObservation: { [logger] observation in
                let level: Logger.Level = if case .writesFailed = observation { .error } else { .warning }
                logger.log(level: level, "\(observation)")
            })
    }

    /// Looks at how this tracker fares; on the node's thread.
    ///
    /// - Returns: what the other trackers are to be told.
    private func examine(
        _ status: NodeStatus, _ view: ClusterStatus, _ figures: NodeFigures, announceRate: UInt32
    ) -> TrackerReport? {
        let findings = Diagnosis.findings(
            status, view, bus: bus?.status, tally: busTally, lostDatagrams: figures.lostLately)
        switch silence.withLock({ $0.look(findings) }) {
        case .silent(let finding): logger.warning("clients get no answer: \(finding.text)")
        case .over: logger.notice("clients are answered again")
        case nil: break
        }
        let report = latest.update(
            findings, figures, announceRate: announceRate, disk: status.storageFailure)
        last.withLock { $0 = (status, view) }
        if bus?.status.isConnected == true, view.trackers.count > 1 {
            crowd.withLock { $0 = (view.trackers, Clock.monotonic()) }
        }
        let now = Clock.read().wall
        feed.record { $0.reached(status.commitIndex, at: now) }
        if feed.history.isDue(at: now) { feed.history.append(HistorySample(status, view, own: report, at: now)) }
        return bus == nil ? nil : report
    }

    private func cutChanged(_ target: FaultTarget, begins: Bool) {
        feed.record { $0.cutChanged(target, begins: begins, at: Clock.read().wall) }
        logger.notice("\(begins ? "cut off on purpose from" : "no longer cut off from") \(target.words)")
        if target == .bus, let bus = bus as? CutBus { bus.cutChanged(begins: begins) }
    }

    /// On the node's thread.
    private func observe(_ observations: [Observation]) {
        for observation in observations {
            let isOrdered = orders.isBusy
            orders.observed(observation)
            uploads.observed(observation)
            feed.record { $0.observed(observation, at: Clock.read().wall) }
            if let state = observer.observed(observation) { hooks.changed(state) }
            if case .membersChanged(let members) = observation, !observer.isNews(members) { continue }
            if !isOrdered, observer.isSlave, case .commandDropped = observation {
                // What every tracker commands at its start and on SIGHUP; only a master's word counts.
                logger.info("access rules and torrents are the master's: reload them there to change them")
            } else {
                log(observation)
            }
        }
    }

    private func log(_ observation: Observation) {
        if case .fenced = observation, let first = awaited.withLock({ $0.take() }) {
            // It has just started: nothing is lost yet, and nothing wrong.
            return logger.notice("clients get no answer yet: this tracker waits for \(first)")
        }
        let line = ObservationLine(observation, directory: directory)
        logger.log(level: line.level, "\(line.message)", metadata: line.metadata)
    }
}

extension Observation {
    fileprivate var isRecordLost: Bool { if case .storageFailed(.broken, _) = self { true } else { false } }
}

extension NodeService: StatusProvider {
    func status() async -> NodeStatus? { await inbox.ask { $0.status } }
}

extension NodeService: ClusterProvider {
    func cluster() async -> ClusterReport? {
        let answer = await inbox.ask { node in (node.status, node.clusterStatus(now: Clock.monotonic())) }
        guard let (node, current) = answer else { return nil }
        let (bus, tally) = (bus?.status, busTally)
        var status = current
        if bus?.isConnected == false { status.trackers = withThoseOfBefore(status.trackers) }
        var report = ClusterReport(status: status, bus: bus, tally: tally, elections: observer.tally)
        report.figures = latest.figures
        report.own = latest.report
        report.name = clusterName
        report.findings = Diagnosis.findings(
            node, status, bus: bus, tally: tally, lostDatagrams: report.figures.lostLately)
        return report
    }

    /// The trackers with those that were known before the bus was lost: down, and as old as they are.
    private func withThoseOfBefore(_ trackers: [TrackerView]) -> [TrackerView] {
        let (known, at) = crowd.withLock { $0 }
        let age = Clock.monotonic() - at
        let gone = known.filter { old in !trackers.contains { $0.life.id == old.life.id } }.map { old in
            var old = old
            old.role = nil
            old.silence = old.silence + age
            old.reportAge = old.reportAge + age
            return old
        }
        return (trackers + gone).sorted { $0.life.id < $1.life.id }
    }

    /// How it was when it was last looked at, as one that has stopped tells it.
    var lastWords: (node: NodeStatus, report: ClusterReport) {
        var (node, view) = last.withLock { $0 }
        node.role = .stopped
        view.isServing = false
        if view.master == view.life.id { view.master = nil }
        for place in view.trackers.indices where view.trackers[place].life == view.life {
            view.trackers[place].role = nil
        }
        var bus = bus?.status
        bus?.isConnected = false
        bus?.lastProblem = nil
        var report = ClusterReport(status: view, bus: bus, tally: busTally, elections: observer.tally)
        report.own = latest.report
        report.name = clusterName
        report.findings = [Finding(.stopping, isSilence: true, "this tracker is stopped, by its console")]
        return (node, report)
    }

    func carryOut(_ order: ClusterOrder) async -> OrderOutcome { await orderHandler.carryOut(order) }
}

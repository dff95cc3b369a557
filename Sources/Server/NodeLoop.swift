// The node's own thread.

import Bus
import Datagrams
import Primitives
import TrackerLogic
import Web
import Wire

/// What a node's loop hands to others.
///
/// Called on the node's thread; must not block.
struct NodeOutlets {
    var submit: ([Persist]) -> Void
    var answer: ([Answer]) -> Void
    var observe: ([Observation]) -> Void
    /// Nil for a tracker without a bus.
    var send: (([BusMessage]) -> Void)?
    /// Messages of the bus that were dropped, because too many waited.
    var droppedMessages: (UInt64) -> Void = { _ in }
    /// Whether clients are not heard and not answered, on purpose.
    var isCutFromPeers: () -> Bool = { false }
    /// Takes what was measured, whenever somebody may ask for it.
    var publish: (NodeFigures) -> Void = { _ in }
    /// Takes the console's accounts and sessions, whenever they have changed.
    var keepAccounts: (Accounts) -> Void = { _ in }
    /// Nil where nothing is recorded.
    var recorder: NodeRecorder?
    /// Looks at the node about once a keepalive.
    ///
    /// Returns what the other trackers are to be told.
    var examine: (NodeStatus, ClusterStatus, NodeFigures, _ announceRate: UInt32) -> TrackerReport? = { _, _, _, _ in
        nil
    }
}

/// The node's own thread: receives, steps, and carries out effects, over and over.
///
///     wait ─► input (writes done, messages of the bus, HTTP requests, commands) ─► step ─► effects out
///       ▲  └► datagrams, a batch at a time ────────────────────────────────────► step ─► effects out
///       └────────────────────────────────────────────────────────────────────────────────────┘
///
/// Nothing here decides anything, and in the steady state nothing here allocates for a datagram.
final class NodeLoop {
    /// Datagrams in one step: enough to make system calls cheap, few enough that the first does not wait for the last.
    static let batchCount = 256
    /// Messages of the bus between two times that effects go out: they share system calls and a transaction, and none
    /// of their effects waits for many others.
    static let eventsPerBatch = 512
    /// Bytes of room for messages that are kept: chunks of the state are longer, and rare.
    static let keptByteCount = 1 << 20

    private var node: TrackerNode
    private let sockets: DatagramSockets
    private let poller: Poller
    private let inbox: NodeInbox
    private let outlets: NodeOutlets
    private var effects = Effects()
    private var batch = DatagramBatch()
    private var input = NodeInput()
    /// Room for a message's bytes, to be used again.
    private var encoded: [UInt8] = []
    private var isDone = false
    /// Whether it ends as it was asked to.
    private var hasDrained = false
    private var tally = LoopTally()
    private var examineAt = Instant(nanoseconds: 0)
    /// Of the accounts that were told last.
    private var accountsDigest: UInt64?
    private let period: Duration
    private let incarnation: UInt64
    /// Whether clients are answered before other trackers hear of it.
    ///
    /// In a group they have to be: what its master has told them decided, the others do not answer when it dies. Else
    /// nobody could answer in a dead tracker's place, and the others work while the replies go out.
    private let answersFirst: Bool

    init(node: TrackerNode, sockets: DatagramSockets, poller: Poller, inbox: NodeInbox, outlets: NodeOutlets) {
        self.node = node
        self.sockets = sockets
        self.poller = poller
        self.inbox = inbox
        self.outlets = outlets
        answersFirst = node.configuration.cluster.entry == .group
        period = node.configuration.cluster.keepalive
        incarnation = node.inspection.life.incarnation
        sockets.register(with: poller)
    }

    /// Runs until the node has drained or has lost its disk.
    func run() {
        // Commands that came first are in force before the first request is heard.
        readInput()
        step(.started)
        carryOut()
        while !isDone {
            let hasRoom = node.hasRoom
            let ready = poller.wait(timeout: timeout(), ignoringSockets: !hasRoom)
            if ready.isWoken { readInput() }
            if hasRoom, sockets.receive(into: &batch, limit: NodeLoop.batchCount, from: ready) > 0,
                !outlets.isCutFromPeers()
            {
                tally.heard(batch, at: Clock.monotonic())
                step(.datagramsReceived(batch))
                carryOut()
            }
            let now = Clock.monotonic()
            if let deadline = node.nextDeadline, deadline <= now {
                step(.deadlineReached)
                carryOut()
            }
            if now >= examineAt { examine(now) }
        }
        if hasDrained { outlets.recorder?.end() }
        inbox.close()
    }

    private func timeout() -> Duration? {
        max(min(node.nextDeadline ?? examineAt, examineAt) - Clock.monotonic(), .zero)
    }

    /// Looks at how this tracker fares: once a keepalive, and when its disk fails or works again.
    private func examine(_ now: Instant) {
        examineAt = now + period
        tally.look(at: sockets, now: now)
        outlets.recorder?.examine(now: now)
        let status = node.status
        tally.turn(announces: status.counters.announces, at: now)
        let view = node.clusterStatus(now: now)
        guard let report = outlets.examine(status, view, tally.figures, tally.announceRate) else { return }
        step(.reportMade(report))
        carryOut()
    }

    private func step(_ event: Event) {
        let now = Clock.read()
        let recorder = outlets.recorder
        // A node that is handed over is copied, reference by reference: only where it has to be.
        if let recorder, recorder.wantsImage { recorder.beginImage(of: node, now: now) }
        recorder?.willStep(event, now: now, effects)
        node.step(event, now: now, into: &effects)
        if let recorder {
            recorder.stepped(effects, node.state.position)
            if let broken = node.check(by: &recorder.checks, after: event, effects) { recorder.raise(broken) }
        }
        if tally.awaitsCommit { tally.applied(through: node.state.index, at: now.monotonic) }
        // Before anybody hears what became of a change. That there are no accounts, so that whoever is on this machine
        // is obeyed, is known only to whoever knows all that was decided when it was let in.
        if node.state.accounts.digest != accountsDigest, node.state.accounts.count > 0 || node.isAbreast(at: now) {
            tellAccounts()
        }
    }

    private func tellAccounts() {
        accountsDigest = node.state.accounts.digest
        outlets.keepAccounts(node.state.accounts)
    }

    private func readInput() {
        guard inbox.take(into: &input) else { return }
        if !input.writeResults.isEmpty {
            let now = Clock.monotonic()
            for result in input.writeResults { tally.written(result.token, at: now) }
        }
        for result in input.writeResults {
            if let failure = result.failure {
                step(.persistFailed(result.token, failure))
            } else {
                step(.persisted(result.token))
            }
        }
        readBusEvents()
        for request in input.requests { step(.requestReceived(request)) }
        for command in input.commands { step(.commandReceived(command)) }
        carryOut()
        if !input.questions.isEmpty { outlets.publish(tally.figures) }
        for question in input.questions { question(node) }
        input.writeResults.removeAll(keepingCapacity: true)
        input.requests.removeAll(keepingCapacity: true)
        input.commands.removeAll(keepingCapacity: true)
        input.questions.removeAll()
    }

    private func readBusEvents() {
        if input.bus.dropped > 0 { outlets.droppedMessages(input.bus.dropped) }
        for (number, busEvent) in input.bus.events.enumerated() {
            if number > 0, number % NodeLoop.eventsPerBatch == 0 { carryOut() }
            switch busEvent {
            case .connected: step(.busConnected)
            case .lost: step(.busLost)
            case .message(let message, _):
                if case .report(let report) = message.body {
                    tally.heard(report, of: message.sender, own: incarnation, at: Clock.monotonic())
                }
                step(.messageReceived(message))
            }
        }
        input.bus.removeAll()
    }

    private func carryOut() {
        // The disk first: it works while the replies go out.
        if !effects.persists.isEmpty {
            tally.submitted(effects.persists, at: Clock.monotonic())
            outlets.submit(effects.persists)
        }
        if !answersFirst { sendMessages() }
        if !effects.replies.isEmpty, !outlets.isCutFromPeers() {
            sockets.send(effects.replies)
            tally.replied(effects.replies, at: Clock.monotonic())
        }
        if !effects.answers.isEmpty { outlets.answer(effects.answers) }
        if answersFirst { sendMessages() }
        if !effects.observations.isEmpty {
            for observation in effects.observations {
                switch observation {
                case .drained: (isDone, hasDrained) = (true, true)
                case .storageFailed(.broken, _): isDone = true
                // Clients who are refused for it, and the other trackers, are to know why at once.
                case .storageFailed, .storageRecovered, .voteFailed, .voteRecovered:
                    examineAt = Instant(nanoseconds: 0)
                case .becameMaster, .steppedDown, .follows, .suspects, .stands, .fenced, .joinRefused, .idAssigned,
                    .trackerUp, .trackerDown, .transferBegan, .transferEnded, .merged, .aborted, .membersChanged,
                    .diverged, .settingsDiffer, .accessChanged, .registryChanged, .commandRefused, .commandDropped,
                    .stopsWithCluster, .swarmsEmptied, .changeEnded, .fileAccountsSet:
                    break
                }
            }
            outlets.observe(effects.observations)
        }
        effects.removeAll()
    }

    private func sendMessages() {
        if effects.messages.isEmpty { return }
        guard let send = outlets.send else {
            preconditionFailure("a tracker without a bus has nobody to send messages to")
        }
        var messages: [BusMessage] = []
        messages.reserveCapacity(effects.messages.count)
        for message in effects.messages {
            encoded.removeAll(keepingCapacity: true)
            stamped(message).encode(into: &encoded)
            let destination: Life? = if case .one(let life) = message.destination { life } else { nil }
            // As long as it is, not as long as the longest before it.
            messages.append(BusMessage(destination: destination, bytes: encoded.withUnsafeBufferPointer(Array.init)))
        }
        if encoded.capacity > NodeLoop.keptByteCount { encoded = [] }
        send(messages)
    }

    /// A report is as of the moment at which it goes.
    private func stamped(_ message: ClusterMessage) -> ClusterMessage {
        guard case .report(var report) = message.body else { return message }
        tally.stamp(&report, Clock.read())
        var message = message
        message.body = .report(report)
        return message
    }
}

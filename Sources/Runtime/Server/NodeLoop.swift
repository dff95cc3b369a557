/// The node's own thread: receives, steps, and carries out effects, over and over.
///
///     wait ─► mail (writes done, HTTP requests, commands) ─► step ─► effects out
///       ▲  └► datagrams, a batch at a time ───────────────► step ─► effects out
///       └───────────────────────────────────────────────────────────────┘
///
/// Nothing here decides anything, and in the steady state nothing here allocates for a datagram.

import Datagrams
import Primitives
import TrackerLogic

/// What a node's loop hands to others.
///
/// Called on the node's thread; must not block.
struct NodeOutlets {
    var submit: ([Persist]) -> Void
    var answer: ([Answer]) -> Void
    var observe: ([Observation]) -> Void
}

final class NodeLoop {
    /// Datagrams in one step: enough to make system calls cheap, few enough that the first does not wait for the last.
    static let batchCount = 256

    private var node: TrackerNode
    private let sockets: DatagramSockets
    private let poller: Poller
    private let mailbox: NodeMailbox
    private let outlets: NodeOutlets
    private var effects = Effects()
    private var batch = DatagramBatch()
    private var mail = NodeMail()
    private var isDone = false

    init(node: TrackerNode, sockets: DatagramSockets, poller: Poller, mailbox: NodeMailbox, outlets: NodeOutlets) {
        self.node = node
        self.sockets = sockets
        self.poller = poller
        self.mailbox = mailbox
        self.outlets = outlets
        sockets.register(with: poller)
    }

    /// Runs until the node has drained or has lost its disk.
    func run() {
        // Commands that came first are in force before the first request is heard.
        readMail()
        step(.started)
        carryOut()
        while !isDone {
            let hasRoom = node.hasRoom
            let ready = poller.wait(timeout: timeout(), ignoringSockets: !hasRoom)
            if ready.isWoken { readMail() }
            if hasRoom, sockets.receive(into: &batch, limit: NodeLoop.batchCount, from: ready) > 0 {
                step(.datagramsReceived(batch))
                carryOut()
            }
            if let deadline = node.nextDeadline, deadline <= Clock.monotonic() {
                step(.deadlineReached)
                carryOut()
            }
        }
        mailbox.close()
    }

    private func timeout() -> Duration? { node.nextDeadline.map { $0 - Clock.monotonic() } }

    private func step(_ event: Event) { node.step(event, now: Clock.read(), into: &effects) }

    private func readMail() {
        guard mailbox.take(into: &mail) else { return }
        for result in mail.writeResults {
            if let failure = result.failure {
                step(.persistFailed(result.token, failure))
            } else {
                step(.persisted(result.token))
            }
        }
        for request in mail.requests { step(.requestReceived(request)) }
        for command in mail.commands { step(.commandReceived(command)) }
        carryOut()
        for question in mail.questions { question(node) }
        mail.writeResults.removeAll(keepingCapacity: true)
        mail.requests.removeAll(keepingCapacity: true)
        mail.commands.removeAll(keepingCapacity: true)
        mail.questions.removeAll()
    }

    private func carryOut() {
        precondition(effects.messages.isEmpty, "a tracker without a bus has nobody to send messages to")
        // The disk first: it works while the replies go out.
        if !effects.persists.isEmpty { outlets.submit(effects.persists) }
        if !effects.replies.isEmpty { sockets.send(effects.replies) }
        if !effects.answers.isEmpty { outlets.answer(effects.answers) }
        if !effects.observations.isEmpty {
            for observation in effects.observations {
                switch observation {
                case .drained, .storageFailed(.broken, _): isDone = true
                case .becameMaster, .steppedDown, .follows, .suspects, .stands, .fenced, .joinRefused, .idAssigned,
                    .trackerUp, .trackerDown, .transferBegan, .transferEnded, .merged, .aborted, .membersChanged,
                    .diverged, .storageFailed, .storageRecovered, .accessChanged, .registryChanged, .commandRefused:
                    break
                }
            }
            outlets.observe(effects.observations)
        }
        effects.removeAll()
    }

    /// What became of the datagrams, for the metrics.
    var datagramCounters: DatagramCounters { sockets.counters }
}

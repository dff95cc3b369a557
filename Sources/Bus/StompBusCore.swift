// What happens on the event loop of a STOMP bus.

import Datagrams
import NIOCore
import NIOPosix
import Primitives
import Wire

// Confined to its event loop, but for its making.
/// What happens on the event loop of a STOMP bus: connect, in turn and again; pack and send; check and hand on.
///
///     ┌─────────┐ a connection is ready ┌───────┐
///     │ looking ├──────────────────────►│ ready │◄─┐ a broker earlier in the list is ready, too: move there,
///     └─────────┘◄──────────────────────┴───┬───┴──┘ and keep the former one for a while
///                 the last one is gone      │ stop
///                                           ▼
///                                        stopped
///
/// All trackers have to meet at one broker. So whoever is not at the first of the list tries those before it again and
/// again, and moves there when one answers. He keeps the former connection until the others must have moved, too:
/// meanwhile he sends on both, and the windows drop what comes twice.
final class StompBusCore: @unchecked Sendable {
    enum Limits {
        /// Bytes of one frame: a few microseconds of copying, so that short messages do not wait behind a long one.
        static let frameByteCount = 128 << 10
        /// How often an earlier broker is tried, with jitter; and so the longest time until all have moved.
        static let returnInterval = (least: Primitives.Duration.seconds(5), most: Primitives.Duration.seconds(8))
        /// How long the former broker is kept: until everybody has tried the earlier one, and was slow with it.
        static let overlap = Primitives.Duration.seconds(30)
        /// How long `stop` waits for what was sent to go out.
        static let stop = TimeAmount.seconds(1)
    }

    private let plan: StompPlan
    private let embedded: BusOptions.Broker?
    private let identity: BusIdentity
    private let loop: any EventLoop
    private var random: RandomStream
    private var rotation: BrokerRotation
    private var gate: BusGate
    private var maker: FrameMaker
    private var inbox: (any BusInbox)?
    private var busState: BusState?
    /// The connection in use, or being made.
    private var current: StompConnection?
    /// At a broker earlier in the list, being made.
    private var candidate: StompConnection?
    /// Where we were before, still open for those who have not moved.
    private var former: StompConnection?
    private var broker: EmbeddedBroker?
    private var output = BusGate.Output()
    private var prefixes: [(destination: UInt64, bytes: [UInt8])] = []
    private var timer: (at: Instant, task: Scheduled<Void>)?
    /// The next try of an earlier broker.
    private var returning: Scheduled<Void>?
    private var stopped: (@Sendable () -> Void)?
    private var wasConnected = false
    /// What the inbox was told since the bus last worked: each reason once, and no more than `maxToldReasons`.
    private var toldReasons: Set<String> = []
    private static let maxToldReasons = 16
    private var hasFinished = false

    init(plan: StompPlan, embedded: BusOptions.Broker?, identity: BusIdentity, loop: any EventLoop) {
        self.plan = plan
        self.embedded = embedded
        self.identity = identity
        self.loop = loop
        random = RandomStream(seed: identity.seed, stream: 1)
        rotation = BrokerRotation(count: plan.options.brokers.count, seed: random.next())
        let session = random.next() | 1
        gate = BusGate(
            key: identity.key, session: session, incarnation: identity.incarnation, repairs: false,
            seed: random.next())
        maker = FrameMaker(key: identity.key, session: session)
    }

    func start(inbox: any BusInbox, busState: BusState) {
        precondition(self.inbox == nil, "a bus is started once")
        self.inbox = inbox
        self.busState = busState
        connect()
    }

    private func connect() {
        guard stopped == nil else { return }
        guard let embedded, broker == nil else { return open() }
        let broker = EmbeddedBroker(loop: loop)
        broker.listen(on: embedded).whenComplete { result in
            // Somebody else is it already, or nobody can be: then trying to connect tells why.
            if case .success = result { self.broker = broker }
            self.open()
        }
    }

    private func open() {
        guard stopped == nil else { return }
        let connection = StompConnection(broker: rotation.index, plan: plan, owner: self, loop: loop)
        current = connection
        connection.open()
    }

    // MARK: Sending

    /// Sends what waits, as far as the broker takes it.
    func flush() {
        guard let busState, let current, current.isReady else { return }
        var hasWritten = false
        while current.isWritable {
            // Only copies happen under the lock: the node's loop may want to put more.
            let draft = busState.withState { state in
                let draft = maker.draft(from: &state.queue, limit: Limits.frameByteCount)
                if draft == nil { state.isAwaited = false }
                return draft
            }
            guard var draft else { break }
            maker.seal(&draft.frame)
            write(draft.frame, to: draft.destination)
            hasWritten = true
        }
        if hasWritten { flushConnections() }
        if stopped != nil, current.isWritable { current.end() }
    }

    private func write(_ frame: [UInt8], to destination: UInt64) {
        let prefix = prefix(for: destination)
        if let current, current.isReady { current.send(prefix: prefix, body: frame) }
        if let former, former.isReady, former.isWritable { former.send(prefix: prefix, body: frame) }
    }

    private func flushConnections() {
        if let current, current.isReady { current.flush() }
        if let former, former.isReady { former.flush() }
    }

    /// The head of a SEND, up to its content-length; made once a destination.
    private func prefix(for destination: UInt64) -> [UInt8] {
        if let known = prefixes.first(where: { $0.destination == destination }) { return known.bytes }
        var bytes = StompFrame(
            .send,
            [
                "destination": StompBus.destination(identity.clusterName, destination),
                "content-type": "application/octet-stream",
            ]
        ).encoded()
        // The blank line and the NUL of its empty body.
        bytes.removeLast(2)
        if prefixes.count == BusGate.Limits.peers { prefixes.removeFirst() }
        prefixes.append((destination, bytes))
        return bytes
    }

    // MARK: The clock

    /// Does what is due, and sets the timer anew.
    private func tick() {
        guard stopped == nil, let current, current.isReady else { return }
        let now = Clock.monotonic()
        if let greeting = gate.takeGreeting(now: now, oldest: maker.nextSequence) {
            write(maker.greeting(greeting), to: 0)
            flushConnections()
            tellCounts()
        }
        let deadline = gate.nextDeadline(now: now)
        if let timer, timer.at <= deadline { return }
        timer?.task.cancel()
        let task = loop.scheduleTask(in: .nanoseconds(max(0, (deadline - now).nanoseconds))) {
            self.timer = nil
            self.tick()
        }
        timer = (deadline, task)
    }

    private func tellCounts() {
        let (received, rejected, refused) = (gate.received, gate.rejected, gate.refused)
        busState?.withState { state in
            (state.status.received, state.status.rejected) = (received, rejected)
            if state.refused != refused { state.refused = refused }
        }
    }

    /// Tries the brokers before this one again, one at a time, for as long as we are not at the first.
    private func planReturn() {
        guard rotation.index > 0, stopped == nil else { return }
        let wait = random.between(Limits.returnInterval.least, Limits.returnInterval.most)
        let place = rotation.index
        returning?.cancel()
        returning = loop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [self] in
            guard stopped == nil, rotation.index == place, let current, current.isReady, candidate == nil else {
                return
            }
            let earlier = StompConnection(
                broker: random.below(place), plan: plan, owner: self, loop: loop)
            candidate = earlier
            earlier.open()
        }
    }

    private func move(to connection: StompConnection) {
        candidate = nil
        former?.abandon()
        former = current
        current = connection
        gate.hearsTwice = true
        rotation.moved(to: connection.broker)
        let broker = plan.options.brokers[connection.broker].description
        busState?.withState { $0.status.broker = broker }
        loop.scheduleTask(in: .nanoseconds(Limits.overlap.nanoseconds)) { [self, weak former] in
            guard let former, former === self.former else { return }
            former.end()
        }
        planReturn()
        gate.greetSoon()
        tick()
    }

    // MARK: The end

    func stop(_ done: @escaping @Sendable () -> Void) {
        precondition(stopped == nil, "a bus is stopped once")
        busState?.withState { $0.hasEnded = true }
        stopped = done
        timer?.task.cancel()
        returning?.cancel()
        candidate?.abandon()
        guard let current else { return finish() }
        loop.scheduleTask(in: Limits.stop) { self.finish() }
        // Ends the connection once all that waits is written; now, as a rule.
        if current.isReady { flush() } else { current.end() }
    }

    private func finish() {
        guard let done = stopped, !hasFinished else { return }
        hasFinished = true
        current?.abandon()
        former?.abandon()
        (current, former) = (nil, nil)
        inbox = nil
        tellCounts()
        busState?.withState { ($0.status.isConnected, $0.status.broker) = (false, nil) }
        let closing = broker?.close()
        broker = nil
        guard let closing else { return done() }
        closing.whenComplete { _ in done() }
    }
}

extension StompBusCore: StompConnectionOwner {
    func connectionIsReady(_ connection: StompConnection) {
        if connection === candidate { return move(to: connection) }
        guard connection === current, stopped == nil else { return }
        toldReasons = []
        let broker = plan.options.brokers[connection.broker].description
        busState?.withState { [wasConnected] state in
            state.status.isConnected = true
            state.status.broker = broker
            if wasConnected { state.status.reconnections += 1 }
        }
        wasConnected = true
        gate.greetSoon()
        tick()
        inbox?.busConnected()
        planReturn()
    }

    func connection(_ connection: StompConnection, received body: [UInt8]?) {
        guard let body else { return gate.reject() }
        gate.receive(body, now: Clock.monotonic(), into: &output)
    }

    func connectionHasRead(_ connection: StompConnection) {
        if !output.foreigners.isEmpty {
            inbox?.busRefused(output.foreigners)
            output.foreigners.removeAll(keepingCapacity: true)
        }
        if !output.messages.isEmpty {
            // Counted before it is told, so that whoever has the message finds it in the status.
            tellCounts()
            inbox?.busReceived(output.messages)
            output.messages.removeAll(keepingCapacity: true)
        }
        tick()
    }

    func connectionIsWritable(_ connection: StompConnection) { flush() }

    func connection(_ connection: StompConnection, ended failure: StompFailure?) {
        if connection === candidate {
            candidate = nil
            return planReturn()
        }
        if connection === former {
            former = nil
            gate.hearsTwice = false
            return
        }
        guard connection === current else { return }
        current = nil
        guard stopped == nil else { return finish() }
        let failure = failure ?? .closed("it closed the connection")
        let lasted = connection.readyFor(now: Clock.monotonic())
        var isRefused = false
        if case .refused = failure { isRefused = true }
        let place = plan.options.brokers[connection.broker]
        let wait = rotation.failed(lasted: lasted, wasRefused: isRefused)
        if let former, former.isReady {
            // The earlier broker is gone again; where we were before still works.
            current = former
            self.former = nil
            gate.hearsTwice = false
            rotation.moved(to: former.broker)
            return planReturn()
        }
        let next = rotation.count > 1 ? "The next broker is tried" : "It is tried again"
        let reason = "the bus's broker \(place) is lost: \(failure). \(next)"
        busState?.lost(reason)
        tellCounts()
        if toldReasons.count < Self.maxToldReasons, toldReasons.insert(reason).inserted {
            inbox?.busLost(reason: reason)
        }
        candidate?.abandon()
        candidate = nil
        loop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { self.connect() }
    }
}

// The bus without a broker, on a thread of its own.

import Datagrams
import Foundation
import Primitives
import Synchronization
import Wire

/// The bus without a broker, on a thread of its own: `MulticastMachine` with a socket.
///
/// It works while its network interface runs and takes datagrams. That others hear them, only they can tell.
final class MulticastBus: Bus {
    enum Limits {
        /// Until a socket that could not be opened is tried again, and between looks at the interface.
        static let check = Primitives.Duration.seconds(1)
        /// How long `stop` goes on sending.
        static let stop = Primitives.Duration.seconds(1)
        /// How long `stop` stays when all is sent, for those who have not got the last of it.
        static let linger = Primitives.Duration.milliseconds(30)
        /// Datagrams taken in one turn, so that sending has its own.
        static let datagramsPerTurn = 256
        /// What waits to be sent: the same as for a broker.
        static let queueByteCount = OutgoingQueue.Limits.byteCount
    }

    private let busState: BusState
    private let shared: Shared
    private let options: BusOptions.Multicast
    private let identity: BusIdentity

    /// What the thread and its callers share beside the bus's state.
    private final class Shared: Sendable {
        struct State: Sendable {
            var waker: Waker?
            var isStopping = false
            var stopped: CheckedContinuation<Void, Never>?
            var hasThread = false
        }

        let state = Mutex(State())

        func wake() { state.withLock { $0.waker }?.wake() }
    }

    init(options: BusOptions.Multicast, identity: BusIdentity) {
        self.options = options
        self.identity = identity
        let shared = Shared()
        self.shared = shared
        let interface = options.interface.map { "?interface=\($0)" } ?? ""
        busState = BusState(endpoint: "multicast://\(options.group)\(interface)", queueByteCount: Limits.queueByteCount)
        {
            shared.wake()
        }
    }

    func start(inbox: any BusInbox) {
        shared.state.withLock { state in
            precondition(!state.hasThread, "a bus is started once")
            state.hasThread = true
        }
        let thread = Thread { [self] in
            run(inbox)
            shared.state.withLock { state in
                state.hasThread = false
                state.waker = nil
                return state.stopped.take()
            }?.resume()
        }
        thread.name = "multicast bus"
        thread.start()
    }

    func send(_ messages: [BusMessage]) { busState.put(messages) }

    var status: BusStatus { busState.status }

    func stop() async {
        busState.withState { $0.hasEnded = true }
        await withCheckedContinuation { continuation in
            let (isOver, waker) = shared.state.withLock { state in
                state.isStopping = true
                guard state.hasThread else { return (true, nil as Waker?) }
                state.stopped = continuation
                return (false, state.waker)
            }
            waker?.wake()
            if isOver { continuation.resume() }
        }
    }

    // MARK: The thread

    private var isStopping: Bool { shared.state.withLock { $0.isStopping } }

    private func run(_ inbox: any BusInbox) {
        var random = RandomStream(seed: identity.seed, stream: 2)
        var machine = MulticastMachine(
            key: identity.key, session: random.next() | 1, incarnation: identity.incarnation, seed: random.next())
        var told: String?
        var wasConnected = false
        while !isStopping {
            let problem = serve(&machine, inbox) {
                told = nil
                busState.withState { [wasConnected] state in
                    state.status.isConnected = true
                    if wasConnected { state.status.reconnections += 1 }
                }
                wasConnected = true
            }
            guard let problem else { break }
            let reason = "the multicast bus on \(options.group) is lost: \(problem)"
            busState.lost(reason)
            if told != reason {
                told = reason
                inbox.busLost(reason: reason)
            }
            waitForNextAttempt()
        }
        busState.withState { $0.status.isConnected = false }
    }

    private func waitForNextAttempt() {
        guard let poller = try? Poller() else {
            // Too many open files: there is nothing to wait with but this.
            Thread.sleep(forTimeInterval: Double(Limits.check.wholeMilliseconds) / 1000)
            return
        }
        shared.state.withLock { $0.waker = poller.waker }
        guard !isStopping else { return }
        _ = poller.wait(timeout: Limits.check)
    }

    /// Opens the socket and serves it.
    ///
    /// - Returns: why it does not work (any more); nil where the bus is to stop.
    private func serve(
        _ machine: inout MulticastMachine, _ inbox: any BusInbox, connected: () -> Void
    ) -> String? {
        guard let interface = HostInterface.find(options.interface, for: options.group) else {
            return "this host has no network interface \(options.interface ?? "that is up"). `ip address` lists those "
                + "it has; write ?interface=NAME"
        }
        guard interface.isRunning else { return Self.notRunning(interface) }
        let socket: DatagramSocket
        let poller: Poller
        do throws(SocketError) {
            socket = try DatagramSocket(group: options.group, on: interface, timeToLive: options.timeToLive)
            poller = try Poller()
        } catch {
            return "\(error)"
        }
        poller.add(socket, index: 0)
        shared.state.withLock { $0.waker = poller.waker }
        connected()
        machine.greetSoon()
        inbox.busConnected()
        var open = OpenGroup(socket: socket, poller: poller, interface: interface, busState: busState, inbox: inbox)
        var (stopAt, lingerUntil): (Instant?, Instant?)
        while true {
            let now = Clock.monotonic()
            if stopAt == nil, isStopping { (stopAt, lingerUntil) = (now + Limits.stop, now + Limits.linger) }
            let hasMore = open.turn(&machine, now, until: earliest(stopAt, lingerUntil))
            if hasMore, stopAt != nil { lingerUntil = now + Limits.linger }
            if let end = earliest(stopAt, lingerUntil), now >= end { return nil }
            if let problem = open.check(now) { return problem }
        }
    }

    fileprivate static func notRunning(_ interface: HostInterface) -> String {
        "the network interface \(interface.name) does not run. Switch it on, or plug it in"
    }
}

/// The thread's view of its socket while it is open.
private struct OpenGroup: ~Copyable {
    let socket: DatagramSocket
    let poller: Poller
    let interface: HostInterface
    let busState: BusState
    let inbox: any BusInbox
    private var incoming = DatagramBatch()
    private var outgoing = DatagramBatch()
    private var output = MulticastMachine.Output()
    private var checkAt: Instant?
    private var countersThen = DatagramCounters()
    private let destination: SocketAddress

    init(
        socket: DatagramSocket, poller: Poller, interface: HostInterface, busState: BusState, inbox: any BusInbox
    ) {
        self.socket = socket
        self.poller = poller
        self.interface = interface
        self.busState = busState
        self.inbox = inbox
        destination = socket.address
    }

    /// Sends what may be sent, waits, takes what has come.
    ///
    /// - Parameters:
    ///   - machine: decides what is sent.
    ///   - now: the monotonic clock.
    ///   - limit: not to wait longer than until then.
    /// - Returns: whether messages still wait to be sent.
    mutating func turn(_ machine: inout MulticastMachine, _ now: Instant, until limit: Instant?) -> Bool {
        machine.step(now: now, into: &output)
        var isSending = true
        while isSending {
            isSending = busState.withState { state in
                let isSent = machine.sendNext(from: &state.queue, now: now, into: &output)
                if state.queue.isEmpty { state.isAwaited = false }
                return isSent
            }
        }
        let hasMore = busState.withState { !$0.queue.isEmpty }
        transmit()
        let next = machine.nextDeadline(now: now, hasMessages: hasMore)
        let deadline = limit.map { min($0, next) } ?? next
        let ready = poller.wait(timeout: deadline - Clock.monotonic())
        if ready.contains(0) { receive(&machine) }
        return hasMore
    }

    private mutating func transmit() {
        guard !output.datagrams.isEmpty else { return }
        for datagram in output.datagrams { outgoing.append(datagram, remote: destination) }
        socket.send(outgoing)
        outgoing.removeAll()
        output.datagrams.removeAll(keepingCapacity: true)
    }

    private mutating func receive(_ machine: inout MulticastMachine) {
        let count = socket.receive(into: &incoming, limit: MulticastBus.Limits.datagramsPerTurn)
        let now = Clock.monotonic()
        let rejectedThen = machine.gate.rejected
        for index in 0..<count {
            let source = incoming.datagrams[index].remote
            machine.received(incoming.payload(index), from: source, now: now, into: &output)
        }
        let (received, rejected, repaired) = (machine.gate.received, machine.gate.rejected, machine.gate.repaired)
        busState.withState { state in
            (state.status.received, state.status.rejected, state.status.repaired) = (received, rejected, repaired)
        }
        if rejected != rejectedThen {
            let refused = machine.gate.refused
            busState.withState { $0.refused = refused }
        }
        if !output.foreigners.isEmpty {
            inbox.busRefused(output.foreigners)
            output.foreigners.removeAll(keepingCapacity: true)
        }
        guard !output.messages.isEmpty else { return }
        inbox.busReceived(output.messages)
        output.messages.removeAll(keepingCapacity: true)
    }

    /// Whether interface and socket still work; looked at once a second.
    mutating func check(_ now: Instant) -> String? {
        guard let checkAt else {
            checkAt = now + MulticastBus.Limits.check
            return nil
        }
        guard now >= checkAt else { return nil }
        self.checkAt = now + MulticastBus.Limits.check
        let current = HostInterface.all().first { $0.index == interface.index }
        guard current?.isRunning == true else { return MulticastBus.notRunning(interface) }
        let counters = socket.counters
        defer { countersThen = counters }
        guard counters.sent == countersThen.sent, counters.unsent > countersThen.unsent else { return nil }
        if counters.forbidden > countersThen.forbidden {
            return "the system forbids to send to the group. Look at this host's firewall"
        }
        return "datagrams cannot be sent on \(interface.name). `ip route get \(destination.host)` tells why"
    }
}

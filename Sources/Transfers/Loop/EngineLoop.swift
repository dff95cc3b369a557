// The loop: waits for sockets, other threads and time, and gives each torrent what is its.

import Datagrams
import Foundation
import PeerLogic
import Primitives
import Wire

/// The loop: waits for sockets, other threads and time, and gives each torrent what is its.
///
/// One thread owns it and all that hangs on it; others leave jobs in its `Inbox`.
final class EngineLoop {
    /// Callers that have not said yet which torrent they want.
    static let maxGreetingCount = 128
    static let greetingPatience = Duration.seconds(10)
    /// What a torrent may buffer, however many others there are.
    static let leastBufferedByteCount = 1 << 20

    var options: EngineOptions
    let inbox: Inbox
    let hasherCount: Int
    let hashers: WorkQueue
    let disk = WorkQueue(name: "disk")
    let recorder = WorkQueue(name: "record")
    let resolvers = WorkQueue(name: "resolve", threadCount: 4)
    let fetchers = WorkQueue(name: "web seed", threadCount: 4)
    let digestKey = SipHash(key0: .random(in: 0...(.max)), key1: .random(in: 0...(.max)))
    var local: LocalDiscovery?

    var transfers: [TransferID: Transfer] = [:]
    var connections: [Connection] = []
    var pool = BufferPool()
    /// Read once a round, and before each event of another thread.
    private(set) var now = Clock.monotonic()
    let listenAddresses: [SocketAddress]

    private let poller: StreamPoller
    private let listeners: [CInt]
    private let onEvent: @Sendable (TransferEvent) -> Void
    private var lastNumber = 0
    private var tickAt: Instant
    private var tickedAt: Instant
    private var datagrams: [(descriptor: CInt, isIPv4: Bool)] = []
    private var spareActions: [[TorrentSession.Action]] = []
    private var isStopping = false
    private var stopped: [@Sendable () -> Void] = []

    // MARK: - Start

    /// Opens the sockets on the calling thread, and starts the loop on its own.
    static func start(
        _ options: EngineOptions, _ onEvent: @escaping @Sendable (TransferEvent) -> Void
    ) throws(TransferError) -> Inbox {
        var listeners: [(CInt, SocketAddress)] = []
        do throws(SocketError) {
            for var address in options.listenAddresses {
                // Trackers are told one port: where the kernel chooses, it is the same for all addresses.
                if address.port == 0, let first = listeners.first { address.port = first.1.port }
                listeners.append(try Streams.listen(on: address))
            }
            let poller = try StreamPoller()
            let inbox = Inbox(poller.waker)
            let opened = listeners
            // The poller goes to the thread, and nobody here keeps it.
            nonisolated(unsafe) let handed = poller
            let thread = Thread {
                EngineLoop(options, inbox, handed, opened, onEvent).run()
            }
            thread.name = "transfers"
            thread.start()
            return inbox
        } catch {
            for (descriptor, _) in listeners { close(descriptor) }
            throw TransferError(.network, error.description.replacing("UDP", with: "TCP"))
        }
    }

    private init(
        _ options: EngineOptions, _ inbox: Inbox, _ poller: StreamPoller, _ listeners: [(CInt, SocketAddress)],
        _ onEvent: @escaping @Sendable (TransferEvent) -> Void
    ) {
        self.options = options
        self.inbox = inbox
        self.poller = poller
        self.onEvent = onEvent
        self.listeners = listeners.map(\.0)
        listenAddresses = listeners.map(\.1)
        hasherCount = max(1, options.hashThreadCount ?? ProcessInfo.processInfo.activeProcessorCount)
        hashers = WorkQueue(name: "hash", threadCount: hasherCount)
        tickedAt = now
        tickAt = now + .seconds(1)
        for isIPv4 in [true, false] {
            // A host without IPv6 has trackers over IPv4.
            if let descriptor = try? Streams.datagrams(isIPv4: isIPv4) { datagrams.append((descriptor, isIPv4)) }
        }
        if options.announcesLocally { local = try? LocalDiscovery() }
    }

    deinit {
        for descriptor in listeners { close(descriptor) }
        for (descriptor, _) in datagrams { close(descriptor) }
        for queue in [hashers, disk, recorder, resolvers, fetchers] { queue.close() }
    }

    var listenPort: UInt16 { listenAddresses.first?.port ?? 0 }

    func tell(_ event: TransferEvent) { onEvent(event) }

    func newPeerID() -> PeerID {
        PeerID.own { _ in UInt8.random(in: UInt8(ascii: "a")...UInt8(ascii: "z")) }
    }

    // MARK: - Round

    private func run() {
        for address in listenAddresses { tell(.listening(address)) }
        while true {
            wait()
            now = Clock.monotonic()
            for job in inbox.take() { job(self) }
            if inbox.wantsEnd { return end() }
            acceptCalls()
            readDatagrams()
            serve()
            for transfer in transfers.values {
                if let deadline = transfer.session.nextDeadline, deadline <= now { transfer.step(.deadlineReached) }
            }
            if tickAt <= now { tick() }
            flush()
            connections.removeAll { $0.phase == .closed }
            if isStopping, transfers.isEmpty { return end() }
        }
    }

    private func end() {
        for connection in connections { connection.close() }
        for transfer in transfers.values {
            if case .checking(let run) = transfer.mode { run?.cancel() }
            transfer.verification?.cancel()
            transfer.record()
        }
        transfers = [:]
        // What is to be noted is noted before anybody hears of the end.
        let (stopped, inbox) = (stopped, inbox)
        let rest = inbox.shut()
        isStopping = true
        for job in rest { job(self) }
        recorder.add { for body in stopped { body() } }
    }

    private func wait() {
        poller.clear()
        var deadline = tickAt
        for transfer in transfers.values {
            if let next = transfer.session.nextDeadline { deadline = min(deadline, next) }
        }
        for listener in listeners { _ = poller.add(listener, reads: true, writes: false) }
        for (descriptor, _) in datagrams { _ = poller.add(descriptor, reads: true, writes: false) }
        if let local { _ = poller.add(local.descriptor, reads: true, writes: false) }
        var hasWork = false
        for connection in connections {
            let isConnecting = connection.phase == .connecting
            // Who waits for its torrent is not read on: what it sends waits in the kernel.
            guard connection.phase != .waiting else {
                connection.place = 0
                continue
            }
            connection.place = poller.add(
                connection.descriptor, reads: !isConnecting, writes: isConnecting || connection.isBlocked)
            if !isConnecting, !connection.isBlocked, connection.wantsWrite { hasWork = true }
        }
        poller.wait(timeout: hasWork ? .zero : deadline - Clock.monotonic())
    }

    private func acceptCalls() {
        for (index, listener) in listeners.enumerated() where poller.isReadable(1 + index) {
            for _ in 0..<64 {
                guard let (descriptor, address) = Streams.accept(from: listener) else { break }
                let greeting = connections.reduce(0) { $0 + ($1.link == nil && $1.phase != .closed ? 1 : 0) }
                guard greeting < Self.maxGreetingCount, !isFull, !isStopping else {
                    close(descriptor)
                    continue
                }
                connections.append(Connection(descriptor, address, phase: .greeting, now: now))
            }
        }
    }

    private func serve() {
        for connection in connections where connection.place > 0 && connection.phase != .closed {
            let place = connection.place
            if connection.phase == .connecting {
                if poller.isWritable(place) { connection.transfer?.connected(connection) }
                continue
            }
            if poller.isWritable(place) { connection.isBlocked = false }
            if poller.isReadable(place), let end = connection.read(self) { finish(connection, end) }
        }
    }

    private func flush() {
        for connection in connections where connection.phase != .closed && connection.phase != .connecting {
            if connection.wantsWrite, !connection.isBlocked, let end = connection.flush(now: now) {
                finish(connection, end)
            }
        }
    }

    private func finish(_ connection: Connection, _ end: LinkEnd) {
        if let transfer = connection.transfer { transfer.ended(connection, end) } else { connection.close() }
    }

    /// What we say first to who asks for a torrent; nil where it is not here.
    func handshake(for infoHash: InfoHash) -> PeerHandshake? {
        transfers.values.first { $0.infoHash == infoHash && $0.isRunning }?.session.handshake
    }

    /// A handshake has come.
    func greeted(_ connection: Connection, _ handshake: PeerHandshake) {
        if let link = connection.link {
            connection.transfer?.step(.handshakeReceived(link, handshake))
            return
        }
        guard let transfer = transfers.values.first(where: { $0.infoHash == handshake.infoHash && !$0.isAway }) else {
            return connection.close()
        }
        if transfer.isRunning { return admit(connection, handshake, to: transfer) }
        // What lies on the disk is looked at: within the patience for callers that is mostly done.
        connection.hold(handshake)
    }

    private func admit(_ connection: Connection, _ handshake: PeerHandshake, to transfer: Transfer) {
        guard let link = transfer.newLink() else { return connection.close() }
        transfer.adopt(connection, link)
        transfer.step(.accepted(link, connection.address, handshake))
    }

    /// A torrent can be talked about now: those who have called meanwhile are heard.
    func admitWaiting(for transfer: Transfer) {
        for connection in connections where connection.link == nil && connection.phase != .closed {
            if let handshake = connection.takeHeld(of: transfer.infoHash) { admit(connection, handshake, to: transfer) }
            // Some say all of theirs only once they have ours.
            if let end = connection.goOn(self) { finish(connection, end) }
        }
    }

    // MARK: - Datagrams

    private func readDatagrams() {
        for (index, socket) in datagrams.enumerated() where poller.isReadable(1 + listeners.count + index) {
            for _ in 0..<64 {
                guard let (bytes, source) = Streams.receive(from: socket.descriptor, upTo: 4_096) else { break }
                for transfer in transfers.values {
                    // The transaction id tells which of them has asked.
                    for tracker in transfer.trackers.trackers(at: source) {
                        transfer.trackers.heard(tracker, from: source)
                        transfer.step(.trackerDatagram(tracker: tracker, bytes, isIPv6: !source.isIPv4))
                    }
                }
            }
        }
        guard let local, poller.isReadable(1 + listeners.count + datagrams.count) else { return }
        for _ in 0..<16 {
            guard let (bytes, source) = Streams.receive(from: local.descriptor, upTo: LocalDiscovery.maxByteCount)
            else { break }
            guard let (infoHashes, address) = local.read(bytes, from: source) else { continue }
            for transfer in transfers.values where transfer.isRunning && infoHashes.contains(transfer.infoHash) {
                transfer.step(.peersFound([address], .local))
            }
        }
    }

    func sendDatagram(_ bytes: [UInt8], to address: SocketAddress) {
        guard let socket = datagrams.first(where: { $0.isIPv4 == address.isIPv4 }) else { return }
        Streams.send(bytes, to: address, over: socket.descriptor)
    }

    // MARK: - Each second

    private func tick() {
        let seconds = Double((now - tickedAt).nanoseconds) / 1e9
        tickedAt = now
        tickAt = now + .seconds(1)
        for connection in connections {
            if connection.isStuck(now: now) {
                finish(connection, .stuck)
            } else if connection.link == nil, now - connection.since > Self.greetingPatience {
                connection.close()
            }
        }
        for transfer in transfers.values {
            transfer.downRate.sample(transfer.session.received, seconds: seconds)
            transfer.upRate.sample(transfer.session.sent, seconds: seconds)
            transfer.record()
            transfer.retryEmptyFiles()
            if case .stopping = transfer.mode, transfer.isTold(now: now) {
                transfers[transfer.id] = nil
                tell(.removed(transfer.id))
            }
        }
    }

    // MARK: - What people want

    func transfer(_ id: TransferID) throws(TransferError) -> Transfer {
        guard let transfer = transfers[id] else {
            throw TransferError(.unknown, "there is no transfer \(id)")
        }
        return transfer
    }

    func add(_ torrent: PreparedTorrent, _ options: TransferOptions) throws(TransferError) -> TransferID {
        guard !isStopping else { throw .engineStopped }
        guard transfers.count < self.options.maxTransferCount else {
            throw TransferError(.usage, "there are \(transfers.count) transfers, as many as may be; remove one")
        }
        let twin = transfers.values.first { transfer in
            if case .stopping = transfer.mode { return false }
            return transfer.infoHash == torrent.infoHash
        }
        if let twin { throw TransferError(.duplicate, "the torrent is there already, as transfer \(twin.id)") }
        lastNumber += 1
        let id = TransferID(number: lastNumber)
        let transfer = Transfer(id, torrent, options, loop: self)
        transfers[id] = transfer
        do throws(TransferError) {
            try transfer.open()
        } catch {
            transfers[id] = nil
            throw error
        }
        tell(.added(id, torrent.infoHash, name: transfer.name))
        return id
    }

    /// Forgets a torrent; `ended` is called once its files are gone, where they are to go, and at once elsewhere.
    func remove(
        _ id: TransferID, deletingData: Bool, ended: @escaping @Sendable () -> Void
    ) throws(TransferError) {
        let transfer = try transfer(id)
        transfer.stop(now: now)
        guard deletingData else { return ended() }
        let (store, record) = (transfer.store, transfer.resumeRecord)
        // Behind all that is still to be written.
        disk.add { [recorder] in
            store?.deleteAll()
            recorder.add { record?.delete() }
            ended()
        }
    }

    func stop(_ ended: @escaping @Sendable () -> Void) {
        stopped.append(ended)
        guard !isStopping else { return }
        isStopping = true
        for transfer in transfers.values { transfer.stop(now: now) }
        tickAt = min(tickAt, now + .milliseconds(50))
    }

    func setLimits(download: Int?, upload: Int?) {
        options.maxDownloadRate = download
        options.maxUploadRate = upload
        shareLimits()
    }

    /// Gives each torrent that runs an equal share of the limits for all.
    func shareLimits() {
        let running = transfers.values.filter { $0.isRunning }
        for transfer in running {
            transfer.applySettings(
                download: options.maxDownloadRate.map { max(1, $0 / running.count) },
                upload: options.maxUploadRate.map { max(1, $0 / running.count) },
                buffered: max(Self.leastBufferedByteCount, options.maxBufferedByteCount / running.count))
        }
    }

    func snapshots(isWhole: Bool = true) -> [TransferSnapshot] {
        transfers.values.map { $0.snapshot(isWhole: isWhole) }.sorted { $0.id < $1.id }
    }

    /// Whether one more connection would be too many.
    var isFull: Bool { connections.count >= options.maxConnectionCount }

    // MARK: - Reused arrays

    func borrowActions() -> [TorrentSession.Action] { spareActions.popLast() ?? [] }

    func giveBack(_ actions: inout [TorrentSession.Action]) {
        actions.removeAll(keepingCapacity: true)
        spareActions.append(actions)
    }
}

// A few trackers, usually three, on a bus and with disks that the test holds in its hands.

import Primitives
import Testing
import TrackerLogic
import Wire

/// A cluster whose every message and write goes where the test says.
///
/// Whatever nobody holds back is delivered at once: messages in the order in which they were sent, writes as soon as
/// they are asked for. A test holds back what its rule is about (`holdMessages`, `holdWrites`, `cutOff`), does what the
/// rule forbids to be believed, and looks at what each tracker says and answers. Time passes by `run` alone.
struct Trio {
    /// A message on its way to one tracker.
    struct Letter {
        var from: UInt32
        var to: UInt32
        var message: ClusterMessage

        var body: ClusterMessage.Body { message.body }
    }

    /// What a client was told.
    struct Reply {
        var by: UInt32
        var to: SocketAddress
        var payload: [UInt8]
    }

    private struct Member {
        var configuration: NodeConfiguration
        /// Nil while it is dead.
        var node: TrackerNode?
        var disk = DiskImage()
        /// Writes that are not made yet.
        var writes: [Persist] = []
        var holdsWrites = false
        var failure: StorageFailure?
        var lives: UInt64 = 0
        var isCutOff = false
    }

    private var members: [Member] = []
    private(set) var now = ClockReading(
        monotonic: Instant(nanoseconds: 5_000_000_000), wall: WallTime(milliseconds: NodeHarness.wallStart))
    /// Letters that are held back, in the order in which they were sent.
    private(set) var held: [Letter] = []
    private var holds: (Letter) -> Bool = { _ in false }
    /// All that was said, also to nobody.
    private(set) var said: [Letter] = []
    private(set) var replies: [Reply] = []
    private(set) var answers: [Answer] = []
    private(set) var told: [(by: UInt32, observation: Observation)] = []
    private var effects = Effects()
    private var connectionIDs: [SocketAddress: ConnectionID] = [:]

    /// Trackers of a profile; `change` is what each one's configuration becomes, by its id.
    init(
        _ profile: ClusterProfile = .paxos, count: UInt32 = 3,
        change: (UInt32, inout NodeConfiguration) -> Void = { _, _ in }
    ) {
        for id in 1...count {
            var configuration = NodeConfiguration.test
            configuration.id = id
            configuration.cluster = profile.configuration(members: Array(1...count))
            change(id, &configuration)
            members.append(Member(configuration: configuration))
        }
    }

    /// A cluster that serves: by default tracker 3 is master, as the highest.
    static func serving(
        _ profile: ClusterProfile = .paxos, count: UInt32 = 3,
        change: (UInt32, inout NodeConfiguration) -> Void = { _, _ in }
    ) -> Trio {
        var trio = Trio(profile, count: count, change: change)
        for id in 1...count { trio.start(id) }
        trio.run(.seconds(8))
        trio.forget()
        return trio
    }

    var ids: [UInt32] { members.map(\.configuration.id) }

    private func place(_ id: UInt32) -> Int { Int(id) - 1 }

    // MARK: - Looking

    subscript(id: UInt32) -> TrackerNode {
        guard let node = members[place(id)].node else { preconditionFailure("tracker \(id) is dead") }
        return node
    }

    func isAlive(_ id: UInt32) -> Bool { members[place(id)].node != nil }
    func disk(_ id: UInt32) -> DiskImage { members[place(id)].disk }
    func life(_ id: UInt32) -> Life { self[id].inspection.life }
    func epoch(_ id: UInt32) -> Epoch { self[id].inspection.promised }
    func index(_ id: UInt32) -> UInt64 { self[id].inspection.position.index }
    func isServing(_ id: UInt32) -> Bool { self[id].inspection.isServing }

    /// Those that take themselves for master.
    var masters: [UInt32] { ids.filter { isAlive($0) && self[$0].inspection.leads != nil } }

    /// What a tracker has said since it was last forgotten.
    func said(by id: UInt32, where isMeant: (ClusterMessage.Body) -> Bool) -> [Letter] {
        said.filter { $0.from == id && isMeant($0.body) }
    }

    func observed(by id: UInt32) -> [Observation] { told.filter { $0.by == id }.map(\.observation) }

    /// Forgets what was said, answered and told.
    mutating func forget() {
        said = []
        replies = []
        told = []
    }

    // MARK: - Lives

    mutating func start(_ id: UInt32) {
        let place = place(id)
        precondition(members[place].node == nil, "tracker \(id) lives already")
        members[place].lives += 1
        do {
            members[place].node = try members[place].disk.restored(
                members[place].configuration, incarnation: UInt64(id) * 1000 + members[place].lives, seed: UInt64(id))
        } catch {
            Issue.record("tracker \(id) cannot read its disk: \(error)")
            return
        }
        step(id, .started)
        step(id, .busConnected)
    }

    /// Starts one that has promised an epoch, and has decided nothing.
    mutating func startAt(_ epoch: Epoch, _ id: UInt32) {
        members[place(id)].disk.promise = Promise(
            epoch: epoch, incarnation: 1, secret: NodeHarness.secret,
            shardCount: members[place(id)].configuration.shardCount)
        start(id)
    }

    /// What it had not written is lost, and so is what was on its way to it.
    mutating func crash(_ id: UInt32) {
        members[place(id)].node = nil
        members[place(id)].writes = []
        held.removeAll { $0.to == id }
    }

    mutating func restart(_ id: UInt32) {
        crash(id)
        start(id)
    }

    /// Takes its disk.
    mutating func eraseDisk(_ id: UInt32) { members[place(id)].disk = DiskImage() }

    // MARK: - The bus

    /// Neither hears anybody nor is heard, and does not know it.
    mutating func cutOff(_ id: UInt32) { members[place(id)].isCutOff = true }

    mutating func mend(_ id: UInt32) { members[place(id)].isCutOff = false }

    /// Loses its bus, and knows it.
    mutating func loseBus(_ id: UInt32) {
        members[place(id)].isCutOff = true
        step(id, .busLost)
    }

    mutating func connectBus(_ id: UInt32) {
        members[place(id)].isCutOff = false
        step(id, .busConnected)
    }

    /// From now on, keeps back each letter of which this holds.
    mutating func holdMessages(_ isMeant: @escaping (Letter) -> Bool) { holds = isMeant }

    /// Delivers what was held back, and holds nothing back any more.
    mutating func releaseMessages() {
        holds = { _ in false }
        deliver { _ in true }
    }

    /// Delivers those of the held letters of which this holds; what comes of them may be held back again.
    mutating func deliver(_ isMeant: (Letter) -> Bool) {
        let chosen = held.filter(isMeant)
        held.removeAll(where: isMeant)
        for letter in chosen { hear(letter) }
    }

    mutating func drop(_ isMeant: (Letter) -> Bool) { held.removeAll(where: isMeant) }

    /// Somebody says something, whether it would or not.
    mutating func tell(_ id: UInt32, _ body: ClusterMessage.Body, from sender: UInt32, in epoch: Epoch) {
        tell(id, body, from: life(sender), in: epoch)
    }

    mutating func tell(_ id: UInt32, _ body: ClusterMessage.Body, from sender: Life, in epoch: Epoch) {
        step(
            id,
            .messageReceived(
                ClusterMessage(sender: sender, destination: .one(life(id)), epoch: epoch, body: body)))
    }

    private mutating func hear(_ letter: Letter) {
        guard isAlive(letter.to), !members[place(letter.to)].isCutOff else { return }
        step(letter.to, .messageReceived(letter.message))
    }

    // MARK: - The disks

    mutating func holdWrites(_ id: UInt32) { members[place(id)].holdsWrites = true }

    /// Makes what was held back, and whatever comes from now on.
    mutating func releaseWrites(_ id: UInt32) {
        members[place(id)].holdsWrites = false
        while let write = members[place(id)].writes.first { finish(write, of: id) }
    }

    /// The oldest write that is held back is not made.
    mutating func failWrite(_ id: UInt32, _ failure: StorageFailure = .full) {
        let write = members[place(id)].writes.removeFirst()
        step(id, .persistFailed(write.token, failure))
    }

    /// From now on no write is made; nil: each is again.
    mutating func failWrites(_ id: UInt32, _ failure: StorageFailure?) { members[place(id)].failure = failure }

    func heldWrites(_ id: UInt32) -> [Persist.Change] { members[place(id)].writes.map(\.change) }

    private mutating func finish(_ write: Persist, of id: UInt32) {
        members[place(id)].writes.removeFirst()
        members[place(id)].disk.carryOut(write.change)
        step(id, .persisted(write.token))
    }

    // MARK: - Time

    /// Lets time pass: whoever wants to be woken is.
    mutating func run(_ span: Duration) {
        let end = now.monotonic + span
        var idle = 0
        while true {
            var due: Instant?
            for member in members {
                guard let wanted = member.node?.nextDeadline else { continue }
                due = due.map { min($0, wanted) } ?? wanted
            }
            guard let next = due, next <= end else { break }
            idle = next > now.monotonic ? 0 : idle + 1
            precondition(idle < 1000, "a tracker wants to be woken without end")
            pass(max(next - now.monotonic, .zero))
            for id in ids where isAlive(id) {
                if let wanted = self[id].nextDeadline, wanted <= now.monotonic { step(id, .deadlineReached) }
            }
        }
        pass(max(end - now.monotonic, .zero))
    }

    private mutating func pass(_ span: Duration) {
        now.monotonic = now.monotonic + span
        now.wall = WallTime(
            milliseconds: NodeHarness.wallStart + (now.monotonic - Instant(nanoseconds: 0)).wholeMilliseconds)
    }

    // MARK: - Clients

    /// A client announces at a tracker; its connection id is the cluster's.
    ///
    /// - Returns: what it is told at once; nil for silence. What comes later is in `replies`.
    @discardableResult
    mutating func announce(
        _ client: SocketAddress, at id: UInt32, torrent: Int = 1, left: UInt64 = 1, event: AnnounceEvent = .started
    ) throws -> TrackerReply? {
        let request = AnnounceRequest(
            connectionID: try connect(client, at: id), transactionID: TransactionID(1), infoHash: .numbered(torrent),
            peerID: .of(client), left: left, event: event, numWant: 50, port: client.port)
        var bytes: [UInt8] = []
        request.encode(into: &bytes)
        return try ask(bytes, from: client, at: id)
    }

    @discardableResult
    mutating func scrape(_ client: SocketAddress, at id: UInt32, torrent: Int = 1) throws -> TrackerReply? {
        var bytes: [UInt8] = []
        ScrapeRequest(
            connectionID: try connect(client, at: id), transactionID: TransactionID(2), infoHashes: [.numbered(torrent)]
        ).encode(into: &bytes)
        return try ask(bytes, from: client, at: id)
    }

    private mutating func connect(_ client: SocketAddress, at id: UInt32) throws -> ConnectionID {
        if let known = connectionIDs[client] { return known }
        // Whoever is in service gives one that is good everywhere.
        let server = isServing(id) ? id : ids.first { isAlive($0) && isServing($0) } ?? id
        var bytes: [UInt8] = []
        ConnectRequest(transactionID: TransactionID(7)).encode(into: &bytes)
        guard case .connect(_, let connectionID)? = try ask(bytes, from: client, at: server) else {
            throw NoConnection(tracker: server)
        }
        replies.removeAll { $0.to == client }
        connectionIDs[client] = connectionID
        return connectionID
    }

    struct NoConnection: Error {
        var tracker: UInt32
    }

    mutating func ask(_ payload: [UInt8], from client: SocketAddress, at id: UInt32) throws -> TrackerReply? {
        var batch = DatagramBatch()
        batch.append(payload, remote: client, local: .unspecified, socket: 0)
        let before = replies.count
        step(id, .datagramsReceived(batch))
        // A slave forwards after a moment.
        run(.milliseconds(5))
        return try replies[before...].first { $0.to == client }.map { try TrackerReply($0.payload, isIPv6: false) }
    }

    /// A client asks over HTTP.
    ///
    /// - Returns: the answers that come within a time.
    mutating func request(
        _ content: ClientRequest.Content, from client: SocketAddress, at id: UInt32, within span: Duration
    ) -> [Answer] {
        answers = []
        step(id, .requestReceived(ClientRequest(id: 4711, source: client, content: content)))
        run(span)
        return answers
    }

    func replies(to client: SocketAddress) -> [Reply] { replies.filter { $0.to == client } }

    /// An operator orders something of a tracker.
    mutating func command(_ id: UInt32, _ command: OperatorCommand) { step(id, .commandReceived(command)) }

    // MARK: - The step

    private mutating func step(_ id: UInt32, _ event: Event) {
        var queue: [(UInt32, Event)] = [(id, event)]
        var count = 0
        while !queue.isEmpty {
            let (id, event) = queue.removeFirst()
            guard isAlive(id) else { continue }
            members[place(id)].node?.step(event, now: now, into: &effects)
            let effects = self.effects
            self.effects.removeAll()
            for observation in effects.observations { told.append((id, observation)) }
            for number in effects.replies.datagrams.indices {
                replies.append(
                    Reply(
                        by: id, to: effects.replies.datagrams[number].remote, payload: effects.replies.payload(number)))
            }
            answers += effects.answers
            for persist in effects.persists { queue += write(persist, id) }
            for message in effects.messages { queue += send(message, id) }
            count += 1
            precondition(count < 100_000, "messages lead to messages without end")
        }
    }

    private mutating func write(_ persist: Persist, _ id: UInt32) -> [(UInt32, Event)] {
        let place = place(id)
        if members[place].holdsWrites {
            members[place].writes.append(persist)
            return []
        }
        if let failure = members[place].failure { return [(id, .persistFailed(persist.token, failure))] }
        members[place].disk.carryOut(persist.change)
        return [(id, .persisted(persist.token))]
    }

    private mutating func send(_ message: ClusterMessage, _ id: UInt32) -> [(UInt32, Event)] {
        var heard: [(UInt32, Event)] = []
        for other in ids where other != id {
            if case .one(let life) = message.destination, life.id != other { continue }
            let letter = Letter(from: id, to: other, message: message)
            said.append(letter)
            guard !members[place(id)].isCutOff, !members[place(other)].isCutOff else { continue }
            if holds(letter) {
                held.append(letter)
            } else {
                heard.append((other, .messageReceived(message)))
            }
        }
        return heard
    }
}

// A tracker node between a clock and a disk that the test holds in its hands.
//
// `ask` and its kin play a quick disk; `step`, `completeWrite` and `failWrite` go one event at a time.

import Primitives
import Testing
import TrackerLogic
import Wire

/// What a node's writes have left behind.
struct DiskImage: Sendable, Equatable {
    var promise: Promise?
    /// In rising order of their numbers.
    var chunks: [SnapshotChunk] = []
    /// In rising order of their indices, without gaps.
    var entries: [Entry] = []

    mutating func carryOut(_ change: Persist.Change) {
        switch change {
        case .promise(let promise): self.promise = promise
        case .append(let entry):
            let index = entry.header.index
            entries.removeAll { $0.header.index >= index }
            #expect(entries.last.map { $0.header.index + 1 == index } ?? true, "entry \(index) leaves a gap in the log")
            entries.append(entry)
        case .saveChunk(let chunk):
            chunks.removeAll { $0.number == chunk.number }
            chunks.append(chunk)
            chunks.sort { $0.number < $1.number }
        case .trim(let index): entries.removeAll { $0.header.index <= index }
        case .replaceAll(let chunks):
            self.chunks = chunks
            entries = []
        }
    }

    /// A node that has read all of this back and is not yet started.
    func restored(
        _ configuration: NodeConfiguration = .test, incarnation: UInt64 = 2, seed: UInt64 = 1
    ) throws -> TrackerNode {
        var node = TrackerNode(
            configuration: configuration, incarnation: incarnation, secret: NodeHarness.secret, record: promise,
            seed: seed)
        for chunk in chunks { try node.restore(chunk) }
        for entry in entries { try node.restore(entry: entry.bytes) }
        return node
    }
}

extension NodeConfiguration {
    /// The defaults, but for a table in few parts, which is quick to make.
    static var test: NodeConfiguration {
        var configuration = NodeConfiguration()
        configuration.shardCount = 8
        return configuration
    }
}

struct NodeHarness: Sendable {
    static let secret = ClusterSecret(0x1111, 0x2222, 0x3333, 0x4444)
    /// 2027-01-15.
    static let wallStart: Int64 = 1_800_000_000_000

    /// A datagram that the node has sent.
    struct Sent: Sendable, Equatable {
        var datagram: Datagram
        var payload: [UInt8]
    }

    private(set) var node: TrackerNode
    private(set) var disk = DiskImage()
    /// All changes that became durable, in order.
    private(set) var changes: [Persist.Change] = []
    /// Writes that were asked for and are not done, the oldest first.
    private(set) var pending: [Persist] = []
    /// What the node has sent, answered and told since it was last looked at.
    private(set) var sent: [Sent] = []
    private(set) var answers: [Answer] = []
    private(set) var observations: [Observation] = []

    var now: ClockReading
    /// The batch that is received, and the buffer of effects: kept and used again, as an owner does.
    private var batch = DatagramBatch()
    private var effects = Effects()

    /// A node; `starts` is whether it is started and its election durable.
    init(_ configuration: NodeConfiguration = .test, seed: UInt64 = 1, starts: Bool = true) {
        self.init(
            TrackerNode(
                configuration: configuration, incarnation: 1, secret: NodeHarness.secret, record: nil, seed: seed),
            DiskImage(), starts: starts)
    }

    /// Goes on with a node that was read back from a disk.
    init(
        _ node: TrackerNode, _ disk: DiskImage, at wall: Int64 = NodeHarness.wallStart, starts: Bool = true
    ) {
        self.node = node
        self.disk = disk
        now = ClockReading(monotonic: Instant(nanoseconds: 5_000_000_000), wall: WallTime(milliseconds: wall))
        if starts {
            step(.started)
            completeWrites()
        }
    }

    // MARK: One event at a time

    mutating func step(_ event: Event) {
        node.step(event, now: now, into: &effects)
        #expect(effects.messages.isEmpty || node.configuration.cluster.hasBus, "nobody is there to be told")
        pending += effects.persists
        for index in effects.replies.datagrams.indices {
            sent.append(Sent(datagram: effects.replies.datagrams[index], payload: effects.replies.payload(index)))
        }
        answers += effects.answers
        observations += effects.observations
        effects.removeAll()
    }

    /// Makes the oldest write durable.
    mutating func completeWrite() {
        let write = pending.removeFirst()
        disk.carryOut(write.change)
        changes.append(write.change)
        step(.persisted(write.token))
    }

    /// Makes all writes durable, and those that they lead to.
    mutating func completeWrites(_ location: SourceLocation = #_sourceLocation) {
        var count = 0
        while !pending.isEmpty {
            completeWrite()
            count += 1
            guard count < 10_000 else {
                Issue.record("writes lead to writes without end", sourceLocation: location)
                return
            }
        }
    }

    /// Fails the oldest write, of which nothing is on the disk then.
    mutating func failWrite(_ failure: StorageFailure) {
        step(.persistFailed(pending.removeFirst().token, failure))
    }

    /// Lets time pass without telling the node, as when its owner is slow.
    mutating func pass(_ span: Duration) {
        now.monotonic = now.monotonic + span
        now.wall.milliseconds += span.wholeMilliseconds
    }

    /// Lets time pass and tells the node at each of its deadlines, with a quick disk.
    mutating func run(_ span: Duration, _ location: SourceLocation = #_sourceLocation) {
        let end = now.monotonic + span
        var idle = 0
        while let due = node.nextDeadline, due <= end {
            idle = due > now.monotonic ? 0 : idle + 1
            guard idle < 1_000 else {
                Issue.record("the node wants to be woken without end", sourceLocation: location)
                return
            }
            if due > now.monotonic { pass(due - now.monotonic) }
            step(.deadlineReached)
            completeWrites(location)
        }
        if end > now.monotonic { pass(end - now.monotonic) }
    }

    // MARK: Asking

    mutating func receive(
        _ payloads: [[UInt8]], from client: SocketAddress, local: SocketAddress = .unspecified, socket: UInt16 = 0
    ) {
        batch.removeAll()
        for payload in payloads { batch.append(payload, remote: client, local: local, socket: socket) }
        step(.datagramsReceived(batch))
    }

    /// What was sent since this was last called.
    mutating func takeSent() -> [Sent] {
        defer { sent = [] }
        return sent
    }

    mutating func takeAnswers() -> [Answer] {
        defer { answers = [] }
        return answers
    }

    mutating func takeObservations() -> [Observation] {
        defer { observations = [] }
        return observations
    }

    /// Sends one datagram and lets the disk do its work.
    ///
    /// - Returns: the reply's bytes; nil for silence. More than one is a failure.
    mutating func ask(
        _ payload: [UInt8], from client: SocketAddress, _ location: SourceLocation = #_sourceLocation
    ) -> [UInt8]? {
        sent = []
        receive([payload], from: client)
        completeWrites(location)
        let replies = takeSent()
        #expect(replies.count <= 1, "one request has several replies", sourceLocation: location)
        #expect(replies.allSatisfy { $0.datagram.remote == client }, sourceLocation: location)
        return replies.first?.payload
    }

    /// Gets a connection id.
    mutating func connect(
        _ client: SocketAddress, _ location: SourceLocation = #_sourceLocation
    ) throws -> ConnectionID {
        var bytes: [UInt8] = []
        ConnectRequest(transactionID: TransactionID(77)).encode(into: &bytes)
        let reply = try #require(ask(bytes, from: client, location), sourceLocation: location)
        guard case .connect(TransactionID(77), let id) = try TrackerReply(reply, isIPv6: !client.isIPv4) else {
            Issue.record("a connect is answered by something else", sourceLocation: location)
            return ConnectionID(0)
        }
        return id
    }

    /// Connects and announces; the request can be changed before it goes out.
    mutating func announce(
        _ infoHash: InfoHash, from client: SocketAddress, left: UInt64 = 1, event: AnnounceEvent = .none,
        numWant: Int32 = -1, urlData: [UInt8] = [], _ location: SourceLocation = #_sourceLocation,
        change: (inout AnnounceRequest) -> Void = { _ in }
    ) throws -> TrackerReply {
        var request = AnnounceRequest(
            connectionID: try connect(client, location), transactionID: TransactionID(0xABCD), infoHash: infoHash,
            peerID: .of(client), left: left, event: event, numWant: numWant, port: client.port)
        change(&request)
        var bytes: [UInt8] = []
        request.encode(into: &bytes, urlData: urlData)
        let reply = try #require(ask(bytes, from: client, location), "silence", sourceLocation: location)
        return try TrackerReply(reply, isIPv6: !client.isIPv4)
    }

    /// As `announce`, where nothing but an announce reply will do.
    mutating func peers(
        _ infoHash: InfoHash, from client: SocketAddress, left: UInt64 = 1, event: AnnounceEvent = .none,
        numWant: Int32 = -1, _ location: SourceLocation = #_sourceLocation,
        change: (inout AnnounceRequest) -> Void = { _ in }
    ) throws -> TrackerReply.Announce {
        let reply = try announce(
            infoHash, from: client, left: left, event: event, numWant: numWant, location, change: change)
        guard case .announce(TransactionID(0xABCD), let announce) = reply else {
            throw UnexpectedReply(reply: reply)
        }
        return announce
    }

    /// Fills a swarm, in one batch that comes by HTTP.
    mutating func fill(_ infoHash: InfoHash, _ peers: [(address: SocketAddress, left: UInt64)]) {
        for (number, peer) in peers.enumerated() {
            let announce = Announce(
                infoHash: infoHash, peerID: .of(peer.address), left: peer.left, event: .started, numWant: 0,
                port: peer.address.port)
            step(
                .requestReceived(
                    ClientRequest(id: UInt64(number), source: peer.address, content: .announce(announce))))
            if !node.hasRoom { completeWrites() }
        }
        completeWrites()
        answers = []
    }

    /// Asks over HTTP and lets the disk do its work.
    mutating func request(
        _ content: ClientRequest.Content, from client: SocketAddress, passkey: [UInt8] = [],
        _ location: SourceLocation = #_sourceLocation
    ) throws -> Answer.Content {
        answers = []
        step(.requestReceived(ClientRequest(id: 4711, source: client, passkey: passkey, content: content)))
        completeWrites(location)
        let answers = takeAnswers()
        #expect(answers.map(\.id) == [4711], sourceLocation: location)
        return try #require(answers.first?.content, sourceLocation: location)
    }

    func counts(_ infoHash: InfoHash) -> SwarmCounts { node.state.table.counts(of: infoHash) }
}

struct UnexpectedReply: Error {
    var reply: TrackerReply
}

extension InfoHash {
    /// One of many, told apart by a number.
    static func numbered(_ number: Int) -> InfoHash {
        var bytes = Bytes20.zero
        for place in 0..<8 { bytes[place] = UInt8(truncatingIfNeeded: number >> (8 * place)) }
        return InfoHash(bytes)
    }
}

extension PeerID {
    /// Of the peer at an address.
    static func of(_ address: SocketAddress) -> PeerID {
        var bytes = Bytes20.zero
        for place in 0..<8 { bytes[place] = UInt8(truncatingIfNeeded: address.low >> UInt64(8 * place)) }
        bytes[18] = UInt8(address.port >> 8)
        bytes[19] = UInt8(truncatingIfNeeded: address.port)
        return PeerID(bytes)
    }
}

extension SocketAddress {
    /// 10.0.0.0 and upwards.
    static func v4(_ number: Int, port: UInt16 = 6881) -> SocketAddress {
        SocketAddress(ipv4: 0x0A00_0000 + UInt32(number), port: port)
    }

    /// 2001:db8:: and upwards.
    static func v6(_ number: Int, port: UInt16 = 6881) -> SocketAddress {
        SocketAddress(high: 0x2001_0DB8_0000_0000, low: UInt64(number), port: port)
    }

    func port(_ port: UInt16) -> SocketAddress {
        var address = self
        address.port = port
        return address
    }
}

extension TrackerReply {
    /// The text of an error; nil for anything else.
    var errorText: String? {
        guard case .error(_, let message) = self else { return nil }
        return String(decoding: message, as: UTF8.self)
    }
}

extension Refusal {
    /// What a client reads.
    var clientText: String { "\(text)" }
}

extension OperatorCommand {
    /// What the operator's files say, of torrents whose files are not kept whole.
    static func fileTorrents(_ torrents: [RegisteredTorrent]) -> Self {
        .setFileTorrents(torrents.map { FileTorrent($0) })
    }
}

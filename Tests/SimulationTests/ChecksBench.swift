// A cluster that does what a test says, right or wrong, before the eyes of the checkers: nothing in it is the logic.

import Primitives
import Simulator
import TrackerLogic
import Wire

struct ChecksBench {
    static let epoch = Epoch(round: 1, id: 1)
    static let infoHash = InfoHash(Bytes20(repeatElement(7, count: 20))!)

    var checks: Checks
    var views: [NodeView] = []
    var now = Instant(nanoseconds: 0)
    /// What has been decided, in order.
    var decided: [Entry] = []
    private let table = ReplicatedState(secret: ClusterSecret(1, 2, 3, 4), shardCount: 1).table
    private var transactions: UInt32 = 100
    private var tickets: UInt64 = 0

    /// Three trackers, all of them whole, the first of them master; and a few clients.
    init(_ profile: Profile = .paxos, entry: ClusterConfiguration.Entry = .any, count: Int = 3) {
        let ids = (1...UInt32(count)).map { $0 }
        let configurations = ids.map { id in
            var configuration = NodeConfiguration()
            configuration.id = id
            configuration.shardCount = 1
            configuration.cluster = profile.configuration(members: ids)
            configuration.cluster.entry = entry
            return configuration
        }
        checks = Checks(
            profile: profile, configurations: configurations, clientAddresses: (0..<4).map(ChecksBench.address))
        for id in ids {
            views.append(NodeView(life: Life(id: id, incarnation: UInt64(id) * 11), isServing: true, voters: ids))
            checks.began(Int(id) - 1, views[Int(id) - 1], DiskRecord(), at: now)
            promise(Int(id) - 1, ChecksBench.epoch)
            step(Int(id) - 1, .started)
        }
        answer(Array(1..<count), ChecksBench.epoch)
        step(0) { $0.leads = ChecksBench.epoch }
    }

    var invariants: [Invariant] { checks.violations.map(\.invariant) }

    static func address(_ client: Int) -> SocketAddress {
        SocketAddress(ipv4: 0x0A01_0001 + UInt32(client), port: 20_000 + UInt16(client))
    }

    // MARK: - Trackers

    mutating func pass(_ duration: Duration = .milliseconds(10)) { now = now + duration }

    /// A step, after which a tracker is as `change` makes it, and wants what `effects` holds.
    mutating func step(
        _ node: Int, _ event: Event = .deadlineReached, applied: [Entry] = [],
        doing effects: Effects = Effects(),
        _ change: (inout NodeView) -> Void = { _ in }
    ) {
        pass(.milliseconds(1))
        change(&views[node])
        checks.watch(
            Step(node: node, time: now, view: views[node], applied: applied, table: table), event, effects)
    }

    mutating func promise(_ node: Int, _ epoch: Epoch, hasFullState: Bool = true) {
        let promise = Promise(
            epoch: epoch, incarnation: 1, secret: ClusterSecret(1, 2, 3, 4), shardCount: 1, hasFullState: hasFullState)
        checks.wrote(node: node, change: .promise(promise), at: now)
    }

    mutating func send(_ node: Int, _ body: ClusterMessage.Body, epoch: Epoch = ChecksBench.epoch) {
        var effects = Effects()
        effects.messages = [
            ClusterMessage(sender: views[node].life, destination: .all, epoch: epoch, body: body)
        ]
        step(node, doing: effects)
    }

    /// Voters tell the candidate of an epoch that they follow it.
    mutating func answer(_ nodes: [Int], _ epoch: Epoch) {
        for node in nodes {
            send(node, .answer(VoterAnswer(position: views[node].position, pending: nil)), epoch: epoch)
        }
    }

    /// Voters say, and the master hears, that it is one still.
    mutating func confirm(_ nodes: [Int] = [1], round: UInt64 = 1, isHeard: Bool = true) {
        for node in nodes {
            send(node, .confirmed(round: round))
            let message = ClusterMessage(
                sender: views[node].life, destination: .one(views[0].life), epoch: ChecksBench.epoch,
                body: .confirmed(round: round))
            if isHeard { step(0, .messageReceived(message)) }
        }
    }

    mutating func observe(_ node: Int, _ observation: Observation) {
        var effects = Effects()
        effects.observations = [observation]
        step(node, doing: effects)
    }

    /// Everybody has heard everybody.
    mutating func keepInTouch() {
        for node in views.indices {
            for other in views.indices where other != node { hear(node, from: other) }
        }
    }

    /// A tracker has heard another one.
    mutating func hear(_ node: Int, from other: Int) {
        let message = ClusterMessage(
            sender: views[other].life, destination: .all, epoch: ChecksBench.epoch, body: .leave)
        step(node, .messageReceived(message))
    }

    // MARK: - Entries

    /// The next entry of a tracker's log.
    func entry(
        _ updates: [Update] = [], waiting: [(life: Life, number: UInt64)] = [], epoch: Epoch = ChecksBench.epoch,
        attempt: UInt32 = 0, after position: Position? = nil, second: Int64? = nil
    ) -> Entry {
        let position = position ?? views[0].position
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        for update in updates { update.encode(into: &bytes) }
        let offset = bytes.count
        var tickets = Tickets()
        for (ordinal, waiting) in waiting.enumerated() {
            _ = tickets.append(ordinal: UInt32(ordinal), life: waiting.life, number: waiting.number)
        }
        tickets.encode(into: &bytes)
        let time = WallTime(milliseconds: 1_000_000 + 1000 * (second ?? Int64(position.index)))
        let header = EntryHeader(
            index: position.index + 1, epoch: epoch, attempt: attempt, time: time,
            updateCount: UInt32(updates.count), ticketsOffset: UInt32(offset), previous: position.chain)
        let chain = header.seal(&bytes)
        return Entry(sealed: bytes, header, chain: chain)
    }

    mutating func store(_ nodes: [Int], _ entry: Entry) {
        for node in nodes { checks.wrote(node: node, change: .append(entry), at: now) }
    }

    /// A tracker applies an entry, and replies.
    mutating func apply(_ node: Int, _ entry: Entry, digest: UInt64? = nil, _ effects: Effects = Effects()) {
        step(node, applied: [entry], doing: effects) { view in
            view.position = entry.position
            view.digest = digest ?? entry.chain
            view.time = entry.header.time
        }
    }

    /// An entry is stored by a majority and applied by the master, then by all others.
    mutating func commit(_ entry: Entry, _ effects: Effects = Effects(), storing nodes: [Int] = [0, 1]) {
        store(nodes, entry)
        apply(0, entry, effects)
        for node in views.indices.dropFirst() { apply(node, entry) }
        decided.append(entry)
    }

    // MARK: - Clients

    func announce(
        _ client: Int, _ event: AnnounceEvent = .started, left: UInt64 = 5, transaction: UInt32 = 1
    ) -> AnnounceRequest {
        AnnounceRequest(
            connectionID: ConnectionID(900 + UInt64(client)), transactionID: TransactionID(transaction),
            infoHash: ChecksBench.infoHash, peerID: PeerID(Bytes20(repeatElement(UInt8(client), count: 20))!),
            left: left, event: event, port: 30_000 + UInt16(client))
    }

    func update(_ request: AnnounceRequest, of client: Int) -> Update {
        .announceIPv4(
            AnnounceUpdate(
                infoHash: request.infoHash, peerID: request.peerID, downloaded: request.downloaded,
                left: request.left, event: request.event,
                endpoint: CompactIPv4(
                    SocketAddress(ipv4: ChecksBench.address(client).ipv4, port: request.port))!))
    }

    static func bytes(_ request: AnnounceRequest) -> [UInt8] {
        var bytes: [UInt8] = []
        request.encode(into: &bytes)
        return bytes
    }

    /// A client's datagram reaches a tracker.
    mutating func hear(_ node: Int, _ client: Int, _ bytes: [UInt8], isSent: Bool = true) {
        if isSent { checks.clientSent(client: client, bytes: bytes, node: node, at: now) }
        var batch = DatagramBatch()
        batch.append(bytes, remote: ChecksBench.address(client))
        checks.willHear(batch, node: node, at: now)
        step(node, .datagramsReceived(batch))
    }

    /// A client gets its connection id from a tracker, which is as `change` makes it by then.
    mutating func connect(
        _ client: Int, to node: Int = 0, _ change: (inout NodeView) -> Void = { _ in }
    ) {
        transactions += 1
        var bytes: [UInt8] = []
        ConnectRequest(transactionID: TransactionID(transactions)).encode(into: &bytes)
        hear(node, client, bytes)
        var reply: [UInt8] = []
        reply.append(bigEndian: UInt32(0))
        reply.append(bigEndian: transactions)
        reply.append(bigEndian: 900 + UInt64(client))
        step(node, doing: ChecksBench.effects(reply, to: client), change)
    }

    /// A client announces to a tracker.
    ///
    /// - Returns: the entry that holds the announce, neither stored nor decided.
    mutating func ask(_ client: Int, _ request: AnnounceRequest, of node: Int = 0) -> Entry {
        connect(client, to: node)
        hear(node, client, ChecksBench.bytes(request))
        tickets += 1
        return entry([update(request, of: client)], waiting: [(views[node].life, tickets)])
    }

    static func effects(_ reply: [UInt8], to client: Int) -> Effects {
        var effects = Effects()
        effects.replies.append(reply, remote: address(client))
        return effects
    }

    static func reply(
        _ transaction: UInt32 = 1, interval: UInt32 = 1800, leechers: UInt32, seeders: UInt32, peers: [Int] = []
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: UInt32(1))
        bytes.append(bigEndian: transaction)
        bytes.append(bigEndian: interval)
        bytes.append(bigEndian: leechers)
        bytes.append(bigEndian: seeders)
        for peer in peers {
            bytes.append(bigEndian: address(peer).ipv4)
            bytes.append(bigEndian: 30_000 + UInt16(peer))
        }
        return bytes
    }

    static func error(_ transaction: UInt32, _ refusal: Refusal) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: UInt32(3))
        bytes.append(bigEndian: transaction)
        bytes.append(contentsOf: refusal.text.description.utf8)
        return bytes
    }

    // MARK: - Scrapes

    static func scrape(
        _ client: Int, transaction: UInt32, of infoHash: InfoHash = ChecksBench.infoHash
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        ScrapeRequest(
            connectionID: ConnectionID(900 + UInt64(client)), transactionID: TransactionID(transaction),
            infoHashes: [infoHash]
        ).encode(into: &bytes)
        return bytes
    }

    static func scraped(_ transaction: UInt32, seeders: UInt32, completed: UInt32, leechers: UInt32) -> [UInt8] {
        var bytes: [UInt8] = []
        for word in [2, transaction, seeders, completed, leechers] { bytes.append(bigEndian: word) }
        return bytes
    }
}

// What clients have asked for.

import Primitives
import TrackerLogic
import Wire

/// What clients have asked for: each update in the log was asked for, no more often than it came, and what a tracker
/// has heard it keeps until it is answered.
struct Requests: Sendable {
    /// Requests may be dropped when they are 15 s old (BEP 15); by a fast clock, earlier.
    private static let keptFor = Duration.seconds(12)

    var books: [RequestLog]
    var ledger: PeerLedger
    /// The client that sends from, and that listens on, a port; -1 for none.
    private var clientsByPort: [Int16]
    private var peersByPort: [Int16]
    /// Since when requests wait at each tracker; nil while none does.
    private var waitingSince: [Instant?]

    init(clientAddresses: [SocketAddress], nodeCount: Int) {
        books = clientAddresses.map(RequestLog.init(address:))
        ledger = PeerLedger(clientCount: clientAddresses.count)
        clientsByPort = Array(repeating: -1, count: 1 << 16)
        peersByPort = clientsByPort
        waitingSince = Array(repeating: nil, count: nodeCount)
        for (client, address) in clientAddresses.enumerated() {
            clientsByPort[Int(address.port)] = Int16(clamping: client)
        }
    }

    func client(at address: SocketAddress) -> Int? {
        let client = Int(clientsByPort[Int(address.port)])
        if client >= 0, books[client].address == address { return client }
        return books.firstIndex { $0.address == address }
    }

    /// The client that listens at an address, as its announces say.
    func client(listeningAt address: SocketAddress) -> Int? {
        func listens(_ client: Int) -> Bool {
            books[client].address.high == address.high && books[client].address.low == address.low
                && books[client].asks.contains { $0.announce?.port == address.port }
        }
        let client = Int(peersByPort[Int(address.port)])
        if client >= 0, listens(client) { return client }
        return books.indices.first(where: listens)
    }

    /// A client has sent a datagram to a node; nil for the multicast group.
    mutating func sent(client: Int, bytes: [UInt8], node: Int?, at time: Instant, _ scene: Scene) {
        let (nodeCount, decided) = (scene.nodes.count, scene.log.lastIndex)
        books[client].send(Ask(bytes, nodeCount: nodeCount, decidedBefore: decided, at: time), bytes)
        guard case .announce(let request)? = try? TrackerRequest(bytes.span.bytes) else { return }
        peersByPort[Int(request.port)] = Int16(clamping: client)
        ledger.sent(request, by: client, listening(request, client))
    }

    private func listening(_ request: AnnounceRequest, _ client: Int) -> SocketAddress {
        var address = books[client].address
        address.port = request.port
        return address
    }

    /// Datagrams are about to be handed to a node; `wall` is its clock, or nil where nobody has looked at it.
    mutating func willHear(_ batch: DatagramBatch, node: Int, wall: WallTime? = nil, at time: Instant, _ scene: Scene) {
        let span = batch.bytes.span.bytes
        for datagram in batch.datagrams {
            guard let client = client(at: datagram.remote) else { continue }
            let start = Int(datagram.offset)
            let bytes = span.extracting(start..<start + Int(datagram.byteCount))
            let isNew = books[client].hear(
                bytes, on: datagram.local, node: node, nodeCount: scene.nodes.count, decidedBefore: scene.log.lastIndex,
                wall: scene.areAgesKnown ? wall : nil, at: time)
            guard case .announce(let request)? = try? TrackerRequest(bytes) else { continue }
            let address = listening(request, client)
            // A bit on the way has made another request of it.
            if isNew { ledger.spoiled(request, by: client, address, at: time) }
            if request.event == .stopped { ledger.heardStop(request.infoHash, by: client, address, at: time) }
        }
    }

    /// Updates are asked for, each as often as it came at most.
    ///
    /// - Returns: whose it is, and when it was sent; nil where there is no such client.
    mutating func checkAsked(
        _ announced: Announced, _ life: Life?, _ number: UInt64, _ step: borrowing Step, _ scene: inout Scene
    ) -> (client: Int, sentAt: Instant)? {
        guard !AddressPlan.isVisitor(announced.address) else { return nil }
        var hearer: Int?
        if let life, life != Tickets.group {
            hearer = scene.node(of: life)
            if let hearer, scene.nodes[hearer].view?.life == life, !scene.nodes[hearer].decide(number: number) {
                scene.violate(
                    .updateIsAsked, at: step.time,
                    "request \(number) of \(scene.name(hearer)) is in the log for the second time")
            }
        }
        guard let client = client(listeningAt: announced.address) else {
            scene.violate(
                .updateIsAsked, at: step.time, "the log has an announce of \(announced.address), who never asked")
            return nil
        }
        if let place = openAsk(announced, client, hearer, scene) {
            books[client].decide(place)
            return (client, books[client].asks[place].sentAt)
        }
        // Where people share an address, a bit on the way may have made one's port of another's.
        for other in books.indices where other != client && books[other].address.low == announced.address.low {
            guard let place = openAsk(announced, other, hearer, scene) else { continue }
            books[other].decide(place)
            return (other, books[other].asks[place].sentAt)
        }
        do {
            let asks = books[client].asks.filter { ask in
                ask.announce.map { announced.isAsked(by: $0, from: books[client].address) } ?? false
            }
            scene.violate(
                .updateIsAsked, at: step.time,
                "the log has an announce of client \(client) more often than it was heard: "
                    + "\(asks.map { $0.decidedCount }.inBrackets) before, copies heard by each tracker "
                    + "\(asks.map { $0.heard.inBrackets }.inBrackets)")
            return nil
        }
    }

    /// An announce that is in the log was let in: by the passkey of the client, whichever copy was heard.
    func checkAdmitted(
        _ announced: Announced, _ client: Int, entry: UInt64, _ step: borrowing Step, _ scene: inout Scene
    ) {
        let book = books[client]
        let isAdmitted = book.asks.contains { ask in
            guard let request = ask.announce, announced.isAsked(by: request, from: book.address) else { return false }
            return scene.isAdmitted(
                announced.infoHash, passkey: AskedPasskey.read(AnnounceOptions.urlData(ask.bytes.span.bytes)),
                entry: entry,
                since: ask.decidedBefore)
        }
        if isAdmitted { return }
        scene.violate(
            .admissionIsJustified, at: step.time,
            "entry \(entry) has an announce of client \(client), whom no rules let in since it was sent")
    }

    /// A request of a client that asks for an update, and that is not in the log as often as it was heard.
    ///
    /// `hearer` is the tracker whose request it is; nil where it may be anybody's.
    private func openAsk(_ announced: Announced, _ client: Int, _ hearer: Int?, _ scene: Scene) -> Int? {
        let (address, isGroup) = (books[client].address, scene.isGroup)
        return books[client].asks.firstIndex { ask in
            guard let request = ask.announce, announced.isAsked(by: request, from: address) else { return false }
            let copies = hearer.map { ask.heard[$0] } ?? (isGroup ? ask.groupCopies : ask.heard.reduce(0, +))
            return ask.decidedCount < copies
        }
    }

    /// A tracker keeps a request until it is answered, or its client has asked again.
    mutating func checkKept(_ step: borrowing Step, _ before: NodeView, _ effects: Effects, _ scene: inout Scene) {
        let since = waitingSince[step.node]
        waitingSince[step.node] =
            step.view.waitingRequests == 0 || before.life.incarnation != step.view.life.incarnation
            ? nil : since ?? step.time
        // In a group, what another has answered is no longer waited for.
        guard !scene.isGroup, let since, step.time - since < Requests.keptFor else { return }
        // Whose address was told so many errors already is told nothing.
        let replies = effects.replies.datagrams.count + effects.answers.count + Int(step.withheld)
        guard before.waitingRequests - step.view.waitingRequests > replies else { return }
        let isExcused = effects.observations.contains { observation in
            switch observation {
            // Whoever fetches the state will not see what was decided of its requests.
            case .transferBegan, .storageFailed, .voteFailed: true
            default: false
            }
        }
        // Who leaves has waited for as long as it could.
        if isExcused || Checks.leaves(effects, isAlone: scene.promises.diskDecides) { return }
        scene.violate(
            .requestsAreKept, at: step.time,
            "\(before.waitingRequests) requests waited at \(scene.name(step.node)), \(step.view.waitingRequests) are "
                + "left, "
                + "and \(replies) were answered")
    }
}

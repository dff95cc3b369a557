// A swarm of peers in a world of one true time.

import PeerLogic
import Primitives
import Wire

/// A swarm of peers, their lines, disks and trackers, in a world of one true time: alone with simple trackers, or
/// beside the trackers of a simulated cluster (`World+Transfers`), which then has the time.
///
/// Every transition is: take the next event off the queue, hand it to the session that it concerns, let the checkers
/// see what came of it (`TransferChecks`), and carry that out. What sessions say travels as values; of payloads only
/// whether they are right is known. Nothing in here knows chance but by the seed.
///
///     peers come, faults ──────── heals ─────────── all leechers are done, or the time for that is over
///     0 … coreLength              │ all repaired    │ the end
struct TransferWorld: Sendable {
    /// Within which every leecher is to finish once all is well, beside the time that the bytes take: a peer may be in
    /// a back-off of some minutes, and a broken connection is found out after four.
    static let finishBound = Duration.seconds(1500)
    static let lookInterval = Duration.seconds(5)
    /// Events at one time, at most: more is somebody who never sleeps.
    static let maxEventsAtOnce = 100_000

    let seed: UInt64
    let options: TransferOptions
    let layout: PieceLayout
    let infoHash: InfoHash
    /// What stands for the info dictionary: so many bytes that it takes three messages.
    let metadata: [UInt8]
    var now = Instant(nanoseconds: 0)
    var queue = EventQueue<Happening>()
    var peers: [SimulatedPeer] = []
    var table = LinkTable()
    var simpleTrackers: [SimpleTracker] = []
    var simpleSwarm: SimpleSwarm
    /// Whether trackers are those of a cluster, which are asked over UDP, and how many there are.
    let clusterCount: Int
    /// The place of the first peer among all who have addresses (`AddressPlan`).
    let firstPlace: Int
    /// Datagrams to trackers of the cluster.
    var outbox: [(peer: Int, tracker: Int, bytes: [UInt8])] = []
    var checks: TransferChecks
    var hash = TraceHash()
    var lines: [TraceLine] = []
    let isRecording: Bool
    var tally = TransferTally()
    var webSeeds: RandomStream
    var lastFault = 0
    /// Datagrams to simple trackers, and addresses that were told of at which nobody is.
    var lastDatagram = 0
    var lastStale = 0
    var doneSince: Instant?
    var isHealed = false
    var isOver = false
    var eventCount = 0
    /// Filled by the step under way, empty between steps.
    var actions: [TorrentSession.Action] = []

    /// `clusterCount` counts the trackers of the cluster beside which the swarm is; 0 for simple trackers.
    init(seed: UInt64, options: TransferOptions, clusterCount: Int = 0, firstPlace: Int = 0, isRecording: Bool) {
        self.firstPlace = firstPlace
        self.seed = seed
        self.options = options
        self.clusterCount = clusterCount
        self.isRecording = isRecording
        layout = options.layout
        var random = RandomStream(seed, .transferOptions, 1)
        infoHash = InfoHash(TransferWorld.bytes20(&random))
        var metadata: [UInt8] = []
        while metadata.count < options.metadataByteCount { metadata.append(bigEndian: random.next()) }
        metadata.removeLast(metadata.count - options.metadataByteCount)
        self.metadata = metadata
        checks = TransferChecks(
            options, metadata: metadata, trackerTiers: clusterCount == 0 ? options.trackerTiers : [],
            firstPlace: firstPlace)
        webSeeds = RandomStream(seed, .webSeed)
        simpleSwarm = SimpleSwarm(random: RandomStream(seed, .simpleTracker))
        if clusterCount == 0 {
            simpleTrackers = Array(repeating: SimpleTracker(), count: options.trackerTiers.reduce(0, +))
        }
        for place in 0..<options.peerCount {
            peers.append(TransferWorld.peer(place, firstPlace, options, layout, seed: seed))
        }
        hash.absorb(seed)
        plant()
    }

    private static func peer(
        _ place: Int, _ firstPlace: Int, _ options: TransferOptions, _ layout: PieceLayout, seed: UInt64
    ) -> SimulatedPeer {
        var random = RandomStream(seed, .peerTraits, place)
        var traits = PeerTraits(place, options, &random)
        let address = SimulatedPeer.address(firstPlace + place)
        traits.settings.listenPort = address.port
        var whims = RandomStream(seed, .peerWhims, place)
        traits.drawWhims(place, options, &whims)
        let drift = Int64(random.below(UInt64(2 * options.maxDrift + 1))) - options.maxDrift
        let clock = SimulatedClock(origin: Int64(random.below(UInt64(1) << 50)), drift: drift, wallError: 0)
        var peer = SimulatedPeer(
            place, traits, address: address, layout: layout, clock: clock, random: random)
        let isPartial = random.below(100) < options.partialPercent
        if !traits.isSeeder, traits.liar == nil, isPartial, !traits.isMagnet || options.hasPartialMagnets {
            for piece in 0..<layout.pieceCount where random.oneIn(2) { peer.disk.insert(piece) }
        }
        return peer
    }

    /// Puts the first events into the queue.
    private mutating func plant() {
        let joiners = options.script.compactMap { $0.joiner }
        for place in peers.indices where !joiners.contains(place) {
            let delay = place == 0 ? .zero : peers[place].random.between(.zero, options.arrivalTime)
            queue.put(.comes(place), at: now + delay)
        }
        for number in options.script.indices { queue.put(.turn(number), at: now + options.script[number].at) }
        planFault()
        queue.put(.heals, at: now + options.coreLength)
        queue.put(.looks, at: now + TransferWorld.lookInterval)
        if options.isPrivate { queue.put(.strangerSpeaks(0), at: now + .seconds(3)) }
    }

    /// When the next thing happens; nil when the world is over.
    var nextTime: Instant? { isOver || !checks.violations.isEmpty ? nil : queue.nextTime }

    /// The peer at a host; nil where none is.
    func number(at address: SocketAddress) -> Int? {
        SimulatedPeer.place(of: address).flatMap { peers.indices.contains($0 - firstPlace) ? $0 - firstPlace : nil }
    }

    private static func bytes20(_ random: inout RandomStream) -> Bytes20 {
        var bytes: [UInt8] = []
        for _ in 0..<3 { bytes.append(bigEndian: random.next()) }
        return Bytes20(bytes.span.bytes, at: 0)
    }

    // MARK: - The loop

    /// Runs until the end, until something is wrong, or until a time.
    mutating func run(until moment: Instant? = nil) {
        var eventsNow = 0
        while !isOver, checks.violations.isEmpty, let time = queue.nextTime {
            if let moment, time > moment { return }
            guard let next = queue.take() else { return }
            eventsNow = next.time == now ? eventsNow + 1 : 0
            now = next.time
            eventCount += 1
            if eventsNow > TransferWorld.maxEventsAtOnce {
                checks.scene.violate(
                    .timeGoesOn, at: now, "more than \(TransferWorld.maxEventsAtOnce) events at one time")
            }
            handle(next.event)
        }
    }

    private mutating func handle(_ happening: Happening) {
        switch happening {
        case .connected(let link, let epoch): if table.epochs[link] == epoch { connected(link) }
        case .refused(let link, let epoch): if table.epochs[link] == epoch { told(2 * link, .unreachable) }
        case .arrives(let end, let epoch, let count): if table.epoch(of: end) == epoch { arrive(end, count) }
        case .blockBegins(let end, let epoch): if table.epoch(of: end) == epoch { blockBegins(end) }
        case .closes(let end, let epoch):
            if table.epoch(of: end) == epoch, !table.isFrozen[end >> 1] { told(end ^ 1, .closed) }
        case .isStuck(let end, let epoch): if table.epoch(of: end) == epoch { told(end, .stuck) }
        case .blockDropped(let end, let epoch, let block):
            if table.epoch(of: end) == epoch { blockSent(end, block, isSent: false) }
        case .blockUnread(let end, let epoch, let block): blockUnread(end, epoch, block)
        case .uplinkIsFree(let peer, let life): if lives(peer, life) { uplinkIsFree(peer) }
        case .wakes(let peer, let life): if lives(peer, life) { wake(peer) }
        case .hashed(let peer, let life, let piece): if lives(peer, life) { hashed(peer, piece) }
        case .written(let peer, let life, let piece): if lives(peer, life) { written(peer, piece) }
        case .metadataChecked(let peer, let life, let isRight):
            if lives(peer, life) { metadataChecked(peer, isRight: isRight) }
        case .trackerAnswers(let peer, let life, let tracker, let question, let answer):
            if lives(peer, life), peers[peer].questions[tracker] == question { trackerAnswers(peer, tracker, answer) }
        case .datagramAtPeer(let peer, let life, let tracker, let bytes):
            guard lives(peer, life) else { return }
            readClock(peer)
            if clusterCount == 0 { checks.hearsDatagram(peer, tracker, bytes) }
            step(peer, .trackerDatagram(tracker: tracker, bytes, isIPv6: false))
        case .localNews(let peer): hearLocally(peer)
        case .wantsAll(let peer, let life): if lives(peer, life) { wantAll(peer) }
        case .webSeedAnswers(let peer, let life, let seed, let piece):
            if lives(peer, life) { webSeedAnswers(peer, seed, piece) }
        case .comes(let peer): come(peer)
        case .returns(let peer, let life): if peers[peer].life == life, !peers[peer].isUp { come(peer) }
        case .leaves(let peer, let life): if lives(peer, life) { leave(peer) }
        case .hasLeft(let peer, let life): if lives(peer, life) { hasLeft(peer) }
        case .goesOn(let peer, let life): if lives(peer, life) { goOn(peer) }
        case .isOnline(let peer): peers[peer].isOffline = false
        case .diskMends(let peer): mendDisk(peer)
        case .trackerMends(let tracker): simpleTrackers[tracker].state = .works
        case .liarActs(let peer, let life): if lives(peer, life) { liarActs(peer) }
        case .strangerSpeaks(let number): strangerSpeaks(number)
        case .fault: nextFault()
        case .turn(let number): take(options.script[number].event)
        case .heals: heal()
        case .looks: look()
        }
    }

    private func lives(_ peer: Int, _ life: Int) -> Bool { peers[peer].life == life && peers[peer].isUp }

    // MARK: - The end

    /// The time that all bytes take over the narrowest lines, several times.
    private var transferTime: Duration {
        var rate = Int.max
        for peer in peers where peer.isHonest {
            if peer.traits.upRate > 0 { rate = min(rate, peer.traits.upRate) }
            if peer.traits.downRate > 0 { rate = min(rate, peer.traits.downRate) }
            if let limit = peer.traits.settings.maxUploadRate { rate = min(rate, limit) }
            if let limit = peer.traits.settings.maxDownloadRate { rate = min(rate, limit) }
        }
        // An `Int` may have 32 bits.
        return .milliseconds(Int64(layout.totalLength) * 6_000 / Int64(max(1, rate)))
    }

    /// Peers that can be called, and stay.
    private var sources: [Int] {
        peers.indices.filter {
            peers[$0].isUp && peers[$0].isHonest && peers[$0].traits.isReachable && !peers[$0].isLeaving
        }
    }

    private mutating func look() {
        queue.put(.looks, at: now + TransferWorld.lookInterval)
        lookAtPeers()
        guard isHealed else { return }
        let unfinished = unfinishedPeers
        doneSince = unfinished.isEmpty ? doneSince ?? now : nil
        if let doneSince, now - doneSince >= options.rest { isOver = true }
        let deadline = Instant(nanoseconds: 0) + options.coreLength + TransferWorld.finishBound + transferTime
        guard now > deadline else { return }
        for peer in unfinished { checks.unfinished(peer, whyUnfinished(peer), at: now) }
    }

    /// Peers that lack what they can reach.
    var unfinishedPeers: [Int] {
        let sources = sources
        var reachable = Bitfield(count: layout.pieceCount)
        for source in sources { peers[source].disk.forEach { reachable.insert($0) } }
        return peers.indices.filter { peer in
            guard peers[peer].isHonest, peers[peer].isUp, !peers[peer].isLeaving else { return false }
            // Metadata travels by an extension (BEP 9): who meets nobody that has both never knows the pieces.
            guard
                peers[peer].hasMetadata
                    || sources.contains(where: {
                        peers[$0].hasMetadata && capabilities(peer, $0).contains(.extensions)
                    })
            else { return false }
            // What its owner has not found gone, nobody can ask for.
            let have = peers[peer].session?.have ?? peers[peer].disk
            return (0..<layout.pieceCount).contains { !have[$0] && reachable[$0] }
        }
    }

    func whyUnfinished(_ peer: Int) -> String {
        let disk = peers[peer].disk
        guard let session = peers[peer].session else { return "has no session" }
        let links = session.links(now: peers[peer].clock.reading(at: now).monotonic)
        let told = links.map { link in
            let other = number(at: link.address) ?? -1
            return "\(other)\(link.chokesUs ? " chokes" : "")\(link.interestsUs ? "" : " is of no interest")"
                + "\(link.isSnubbing ? " is silent" : "") has \(link.pieceCount), asked for \(link.pendingCount)"
        }
        return "has \(disk.setCount) of \(layout.pieceCount) pieces, \(session.bufferedByteCount) bytes in memory; "
            + (told.isEmpty ? "no connection" : "connections: \(told.joined(separator: "; "))")
    }
}

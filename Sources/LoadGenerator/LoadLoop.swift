// The load while it runs.

import Datagrams
import Primitives

/// The load while it runs: send what is due, take what has come, give up what is late, and again.
struct LoadLoop {
    /// The most requests to send between two looks at the clock and the socket.
    static let batchLimit = 64
    /// Connection ids are used for a minute (BEP 15); asked for anew well before.
    static let connectionLife = Duration.seconds(45)
    /// How long to wait for the first connection ids, and when to ask again.
    static let connectPatience = Duration.seconds(5)
    static let connectRetry = Duration.milliseconds(500)
    /// How often a fill asks for the same peer before it counts it as lost.
    static let attemptLimit: UInt8 = 10
    /// The kernel ends a wait up to 50 µs late (PR_SET_TIMERSLACK): what is due sooner is waited for awake.
    static let timerSlack = Duration.microseconds(100)

    struct Connection {
        var id: UInt64 = 0
        /// When the id was got; nil where there is none that is any good.
        var since: Instant?
        var isAsked = false
        /// The source's address as the tracker sees it.
        var address = SocketAddress.unspecified
    }

    let options: LoadOptions
    let population: LoadPopulation
    let requests: LoadRequests
    let judge: LoadJudge
    let socket: DatagramSocket
    let poller: Poller

    var incoming = DatagramBatch()
    var outgoing = DatagramBatch()
    var flights: LoadFlights
    var states: LoadPeerStates
    var random: RandomStream
    var tally = LoadTally()
    var connections: [Connection]
    var connected = 0
    /// The source whose connection id is looked at next.
    var renewalCursor = 0

    /// What of a fill is still to be done.
    var nextPeer = 0
    var again: [(peer: UInt32, attempts: UInt8)] = []

    var begin = Instant(nanoseconds: 0)
    var end = Instant(nanoseconds: 0)
    /// Open loop: how many requests were due so far, since `scheduleStart`.
    var departures: Int64 = 0
    var scheduleStart = Instant(nanoseconds: 0)
    var busy = Duration.zero
    var measured = Duration.zero

    init(_ options: LoadOptions, _ socket: DatagramSocket, _ poller: Poller) {
        self.options = options
        self.socket = socket
        self.poller = poller
        population = LoadPopulation(options)
        requests = LoadRequests(options)
        judge = LoadJudge(options)
        states = LoadPeerStates(options, population)
        random = RandomStream(seed: options.seed, stream: 0x6C6F_6164)
        connections = Array(repeating: Connection(), count: population.sources.count)
        let wanted: Int
        switch options.pace {
        case .closed(let inFlight): wanted = inFlight
        // All that can be under way before the first of them is given up.
        case .open(let rate): wanted = Int(Double(rate) * Double(options.patience.nanoseconds) / 1e9)
        }
        // Room for a renewal of connection ids beside the load.
        flights = LoadFlights(capacity: min(LoadFlights.limit, wanted + Self.batchLimit))
        again.reserveCapacity(LoadFlights.limit)
    }
}

// MARK: - Phases

extension LoadLoop {
    /// Gets a connection id for each source.
    mutating func connect() throws(LoadError) {
        let start = Clock.monotonic()
        var asked = start
        while connected < connections.count {
            let now = Clock.monotonic()
            guard now - start < Self.connectPatience else {
                throw tally.firstError.map { .refused(options.target, $0) } ?? .silent(options.target)
            }
            if now - asked >= Self.connectRetry {
                asked = now
                for source in connections.indices { connections[source].isAsked = false }
            }
            var source = 0
            while source < connections.count, outgoing.datagrams.count < Self.batchLimit, !flights.isFull {
                if connections[source].since == nil, !connections[source].isAsked { ask(source, now) }
                source += 1
            }
            if exchange() == 0 { _ = poller.wait(timeout: .milliseconds(5)) }
            giveUp(before: now - Self.connectRetry)
        }
    }

    /// Runs until the time is over or the fill is complete, and waits for the last answers.
    mutating func run(_ progress: (LoadGenerator.Progress) -> Void) {
        let start = Clock.monotonic()
        let isFill = options.work == .fill
        begin = isFill ? start : start + options.warmUp
        end = begin + options.duration
        scheduleStart = start
        var now = start
        var nextProgress = start
        var threadTime: Duration?
        while now < end, !(isFill && isFilled) {
            if threadTime == nil, now >= begin { threadTime = Clock.threadTime() }
            if now >= nextProgress {
                nextProgress = now + .milliseconds(200)
                progress(progressed(now - start, of: end - start))
            }
            depart(now)
            renew(now)
            let received = exchange()
            now = Clock.monotonic()
            giveUp(before: now - options.patience)
            if received == 0 { now = rest(now) }
        }
        busy = Clock.threadTime() - (threadTime ?? Clock.threadTime())
        measured = max(now, begin) - begin
        if case .open(let rate) = options.pace { tally.unsent = unsent(rate) }
        while flights.count > 0, now < end + options.patience + .milliseconds(100) {
            if exchange() == 0 { _ = poller.wait(timeout: .milliseconds(1)) }
            now = Clock.monotonic()
            giveUp(before: now - options.patience)
        }
        giveUp(before: now + .seconds(1), slots: LoadFlights.limit)
        // A fill that ran out of time.
        if isFill { tally.lost += UInt64(again.count + population.peers - nextPeer) }
        progress(progressed(now - start, of: now - start))
    }

    /// Every peer of the fill was answered or given up.
    private var isFilled: Bool { nextPeer == population.peers && again.isEmpty && flights.count == 0 }

    /// Requests of the measured time that were due and are not sent.
    private func unsent(_ rate: Int) -> UInt64 {
        let due = Int64(Double((end - scheduleStart).nanoseconds) * Double(rate) / 1e9)
        return UInt64(max(0, due - departures))
    }

    private func progressed(_ elapsed: Duration, of whole: Duration) -> LoadGenerator.Progress {
        let share =
            options.work == .fill
            ? Double(tally.answered) / Double(population.peers)
            : Double(elapsed.nanoseconds) / Double(max(1, whole.nanoseconds))
        return LoadGenerator.Progress(share: min(1, share), answered: tally.answeredInAll, elapsed: elapsed)
    }

    /// Waits for an answer, or until something is due.
    private func rest(_ now: Instant) -> Instant {
        var pause = Duration.milliseconds(1)
        if case .open(let rate) = options.pace {
            pause = min(pause, due(departures, rate) - now - Self.timerSlack)
            guard pause > .zero else { return now }
        }
        _ = poller.wait(timeout: pause)
        return Clock.monotonic()
    }
}

// MARK: - Sending

extension LoadLoop {
    /// When a request of an open loop is due.
    func due(_ number: Int64, _ rate: Int) -> Instant {
        let (seconds, part) = number.quotientAndRemainder(dividingBy: Int64(rate))
        return scheduleStart + .seconds(seconds) + Duration(nanoseconds: part * 1_000_000_000 / Int64(rate))
    }

    /// Prepares the requests that may leave now.
    private mutating func depart(_ now: Instant) {
        let isMeasured = now >= begin
        switch (options.work, options.pace) {
        case (.fill, .closed(let inFlight)):
            while flights.count < inFlight, outgoing.datagrams.count < Self.batchLimit {
                if nextPeer < population.peers {
                    announce(nextPeer, now, isMeasured: true, attempts: 0)
                    nextPeer += 1
                } else if let (peer, attempts) = again.popLast() {
                    announce(Int(peer), now, isMeasured: true, attempts: attempts)
                } else {
                    break
                }
            }
        case (_, .closed(let inFlight)):
            while flights.count < inFlight, outgoing.datagrams.count < Self.batchLimit {
                request(now, isMeasured: isMeasured)
            }
        case (_, .open(let rate)):
            while !flights.isFull, outgoing.datagrams.count < Self.batchLimit {
                let due = due(departures, rate)
                guard due <= now, due < end else { break }
                request(due, isMeasured: due >= begin)
                departures += 1
            }
        }
    }

    /// Lets a random peer announce, or scrape.
    private mutating func request(_ start: Instant, isMeasured: Bool) {
        let peer = random.below(population.peers)
        let isAnnounce = Double(random.next() &>> 11) < options.announceShare * 9_007_199_254_740_992
        if isAnnounce {
            announce(peer, start, isMeasured: isMeasured, attempts: 0)
        } else {
            scrape(peer, start, isMeasured: isMeasured)
        }
    }

    private mutating func announce(_ peer: Int, _ start: Instant, isMeasured: Bool, attempts: UInt8) {
        let source = population.source(ofPeer: peer)
        // A fill that asks again begins again.
        let (event, left) =
            attempts == 0
            ? states.next(peer, chance: random.next() &>> 32, population)
            : (2, population.beginsAsSeeder(peer) ? 0 : LoadPeerStates.left)
        let flight = LoadFlight(
            kind: .announce, isMeasured: isMeasured, attempts: attempts, number: UInt32(peer), start: start)
        let request = LoadRequests.Announce(
            connection: connections[source].id, transaction: flights.depart(flight),
            infoHash: population.infoHash(population.torrent(ofPeer: peer)), peerID: population.peerID(peer),
            left: left, event: event, port: population.port(ofPeer: peer))
        let requests = requests
        outgoing.append(
            to: options.target, from: population.sources[source], socket: 0, limit: LoadRequests.announceByteCount
        ) { requests.writeAnnounce(request, into: $0) }
        tally.count(sent: flight, byteCount: LoadRequests.announceByteCount)
    }

    private mutating func scrape(_ peer: Int, _ start: Instant, isMeasured: Bool) {
        let source = population.source(ofPeer: peer)
        let flight = LoadFlight(
            kind: .scrape, isMeasured: isMeasured, attempts: 0, number: UInt32(peer), start: start)
        let transaction = flights.depart(flight)
        let connection = connections[source].id
        let (requests, population) = (requests, population)
        outgoing.append(
            to: options.target, from: population.sources[source], socket: 0, limit: requests.scrapeByteCount
        ) {
            requests.writeScrape(
                connection: connection, transaction: transaction, first: population.torrent(ofPeer: peer), population,
                into: $0)
        }
        tally.count(sent: flight, byteCount: requests.scrapeByteCount)
    }

    /// Asks for a connection id.
    private mutating func ask(_ source: Int, _ now: Instant) {
        connections[source].isAsked = true
        let transaction = flights.depart(
            LoadFlight(kind: .connect, isMeasured: false, attempts: 0, number: UInt32(source), start: now))
        let requests = requests
        outgoing.append(
            to: options.target, from: population.sources[source], socket: 0, limit: LoadRequests.connectByteCount
        ) { requests.writeConnect(transaction, into: $0) }
    }

    /// Looks at one source, so that all have their turn in time and none costs much.
    private mutating func renew(_ now: Instant) {
        renewalCursor = renewalCursor + 1 == connections.count ? 0 : renewalCursor + 1
        let connection = connections[renewalCursor]
        guard !connection.isAsked, !flights.isFull else { return }
        if let since = connection.since, now - since < Self.connectionLife { return }
        ask(renewalCursor, now)
    }
}

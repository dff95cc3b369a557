// All states of single nodes that were seen, and what each move makes of each.

import Primitives
import TrackerLogic
import Wire

/// All states of single nodes that were seen, and what each move makes of each: computed once, used by every schedule
/// that comes by.
///
/// There are far fewer of them than states of the whole cluster, so the step function is the least of the explorer's
/// costs.
struct LocalSpace {
    let options: ExplorerOptions
    private(set) var states: [LocalState] = []
    private(set) var views: [LocalView] = []
    private(set) var envelopes: [Envelope] = []
    var sets = EnvelopeSets()
    private(set) var steps: [LocalStep] = []
    private(set) var facts: [LocalFacts] = [LocalFacts()]
    private(set) var faults: [ExplorerFault?] = [nil]
    /// Who misses the master together with a node.
    private var suspecters: [[ClusterMessage]] = []
    private var known = PrintTable()
    private var envelopeNumbers = PrintTable()
    private(set) var outgoing: [UInt32] = []
    private var stepCache = PairTable()
    private var deadCache = PairTable()
    private var prunedCache = PairTable()
    private var effectiveCache = PairTable()
    private var utteranceCache = PairTable()
    private var suspicionCache = PairTable()

    init(_ options: ExplorerOptions) { self.options = options }

    /// The number of a node's state.
    mutating func intern(_ state: LocalState) -> UInt32 {
        let number = UInt32(states.count)
        if let old = known.insert(state.fingerprint, number: number) { return old }
        states.append(state)
        views.append(LocalView(state))
        return number
    }

    // MARK: - Messages

    mutating func envelope(_ message: ClusterMessage, from sender: Int, to receiver: Int) -> UInt32 {
        var bytes: [UInt8] = []
        message.encode(into: &bytes)
        var print = Fingerprint()
        print.absorb(receiver)
        print.absorb(bytes)
        let number = UInt32(envelopes.count)
        if let old = envelopeNumbers.insert(print, number: number) { return old }
        envelopes.append(Envelope(message: message, sender: sender, receiver: receiver))
        return number
    }

    /// A message of a node's present life that nobody but the explorer has sent: see `Explorer`.
    func syntheticMessage(_ body: ClusterMessage.Body, of local: UInt32) -> ClusterMessage {
        ClusterMessage(sender: views[Int(local)].life, destination: .all, epoch: .zero, body: body)
    }

    /// The number of a set of messages that say that the master is missed.
    mutating func suspicion(by node: Int, _ world: ExplorerWorld) -> UInt32 {
        var known: UInt32?
        for other in 0..<options.nodes where other != node { known = suspicion(known, world.words[other]) }
        return known ?? suspicion(nil, nil)
    }

    /// Adds one that misses the master, if any, to a set of them.
    private mutating func suspicion(_ set: UInt32?, _ local: UInt32?) -> UInt32 {
        let key = PairTable.key(set ?? .max, local ?? .max - 1)
        if let known = suspicionCache.find(key) { return known }
        var messages = set.map { suspecters[Int($0)] } ?? []
        if let local { messages.append(syntheticMessage(.suspect(at: .start), of: local)) }
        let place = suspecters.firstIndex(of: messages) ?? suspecters.count
        if place == suspecters.count { suspecters.append(messages) }
        suspicionCache.note(key, UInt32(place))
        return UInt32(place)
    }

    /// Messages that are not carried: whether somebody is alive or missed is the explorer's to say.
    static func isCarried(_ message: ClusterMessage) -> Bool {
        switch message.body {
        case .keepalive, .suspect: false
        case .election, .answer, .coordinator, .prepare, .ok, .error, .commit, .confirm, .confirmed, .fetch, .entries,
            .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward, .answered, .handover, .leave,
            .report, .order,
            .ordered, .stop:
            true
        }
    }

    /// Whether a message can do nothing at its receiver, now or ever.
    ///
    /// It is for a life that is over; or it does nothing now, and never will, for promises and positions only go up in
    /// a life.
    mutating func isDead(_ envelope: UInt32, at local: UInt32) -> Bool {
        let key = PairTable.key(envelope, local)
        if let known = deadCache.find(key) { return known == 1 }
        let isDead = findDead(envelope, at: local)
        deadCache.note(key, isDead ? 1 : 0)
        return isDead
    }

    private mutating func findDead(_ envelope: UInt32, at local: UInt32) -> Bool {
        let message = envelopes[Int(envelope)].message
        if case .one(let life) = message.destination, life != views[Int(local)].life { return true }
        guard isOver(message, at: views[Int(local)]) else { return false }
        return step(Move(.deliver, envelopes[Int(envelope)].receiver, envelope), of: local).isNothing(to: local)
    }

    /// What is left of a set of messages when those are taken away that can do nothing any more.
    mutating func pruned(_ set: UInt32, at local: UInt32) -> UInt32 {
        if set == 0 { return 0 }
        let key = PairTable.key(set, local)
        if let known = prunedCache.find(key) { return known }
        let number = sets.intern(sets[set].filter { !isDead($0, at: local) })
        prunedCache.note(key, number)
        return number
    }

    /// Those of a set of messages that change something at a node: what does nothing now may as well come later.
    mutating func effective(_ set: UInt32, at local: UInt32) -> UInt32 {
        if set == 0 { return 0 }
        let key = PairTable.key(set, local)
        if let known = effectiveCache.find(key) { return known }
        let envelopes = Array(sets[set]).filter { envelope in
            let step = step(Move(.deliver, self.envelopes[Int(envelope)].receiver, envelope), of: local)
            if step.isNothing(to: local) { return false }
            return !(options.deliversUtterancesAtOnce && step.isUtterance(to: local))
        }
        let number = sets.intern(envelopes)
        effectiveCache.note(key, number)
        return number
    }

    /// The messages that go out when those of a set come that make a node speak, and nothing else.
    mutating func utterances(_ set: UInt32, at local: UInt32) -> UInt32 {
        if set == 0 { return 0 }
        let key = PairTable.key(set, local)
        if let known = utteranceCache.find(key) { return known }
        var envelopes: [UInt32] = []
        for envelope in Array(sets[set]) {
            let step = step(Move(.deliver, self.envelopes[Int(envelope)].receiver, envelope), of: local)
            if step.isUtterance(to: local) { envelopes += self.envelopes(of: step) }
        }
        envelopes.sort()
        var distinct: [UInt32] = []
        for envelope in envelopes where distinct.last != envelope { distinct.append(envelope) }
        let number = sets.intern(distinct)
        utteranceCache.note(key, number)
        return number
    }

    /// Of what is under way to a node: the messages that are worth delivering now.
    mutating func due(_ set: UInt32, at local: UInt32) -> UInt32 {
        guard options.network == .inOrder else { return effective(set, at: local) }
        // What does nothing now may stand before something that does.
        return sets.next(of: set) { [envelopes] in envelopes[Int($0)].sender }
    }

    /// Puts a message to what is under way.
    mutating func posting(_ envelope: UInt32, to set: UInt32) -> UInt32 {
        guard options.network == .inOrder else { return sets.inserting(envelope, into: set) }
        return sets.appending(envelope, to: set) { [envelopes] in envelopes[Int($0)].sender }
    }

    private func isOver(_ message: ClusterMessage, at view: LocalView) -> Bool {
        let isBelow = message.epoch < view.promised
        switch message.body {
        case .ok(let ballot), .error(let ballot, .cannotStore): return isBelow || ballot.index <= view.index
        case .error(_, .staleEpoch), .answer: return message.epoch <= view.promised
        case .election, .prepare, .confirm, .confirmed, .forward, .answered, .coordinator, .commit, .welcome:
            return isBelow
        case .entries, .welcomeDone, .handover, .hello, .keepalive, .suspect, .fetch, .refused, .fetchChunk, .chunk,
            .leave, .report, .order, .ordered, .stop:
            return false
        }
    }

    // MARK: - Steps

    /// What a move makes of a node.
    mutating func step(_ move: Move, of local: UInt32) -> LocalStep {
        let key = LocalSpace.key(move, local)
        if let known = stepCache.find(key) { return steps[Int(known)] }
        let step = makeStep(move, of: local)
        stepCache.note(key, UInt32(steps.count))
        steps.append(step)
        return step
    }

    /// Which node moves is told by its state.
    @inline(__always)
    private static func key(_ move: Move, _ local: UInt32) -> UInt64 {
        precondition(local < 1 << 24 && move.argument < 1 << 28, "more states or letters than a key has room for")
        return UInt64(local) << 40 | UInt64(move.argument) << 12 | UInt64(move.kind.rawValue) << 8 | UInt64(move.cut)
    }

    /// Messages that go out in a step.
    func envelopes(of step: LocalStep) -> ArraySlice<UInt32> {
        outgoing[Int(step.envelopesStart)..<Int(step.envelopesStart + step.envelopeCount)]
    }

    private mutating func makeStep(_ move: Move, of local: UInt32) -> LocalStep {
        let run = run(move, of: local)
        var step = LocalStep(next: intern(run.state))
        step.envelopesStart = UInt32(outgoing.count)
        for message in run.messages where LocalSpace.isCarried(message) {
            for receiver in 0..<options.nodes where receiver != move.node {
                if case .one(let life) = message.destination, life.id != UInt32(receiver + 1) { continue }
                outgoing.append(envelope(message, from: move.node, to: receiver))
            }
        }
        step.envelopeCount = UInt32(outgoing.count) - step.envelopesStart
        step.loses = !views[Int(step.next)].holdsAll(of: views[Int(local)])
        step.stood = run.stood
        step.cuts = run.cuts
        step.facts = note(run.facts)
        step.factsBefore = note(run.factsBefore)
        if let fault = run.fault {
            step.fault = faults.count
            faults.append(fault)
        }
        return step
    }

    private mutating func note(_ new: LocalFacts) -> Int {
        if new.isEmpty { return 0 }
        facts.append(new)
        return facts.count - 1
    }

    func run(_ move: Move, of local: UInt32, isTracing: Bool = false) -> LocalRun {
        var run = LocalRun(states[Int(local)], isTracing: isTracing)
        switch move.kind {
        case .deliver: run.step(.messageReceived(envelopes[Int(move.argument)].message))
        case .write: run.completeWrite()
        case .failWrite: run.completeWrite(failure: .full)
        case .stand: run.stand(suspecters[Int(move.argument)])
        case .wait: run.wait()
        case .request: run.step(.requestReceived(request(Int(move.argument))))
        case .restart: run.restart(surviving: Int(move.argument), options)
        }
        if !options.isDiskSlow(move.node), run.fault == nil { run.completeAllWrites(cut: move.cut, options) }
        return run
    }

    // MARK: - Requests

    /// The announces come first, then the scrapes; all of one swarm.
    func request(_ number: Int) -> ClientRequest {
        let infoHash = InfoHash(LocalSpace.bytes(7))
        let source = SocketAddress(ipv4: 0x0A00_0000 + UInt32(number), port: 6881)
        guard number < options.requests else {
            return ClientRequest(id: UInt64(number), source: source, content: .scrape([infoHash]))
        }
        let peerID = PeerID(LocalSpace.bytes(UInt8(number + 1)))
        let announce = Announce(
            infoHash: infoHash, peerID: peerID, left: 1, event: .started, numWant: 0,
            port: UInt16(LocalSpace.firstPort + number))
        return ClientRequest(id: UInt64(number), source: source, content: .announce(announce))
    }

    /// The peers' ports say which request it was.
    private static let firstPort = 1000

    private static func bytes(_ byte: UInt8) -> Bytes20 {
        Bytes20([UInt8](repeating: byte, count: 20).span.bytes, at: 0)
    }

    /// The requests that an entry holds.
    static func requests(in entry: Entry) -> [Int] {
        var cursor = UpdateCursor(entry.header)
        var requests: [Int] = []
        while let update = try? cursor.next(entry.bytes) {
            guard case .announceIPv4(let announce) = update else { continue }
            requests.append(Int(announce.endpoint.socketAddress.port) - firstPort)
        }
        return requests
    }
}

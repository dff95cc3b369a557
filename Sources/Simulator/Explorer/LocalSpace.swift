/// All states of single nodes that were seen, and what each move makes of each: computed once, used by every schedule
/// that comes by. There are far fewer of them than states of the whole cluster, so the step function is the least of
/// the explorer's costs.

import Primitives
import TrackerLogic
import Wire

/// A message on its way to one node.
struct ExplorerLetter: Sendable {
    var message: ClusterMessage
    var sender: Int
    var receiver: Int
}

/// What a node does, or what happens to it.
struct Move: Sendable, Hashable {
    enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        /// A letter comes.
        case deliver
        /// The oldest write is durable.
        case write
        /// The oldest write has failed.
        case failWrite
        /// The node misses its master until it stands.
        case stand
        /// The node waits until it asks again.
        case wait
        /// A client's request comes.
        case request
        /// The node dies and comes back.
        case restart
    }

    var kind: Kind
    var node: Int
    /// Of a letter, a request, a set of suspecters, or how many writes survive.
    var argument: UInt32
    /// Where between its writes the node dies, and comes back, counted from 1; 0 where it does not.
    var cut: UInt8

    var packed: UInt64 {
        UInt64(cut) << 48 | UInt64(kind.rawValue) << 40 | UInt64(node) << 32 | UInt64(argument)
    }

    /// Whether the node dies.
    var isDeath: Bool { kind == .restart || cut > 0 }

    init(_ kind: Kind, _ node: Int, _ argument: UInt32 = 0, cut: UInt8 = 0) {
        self.kind = kind
        self.node = node
        self.argument = argument
        self.cut = cut
    }

    init(packed: UInt64) {
        kind = Kind(rawValue: UInt8(truncatingIfNeeded: packed >> 40)) ?? .deliver
        node = Int(packed >> 32 & 0xFF)
        argument = UInt32(truncatingIfNeeded: packed)
        cut = UInt8(truncatingIfNeeded: packed >> 48)
    }
}

/// What a move makes of a node.
struct LocalStep: Sendable {
    var next: UInt32
    /// Letters that go out.
    var letters: [UInt32] = []
    var stood = 0
    /// Where between its writes the node may die.
    var cuts = 0
    /// A place in `LocalSpace.facts`; 0 for none.
    var facts = 0
    /// What happened before the node died; a place in `LocalSpace.facts`.
    var factsBefore = 0
    /// A place in `LocalSpace.faults`; 0 for none.
    var fault = 0

    /// Whether the node is as before, and nobody has noticed anything.
    func isNothing(to local: UInt32) -> Bool {
        next == local && letters.isEmpty && stood == 0 && facts == 0 && fault == 0
    }

    /// Whether letters go out, and nothing else comes of it.
    func isWord(to local: UInt32) -> Bool {
        next == local && !letters.isEmpty && stood == 0 && facts == 0 && fault == 0
    }
}

/// What is asked of a node's state again and again.
struct LocalSight: Sendable {
    var life: Life
    var promised: Epoch
    var index: UInt64
    var queueCount: Int
    /// What the entries on its disk come to, from `durableFrom` on.
    var durableFrom: UInt64
    var durable: [UInt64]

    init(_ state: LocalState) {
        let inspection = state.machine.inspection
        life = inspection.life
        promised = inspection.promised
        index = inspection.position.index
        queueCount = state.queue.count
        durableFrom = state.record.firstIndex
        durable = state.record.entries.map { EntryHeader.chain($0) }
    }

    /// Whether its disk holds a decided entry, or the state behind it.
    func holds(_ index: UInt64, _ chain: UInt64) -> Bool {
        guard index >= durableFrom else { return true }
        let place = Int(index - durableFrom)
        return place < durable.count && durable[place] == chain
    }
}

struct LocalSpace {
    let options: ExplorerOptions
    private(set) var states: [LocalState] = []
    private(set) var sights: [LocalSight] = []
    private(set) var letters: [ExplorerLetter] = []
    var sets = LetterSets()
    private(set) var steps: [LocalStep] = []
    private(set) var facts: [LocalFacts] = [LocalFacts()]
    private(set) var faults: [ExplorerFault?] = [nil]
    /// Who misses the master together with a node.
    private var suspecters: [[ClusterMessage]] = []
    private var known = PrintTable()
    private var knownLetters = PrintTable()
    private var knownSteps = PrintTable()
    private var deaths = PrintTable()
    private var burials = PrintTable()
    private var stirrings = PrintTable()
    private var sayings = PrintTable()

    init(_ options: ExplorerOptions) { self.options = options }

    /// The number of a node's state.
    mutating func intern(_ state: LocalState) -> UInt32 {
        let number = UInt32(states.count)
        if let old = known.insert(state.fingerprint, number: number) { return old }
        states.append(state)
        sights.append(LocalSight(state))
        return number
    }

    // MARK: - Letters

    mutating func letter(_ message: ClusterMessage, from sender: Int, to receiver: Int) -> UInt32 {
        var bytes: [UInt8] = []
        message.encode(into: &bytes)
        var print = Fingerprint()
        print.absorb(receiver)
        print.absorb(bytes)
        let number = UInt32(letters.count)
        if let old = knownLetters.insert(print, number: number) { return old }
        letters.append(ExplorerLetter(message: message, sender: sender, receiver: receiver))
        return number
    }

    /// A message of a node's present life that nobody but the explorer has sent: see `Explorer`.
    func rumour(_ body: ClusterMessage.Body, of local: UInt32) -> ClusterMessage {
        ClusterMessage(sender: sights[Int(local)].life, destination: .all, epoch: .zero, body: body)
    }

    /// The number of a set of messages that say that the master is missed.
    mutating func suspicion(of others: [UInt32]) -> UInt32 {
        let messages = others.map { rumour(.suspect(at: .start), of: $0) }
        if let place = suspecters.firstIndex(of: messages) { return UInt32(place) }
        suspecters.append(messages)
        return UInt32(suspecters.count - 1)
    }

    /// Messages that are not carried: whether somebody is alive or missed is the explorer's to say.
    static func isCarried(_ message: ClusterMessage) -> Bool {
        switch message.body {
        case .keepalive, .suspect: false
        case .election, .answer, .coordinator, .prepare, .ok, .error, .commit, .confirm, .confirmed, .fetch, .entries,
            .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward, .answered, .handover, .leave:
            true
        }
    }

    /// Whether a letter can do nothing at its receiver, now or ever.
    ///
    /// It is for a life that is over; or it does nothing now, and never will, for promises and positions only go up in
    /// a life.
    mutating func isDead(_ letter: UInt32, at local: UInt32) -> Bool {
        let message = letters[Int(letter)].message
        if case .one(let life) = message.destination, life != sights[Int(local)].life { return true }
        guard isOver(message, at: sights[Int(local)]) else { return false }
        var print = Fingerprint()
        print.absorb(UInt64(letter) << 32 | UInt64(local))
        if let known = deaths.find(print) { return known == 1 }
        let isNothing = step(Move(.deliver, letters[Int(letter)].receiver, letter), of: local).isNothing(to: local)
        _ = deaths.insert(print, number: isNothing ? 1 : 0)
        return isNothing
    }

    /// What is left of a set of letters when those are taken away that can do nothing any more.
    mutating func living(_ set: UInt32, at local: UInt32) -> UInt32 {
        if set == 0 { return 0 }
        var print = Fingerprint()
        print.absorb(UInt64(set) << 32 | UInt64(local))
        if let known = burials.find(print) { return known }
        let number = sets.intern(sets[set].filter { !isDead($0, at: local) })
        _ = burials.insert(print, number: number)
        return number
    }

    /// Those of a set of letters that change something at a node.
    mutating func stirring(_ set: UInt32, at local: UInt32) -> UInt32 {
        if set == 0 { return 0 }
        var print = Fingerprint()
        print.absorb(UInt64(set) << 32 | UInt64(local))
        if let known = stirrings.find(print) { return known }
        let letters = Array(sets[set]).filter { letter in
            let step = step(Move(.deliver, self.letters[Int(letter)].receiver, letter), of: local)
            if step.isNothing(to: local) { return false }
            return !(options.saysAllAtOnce && step.isWord(to: local))
        }
        let number = sets.intern(letters)
        _ = stirrings.insert(print, number: number)
        return number
    }

    /// The letters that go out when those of a set come that make a node speak, and nothing else.
    mutating func said(_ set: UInt32, at local: UInt32) -> UInt32 {
        if set == 0 { return 0 }
        var print = Fingerprint()
        print.absorb(UInt64(set) << 32 | UInt64(local))
        if let known = sayings.find(print) { return known }
        var letters: [UInt32] = []
        for letter in Array(sets[set]) {
            let step = step(Move(.deliver, self.letters[Int(letter)].receiver, letter), of: local)
            if step.isWord(to: local) { letters += step.letters }
        }
        letters.sort()
        var distinct: [UInt32] = []
        for letter in letters where distinct.last != letter { distinct.append(letter) }
        let number = sets.intern(distinct)
        _ = sayings.insert(print, number: number)
        return number
    }

    private func isOver(_ message: ClusterMessage, at sight: LocalSight) -> Bool {
        let isBelow = message.epoch < sight.promised
        switch message.body {
        case .ok(let ballot), .error(let ballot, .cannotStore): return isBelow || ballot.index <= sight.index
        case .error(_, .staleEpoch), .answer: return message.epoch <= sight.promised
        case .error(_, .gap): return true
        case .election, .prepare, .confirm, .confirmed, .forward, .answered, .coordinator, .commit, .welcome:
            return isBelow
        case .entries, .welcomeDone, .handover, .hello, .keepalive, .suspect, .fetch, .refused, .fetchChunk, .chunk,
            .leave:
            return false
        }
    }

    // MARK: - Steps

    /// What a move makes of a node.
    mutating func step(_ move: Move, of local: UInt32) -> LocalStep {
        var print = Fingerprint()
        print.absorb(move.packed)
        print.absorb(local)
        if let known = knownSteps.insert(print, number: UInt32(steps.count)) { return steps[Int(known)] }
        let place = steps.count
        steps.append(LocalStep(next: local))
        let run = run(move, of: local)
        var step = LocalStep(next: intern(run.state))
        for message in run.messages where LocalSpace.isCarried(message) {
            for receiver in 0..<options.nodes where receiver != move.node {
                if case .one(let life) = message.destination, life.id != UInt32(receiver + 1) { continue }
                step.letters.append(letter(message, from: move.node, to: receiver))
            }
        }
        step.stood = run.stood
        step.cuts = run.cuts
        step.facts = note(run.facts)
        step.factsBefore = note(run.factsBefore)
        if let fault = run.fault {
            step.fault = faults.count
            faults.append(fault)
        }
        steps[place] = step
        return step
    }

    private mutating func note(_ new: LocalFacts) -> Int {
        if new.isEmpty { return 0 }
        facts.append(new)
        return facts.count - 1
    }

    func run(_ move: Move, of local: UInt32, isTelling: Bool = false) -> LocalRun {
        var run = LocalRun(states[Int(local)], isTelling: isTelling)
        switch move.kind {
        case .deliver: run.step(.messageReceived(letters[Int(move.argument)].message))
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
    static func requests(in entry: [UInt8]) -> [Int] {
        guard let header = try? EntryHeader(entry) else { return [] }
        var cursor = UpdateCursor(header)
        var requests: [Int] = []
        while let update = try? cursor.next(entry) {
            guard case .announceIPv4(let announce) = update else { continue }
            requests.append(Int(announce.endpoint.socketAddress.port) - firstPort)
        }
        return requests
    }
}

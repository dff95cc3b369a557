// One tracker as the explorer holds it.

import Primitives
import TrackerLogic
import Wire

/// One tracker as the explorer holds it: the machine, its disk, the writes under way; and one step of it, checked.
///
/// What can be seen at one node is checked here, once for each step that is ever computed, however many schedules take
/// it: promises do not go back, and what depends on one, or on an entry, is said when it is on the disk.
struct LocalState: Sendable {
    var machine: TrackerNode
    var now = Instant(nanoseconds: 0)
    var record = DiskRecord()
    /// Writes that are neither durable nor failed, oldest first.
    var queue: [Persist] = []
    /// How many lives it has had before this one.
    var lives: UInt32 = 0

    /// A tracker without memory, before its first step.
    static func blank(_ node: Int, _ options: ExplorerOptions) -> LocalState {
        var random = RandomStream(seed: UInt64(node + 1), stream: 0)
        let secret = ClusterSecret(1, 2, 3, 4)
        guard
            let machine = try? TrackerNode.recovered(
                from: DiskRecord(), configuration: options.configuration(node), secret: secret, random: &random)
        else { preconditionFailure("an empty record can be read") }
        return LocalState(machine: machine)
    }

    var fingerprint: Fingerprint {
        var print = Fingerprint()
        machine.absorb(into: &print, now: now)
        print.absorb(lives)
        record.absorb(into: &print)
        print.absorb(queue.count)
        for write in queue { DiskRecord.absorb(write.change, into: &print) }
        return print
    }
}

extension DiskRecord {
    func absorb(into print: inout Fingerprint) {
        if let promise { DiskRecord.absorb(.promise(promise), into: &print) }
        print.absorb(firstIndex)
        print.absorb(entries.count)
        // All but the last are decided: by which ballot they came is of no more interest.
        for entry in entries.dropLast() { print.absorb(entry.chain) }
        if let last = entries.last { print.absorb(last.bytes) }
        for chunk in chunks { print.absorb(chunk.bytes) }
    }

    static func absorb(_ change: Persist.Change, into print: inout Fingerprint) {
        switch change {
        case .promise(let promise):
            print.absorb(1)
            print.absorb(promise.epoch)
            print.absorb(promise.incarnation)
            print.absorb(promise.secret.w0)
            print.absorb(promise.hasFullState)
        case .append(let entry):
            print.absorb(2)
            print.absorb(entry.header.index)
            print.absorb(entry.bytes)
        case .saveChunk(let chunk):
            print.absorb(4)
            print.absorb(chunk.bytes)
        case .trim(let through):
            print.absorb(5)
            print.absorb(through)
        case .replaceAll(let chunks):
            print.absorb(6)
            for chunk in chunks { print.absorb(chunk.bytes) }
        }
    }
}

/// What a move of one node came to.
struct LocalRun: Sendable {
    var state: LocalState
    var messages: [ClusterMessage] = []
    var facts = LocalFacts()
    /// What came to pass before the node died.
    var factsBefore = LocalFacts()
    /// Where between its writes the node may die, or did.
    private(set) var cuts = 0
    /// How often the node stood for master.
    var stood = 0
    var fault: ExplorerFault?
    /// What happened, in words, where somebody wants them.
    var lines: [String]?

    init(_ state: LocalState, isTracing: Bool = false) {
        self.state = state
        if isTracing { lines = [] }
    }
}

/// What of a step is looked at together with the other nodes.
struct LocalFacts: Sendable, Hashable {
    struct Reply: Sendable, Hashable {
        var request: Int
        var content: Content

        enum Content: Sendable, Hashable {
            /// With so many peers in the swarm.
            case announced(peers: Int)
            case scraped(peers: Int)
            /// The entry was not stored, and never will be.
            case notStored
            case refused
        }
    }

    struct Applied: Sendable, Hashable {
        var position: Position
        /// The requests in the entry there, where the node has it.
        var requests: [Int]
    }

    /// Entries that were applied.
    var applied: [Applied] = []
    var replies: [Reply] = []
    /// Epochs that were stood for or led.
    var claims: [Epoch] = []

    /// Whose they are, where it is not the node's present life.
    var life: Life?

    var isEmpty: Bool { applied.isEmpty && replies.isEmpty && claims.isEmpty }

    /// What the entry holds is looked up at once: the node may die within the step, and know it no more.
    mutating func noteApplied(_ position: Position, _ entry: Entry?) {
        applied.append(Applied(position: position, requests: entry.map(LocalSpace.requests(in:)) ?? []))
    }
}

/// A promise that was not kept.
public struct ExplorerFault: Sendable, Hashable {
    /// The promise that was broken.
    public var invariant: Invariant
    /// What was seen, in words.
    public var detail: String

    init(_ invariant: Invariant, _ detail: String) {
        self.invariant = invariant
        self.detail = detail
    }
}

extension LocalRun {
    private var name: String { "tracker \(state.machine.configuration.id)" }

    mutating func violate(_ invariant: Invariant, _ detail: String) {
        if fault == nil { fault = ExplorerFault(invariant, "\(name) \(detail)") }
    }

    // MARK: - Moves

    /// One step of the machine, under the eyes of the checks.
    mutating func step(_ event: Event) {
        let before = state.machine.inspection
        var effects = Effects()
        state.machine.step(
            event, now: ClockReading(monotonic: state.now, wall: ExplorerOptions.wall), into: &effects)
        state.queue.append(contentsOf: effects.persists)
        check(effects, event, before)
        messages.append(contentsOf: effects.messages)
        for observation in effects.observations { if case .stands = observation { stood += 1 } }
        guard lines != nil else { return }
        let line = TraceText.describe(event) + TraceText.describe(effects) + told(effects.answers)
        lines?.append(line)
    }

    private func told(_ answers: [Answer]) -> String {
        var text = ""
        for answer in answers {
            switch answer.content {
            case .announce(let announce):
                text += "; answers request \(answer.id): \(announce.counts.leechers) peers"
            case .scrape(let counts):
                text += "; answers request \(answer.id): \(counts.map { "\"\($0.leechers)\"" }.inBrackets) peers"
            case .failure(let refusal): text += "; answers request \(answer.id): \(refusal)"
            }
        }
        return text
    }

    /// The oldest write is durable, or has failed.
    mutating func completeWrite(failure: StorageFailure? = nil) {
        let write = state.queue.removeFirst()
        if let failure { return step(.persistFailed(write.token, failure)) }
        makeDurable(write.change)
        step(.persisted(write.token))
    }

    mutating func completeAllWrites() {
        while !state.queue.isEmpty { completeWrite() }
    }

    /// The same, unless the node dies before it is through.
    ///
    /// `cut` is where it dies, counted from 1: with so many writes done and reported, and with so many more on the disk
    /// of which it has not heard; 0 where it lives.
    mutating func completeAllWrites(cut: UInt8, _ options: ExplorerOptions) {
        while !state.queue.isEmpty, fault == nil {
            for surviving in 0...state.queue.count {
                cuts += 1
                guard cuts == Int(cut) else { continue }
                restart(surviving: surviving, options)
                return completeAllWrites()
            }
            completeWrite()
        }
    }

    private mutating func makeDurable(_ change: Persist.Change) {
        if case .promise(let promise) = change, let old = state.record.promise, promise.epoch < old.epoch {
            violate(.promiseIsKept, "promises epoch \(promise.epoch) after \(old.epoch)")
        }
        if !state.record.apply(change) { violate(.logHasNoGap, "writes what does not fit: \(change.name)") }
    }

    /// Time passes until the node stands for master: it misses whoever it followed, and hears that others do too.
    mutating func stand(_ suspecters: [ClusterMessage]) {
        let detection = ExplorerOptions.keepalive * 4
        for _ in 0..<4 {
            state.now = state.now + detection
            step(.deadlineReached)
            for message in suspecters where stood == 0 { step(.messageReceived(message)) }
            if stood > 0 { return }
            state.now = state.now + ExplorerOptions.keepalive + ExplorerOptions.keepalive / 2
            step(.deadlineReached)
            if stood > 0 { return }
        }
    }

    /// Time passes until what was not answered is asked again.
    mutating func wait() {
        state.now = state.now + ExplorerOptions.keepalive + ExplorerOptions.keepalive / 2
        step(.deadlineReached)
    }

    /// The node dies and comes back; of its writes under way, the first `surviving` are durable.
    mutating func restart(surviving: Int, _ options: ExplorerOptions) {
        for write in state.queue.prefix(surviving) { makeDurable(write.change) }
        (factsBefore, facts) = (facts, LocalFacts())
        factsBefore.life = state.machine.inspection.life
        state.queue = []
        state.lives += 1
        let node = Int(state.machine.configuration.id) - 1
        var random = RandomStream(seed: UInt64(node + 1), stream: UInt64(state.lives))
        do throws(RecordDamaged) {
            state.machine = try TrackerNode.recovered(
                from: state.record, configuration: options.configuration(node), random: &random)
        } catch {
            return violate(.recordIsReadable, "\(error)")
        }
        lines?.append("dies with \(surviving) writes made durable, and comes back")
        noteApplied(after: 0)
        step(.started)
        step(.busConnected)
    }

    // MARK: - Checks

    private mutating func check(_ effects: Effects, _ event: Event, _ before: Inspection) {
        let after = state.machine.inspection
        if after.promised < before.promised {
            violate(.promiseIsKept, "goes back from epoch \(before.promised) to \(after.promised)")
        }
        if let epoch = after.leads, before.leads != epoch { claim(epoch) }
        for message in effects.messages { check(message, event) }
        noteApplied(after: before.position.index)
        if after.position.index < before.position.index { noteApplied(after: after.position.index - 1) }
        for answer in effects.answers { note(answer, before, after) }
    }

    private mutating func claim(_ epoch: Epoch) {
        if epoch.id != state.machine.configuration.id {
            violate(.oneMasterPerEpoch, "leads epoch \(epoch), which is not its own")
        }
        if !facts.claims.contains(epoch) { facts.claims.append(epoch) }
    }

    private mutating func noteApplied(after index: UInt64) {
        let position = state.machine.state.position
        guard position.index > index else { return }
        for place in index + 1..<max(position.index, index + 1) {
            guard let entry = state.machine.committedEntry(at: place) else { continue }
            facts.noteApplied(entry.position, entry)
        }
        facts.noteApplied(position, state.machine.committedEntry(at: position.index))
    }

    private mutating func note(_ answer: Answer, _ before: Inspection, _ after: Inspection) {
        let content: LocalFacts.Reply.Content
        switch answer.content {
        case .announce(let announce): content = .announced(peers: Int(announce.counts.leechers))
        case .scrape(let counts): content = .scraped(peers: Int(counts.first?.leechers ?? 0))
        case .failure(.notStored): content = .notStored
        case .failure: content = .refused
        }
        facts.replies.append(LocalFacts.Reply(request: Int(answer.id), content: content))
        let isTold = if case .failure = answer.content { true } else { false }
        func maySpeak(_ view: Inspection) -> Bool { view.hasFullState && !view.isFenced }
        if !isTold, !maySpeak(before), !maySpeak(after) {
            violate(.silentUnlessServing, "answers a client, and is cut off or not whole")
        }
    }

    private mutating func check(_ message: ClusterMessage, _ event: Event) {
        let promised = state.record.promise?.epoch ?? .zero
        switch message.body {
        case .election:
            claim(message.epoch)
            if promised < message.epoch {
                violate(.promiseIsKept, "stands for epoch \(message.epoch) and has \(promised) on its disk")
            }
        case .answer(let answer): checkAnswer(answer, message.epoch, promised)
        case .ok(let ballot): checkVote(ballot, promised, event)
        case .keepalive, .suspect, .coordinator, .prepare, .error, .commit, .confirm, .confirmed, .fetch, .entries,
            .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward, .answered, .handover, .leave,
            .report, .order,
            .ordered, .stop:
            break
        }
    }

    private mutating func checkAnswer(_ answer: VoterAnswer, _ epoch: Epoch, _ promised: Epoch) {
        if promised != epoch {
            violate(.promiseIsKept, "answers the candidate of epoch \(epoch) and has \(promised) on its disk")
        }
        if state.record.promise?.hasFullState != true {
            violate(.votersHoldFullState, "answers the candidate of epoch \(epoch) and does not hold the whole state")
        }
        let last = state.record.lastIndex
        guard last > answer.position.index, let entry = state.record.entry(last) else { return }
        // A proposal that is not written yet may be told in the place of an older one: what is proposed in a higher
        // epoch is safe there.
        guard let told = answer.pending, told.header.index == last,
            entry.header.ballot < told.header.ballot || told.chain == entry.chain
        else {
            return violate(
                .voteIsKept, "has entry \(last) on its disk and does not say so to the candidate of \(epoch)")
        }
    }

    private mutating func checkVote(_ ballot: Ballot, _ promised: Epoch, _ event: Event) {
        if promised != ballot.epoch {
            violate(.promiseIsKept, "votes in epoch \(ballot.epoch) and has \(promised) on its disk")
        }
        if state.record.promise?.hasFullState != true {
            violate(.votersHoldFullState, "votes and does not hold the whole state")
        }
        guard let entry = state.record.entry(ballot.index) else {
            if ballot.index >= state.record.firstIndex {
                violate(.voteIsKept, "votes for \(ballot.text) and has nothing at that index on its disk")
            }
            return
        }
        if entry.header.ballot == ballot { return }
        // It may have the same value by another ballot.
        if case .messageReceived(let message) = event, case .prepare(let proposed, _) = message.body,
            proposed.chain == entry.chain
        {
            return
        }
        violate(.voteIsKept, "votes for \(ballot.text) and has \(entry.header.ballot.text) on its disk")
    }
}

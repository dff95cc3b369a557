// What was aborted stays so, and its clients are told.

import Primitives
import TrackerLogic
import Wire

/// What was aborted stays so, and its clients are told: those whose updates are void, and no others.
struct Aborts: Sendable {
    /// Values that were aborted.
    private var abortedValues: [AbortedValue] = []
    /// Requests in aborted entries whose clients have not been told.
    private var refused: [RefusedTicket] = []
    /// Those whose clients have.
    private var dead: [RefusedTicket] = []

    /// A value is proposed anew.
    mutating func forget(_ chain: UInt64) { abortedValues.removeAll { $0.chain == chain } }

    /// A tracker says that an entry is aborted: whatever was proposed with these tickets at this index, and is not
    /// decided, is void.
    ///
    /// Where a vote refused it, an empty entry with its tickets is decided in its place.
    mutating func aborted(_ index: UInt64, _ step: borrowing Step, _ scene: inout Scene) {
        if let latest = scene.nodes[step.node].proposals.last(where: { $0.header.index == index }) {
            noteAborted(index, by: step.node, in: latest.header.epoch, scene) {
                $0.header.epoch == latest.header.epoch
            }
        }
        guard let void = step.applied.first(where: { $0.header.index == index }) else {
            return checkNowhere(index, step, &scene)
        }
        guard void.header.updateCount == 0, let tickets = try? Tickets(void.bytes, void.header)
        else { return }
        for node in scene.nodes.indices {
            noteAborted(index, by: node, in: void.header.epoch, scene) { proposed in
                (try? Tickets(proposed.bytes, proposed.header)) == tickets
            }
        }
    }

    /// A master gives an entry up, and nothing is decided in its place: no voter may have it on its disk, in whatever
    /// attempt, or what an earlier master has left there, which may be the same requests.
    ///
    /// In a group none is given up so: the others have heard what it holds, and may bring it in anew.
    ///
    /// Survivor mode: it has not itself; whoever cannot be heard has no vote.
    private func checkNowhere(_ index: UInt64, _ step: borrowing Step, _ scene: inout Scene) {
        guard step.view.position.index < index else { return }
        let proposals = scene.nodes[step.node].proposals
        let latest = proposals.last { $0.header.index == index && $0.header.updateCount > 0 }
        // What is left of an earlier master is given up by nobody.
        guard let latest, latest.header.epoch == proposals.last?.header.epoch else { return }
        if scene.isGroup {
            scene.violate(
                .abortedStaysAborted, at: step.time,
                "\(scene.name(step.node)) gives entry \(index) up, and the others have heard what it holds")
        }
        for node in scene.nodes.indices {
            guard node == step.node || scene.promises.abortsAreFinal,
                let life = scene.nodes[node].lastView?.life, step.view.voters.contains(life.id),
                let found = scene.nodes[node].disk.written(index),
                found.chain == latest.chain || found.ballot.epoch < latest.header.epoch
            else { continue }
            let what = found.chain == latest.chain ? "it" : "another"
            scene.violate(
                .abortedStaysAborted, at: step.time,
                "\(scene.name(step.node)) gives entry \(index) up, and \(scene.name(node)) has \(what) on its disk")
        }
    }

    /// Notes that the vote of a master has refused what is meant; `epoch` is that master's.
    private mutating func noteAborted(
        _ index: UInt64, by node: Int, in epoch: Epoch, _ scene: Scene,
        where isMeant: (Entry) -> Bool
    ) {
        for proposed in scene.nodes[node].proposals where proposed.header.index == index && isMeant(proposed) {
            // In survivor mode, the other side of a partition may have decided what this side refuses.
            if scene.promises.abortsAreFinal, scene.log.contains(proposed.position) {
                continue
            }
            if proposed.header.updateCount == 0 { continue }
            let aborted = AbortedValue(chain: proposed.chain, epoch: epoch)
            if !abortedValues.contains(aborted) { abortedValues.append(aborted) }
            noteRefused(proposed, epoch)
        }
    }

    private mutating func noteRefused(_ entry: Entry, _ epoch: Epoch) {
        guard let tickets = try? Tickets(entry.bytes, entry.header) else { return }
        var cursor = UpdateCursor(entry.header)
        var ordinal: UInt32 = 0
        var next = 0
        while next < tickets.count, let update = try? cursor.next(entry.bytes) {
            defer { ordinal += 1 }
            let ticket = tickets.tickets[next]
            guard ticket.ordinal == ordinal else { continue }
            next += 1
            guard let announced = Announced(update) else { continue }
            let life = tickets.life(of: ticket)
            // Everybody who applies the empty entry says so.
            let isKnown = { (known: RefusedTicket) in known.life == life && known.number == ticket.number }
            // In a group a request that is sent once more has the same name.
            if refused.contains(where: isKnown) || (life != Tickets.group && dead.contains(where: isKnown)) { continue }
            refused.append(RefusedTicket(life: life, number: ticket.number, epoch: epoch, announced: announced))
        }
        // Far more than can wait to be told at one time.
        if refused.count > 4096 { refused.removeFirst(refused.count - 4096) }
    }

    /// How many are told that their update was not stored; others may be answered in the same step.
    private static func countTold(_ effects: Effects) -> Int {
        let replies = effects.replies.datagrams.indices.count { number in
            let bytes = effects.replies.payload(number)
            return bytes.count > 8 && bytes[3] == 3
                && Refusal.notStored.text.withUTF8Buffer { bytes[8...].elementsEqual($0) }
        }
        return replies + effects.answers.count { $0.content == .failure(.notStored) }
    }

    /// A tracker alone hears that its entry is certainly not on its disk: it is void, and all who waited are told.
    mutating func noteNotStored(_ event: Event, _ effects: Effects, _ step: borrowing Step, _ scene: inout Scene) {
        guard step.kind == .persistFailed, case .persistFailed(let token, let failure) = event, failure != .broken,
            let (asked, entry) = scene.nodes[step.node].writing, asked == token
        else { return }
        let header = entry.header
        scene.nodes[step.node].writing = nil
        if header.updateCount > 0 {
            abortedValues.append(AbortedValue(chain: entry.chain, epoch: header.epoch))
        }
        var waiting = 0
        var cursor = UpdateCursor(header)
        while let update = try? cursor.next(entry.bytes) {
            guard let announced = Announced(update) else { continue }
            waiting += 1
            refused.append(
                RefusedTicket(life: step.view.life, number: 0, epoch: header.epoch, announced: announced))
        }
        let told = Self.countTold(effects)
        // Who was asked to stop, and had no time left to wait, may have given them up.
        let hasLeft = step.view.leads == nil
        let silent = Int(step.withheld)
        if told > waiting || !hasLeft && told + silent < waiting {
            scene.violate(
                .answeredOnce, at: step.time,
                "\(waiting) requests at \(scene.name(step.node)) were not stored, \(told) were told")
        }
    }

    /// An entry is decided: it must not be one that was aborted, nor hold what a client was told is not stored.
    mutating func checkAborted(
        _ entry: Entry, _ tickets: Tickets, _ step: borrowing Step, _ scene: inout Scene, _ requests: inout Requests
    ) {
        let (position, header) = (entry.position, entry.header)
        // In survivor mode, whoever stored the entry may have found itself master on the other side of a partition, or
        // have kept it.
        if !scene.promises.abortsAreFinal, header.isAlone { return }
        func isVoid(in epoch: Epoch) -> Bool { scene.promises.abortsAreFinal || header.epoch == epoch }
        if abortedValues.contains(where: { $0.chain == position.chain && isVoid(in: $0.epoch) }) {
            scene.violate(
                .abortedStaysAborted, at: step.time,
                "entry \(position.index) was aborted, and is applied by \(scene.name(step.node))")
        }
        // An empty entry says who is refused.
        guard !dead.isEmpty, header.updateCount > 0 else { return }
        for ticket in tickets.tickets {
            let life = tickets.life(of: ticket)
            let told = dead.first { $0.life == life && $0.number == ticket.number && isVoid(in: $0.epoch) }
            guard let told else { continue }
            // A copy of the request that came afterwards is a request of its own.
            let isHeardAgain = requests.books[told.client].asks.contains {
                $0.transactionID == told.transactionID && $0.lastHeardAt > told.toldAt
            }
            if life == Tickets.group, isHeardAgain { continue }
            scene.violate(
                .abortedStaysAborted, at: step.time,
                "client \(told.client) was told that its request is not stored, and entry \(position.index) holds it")
        }
    }

    /// A client is told that its request is not stored.
    ///
    /// - Returns: whether that is so.
    mutating func toldRefused(
        _ client: Int, _ transactionID: TransactionID, _ step: borrowing Step, _ requests: Requests
    ) -> Bool {
        let book = requests.books[client]
        let asked = book.asks.filter { $0.transactionID == transactionID }.compactMap { $0.announce }
        let places = refused.indices.filter { place in
            let ticket = refused[place]
            guard ticket.life == Tickets.group || ticket.life == step.view.life else { return false }
            return asked.contains { ticket.announced.isAsked(by: $0, from: book.address) }
        }
        // Where several copies wait, nobody can say from outside which of them was meant.
        guard let place = places.first, places.count == 1 else { return !places.isEmpty }
        var ticket = refused.remove(at: place)
        ticket.client = client
        ticket.transactionID = transactionID
        ticket.toldAt = step.time
        dead.append(ticket)
        return true
    }

    /// A visitor is told that his request is not stored.
    mutating func toldRefused(_ visit: Visit, _ step: borrowing Step) -> Bool {
        let place = refused.firstIndex { ticket in
            (ticket.life == Tickets.group || ticket.life == step.view.life) && visit.asks(for: ticket.announced)
        }
        guard let place else { return false }
        refused.remove(at: place)
        return true
    }
}

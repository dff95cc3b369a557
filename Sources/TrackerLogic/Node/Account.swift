// What a node is, has and waits for, in words.

import Primitives
import Wire

/// What a node is, has and waits for, in words: for people who look at one moment of a simulated run.
///
/// Nothing decides by it, and no golden number holds it.
public struct NodeAccount: Sendable, Equatable {
    /// A line of the account.
    public struct Item: Sendable, Equatable {
        /// One word or two, such as `promise`; `tracker 3` for what it knows of another.
        public var title: String
        /// In words, without a full stop.
        public var text: String
    }

    /// Role, epoch, promise, log and so on, each with its title.
    public var items: [Item] = []
    /// Why it does not serve; empty where it does.
    public var obstacles: [String] = []

    mutating func add(_ title: String, _ text: String) { items.append(Item(title: title, text: text)) }
}

extension TrackerNode {
    /// What this node is, has and waits for now.
    ///
    /// - Parameters:
    ///   - now: by the node's own clock.
    ///   - when: how people call a time of that clock.
    ///   - client: how people call a client.
    /// - Returns: items in the order in which they are to be read.
    /// - Complexity: O(neighbours + requests booked).
    public func account(
        now: Instant, since when: (Instant) -> String, client: (SocketAddress) -> String
    ) -> NodeAccount {
        var account = NodeAccount()
        account.obstacles = obstacles(now, when)
        account.add("role", roleInWords)
        account.add(
            "number",
            admission.id == 0 ? "none yet" : "\(admission.id), incarnation \(hexadecimal(life.incarnation))")
        account.add(
            "promise",
            "epoch \(promise.epoch)\(!acceptor.isDurable ? ", not on its disk yet" : "")"
                + (promise.hasFullState ? "" : "; its record does not hold the whole state, so it has no vote"))
        account.add(
            "log",
            "applied through entry \(state.index); on its disk through \(log.durableThrough)"
                + "; \(log.tailCount) kept for others" + (log.isWriting ? "; a write is under way" : "")
                + (log.writesResumeAt.map { "; tries to write again at \(when($0))" } ?? ""))
        account.add("pending", pendingInWords)
        account.add("following", followingInWords(when))
        account.add("transfer", transferInWords)
        account.add("voters", voterWords)
        addNeighbours(to: &account, now, when)
        addBook(to: &account, when, client)
        account.add(
            "waits for", account.obstacles.isEmpty ? waitsInWords(when) : account.obstacles.joined(separator: "; "))
        return account
    }

    // MARK: - Items

    private var roleInWords: String {
        switch phase {
        case .restoring: "reads its record back"
        case .following: clusterRole == .slave ? "slave" : "newcomer"
        case .candidate: "candidate for epoch \(candidate.epoch): \(electionInWords)"
        case .master: "master of epoch \(candidate.epoch)\(isServing ? "" : ", not serving yet")"
        case .draining: "is stopping"
        case .failed: "has lost its disk, and says nothing more"
        case .stopped: "has stopped"
        }
    }

    private var electionInWords: String {
        let answers = idWords(candidate.answeredIDs)
        return switch candidate.phase {
        case .idle: "does not stand"
        case .promising: "its own promise is not on its disk yet"
        case .asking: "has answers of \(answers), of the voters \(idWords(electorate.voters))"
        case .recovering: "elected by \(answers), fetches what others know to be decided"
        case .leading: "elected"
        }
    }

    private var pendingInWords: String {
        if let ballot = proposer.proposed {
            return "its own entry \(ballot.index), attempt \(ballot.attempt): on the disks of "
                + "\(idWords(proposer.supporters)), of the voters \(idWords(electorate.voters))"
                + (proposer.hasErrors ? "; some could not store it" : "")
        }
        if let pending = log.pending ?? restoredEntry {
            return "entry \(pending.header.index) of epoch \(pending.header.epoch), not known to be decided"
        }
        return "nothing"
    }

    private func followingInWords(_ when: (Instant) -> String) -> String {
        guard let following = office.following else { return "nobody" }
        return "tracker \(following.life.id), master of epoch \(following.epoch), heard last at "
            + "\(when(detector.silentAt - policy.detectionTime)); "
            + (following.isWelcomed ? "welcomed" : "not welcomed, asks since \(when(following.since))")
    }

    private var transferInWords: String {
        guard let source = transfer.source else {
            return transfer.isWriting ? "done, on its way to the disk" : "none"
        }
        let held = transfer.chunks.count { $0 != nil }
        return "from tracker \(source.id): \(held) of \(transfer.chunks.count) chunks"
    }

    private var voterWords: String {
        let voters = electorate.voters
        let own =
            voters.contains(admission.id) ? mayVote ? ", with its own vote" : ", without its own: it is not whole" : ""
        return "\(idWords(voters))\(own)" + (isQuorumMode ? "" : ", as far as it hears them")
    }

    private func addNeighbours(to account: inout NodeAccount, _ now: Instant, _ when: (Instant) -> String) {
        if neighbours.all.isEmpty { account.add("neighbours", "none heard") }
        for place in neighbours.all.indices {
            let other = neighbours.all[place]
            var text = "\(other.isUp ? "\(other.role)" : "down"), epoch \(other.epoch), entry \(other.position.index)"
            text += ", heard last at \(when(other.heardAt))"
            if !other.hasFullState { text += ", not whole" }
            if other.follower.isDropped { text += ", dropped for not voting" }
            if let at = other.suspicion.at { text += ", missed the master of \(other.suspicion.epoch) at \(when(at))" }
            if phase == .master {
                text += other.follower.welcomedIn == candidate.epoch ? ", welcomed" : ", not welcomed in this epoch"
            }
            account.add("tracker \(other.life.id)", text)
        }
    }

    private func addBook(
        to account: inout NodeAccount, _ when: (Instant) -> String, _ client: (SocketAddress) -> String
    ) {
        guard !router.isEmpty else { return account.add("book", "no client waits") }
        var number = router.floor
        var left = router.count
        while left > 0, number < router.floor + UInt64(1 << 24) {
            defer { number += 1 }
            guard let request = router[number] else { continue }
            left -= 1
            let handed =
                request.forwardedIn == .zero
                ? "no master has it" : "handed to the master of epoch \(request.forwardedIn)"
            account.add(
                "book",
                "request \(number), \(request.kind) of \(client(request.waiting.remote)), heard at "
                    + "\(when(request.heardAt)): \(handed)")
        }
    }

    private func waitsInWords(_ when: (Instant) -> String) -> String {
        var waits: [String] = []
        if proposer.proposed != nil { waits.append("votes on its entry") }
        if reads.isRoundUnderWay {
            let newcomers = reads.waitingNewcomers.map { "tracker \($0.id)" }.joined(separator: ", ")
            let purpose = newcomers.isEmpty ? "for reads" : "to let in \(newcomers)"
            waits.append("word that it is master still, \(purpose)")
        }
        if let successor = handover.successor, let until = handover.deadline {
            waits.append("tracker \(successor.id) to take the role, until \(when(until))")
        }
        if let source = merging.source { waits.append("what tracker \(source.id) knew beside (merge)") }
        if !writes.isEmpty { waits.append("\(writes.count) writes") }
        return waits.isEmpty ? "nothing" : waits.joined(separator: "; ")
    }

    // MARK: - Obstacles

    /// Why it does not serve.
    private func obstacles(_ now: Instant, _ when: (Instant) -> String) -> [String] {
        var reasons: [String] = []
        if writes.failure != nil { reasons.append("its writes fail") }
        switch phase {
        case .restoring, .failed, .draining, .stopped: return reasons + [roleInWords]
        case .candidate: return reasons + ["stands for master in epoch \(candidate.epoch): \(electionInWords)"]
        case .master:
            if isServing { return [] }
            if state.index < office.servesFrom {
                reasons.append("as master it has first to decide entry \(office.servesFrom), left by an earlier one")
            }
            return reasons + [
                "as master of epoch \(candidate.epoch) it does not serve yet: \(pendingInWords) under way"
            ]
        case .following: break
        }
        if isInService { return [] }
        if !office.isBusUp { return reasons + ["has no bus"] }
        if admission.id == 0 { reasons.append("has no number yet") }
        if let refusal = admission.refusal { reasons.append("was refused at \(when(admission.refusedAt)): \(refusal)") }
        if let ignored = detector.ignored, now < ignored.until {
            reasons.append(
                "does not heed tracker \(ignored.life.id), which never answered, until \(when(ignored.until))")
        }
        if let since = detector.suspectingSince { return reasons + [suspicion(since, now, when)] }
        guard let following = office.following else {
            return reasons + ["follows nobody: misses a master from \(when(detector.silentAt)) on"]
        }
        if !following.isWelcomed {
            reasons.append(
                "asks tracker \(following.life.id), master of epoch \(following.epoch), for its welcome since "
                    + when(following.since))
        }
        if transfer.isFetching { reasons.append("fetches the whole state \(transferInWords)") }
        if following.isWelcomed, state.index < office.servesFrom {
            reasons.append("lacks entries up to \(office.servesFrom): it is at \(state.index)")
        }
        if !promise.hasFullState { reasons.append("does not hold the whole state on its disk yet") }
        if following.epoch < promise.epoch {
            reasons.append("has promised epoch \(promise.epoch), and its master is of \(following.epoch)")
        }
        return reasons
    }

    /// It misses the master: what keeps it from electing another.
    private func suspicion(_ since: Instant, _ now: Instant, _ when: (Instant) -> String) -> String {
        let voters = electorate.voters
        let suspecters =
            [admission.id]
            + neighbours.all.filter { other in
                other.isUp && other.suspicion.at.map { now - $0 < policy.detectionTime } ?? false
            }.map { $0.life.id }
        let missing = voters.filter { suspecters.contains($0) }
        let what = "follows nobody: suspects since \(when(since))"
        if !mayVote {
            return "\(what), and may not stand: \(promise.hasFullState ? "it has no vote" : "it is not whole")"
        }
        guard electorate.isQuorum(suspecters) else {
            return "\(what), no quorum: \(missing.count) of \(voters.count) voters miss the master "
                + "(\(idWords(missing)), not \(idWords(voters.filter { !missing.contains($0) })))"
        }
        return "\(what); \(detector.standsAt.map { "stands at \(when($0))" } ?? "it is about to stand")"
    }

    private func idWords(_ ids: [UInt32]) -> String {
        ids.isEmpty ? "nobody" : ids.map { String($0) }.joined(separator: ", ")
    }

    private func hexadecimal(_ number: UInt64) -> String { String(number, radix: 16) }
}

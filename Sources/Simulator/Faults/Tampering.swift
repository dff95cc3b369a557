// Carries out what `Sabotage` names.

import Primitives
import TrackerLogic
import Wire

/// Carries out what `Sabotage` names, between the logic and the checkers.
struct Tampering: Sendable {
    let sabotage: Sabotage
    private var random: RandomStream
    /// The longest interval that may be told.
    private let longestInterval: UInt32

    init(_ sabotage: Sabotage, random: RandomStream, longestInterval: UInt32) {
        self.sabotage = sabotage
        self.random = random
        self.longestInterval = longestInterval
    }

    /// Spoils what a node has just said.
    mutating func spoil(_ effects: inout Effects) {
        switch sabotage {
        case .stampsBackwards: stamp(&effects, later: -60_000)
        case .stampsAhead: stamp(&effects, later: 60_000)
        case .losesProposals:
            // At first all works.
            effects.messages.removeAll { message in
                if case .prepare(let entry, _) = message.body { entry.header.index > 8 } else { false }
            }
        case .answersTwice, .swallowsAnswers, .miscountsAnswers, .namesStrangers, .sendsVisitorsAway:
            spoilAnswers(&effects)
        case .repliesTwice, .swallowsReplies, .namesAnnouncer, .repeatsPeer, .dropsPeer, .miscountsSeeders,
            .miscountsScrapes, .promisesLongInterval, .repliesToWrongClient, .repliesFromWrongAddress,
            .refusesWithoutReason, .refusesGoodIDs:
            spoilReplies(&effects)
        case .reportsBeforeDurable, .losesEntries, .losesChunks, .stalesChunks, .saysFailedButWrites,
            .saysWrittenButFails, .keepsSwarmsOnStop, .forgetsLastEntry, .forgetsChunk, .forgetsPromise,
            .forgetsCommands, .fallsSilentAfterFaults, .neverStops:
            break
        }
    }

    // MARK: - Replies

    private mutating func spoilReplies(_ effects: inout Effects) {
        var replies = DatagramBatch()
        for number in effects.replies.datagrams.indices {
            var datagram = effects.replies.datagrams[number]
            var bytes = effects.replies.payload(number)
            for _ in 0..<spoil(&bytes, &datagram) {
                replies.append(bytes, remote: datagram.remote, local: datagram.local, socket: datagram.socket)
            }
        }
        effects.replies = replies
    }

    /// - Returns: how often the reply is sent.
    private mutating func spoil(_ bytes: inout [UInt8], _ datagram: inout Datagram) -> Int {
        let action = bytes.span.bytes.u32(at: 0)
        if action == 2, sabotage == .miscountsScrapes { bytes[11] &+= 1 }
        guard action == 1 else { return 1 }
        let width = datagram.remote.isIPv4 ? CompactIPv4.byteCount : CompactIPv6.byteCount
        let peerCount = (bytes.count - ReplyWriter.announceHeaderByteCount) / width
        switch sabotage {
        case .repliesTwice: return 2
        case .swallowsReplies: return random.oneIn(10) ? 0 : 1
        case .namesAnnouncer:
            guard peerCount > 0 else { break }
            bytes.removeLast(width)
            var own = datagram.remote
            own.port += AddressPlan.listeningOffset
            if let endpoint = CompactIPv4(own) { withUnsafeBytes(of: endpoint) { bytes.append(contentsOf: $0) } }
            if let endpoint = CompactIPv6(own) { withUnsafeBytes(of: endpoint) { bytes.append(contentsOf: $0) } }
        case .repeatsPeer:
            if peerCount > 1 { bytes.replaceSubrange(20..<20 + width, with: bytes[20 + width..<20 + 2 * width]) }
        case .dropsPeer: if peerCount > 0 { bytes.removeLast(width) }
        case .miscountsSeeders: bytes[19] &+= 1
        case .promisesLongInterval:
            bytes[11] = UInt8(clamping: longestInterval)
        case .repliesToWrongClient: datagram.remote.port ^= 1
        case .repliesFromWrongAddress: datagram.local.port += 1
        case .refusesWithoutReason: refuse(&bytes, .infoHashDenied)
        case .refusesGoodIDs: refuse(&bytes, .connectionIDExpired)
        case .reportsBeforeDurable, .losesEntries, .losesChunks, .stalesChunks, .saysFailedButWrites,
            .saysWrittenButFails, .keepsSwarmsOnStop, .forgetsLastEntry, .forgetsChunk, .forgetsPromise,
            .miscountsScrapes, .stampsBackwards, .stampsAhead, .losesProposals, .forgetsCommands,
            .fallsSilentAfterFaults, .neverStops, .answersTwice, .swallowsAnswers, .miscountsAnswers, .namesStrangers,
            .sendsVisitorsAway:
            break
        }
        return 1
    }

    private func refuse(_ bytes: inout [UInt8], _ refusal: Refusal) {
        let transactionID = bytes[4..<8]
        bytes = [0, 0, 0, 3] + transactionID
        refusal.text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    // MARK: - Answers over HTTP

    private mutating func spoilAnswers(_ effects: inout Effects) {
        var answers: [Answer] = []
        for answer in effects.answers {
            var answer = answer
            var count = 1
            switch answer.content {
            case .announce(var announce):
                if sabotage == .namesStrangers, let endpoint = CompactIPv4(AddressPlan.visitor(999)) {
                    announce.ipv4.append((endpoint, .zero))
                }
                if sabotage == .miscountsAnswers { announce.counts.seeders += 1 }
                answer.content = .announce(announce)
                if sabotage == .sendsVisitorsAway { answer.content = .failure(.infoHashNotAllowed) }
            case .scrape(var counts):
                if sabotage == .miscountsAnswers, !counts.isEmpty { counts[0].completed += 1 }
                answer.content = .scrape(counts)
            case .failure: break
            }
            if sabotage == .answersTwice { count = 2 }
            if sabotage == .swallowsAnswers, random.oneIn(4) { count = 0 }
            for _ in 0..<count { answers.append(answer) }
        }
        effects.answers = answers
    }

    // MARK: - Entries

    /// Puts the times of entries off, in milliseconds.
    private func stamp(_ effects: inout Effects, later milliseconds: Int64) {
        for number in effects.persists.indices {
            guard case .append(let entry) = effects.persists[number].change, entry.header.index > 5 else { continue }
            var (header, bytes) = (entry.header, entry.bytes)
            header.time.milliseconds += milliseconds
            let chain = header.seal(&bytes)
            effects.persists[number].change = .append(Entry(sealed: bytes, header, chain: chain))
        }
    }

    // MARK: - Records

    /// Spoils a record that is about to be read back.
    mutating func spoil(_ record: inout DiskRecord) {
        if sabotage == .forgetsLastEntry { record.forgetLastEntry() }
        if sabotage == .forgetsChunk, !record.chunks.isEmpty { record.forgetChunk(random.below(record.chunks.count)) }
        if sabotage == .forgetsPromise { record.promise = nil }
    }
}

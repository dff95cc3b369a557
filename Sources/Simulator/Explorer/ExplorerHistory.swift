// What has happened on the way to a state and cannot be read off its nodes.

import Primitives
import TrackerLogic
import Wire

/// What has happened on the way to a state and cannot be read off its nodes: what was decided, who has stood for which
/// epoch, what clients were told.
///
/// Part of the state that is explored, and held against each step.
struct ExplorerHistory: Sendable, Hashable {
    struct Claim: Sendable, Hashable {
        var epoch: Epoch
        var life: Life
    }

    struct Request: Sendable, Hashable {
        /// Who heard it.
        var life: Life
        /// Announces that were answered before it came.
        var answeredBefore: Int
        var fate = Fate.waits
    }

    enum Fate: UInt8, Sendable, Hashable {
        case waits
        case answered
        /// Its client was told that it was not stored.
        case notStored
        /// Its client was told to try again; it may be in the log all the same.
        case refused
    }

    /// The running hash of the log at each decided entry, from the first on, and the requests in it.
    private(set) var decided: [UInt64] = []
    private(set) var inLog: [Int] = []
    private var claims: [Claim] = []
    /// By their numbers; nil where a request has not come yet.
    private var requests: [Request?]

    init(requests count: Int) { requests = Array(repeating: nil, count: count) }

    var fingerprint: Fingerprint {
        var print = Fingerprint()
        print.absorb(decided.count)
        for chain in decided { print.absorb(chain) }
        print.absorb(claims.count)
        for claim in claims {
            print.absorb(claim.epoch)
            print.absorb(claim.life)
        }
        for request in requests {
            print.absorb(request != nil)
            guard let request else { continue }
            print.absorb(UInt64(request.fate.rawValue))
            // Any further answer is one too many.
            guard request.fate == .waits else { continue }
            print.absorb(request.life)
            print.absorb(request.answeredBefore)
        }
        return print
    }

    var answeredAnnounces: Int { inLog.count { requests[$0]?.fate == .answered } }

    /// A request has come.
    mutating func came(_ number: Int, to life: Life) {
        requests[number] = Request(life: life, answeredBefore: answeredAnnounces)
    }

    /// Takes in what a step has shown, and compares it with what others have.
    ///
    /// - Parameters:
    ///   - facts: what the step has claimed, applied and answered.
    ///   - node: the place of the node that took it.
    ///   - views: all nodes as they are after the step.
    /// - Returns: the promise that is broken; nil where none is.
    mutating func absorb(_ facts: LocalFacts, of node: Int, _ views: [LocalView]) -> ExplorerFault? {
        let life = facts.life ?? views[node].life
        for epoch in facts.claims { if let fault = claim(epoch, life) { return fault } }
        for applied in facts.applied {
            if let fault = decide(applied, node, views) { return fault }
        }
        for reply in facts.replies { if let fault = answered(reply, life) { return fault } }
        return nil
    }

    private mutating func claim(_ epoch: Epoch, _ life: Life) -> ExplorerFault? {
        let claim = Claim(epoch: epoch, life: life)
        if claims.contains(claim) { return nil }
        if let other = claims.first(where: { $0.epoch == epoch }) {
            let whose = other.life.id == life.id ? "an earlier life of it" : "tracker \(other.life.id)"
            return ExplorerFault(
                .oneMasterPerEpoch, "tracker \(life.id) stands for epoch \(epoch), as \(whose) has done")
        }
        let place = claims.firstIndex { epoch < $0.epoch } ?? claims.count
        claims.insert(claim, at: place)
        return nil
    }

    private mutating func decide(
        _ applied: LocalFacts.Applied, _ node: Int, _ views: [LocalView]
    ) -> ExplorerFault? {
        let position = applied.position
        guard position.index > 0 else { return nil }
        if position.index <= UInt64(decided.count) {
            guard decided[Int(position.index) - 1] == position.chain else {
                return ExplorerFault(
                    .decidedIsForEver, "tracker \(node + 1) applies another entry \(position.index) than was decided")
            }
            return nil
        }
        guard position.index == UInt64(decided.count) + 1 else {
            return ExplorerFault(
                .decidedIsDecided, "tracker \(node + 1) is at entry \(position.index), which nobody has decided")
        }
        let holders = views.count { $0.holds(position.index, position.chain) }
        guard holders > views.count / 2 else {
            return ExplorerFault(
                .quorumDecides,
                "tracker \(node + 1) applies entry \(position.index), which \(holders) of "
                    + "\(views.count) have on their disks")
        }
        decided.append(position.chain)
        for request in applied.requests {
            if inLog.contains(request) {
                return ExplorerFault(.updateIsAsked, "request \(request) is in the log twice")
            }
            if requests[request]?.fate == .notStored {
                return ExplorerFault(.abortedStaysAborted, "request \(request) was refused and is in the log")
            }
            inLog.append(request)
        }
        return nil
    }

    private mutating func answered(_ reply: LocalFacts.Reply, _ life: Life) -> ExplorerFault? {
        guard let request = requests[reply.request], request.life == life else {
            return ExplorerFault(.replyIsAddressed, "tracker \(life.id) answers request \(reply.request) unasked")
        }
        guard request.fate == .waits else {
            return ExplorerFault(.answeredOnce, "tracker \(life.id) answers request \(reply.request) twice")
        }
        switch reply.content {
        case .announced(let peers):
            requests[reply.request]?.fate = .answered
            guard inLog.contains(reply.request) else {
                return ExplorerFault(
                    .answeredOnce, "tracker \(life.id) answers request \(reply.request), which is not decided")
            }
            if peers <= request.answeredBefore || peers > inLog.count {
                return ExplorerFault(
                    .readsAreFresh,
                    "the answer to request \(reply.request) shows \(peers) peers; "
                        + "\(request.answeredBefore) others were answered before, \(inLog.count) are decided")
            }
        case .scraped(let peers):
            requests[reply.request]?.fate = .answered
            if peers < request.answeredBefore || peers > inLog.count {
                return ExplorerFault(
                    .readsAreFresh,
                    "the answer to request \(reply.request) shows \(peers) peers; "
                        + "\(request.answeredBefore) were answered before, \(inLog.count) are decided")
            }
        case .notStored:
            requests[reply.request]?.fate = .notStored
            if inLog.contains(reply.request) {
                return ExplorerFault(.abortedStaysAborted, "request \(reply.request) is refused and is in the log")
            }
        case .refused: requests[reply.request]?.fate = .refused
        }
        return nil
    }

    /// Whether a quorum of disks holds everything that was decided.
    func lost(_ views: [LocalView]) -> ExplorerFault? {
        for (place, chain) in decided.enumerated() {
            let index = UInt64(place + 1)
            let holders = views.count { $0.holds(index, chain) }
            if holders <= views.count / 2 {
                return ExplorerFault(
                    .decidedIsForEver, "entry \(index) was decided and is on \(holders) of \(views.count) disks only")
            }
        }
        return nil
    }
}

// Who has what he needs, and has to be what he is to be by now.

import Primitives
import TrackerLogic
import Wire

/// Since when trackers have had what they need.
struct StandingWatch: Sendable {
    /// By tracker without a number: since when a master is there that could give it one, and its epoch.
    var numberless: [(epoch: Epoch, since: Instant)?]
    /// Since when nobody serves, though those who are there lack nothing, and who they are.
    var idle: (trackers: UInt32, since: Instant)?
    /// By tracker: when it has last come, been let in, or been given the whole state.
    var settledAt: [Instant]
    /// By tracker: when it last heard anybody.
    var heardAt: [Instant]
    /// Whether all others have died because a tracker began to fetch the state.
    var hasLeftAlone = false

    init(nodeCount: Int) {
        numberless = Array(repeating: nil, count: nodeCount)
        settledAt = Array(repeating: Instant(nanoseconds: 0), count: nodeCount)
        heardAt = settledAt
    }
}

extension World {
    /// Half detection times within which a tracker is given a number where somebody is there to give it one: it may
    /// have taken a master of before for its own.
    private static let numberPatience = 5
    /// Detection times within which somebody serves in survivor mode, whoever is left: to miss the master, to wait for
    /// those who know more, to be elected, and once more where two stood at once.
    private static let servicePatience = 8
    /// Keepalives within which a slave whose clients wait tells its master of them again.
    private static let forwardPatience = 4
    /// Keepalives after which a master knows of a slave that it is in step.
    private static let stepPatience = 4

    /// A tracker has woken.
    mutating func watchStanding(_ node: Int) {
        guard hasBus else { return }
        watchForwarding(node)
        guard options.hasGoodWays else { return }
        if options.unnumberedCount > 0 { watchNumber(node) }
        if !checks.promises.membersDecide, isMasterMissing { watchService() }
    }

    /// Something has happened to a tracker after which others may have to hear of it.
    mutating func settles(_ node: Int) { standing.settledAt[node] = now }

    /// A tracker has begun to fetch the state: where that is so, it is left alone.
    mutating func leaveAlone(_ node: Int) {
        guard options.faults.leavesFetchersAlone, !standing.hasLeftAlone, !isHealed else { return }
        standing.hasLeftAlone = true
        let time = Instant(nanoseconds: 0) + options.coreLength - now
        for other in nodes.indices where other != node && nodes[other].isUp {
            die(other, "dies", by: "the transfer of \(trace.names[node])", for: time)
        }
    }

    // MARK: - Numbers

    /// A tracker without a number is given one by the master that both hear each other.
    private mutating func watchNumber(_ node: Int) {
        guard nodes[node].configuration.id == 0 else { return }
        guard let own = nodes[node].inspection, own.life.id == 0, isWell(node), let master = onlyMaster(),
            bus.isClear(between: node, and: master.node, now: now)
        else { return standing.numberless[node] = nil }
        guard let known = standing.numberless[node], known.epoch == master.epoch else {
            return standing.numberless[node] = (master.epoch, now)
        }
        let limit = nodes[node].told.cluster.detectionTime / 2 * World.numberPatience
        guard now - known.since > limit else { return }
        violate(
            .numbersHaveReasons,
            "\(trace.names[node]) has no number, and \(trace.names[master.node]) could have given it one for "
                + "\((now - known.since).wholeMilliseconds) ms")
    }

    /// The master, where there is one, it serves, and nothing is wrong with it.
    private mutating func onlyMaster() -> (node: Int, epoch: Epoch)? {
        var master: (node: Int, epoch: Epoch)?
        for other in nodes.indices {
            guard let seen = nodes[other].inspection, seen.role == .master else { continue }
            guard master == nil, seen.isServing, !seen.isHandingOver, isWell(other), let epoch = seen.leads else {
                return nil
            }
            master = (other, epoch)
        }
        return master
    }

    // MARK: - Service

    /// Whether nobody serves as master, or did when that was last looked at.
    private var isMasterMissing: Bool { !connectivity.contains { $0.isMaster } || standing.idle != nil }

    /// In survivor mode somebody serves, as long as anybody is left.
    private mutating func watchService() {
        var trackers: UInt32 = 0
        for node in nodes.indices where nodes[node].isUp {
            guard isWell(node), nodes[node].disk.failure == nil, !connectivity[node].isMaster else {
                return standing.idle = nil
            }
            for other in trackers.places where !bus.isClear(between: node, and: other, now: now) {
                return standing.idle = nil
            }
            trackers |= 1 << UInt32(node)
        }
        guard trackers != 0, let known = standing.idle, known.trackers == trackers else {
            return standing.idle = (trackers, now)
        }
        let limit = nodes[0].configuration.cluster.detectionTime * World.servicePatience
        guard now - known.since > limit else { return }
        violate(
            .survivorsHaveAll,
            "nobody serves, and \(trace.names.list(trackers.places)) could for "
                + "\((now - known.since).wholeMilliseconds) ms")
    }

    // MARK: - Requests

    /// What a slave has sent to its master may have been lost: it says it again.
    private mutating func watchForwarding(_ node: Int) {
        guard options.entry == .any, nodes[node].heldUntil <= now, checks.isWaited(at: node),
            !connectivity[node].isMaster
        else { return }
        let silence = now - checks.standing.drops.forwardedAt(node)
        let limit = nodes[node].told.cluster.keepalive * World.forwardPatience
        guard silence > limit, let own = nodes[node].inspection, own.isServing, own.leads == nil else { return }
        violate(
            .requestsAreKept,
            "requests wait at \(trace.names[node]), and it has told nobody of them for \(silence.wholeMilliseconds) ms")
    }

    // MARK: - What is heard

    /// A tracker has heard how another one fares: that is what it tells of it. (One word of 64 is looked at.)
    ///
    /// Of several words that it hears at one time it may heed one, and not the next.
    mutating func checkHeard(_ message: ClusterMessage, _ node: Int) {
        let isFirst = standing.heardAt[node] != now
        standing.heardAt[node] = now
        guard isFirst else { return }
        // A status is made of all that a tracker knows, so now and then is enough.
        guard tally.messagesDelivered & 63 == 0, case .keepalive(let keepalive) = message.body,
            message.destination == .all, nodes[node].isUp
        else { return }
        guard let status = nodes[node].clusterStatus(at: now),
            let view = status.trackers.first(where: { $0.life == message.sender }), view.silence == .zero,
            let role = view.role, view.life != status.life
        else { return }
        let isOther =
            view.position != keepalive.position || view.epoch != message.epoch
            || role != keepalive.role && status.master != view.life.id
        guard isOther else { return }
        violate(
            .statusIsTrue,
            "\(trace.names[node]) has just heard that tracker \(view.life.id) is at entry \(keepalive.position.index) "
                + "in \(message.epoch), and tells of entry \(view.position.index) in \(view.epoch), or of another role")
    }

    // MARK: - Commands

    /// The master says why it does not carry out what its operator wants with the members, or with its role.
    mutating func checkRefused(_ reason: String, by master: Int) {
        guard options.hasGoodWays, checks.promises.membersDecide, nodes[master].inspection?.leads != nil else {
            return
        }
        let isTooFew = reason.hasPrefix("too few of the members that remain")
        let isNotInStep =
            reason.hasPrefix("tracker ") && (reason.hasPart("does not follow") || reason.hasPart("cannot take over"))
        guard isTooFew || isNotInStep else { return }
        let ids = reason.numbers
        if isNotInStep, ids == [nodes[master].configuration.id] { return }
        // Who is no voter follows as well, and is not handed the role.
        let isHandover = reason.hasPart("cannot take over")
        let voters = nodes[master].inspection?.voters ?? []
        let inStep = ids.filter { (!isHandover || voters.contains($0)) && isInStep($0, with: master) }
        guard isTooFew ? inStep.count > ids.count / 2 : inStep.count == 1 else { return }
        violate(
            .changesAreJudged, "\(trace.names[master]) says \"\(reason)\", and \(inStep.inBrackets) are in step with it"
        )
    }

    /// A master that says that it has no quorum has none.
    mutating func checkQuorumLost(_ epoch: Epoch, by master: Int) {
        let since = now - nodes[master].told.cluster.keepalive * World.stepPatience
        guard options.hasGoodWays, checks.promises.membersDecide, isWell(master), nodes[master].heldUntil < since,
            standing.settledAt[master] < since
        else { return }
        let voters = nodes[master].inspection?.voters ?? []
        let inStep = voters.filter { isInStep($0, with: master, in: epoch) }
        guard inStep.contains(nodes[master].configuration.id), inStep.count > voters.count / 2 else { return }
        violate(
            .electionsAreNeeded,
            "\(trace.names[master]) gives up its role in \(epoch) for want of a quorum, and \(inStep.inBrackets) "
                + "follow it")
    }

    /// Whether a tracker has been in step with its master for so long that the master has to know.
    private mutating func isInStep(_ id: UInt32, with master: Int, in epoch: Epoch? = nil) -> Bool {
        guard let leads = epoch ?? nodes[master].inspection?.leads,
            let node = nodes.indices.first(where: { nodes[$0].configuration.id == id })
        else { return false }
        if node == master { return true }
        let since = now - nodes[node].told.cluster.keepalive * World.stepPatience
        guard isWell(node), let other = nodes[node].inspection, other.isServing, other.promised == leads,
            other.role == .slave, standing.settledAt[node] < since, standing.settledAt[master] < since,
            nodes[node].heldUntil < since, nodes[master].heldUntil < since
        else { return false }
        return bus.isClear(between: node, and: master, now: since)
    }
}

extension UInt32 {
    /// The places of the bits that are set.
    fileprivate var places: [Int] { (0..<32).filter { self >> UInt32($0) & 1 == 1 } }
}

extension String {
    /// The numbers in a sentence.
    fileprivate var numbers: [UInt32] {
        var numbers: [UInt32] = []
        var digits: UInt32?
        for byte in utf8 {
            if byte >= 48, byte < 58 {
                digits = (digits ?? 0) &* 10 &+ UInt32(byte - 48)
            } else if let number = digits {
                numbers.append(number)
                digits = nil
            }
        }
        if let digits { numbers.append(digits) }
        return numbers
    }
}

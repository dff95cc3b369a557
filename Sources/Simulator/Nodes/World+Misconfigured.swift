// Trackers that are told something else than the others, and who must notice.

import Primitives
import TrackerLogic
import Wire

extension World {
    /// What a misconfigured tracker may be told otherwise: what the others can find out, and what leaves it a tracker
    /// of the same promises.
    private static let mistakable: [SharedSetting] = [
        .members, .election, .vote, .keepalive, .missed, .minInterval, .targetRate, .peerLifetime,
    ]
    /// Keepalives within which of two trackers that hear each other one says that the other was told something else.
    private static let noticeKeepalives = 5

    /// Whether a tracker, in this life, was told something that keeps it from taking part.
    func isMisconfigured(_ node: Int) -> Bool {
        nodes[node].isUp && nodes[node].differing.contains { $0.isBinding && $0 != .members }
    }

    /// Whether a tracker, in this life, was told something that may keep it from taking part: other members do so only
    /// where it knows nothing yet.
    func mayBeLeftOut(_ node: Int) -> Bool { nodes[node].isUp && nodes[node].differing.contains { $0.isBinding } }

    /// Draws what a tracker is told for the life that begins: until all is well perhaps something else than the others.
    mutating func configure(_ node: Int) {
        nodes[node].setRight()
        guard !isHealed else { return }
        var random = RandomStream(seed, .misconfiguration, node, nodes[node].life)
        if let setting = nodes[node].mistake {
            mistake(setting, at: node, &random)
        } else {
            guard node >= nodes.count - options.misconfiguredCount, !random.oneIn(4) else { return }
            for _ in 0...random.below(2) {
                mistake(World.mistakable[random.below(World.mistakable.count)], at: node, &random)
            }
        }
        guard !nodes[node].differing.isEmpty else { return }
        // It may elect itself, and the others do without it.
        goesWrong(for: Instant(nanoseconds: 0) + options.coreLength - now)
        trace.line(now, .lives, of: node, "is told other settings than the others")
    }

    private mutating func mistake(_ setting: SharedSetting, at node: Int, _ random: inout RandomStream) {
        let right = nodes[node].configuration
        var wrong = nodes[node].told
        switch setting {
        case .members:
            guard right.cluster.mode == .quorum else { return }
            wrong.cluster.members = right.cluster.members + [99]
        case .election:
            let others = ClusterConfiguration.ElectionPolicy.allCases.filter { $0 != right.cluster.election }
            wrong.cluster.election = others[random.below(others.count)]
        case .vote: wrong.cluster.vote = .allDropped(after: .seconds(3))
        // Later than the others it may stand for master, and not sooner.
        case .keepalive: wrong.cluster.keepalive = right.cluster.keepalive * 2
        case .missed: wrong.cluster.missed = right.cluster.missed + 1
        case .minInterval: wrong.minInterval = right.minInterval + 1
        case .targetRate: wrong.targetRate = right.targetRate + 1
        case .peerLifetime: wrong.peerLifetime = right.peerLifetime + 30
        case .mode, .entry, .interval, .intervalJitter: return
        }
        nodes[node].tell(wrong, differingIn: setting)
    }

    /// A tracker says that another one was told something else: each of the two has been told such a thing.
    mutating func checkDifference(_ node: Int, from id: UInt32, in settings: [SharedSetting]) {
        guard let other = nodes.indices.first(where: { nodes[$0].inspection?.life.id == id }) else { return }
        noticed[node] |= 1 << UInt32(other)
        // Of members the log may say what neither was told, and an earlier life may have been told something else.
        let known = nodes[node].everDiffering | nodes[other].everDiffering
        for setting in settings where setting != .members && known & 1 << UInt32(setting.rawValue) == 0 {
            violate(
                .unlikeAreToldApart,
                "\(trace.names[node]) says that \(trace.names[other]) was told another setting \(setting.rawValue), "
                    + "and both were told the same")
        }
    }

    /// Of two trackers that hear each other, and were told what keeps them apart, one has said so.
    mutating func watchMisconfigured(_ node: Int) {
        guard options.misconfiguredCount > 0, options.hasGoodWays else { return }
        for other in nodes.indices where other != node {
            let mayNotice =
                isMisconfigured(node) != isMisconfigured(other) && hearsAll(node) && hearsAll(other)
                && bus.isClear(between: node, and: other, now: now)
                && nodes[node].told.cluster.members == nodes[other].told.cluster.members
            guard mayNotice else {
                unlikeSince[node * nodes.count + other] = nil
                continue
            }
            guard let since = unlikeSince[node * nodes.count + other] else {
                unlikeSince[node * nodes.count + other] = now
                continue
            }
            let isNoticed = (noticed[node] >> UInt32(other) | noticed[other] >> UInt32(node)) & 1 == 1
            let keepalive = max(nodes[node].told.cluster.keepalive, nodes[other].told.cluster.keepalive)
            if !isNoticed, now - since > keepalive * World.noticeKeepalives {
                violate(
                    .unlikeAreToldApart,
                    "\(trace.names[node]) and \(trace.names[other]) were told different settings, and neither says so")
            }
        }
    }

    /// A tracker becomes master: in quorum mode the others have promised it that, and so it is of their kind.
    mutating func checkMaster(_ node: Int) {
        guard checks.promises.membersDecide, options.hasGoodWays, isMisconfigured(node) else { return }
        let right = nodes.indices.count { connectivity[$0].isThere && !isMisconfigured($0) }
        guard right > nodes.count / 2 else { return }
        let isKnown = nodes.indices.contains { noticed[$0] >> UInt32(node) & 1 == 1 }
        guard isKnown else { return }
        violate(.unlikeAreToldApart, "\(trace.names[node]) is master, and was told other settings than the others")
    }

    private mutating func hearsAll(_ node: Int) -> Bool {
        guard connectivity[node].isThere, connectivity[node].isOnBus, connectivity[node].isToldOnBus,
            nodes[node].isUp, nodes[node].heldUntil <= now, !nodes[node].isStopping,
            let inspection = nodes[node].inspection
        else { return false }
        return inspection.life.id != 0
    }

    /// A life ends, or begins: what was noticed of it counts no more.
    mutating func forgetNoticed(_ node: Int) {
        guard options.misconfiguredCount > 0 else { return }
        noticed[node] = 0
        for other in nodes.indices {
            noticed[other] &= ~(1 << UInt32(node))
            unlikeSince[node * nodes.count + other] = nil
            unlikeSince[other * nodes.count + node] = nil
        }
    }
}

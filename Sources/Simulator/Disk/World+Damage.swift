// Disks that are damaged: when, whose, and what becomes of it.

import Primitives
import TrackerLogic
import Wire

extension World {
    /// Plans the next damage.
    mutating func planDamage() {
        guard let mean = options.faults.damageGap, !isHealed else { return }
        var random = RandomStream(seed, .damageGap, damageCount)
        queue.put(.damage, at: now + random.between(.milliseconds(100), mean * 2))
    }

    mutating func nextDamage() {
        guard !isHealed else { return }
        damageCount += 1
        planDamage()
        var random = RandomStream(seed, .damage, damageCount)
        let victim = random.below(nodes.count)
        let isDeadly = random.oneIn(2)
        guard connectivity[victim].isThere, mayDamage(victim) else { return }
        nodes[victim].disk.memory?.damage()
        tally.damages += 1
        trace.line(now, [.faults, .disk], of: victim, "has a damaged disk")
        trace.absorb(now, 7, victim)
        // Else it shows when the tracker dies of something else.
        if isDeadly {
            die(
                victim, "dies, and its disk is damaged", by: "damage to its disk",
                for: FaultPlan.downtime(&random))
        }
    }

    /// Whether one more disk may be damaged: of three one, of five two, until those who had them are whole again.
    ///
    /// In survivor mode, what a disk held others must hold, too, and that shows only while all are in step.
    private mutating func mayDamage(_ victim: Int) -> Bool {
        guard profile == .paxos else { return mayLoseMemory(victim) }
        // Who begins anew does not know of a change of members while nothing is decided behind it.
        let known = nodes.indices.reduce(0) { max($0, nodes[$1].appliedIndex ?? 0) }
        guard known > membersChangedAt else { return false }
        let voters = members.count - (isRemovalAsked ? 1 : 0)
        var unwell = 0
        for node in nodes.indices where node != victim && connectivity[node].isThere {
            if nodes[node].disk.memory?.isDamaged == true || nodes[node].disk.record.promise?.hasFullState != true {
                unwell += 1
            }
        }
        let isWell =
            nodes[victim].disk.memory?.isDamaged == false && nodes[victim].disk.record.promise?.hasFullState == true
        return isWell && unwell < (voters - 1) / 2
    }

    /// A tracker that starts reads its disk: one that is damaged begins anew, without a vote.
    mutating func readDisk(_ node: Int) {
        guard nodes[node].disk.memory != nil else { return }
        let configuration = nodes[node].configuration
        switch nodes[node].disk.readBack(configuration) {
        case .whole, nil: return
        case .falseAlarm(let damage):
            violate(.recordIsReadable, "node \(node): nothing has happened to its disk, and \(damage)")
        case .unnoticed(let what):
            violate(.damageIsSaid, "node \(node) has not noticed what has become of its disk: \(what)")
        case .damaged(let damage, let promised):
            tally.damagesFound += 1
            trace.line(now, .disk, of: node, "finds its disk damaged: \(damage)")
            mark(node, .other, "its disk is damaged: \(damage)")
            let promise = Promise.afterLoss(
                epoch: promised, secret: secret, shardCount: configuration.shardCount, planted: configuration)
            nodes[node].disk.beginAnew(promise)
            checks.memoryLost(node: node, at: now)
            wholeStop?.trackersWithoutNote |= 1 << UInt32(node)
        }
    }
}

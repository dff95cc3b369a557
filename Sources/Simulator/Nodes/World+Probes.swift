// Trackers that run, compared with new ones that are made from copies of their disks.

import Primitives
import TrackerLogic
import Wire

/// Trackers that run, compared with new ones that are made from copies of their disks.
///
/// Nothing in the world learns of it: it draws from streams of its own, and leaves no trace.
extension World {
    mutating func planProbe(_ node: Int) {
        let gap = probes[node].between(.milliseconds(1), options.probeGap * 2)
        queue.put(.probe(node), at: now + gap)
    }

    /// Looks now and then at what a tracker keeps for speed, each in its turn.
    mutating func auditNow() {
        guard eventCount & 1023 == 0 else { return }
        audit((eventCount >> 10) % nodes.count)
    }

    mutating func audit(_ node: Int) {
        if let fault = nodes[node].audit() {
            violate(.bookkeepingAgrees, "\(trace.names[node]): \(fault)")
        }
        guard let counters = nodes[node].counters, let fault = checks.tellings.fault(in: counters, node) else {
            return
        }
        violate(.peopleAreTold, "\(trace.names[node]) \(fault)")
    }

    /// Looks at what is known before everybody says it anew: whoever was answered is there where all are of one mind.
    ///
    /// In survivor mode not where a tracker was stopped in good order, for who comes back from that need not bring its
    /// swarms; nor where intervals are of a minute or less, for they run out meanwhile, by the clock of one side sooner
    /// than by that of the other.
    mutating func lookBeforeWaking() {
        guard hasBus, checks.promises.hasOneHistory || tally.stops == 0 && options.interval > 60 else { return }
        var master: (node: Int, position: Position)?
        for node in nodes.indices where connectivity[node].isThere {
            guard let view = nodes[node].inspection, view.isServing, view.hasFullState, !view.isFenced else { return }
            if view.leads != nil { master = (node, view.position) }
        }
        guard let master, let state = nodes[master.node].state else { return }
        checks.checkState(state, master.node, at: now)
    }

    mutating func probe(_ node: Int) {
        planProbe(node)
        // Of one that is taking a state over, the disk has one half, and the memory another.
        guard nodes[node].isUp, let own = nodes[node].inspection, own.isServing, own.hasFullState,
            nodes[node].disk.record.promise?.hasFullState == true, nodes[node].disk.memory?.isDamaged != true
        else { return }
        tally.probes += 1
        do throws(RecordDamaged) {
            // A tracker alone takes what is on its disk for decided, and has not applied the last of it yet.
            var copy = try TrackerNode.recovered(
                from: nodes[node].disk.record, through: hasBus ? .max : own.position.index,
                configuration: nodes[node].configuration, secret: secret, random: &probes[node])
            // What becomes of the last entry is settled when it starts.
            var unheard = Effects()
            copy.step(.started, now: nodes[node].clock.reading(at: now), into: &unheard)
            checks.compare(copy, with: own, node: node, at: now)
            let settled = nodes[node].state?.settled
            if checks.promises.hasOneHistory, copy.state.position == own.position, let settled,
                settled != copy.state.settled
            {
                violate(
                    .statesAgree,
                    "a copy of the disk of \(trace.names[node]) knows other settled requests than that one")
            }
        } catch {
            violate(.recordIsReadable, "in a copy of the disk of node \(node): \(error)")
        }
    }
}

/// What goes wrong by the clock, how it is put right in the end, and what must be so then.

import PeerLogic
import Primitives
import TrackerLogic
import Wire

extension World {
    mutating func nextFault() {
        guard !isHealed, let gap = plan.gap() else { return }
        queue.put(.fault, at: now + gap)
        guard let fault = plan.fault() else { return }
        trace.line(now, "fault", "\(fault)")
        let node = plan.victim(of: nodes.count)
        switch fault {
        case .crash: crash(node, nil)
        case .diskFails(let failure, let duration):
            nodes[node].disk.failure = failure
            if failure != .broken { queue.put(.diskRecovers(node), at: now + duration) }
        case .diskSlow(let delay, let duration):
            nodes[node].disk.options.maxDelay = delay
            queue.put(.diskRecovers(node), at: now + duration)
        case .clockStep(let milliseconds): nodes[node].clock.step(wall: milliseconds)
        case .cleanStop: stop(node)
        case .pause(let duration): if nodes[node].heldUntil <= now { nodes[node].heldUntil = now + duration }
        case .darkness(let duration): network.isDarkUntil = now + duration
        case .ruleChange: changeRules()
        }
    }

    mutating func recoverDisk(_ node: Int) {
        nodes[node].disk.failure = nil
        nodes[node].disk.options.maxDelay = isHealed ? DiskOptions.healed.maxDelay : options.disk.maxDelay
    }

    /// Compares a node that runs with a copy of its disk.
    mutating func probe() {
        // Where nothing goes wrong there is less to see.
        let gap = options.probeGap * (isHealed ? 10 : 2)
        if !isClosing { queue.put(.probe, at: now + probes.between(.milliseconds(1), gap)) }
        for node in nodes.indices {
            guard let machine = nodes[node].machine, machine.status.role == .master else { continue }
            tally.probes += 1
            do throws(RecordDamaged) {
                let copy = try TrackerNode.recovered(
                    from: nodes[node].disk.record, through: machine.state.index,
                    configuration: nodes[node].configuration, random: &probes)
                checks.compare(machine, with: copy, at: now)
            } catch {
                checks.violate(.recordIsReadable, at: now, "in a copy of the disk: \(error)")
            }
        }
    }

    // MARK: - All is well again

    /// Ends the faults.
    mutating func heal() {
        isHealed = true
        trace.line(now, "world", "is healed")
        network.options = .healed
        network.isDarkUntil = now
        for node in nodes.indices {
            nodes[node].disk.options = .healed
            nodes[node].disk.failure = nil
            if nodes[node].disk.isBroken { crash(node, nil) }
        }
        queue.put(.nudge, at: now + World.repairTime)
    }

    /// Everybody asks anew, whatever he was waiting for.
    mutating func nudge() {
        nudgedAt = now
        trace.line(now, "world", "everybody asks anew")
        for node in nodes.indices where nodes[node].machine?.status.role != .master {
            checks.violate(.healedIsAnswered, at: now, "node \(node) does not serve")
        }
        if sabotage == .fallsSilentAfterFaults {
            for node in nodes.indices { nodes[node].heldUntil = now + .seconds(1_000_000) }
        }
        for place in clients.indices {
            switch (clients[place].kind, clients[place].stage) {
            case (.scraper, _): stepClient(place, .scrapeWanted(workload.scrape()))
            case (.peer, .absent): if workload.random.oneIn(2) { arrive(place) }
            case (.peer, .present), (.peer, .leaving): stepClient(place, .updateWanted)
            }
        }
        queue.put(.reckoning, at: now + longestLife)
    }

    /// After which whoever has fallen silent is gone: the longest interval and a fifth, on the slowest clock, and two
    /// rounds of the sweep.
    private var longestLife: Duration {
        let interval = options.interval * IntervalPolicy.maxStretch + options.intervalJitter
        return .seconds(Int64(interval) * 6 / 5 * 3 / 2 + 180)
    }

    /// Looks at what has become of all.
    mutating func reckon() {
        trace.line(now, "world", "is looked at")
        for place in clients.indices {
            if let askedAt = clients[place].askedAt, now - askedAt > World.answerBound {
                checks.violate(
                    .healedIsAnswered, at: now,
                    "client \(place) has had no answer for \((now - askedAt).wholeSeconds) s")
            }
        }
        let present = clients.filter { $0.kind == .peer && $0.stage == .present && $0.isGranted }
            .map { ($0.infoHash, $0.endpoint) }
        for node in nodes.indices {
            guard let machine = nodes[node].machine else {
                checks.violate(.healedIsAnswered, at: now, "node \(node) is dead")
                continue
            }
            checks.checkExact(machine, present, at: now)
            checks.checkRules(machine, rules, torrentCount: torrents.count, at: now)
        }
        queue.put(.end, at: now)
    }

    /// The last thing: an orderly stop, and a look at what it leaves.
    mutating func end() {
        isClosing = true
        for node in nodes.indices { stop(node) }
    }
}

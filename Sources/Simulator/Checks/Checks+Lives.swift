/// Deaths and births of nodes, and comparisons of what they know with what is on their disks.

import Primitives
import TrackerLogic
import Wire

extension Checks {
    /// A node has read its record back, and has not started yet.
    mutating func recovered(_ node: Int, _ machine: TrackerNode, _ record: DiskRecord, at time: Instant) {
        proposed[node] = nil
        // What is in the record of the only voter is decided, told or not.
        while model.index < record.lastIndex, let bytes = record.entry(model.index + 1) {
            guard let header = try? EntryHeader(bytes) else {
                return violate(.recordIsReadable, at: time, "entry \(model.index + 1) is damaged")
            }
            if header.time < model.time {
                violate(.timeNeverRunsBack, at: time, "entry \(header.index) is before the one before it")
            }
            decide(header, bytes, at: time)
            advance(header, bytes, machine.state.table, at: time) { _, _, _ in }
        }
        if machine.state.time < model.time {
            violate(
                .timeNeverRunsBack, at: time,
                "the node comes back \(model.time.milliseconds - machine.state.time.milliseconds) ms ago")
        }
        if let difference = model.difference(from: machine.state) {
            violate(.statesAgree, at: time, "after a restart: \(difference)")
        }
        if let account = ledger.broken(by: machine.state) {
            violate(.answeredSurvives, at: time, "peer \(account.address) of \(account.infoHash) is lost")
        }
        ledger.settle(with: machine.state)
    }

    /// A node that runs, and one that was made from a copy of its disk, at the same index.
    mutating func compare(_ machine: TrackerNode, with copy: TrackerNode, at time: Instant) {
        if machine.state.digest != copy.state.digest || machine.state.index != copy.state.index {
            violate(
                .statesAgree, at: time,
                "at entry \(machine.state.index), and \(copy.state.index) in a copy of its disk")
        }
        if let difference = model.difference(from: machine.state) { violate(.statesAgree, at: time, difference) }
        if let difference = model.difference(from: copy.state) {
            violate(.statesAgree, at: time, "in a copy of its disk: \(difference)")
        }
        if let account = ledger.broken(by: machine.state) {
            violate(.answeredSurvives, at: time, "peer \(account.address) of \(account.infoHash) is forgotten")
        }
    }

    /// A node has stopped in good order.
    ///
    /// - Parameter isWritten: whether the disk has taken the last of its record.
    mutating func stopped(_ record: DiskRecord, pendingWrites: Int, isWritten: Bool, at time: Instant) {
        if pendingWrites > 0 {
            violate(.stopEnds, at: time, "\(pendingWrites) writes are under way when it is done")
        }
        hangUp()
        guard !configuration.keepsSwarms, isWritten else { return }
        let swarms = record.chunks.reduce(0) { count, chunk in
            chunk.number == 0 ? count : count + ((try? chunk.swarms().count) ?? 1)
        }
        if swarms > 0 || !record.entries.isEmpty {
            violate(.stopEmptiesSwarms, at: time, "\(swarms) swarms and \(record.entries.count) entries are left")
        }
    }

    /// The peers in the table after a long time without faults.
    mutating func checkExact(_ machine: TrackerNode, _ present: [(InfoHash, SocketAddress)], at time: Instant) {
        for (infoHash, address) in present where !machine.state.table.contains(infoHash, address) {
            violate(.healedIsExact, at: time, "peer \(address) of \(infoHash) is not in the table")
        }
        let count = machine.state.table.counts.peers
        if count != present.count {
            violate(.healedIsExact, at: time, "\(count) peers are in the table, \(present.count) are there")
        }
    }

    /// The rules after a long time without faults.
    mutating func checkRules(_ machine: TrackerNode, _ rules: AccessRules, torrentCount: Int, at time: Instant) {
        checkAccess(machine, rules, at: time)
        if machine.state.registry.count != torrentCount {
            violate(
                .rulesAreInForce, at: time,
                "\(machine.state.registry.count) torrents are registered, \(torrentCount) were commanded")
        }
    }

    /// The rules of a node that says that it serves.
    mutating func checkAccess(_ machine: TrackerNode, _ rules: AccessRules, at time: Instant) {
        let access = machine.state.access
        let isRight =
            access.mode == rules.mode && access.infoHashCount == rules.infoHashes.count
            && access.userCount == rules.users.count
        if !isRight {
            violate(
                .rulesAreInForce, at: time,
                "access is \(access.mode) with \(access.infoHashCount) info hashes, commanded was \(rules.mode) with "
                    + "\(rules.infoHashes.count)")
        }
    }
}

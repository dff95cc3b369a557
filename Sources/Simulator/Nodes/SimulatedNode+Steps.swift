// A node of a cluster under the eyes of the checkers.

import Primitives
import TrackerLogic
import Wire

extension SimulatedNode {
    /// Takes a step under the eyes of the checkers, and writes it into the trace.
    ///
    /// Here, for only `mutating` methods of a node look at its machine without copying all of it.
    mutating func step(
        _ event: Event, now: Instant, into effects: inout Effects, _ checks: inout Checks,
        _ trace: inout Trace, _ tampering: inout Tampering?
    ) {
        guard isUp else { preconditionFailure("only the living take steps") }
        let reading = clock.reading(at: now)
        let kind = EventKind(event)
        checks.willStep(node: number, event: event, kind, reading: reading, at: now)
        if recordingByteCount != nil { record(event, now: reading, effects) }
        machine?.step(event, now: reading, into: &effects)
        if recording != nil, let machine { recording?.stepped(effects, machine.state.position) }
        tampering?.spoil(&effects)
        let view = checks.stepped(
            node: number, event: event, kind, machine: &machine!, record: disk.record, effects: effects, at: now)
        if case .some = view.pending { pendingAt = now }
        trace.absorb(now, 1, number)
        trace.absorb(number, event, view.position.index, view.digest, effects)
        if trace.isListening { trace.line(now, number, event, effects, machine!.inspection) }
    }

    private mutating func record(_ event: Event, now: ClockReading, _ effects: Effects) {
        guard let machine, let byteCount = recordingByteCount else { return }
        if recording == nil { recording = NodeRecording(byteCount: byteCount, machine, now: now) }
        recording?.record(event, machine, now: now, effects)
    }

    /// A life begins under the eyes of the checkers.
    mutating func live(_ machine: consuming TrackerNode, now: Instant, _ checks: inout Checks) {
        live(machine)
        checks.started(node: number, machine: self.machine!, record: disk.record, at: now)
    }

    /// The last entry that it has applied; nil while it is dead.
    var appliedIndex: UInt64? {
        @inline(never) mutating get { machine?.state.index }
    }

    /// What a node is, has and waits for, in words, with clients as `client` calls them; nil while it is dead.
    mutating func account(at now: Instant, client: (SocketAddress) -> String) -> NodeAccount? {
        guard isUp else { return nil }
        let clock = clock
        return machine?.account(
            now: clock.reading(at: now).monotonic, since: { "\(Figure.seconds(clock.worldTime(of: $0))) s" },
            client: client)
    }

    /// What it tells of its cluster; nil while it is dead.
    mutating func clusterStatus(at now: Instant) -> ClusterStatus? {
        let reading = clock.reading(at: now)
        return machine?.clusterStatus(now: reading.monotonic)
    }

    /// What is wrong with what it keeps for speed; nil where all is right, or it is dead.
    mutating func audit() -> String? { machine?.audit() }

    /// nil while it is dead.
    var counters: Counters? { mutating get { machine?.counters } }

    /// What it has applied; nil while it is dead.
    var state: ReplicatedState? { mutating get { machine?.state } }

    /// nil while it is dead.
    var inspection: Inspection? { mutating get { machine?.inspect(knowing: []) } }
}

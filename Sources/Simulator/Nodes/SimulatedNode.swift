// A tracker node with all that its owner holds for it.

import Primitives
import TrackerLogic
import Wire

/// A tracker node with all that its owner holds for it: clocks, a disk, the datagrams that wait.
struct SimulatedNode: Sendable {
    /// Datagrams that wait for the node at most; the kernel drops what comes past them.
    static let inboxLimit = 256

    let number: Int
    /// What all trackers are told alike, but for their numbers.
    let configuration: NodeConfiguration
    /// What it is told in this life.
    private(set) var told: NodeConfiguration
    /// In what that differs.
    private(set) var differing: [SharedSetting] = []
    /// In what it is to differ, by a script.
    var mistake: SharedSetting?
    /// In what it differs in this life, or has in an earlier one: a bit each.
    private(set) var everDiffering: UInt32 = 0
    /// The node itself; nil while it is dead.
    ///
    /// Only `mutating` methods of this type look at it without copying all of it.
    var machine: TrackerNode?
    private(set) var isUp = false
    var clock: SimulatedClock
    var disk: SimulatedDisk
    /// Draws incarnations, secrets and seeds.
    var random: RandomStream
    /// Counts births and deaths, so that what was meant for one life does not reach the next.
    var life = 0
    private var inbox = DatagramBatch()
    /// Room for those that go back into the inbox.
    private var late = DatagramBatch()
    private var isPollDue = false
    /// When the world is to wake it.
    var wakeAt: Instant?
    /// The deadline that was last asked for, and when it is in the world: most steps do not change it.
    private var deadline = (shown: Instant(nanoseconds: .min), world: Instant(nanoseconds: 0))
    /// Until when its process is held; it is not held anew before that, so that what is put off keeps its order.
    var heldUntil = Instant(nanoseconds: 0)
    /// When it last had an entry under way.
    var pendingAt = Instant(nanoseconds: 0)
    /// When it was last told of a write; tales keep their order.
    var lastTold = Instant(nanoseconds: 0)
    /// Whether it has been asked to stop.
    var isStopping = false
    /// Bytes of what each life leaves behind; nil where nothing is recorded.
    var recordingByteCount: Int?
    /// What this life leaves behind.
    var recording: NodeRecording?
    /// What earlier lives have left behind.
    private(set) var recordings: [RecordingRoom] = []

    init(
        number: Int, configuration: NodeConfiguration, clock: SimulatedClock, disk: SimulatedDisk, random: RandomStream
    ) {
        self.number = number
        self.configuration = configuration
        told = configuration
        self.clock = clock
        self.disk = disk
        self.random = random
    }

    // MARK: - Its sockets

    /// - Returns: whether anybody hears it.
    mutating func hear(_ bytes: [UInt8], from remote: SocketAddress) -> Bool {
        guard isUp, inbox.datagrams.count < SimulatedNode.inboxLimit else { return false }
        let local = AddressPlan.node(number, isIPv6: !remote.isIPv4)
        inbox.append(bytes, remote: remote, local: local, socket: remote.isIPv4 ? 0 : 1)
        return true
    }

    /// When the node looks at its sockets; nil where nothing waits there, or it is known already.
    mutating func planPoll(now: Instant, maxDelay: Duration) -> Instant? {
        guard !isPollDue, !inbox.isEmpty else { return nil }
        isPollDue = true
        return now + random.between(.microseconds(1), maxDelay)
    }

    /// The datagrams that the node takes now; nil while the entry that gathers has no room.
    ///
    /// Then they lie where they are, until the node has been told of a write.
    mutating func takeBatch() -> DatagramBatch? {
        isPollDue = false
        guard machine?.hasRoom == true else { return nil }
        let limit = min(64, max(1, configuration.limits.updatesPerEntry / 2))
        var batch = DatagramBatch()
        swap(&batch, &inbox)
        while batch.datagrams.count > limit {
            // What is too much goes back.
            let rest = batch.datagrams.count - 1
            let datagram = batch.datagrams[rest]
            late.append(batch.payload(rest), remote: datagram.remote, local: datagram.local, socket: datagram.socket)
            batch.datagrams.removeLast()
        }
        for number in late.datagrams.indices.reversed() {
            let datagram = late.datagrams[number]
            inbox.append(late.payload(number), remote: datagram.remote, local: datagram.local, socket: datagram.socket)
        }
        late.removeAll()
        return batch
    }

    // MARK: - Its steps

    /// When the node is to be woken; nil where it does not want to be, or will be early enough.
    mutating func planWake(now: Instant) -> Instant? {
        guard let shown = machine?.findDeadline() else { return nil }
        if shown != deadline.shown { deadline = (shown, clock.worldTime(of: shown)) }
        let time = max(deadline.world, now)
        if let wakeAt, wakeAt <= time { return nil }
        wakeAt = time
        return time
    }

    // MARK: - Its lives

    /// It is told what the others are told.
    mutating func setRight() {
        guard !differing.isEmpty else { return }
        told = configuration
        differing = []
    }

    /// It is told something else than the others.
    mutating func tell(_ wrong: NodeConfiguration, differingIn setting: SharedSetting) {
        told = wrong
        guard !differing.contains(setting) else { return }
        differing.append(setting)
        everDiffering |= 1 << UInt32(setting.rawValue)
    }

    mutating func live(_ machine: TrackerNode) {
        self.machine = machine
        isUp = true
        life += 1
    }

    mutating func die() {
        endRecording()
        machine = nil
        isUp = false
        life += 1
        inbox.removeAll()
        isPollDue = false
        wakeAt = nil
        heldUntil = Instant(nanoseconds: 0)
        isStopping = false
    }

    /// What this life leaves behind goes to that of the others.
    mutating func endRecording() {
        recording?.end()
        if let recording { recordings.append(recording.room) }
        recording = nil
    }
}

// What the node's loop measures as it goes.

import Datagrams
import Primitives
import TrackerLogic
import Web
import Wire

/// What the node's loop measures as it goes: answers, commits, writes, and the way over the bus and back.
///
/// It looks at what goes in and out; the logic knows nothing of it. Owned by the node's thread; nothing here allocates
/// in the steady state.
package struct LoopTally {
    /// Of the windows in which `LatencyTally.latency` looks back.
    static let window = Duration.seconds(5)
    /// Entries on their way that are timed; a master has one, who catches up may have many.
    private static let maxEntries = 64

    package private(set) var figures = NodeFigures()
    private var clock = AnswerClock()
    /// The last token of each hand-over to the store, oldest first from `firstWrite` on.
    private var writes: [(token: PersistToken, at: Instant)] = []
    private var firstWrite = 0
    private var entries: [(index: UInt64, at: Instant)] = []
    private var turnedAt: Instant?
    private var countedThen: (announces: UInt64, at: Instant)?
    private(set) var announceRate: UInt32 = 0
    private var drops = RecentGrowth()
    private var echoes: [(life: Life, stamp: UInt64, at: Instant)] = []

    package init() {}

    // MARK: - Answers

    package mutating func heard(_ batch: borrowing DatagramBatch, at now: Instant) { clock.heard(batch, at: now) }

    package mutating func replied(_ batch: borrowing DatagramBatch, at now: Instant) {
        clock.replied(batch, at: now, announces: &figures.announces, scrapes: &figures.scrapes)
    }

    // MARK: - Writes and commits

    package mutating func submitted(_ persists: [Persist], at now: Instant) {
        guard let last = persists.last else { return }
        writes.append((last.token, now))
        for persist in persists {
            guard case .append(let entry) = persist.change else { continue }
            let index = entry.header.index
            entries.removeAll { $0.index >= index }
            if entries.count < LoopTally.maxEntries { entries.append((index, now)) }
        }
    }

    package mutating func written(_ token: PersistToken, at now: Instant) {
        while firstWrite < writes.count, writes[firstWrite].token <= token {
            figures.writes.record(now - writes[firstWrite].at)
            firstWrite += 1
        }
        if firstWrite == writes.count {
            writes.removeAll(keepingCapacity: true)
            firstWrite = 0
        }
    }

    package var awaitsCommit: Bool { !entries.isEmpty }

    /// All entries up to this one are decided and applied.
    package mutating func applied(through index: UInt64, at now: Instant) {
        guard let first = entries.first, first.index <= index else { return }
        for entry in entries where entry.index <= index { figures.commits.record(now - entry.at) }
        entries.removeAll { $0.index <= index }
    }

    // MARK: - The bus

    /// A report of another tracker has come.
    package mutating func heard(_ report: TrackerReport, of sender: Life, own: UInt64, at now: Instant) {
        echoes.removeAll { $0.life.id == sender.id }
        if echoes.count >= TrackerReport.Limits.echoes { echoes.removeFirst() }
        echoes.append((sender, report.stamp, now))
        for echo in report.echoes where echo.incarnation == own && echo.stamp <= UInt64(Int64.max) {
            let span = now.nanoseconds &- Int64(bitPattern: echo.stamp) &- Int64(echo.held) * 1000
            // What it says may be nonsense, or be about a report of long ago.
            guard span >= 0, span < Int64(TrackerReport.Limits.span) * 1000 else { continue }
            figures.roundTrips.record(Duration(nanoseconds: span))
        }
    }

    /// Puts in what is to be as of the moment of sending.
    package func stamp(_ report: inout TrackerReport, _ now: ClockReading) {
        report.stamp = UInt64(bitPattern: now.monotonic.nanoseconds)
        report.wallTime = min(UInt64(clamping: now.wall.milliseconds), TrackerReport.Limits.total)
        report.echoes = echoes.filter { now.monotonic - $0.at < .seconds(60) }.map { echo in
            let held = (now.monotonic - echo.at).nanoseconds / 1000
            return TrackerReport.Echo(
                incarnation: echo.life.incarnation, stamp: echo.stamp, held: UInt32(clamping: held))
        }
    }

    // MARK: - Windows

    /// Brings the figures of the last seconds up to date.
    package mutating func turn(announces: UInt64, at now: Instant) {
        guard let then = turnedAt else {
            turnedAt = now
            countedThen = (announces, now)
            return
        }
        guard now - then >= LoopTally.window else { return }
        turnedAt = now
        if let before = countedThen {
            let millis = max((now - before.at).nanoseconds / 1_000_000, 1)
            let count = announces >= before.announces ? announces - before.announces : 0
            announceRate = UInt32(clamping: min(count, 1 << 40) * 1000 / UInt64(millis))
        }
        countedThen = (announces, now)
        figures.announces.turn()
        figures.scrapes.turn()
        figures.commits.turn()
        figures.writes.turn()
        figures.roundTrips.turn()
    }

    package mutating func look(at sockets: DatagramSockets, now: Instant) {
        figures.datagrams = sockets.counters
        figures.lostByKernel = sockets.lostByKernel
        drops.note(figures.lostByKernel, at: now)
        figures.lostLately = drops.growth
        figures.receiveBuffer = sockets.sockets.map(\.receiveBufferByteCount).min() ?? 0
        figures.wantedReceiveBuffer = sockets.sockets.isEmpty ? 0 : DatagramSocket.Options().receiveBufferByteCount
    }
}

/// When requests over UDP came that are still to be answered: a table of fixed size, in which who comes later may take
/// the place of who came before, so that a few answers of a great many are not timed.
struct AnswerClock {
    private static let slotCount = 1 << 14
    /// A client that asks again with the same transaction has been waiting since it first asked.
    private static let patience = Duration.seconds(15)

    private struct Slot {
        var key: UInt64 = 0
        var at = Instant(nanoseconds: 0)
        var isScrape = false
    }

    private var slots = [Slot](repeating: Slot(), count: slotCount)

    mutating func heard(_ batch: borrowing DatagramBatch, at now: Instant) {
        for index in batch.datagrams.indices {
            let datagram = batch.datagrams[index]
            guard datagram.byteCount >= 16 else { continue }
            let span = batch.bytes.span.bytes
            let action = span.u32(at: Int(datagram.offset) + 8)
            guard action == 1 || action == 2 else { continue }
            let key = AnswerClock.key(datagram.remote, span.u32(at: Int(datagram.offset) + 12))
            let place = Int(truncatingIfNeeded: key) & (AnswerClock.slotCount - 1)
            if slots[place].key == key, now - slots[place].at < AnswerClock.patience { continue }
            slots[place] = Slot(key: key, at: now, isScrape: action == 2)
        }
    }

    mutating func replied(
        _ batch: borrowing DatagramBatch, at now: Instant, announces: inout LatencyTally, scrapes: inout LatencyTally
    ) {
        for index in batch.datagrams.indices {
            let datagram = batch.datagrams[index]
            guard datagram.byteCount >= 8 else { continue }
            let key = AnswerClock.key(datagram.remote, batch.bytes.span.bytes.u32(at: Int(datagram.offset) + 4))
            let place = Int(truncatingIfNeeded: key) & (AnswerClock.slotCount - 1)
            guard slots[place].key == key else { continue }
            if slots[place].isScrape {
                scrapes.record(now - slots[place].at)
            } else {
                announces.record(now - slots[place].at)
            }
            slots[place].key = 0
        }
    }

    @inline(__always)
    private static func key(_ remote: SocketAddress, _ transaction: UInt32) -> UInt64 {
        let address = remote.high ^ (remote.low &* 0x9E37_79B9_7F4A_7C15)
        return mixed(address ^ UInt64(remote.port) << 32 ^ UInt64(transaction)) | 1
    }
}

// All that happens in a cluster, as one number and, where wanted, as text.

import Primitives
import TrackerLogic
import Wire

/// All that happens in a cluster, as one number and, where wanted, as text: time, one column for each tracker, and what
/// happened.
///
///          seconds │ tracker 1        │ tracker 2        │ tracker 3        │ what happens
///        12.345678 │ M 2.3 14+        │ S 2.3 14         │ -                │ tracker 1 hears 2: OK [2.3] entry 15
///
/// A column holds role (M master, m not serving yet, S slave, s not in good standing, C candidate, N newcomer,
/// F fenced, - down), the epoch promised, and the last entry applied.
///
/// The number takes in numbers only: how lines are worded changes no hash.
struct Trace: Sendable {
    private var sum = TraceHash()
    private(set) var lines: [TraceLine] = []
    private(set) var isRecording: Bool
    /// Whether it is still noted what is written, for people who look at what waits.
    private var knowsWrites = false
    let names: TrackerNames
    private let clients: TraceNames
    private var columns: [String]
    /// For each tracker, the writes that it has not been told of.
    private var writes: [[(token: PersistToken, name: String)]]
    /// When the message was sent that is delivered now, and late.
    private var sentAt: Instant?

    init(names: TrackerNames, clients: TraceNames, isRecording: Bool) {
        self.names = names
        self.clients = clients
        self.isRecording = isRecording
        columns = Array(repeating: "-", count: names.short.count)
        writes = Array(repeating: [], count: names.short.count)
    }

    var hash: UInt64 { sum.value }

    /// Whether steps are to be told to it in words.
    var isListening: Bool { isRecording || knowsWrites }

    /// What happens is not written down any more.
    mutating func stopRecording() { (isRecording, knowsWrites) = (false, isRecording || knowsWrites) }

    /// What a write is that a tracker has not been told of.
    func write(of node: Int, _ token: PersistToken) -> String {
        writes[node].first { $0.token == token }?.name ?? "write \(token.rawValue)"
    }

    /// Gives away the lines so far.
    mutating func takeLines() -> [TraceLine] {
        let taken = lines
        lines = []
        return taken
    }

    mutating func absorb(_ word: UInt64) { sum.absorb(word) }

    mutating func absorb(_ time: Instant, _ tag: UInt64, _ place: Int) {
        sum.absorb(UInt64(bitPattern: time.nanoseconds) ^ tag << 56 ^ UInt64(place) << 48)
    }

    /// A step of a node, with all that came of it.
    mutating func absorb(_ node: Int, _ event: Event, _ position: UInt64, _ digest: UInt64, _ effects: Effects) {
        sum.absorb(UInt64(node) << 32 | event.tag << 16 | UInt64(effects.observations.count))
        sum.absorb(position ^ digest)
        if !effects.replies.isEmpty {
            let bytes = effects.replies.bytes.span.bytes
            for datagram in effects.replies.datagrams {
                let start = Int(datagram.offset)
                let check = checksum(bytes.extracting(start..<start + Int(datagram.byteCount)))
                sum.absorb(datagram.remote.low ^ UInt64(datagram.remote.port) << 48 ^ check)
            }
        }
        for message in effects.messages {
            sum.absorb(message.epoch.round << 16 ^ UInt64(message.epoch.id) << 8 ^ message.body.tag)
        }
        for persist in effects.persists {
            sum.absorb(persist.token.rawValue)
            if case .append(let entry) = persist.change { sum.absorb(entry.bytes) }
        }
    }

    // MARK: - Text

    /// What stands in a tracker's column from now on.
    mutating func show(_ node: Int, _ text: @autoclosure () -> String) {
        guard isRecording else { return }
        columns[node] = text()
    }

    /// The message that is delivered next was sent so long ago that people should know.
    mutating func isLate(since time: Instant, now: Instant) {
        guard isRecording, now - time >= .seconds(1) else { return }
        sentAt = time
    }

    /// Adds a line; the text is not even made where nobody wants it.
    ///
    /// `kinds` is empty for what everybody wants to see. `trackers` are those that the line is about, one bit each.
    mutating func line(
        _ time: Instant, _ kinds: TraceKinds = [], about trackers: UInt32 = 0, _ what: @autoclosure () -> String
    ) {
        guard isRecording else { return }
        lines.append(TraceLine(time: time, trackers: trackers, kinds: kinds, columns: columns, text: what()))
    }

    /// Adds a line about one tracker, which begins with its name.
    mutating func line(_ time: Instant, _ kinds: TraceKinds, of node: Int, _ what: @autoclosure () -> String) {
        guard isRecording else { return }
        let text = "\(names[node]) \(what())"
        line(time, kinds, about: 1 << UInt32(node), text)
    }

    /// Adds a line about a step, in words.
    mutating func line(_ time: Instant, _ node: Int, _ event: Event, _ effects: Effects, _ inspection: Inspection) {
        guard isRecording else {
            if knowsWrites { noteWrites(of: node, event, effects) }
            return
        }
        columns[node] = TraceText.column(inspection, named: names.short[node])
        var what = TraceText.describe(event, names: clients, write: noteWrites(of: node, event, effects))
        if let sentAt {
            what += " (sent \(Figure.seconds(time - sentAt)) s before)"
            self.sentAt = nil
        }
        what += TraceText.describe(effects, names: clients)
        line(time, event.kinds.union(effects.kinds), of: node, what)
    }

    /// - Returns: what was written, where the event tells of a write.
    @discardableResult
    private mutating func noteWrites(of node: Int, _ event: Event, _ effects: Effects) -> String? {
        var write: String?
        switch event {
        case .started: writes[node] = []
        case .persisted(let token), .persistFailed(let token, _):
            if let place = writes[node].firstIndex(where: { $0.token == token }) {
                write = writes[node].remove(at: place).name
            }
        case .datagramsReceived, .requestReceived, .deadlineReached, .commandReceived, .messageReceived,
            .busConnected, .busLost, .reportMade:
            break
        }
        for persist in effects.persists { writes[node].append((persist.token, persist.change.name)) }
        return write
    }
}

extension AddressPlan {
    /// The multicast group of the entry `group`.
    static func group(isIPv6: Bool) -> SocketAddress {
        isIPv6
            ? SocketAddress(high: 0xFF08_0000_0000_0000, low: 0x6969, port: 6969)
            : SocketAddress(ipv4: 0xEFC0_0001, port: 6969)
    }
}

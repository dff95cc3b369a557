/// All that happens in a cluster, as one number and, where wanted, as text: time, one column for each tracker, and what
/// happened.
///
///      12.345678 │ M 2.3 14   │ S 2.3 14   │ -          │ 1 ‹ 2 OK 2.3/15
///
/// A column holds role (M master, m not serving yet, S slave, s not in good standing, C candidate, N newcomer,
/// F fenced, - down), the epoch promised, and the last entry applied.

import Primitives
import TrackerLogic
import Wire

struct ClusterTrace: Sendable {
    private static let width = 16
    private var trace = Trace(isRecording: false)
    private(set) var lines: [String] = []
    let isRecording: Bool
    private var columns: [String]

    init(nodeCount: Int, isRecording: Bool) {
        self.isRecording = isRecording
        columns = Array(repeating: ClusterTrace.padded("-"), count: nodeCount)
    }

    var hash: UInt64 { trace.hash }

    mutating func absorb(_ word: UInt64) { trace.absorb(word) }

    mutating func absorb(_ time: Instant, _ tag: UInt64, _ place: Int) {
        trace.absorb(UInt64(bitPattern: time.nanoseconds) ^ tag << 56 ^ UInt64(place) << 48)
    }

    /// A step of a node, with all that came of it.
    mutating func absorb(_ node: Int, _ event: Event, _ position: UInt64, _ digest: UInt64, _ effects: Effects) {
        trace.absorb(UInt64(node) << 32 | event.tag << 16 | UInt64(effects.observations.count))
        trace.absorb(position ^ digest)
        if !effects.replies.isEmpty {
            let bytes = effects.replies.bytes.span.bytes
            for datagram in effects.replies.datagrams {
                let start = Int(datagram.offset)
                let sum = checksum(bytes.extracting(start..<start + Int(datagram.byteCount)))
                trace.absorb(datagram.remote.low ^ UInt64(datagram.remote.port) << 48 ^ sum)
            }
        }
        for message in effects.messages {
            trace.absorb(message.epoch.round << 16 ^ UInt64(message.epoch.id) << 8 ^ message.body.tag)
        }
        for persist in effects.persists {
            trace.absorb(persist.token.rawValue)
            if case .append(_, let entry) = persist.change { trace.absorb(entry) }
        }
    }

    // MARK: - Text

    mutating func show(_ node: Int, _ text: @autoclosure () -> String) {
        guard isRecording else { return }
        columns[node] = ClusterTrace.padded(text())
    }

    /// Adds a line; the text is not even made where nobody wants it.
    mutating func line(_ time: Instant, _ what: @autoclosure () -> String) {
        guard isRecording else { return }
        var line = Trace.text(time)
        for column in columns {
            line += " │ "
            line += column
        }
        lines.append(line + " │ " + what())
    }

    /// The last line.
    mutating func end() {
        guard isRecording else { return }
        lines.append("trace hash \(String(hash, radix: 16))")
    }

    private static func padded(_ text: String) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
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

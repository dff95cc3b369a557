// A run of a cluster as a capture: clients' datagrams, the bus, and what happened, each on an interface of its own.

import Primitives
import TrackerLogic
import Wire

extension ScenarioResult {
    /// The cluster's tag in frames, which says where they are from: "SIMU".
    static let clusterTag: UInt32 = 0x5349_4D55
    /// What the multicast bus sends at most, without headers.
    static let frameByteCount = 1400

    /// All that clients and trackers sent, in the order of time.
    public var capture: PacketCapture {
        history.capture(comment: "seed \(seed), profile \(profile.rawValue), \(hashLine)", names)
    }
}

/// Something that happened, as a packet of `steps`.
///
/// A message on the simulated bus is a value; here it is what the multicast bus would send: frames of 1,400 bytes
/// (`BusFrame`), whose session is the sender's incarnation, and whose MAC is zeros. The comment of a frame tells who
/// heard it, when, and who did not.
private struct CapturedStep {
    /// As syslog counts (RFC 5424, 6.2.1).
    enum Severity: UInt8 {
        case error = 3
        case warning = 4
        case notice = 5
        case debug = 7
    }

    var time: Instant
    /// nil where it is about no single tracker.
    var node: Int?
    var severity: Severity
    var text: String
}

extension History {
    /// All that clients and trackers sent, in the order of time.
    func capture(comment: String, _ names: TrackerNames) -> PacketCapture {
        var capture = PacketCapture(comment: comment)
        let steps = steps(names)
        var fates = LetterFates(self, names)
        var sequences = names.short.map { _ in (session: UInt64(0), frames: UInt64(0), long: UInt64(0)) }
        var (datagram, letter, step, beside) = (0, 0, 0, 0)
        while true {
            let next = [
                step < steps.count ? steps[step].time : nil,
                datagram < captures.count ? captures[datagram].time : nil,
                letter < sentMessages.count ? sentMessages[letter].time : nil,
            ]
            guard let time = next.compactMap({ $0 }).min() else { return capture }
            if next[0] == time {
                capture.append(steps[step])
                step += 1
            } else if next[1] == time {
                let packet = captures[datagram]
                capture.append(at: time, from: packet.source, to: packet.destination, packet.bytes)
                datagram += 1
            } else {
                let sent = sentMessages[letter]
                // What its sender did in the same step.
                while beside < steps.count, steps[beside].time < time { beside += 1 }
                let own = steps[beside...].prefix { $0.time == time }.filter { $0.node == sent.from }.map { $0.text }
                let comment = (own + [fates.text(of: letter)]).joined(separator: "; ")
                capture.append(sent, &sequences[sent.from], comment: comment)
                letter += 1
            }
        }
    }

    /// All that is told, in the order of time.
    fileprivate func steps(_ names: TrackerNames) -> [CapturedStep] {
        var steps = transitions.map { transition in
            CapturedStep(
                time: transition.time, node: transition.node, severity: transition.kind.severity,
                text: "\(names[transition.node]) \(transition.words)")
        }
        for period in periods {
            let node = period.trackers.count == 1 ? period.trackers[0] : nil
            steps.append(
                CapturedStep(time: period.from, node: node, severity: .error, text: "begins: \(period.text)"))
            guard let until = period.until else { continue }
            steps.append(CapturedStep(time: until, node: node, severity: .warning, text: "ends: \(period.text)"))
        }
        return steps.indices.sorted { (steps[$0].time, $0) < (steps[$1].time, $1) }.map { steps[$0] }
    }
}

extension History.Kind {
    fileprivate var severity: CapturedStep.Severity {
        switch self {
        case .died, .stopped, .paused, .busLost, .storageFailed, .clockStep: .error
        case .stands, .becameMaster, .steppedDown, .suspects, .aborted: .warning
        case .started, .busConnected, .follows, .transfer, .fenced, .other: .notice
        case .committed: .debug
        }
    }
}

extension History.Transition {
    /// What the tracker did: a sentence without its subject.
    public var words: String {
        let verb =
            switch kind {
            case .becameMaster: "becomes "
            case .stands: "stands for "
            case .steppedDown: "steps down from "
            case .follows: "follows "
            case .suspects: "misses the master of "
            case .committed: "commits "
            case .paused: "is held for "
            case .storageFailed: "cannot write: "
            case .fenced: "is "
            case .clockStep, .started, .died, .stopped, .busLost, .busConnected, .transfer, .aborted, .other: ""
            }
        return verb + text
    }
}

/// What became of each message on its way to each tracker.
private struct LetterFates {
    private let history: History
    private let names: TrackerNames
    /// The transmissions of each letter: by letter, then in the order in which they were written down.
    private let order: [Int]
    private var next = 0

    init(_ history: History, _ names: TrackerNames) {
        self.history = history
        self.names = names
        let all = history.transmissions
        order = all.indices.sorted { (all[$0].letter, $0) < (all[$1].letter, $1) }
    }

    /// What became of a message, in words; the numbers of the messages rise from call to call.
    mutating func text(of letter: Int) -> String {
        let sent = history.sentMessages[letter]
        var (heard, lost): ([String], [String]) = ([], [])
        var known: UInt32 = 0
        while next < order.count, history.transmissions[order[next]].letter <= letter {
            let copy = history.transmissions[order[next]]
            next += 1
            guard copy.letter == letter else { continue }
            let bit: UInt32 = 1 << UInt32(copy.to)
            guard let time = copy.receivedAt else {
                if known & bit == 0 { lost.append(names.short[copy.to]) }
                known |= bit
                continue
            }
            let milliseconds = Figure.coordinate(Double((time - sent.time).nanoseconds) / 1e6)
            heard.append("\(known & bit == 0 ? "" : "again ")by \(names.short[copy.to]) after \(milliseconds) ms")
            known |= bit
        }
        let open = names.short.indices.filter { (sent.receivers & ~known) >> UInt32($0) & 1 == 1 }
        var parts: [String] = []
        if !heard.isEmpty { parts.append("heard \(heard.joined(separator: ", "))") }
        if !lost.isEmpty { parts.append("LOST to \(lost.joined(separator: ", "))") }
        if !open.isEmpty { parts.append("under way to \(open.map { names.short[$0] }.joined(separator: ", "))") }
        return parts.isEmpty ? "for nobody who is there" : parts.joined(separator: "; ")
    }
}

extension AddressPlan {
    /// Where trackers send their frames from, and to which group.
    static func bus(_ node: Int) -> SocketAddress { SocketAddress(ipv4: 0x0A00_0001 + UInt32(node) << 8, port: 6970) }
    /// 239.192.7.7, as in the examples of the documentation.
    static let busGroup = SocketAddress(ipv4: 0xEFC0_0707, port: 6970)
    /// Who gathers what happens.
    static let collector = SocketAddress(ipv4: 0x0AFF_FFFF, port: 514)
}

extension PacketCapture {
    fileprivate mutating func append(_ step: CapturedStep) {
        // Facility local0.
        let bytes = Array("<\(16 * 8 + step.severity.rawValue)>\(step.text)".utf8)
        let source = step.node.map { AddressPlan.bus($0) } ?? SocketAddress(ipv4: 0x0AFF_FFFE, port: 6970)
        append(
            at: step.time, on: .steps, from: SocketAddress(ipv4: source.ipv4, port: 514), to: AddressPlan.collector,
            bytes, comment: step.text)
    }

    /// A message as the frames that would carry it; `sequence` counts its sender's frames and long messages in this
    /// life.
    fileprivate mutating func append(
        _ letter: History.SentMessage, _ sequence: inout (session: UInt64, frames: UInt64, long: UInt64),
        comment: String
    ) {
        if sequence.session != letter.incarnation { sequence = (letter.incarnation, 0, 0) }
        let room = ScenarioResult.frameByteCount - BusFrameHead.byteCount - BusFrameHead.macByteCount
        func frame(_ kind: BusFrameKind, _ body: (inout [UInt8]) -> Void) -> [UInt8] {
            sequence.frames += 1
            var frame: [UInt8] = []
            BusFrameHead(
                kind: kind, cluster: ScenarioResult.clusterTag, session: letter.incarnation, sequence: sequence.frames
            ).encode(into: &frame)
            body(&frame)
            frame.append(contentsOf: repeatElement(0, count: BusFrameHead.macByteCount))
            return frame
        }
        let (from, to) = (AddressPlan.bus(letter.from), AddressPlan.busGroup)
        if letter.bytes.count <= room - BusBody.itemOverhead {
            let bytes = frame(.messages) {
                BusBody.appendItem(destination: letter.destination, letter.bytes, to: &$0)
            }
            return append(at: letter.time, on: .bus, from: from, to: to, bytes, comment: comment)
        }
        sequence.long += 1
        let size = room - BusBody.partOverhead
        let count = (letter.bytes.count + size - 1) / size
        for place in 0..<count {
            let part = letter.bytes[place * size..<min((place + 1) * size, letter.bytes.count)]
            let bytes = frame(.part) {
                BusBody.appendPart(
                    destination: letter.destination, message: sequence.long, index: UInt32(place), count: UInt32(count),
                    part, to: &$0)
            }
            append(at: letter.time, on: .bus, from: from, to: to, bytes, comment: place == 0 ? comment : "")
        }
    }
}

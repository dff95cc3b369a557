// Who sends what to whom in a story of recordings, and what becomes of trackers.

import Primitives
import TrackerLogic
import Wire

/// Who sends what to whom, and what becomes of trackers.
struct StoryTeller: Sendable {
    /// A message that somebody has sent.
    private struct Sent: Sendable {
        var sum: UInt64
        var time: Instant
        var name: String
        var letter: Int
    }

    /// Of each tracker: messages that are looked for at most.
    static let maxSought = 4096

    let keepsCaptures: Bool
    var history = History()
    private var sent: [[Sent]]
    /// The place of each life that has sent anything.
    private var senders: [(incarnation: UInt64, place: Int)] = []
    /// Chains of entries that anybody has applied, by index, from `firstIndex` on; 0 where nobody is known to have.
    private var chains: [UInt64] = []
    private var firstIndex: UInt64 = 0
    private var leaders: [(epoch: Epoch, place: Int)] = []

    init(count: Int, keepsCaptures: Bool) {
        self.keepsCaptures = keepsCaptures
        sent = Array(repeating: [], count: count)
    }

    /// What a tracker is where its recording begins.
    mutating func begins(_ recording: Recording, _ place: Int, at time: Instant) {
        let inspection = recording.node.inspection
        let kind: History.Kind
        switch inspection.role {
        case .master: kind = .becameMaster
        case .slave: kind = .follows
        case .candidate: kind = .stands
        case .newcomer: kind = .started
        }
        history.transitions.append(
            History.Transition(time: time, node: place, kind: kind, text: "as the recording begins"))
        know(inspection.life, place)
    }

    private mutating func know(_ life: Life, _ place: Int) {
        if !senders.contains(where: { $0.incarnation == life.incarnation }) {
            senders.append((life.incarnation, place))
        }
    }

    mutating func tell(_ event: Event, _ effects: Effects, _ life: Life, _ place: Int, at time: Instant) {
        know(life, place)
        switch event {
        case .messageReceived(let message): hear(message, place, at: time)
        case .started: mark(.started, place, "starts", at: time)
        case .busConnected: mark(.busConnected, place, "has its bus", at: time)
        case .busLost: mark(.busLost, place, "loses its bus", at: time)
        case .datagramsReceived(let batch):
            if keepsCaptures { capture(batch, isReply: false, at: time) }
        case .requestReceived, .persisted, .persistFailed, .deadlineReached, .commandReceived, .reportMade: break
        }
        if keepsCaptures, !effects.replies.isEmpty { capture(effects.replies, isReply: true, at: time) }
        for message in effects.messages { say(message, place, at: time) }
        for observation in effects.observations { observe(observation, place, at: time) }
    }

    private mutating func capture(_ batch: DatagramBatch, isReply: Bool, at time: Instant) {
        for number in batch.datagrams.indices {
            let datagram = batch.datagrams[number]
            let (own, other) = (datagram.local, datagram.remote)
            // One that came to a socket with a single address is not told apart further.
            let local = own == .unspecified ? SocketAddress(ipv4: 0x7F00_0001, port: 6969) : own
            history.captures.append(
                History.Capture(
                    time: time, source: isReply ? local : other, destination: isReply ? other : local,
                    bytes: batch.payload(number)))
        }
    }

    private mutating func mark(_ kind: History.Kind, _ place: Int, _ text: String, at time: Instant) {
        history.transitions.append(History.Transition(time: time, node: place, kind: kind, text: text))
    }

    private func sum(_ message: ClusterMessage) -> UInt64 {
        // A report gets its times when it leaves.
        if case .report = message.body { return message.sender.incarnation }
        var bytes: [UInt8] = []
        message.encode(into: &bytes)
        return checksum(bytes.span.bytes)
    }

    private mutating func say(_ message: ClusterMessage, _ place: Int, at time: Instant) {
        var letter = -1
        if keepsCaptures {
            var bytes: [UInt8] = []
            message.encode(into: &bytes)
            var (destination, receivers): (UInt64, UInt32) = (0, ~(1 << UInt32(place)) & (1 << UInt32(sent.count) - 1))
            if case .one(let life) = message.destination {
                destination = life.incarnation
                receivers = senders.first { $0.incarnation == life.incarnation }.map { 1 << UInt32($0.place) } ?? 0
            }
            letter = history.sentMessages.count
            history.sentMessages.append(
                History.SentMessage(
                    time: time, from: place, incarnation: message.sender.incarnation, destination: destination,
                    receivers: receivers, bytes: bytes))
        }
        if sent[place].count >= 2 * StoryTeller.maxSought { sent[place].removeFirst(StoryTeller.maxSought) }
        sent[place].append(Sent(sum: sum(message), time: time, name: message.body.name, letter: letter))
    }

    private mutating func hear(_ message: ClusterMessage, _ place: Int, at time: Instant) {
        let sender = senders.first { $0.incarnation == message.sender.incarnation }?.place
        guard let sender, sender != place else { return }
        let wanted = sum(message)
        guard let found = sent[sender].last(where: { $0.sum == wanted && $0.name == message.body.name }) else { return }
        history.transmissions.append(
            History.Transmission(
                sentAt: min(found.time, time), receivedAt: time, from: sender, to: place, name: found.name,
                letter: found.letter))
    }

    private mutating func observe(_ observation: Observation, _ place: Int, at time: Instant) {
        switch observation {
        case .becameMaster(let epoch): mark(.becameMaster, place, "master of \(epoch)", at: time)
        case .steppedDown(let epoch, let reason): mark(.steppedDown, place, "\(epoch): \(reason.words)", at: time)
        case .follows(let master, let epoch): mark(.follows, place, "\(master) in \(epoch)", at: time)
        case .stands(let epoch): mark(.stands, place, "\(epoch)", at: time)
        case .suspects(let epoch): mark(.suspects, place, "\(epoch)", at: time)
        case .fenced: mark(.fenced, place, "fenced", at: time)
        case .voteFailed(let failure), .storageFailed(let failure, _):
            mark(.storageFailed, place, failure.words, at: time)
        case .aborted: mark(.aborted, place, TraceText.describe(observation), at: time)
        case .transferBegan, .transferEnded: mark(.transfer, place, TraceText.describe(observation), at: time)
        case .joinRefused, .settingsDiffer, .idAssigned, .trackerUp, .trackerDown, .merged, .membersChanged, .diverged,
            .storageRecovered, .voteRecovered, .stopsWithCluster, .swarmsEmptied, .drained, .accessChanged,
            .registryChanged, .commandRefused, .commandDropped, .changeEnded, .fileAccountsSet:
            break
        }
    }

    /// What no tracker can see alone: two that lead in one epoch, or have applied different entries.
    mutating func crossCheck(_ node: TrackerNode, _ place: Int) -> String? {
        if let epoch = node.leadingEpoch {
            if let leader = leaders.last(where: { $0.epoch == epoch }) {
                if leader.place != place { return "two trackers lead in epoch \(epoch)" }
            } else {
                leaders.append((epoch, place))
            }
        }
        guard node.configuration.cluster.mode == .quorum, node.configuration.cluster.hasBus else { return nil }
        let position = node.state.position
        if chains.isEmpty { firstIndex = position.index }
        guard position.index >= firstIndex, position.index - firstIndex < 1 << 22 else { return nil }
        let offset = Int(position.index - firstIndex)
        while chains.count <= offset { chains.append(0) }
        if chains[offset] == 0 { chains[offset] = position.chain }
        return chains[offset] == position.chain ? nil : "two trackers have applied different entries \(position.index)"
    }
}

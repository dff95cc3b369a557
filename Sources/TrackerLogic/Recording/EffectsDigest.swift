// What came of a step, as one number.

import Primitives
import Wire

/// What came of a step, as one number: two runs of one machine whose numbers agree have said and written the same.
///
/// Everything that leaves a tracker is in it, byte by byte: replies with their addresses, messages, answers. Of what is
/// written, an entry's chain and a chunk's checksum stand for their bytes; of what people are told, the kinds.
public struct EffectsDigest: Sendable {
    private var sum: UInt64 = 0
    /// Room for a message's bytes, to be used again.
    private var room: [UInt8] = []

    /// Of nothing yet.
    public init() {}

    /// How many effects of each kind there are before a step: their owner may gather those of several steps.
    public struct Mark: Sendable, Hashable {
        private(set) var replies = 0
        private(set) var answers = 0
        private(set) var messages = 0
        private(set) var persists = 0
        private(set) var observations = 0

        /// None at all.
        public init() {}

        /// As many as there are.
        public init(_ effects: Effects) {
            replies = effects.replies.datagrams.count
            answers = effects.answers.count
            messages = effects.messages.count
            persists = effects.persists.count
            observations = effects.observations.count
        }
    }

    /// The number for the effects of a step.
    ///
    /// - Parameters:
    ///   - effects: what came of it, behind what came of earlier ones.
    ///   - mark: how many those are.
    ///   - position: of the tracker after it.
    /// - Returns: the same for the same effects, on every machine.
    public mutating func of(_ effects: Effects, since mark: Mark = Mark(), _ position: Position) -> UInt64 {
        sum = 0x243F_6A88_85A3_08D3
        absorb(position)
        absorb(effects.replies, since: mark.replies)
        for place in mark.answers..<effects.answers.count { absorb(effects.answers[place]) }
        for place in mark.messages..<effects.messages.count { absorb(effects.messages[place]) }
        for place in mark.persists..<effects.persists.count { absorb(effects.persists[place]) }
        for place in mark.observations..<effects.observations.count {
            absorb(UInt64(effects.observations[place].tag))
        }
        return sum
    }

    @inline(__always)
    private mutating func absorb(_ word: UInt64) { sum = folded(sum ^ word, 0x9E37_79B9_7F4A_7C15) &+ word }

    private mutating func absorb(_ position: Position) {
        absorb(position.index)
        absorb(position.chain)
    }

    private mutating func absorb(_ address: SocketAddress) {
        absorb(address.high ^ UInt64(address.port) << 32 ^ UInt64(address.scope))
        absorb(address.low)
    }

    private mutating func absorb(_ replies: DatagramBatch, since first: Int) {
        guard first < replies.datagrams.count else { return }
        replies.bytes.withUnsafeBytes { bytes in
            for place in first..<replies.datagrams.count {
                let datagram = replies.datagrams[place]
                absorb(datagram.remote)
                absorb(datagram.local.low ^ UInt64(datagram.socket) << 48)
                let start = Int(datagram.offset)
                absorb(fastSum(UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(datagram.byteCount)])))
            }
        }
    }

    private mutating func absorb(_ answer: Answer) {
        absorb(answer.id)
        switch answer.content {
        case .announce(let announce):
            absorb(UInt64(announce.interval) << 32 | UInt64(announce.minInterval))
            absorb(announce.counts)
            for peer in announce.ipv4 {
                absorb(peer.endpoint.socketAddress)
                absorb(peer.peerID.bytes.hash(key: 0))
            }
            for peer in announce.ipv6 {
                absorb(peer.endpoint.socketAddress)
                absorb(peer.peerID.bytes.hash(key: 0))
            }
        case .scrape(let counts): for swarm in counts { absorb(swarm) }
        case .failure(let refusal): absorb(UInt64(refusal.rawValue))
        }
    }

    private mutating func absorb(_ counts: SwarmCounts) {
        absorb(UInt64(counts.seeders) << 32 | UInt64(counts.leechers))
        absorb(UInt64(counts.completed))
    }

    private mutating func absorb(_ message: ClusterMessage) {
        switch message.body {
        case .prepare(let entry, let position):
            // Its chain stands for all of its updates.
            absorb(entry)
            absorb(position)
            absorb(message.epoch.round)
        case .entries(let entries, let position):
            for entry in entries { absorb(entry) }
            absorb(position)
        case .keepalive, .suspect, .election, .answer, .coordinator, .ok, .error, .commit, .confirm, .confirmed, .fetch,
            .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward, .answered, .handover, .leave,
            .stop, .report, .order, .ordered:
            room.removeAll(keepingCapacity: true)
            message.encode(into: &room)
            room.withUnsafeBytes { absorb(fastSum($0)) }
        }
    }

    private mutating func absorb(_ entry: Entry) {
        absorb(entry.chain)
        absorb(entry.header.epoch.round << 32 ^ UInt64(entry.header.epoch.id) << 16 ^ UInt64(entry.header.attempt))
    }

    private mutating func absorb(_ persist: Persist) {
        absorb(persist.token.rawValue)
        switch persist.change {
        case .promise(let promise):
            absorb(promise.epoch.round << 16 ^ UInt64(promise.epoch.id))
            absorb(promise.secret.w0 ^ (promise.hasFullState ? 1 : 0) ^ (promise.leftInOrder ? 2 : 0))
        case .append(let entry): absorb(entry)
        case .saveChunk(let chunk): absorb(chunk)
        case .trim(let index): absorb(index)
        case .replaceAll(let chunks): for chunk in chunks { absorb(chunk) }
        }
    }

    private mutating func absorb(_ chunk: SnapshotChunk) {
        absorb(UInt64(chunk.number) << 40 ^ chunk.index)
        chunk.bytes.withUnsafeBytes { absorb(fastSum($0)) }
    }
}

/// A checksum of any bytes, four products at once: several times as fast as one after another.
///
/// - Returns: the same number on every machine.
@inline(__always)
func fastSum(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var (a, b, c, d): (UInt64, UInt64, UInt64, UInt64) = (1, 2, 3, 4)
    var offset = 0
    func word(_ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    while offset + 32 <= bytes.count {
        a = folded(a ^ word(offset), 0x9E37_79B9_7F4A_7C15)
        b = folded(b ^ word(offset + 8), 0xD1B5_4A32_D192_ED03)
        c = folded(c ^ word(offset + 16), 0xA076_1D64_78BD_642F)
        d = folded(d ^ word(offset + 24), 0xE703_7ED1_A0B4_28DB)
        offset += 32
    }
    while offset + 8 <= bytes.count {
        a = folded(a ^ word(offset), 0x8EBC_6AF0_9C88_C6E3)
        offset += 8
    }
    var rest: UInt64 = 0
    while offset < bytes.count {
        rest = rest << 8 | UInt64(bytes[offset])
        offset += 1
    }
    a = folded(a ^ rest, 0xD6E8_FEB8_6659_FD93)
    return folded(a ^ rotl(b, 17) ^ rotl(c, 31) ^ rotl(d, 47), UInt64(bytes.count) ^ 0x9E37_79B9_7F4A_7C15)
}

private func rotl(_ value: UInt64, _ bits: UInt64) -> UInt64 { value &<< bits | value &>> (64 &- bits) }

extension Observation {
    /// A number for what people are told.
    fileprivate var tag: UInt8 {
        switch self {
        case .becameMaster: 1
        case .steppedDown: 2
        case .follows: 3
        case .suspects: 4
        case .stands: 5
        case .fenced: 6
        case .joinRefused: 7
        case .settingsDiffer: 8
        case .idAssigned: 9
        case .trackerUp: 10
        case .trackerDown: 11
        case .transferBegan: 12
        case .transferEnded: 13
        case .merged: 14
        case .aborted: 15
        case .membersChanged: 16
        case .diverged: 17
        case .storageFailed: 18
        case .storageRecovered: 19
        case .voteFailed: 20
        case .voteRecovered: 21
        case .stopsWithCluster: 22
        case .swarmsEmptied: 23
        case .drained: 24
        case .accessChanged: 25
        case .registryChanged: 26
        case .commandRefused: 27
        case .commandDropped: 28
        case .changeEnded: 29
        case .fileAccountsSet: 30
        }
    }
}

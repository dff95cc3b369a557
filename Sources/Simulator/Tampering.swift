/// Carries out what `Sabotage` names, between the logic and the world.

import Primitives
import TrackerLogic
import Wire

extension World {
    /// Spoils what a node has just said.
    mutating func tamper(_ sabotage: Sabotage) {
        if sabotage == .stampsBackwards { return stampBackwards() }
        var replies = DatagramBatch()
        for number in effects.replies.datagrams.indices {
            var datagram = effects.replies.datagrams[number]
            var bytes = effects.replies.payload(number)
            for _ in 0..<spoil(&bytes, &datagram, sabotage) {
                replies.append(bytes, remote: datagram.remote, local: datagram.local, socket: datagram.socket)
            }
        }
        effects.replies = replies
    }

    /// - Returns: how often the reply is sent.
    private mutating func spoil(_ bytes: inout [UInt8], _ datagram: inout Datagram, _ sabotage: Sabotage) -> Int {
        let action = bytes.span.bytes.u32(at: 0)
        if action == 2, sabotage == .miscountsScrapes { bytes[11] &+= 1 }
        guard action == 1 else { return 1 }
        let width = datagram.remote.isIPv4 ? CompactIPv4.byteCount : CompactIPv6.byteCount
        let peerCount = (bytes.count - ReplyWriter.announceHeaderByteCount) / width
        switch sabotage {
        case .repliesTwice: return 2
        case .swallowsReplies: return probes.oneIn(10) ? 0 : 1
        case .namesAnnouncer:
            guard peerCount > 0 else { break }
            bytes.removeLast(width)
            var own = datagram.remote
            own.port += AddressPlan.listeningOffset
            if let endpoint = CompactIPv4(own) { withUnsafeBytes(of: endpoint) { bytes.append(contentsOf: $0) } }
            if let endpoint = CompactIPv6(own) { withUnsafeBytes(of: endpoint) { bytes.append(contentsOf: $0) } }
        case .repeatsPeer:
            if peerCount > 1 { bytes.replaceSubrange(20..<20 + width, with: bytes[20 + width..<20 + 2 * width]) }
        case .dropsPeer: if peerCount > 0 { bytes.removeLast(width) }
        case .miscountsSeeders: bytes[19] &+= 1
        case .promisesLongInterval: bytes[11] = UInt8(clamping: options.interval * IntervalPolicy.maxStretch)
        case .repliesToWrongClient: datagram.remote.port ^= 1
        case .repliesFromWrongAddress: datagram.local.port += 1
        case .reportsBeforeDurable, .losesEntries, .losesChunks, .stalesChunks, .saysFailedButWrites,
            .saysWrittenButFails, .keepsSwarmsOnStop, .forgetsLastEntry, .forgetsChunk, .forgetsPromise,
            .miscountsScrapes, .stampsBackwards, .forgetsCommands, .fallsSilentAfterFaults, .neverStops:
            break
        }
        return 1
    }

    /// Puts the times of entries a minute back.
    private mutating func stampBackwards() {
        for number in effects.persists.indices {
            guard case .append(let index, var bytes) = effects.persists[number].change, index > 5,
                var header = try? EntryHeader(bytes)
            else { continue }
            header.time.milliseconds -= 60_000
            header.seal(&bytes)
            effects.persists[number].change = .append(index: index, entry: bytes)
        }
    }

    /// Spoils a record that is about to be read back.
    mutating func damage(_ record: inout DiskRecord) {
        if sabotage == .forgetsLastEntry { record.forgetLastEntry() }
        if sabotage == .forgetsChunk, !record.chunks.isEmpty { record.forgetChunk(probes.below(record.chunks.count)) }
        if sabotage == .forgetsPromise { record.promise = nil }
    }
}

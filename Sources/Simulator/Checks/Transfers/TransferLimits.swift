// What a peer may hold, send and take at most.

import PeerLogic
import Primitives
import Wire

/// What a peer may hold, send and take at most: its memory, its queues, its rates, and its ratio.
struct TransferLimits: Sendable {
    /// A bucket that each byte fills, and that empties at the rate that is allowed: it never holds more than a burst.
    private struct Bucket: Sendable {
        var level: Int = 0
        var at = Instant(nanoseconds: 0)

        mutating func add(_ byteCount: Int, rate: Int, at now: Instant) {
            // Clocks may run fast by a thousandth.
            let leaked = (now - at).nanoseconds / 1_000 * Int64(rate) / 999_000
            level = max(0, level - Int(leaked))
            at = now
            level += byteCount
        }
    }

    /// Blocks that the owner is given ahead for one connection.
    private static let maxSendingCount = 16
    /// What a receiver keeps who says nothing else (`reqq`).
    private static let maxAskedCount = 1_000

    /// By peer.
    private var ups: [Bucket]
    private var downs: [Bucket]

    init(peerCount: Int) {
        ups = Array(repeating: Bucket(), count: peerCount)
        downs = ups
    }

    /// Limits are others, or a life begins.
    mutating func changed(_ peer: Int, at now: Instant) {
        ups[peer] = Bucket(level: 0, at: now)
        downs[peer] = Bucket(level: 0, at: now)
    }

    /// A quarter of a second's bytes and a block may come at once; and what was drawn over, which is one block more.
    private static func burst(_ rate: Int, _ unit: Int) -> Int { max(rate / 4, 16_384) + 16_384 + unit }

    mutating func gives(_ end: Int, _ block: Block, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        scene.ends[end].sending.append(block)
        if scene.ends[end].sending.count > Self.maxSendingCount {
            scene.violate(
                .buffersAreBounded, at: now,
                "\(TransferScene.name(peer)) has \(scene.ends[end].sending.count) blocks on their way to one peer")
        }
        guard let rate = scene.peers[peer].settings.maxUploadRate else { return }
        ups[peer].add(Int(block.length), rate: rate, at: now)
        if ups[peer].level > Self.burst(rate, Int(block.length)) {
            scene.violate(
                .ratesAreKept, at: now, "\(TransferScene.name(peer)) gives more than \(rate) bytes a second")
        }
    }

    mutating func takesBack(_ end: Int, _ block: Block, _ scene: inout TransferScene) {
        ups[scene.ends[end].peer].level -= Int(block.length)
    }

    mutating func asks(_ peer: Int, _ byteCount: Int, at now: Instant, _ scene: inout TransferScene) {
        guard let rate = scene.peers[peer].settings.maxDownloadRate else { return }
        downs[peer].add(byteCount, rate: rate, at: now)
        if downs[peer].level > Self.burst(rate, byteCount) {
            scene.violate(
                .ratesAreKept, at: now, "\(TransferScene.name(peer)) asks for more than \(rate) bytes a second")
        }
    }

    /// What was asked for will not come.
    mutating func refused(_ peer: Int, _ byteCount: Int) { downs[peer].level -= byteCount }

    func asked(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        guard scene.ends[end].asked.count > Self.maxAskedCount else { return }
        scene.violate(
            .buffersAreBounded, at: now,
            "\(TransferScene.name(scene.ends[end].peer)) asks one peer for \(scene.ends[end].asked.count) blocks")
    }

    /// At the end of a step.
    func check(_ peer: Int, buffered: Int, at now: Instant, _ scene: inout TransferScene) {
        let settings = scene.peers[peer].settings
        if buffered > max(settings.maxBufferedByteCount, scene.layout.pieceLength) {
            scene.violate(
                .buffersAreBounded, at: now, "\(TransferScene.name(peer)) holds \(buffered) bytes in memory")
        }
        if scene.peers[peer].openCount > settings.maxLinks {
            scene.violate(
                .buffersAreBounded, at: now,
                "\(TransferScene.name(peer)) has \(scene.peers[peer].openCount) connections")
        }
        guard let ratio = settings.targetRatio, !scene.peers[peer].ratioIsReached else { return }
        let record = scene.peers[peer]
        let base =
            record.beganComplete ? scene.layout.totalLength : max(record.receivedByteCount, scene.layout.totalLength)
        if record.disk.isFull, Double(record.sentByteCount) > ratio * Double(base) {
            scene.violate(
                .ratioEndsSeeding, at: now,
                "\(TransferScene.name(peer)) has given \(record.sentByteCount) bytes, and goes on")
        }
    }
}

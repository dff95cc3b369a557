// What a peer may hold, send and take at most.

import PeerLogic
import Primitives
import Wire

/// What a peer may hold, send and take at most: its memory, its queues, its rates, and its ratio.
struct TransferLimits: Sendable {
    /// What may go at once: it fills at the rate that is allowed, up to a burst, and a block that takes the last of it
    /// may take more.
    ///
    /// In thousand millionths of a byte, so that nothing is lost; in 64 bits, also where an `Int` has 32.
    private struct Bucket: Sendable {
        private static let unit: Int64 = 1_000_000_000
        private(set) var level: Int64 = 0
        var rate: Int?
        private var at = Instant(nanoseconds: 0)

        private static func burst(_ rate: Int) -> Int64 { Int64(max(rate / 4, 16_384)) * unit }

        mutating func setRate(_ rate: Int?, at now: Instant) {
            fill(now)
            self.rate = rate
            level = rate.map { min(max(level, 0), Bucket.burst($0)) } ?? 0
            at = now
        }

        mutating func fill(_ now: Instant) {
            guard let rate, now > at else { return }
            let passed = min((now - at).nanoseconds, 100_000_000_000)
            level = min(level + passed * Int64(rate), Bucket.burst(rate))
            at = now
        }

        /// Whether it might go.
        mutating func take(_ byteCount: Int, slack: Int = 0, at now: Instant) -> Bool {
            guard rate != nil else { return true }
            fill(now)
            let mayGo = level + Int64(slack) * Bucket.unit > 0
            level = max(level, 1) - Int64(byteCount) * Bucket.unit
            return mayGo
        }

        mutating func giveBack(_ byteCount: Int) {
            if let rate { level = min(level + Int64(byteCount) * Bucket.unit, Bucket.burst(rate)) }
        }

        /// Whether so much of a burst is there that somebody who waits waits for nothing.
        func isOpen(_ now: Instant, part: Int) -> Bool {
            guard let rate else { return true }
            var filled = self
            filled.fill(now)
            return filled.level > max(Bucket.burst(rate) / Int64(part), 0)
        }

        /// Somebody waits, so it is empty, whatever was lost by rounding.
        mutating func isEmpty() { level = min(level, 0) }
    }

    /// Blocks that the owner is given ahead for one connection.
    private static let maxSendingCount = 16
    /// What a receiver keeps who says nothing else (`reqq`).
    private static let maxAskedCount = 1_000

    /// Who is silent for so long may be taken for one who gives nothing.
    private static let patience = Duration.seconds(29)

    /// By peer.
    private var ups: [Bucket]
    private var downs: [Bucket]
    /// Whether something that was to go does not, in the step under way: others may go in its place.
    var hasTakenBack = false

    init(peerCount: Int) {
        ups = Array(repeating: Bucket(), count: peerCount)
        downs = ups
    }

    /// Limits are others, or a session begins or goes on.
    mutating func changed(_ peer: Int, _ scene: TransferScene) {
        let (settings, local) = (scene.peers[peer].settings, scene.peers[peer].local)
        ups[peer].setRate(settings.maxUploadRate, at: local)
        downs[peer].setRate(settings.maxDownloadRate, at: local)
    }

    /// A life begins.
    mutating func began(_ peer: Int) {
        ups[peer] = Bucket()
        downs[peer] = Bucket()
    }

    /// Whether an upload that waits has nothing to wait for.
    func mayGive(_ peer: Int, _ scene: TransferScene) -> Bool { ups[peer].isOpen(scene.peers[peer].local, part: 4) }

    /// As `mayGive`, of requests: when one was refused nobody can always tell.
    func mayAsk(_ peer: Int, _ scene: TransferScene) -> Bool { downs[peer].isOpen(scene.peers[peer].local, part: 2) }

    mutating func givesNothing(_ peer: Int) { ups[peer].isEmpty() }

    mutating func gives(_ end: Int, _ block: Block, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        scene.ends[end].sending.append(block)
        if scene.ends[end].sending.count > Self.maxSendingCount {
            scene.violate(
                .buffersAreBounded, at: now,
                "\(TransferScene.name(peer)) has \(scene.ends[end].sending.count) blocks on their way to one peer")
        }
        guard !ups[peer].take(Int(block.length), at: scene.peers[peer].local) else { return }
        scene.violate(
            .ratesAreKept, at: now,
            "\(TransferScene.name(peer)) gives more than \(scene.peers[peer].settings.maxUploadRate ?? 0) bytes a "
                + "second"
        )
    }

    mutating func takesBack(_ end: Int, _ block: Block, _ scene: inout TransferScene) {
        hasTakenBack = true
        ups[scene.ends[end].peer].giveBack(Int(block.length))
    }

    /// Of each request a whole block is taken.
    mutating func asks(_ peer: Int, _ byteCount: Int, at now: Instant, _ scene: inout TransferScene) {
        // Whether a request that was refused had been given up before nobody can always tell.
        guard !downs[peer].take(byteCount, slack: Block.maxByteCount, at: scene.peers[peer].local) else { return }
        scene.violate(
            .ratesAreKept, at: now,
            "\(TransferScene.name(peer)) asks for more than \(scene.peers[peer].settings.maxDownloadRate ?? 0) bytes a "
                + "second")
    }

    /// What was asked for will not come.
    mutating func refused(_ peer: Int, _ byteCount: Int) { downs[peer].giveBack(byteCount) }

    /// A block has come: one more may be asked for, up to what comes in a second.
    func arrived(_ end: Int, _ scene: inout TransferScene) {
        let rate = scene.ends[end].down.rate(at: scene.local(end))
        let queue = scene.ends[end].theirQueue
        let most = min(queue, Self.maxAskedCount, max(16, rate / Block.maxByteCount + 8))
        func grown(_ window: Int) -> Int { max(1, min(window < most ? window + 1 : max(most, 4), queue)) }
        scene.ends[end].window = grown(scene.ends[end].window)
        // Who was silent begins with one.
        scene.ends[end].leastWindow = grown(isSilent(end, scene) ? 1 : scene.ends[end].leastWindow)
    }

    /// Whether somebody may be taken for one who gives nothing.
    func isSilent(_ end: Int, _ scene: TransferScene) -> Bool {
        scene.local(end) - scene.ends[end].usefulAt > Self.patience
    }

    func asked(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        if scene.ends[end].asked.count > scene.ends[end].window {
            scene.violate(
                .buffersAreBounded, at: now,
                "\(TransferScene.name(scene.ends[end].peer)) asks \(scene.otherName(end)) for "
                    + "\(scene.ends[end].asked.count) blocks, which gives less in a second")
        }
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
        guard let ratio = settings.targetRatio, !scene.peers[peer].ratioIsReached, scene.peers[peer].isRunning else {
            return
        }
        let record = scene.peers[peer]
        let received = max(record.receivedByteCount - record.wrongByteCount, 1)
        let base = record.beganComplete ? scene.layout.totalLength : received
        if record.disk.isFull, record.hasMetadata, Double(record.sentByteCount) >= ratio * Double(base) {
            scene.violate(
                .ratioEndsSeeding, at: now,
                "\(TransferScene.name(peer)) has given \(record.sentByteCount) bytes, and goes on")
        }
    }
}

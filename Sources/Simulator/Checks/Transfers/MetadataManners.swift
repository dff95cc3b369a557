// How the info dictionary is asked for, and given (BEP 9).

import PeerLogic
import Primitives
import Wire

/// How the info dictionary is asked for, and given (BEP 9): of one peer at a time that has said that it has it, four
/// parts ahead and each once; of another when it refuses, or is silent for twenty seconds; and whoever is asked answers
/// at once, with the bytes, or refuses with a reason.
struct MetadataManners: Sendable {
    private static let partByteCount = 16_384
    private static let maxPendingCount = 4
    private static let patience = Duration.seconds(20)
    private static let lateness = Duration.milliseconds(1_200)
    /// A peer may ask for each part so often.
    private static let repeats = 3

    /// What one peer fetches.
    private struct Fetch: Sendable {
        var end = -1
        var pending: [Int] = []
        var received: [Int] = []
        /// When something was last heard of it, or it was begun.
        var heardAt = Instant(nanoseconds: 0)
        var isChecked = false
    }

    private struct End: Sendable {
        /// Parts that the other side wants, which are answered in the same step.
        var toAnswer: [Int] = []
        var givenCount = 0
    }

    private let metadata: [UInt8]
    private let partCount: Int
    private var fetches: [Fetch]
    private var ends: [End] = []

    init(metadata: [UInt8], peerCount: Int) {
        self.metadata = metadata
        partCount = (metadata.count - 1) / Self.partByteCount + 1
        fetches = Array(repeating: Fetch(), count: peerCount)
    }

    mutating func began(_ peer: Int) { fetches[peer] = Fetch() }

    mutating func opened(_ end: Int) {
        while ends.count <= end { ends.append(End()) }
        ends[end] = End()
    }

    mutating func closed(_ end: Int, _ scene: TransferScene) {
        let peer = scene.ends[end].peer
        if fetches[peer].end == end, !fetches[peer].isChecked { forget(peer, scene) }
        ends[end].toAnswer.removeAll()
    }

    private mutating func forget(_ peer: Int, _ scene: TransferScene) {
        fetches[peer] = Fetch()
        fetches[peer].heardAt = scene.peers[peer].local
    }

    // MARK: - Said

    mutating func says(_ end: Int, _ payload: [UInt8], at now: Instant, _ scene: inout TransferScene) {
        guard let said = try? MetadataMessage(decoding: payload) else {
            return blame(end, "says something of the metadata that makes no sense", at: now, &scene)
        }
        switch said {
        case .request(let part): asks(end, part, at: now, &scene)
        case .data(let part, let total, let bytes):
            let start = part * Self.partByteCount
            let isRight =
                part < partCount && total == metadata.count
                && bytes == Array(metadata[start..<min(start + Self.partByteCount, metadata.count)])
            if !isRight { blame(end, "gives part \(part) of the metadata, and it is wrong", at: now, &scene) }
            answers(end, part, at: now, &scene)
            ends[end].givenCount += 1
            if ends[end].givenCount > 2 * Self.repeats * partCount {
                blame(end, "gives the metadata again and again", at: now, &scene)
            }
        case .reject(let part):
            answers(end, part, at: now, &scene)
            let peer = scene.ends[end].peer
            if scene.peers[peer].hasMetadata, part < partCount, ends[end].givenCount < Self.repeats * partCount {
                blame(end, "refuses part \(part) of the metadata, which it has", at: now, &scene)
            }
        case .unknown: break
        }
    }

    private mutating func answers(_ end: Int, _ part: Int, at now: Instant, _ scene: inout TransferScene) {
        guard let place = ends[end].toAnswer.firstIndex(of: part) else {
            return blame(end, "answers for part \(part) of the metadata, and was not asked", at: now, &scene)
        }
        ends[end].toAnswer.remove(at: place)
    }

    private mutating func asks(_ end: Int, _ part: Int, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        let local = scene.peers[peer].local
        let parts = (scene.ends[end].theirMetadataByteCount + Self.partByteCount - 1) / Self.partByteCount
        if scene.peers[peer].hasMetadata || fetches[peer].isChecked {
            blame(end, "asks for metadata, and has it", at: now, &scene)
        }
        if part >= parts {
            blame(end, "asks for part \(part) of the metadata, which has \(parts)", at: now, &scene)
        }
        let isSame =
            fetches[peer].end == end && !fetches[peer].pending.contains(part)
            && !fetches[peer].received.contains(part)
        if !isSame {
            // Begun anew: because of a refusal, or because its time is over.
            if fetches[peer].end >= 0, local - fetches[peer].heardAt < Self.patience {
                blame(end, "asks for part \(part) of the metadata while others are on their way", at: now, &scene)
            }
            fetches[peer] = Fetch()
            fetches[peer].end = end
            fetches[peer].heardAt = local
        }
        fetches[peer].pending.append(part)
        if fetches[peer].pending.count > Self.maxPendingCount {
            blame(end, "asks for \(fetches[peer].pending.count) parts of the metadata at once", at: now, &scene)
        }
    }

    // MARK: - Heard

    mutating func hears(_ end: Int, _ payload: [UInt8], _ scene: TransferScene) {
        guard let said = try? MetadataMessage(decoding: payload) else { return }
        let peer = scene.ends[end].peer
        switch said {
        case .request(let part):
            if scene.ends[end].theirExtensions.metadata != 0 { ends[end].toAnswer.append(part) }
        case .data(let part, _, let bytes):
            guard fetches[peer].end == end, let place = fetches[peer].pending.firstIndex(of: part) else { return }
            let size = scene.ends[end].theirMetadataByteCount
            guard bytes.count == min(Self.partByteCount, size - part * Self.partByteCount) else {
                return forget(peer, scene)
            }
            fetches[peer].pending.remove(at: place)
            fetches[peer].received.append(part)
            fetches[peer].heardAt = scene.peers[peer].local
        case .reject: if fetches[peer].end == end { forget(peer, scene) }
        case .unknown: break
        }
    }

    /// The owner hashes what has come.
    mutating func checks(_ peer: Int) { fetches[peer].isChecked = true }

    /// The bytes were wrong.
    ///
    /// - Returns: the end that has given them.
    mutating func rejected(_ peer: Int) -> Int {
        let end = fetches[peer].end
        fetches[peer] = Fetch()
        return end
    }

    // MARK: - The time has come

    /// At the end of a step of its peer.
    mutating func check(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        guard scene.ends[end].isOpen, let part = ends[end].toAnswer.first else { return }
        ends[end].toAnswer.removeAll()
        blame(end, "was asked for part \(part) of the metadata, and says nothing", at: now, &scene)
    }

    /// Somebody is asked for what is lacked.
    mutating func look(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        guard !scene.peers[peer].hasMetadata, !fetches[peer].isChecked else { return }
        let local = scene.peers[peer].local
        let giver = scene.ends(of: peer).first { end in
            scene.ends[end].isGreeted && scene.ends[end].theirExtensions.metadata != 0
                && scene.ends[end].theirMetadataByteCount > 0
                && scene.ends[end].extensionsAt.map { local - $0 > Self.lateness } ?? false
        }
        guard let giver else { return }
        let isNobody = fetches[peer].end < 0 && local - fetches[peer].heardAt > Self.lateness
        if isNobody || local - fetches[peer].heardAt > Self.patience + Self.lateness {
            blame(giver, "lacks the metadata, and asks nobody, not even \(scene.otherName(giver))", at: now, &scene)
        }
    }

    private func blame(_ end: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.extensionsAreKept, at: now, "\(TransferScene.name(scene.ends[end].peer)) \(what)")
    }
}

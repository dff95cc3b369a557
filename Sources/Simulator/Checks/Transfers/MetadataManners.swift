// How the info dictionary is asked for, and given (BEP 9).

import PeerLogic
import Primitives
import Wire

/// How the info dictionary is asked for, and given (BEP 9).
///
/// It is asked for of one peer at a time that has said that it has it, four parts ahead and each once; of another when
/// that one refuses, or is silent for twenty seconds; and whoever has refused is not asked again for as long. Whoever
/// is asked answers at once, with the bytes, or refuses with a reason. When the metadata is here, all are told that may
/// lack it.
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

    /// One that was asked and left for another, and when it refused or was last heard of.
    private struct Left: Sendable {
        let other: Int
        let at: Instant
    }

    private struct End: Sendable {
        /// Parts that the other side wants, which are answered in the same step.
        var toAnswer: [Int] = []
        var givenCount = 0
        /// A part that was asked for has come in this step.
        var hasGiven = false
        /// When the other side last refused, or gave what is no part.
        var refusedAt: Instant?
    }

    private let metadata: [UInt8]
    private let partCount: Int
    private var fetches: [Fetch]
    /// By peer: when the metadata came to it in this life.
    private var acceptedAt: [Instant?]
    private var left: [[Left]]
    private var ends: [End] = []

    init(metadata: [UInt8], peerCount: Int) {
        self.metadata = metadata
        partCount = (metadata.count - 1) / Self.partByteCount + 1
        fetches = Array(repeating: Fetch(), count: peerCount)
        left = Array(repeating: [], count: peerCount)
        acceptedAt = Array(repeating: nil, count: peerCount)
    }

    mutating func began(_ peer: Int) {
        fetches[peer] = Fetch()
        left[peer].removeAll()
        acceptedAt[peer] = nil
    }

    mutating func opened(_ end: Int) {
        while ends.count <= end { ends.append(End()) }
        ends[end] = End()
    }

    mutating func closed(_ end: Int, _ scene: TransferScene) {
        let peer = scene.ends[end].peer
        if fetches[peer].end == end, !fetches[peer].isChecked {
            leaves(peer, at: fetches[peer].heardAt, scene)
            forget(peer, scene)
        }
        ends[end].toAnswer.removeAll()
    }

    /// Whoever is asked is left for another.
    private mutating func leaves(_ peer: Int, at moment: Instant, _ scene: TransferScene) {
        let other = scene.ends[fetches[peer].end].other
        left[peer].removeAll { $0.other == other }
        left[peer].append(Left(other: other, at: moment))
    }

    /// For how long an end has been left for others; nil where it was not.
    private func leftFor(_ end: Int, _ scene: TransferScene) -> Duration? {
        let record = scene.ends[end]
        return left[record.peer].first { $0.other == record.other }.map { scene.local(end) - $0.at }
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
            if fetches[peer].end >= 0 { leaves(peer, at: fetches[peer].heardAt, scene) }
            if let refused = ends[end].refusedAt, local - refused < Self.patience {
                let span = (local - refused).wholeMilliseconds
                blame(end, "asks for metadata \(span) ms after a refusal", at: now, &scene)
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
                return refuses(peer, scene)
            }
            fetches[peer].pending.remove(at: place)
            fetches[peer].received.append(part)
            ends[end].hasGiven = true
            fetches[peer].heardAt = scene.peers[peer].local
        case .reject: if fetches[peer].end == end { refuses(peer, scene) }
        case .unknown: break
        }
    }

    private mutating func refuses(_ peer: Int, _ scene: TransferScene) {
        let local = scene.peers[peer].local
        ends[fetches[peer].end].refusedAt = local
        leaves(peer, at: local, scene)
        forget(peer, scene)
    }

    /// The owner hashes what has come.
    mutating func checks(_ peer: Int) { fetches[peer].isChecked = true }

    mutating func accepted(_ peer: Int, _ scene: TransferScene) { acceptedAt[peer] = scene.peers[peer].local }

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
        if ends[end].hasGiven { checkAhead(end, at: now, &scene) }
        guard scene.ends[end].isOpen, let part = ends[end].toAnswer.first else { return }
        ends[end].toAnswer.removeAll()
        blame(end, "was asked for part \(part) of the metadata, and says nothing", at: now, &scene)
    }

    /// A part has come, so others are asked for.
    private mutating func checkAhead(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        ends[end].hasGiven = false
        let fetch = fetches[scene.ends[end].peer]
        let known = fetch.pending.count + fetch.received.count
        guard scene.ends[end].isOpen, scene.ends[end].isAmongHonest, fetch.end == end, !fetch.isChecked,
            fetch.pending.count < Self.maxPendingCount, known < partCount
        else { return }
        blame(end, "has asked for \(known) of \(partCount) parts of the metadata, and waits", at: now, &scene)
    }

    /// Somebody is asked for what is lacked.
    mutating func look(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        lookAtOffers(peer, at: now, &scene)
        guard !scene.peers[peer].hasMetadata, !fetches[peer].isChecked else { return }
        let local = scene.peers[peer].local
        let giver = scene.ends(of: peer).first { end in
            scene.ends[end].isGreeted && scene.ends[end].theirExtensions.metadata != 0
                && scene.ends[end].theirMetadataByteCount > 0
                && scene.ends[end].extensionsAt.map { local - $0 > Self.lateness } ?? false
                && leftFor(end, scene).map { $0 > Self.patience + Self.lateness } ?? true
        }
        guard let giver else { return }
        let isNobody = fetches[peer].end < 0 && local - fetches[peer].heardAt > Self.lateness
        if isNobody || local - fetches[peer].heardAt > Self.patience + Self.lateness {
            blame(giver, "lacks the metadata, and asks nobody, not even \(scene.otherName(giver))", at: now, &scene)
        }
    }

    /// Whoever may lack the metadata is told that it is here.
    private func lookAtOffers(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        guard let accepted = acceptedAt[peer], scene.peers[peer].local - accepted > Self.lateness else { return }
        for end in scene.ends(of: peer) where scene.ends[end].isGreeted && scene.ends[end].hasExtensions {
            let mayLackIt =
                scene.ends[end].extensionsAt == nil
                || scene.ends[end].theirExtensions.metadata != 0 && scene.ends[end].theirMetadataByteCount == 0
            guard scene.ends[end].isAmongHonest, mayLackIt, !scene.ends[end].offersMetadata else { continue }
            blame(end, "has the metadata, and does not tell \(scene.otherName(end))", at: now, &scene)
        }
    }

    private func blame(_ end: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.extensionsAreKept, at: now, "\(TransferScene.name(scene.ends[end].peer)) \(what)")
    }
}

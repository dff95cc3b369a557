// What the page is shown of a transfer.

import Foundation
import PeerLogic
import Primitives
import Transfers
import Web
import Wire

extension PeerTransfer {
    /// What the peer knows of it, and what its engine does; `snapshot` is nil where the engine would not take it.
    init(_ entry: PeerHost.Entry, _ snapshot: TransferSnapshot?) {
        self.init(hash: entry.row.infoHash)
        (name, directory) = (entry.name, entry.row.directory)
        (addedAt, completedAt) = (entry.row.addedAt, entry.row.completedAt)
        (received, sent, byteCount) = (entry.row.received, entry.row.sent, entry.byteCount)
        ratio = PeerHost.ratio(entry, snapshot)
        guard let snapshot else {
            state = entry.row.isPaused && entry.problem == nil ? .paused : .failed
            reason = entry.problem?.words
            problem = reason
            return
        }
        (state, reason, progress) = Self.state(snapshot)
        name = snapshot.name
        byteCount = snapshot.totalLength ?? byteCount
        missing = snapshot.missing
        received += snapshot.received
        sent += snapshot.sent
        wasted = snapshot.wasted
        (downRate, upRate) = (snapshot.downloadRate, snapshot.uploadRate)
        secondsLeft = snapshot.secondsLeft
        (peers, knownPeers) = (snapshot.peerCount, snapshot.knownPeerCount)
        isPrivate = snapshot.isPrivate
        let latest = snapshot.trackers.filter { $0.answeredAt != nil }
            .max { ($0.answeredAt?.nanoseconds ?? 0) < ($1.answeredAt?.nanoseconds ?? 0) }
        if let latest {
            (seeders, leechers, tracker) = (latest.seeders, latest.leechers, latest.url)
            trackerAddress = latest.address.map { "\($0)" }
        }
        problem = Self.problem(snapshot, hasReachedRatio: entry.hasReachedRatio)
    }

    private static func state(_ snapshot: TransferSnapshot) -> (State, reason: String?, progress: Double) {
        let wanted = snapshot.wantedLength ?? 0
        let share = wanted > 0 ? Double(wanted - min(snapshot.missing ?? wanted, wanted)) / Double(wanted) : 0
        switch snapshot.state {
        case .checking(let permille): return (.checking, nil, Double(permille) / 1_000)
        case .metadata: return (.metadata, nil, 0)
        case .downloading: return (.downloading, nil, share)
        case .seeding: return (.seeding, nil, share)
        case .paused: return (.paused, nil, share)
        case .waitingForPeers: return (.waitingForPeers, nil, share)
        case .waitingForDisk(let reason): return (.waitingForDisk, reason, share)
        case .verifying(let permille): return (.verifying, nil, Double(permille) / 1_000)
        case .failed(let reason): return (.failed, reason, share)
        case .stopping: return (.stopping, nil, share)
        }
    }

    /// What a transfer waits for, in a sentence without its full stop; nil where it waits for nothing.
    private static func problem(_ snapshot: TransferSnapshot, hasReachedRatio: Bool) -> String? {
        switch snapshot.state {
        case .waitingForDisk(let reason), .failed(let reason): return reason
        case .paused: return hasReachedRatio ? "it has reached its ratio, and rests" : nil
        case .downloading:
            return snapshot.downloadRate == 0 ? "the peers that are connected give nothing at the moment" : nil
        case .seeding:
            let missing = snapshot.missing ?? 0
            return missing > 0 ? "\(missing) bytes of the data are not here, or not as they were; check it again" : nil
        case .waitingForPeers: return peerProblem(snapshot)
        case .checking, .metadata, .verifying, .stopping: return nil
        }
    }

    private static func peerProblem(_ snapshot: TransferSnapshot) -> String {
        let known = snapshot.knownPeerCount
        if known > 0 {
            return known == 1
                ? "the only peer that is known cannot be reached, or has nothing that is missing"
                : "none of the \(known) peers that are known can be reached, or has what is missing"
        }
        guard !snapshot.trackers.isEmpty else { return "it knows no peer, and has no tracker to ask; name a peer" }
        if snapshot.trackers.allSatisfy({ $0.problem != nil }), let first = snapshot.trackers.first?.problem {
            return "no tracker answers: \(first)"
        }
        return snapshot.trackers.contains { $0.answeredAt != nil }
            ? "the trackers know no other peer yet; they are asked again" : "the trackers have not answered yet"
    }
}

extension PeerTransferDetail {
    init(_ entry: PeerHost.Entry, _ snapshot: TransferSnapshot?, maxPeers: Int, now: ClockReading) {
        let name = entry.name == "\(entry.row.infoHash)" ? [] : Array(entry.name.utf8)
        let link = MagnetLink(
            infoHash: entry.row.infoHash, displayName: name,
            trackers: entry.trackers.flatMap { $0 } + entry.row.extraTrackers)
        self.init(
            PeerTransfer(entry, snapshot), magnet: link.text,
            limits: Limits(
                maxDown: entry.row.maxDown, maxUp: entry.row.maxUp, maxPeers: maxPeers, ratio: entry.row.ratio))
        guard let snapshot else { return }
        if let length = snapshot.pieceLength, let have = snapshot.have {
            pieces = Pieces(count: have.count, length: length, bits: Self.bits(have))
            wantedBits = snapshot.wanted.map(Self.bits)
        }
        fileCount = snapshot.files.count
        files = snapshot.files.prefix(Self.maxFiles).map { file in
            File(
                index: file.index, path: file.path, byteCount: file.length, verified: file.verified,
                isWanted: file.isWanted)
        }
        let pieceCount = snapshot.have?.count ?? 0
        peerList = snapshot.peers.sorted { $0.downloadRate + $0.uploadRate > $1.downloadRate + $1.uploadRate }
            .prefix(Self.maxPeers).map { Peer($0, pieceCount: pieceCount) }
        trackers = snapshot.trackers.map { Tracker($0, now: now) }
        webSeeds = snapshot.webSeeds.map { WebSeed(url: $0.url, received: $0.received, problem: $0.problem) }
    }

    private static func bits(_ bitfield: Bitfield) -> String { Data(bitfield.wire).base64EncodedString() }
}

extension PeerTransferDetail.Peer {
    init(_ link: TorrentSession.LinkView, pieceCount: Int) {
        self.init(address: "\(link.address)", client: shownText(link.client.utf8))
        (downRate, upRate) = (link.downloadRate, link.uploadRate)
        (received, sent) = (link.received, link.sent)
        progress = pieceCount > 0 ? Double(link.pieceCount) / Double(pieceCount) : 0
        (flags.weChoke, flags.weWant) = (link.isChoked, link.interestsUs)
        (flags.theyChoke, flags.theyWant) = (link.chokesUs, link.isInterested)
        flags.incoming = link.isIncoming
    }
}

extension PeerTransferDetail.Tracker {
    init(_ tracker: TransferSnapshot.Tracker, now: ClockReading) {
        self.init(url: shownText(tracker.url.utf8), tier: tracker.tier)
        address = tracker.address.map { "\($0)" }
        answeredAt = tracker.answeredAt.map { at in
            now.wall.milliseconds - (now.monotonic - at).nanoseconds / 1_000_000
        }
        (seeders, leechers, problem) = (tracker.seeders, tracker.leechers, tracker.problem)
    }
}

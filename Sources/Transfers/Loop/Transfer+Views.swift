// What people are shown of a transfer.

import PeerLogic
import Primitives
import Wire

extension Transfer {
    /// A name for a connection that has come in; nil where there are as many as may be.
    func newLink() -> LinkID? {
        var actions = loop.borrowActions()
        let link = session.newLink(now: loop.now, into: &actions)
        for action in actions { perform(action) }
        loop.giveBack(&actions)
        return link
    }

    private var state: TransferSnapshot.State {
        switch mode {
        case .paused: return .paused
        case .checking(let run): return .checking(permille: run?.permille ?? 0)
        case .failed(let reason): return .failed(reason)
        case .stopping: return .stopping
        case .running: break
        }
        if let verification { return .verifying(permille: verification.permille) }
        if content == nil { return session.links(now: loop.now).isEmpty ? .waitingForPeers : .metadata }
        if session.waitsForDisk, let diskProblem { return .waitingForDisk(diskProblem) }
        if session.isComplete { return .seeding }
        // A web seed is no connection.
        let isAlone = session.links(now: loop.now).isEmpty && downRate.bytesPerSecond == 0
        return isAlone ? .waitingForPeers : .downloading
    }

    /// The transfer as it is; unless it `isWhole`, without connections and files.
    func snapshot(isWhole: Bool = true) -> TransferSnapshot {
        let (have, missing) = (noted ?? session.have, missing)
        let rate = downRate.bytesPerSecond
        let peers = session.links(now: loop.now)
        return TransferSnapshot(
            id: id, infoHash: infoHash, name: name, directory: options.directory, state: state,
            totalLength: content?.info.totalLength, missing: missing, wantedLength: wantedLength,
            received: session.received, sent: session.sent, wasted: session.wasted, downloadRate: rate,
            uploadRate: upRate.bytesPerSecond,
            secondsLeft: missing.flatMap { rate > 0 && $0 > 0 ? ($0 + rate - 1) / rate : nil },
            ratio: session.received > 0 ? Double(session.sent) / Double(session.received) : nil,
            peers: isWhole ? peers : [], peerCount: peers.count, knownPeerCount: session.knownPeerCount,
            pieceLength: content?.layout.pieceLength, have: have, wanted: session.wanted,
            trackers: trackers.views,
            webSeeds: webSeeds.indices.map {
                TransferSnapshot.WebSeed(url: webSeeds[$0], received: webReceived[$0], problem: webProblems[$0])
            },
            files: isWhole ? files(have) : [], isPrivate: content?.info.isPrivate ?? false, settings: options.settings)
    }

    /// Bytes of wanted pieces that are not here; of a seeder that fetches nothing, of all pieces.
    private var missing: Int? {
        guard let layout = content?.layout, let wanted = session.wanted, noted != nil || options.isSeedOnly else {
            return session.missingByteCount
        }
        guard let have = noted ?? session.have else { return nil }
        return (0..<layout.pieceCount).reduce(0) { sum, piece in
            (wanted[piece] || options.isSeedOnly) && !have[piece] ? sum + layout.length(ofPiece: piece) : sum
        }
    }

    private var wantedLength: Int? {
        guard let layout = content?.layout, let wanted = session.wanted, layout.pieceCount > 0 else { return nil }
        let last = layout.pieceCount - 1
        let (count, hasLast) = options.isSeedOnly ? (last + 1, true) : (wanted.setCount, wanted[last])
        return count * layout.pieceLength - (hasLast ? layout.pieceLength - layout.length(ofPiece: last) : 0)
    }

    private func files(_ have: Bitfield?) -> [TransferSnapshot.File] {
        guard let layout = content?.layout, let store else { return [] }
        return layout.files.indices.filter { !layout.files[$0].isPadding }.map { file in
            TransferSnapshot.File(
                index: file, path: store.shownPath(file), length: layout.files[file].length,
                verified: verified(file, layout, have), isWanted: options.wantedFiles?.contains(file) ?? true)
        }
    }

    private func verified(_ file: Int, _ layout: PieceLayout, _ have: Bitfield?) -> Int {
        guard let have else { return 0 }
        let span = layout.files[file]
        if have.isFull { return span.length }
        return layout.pieces(ofFile: file).reduce(0) { sum, piece in
            guard have[piece] else { return sum }
            let start = max(span.offset, piece * layout.pieceLength)
            let end = min(span.offset + span.length, piece * layout.pieceLength + layout.length(ofPiece: piece))
            return sum + end - start
        }
    }
}

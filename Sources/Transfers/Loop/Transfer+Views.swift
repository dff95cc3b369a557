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
        if session.isComplete, let emptyFileProblem { return .waitingForDisk(emptyFileProblem) }
        if session.isComplete { return .seeding }
        // A web seed is no connection.
        let isAlone = session.links(now: loop.now).isEmpty && downRate.bytesPerSecond == 0
        return isAlone ? .waitingForPeers : .downloading
    }

    func snapshot() -> TransferSnapshot {
        let missing = session.missingByteCount
        let rate = downRate.bytesPerSecond
        return TransferSnapshot(
            id: id, infoHash: infoHash, name: name, directory: options.directory, state: state,
            totalLength: content?.info.totalLength, missing: missing, received: session.received,
            sent: session.sent, wasted: session.wasted, downloadRate: rate, uploadRate: upRate.bytesPerSecond,
            secondsLeft: missing.flatMap { rate > 0 && $0 > 0 ? ($0 + rate - 1) / rate : nil },
            ratio: session.received > 0 ? Double(session.sent) / Double(session.received) : nil,
            peers: session.links(now: loop.now), knownPeerCount: session.knownPeerCount,
            pieceLength: content?.layout.pieceLength, have: session.have, wanted: session.wanted,
            trackers: trackers.views,
            webSeeds: webSeeds.views,
            files: files, settings: options.settings)
    }

    private var files: [TransferSnapshot.File] {
        guard let layout = content?.layout, let store else { return [] }
        return layout.files.indices.filter { !layout.files[$0].isPadding }.map { file in
            TransferSnapshot.File(
                index: file, path: store.shownPath(file), length: layout.files[file].length,
                verified: verified(file, layout), isWanted: options.wantedFiles?.contains(file) ?? true)
        }
    }

    private func verified(_ file: Int, _ layout: PieceLayout) -> Int {
        guard let have = session.have else { return 0 }
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

// Pieces of one torrent: hashed, written, checked, noted.

import Datagrams
import Foundation
import PeerLogic
import Primitives
import Wire

extension Transfer {
    func verify(_ piece: Int, _ wantsDigests: Bool) {
        guard let content, let buffer = buffers[piece] else { return }
        let (inbox, id, key) = (loop.inbox, id, loop.digestKey)
        let length = content.layout.length(ofPiece: piece)
        let expected = content.info.pieceHashes?[piece: piece]
        loop.hashers.add {
            let bytes = UnsafeRawBufferPointer(rebasing: buffer.bytes[..<length])
            let isRight = PieceHash.digest(of: bytes) == expected
            let digests = wantsDigests || !isRight ? PieceHash.digests(of: bytes, key: key) : []
            inbox.post { loop in
                loop.transfers[id]?.step(
                    isRight
                        ? .pieceVerified(piece: piece, digests: digests) : .pieceFailed(piece: piece, digests: digests))
            }
        }
    }

    func write(_ piece: Int) {
        guard let store, let buffer = buffers[piece] else { return }
        let (inbox, id) = (loop.inbox, id)
        loop.disk.add {
            do throws(DiskError) {
                try store.write(piece: piece, buffer)
                inbox.post { loop in
                    guard let transfer = loop.transfers[id] else { return }
                    transfer.unrecorded.append(piece)
                    transfer.step(.pieceStored(piece: piece))
                }
            } catch {
                inbox.post { loop in loop.transfers[id]?.step(.storeFailed(piece: piece, error.problem)) }
            }
        }
    }

    func checkMetadata(_ bytes: [UInt8]) {
        let (inbox, id, infoHash) = (loop.inbox, id, infoHash)
        loop.hashers.add {
            let result = Result { () throws(TransferError) in
                try PreparedTorrent.content(bytes, infoHash: infoHash)
            }
            inbox.post { loop in loop.transfers[id]?.metadataChecked(result) }
        }
    }

    private func metadataChecked(_ result: Result<PreparedTorrent.Content?, TransferError>) {
        do throws(TransferError) {
            guard let content = try result.get() else { return step(.metadataRejected) }
            guard self.content == nil else { return }
            self.content = content
            store = try FileStore(
                content.info, layout: content.layout, directory: options.directory,
                preallocates: options.preallocates, maxOpenCount: loop.options.maxOpenFileCount)
            name = content.info.name.description
            loop.tell(.metadataReceived(id, name: name, totalLength: content.info.totalLength))
            check(trustsRecord: !options.rechecks)
        } catch {
            content = nil
            fail(error.description)
        }
    }

    // MARK: - What is on the disk

    /// Finds out what the record says, without a look at the files' bytes: for those who look at a torrent that rests.
    func lookUpRecord() {
        guard let content, let store, !options.rechecks else { return }
        let path = statePath(content)
        let (inbox, id, infoHash) = (loop.inbox, id, infoHash)
        loop.recorder.add {
            guard FileManager.default.fileExists(atPath: path),
                let claims = try? ResumeStore(path: path, infoHash: infoHash).claims(content.info, store)
            else { return }
            inbox.post { loop in loop.transfers[id]?.noted = claims }
        }
    }

    /// Finds out what is on the disk, and begins, or goes on, with that.
    func check(trustsRecord: Bool) {
        guard let content, let store else { return }
        let isNew = !isRunning
        if isNew { mode = .checking(nil) }
        let path = statePath(content)
        resumePath = path
        let (inbox, id, infoHash) = (loop.inbox, id, infoHash)
        loop.recorder.add {
            var claims = Bitfield(count: content.layout.pieceCount)
            if trustsRecord, FileManager.default.fileExists(atPath: path),
                let record = try? ResumeStore(path: path, infoHash: infoHash)
            {
                claims = (try? record.claims(content.info, store)) ?? claims
            }
            let exists = store.layout.files.indices.map { store.stamp($0) != nil }
            let rest = (0..<content.layout.pieceCount).filter { piece in
                !claims[piece] && store.files(ofPiece: piece).allSatisfy { exists[$0] }
            }
            let known = claims
            inbox.post { loop in loop.transfers[id]?.hash(rest, known: known, isNew: isNew) }
        }
    }

    private func hash(_ pieces: [Int], known: Bitfield, isNew: Bool) {
        guard let content, let store else { return }
        if isNew { guard case .checking = mode else { return } }
        let (inbox, id) = (loop.inbox, id)
        let run = CheckRun(
            content.info, store, pieces: pieces, known: known, workers: loop.hasherCount
        ) { have in
            guard let have else { return }
            inbox.post { loop in loop.transfers[id]?.checked(have, isNew: isNew) }
        }
        if isNew { mode = .checking(run) }
        run.start(on: loop.hashers)
    }

    private func checked(_ have: Bitfield, isNew: Bool) {
        guard let content, let store else { return }
        if isNew { guard case .checking = mode else { return } } else { guard isRunning else { return } }
        noted = nil
        loop.tell(.checked(id, have: have.setCount, of: have.count))
        options.rechecks = false
        if let path = resumePath {
            let infoHash = infoHash
            loop.recorder.add {
                // Where nothing can be noted, all is hashed at the next start.
                try? ResumeStore(path: path, infoHash: infoHash)
                    .replace(have, content.info, content.metadata, store)
            }
        }
        makeEmptyFiles()
        mode = .running
        loop.shareLimits()
        if isNew {
            step(.started(have: have))
            begin()
        } else {
            step(
                .metadataAccepted(
                    layout: content.layout, isPrivate: content.info.isPrivate, have: have))
            step(.wantedChanged(wantedPieces(content)))
        }
    }

    func makeEmptyFiles() {
        guard let store, !options.isSeedOnly else { return }
        let wanted = options.wantedFiles
        loop.disk.add { try? store.makeEmptyFiles { wanted?.contains($0) ?? true } }
    }

    private func statePath(_ content: PreparedTorrent.Content) -> String {
        if let directory = options.stateDirectory { return "\(directory)/\(infoHash).resume" }
        // A name that is no UTF-8, or too long for a suffix, is told by its hash.
        let name = content.info.name.bytes
        let text = String(validating: name, as: UTF8.self)
        return "\(options.directory)/.\(text.flatMap { name.count < 240 ? $0 : nil } ?? "\(infoHash)").resume"
    }

    /// Notes what has been stored since the last time.
    func record() {
        guard !unrecorded.isEmpty, let content, let store, let path = resumePath else { return }
        let pieces = unrecorded
        unrecorded = []
        let infoHash = infoHash
        loop.recorder.add {
            // What is not noted is hashed again at the next start.
            _ = try? ResumeStore(path: path, infoHash: infoHash).note(pieces, content.info, store)
        }
    }

    /// The bytes of a piece are not what they were: neither the session nor the record counts on them any more.
    func lost(_ piece: Int) {
        unrecorded.removeAll { $0 == piece }
        if let store, let path = resumePath {
            let infoHash = infoHash
            loop.recorder.add { try? ResumeStore(path: path, infoHash: infoHash).forget(piece, store) }
        }
        step(.pieceLost(piece: piece))
    }

    // MARK: - Read back

    /// Reads all pieces back that are wanted and here.
    func verifyAll(_ ended: @escaping @Sendable (Result<Verification, TransferError>) -> Void) throws(TransferError) {
        guard let content, let store, let have = session.have, let wanted = session.wanted else {
            throw TransferError(.usage, "the transfer \(id) has no metadata yet, so there is nothing to verify")
        }
        guard verification == nil else {
            throw TransferError(.duplicate, "the transfer \(id) is being verified already; wait for its end")
        }
        var pieces: [Int] = []
        have.forEach { if wanted[$0] || options.isSeedOnly { pieces.append($0) } }
        let (inbox, id, checked) = (loop.inbox, id, pieces)
        let run = CheckRun(
            content.info, store, pieces: pieces, known: Bitfield(count: have.count), workers: loop.hasherCount
        ) { right in
            guard let right else { return ended(.failure(.engineStopped)) }
            let wrong = checked.filter { !right[$0] }
            let result = Verification(pieceCount: checked.count, wrongPieces: wrong)
            inbox.post { loop in loop.transfers[id]?.verified(result) }
            ended(.success(result))
        }
        verification = run
        run.start(on: loop.hashers)
    }

    private func verified(_ result: Verification) {
        verification = nil
        for piece in result.wrongPieces { lost(piece) }
        loop.tell(.verified(id, result))
    }

    // MARK: - Web seeds

    func fetch(_ piece: Int, from seed: Int) {
        guard let content, let store else { return }
        let buffer = buffer(piece, content.layout)
        let (inbox, id, url, agent) = (loop.inbox, id, webSeeds[seed], loop.options.userAgent)
        let info = content.info
        loop.fetchers.add {
            let result = WebFetch(url: url, info: info, store: store, userAgent: agent).fetch(piece, into: buffer)
            inbox.post { loop in loop.transfers[id]?.fetched(piece, from: seed, result) }
        }
    }

    private func fetched(_ piece: Int, from seed: Int, _ result: WebFetch.Outcome) {
        switch result {
        case .whole:
            webReceived[seed] += content?.layout.length(ofPiece: piece) ?? 0
            webProblems[seed] = nil
            step(.webPieceReceived(seed: seed, piece: piece))
        case .failed(let problem, let reason):
            webProblems[seed] = reason
            step(.webPieceFailed(seed: seed, piece: piece, problem))
        }
    }
}

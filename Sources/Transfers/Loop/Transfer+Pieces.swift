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
            try openFiles(content)
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
        let record = record(content)
        let (inbox, id) = (loop.inbox, id)
        loop.recorder.add {
            guard let claims = try? record.store(makes: false)?.claims(content.info, store) else { return }
            inbox.post { loop in loop.transfers[id]?.noted = claims }
        }
    }

    private func record(_ content: PreparedTorrent.Content) -> ResumeRecord {
        let record = resumeRecord ?? ResumeRecord(path: statePath(content), infoHash: infoHash)
        resumeRecord = record
        return record
    }

    /// Finds out what is on the disk, and begins, or goes on, with that.
    func check(trustsRecord: Bool) {
        guard let content, let store else { return }
        let isNew = !isRunning
        if isNew { mode = .checking(nil) }
        let record = record(content)
        let (inbox, id, hashedAt) = (loop.inbox, id, options.hashedAt)
        loop.recorder.add {
            // From before their bytes are looked at.
            let exists = store.layout.files.indices.map { store.remember($0) }
            var claims = Bitfield(count: content.layout.pieceCount)
            if trustsRecord, let noted = try? record.store(makes: false) {
                claims = (try? noted.claims(content.info, store)) ?? claims
            }
            if trustsRecord, let hashedAt { Self.claim(&claims, store, hashedAt) }
            let rest = (0..<content.layout.pieceCount).filter { piece in
                !claims[piece] && store.files(ofPiece: piece).allSatisfy { exists[$0] }
            }
            let known = claims
            inbox.post { loop in loop.transfers[id]?.hash(rest, known: known, isNew: isNew) }
        }
    }

    /// Adds the pieces of files that are whole and have not been written since they were hashed.
    private static func claim(_ claims: inout Bitfield, _ store: FileStore, _ hashedAt: WallTime) {
        // File systems tell the time in steps of up to two seconds.
        let latest = (hashedAt.milliseconds - 2_000) * 1_000_000
        let isUnchanged = store.layout.files.indices.map { file in
            guard let stamp = store.stamp(file) else { return false }
            return stamp.size == store.layout.files[file].length && stamp.modified < latest
        }
        for piece in 0..<store.layout.pieceCount where store.files(ofPiece: piece).allSatisfy({ isUnchanged[$0] }) {
            claims.insert(piece)
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
        options.hashedAt = nil
        if let record = resumeRecord {
            loop.recorder.add {
                // Where nothing can be noted, all is hashed at the next start.
                try? record.store()?.replace(have, content.info, content.metadata, store)
            }
        }
        makeEmptyFiles()
        mode = .running
        loop.shareLimits()
        if isNew {
            step(.started(have: have))
            begin()
            loop.admitWaiting(for: self)
        } else {
            step(
                .metadataAccepted(
                    layout: content.layout, isPrivate: content.info.isPrivate, have: have))
            step(.wantedChanged(wantedPieces(content)))
        }
    }

    func makeEmptyFiles() {
        guard let store, !options.isSeedOnly else { return }
        let (inbox, id, wanted) = (loop.inbox, id, options.wantedFiles)
        loop.disk.add {
            var trouble: DiskError?
            do throws(DiskError) {
                try store.makeEmptyFiles { wanted?.contains($0) ?? true }
            } catch {
                trouble = error
            }
            let problem = trouble
            inbox.post { loop in loop.transfers[id]?.emptyFilesMade(problem) }
        }
    }

    /// The empty files are there, or one is not: then it is tried again, as pieces are that could not be written.
    private func emptyFilesMade(_ problem: DiskError?) {
        if let problem {
            if emptyFileProblem == nil { loop.tell(.observed(id, .diskTrouble(.other(problem.description)))) }
            emptyFileProblem = problem.description
            emptyFilesRetryAt = loop.now + .seconds(5)
            return
        }
        emptyFilesRetryAt = nil
        guard emptyFileProblem != nil else { return }
        emptyFileProblem = nil
        loop.tell(.observed(id, .diskMended))
        if let verification = heldVerification {
            heldVerification = nil
            loop.tell(.verified(id, verification))
        }
    }

    /// Tries again what could not be made.
    func retryEmptyFiles() {
        guard let due = emptyFilesRetryAt, due <= loop.now, isRunning else { return }
        emptyFilesRetryAt = nil
        makeEmptyFiles()
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
        guard !unrecorded.isEmpty, let content, let store, let record = resumeRecord else { return }
        let pieces = unrecorded
        unrecorded = []
        loop.recorder.add {
            // What is not noted is hashed again at the next start.
            _ = try? record.store()?.note(pieces, content.info, store)
        }
    }

    /// The bytes of a piece are not what they were: neither the session nor the record counts on them any more.
    func lost(_ piece: Int) {
        disown(piece)
        step(.pieceLost(piece: piece))
    }

    /// The bytes of a piece are not what they were: the record does not count on them any more.
    func disown(_ piece: Int) {
        unrecorded.removeAll { $0 == piece }
        guard let store, let record = resumeRecord else { return }
        loop.recorder.add { try? record.store()?.forget(piece, store) }
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
        if result.isRight, emptyFileProblem != nil {
            heldVerification = result
        } else {
            loop.tell(.verified(id, result))
        }
    }

    // MARK: - Web seeds

    func fetch(_ piece: Int, from seed: Int) {
        guard let content, let store else { return }
        let buffer = buffer(piece, content.layout)
        let (inbox, id, url, agent) = (loop.inbox, id, webSeeds.url(of: seed), loop.options.userAgent)
        let info = content.info
        loop.fetchers.add {
            let result = WebFetch(url: url, info: info, store: store, userAgent: agent).fetch(piece, into: buffer)
            inbox.post { loop in loop.transfers[id]?.fetched(piece, from: seed, result) }
        }
    }

    private func fetched(_ piece: Int, from seed: Int, _ result: WebFetch.Outcome) {
        switch result {
        case .whole:
            webSeeds.gave(seed, byteCount: content?.layout.length(ofPiece: piece) ?? 0)
            step(.webPieceReceived(seed: seed, piece: piece))
        case .failed(let problem, let reason):
            webSeeds.failed(seed, reason)
            step(.webPieceFailed(seed: seed, piece: piece, problem))
        }
    }
}

// Torrent files after a partition: which side's word counts (rule 12).

import Primitives
import Wire

/// Which side's word on a torrent file counts.
///
/// Of what people have said at consoles the latest counts, as with accounts (`Accounts+Merging.swift`): a file of a
/// time, or its removal at the same time or later. Of what operators' files say the latest counts, too; no removal is
/// remembered against it, for it is said anew by each that reads them. A file of the console takes the place of one
/// from files, whichever is the newer.
extension TorrentFiles {
    /// Whether another side's file counts more than all that is known here of its torrent.
    func accepts(_ head: TorrentFileHead, at time: UInt32) -> Bool {
        guard let chunk = chunk(of: head.upload.infoHash) else { return false }
        if head.origin == .console, let removal = removal(of: head.upload.infoHash, in: chunk), removal.time >= time {
            return false
        }
        guard let file = find(head.upload.infoHash) else { return true }
        guard file.head.origin == head.origin else { return head.origin == .console }
        return file.changedTime != time ? file.changedTime < time : file.head.goesBefore(head)
    }

    /// Whether another side's word that a file was removed at a console counts more than all that is known here.
    func accepts(_ removal: RemovedFile) -> Bool {
        guard let chunk = chunk(of: removal.infoHash) else { return false }
        if let file = find(removal.infoHash), file.head.origin == .console { return file.changedTime <= removal.time }
        if let known = self.removal(of: removal.infoHash, in: chunk) { return known.time < removal.time }
        let removed = chunks[chunk].removed
        return removed.count < Bounds.removedPerChunk || removed[0].goesBefore(removal)
    }

    private func removal(of infoHash: InfoHash, in chunk: Int) -> RemovedFile? {
        chunks[chunk].removed.first { $0.infoHash == infoHash }
    }

    /// Where a file stands among all that was said of its torrent: behind what it follows.
    ///
    /// - Returns: its time, in seconds since 1970; outside of survivor mode never before the file that it replaces.
    func order(_ head: TorrentFileHead, time: UInt32) -> UInt32 {
        guard let chunk = chunk(of: head.upload.infoHash) else { return time }
        let removal = head.origin == .console ? removal(of: head.upload.infoHash, in: chunk) : nil
        guard let before = [find(head.upload.infoHash)?.changedTime, removal?.time].compactMap({ $0 }).max() else {
            return time
        }
        return max(time, keepsMergeData && before < .max ? before + 1 : before)
    }

    /// Remembers a removal; of two of one torrent the later, and of too many the first goes.
    mutating func insert(_ removal: RemovedFile, in chunk: Int) {
        if let known = self.removal(of: removal.infoHash, in: chunk) {
            guard known.time < removal.time else { return }
            forgetRemoval(of: removal.infoHash, in: chunk)
        }
        let place = chunks[chunk].removed.firstIndex { removal.goesBefore($0) }
        chunks[chunk].removed.insert(removal, at: place ?? chunks[chunk].removed.count)
        digest &+= fingerprint(removal)
        guard chunks[chunk].removed.count > Bounds.removedPerChunk else { return }
        digest &-= fingerprint(chunks[chunk].removed.removeFirst())
    }

    /// A file is uploaded that was removed before.
    mutating func forgetRemoval(of infoHash: InfoHash, in chunk: Int) {
        guard let place = chunks[chunk].removed.firstIndex(where: { $0.infoHash == infoHash }) else { return }
        digest &-= fingerprint(chunks[chunk].removed.remove(at: place))
    }
}

extension RemovedFile {
    /// By time, then by torrent.
    fileprivate func goesBefore(_ other: RemovedFile) -> Bool {
        time != other.time ? time < other.time : infoHash.precedes(other.infoHash)
    }
}

extension TorrentFileHead {
    /// Of two files at one time: by their bytes.
    fileprivate func goesBefore(_ other: TorrentFileHead) -> Bool {
        var (own, others): ([UInt8], [UInt8]) = ([], [])
        encode(into: &own)
        other.encode(into: &others)
        return own.lexicographicallyPrecedes(others)
    }
}

extension ReplicatedState {
    /// The updates that bring what a chunk of torrent files of another tracker knows, and this state does not: the
    /// parts of a file, and then the file.
    ///
    /// What is under way there is not finished here: whoever sends it hears that its first part is wanted.
    func mergeUpdates(from image: FilesImage) -> [Update] {
        var updates: [Update] = []
        for removal in image.removed where files.accepts(removal) {
            updates.append(.console(.mergeRemovedFile(removal.infoHash, at: removal.time)))
        }
        for file in image.files where files.accepts(file.head, at: file.changedTime) {
            // What came from files is registered, wherever it is kept.
            guard file.head.origin == .console || registry.find(file.infoHash) != nil else { continue }
            let isHere = files.find(file.infoHash)?.head == file.head
            for (number, bytes) in file.parts.enumerated() where !isHere {
                let part = UploadPart(
                    upload: file.head.upload, number: UInt32(number), byteCount: file.head.byteCount, bytes: bytes)
                updates.append(.console(.uploadPart(part)))
            }
            updates.append(.console(.mergeFile(file.head, at: file.changedTime)))
        }
        return updates
    }
}

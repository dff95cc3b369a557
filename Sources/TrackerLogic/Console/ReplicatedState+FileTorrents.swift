// Torrents that came from a tracker's files, beside those that people have uploaded.

import Primitives
import Wire

/// Torrents that came from a tracker's files, beside those that people have uploaded.
///
///     the directory, as a master reads it ──► registry: name and size of each
///                                        └──► files: the bytes of each, as an upload of its own (`finishUpload`)
///
/// A file that came from files is kept for as long as its torrent is registered, for it is taken out before that is
/// unregistered, and judged against the registry when it comes. What a person has uploaded wins: nothing that comes
/// from files takes its place, and it takes theirs.
extension ReplicatedState {
    /// Why no torrent file of so many bytes may be begun now.
    ///
    /// - Parameters:
    ///   - infoHash: of the torrent, which decides in which chunk it lies.
    ///   - byteCount: of the torrent file.
    ///   - limits: the master's.
    /// - Returns: a sentence; nil where it may.
    public func refusal(ofFile infoHash: InfoHash, byteCount: UInt32, _ limits: Limits) -> String? {
        guard byteCount <= limits.torrentFileByteCount else {
            return "a torrent file may have \(limits.torrentFileByteCount) bytes, this one has \(byteCount)"
        }
        guard files.uploadCount < limits.uploads || has(.uploadsUnbounded) else {
            return "\(limits.uploads) uploads are under way already: try again soon"
        }
        guard files.count < limits.torrentFiles else {
            return "there are \(limits.torrentFiles) torrent files already"
        }
        guard files.byteCount + Int(byteCount) <= limits.torrentFilesByteCount else {
            return "all torrent files together may have \(limits.torrentFilesByteCount) bytes"
        }
        guard files.hasRoom(infoHash, for: byteCount) else {
            return "there is no room for this torrent file beside others"
        }
        return nil
    }

    /// Why the file of a torrent may not come from files.
    ///
    /// - Parameter infoHash: of the torrent.
    /// - Returns: a sentence; nil where it may.
    public func refusal(ofFileTorrent infoHash: InfoHash) -> String? {
        if files.find(infoHash)?.head.origin == .console, !has(.fileTakesUpload) {
            return "somebody has uploaded this torrent at a console: that file stays"
        }
        guard registry.find(infoHash) != nil || has(.unregisteredFileKept) else {
            return "the directory of torrents that counts does not have it any more"
        }
        return nil
    }

    /// What replaces the torrents that came from files by others.
    ///
    /// - Parameters:
    ///   - wanted: all that the files say; the first of an info hash counts.
    ///   - limits: the master's.
    /// - Returns: the updates, or why it cannot be, in a sentence. Files go before their torrents do.
    func judge(fileTorrents wanted: [FileTorrent], _ limits: Limits) -> Result<[Update], Refused> {
        var (named, kept) = (registry.emptied, registry.emptied)
        var puts: [Update] = []
        for file in wanted where named.find(file.torrent.infoHash) == nil {
            named.put(file.torrent)
            if file.isKept { kept.put(file.torrent) }
            let name = Array(file.torrent.name.utf8.prefix(Limits.maxNameByteCount))
            let known = registry.find(file.torrent.infoHash)
            if known?.byteCount == file.torrent.byteCount, known.map({ Array($0.name.utf8) }) == name { continue }
            puts.append(.registerTorrent(file.torrent.infoHash, byteCount: file.torrent.byteCount, name: name))
        }
        guard named.count <= limits.registeredTorrents else {
            return .failure(Refused("the registry would hold more than \(limits.registeredTorrents) torrents"))
        }
        var updates: [Update] = []
        files.forEach { file in
            guard file.head.origin == .file || has(.uploadTakenByFiles), kept.find(file.infoHash) == nil,
                !has(.fileKeptWithoutTorrent)
            else { return }
            updates.append(.console(.removeTorrentFile(file.infoHash)))
        }
        updates += registry.all.filter { named.find($0.infoHash) == nil }.map { .unregisterTorrent($0.infoHash) }
        return .success(updates + puts)
    }

    #if PLANTED_BUGS
        private func has(_ bug: PlantedBug) -> Bool { files.has(bug) }
    #else
        private func has(_ bug: PlantedBug) -> Bool { false }
    #endif
}

// Torrent files that are kept whole, and those under way.

import Primitives
import Wire

/// Torrent files that people have uploaded or operators' files have, and those under way: replicated, changed by
/// updates alone.
///
///     part 0 ──► under way ── the next part ──┐        ┌─ a new upload of the torrent takes its place ─┐
///                  │ ▲                        │        ▼                                               │
///                  │ └────────────────────────┘   all parts, and the head ──► a file that is seen ─────┴─► removed
///                  └── none for a minute, or dropped ──► nothing is left of it
///
/// They lie in chunks of their own, by a keyed hash of the info hash: parts, file and name of a torrent in one, so that
/// each update touches one chunk of a snapshot only, and files that do not change are not written again with the
/// swarms that do. A part is kept as it came; a copy of the state shares them.
public struct TorrentFiles: Sendable {
    /// Bounds that are the same for all trackers, whatever they are configured to.
    public enum Bounds {
        /// Uploads under way, of all people: the master begins no more than `Limits.uploads`, and a merge one.
        public static let uploads = 64
        /// Bytes of one chunk, with what uploads have announced: half of what one message may hold, for a chunk goes to
        /// a newcomer in one.
        public static let chunkByteCount = ClusterMessage.Limits.chunkByteCount / 2
        /// Files of one chunk, and removals that are remembered for a merge.
        public static let filesPerChunk = 16_384
        /// Removals that are remembered in one chunk (survivor mode): the last ones.
        public static let removedPerChunk = 64
    }

    /// What lies in one chunk.
    struct Chunk: Sendable, Equatable {
        /// By info hash, in rising order of their bytes.
        var files: [TorrentFile] = []
        /// In the order in which they began.
        var uploads: [Upload] = []
        /// Each torrent once, and none whose file is here and the console's; the last one last.
        var removed: [RemovedFile] = []
        /// Of all files, and of all uploads as if they were complete.
        var byteCount = 0

        var isEmpty: Bool { files.isEmpty && uploads.isEmpty && removed.isEmpty }
    }

    var chunks: [Chunk]
    private let secret: UInt64
    let keepsMergeData: Bool
    /// Files that are here whole.
    public private(set) var count = 0
    /// Uploads under way.
    public private(set) var uploadCount = 0
    /// Bytes of all files, and of all uploads as if they were complete.
    public private(set) var byteCount = 0
    /// The sum of the fingerprints of all of it, in no order.
    public internal(set) var digest: UInt64 = 0
    #if PLANTED_BUGS
        var plantedBug: PlantedBug?
    #endif

    /// Nothing; `secret` keys the hashes.
    init(secret: UInt64, chunkCount: Int, keepsMergeData: Bool) {
        self.secret = secret
        self.keepsMergeData = keepsMergeData
        chunks = Array(repeating: Chunk(), count: chunkCount)
    }

    /// Into how many chunks torrent files are cut, beside a swarm table of so many shards: 256 for the usual 1,024.
    ///
    /// Tables of fewer than 16 shards, which only simulations have, keep none.
    static func chunkCount(shardCount: UInt32) -> Int {
        shardCount < 16 ? 0 : min(NumberBounds.fileChunkCount, Int(shardCount / 4))
    }

    // MARK: - Looking

    /// The chunk of an info hash, from 0; nil where no files are kept.
    @inline(__always)
    package func chunk(of infoHash: InfoHash) -> Int? {
        chunks.isEmpty ? nil : Int(infoHash.bytes.hash(key: secret) % UInt64(chunks.count))
    }

    /// The file of a torrent; nil where there is none, or not all of it.
    public func find(_ infoHash: InfoHash) -> TorrentFile? {
        guard let chunk = chunk(of: infoHash) else { return nil }
        let place = place(of: infoHash, in: chunk)
        return chunks[chunk].contains(infoHash, at: place) ? chunks[chunk].files[place] : nil
    }

    /// An upload under way.
    public func upload(_ id: UploadID) -> Upload? {
        chunk(of: id.infoHash).flatMap { chunk in chunks[chunk].uploads.first { $0.id == id } }
    }

    /// All files, without an order that means anything, one after another.
    ///
    /// - Parameter visit: is told of each; no bytes are copied.
    public func forEach(_ visit: (TorrentFile) -> Void) {
        for chunk in chunks { for file in chunk.files { visit(file) } }
    }

    /// All uploads under way.
    public var uploads: [Upload] { chunks.flatMap { $0.uploads } }

    /// The chunks, from 0, with uploads that have had no part since a cluster time.
    func idleChunks(since seconds: UInt32) -> [Int] {
        guard uploadCount > 0 else { return [] }
        return chunks.indices.filter { chunks[$0].uploads.contains { $0.lastPartAt <= seconds } }
    }

    /// Whether a chunk has room for a file of so many bytes more.
    func hasRoom(_ infoHash: InfoHash, for byteCount: UInt32) -> Bool {
        guard let chunk = chunk(of: infoHash) else { return false }
        return chunks[chunk].byteCount + Int(byteCount) <= Bounds.chunkByteCount
            && chunks[chunk].files.count < Bounds.filesPerChunk
    }

    // MARK: - Changing

    /// Takes the next part of an upload, or begins one; any other part changes nothing.
    ///
    /// But where a merge may bring parts that are here: an upload that it goes on with is not idle.
    mutating func take(_ part: UploadPart, time: UInt32) {
        guard part.isWithinBounds, let chunk = chunk(of: part.upload.infoHash) else { return }
        if let place = chunks[chunk].uploads.firstIndex(where: { isOf(part, $0) }) {
            let (whole, next) = (chunks[chunk].uploads[place].byteCount, chunks[chunk].uploads[place].parts.count)
            let isHere = keepsMergeData && next > Int(part.number)
            guard whole == part.byteCount, next == Int(part.number) || isHere else { return }
            digest &-= fingerprint(chunks[chunk].uploads[place])
            chunks[chunk].uploads[place].lastPartAt = time
            if !isHere { chunks[chunk].uploads[place].append(part.bytes) }
            digest &+= fingerprint(chunks[chunk].uploads[place])
        } else if part.number == 0, uploadCount < Bounds.uploads, hasRoom(part.upload.infoHash, for: part.byteCount) {
            insert(
                Upload(id: part.upload, byteCount: part.byteCount, lastPartAt: time, parts: [part.bytes]), in: chunk)
        }
    }

    /// Makes a file of an upload that is complete, in the place of the one that the torrent had.
    ///
    /// - Parameters:
    ///   - head: what it is called and has to be.
    ///   - index: of the entry that says so.
    ///   - time: cluster time, in seconds.
    ///   - isMerged: whether it became whole on another side of a partition; what counts more here stays.
    mutating func finish(_ head: TorrentFileHead, at index: UInt64, time: UInt32, isMerged: Bool = false) {
        guard let chunk = chunk(of: head.upload.infoHash) else { return }
        let old = find(head.upload.infoHash)
        if isMerged, var same = old, same.head == head {
            drop(head.upload)
            guard accepts(head, at: time) else { return }
            // The same on both sides: it stands as of the later time.
            takeOut(same, of: chunk)
            same.changedTime = time
            return insert(same, in: chunk)
        }
        guard let upload = upload(head.upload), upload.isComplete || has(.tornFileShown),
            upload.byteCount == head.byteCount
        else { return }
        drop(head.upload)
        // A merge may have brought what somebody has uploaded since this was judged.
        let isUpload = old?.head.origin == .console
        guard isMerged ? accepts(head, at: time) : head.origin == .console || !isUpload || has(.fileTakesUpload) else {
            return
        }
        let changedTime = isMerged ? time : order(head, time: time)
        if let old { takeOut(old, of: chunk) }
        if head.origin == .console { forgetRemoval(of: head.upload.infoHash, in: chunk) }
        insert(TorrentFile(head: head, changedAt: index, changedTime: changedTime, of: upload), in: chunk)
    }

    /// The parts of an upload go.
    mutating func drop(_ id: UploadID) {
        guard let chunk = chunk(of: id.infoHash), let place = chunks[chunk].uploads.firstIndex(where: { $0.id == id })
        else { return }
        let upload = chunks[chunk].uploads.remove(at: place)
        note(upload, in: chunk, isThere: false)
    }

    /// The parts of those uploads of a chunk go that have had none since a cluster time.
    mutating func forgetUploads(chunk: UInt32, idleSince seconds: UInt32) {
        guard chunk < chunks.count else { return }
        for upload in chunks[Int(chunk)].uploads where upload.lastPartAt <= seconds { drop(upload.id) }
    }

    /// Takes a file out.
    ///
    /// - Parameters:
    ///   - infoHash: of its torrent.
    ///   - time: cluster time of the removal, in seconds.
    ///   - isMerged: whether somebody removed it at a console of another side of a partition. Then it is remembered
    ///     also where there is no such file now, and what came from files stays.
    mutating func remove(_ infoHash: InfoHash, time: UInt32, isMerged: Bool = false) {
        guard let chunk = chunk(of: infoHash) else { return }
        var removal = RemovedFile(infoHash: infoHash, time: time)
        let old = find(infoHash)
        guard isMerged ? accepts(removal) : old != nil else { return }
        if let old, !isMerged || old.head.origin == .console {
            takeOut(old, of: chunk)
            // What files say is said anew by each that reads them, and no removal is remembered against it.
            guard old.head.origin == .console else { return }
            removal.time = max(time, old.changedTime)
        }
        if keepsMergeData { insert(removal, in: chunk) }
    }

    // MARK: - Chunks

    /// Puts a chunk back that has nothing yet.
    mutating func restore(_ image: FilesImage, in chunk: Int) {
        for file in image.files { insert(file, in: chunk) }
        for upload in image.uploads { insert(upload, in: chunk) }
        for removal in image.removed { insert(removal, in: chunk) }
    }

    private mutating func insert(_ file: TorrentFile, in chunk: Int) {
        chunks[chunk].files.insert(file, at: place(of: file.infoHash, in: chunk))
        note(file, in: chunk, isThere: true)
    }

    private mutating func insert(_ upload: Upload, in chunk: Int) {
        chunks[chunk].uploads.append(upload)
        note(upload, in: chunk, isThere: true)
    }

    private mutating func takeOut(_ file: TorrentFile, of chunk: Int) {
        chunks[chunk].files.remove(at: place(of: file.infoHash, in: chunk))
        note(file, in: chunk, isThere: false)
    }

    private mutating func note(_ file: TorrentFile, in chunk: Int, isThere: Bool) {
        count += isThere ? 1 : -1
        digest = isThere ? digest &+ fingerprint(file) : digest &- fingerprint(file)
        note(file.head.byteCount, in: chunk, isThere)
    }

    private mutating func note(_ upload: Upload, in chunk: Int, isThere: Bool) {
        uploadCount += isThere ? 1 : -1
        digest = isThere ? digest &+ fingerprint(upload) : digest &- fingerprint(upload)
        note(upload.byteCount, in: chunk, isThere)
    }

    private mutating func note(_ bytes: UInt32, in chunk: Int, _ isThere: Bool) {
        let difference = isThere ? Int(bytes) : -Int(bytes)
        byteCount += difference
        chunks[chunk].byteCount += difference
    }

    /// Where the file of a torrent is, or would be.
    func place(of infoHash: InfoHash, in chunk: Int) -> Int {
        let files = chunks[chunk].files
        var (low, high) = (0, files.count)
        while low < high {
            let middle = (low + high) / 2
            if files[middle].infoHash.precedes(infoHash) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

// MARK: - Fingerprints

extension TorrentFiles {
    func fingerprint(_ file: TorrentFile) -> UInt64 {
        fingerprint("F", file.partsDigest) { bytes in
            file.head.encode(into: &bytes)
            bytes.append(bigEndian: file.changedAt)
            bytes.append(bigEndian: file.changedTime)
        }
    }

    func fingerprint(_ upload: Upload) -> UInt64 {
        fingerprint("U", upload.partsDigest) { bytes in
            bytes.append(upload.id.infoHash.bytes)
            bytes.append(bigEndian: upload.id.number)
            bytes.append(bigEndian: upload.byteCount)
            bytes.append(bigEndian: upload.lastPartAt)
        }
    }

    func fingerprint(_ removal: RemovedFile) -> UInt64 {
        fingerprint("R", UInt64(removal.time)) { $0.append(removal.infoHash.bytes) }
    }

    /// `kind` tells files, uploads and removals apart.
    private func fingerprint(_ kind: Unicode.Scalar, _ parts: UInt64, _ encode: (inout [UInt8]) -> Void) -> UInt64 {
        var bytes: [UInt8] = []
        encode(&bytes)
        return mixed(checksum(bytes.span.bytes) ^ mixed(secret ^ UInt64(kind.value) ^ mixed(parts)))
    }

    /// Whether a part belongs to an upload.
    private func isOf(_ part: UploadPart, _ upload: Upload) -> Bool {
        if has(.uploadsMixed) { return upload.id.infoHash == part.upload.infoHash }
        return upload.id == part.upload
    }

    /// Whether a mistake is planted; never, in what is delivered.
    @inline(__always)
    func has(_ bug: PlantedBug) -> Bool {
        #if PLANTED_BUGS
            plantedBug == bug
        #else
            false
        #endif
    }
}

extension InfoHash {
    /// In the order of the bytes.
    func precedes(_ other: InfoHash) -> Bool {
        bytes.bytes.lexicographicallyPrecedes(other.bytes.bytes)
    }
}

extension TorrentFiles.Chunk {
    fileprivate func contains(_ infoHash: InfoHash, at place: Int) -> Bool {
        place < files.count && files[place].infoHash == infoHash
    }
}

extension TorrentFiles {
    mutating func walk(_ archive: inout Archive) {
        let chunkCount = chunks.count
        chunks.walk(&archive)
        if chunks.count != chunkCount { archive.refuse() }
        count.walk(&archive)
        uploadCount.walk(&archive)
        byteCount.walk(&archive)
        digest.walk(&archive)
    }
}

extension TorrentFiles.Chunk: Archived {
    static var blank: TorrentFiles.Chunk { TorrentFiles.Chunk() }

    mutating func walk(_ archive: inout Archive) {
        files.walk(&archive)
        uploads.walk(&archive)
        removed.walk(&archive)
        byteCount.walk(&archive)
    }
}

// Torrent files as values, and as a snapshot has them.

import Primitives
import Wire

/// A torrent file that is here whole.
public struct TorrentFile: Sendable, Hashable {
    /// Name, lengths and SHA-256, as they were found where it was uploaded.
    public var head: TorrentFileHead
    /// The index of the entry that made it whole.
    public var changedAt: UInt64
    /// Cluster time of that, in seconds since 1970: after a partition the newer one stays.
    public var changedTime: UInt32
    /// The bytes, in parts of `UploadPart.partByteCount`, the last one shorter.
    public let parts: [[UInt8]]
    /// What the fingerprints of the parts add up to.
    let partsDigest: UInt64

    /// Takes the fields as they are.
    public init(head: TorrentFileHead, changedAt: UInt64, changedTime: UInt32, parts: [[UInt8]]) {
        (self.head, self.changedAt, self.changedTime, self.parts) = (head, changedAt, changedTime, parts)
        partsDigest = Upload.digest(parts)
    }

    /// What an upload comes to.
    init(head: TorrentFileHead, changedAt: UInt64, changedTime: UInt32, of upload: Upload) {
        (self.head, self.changedAt, self.changedTime) = (head, changedAt, changedTime)
        (parts, partsDigest) = (upload.parts, upload.partsDigest)
    }

    /// The key: no two files have the same.
    public var infoHash: InfoHash { head.upload.infoHash }

    /// The file in one piece.
    public var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(head.byteCount))
        for part in parts { bytes.append(contentsOf: part) }
        return bytes
    }
}

/// A torrent file of which parts are missing: nobody sees it.
public struct Upload: Sendable, Hashable {
    /// Which upload it is.
    public var id: UploadID
    /// Bytes of the whole file.
    public var byteCount: UInt32
    /// Cluster time of the last part, in seconds since 1970.
    public var lastPartAt: UInt32
    /// The parts that are here: the first ones, without gaps.
    public private(set) var parts: [[UInt8]]
    /// What their fingerprints add up to, so that no part is read twice.
    private(set) var partsDigest: UInt64

    /// Takes the fields as they are.
    public init(id: UploadID, byteCount: UInt32, lastPartAt: UInt32, parts: [[UInt8]]) {
        (self.id, self.byteCount, self.lastPartAt, self.parts) = (id, byteCount, lastPartAt, parts)
        partsDigest = Upload.digest(parts)
    }

    /// Takes the next part.
    mutating func append(_ part: [UInt8]) {
        partsDigest &+= Upload.digest(part, parts.count)
        parts.append(part)
    }

    static func digest(_ parts: [[UInt8]]) -> UInt64 {
        var sum: UInt64 = 0
        for number in parts.indices { sum &+= digest(parts[number], number) }
        return sum
    }

    private static func digest(_ part: [UInt8], _ number: Int) -> UInt64 {
        mixed(checksum(part.span.bytes) ^ mixed(UInt64(number) &+ 1))
    }

    /// Whether all parts are here.
    public var isComplete: Bool { parts.count == Int(UploadPart.count(byteCount)) }
}

/// A torrent file of the console that was taken out, which another side of a partition may still have.
public struct RemovedFile: Sendable, Hashable {
    /// Of the torrent.
    public var infoHash: InfoHash
    /// Cluster time of its removal, in seconds since 1970.
    public var time: UInt32

    /// Takes the fields as they are.
    public init(infoHash: InfoHash, time: UInt32) { (self.infoHash, self.time) = (infoHash, time) }
}

/// A chunk of torrent files, whole.
struct FilesImage: Sendable, Equatable {
    /// In rising order of their info hashes.
    var files: [TorrentFile] = []
    /// In the order in which they began.
    var uploads: [Upload] = []
    /// The last one last.
    var removed: [RemovedFile] = []
}

// MARK: - Bytes

extension TorrentFiles {
    /// Writes one chunk down, as it is; `number` counts from 0.
    func encode(chunk number: Int, into bytes: inout [UInt8]) {
        let chunk = chunks[number]
        bytes.reserveCapacity(64 + chunk.byteCount + chunk.files.count * 700 + chunk.uploads.count * 64)
        bytes.append(bigEndian: UInt32(chunk.files.count))
        for file in chunk.files {
            file.head.encode(into: &bytes)
            bytes.append(bigEndian: file.changedAt)
            bytes.append(bigEndian: file.changedTime)
            for part in file.parts { bytes.append(contentsOf: part) }
        }
        let uploads = has(.uploadsNotInChunks) ? [] : chunk.uploads
        bytes.append(bigEndian: UInt32(uploads.count))
        for upload in uploads {
            bytes.append(upload.id.infoHash.bytes)
            bytes.append(bigEndian: upload.id.number)
            bytes.append(bigEndian: upload.byteCount)
            bytes.append(bigEndian: upload.lastPartAt)
            bytes.append(bigEndian: UInt32(upload.parts.count))
            for part in upload.parts { bytes.append(contentsOf: part) }
        }
        bytes.append(bigEndian: UInt32(chunk.removed.count))
        for removal in chunk.removed {
            bytes.append(removal.infoHash.bytes)
            bytes.append(bigEndian: removal.time)
        }
    }
}

extension FilesImage {
    /// Reads what no tracker goes beyond.
    init(_ reader: inout ByteReader) throws(OutOfBytes) {
        for _ in 0..<(try reader.count(atMost: TorrentFiles.Bounds.filesPerChunk)) {
            let head = try TorrentFileHead(&reader)
            let (changedAt, changedTime) = (try reader.index(), try reader.u32())
            let parts = try FilesImage.parts(UploadPart.count(head.byteCount), of: head.byteCount, &reader)
            files.append(TorrentFile(head: head, changedAt: changedAt, changedTime: changedTime, parts: parts))
        }
        for _ in 0..<(try reader.count(atMost: TorrentFiles.Bounds.uploads)) {
            let id = UploadID(infoHash: InfoHash(try reader.bytes20()), number: try reader.u64())
            let (byteCount, lastPartAt, count) = (try reader.u32(), try reader.u32(), try reader.u32())
            guard Int(clamping: byteCount) <= UploadPart.maxFileByteCount, count >= 1,
                count <= UploadPart.count(byteCount)
            else { throw OutOfBytes() }
            let parts = try FilesImage.parts(count, of: byteCount, &reader)
            uploads.append(Upload(id: id, byteCount: byteCount, lastPartAt: lastPartAt, parts: parts))
        }
        for _ in 0..<(try reader.count(atMost: TorrentFiles.Bounds.removedPerChunk)) {
            removed.append(RemovedFile(infoHash: InfoHash(try reader.bytes20()), time: try reader.u32()))
        }
    }

    /// The first parts of a file of so many bytes.
    private static func parts(
        _ count: UInt32, of byteCount: UInt32, _ reader: inout ByteReader
    ) throws(OutOfBytes) -> [[UInt8]] {
        var parts: [[UInt8]] = []
        var left = Int(byteCount)
        for _ in 0..<count {
            let length = min(left, UploadPart.partByteCount)
            parts.append(Array(try reader.take(length)))
            left -= length
        }
        return parts
    }
}

// MARK: - An image of a node

extension TorrentFile: Archived {
    static var blankHead: TorrentFileHead {
        let id = UploadID(infoHash: .blank, number: 0)
        return TorrentFileHead(upload: id, name: [], contentByteCount: 0, byteCount: 0, sha256: Session.blank.key)
    }
    static var blank: TorrentFile { TorrentFile(head: blankHead, changedAt: 0, changedTime: 0, parts: []) }

    mutating func walk(_ archive: inout Archive) {
        var parts = parts
        head.walk(&archive)
        changedAt.walk(&archive)
        changedTime.walk(&archive)
        archive.walk(parts: &parts)
        guard archive.isReading else { return }
        self = TorrentFile(head: head, changedAt: changedAt, changedTime: changedTime, parts: parts)
    }
}

extension Upload: Archived {
    static var blank: Upload { Upload(id: TorrentFile.blankHead.upload, byteCount: 0, lastPartAt: 0, parts: []) }

    mutating func walk(_ archive: inout Archive) {
        id.infoHash.walk(&archive)
        id.number.walk(&archive)
        byteCount.walk(&archive)
        lastPartAt.walk(&archive)
        archive.walk(parts: &parts)
        if archive.isReading { partsDigest = Upload.digest(parts) }
    }
}

extension RemovedFile: Archived {
    static var blank: RemovedFile { RemovedFile(infoHash: .blank, time: 0) }

    mutating func walk(_ archive: inout Archive) {
        infoHash.walk(&archive)
        time.walk(&archive)
    }
}

extension Archive {
    fileprivate mutating func walk(parts: inout [[UInt8]]) {
        let count = count(parts.count)
        if isReading { parts = [] }
        for place in 0..<count {
            var part = isReading ? [] : parts[place]
            walk(bytes: &part)
            if isDamaged { return }
            if isReading { parts.append(part) }
        }
    }
}

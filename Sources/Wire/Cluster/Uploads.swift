// Torrent files on their way into the log, part by part.

import Primitives

/// One upload of one torrent file: by whom its parts are known.
public struct UploadID: Sendable, Hashable {
    /// Of the torrent; found where the file was uploaded.
    public var infoHash: InfoHash
    /// Random, drawn by the tracker that takes the upload: two uploads of one torrent do not mix.
    public var number: UInt64

    /// Takes the fields as they are.
    public init(infoHash: InfoHash, number: UInt64) { (self.infoHash, self.number) = (infoHash, number) }
}

/// A part of a torrent file.
public struct UploadPart: Sendable, Hashable {
    /// The upload that it belongs to.
    public var upload: UploadID
    /// Which part it is, from 0.
    public var number: UInt32
    /// Bytes of the whole file.
    public var byteCount: UInt32
    /// As many as `length(of:in:)` says.
    public var bytes: [UInt8]

    /// Bytes of each part but the last: an entry that holds one is as long as one with 256 announces.
    public static let partByteCount = 16_384
    /// Bytes of a file that any tracker will take, whatever it is configured to.
    public static let maxFileByteCount = 64 << 20

    /// Takes the fields as they are.
    public init(upload: UploadID, number: UInt32, byteCount: UInt32, bytes: [UInt8]) {
        (self.upload, self.number, self.byteCount, self.bytes) = (upload, number, byteCount, bytes)
    }

    /// Cuts a part out of a file; nil behind its end.
    public init?(_ number: UInt32, of file: [UInt8], _ upload: UploadID) {
        let start = Int(number) * UploadPart.partByteCount
        guard start < file.count, file.count <= UploadPart.maxFileByteCount else { return nil }
        self.init(
            upload: upload, number: number, byteCount: UInt32(file.count),
            bytes: Array(file[start..<min(file.count, start + UploadPart.partByteCount)]))
    }

    /// How many parts a file of so many bytes has.
    public static func count(_ byteCount: UInt32) -> UInt32 {
        (byteCount + UInt32(partByteCount) - 1) / UInt32(partByteCount)
    }

    /// Whether number and length are those of a part of such a file.
    public var isWithinBounds: Bool {
        guard byteCount >= 1, Int(byteCount) <= UploadPart.maxFileByteCount, number < UploadPart.count(byteCount)
        else { return false }
        let start = Int(number) * UploadPart.partByteCount
        return bytes.count == min(UploadPart.partByteCount, Int(byteCount) - start)
    }
}

/// What a torrent file is called and has to be, said when all its parts are there.
public struct TorrentFileHead: Sendable, Hashable {
    /// The upload that becomes the file.
    public var upload: UploadID
    /// The torrent's name: UTF-8, at most `maxNameByteCount` bytes.
    public var name: [UInt8]
    /// The sum of the files that the torrent describes.
    public var contentByteCount: UInt64
    /// Bytes of the torrent file itself.
    public var byteCount: UInt32
    /// The SHA-256 of the torrent file, found where it was uploaded.
    public var sha256: Bytes32
    /// Whether somebody has uploaded it at a console, or the master's directory of torrents has it.
    public var origin: AccountOrigin

    /// Bytes of a name, at most.
    public static let maxNameByteCount = 512

    /// Takes the fields as they are.
    public init(
        upload: UploadID, name: [UInt8], contentByteCount: UInt64, byteCount: UInt32, sha256: Bytes32,
        origin: AccountOrigin = .console
    ) {
        (self.upload, self.name, self.contentByteCount) = (upload, name, contentByteCount)
        (self.byteCount, self.sha256, self.origin) = (byteCount, sha256, origin)
    }

    /// Whether a file may be like that.
    public var isWithinBounds: Bool {
        name.count <= TorrentFileHead.maxNameByteCount && byteCount >= 1
            && Int(byteCount) <= UploadPart.maxFileByteCount
    }
}

// MARK: - Bytes

extension UploadID {
    func encode(into bytes: inout [UInt8]) {
        bytes.append(infoHash.bytes)
        bytes.append(bigEndian: number)
    }

    init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(infoHash: InfoHash(try reader.bytes20()), number: try reader.u64())
    }
}

extension UploadPart {
    func encode(into bytes: inout [UInt8]) {
        upload.encode(into: &bytes)
        bytes.append(bigEndian: number)
        bytes.append(bigEndian: byteCount)
        bytes.append(counted: self.bytes)
    }

    init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(
            upload: try UploadID(&reader), number: try reader.u32(), byteCount: try reader.u32(),
            bytes: Array(try reader.counted()))
        guard isWithinBounds else { throw OutOfBytes() }
    }
}

extension TorrentFileHead {
    /// Appends its bytes, as updates, orders and snapshots have them.
    public func encode(into bytes: inout [UInt8]) {
        upload.encode(into: &bytes)
        bytes.append(counted: name)
        bytes.append(bigEndian: contentByteCount)
        bytes.append(bigEndian: byteCount)
        bytes.append(sha256)
        bytes.append(origin.rawValue)
    }

    /// Reads a head that is within its bounds.
    public init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(
            upload: try UploadID(&reader), name: Array(try reader.counted()), contentByteCount: try reader.u64(),
            byteCount: try reader.u32(), sha256: try reader.bytes32())
        guard isWithinBounds, let origin = AccountOrigin(rawValue: try reader.u8()) else { throw OutOfBytes() }
        self.origin = origin
    }
}

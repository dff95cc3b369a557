// The SHA-1 of pieces, in memory and on the disk.

import Crypto
import PeerLogic
import Primitives

/// The SHA-1 of pieces, in memory and on the disk.
enum PieceHash {
    static func digest(of bytes: UnsafeRawBufferPointer) -> Bytes20? {
        var hash = Insecure.SHA1()
        hash.update(bufferPointer: bytes)
        return hash.finalize().withUnsafeBytes { Bytes20($0) }
    }

    /// Reads a piece from its files, 1 MiB at a time.
    ///
    /// - Returns: nil where it is not all there.
    static func digest(ofPiece piece: Int, in store: FileStore, room: UnsafeMutableRawBufferPointer) -> Bytes20? {
        var hash = Insecure.SHA1()
        let length = store.layout.length(ofPiece: piece)
        var done = 0
        while done < length {
            let part = UnsafeMutableRawBufferPointer(rebasing: room[..<min(room.count, length - done)])
            guard store.read(piece: piece, offset: done, into: part) else { return nil }
            hash.update(bufferPointer: UnsafeRawBufferPointer(part))
            done += part.count
        }
        return hash.finalize().withUnsafeBytes { Bytes20($0) }
    }

    /// A number for each block of a piece, by which two copies are told apart.
    static func digests(of bytes: UnsafeRawBufferPointer, key: SipHash) -> [UInt64] {
        stride(from: 0, to: bytes.count, by: 16_384).map { start in
            key.mac(Array(bytes[start..<min(start + 16_384, bytes.count)]))
        }
    }
}

// Memory for a piece, shared between the loop, a thread that hashes and one that writes.

import Glibc

/// Memory for a piece, at page boundaries.
///
/// The loop writes while blocks come; once the session wants it hashed, nobody writes until it is released.
final class PieceBuffer: @unchecked Sendable {
    let bytes: UnsafeMutableRawBufferPointer

    /// - Parameter byteCount: at least 1.
    init(byteCount: Int) {
        bytes = .allocate(byteCount: byteCount, alignment: 4_096)
    }

    deinit { bytes.deallocate() }
}

/// Buffers that are used again, so that each piece does not fault its pages in anew.
struct BufferPool {
    private var free: [PieceBuffer] = []
    private var byteCount = 0
    /// More are given back to the system.
    private static let maxByteCount = 32 << 20

    /// A buffer of at least so many bytes.
    mutating func take(_ count: Int) -> PieceBuffer {
        if let index = free.lastIndex(where: { $0.bytes.count >= count && $0.bytes.count <= count * 2 }) {
            let buffer = free.remove(at: index)
            byteCount -= buffer.bytes.count
            return buffer
        }
        return PieceBuffer(byteCount: count)
    }

    /// Takes a buffer back; where somebody else still uses it, it is not used again.
    mutating func give(_ buffer: consuming PieceBuffer) {
        var buffer = buffer
        guard isKnownUniquelyReferenced(&buffer), byteCount + buffer.bytes.count <= Self.maxByteCount else { return }
        byteCount += buffer.bytes.count
        free.append(buffer)
    }
}

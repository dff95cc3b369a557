// The bytes of a recording.

import Primitives
import Wire

/// The bytes of a recording: a header, and a ring of frames.
///
///     0     magic, version, bytes of the ring
///     24    head: where the oldest frame begins; tail: where the next will begin; both count up and never wrap
///     40    id, flags, incarnation; both clocks at the beginning; the machine's boot; the program's version
///     4096  the ring: the byte at position p lies at p modulo its size
///
/// A frame is `byteCount, kind, check` in 16 bytes, and its payload, and begins at a multiple of 8. It never wraps:
/// what does not fit before the ring's end begins at its start, behind a filler. The check covers payload, kind and
/// position, so that nothing of an earlier lap, or that was torn, is taken for a frame.
///
///     step    clocks, digest of its effects, the event: written before the step is taken, so that a step that ends the
///             process is there; the digest is filled in after it
///     image   a part of a `TrackerNode.image`, and from which position on steps follow it
///     gap     something happened that is larger than a frame may be: nothing replays across it
enum RecordingFormat {
    static let magic: UInt64 = 0x3147_4E49_5243_4552
    static let version: UInt32 = 1
    static let headerByteCount = 4096
    static let frameHeaderByteCount = 16
    /// Clocks, digest and its seal.
    static let stepHeaderByteCount = 32
    /// No ring is larger, whatever a header says.
    static let maxRingByteCount = 1 << 30
    /// Bytes of a program's version.
    static let versionByteCount = 32

    /// Where things lie in the header.
    enum Place {
        static let magic = 0
        static let version = 8
        static let ringByteCount = 16
        static let head = 24
        static let tail = 32
        static let id = 40
        static let flags = 44
        static let incarnation = 48
        static let monotonic = 56
        static let wall = 64
        static let boot = 72
        static let program = 80
    }

    /// The life has ended as it should.
    static let endedInOrder: UInt32 = 1

    enum Kind: UInt32 {
        case filler = 1
        case step = 2
        case image = 3
        case gap = 4
    }

    static func padded(_ byteCount: Int) -> Int { (byteCount + 7) & ~7 }

    /// The largest payload: an eighth of the ring.
    static func maxPayload(_ ringByteCount: Int) -> Int { ringByteCount / 8 }

    /// The check of a frame: of a step without its header's digest, which comes later.
    static func check(_ payload: UnsafeRawBufferPointer, _ kind: Kind, at position: UInt64) -> UInt64 {
        let start = kind == .step ? min(stepHeaderByteCount, payload.count) : 0
        var sum = fastSum(UnsafeRawBufferPointer(rebasing: payload[start...]))
        if kind == .step, payload.count >= stepHeaderByteCount {
            sum ^= fastSum(UnsafeRawBufferPointer(rebasing: payload[0..<16]))
        }
        return folded(sum ^ position, UInt64(kind.rawValue) << 32 | UInt64(payload.count) | UInt64(1) << 63)
    }

    /// What is stored beside a digest, so that one that was torn is not taken for another.
    static func seal(_ digest: UInt64, at position: UInt64) -> UInt64 { mixed(digest ^ mixed(position ^ 0x5EA1)) }
}

/// What the header of a recording says.
public struct RecordingSummary: Sendable, Hashable {
    /// Whose it is.
    public let life: Life
    /// Whether the life ended as it should.
    public let endedInOrder: Bool

    /// Reads a header; nil where it is none of this version.
    public init?(_ header: [UInt8]) {
        guard header.count >= RecordingFormat.headerByteCount else { return nil }
        let span = header.span.bytes
        guard span.u64(at: RecordingFormat.Place.magic).byteSwapped == RecordingFormat.magic,
            span.u32(at: RecordingFormat.Place.version).byteSwapped == RecordingFormat.version
        else { return nil }
        life = Life(
            id: span.u32(at: RecordingFormat.Place.id).byteSwapped,
            incarnation: span.u64(at: RecordingFormat.Place.incarnation).byteSwapped)
        endedInOrder =
            span.u32(at: RecordingFormat.Place.flags).byteSwapped & RecordingFormat.endedInOrder != 0
    }
}

/// Memory that a recording is written into: a mapped file, or a simulated one.
///
/// One thread writes; whoever copies it meanwhile looks at head and tail before and after.
public final class RecordingRoom: @unchecked Sendable {
    /// All of it, header and ring.
    public let bytes: UnsafeMutableRawBufferPointer
    private let release: (@Sendable (UnsafeMutableRawBufferPointer) -> Void)?

    /// Takes over memory of at least a page and a small ring, all zero; its length is a multiple of 8.
    public init(
        _ bytes: UnsafeMutableRawBufferPointer,
        release: (@Sendable (UnsafeMutableRawBufferPointer) -> Void)? = nil
    ) {
        precondition(bytes.count >= 2 * RecordingFormat.headerByteCount && bytes.count % 8 == 0, "a ring has some room")
        self.bytes = bytes
        self.release = release
    }

    /// Memory of its own.
    public convenience init(byteCount: Int) {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 16)
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
        self.init(bytes) { $0.deallocate() }
    }

    deinit { release?(bytes) }

    /// What its header says; nil where it is no recording yet.
    public var summary: RecordingSummary? {
        RecordingSummary(Array(UnsafeRawBufferPointer(rebasing: bytes[0..<RecordingFormat.headerByteCount])))
    }

    /// Copies a recording that may be written to meanwhile: frames that are written over are left out of the copy.
    ///
    /// - Parameter write: takes bytes and their place; false where it cannot.
    /// - Returns: whether all was written.
    public func copy(_ write: (UnsafeRawBufferPointer, Int) -> Bool) -> Bool {
        let header = RecordingFormat.headerByteCount
        let tail = load(RecordingFormat.Place.tail, as: UInt64.self)
        guard write(UnsafeRawBufferPointer(rebasing: bytes[header...]), header) else { return false }
        // Whatever was written over meanwhile was let go before that.
        let head = load(RecordingFormat.Place.head, as: UInt64.self)
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: header, alignment: 16)
        defer { copy.deallocate() }
        copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[0..<header]))
        copy.storeBytes(of: min(head, tail).littleEndian, toByteOffset: RecordingFormat.Place.head, as: UInt64.self)
        copy.storeBytes(of: tail.littleEndian, toByteOffset: RecordingFormat.Place.tail, as: UInt64.self)
        return write(UnsafeRawBufferPointer(copy), 0)
    }

    func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as _: Number.Type) -> Number {
        Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }

    func store<Number: FixedWidthInteger & BitwiseCopyable>(_ number: Number, _ offset: Int) {
        bytes.storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
    }
}

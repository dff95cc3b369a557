// A recording that is read.

import Primitives
import Wire

/// A step that was recorded.
public struct RecordedStep: Sendable, Equatable {
    /// What happened.
    public var event: Event
    /// Both clocks of the tracker.
    public var now: ClockReading
    /// Of its effects (`EffectsDigest`); nil where the life ended in it, or what was noted was torn.
    public var digest: UInt64?
}

/// Bytes that are no recording, or nothing can be replayed of.
public enum RecordingUnreadable: Error, Sendable, Hashable {
    /// They do not begin like one.
    case notARecording
    /// They are of another version of the format.
    case otherVersion(UInt32)
    /// Their header, or the image of the state, is damaged.
    case damaged
    /// No image of the state is whole: the state was too large for the ring, or the life too short.
    case noImage
}

/// A recording that is read: the tracker as it was, and the steps from there on.
public struct Recording: Sendable {
    /// No file with one is larger.
    public static let maxByteCount = RecordingFormat.headerByteCount + RecordingFormat.maxRingByteCount

    private let bytes: [UInt8]
    private let ringByteCount: Int
    /// Whose it is.
    public let life: Life
    /// Both clocks when the life began.
    public let began: ClockReading
    /// The same for all recordings that share a monotonic clock; 0 where that is not known.
    public let boot: UInt64
    /// The version of the program that made it.
    public let program: String
    /// Whether the life ended as it should.
    public let endedInOrder: Bool
    /// How many bytes a copy of it lacks at the end: it was cut off, and what lay there is not replayed.
    public let missingByteCount: Int
    /// The tracker before the first step that is replayed.
    public let node: TrackerNode
    /// Both clocks then.
    public let from: ClockReading
    private var position: UInt64
    private let tail: UInt64

    /// Reads a recording.
    ///
    /// - Parameter bytes: a file as a tracker leaves or copies it, whole or torn at its end, or what is left of one.
    /// - Throws: `RecordingUnreadable`; never traps, whatever the bytes are.
    public init(_ bytes: [UInt8]) throws(RecordingUnreadable) {
        let span = bytes.span.bytes
        func word(_ offset: Int) -> UInt64 { span.u64(at: offset).byteSwapped }
        guard bytes.count >= RecordingFormat.headerByteCount, word(RecordingFormat.Place.magic) == RecordingFormat.magic
        else { throw .notARecording }
        let version = UInt32(truncatingIfNeeded: word(RecordingFormat.Place.version))
        guard version == RecordingFormat.version else { throw .otherVersion(version) }
        let ring = word(RecordingFormat.Place.ringByteCount)
        let held = UInt64(bytes.count - RecordingFormat.headerByteCount)
        guard ring >= max(held, 4096), ring <= RecordingFormat.maxRingByteCount, ring % 8 == 0 else { throw .damaged }
        missingByteCount = Int(ring - held)
        self.bytes = bytes
        ringByteCount = Int(ring)
        life = Life(
            id: UInt32(truncatingIfNeeded: word(RecordingFormat.Place.id)),
            incarnation: word(RecordingFormat.Place.incarnation))
        endedInOrder = UInt32(word(RecordingFormat.Place.id) >> 32) & RecordingFormat.endedInOrder != 0
        began = ClockReading(
            monotonic: Instant(nanoseconds: Int64(bitPattern: word(RecordingFormat.Place.monotonic))),
            wall: WallTime(milliseconds: Int64(bitPattern: word(RecordingFormat.Place.wall))))
        boot = word(RecordingFormat.Place.boot)
        let name = bytes[
            RecordingFormat.Place.program..<RecordingFormat.Place.program + RecordingFormat.versionByteCount]
        program = String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        let head = word(RecordingFormat.Place.head)
        tail = word(RecordingFormat.Place.tail)
        guard head <= tail, tail - head <= ring, head % 8 == 0 else { throw .damaged }
        guard let image = Recording.firstImage(bytes, ringByteCount, head, tail) else { throw .noImage }
        guard let node = TrackerNode(image: image.bytes) else { throw .damaged }
        self.node = node
        position = image.position
        from = image.now
    }

    /// The next step; nil behind the last.
    public mutating func next() -> RecordedStep? {
        while let frame = Recording.frame(bytes, ringByteCount, position, tail) {
            let here = position
            position = frame.next
            switch frame.kind {
            case .filler, .image: continue
            case .gap: return nil
            case .step: return step(frame.payload, at: here)
            }
        }
        return nil
    }

    private func step(_ payload: Range<Int>, at position: UInt64) -> RecordedStep? {
        guard payload.count > RecordingFormat.stepHeaderByteCount else { return nil }
        var archive = Archive(Array(bytes[payload]))
        var (monotonic, wall, digest, seal): (Int64, Int64, UInt64, UInt64) = (0, 0, 0, 0)
        archive.number(&monotonic)
        archive.number(&wall)
        archive.number(&digest)
        archive.number(&seal)
        var event = Event.blank
        event.walk(&archive)
        guard archive.isWhole else { return nil }
        return RecordedStep(
            event: event,
            now: ClockReading(
                monotonic: Instant(nanoseconds: monotonic), wall: WallTime(milliseconds: wall)),
            digest: seal == RecordingFormat.seal(digest, at: position) ? digest : nil)
    }

    // MARK: - Frames

    private struct Frame {
        var kind: RecordingFormat.Kind
        var payload: Range<Int>
        var next: UInt64
    }

    /// The frame at a position; nil where none that is whole begins there.
    private static func frame(_ bytes: [UInt8], _ ring: Int, _ position: UInt64, _ tail: UInt64) -> Frame? {
        let left = ring - Int(position % UInt64(ring))
        let place = RecordingFormat.headerByteCount + ring - left
        // A filler may be as short as that.
        guard position < tail, left >= 8, place + 8 <= bytes.count else { return nil }
        let span = bytes.span.bytes
        let count = Int(truncatingIfNeeded: span.u32(at: place).byteSwapped)
        guard let kind = RecordingFormat.Kind(rawValue: span.u32(at: place + 4).byteSwapped) else { return nil }
        if kind == .filler {
            return Frame(kind: .filler, payload: place..<place, next: position + UInt64(left))
        }
        let whole = RecordingFormat.frameHeaderByteCount + RecordingFormat.padded(count)
        guard count >= 0, count <= RecordingFormat.maxPayload(ring), whole <= left, position + UInt64(whole) <= tail,
            place + whole <= bytes.count
        else {
            return nil
        }
        let start = place + RecordingFormat.frameHeaderByteCount
        let check = bytes.withUnsafeBytes {
            RecordingFormat.check(UnsafeRawBufferPointer(rebasing: $0[start..<start + count]), kind, at: position)
        }
        guard check == span.u64(at: place + 8).byteSwapped else { return nil }
        return Frame(kind: kind, payload: start..<start + count, next: position + UInt64(whole))
    }

    private struct Image: Equatable {
        var bytes: [UInt8]
        var position: UInt64
        var now: ClockReading
    }

    /// The oldest image that is whole, and whose steps are all there: none that a gap is behind.
    private static func firstImage(_ bytes: [UInt8], _ ring: Int, _ head: UInt64, _ tail: UInt64) -> Image? {
        var position = head
        var generation: UInt32 = 0
        var found: Image?
        var image = Image(
            bytes: [], position: 0,
            now: ClockReading(monotonic: Instant(nanoseconds: 0), wall: WallTime(milliseconds: 0)))
        while let frame = frame(bytes, ring, position, tail) {
            position = frame.next
            if frame.kind == .gap { (found, generation) = (nil, 0) }
            guard found == nil, frame.kind == .image, frame.payload.count >= 44 else { continue }
            var archive = Archive(Array(bytes[frame.payload]))
            var (number, from, total, offset): (UInt32, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
            var now = image.now
            archive.number(&number)
            archive.number(&from)
            archive.number(&now.monotonic.nanoseconds)
            archive.number(&now.wall.milliseconds)
            archive.number(&total)
            archive.number(&offset)
            guard from >= head, total <= UInt64(ring) else { continue }
            if number != generation || offset == 0 {
                (generation, image) = (number, Image(bytes: [], position: from, now: now))
            }
            guard offset == UInt64(image.bytes.count) else { continue }
            image.bytes += archive.take(frame.payload.count - 44)
            if UInt64(image.bytes.count) == total { found = image }
        }
        return found
    }
}

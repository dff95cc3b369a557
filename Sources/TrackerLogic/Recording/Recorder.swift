// Keeps what goes into a tracker's step.

import Primitives
import Wire

/// Keeps what goes into a tracker's step, in a ring of bytes that outlives the process (`RecordingFormat`).
///
///     begins ── image wanted ──► its owner takes a copy of the node, and its bytes on another thread
///       ▲                                                │ whole
///       │                                                ▼
///       └── half of the ring is written ◄── parts of it go into the ring, a few with each step
///
/// A recording is replayed from the first image in it that is whole. The oldest steps leave with the images that they
/// follow, as new ones come; an image of more than three eighths of the ring is not kept, and nothing replays then.
///
/// Invariants: frames between head and tail are whole; nothing here allocates for a datagram.
public struct Recorder: Sendable {
    /// Which image is to be taken, and from where on steps follow it.
    public struct ImageTicket: Sendable, Hashable {
        var generation: UInt32
        var position: UInt64
        var now: ClockReading
    }

    /// An image that is in the ring, or on its way.
    private struct Image: Sendable {
        var ticket: ImageTicket
        var bytes: [UInt8] = []
        var written = 0
        var isTaken = false
    }

    /// What people are told of a recording.
    public struct Status: Sendable, Hashable {
        /// When the oldest step was taken that can be replayed; nil where none can.
        public var since: Instant?
        /// Bytes of the ring.
        public var byteCount: Int
        /// Bytes of the last image.
        public var imageByteCount: Int
        /// Whether the state is too large for the ring.
        public var isTooLarge: Bool
    }

    /// Bytes of an image that go into the ring with one step.
    static let partByteCount = 64 << 10

    private let room: RecordingRoom
    private let ringByteCount: Int
    private var head: UInt64 = 0
    private var tail: UInt64 = 0
    private var archive = Archive()
    private var digest = EffectsDigest()
    private var mark = EffectsDigest.Mark()
    /// Where the step under way lies.
    private var step: UInt64?
    /// The image on its way.
    private var pending: Image?
    private var generation: UInt32 = 0
    /// Images that are whole and in the ring, the oldest first.
    private var whole: [ImageTicket] = []
    private var lastByteCount = 0
    private var isTooLarge = false
    /// No image is begun before this position.
    private var nextImageAt: UInt64 = 0

    /// Begins a recording.
    ///
    /// - Parameters:
    ///   - room: all zero.
    ///   - life: of the tracker.
    ///   - now: both clocks.
    ///   - boot: the same for all trackers that share a monotonic clock; 0 where that is not known.
    ///   - program: the version of the program, for people.
    public init(room: RecordingRoom, life: Life, now: ClockReading, boot: UInt64 = 0, program: String = "") {
        self.room = room
        ringByteCount = room.bytes.count - RecordingFormat.headerByteCount
        room.store(RecordingFormat.version, RecordingFormat.Place.version)
        room.store(UInt64(ringByteCount), RecordingFormat.Place.ringByteCount)
        room.store(life.id, RecordingFormat.Place.id)
        room.store(life.incarnation, RecordingFormat.Place.incarnation)
        room.store(now.monotonic.nanoseconds, RecordingFormat.Place.monotonic)
        room.store(now.wall.milliseconds, RecordingFormat.Place.wall)
        room.store(boot, RecordingFormat.Place.boot)
        for (offset, byte) in program.utf8.prefix(RecordingFormat.versionByteCount).enumerated() {
            room.bytes[RecordingFormat.Place.program + offset] = byte
        }
        // Last: without it, this is no recording.
        room.store(RecordingFormat.magic, RecordingFormat.Place.magic)
    }

    // MARK: - Steps

    /// Notes a step that is about to be taken; what comes of it will lie behind the effects that there are.
    public mutating func record(_ event: Event, now: ClockReading, _ effects: Effects) {
        mark = EffectsDigest.Mark(effects)
        if pending != nil { putParts() }
        archive.removeAll()
        var (monotonic, wall, blank) = (now.monotonic.nanoseconds, now.wall.milliseconds, 0 as UInt64)
        archive.number(&monotonic)
        archive.number(&wall)
        archive.number(&blank)
        archive.number(&blank)
        var event = event
        event.walk(&archive)
        step = append(.step)
        if archive.bytes.capacity > Recorder.keptByteCount { archive = Archive() }
    }

    /// Room for an event that is kept.
    private static let keptByteCount = 1 << 20

    /// Notes what came of the step.
    public mutating func stepped(_ effects: Effects, _ position: Position) {
        guard let step else { return }
        let sum = digest.of(effects, since: mark, position)
        let place = place(step) + RecordingFormat.frameHeaderByteCount + 16
        room.store(sum, place)
        room.store(RecordingFormat.seal(sum, at: step), place + 8)
        self.step = nil
    }

    /// The life ends as it should.
    public mutating func end() {
        let flags = room.load(RecordingFormat.Place.flags, as: UInt32.self)
        room.store(flags | RecordingFormat.endedInOrder, RecordingFormat.Place.flags)
    }

    // MARK: - Images

    /// Whether an image is to be taken before the next step.
    public var wantsImage: Bool { pending == nil && tail >= nextImageAt }

    /// An image is being taken of the node as it is now, between two steps.
    ///
    /// - Parameters:
    ///   - byteCount: about how large it will be.
    ///   - now: both clocks.
    /// - Returns: with what its bytes are to be handed in; nil where it is too large.
    public mutating func beginImage(byteCount: Int, now: ClockReading) -> ImageTicket? {
        guard byteCount <= ringByteCount / 8 * 3 else {
            isTooLarge = true
            nextImageAt = tail + UInt64(ringByteCount / 8)
            return nil
        }
        generation += 1
        let ticket = ImageTicket(generation: generation, position: tail, now: now)
        pending = Image(ticket: ticket)
        return ticket
    }

    /// The bytes of an image are there.
    public mutating func take(_ bytes: [UInt8], of ticket: ImageTicket) {
        guard pending?.ticket == ticket else { return }
        guard bytes.count <= ringByteCount / 8 * 3 else {
            isTooLarge = true
            pending = nil
            nextImageAt = tail + UInt64(ringByteCount / 8)
            return
        }
        pending?.bytes = bytes
        pending?.isTaken = true
        lastByteCount = bytes.count
        isTooLarge = false
    }

    /// Goes on with what is not written, where no step is taken.
    public mutating func idle() { if pending != nil { putParts() } }

    private mutating func putParts() {
        guard var image = pending, image.isTaken else { return }
        // The steps behind it have left already: it was too slow.
        if image.ticket.position < head {
            pending = nil
            return
        }
        // So that the bytes have one owner.
        pending = nil
        let limit = min(Recorder.partByteCount, RecordingFormat.maxPayload(ringByteCount) / 2)
        let count = min(limit, image.bytes.count - image.written)
        archive.removeAll()
        archive.number(&image.ticket.generation)
        archive.number(&image.ticket.position)
        archive.number(&image.ticket.now.monotonic.nanoseconds)
        archive.number(&image.ticket.now.wall.milliseconds)
        var (total, offset) = (UInt64(image.bytes.count), UInt64(image.written))
        archive.number(&total)
        archive.number(&offset)
        let start = image.written
        image.bytes.withUnsafeBytes {
            archive.put(UnsafeRawBufferPointer(rebasing: $0[start..<start + count]))
        }
        append(.image)
        image.written += count
        guard image.written == image.bytes.count else {
            pending = image
            return
        }
        whole.append(image.ticket)
        forgetGone()
        let left = max(ringByteCount - 2 * image.bytes.count, 0) / 2
        nextImageAt = image.ticket.position + UInt64(max(left, ringByteCount / 8))
    }

    /// What people are told; a few images are looked at.
    public var status: Status {
        Status(
            since: whole.first { $0.position >= head }?.now.monotonic, byteCount: ringByteCount,
            imageByteCount: lastByteCount, isTooLarge: isTooLarge)
    }

    // MARK: - The ring

    private func place(_ position: UInt64) -> Int {
        RecordingFormat.headerByteCount + Int(position % UInt64(ringByteCount))
    }

    private mutating func forgetGone() {
        while let oldest = whole.first, oldest.position < head { whole.removeFirst() }
    }

    /// Puts what is in the archive into the ring as one frame.
    ///
    /// - Returns: its position; nil where it was too large.
    @discardableResult
    private mutating func append(_ kind: RecordingFormat.Kind) -> UInt64? {
        guard archive.bytes.count <= RecordingFormat.maxPayload(ringByteCount) else {
            archive.removeAll()
            append(.gap)
            // Nothing replays across it.
            (pending, whole, nextImageAt) = (nil, [], 0)
            return nil
        }
        let count = RecordingFormat.frameHeaderByteCount + RecordingFormat.padded(archive.bytes.count)
        let left = ringByteCount - Int(tail % UInt64(ringByteCount))
        if left < count {
            makeRoom(left)
            room.store(UInt32(0), place(tail))
            room.store(RecordingFormat.Kind.filler.rawValue, place(tail) + 4)
            if left >= RecordingFormat.frameHeaderByteCount { room.store(0 as UInt64, place(tail) + 8) }
            tail += UInt64(left)
            room.store(tail, RecordingFormat.Place.tail)
        }
        makeRoom(count)
        let position = tail
        let place = place(position)
        let sum = archive.bytes.withUnsafeBytes { bytes in
            room.bytes.baseAddress?.advanced(by: place + RecordingFormat.frameHeaderByteCount)
                .copyMemory(from: bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 8)!, byteCount: bytes.count)
            return RecordingFormat.check(bytes, kind, at: position)
        }
        room.store(UInt32(archive.bytes.count), place)
        room.store(kind.rawValue, place + 4)
        room.store(sum, place + 8)
        tail += UInt64(count)
        room.store(tail, RecordingFormat.Place.tail)
        return position
    }

    /// Lets the oldest frames go until so many bytes behind the tail are free.
    private mutating func makeRoom(_ count: Int) {
        guard tail + UInt64(count) > head + UInt64(ringByteCount) else { return }
        while tail + UInt64(count) > head + UInt64(ringByteCount) {
            let place = place(head)
            let left = ringByteCount - Int(head % UInt64(ringByteCount))
            let kind = room.load(place + 4, as: UInt32.self)
            if kind == RecordingFormat.Kind.filler.rawValue {
                head += UInt64(left)
            } else {
                let payload = Int(room.load(place, as: UInt32.self))
                head += UInt64(RecordingFormat.frameHeaderByteCount + RecordingFormat.padded(payload))
            }
        }
        // Before anything is written over.
        room.store(head, RecordingFormat.Place.head)
        forgetGone()
    }
}

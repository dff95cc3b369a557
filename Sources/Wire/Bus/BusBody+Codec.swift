// The bytes of frames' bodies (`BusFrame.swift`).

import Primitives

/// The bytes of frames' bodies; `BusFrameHead` has their layout.
///
/// The bus verifies the MAC before it reads a body; reading never traps.
extension BusBody {
    /// How many things one frame may name.
    public enum Limits {
        /// Sessions in a greeting; twice as many as a bus keeps peers.
        public static let acquaintances = 128
        /// Gaps in one frame that asks for them: 1,024 bytes, so that it fits into any datagram.
        public static let ranges = 64
    }

    /// Bytes that a message in a frame takes beside its own.
    public static let itemOverhead = 12
    /// Bytes that a part in a frame takes beside its own.
    public static let partOverhead = 24

    /// Appends a message to a frame of kind `messages`.
    ///
    /// - Parameters:
    ///   - destination: the incarnation that it is for; 0 for all.
    ///   - message: fewer than 2³² bytes.
    ///   - bytes: the frame so far.
    public static func appendItem(destination: UInt64, _ message: some Collection<UInt8>, to bytes: inout [UInt8]) {
        bytes.append(bigEndian: destination)
        bytes.append(bigEndian: UInt32(message.count))
        bytes.append(contentsOf: message)
    }

    /// Appends a part of a long message to a frame of kind `part`, which holds nothing else.
    ///
    /// - Parameters:
    ///   - destination: the incarnation that the message is for; 0 for all.
    ///   - message: counts the long messages of the sender's session.
    ///   - index: 0..<count.
    ///   - count: how many parts the message has; at least 2.
    ///   - part: not empty; all parts but the last have one length.
    ///   - bytes: the frame's head.
    public static func appendPart(
        destination: UInt64, message: UInt64, index: UInt32, count: UInt32, _ part: some Collection<UInt8>,
        to bytes: inout [UInt8]
    ) {
        bytes.append(bigEndian: destination)
        bytes.append(bigEndian: message)
        bytes.append(bigEndian: index)
        bytes.append(bigEndian: count)
        bytes.append(contentsOf: part)
    }

    /// Reads the body of a frame whose head was read, and whose MAC was found right.
    ///
    /// - Parameters:
    ///   - kind: as the head says.
    ///   - frame: the whole frame; what is read refers to it by ranges.
    /// - Throws: `BusFrameError.damaged` where the body is not one of this kind.
    public init(_ kind: BusFrameKind, of frame: [UInt8]) throws(BusFrameError) {
        let end = frame.count - BusFrameHead.macByteCount
        do throws(OutOfBytes) {
            self =
                switch kind {
                case .messages: .messages(try BusBody.items(frame, end))
                case .part: .part(try BusBody.part(frame, end))
                case .greeting: .greeting(try BusBody.greeting(frame, end))
                case .wanted: .wanted(try BusBody.wanted(frame, end))
                case .mark: .mark(oldest: try BusBody.mark(frame, end))
                }
        } catch {
            throw .damaged
        }
    }

    private static func items(_ frame: [UInt8], _ end: Int) throws(OutOfBytes) -> [BusItem] {
        var items: [BusItem] = []
        var offset = BusFrameHead.byteCount
        let bytes = frame.span.bytes
        repeat {
            guard end - offset >= itemOverhead else { throw OutOfBytes() }
            let destination = bytes.u64(at: offset)
            let count = Int(clamping: bytes.u32(at: offset + 8))
            offset += itemOverhead
            guard end - offset >= count else { throw OutOfBytes() }
            items.append(BusItem(destination: destination, range: offset..<offset + count))
            offset += count
        } while offset < end
        return items
    }

    private static func part(_ frame: [UInt8], _ end: Int) throws(OutOfBytes) -> BusPart {
        let start = BusFrameHead.byteCount
        guard end - start > partOverhead else { throw OutOfBytes() }
        let bytes = frame.span.bytes
        let part = BusPart(
            destination: bytes.u64(at: start), message: bytes.u64(at: start + 8), index: bytes.u32(at: start + 16),
            count: bytes.u32(at: start + 20), range: start + partOverhead..<end)
        guard part.index < part.count, part.count > 1 else { throw OutOfBytes() }
        return part
    }

    private static func greeting(_ frame: [UInt8], _ end: Int) throws(OutOfBytes) -> BusGreeting {
        var reader = ByteReader(frame, from: BusFrameHead.byteCount)
        var greeting = BusGreeting(oldest: try reader.u64(), acquaintances: [])
        let count = Int(try reader.u16())
        guard count <= Limits.acquaintances, end - reader.offset == count * 9 else { throw OutOfBytes() }
        for _ in 0..<count {
            let session = try reader.u64()
            let flag = try reader.u8()
            guard flag <= 1 else { throw OutOfBytes() }
            greeting.acquaintances.append(.init(session: session, isProven: flag == 1))
        }
        return greeting
    }

    private static func wanted(_ frame: [UInt8], _ end: Int) throws(OutOfBytes) -> BusWanted {
        var reader = ByteReader(frame, from: BusFrameHead.byteCount)
        var wanted = BusWanted(session: try reader.u64(), ranges: [])
        let count = Int(try reader.u16())
        guard (1...Limits.ranges).contains(count), end - reader.offset == count * 16 else { throw OutOfBytes() }
        var least: UInt64 = 1
        for _ in 0..<count {
            let (first, last) = (try reader.u64(), try reader.u64())
            guard first >= least, first <= last, last < .max - 1 else { throw OutOfBytes() }
            wanted.ranges.append(first...last)
            least = last + 1
        }
        return wanted
    }

    private static func mark(_ frame: [UInt8], _ end: Int) throws(OutOfBytes) -> UInt64 {
        guard end - BusFrameHead.byteCount == 8 else { throw OutOfBytes() }
        return frame.span.bytes.u64(at: BusFrameHead.byteCount)
    }
}

extension BusGreeting {
    /// Appends the body of a frame of kind `greeting`; more than `BusBody.Limits.acquaintances` trap.
    public func encode(into bytes: inout [UInt8]) {
        precondition(acquaintances.count <= BusBody.Limits.acquaintances, "a greeting names 128 sessions at most")
        bytes.append(bigEndian: oldest)
        bytes.append(bigEndian: UInt16(acquaintances.count))
        for acquaintance in acquaintances {
            bytes.append(bigEndian: acquaintance.session)
            bytes.append(acquaintance.isProven ? 1 : 0)
        }
    }
}

extension BusWanted {
    /// Appends the body of a frame of kind `wanted`; no ranges, or more than `BusBody.Limits.ranges`, trap.
    public func encode(into bytes: inout [UInt8]) {
        precondition((1...BusBody.Limits.ranges).contains(ranges.count), "a frame asks for 1 to 64 gaps")
        bytes.append(bigEndian: session)
        bytes.append(bigEndian: UInt16(ranges.count))
        for range in ranges {
            bytes.append(bigEndian: range.lowerBound)
            bytes.append(bigEndian: range.upperBound)
        }
    }
}

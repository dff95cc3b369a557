// A value's parts as bytes, both ways by one description.

import Primitives

/// A value's parts as bytes: each type says once what it is made of, and is written and read by that.
///
///     let archive = Archive(); node.walk(&archive)      writes: parts are copied into `bytes`
///     let archive = Archive(bytes); node.walk(&archive)   reads: parts are replaced by what the bytes say
///
/// So no part can be written and not read, or in another order. Numbers are little-endian and of fixed width; arrays
/// begin with their counts. What is not derived from other parts is walked over, and nothing else.
///
/// Bytes may be anybody's: what is cut or cannot be sets `isDamaged`, and nothing that is read from then on means
/// anything. Reading never traps.
struct Archive {
    /// What was written, or is read.
    private(set) var bytes: [UInt8]
    private var offset = 0
    /// Whether parts are replaced by what the bytes say.
    let isReading: Bool
    /// Whether the bytes cannot have been written by an archive of this version.
    private(set) var isDamaged = false

    /// An archive to write into.
    init() {
        bytes = []
        isReading = false
    }

    /// An archive to read from.
    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        isReading = true
    }

    /// An archive to write into again, which keeps its room.
    mutating func removeAll() {
        precondition(!isReading, "what is read is not written over")
        bytes.removeAll(keepingCapacity: true)
    }

    /// Whether all was read, and could be.
    var isWhole: Bool { !isDamaged && offset == bytes.count }

    /// What was read cannot be.
    mutating func refuse() { isDamaged = true }

    /// A part.
    @inline(__always)
    mutating func walk<Value: Archived>(_ value: inout Value) { value.walk(&self) }

    /// A number.
    @inline(__always)
    mutating func number<Number: FixedWidthInteger & BitwiseCopyable>(_ value: inout Number) {
        let width = Number.bitWidth / 8
        guard isReading else {
            withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
            return
        }
        guard !isDamaged, bytes.count - offset >= width else { return refuse() }
        value = Number(littleEndian: bytes.span.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Number.self))
        offset += width
    }

    /// The case of an enumeration, or another small number: `tag` where it is written.
    mutating func tag(_ tag: UInt8) -> UInt8 {
        var tag = tag
        number(&tag)
        return tag
    }

    /// How many things follow, of a byte or more each: `count` where they are written.
    mutating func count(_ count: Int) -> Int {
        var told = UInt32(count)
        number(&told)
        guard isReading else { return count }
        guard !isDamaged, Int64(told) <= Int64(bytes.count - offset) else {
            refuse()
            return 0
        }
        return Int(told)
    }

    /// Bytes behind their count.
    mutating func walk(bytes value: inout [UInt8]) {
        let count = count(value.count)
        guard isReading else { return bytes.append(contentsOf: value) }
        value = take(count)
    }

    /// So many bytes; none where there are not so many.
    mutating func take(_ count: Int) -> [UInt8] {
        guard !isDamaged, count <= bytes.count - offset else {
            refuse()
            return []
        }
        defer { offset += count }
        return Array(bytes[offset..<offset + count])
    }

    /// Bytes as they are, without their count.
    mutating func put(_ value: UnsafeRawBufferPointer) { bytes.append(contentsOf: value) }

    /// Bytes that `fill` writes in place.
    ///
    /// - Parameters:
    ///   - limit: the most that there can be.
    ///   - fill: writes into room for `limit` bytes and returns how many it wrote.
    @inline(__always)
    mutating func put(upTo limit: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) {
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: limit))
        let count = bytes.withUnsafeMutableBytes { fill(UnsafeMutableRawBufferPointer(rebasing: $0[start...])) }
        bytes.removeLast(limit - count)
    }

    /// What has a codec of its own, as bytes behind their count.
    ///
    /// - Parameters:
    ///   - value: what is walked over.
    ///   - encode: appends its bytes.
    ///   - decode: reads them all; nil where they are none.
    mutating func walk<Value>(
        coded value: inout Value, encode: (Value, inout [UInt8]) -> Void, decode: ([UInt8]) -> Value?
    ) {
        var coded: [UInt8] = []
        if !isReading { encode(value, &coded) }
        walk(bytes: &coded)
        guard isReading, !isDamaged else { return }
        guard let read = decode(coded) else { return refuse() }
        value = read
    }

    /// The records of a table in their order; it is read into one that is empty.
    mutating func walk<Record: FlatRecord & Archived>(table: inout FlatTable<Record>) {
        let count = count(table.count)
        for place in 0..<count {
            var record = isReading ? Record.blank : table.records[place]
            record.walk(&self)
            if isDamaged { return }
            if isReading { table.put(record) }
        }
        // Two records of one key are what no table holds.
        if table.count != count { refuse() }
    }
}

/// What an archive can hold.
protocol Archived {
    /// A value to be read over.
    static var blank: Self { get }
    /// Walks over all parts that are not derived from others.
    mutating func walk(_ archive: inout Archive)
}

extension Array: Archived where Element: Archived {
    static var blank: [Element] { [] }

    mutating func walk(_ archive: inout Archive) {
        let count = archive.count(count)
        guard archive.isReading else {
            // A copy of each, so that an array that is shared stays so.
            for var element in self { element.walk(&archive) }
            return
        }
        removeAll()
        reserveCapacity(Swift.min(count, 65_536))
        for _ in 0..<count {
            var element = Element.blank
            element.walk(&archive)
            if archive.isDamaged { return }
            append(element)
        }
    }
}

extension Optional: Archived where Wrapped: Archived {
    static var blank: Wrapped? { nil }

    mutating func walk(_ archive: inout Archive) {
        switch archive.tag(self == nil ? 0 : 1) {
        case 0: self = nil
        case 1:
            var value: Wrapped = self ?? Wrapped.blank
            value.walk(&archive)
            if archive.isReading { self = value }
        default: archive.refuse()
        }
    }
}

extension Archived where Self: RawRepresentable, RawValue == UInt8 {
    mutating func walk(_ archive: inout Archive) {
        guard let read = Self(rawValue: archive.tag(rawValue)) else { return archive.refuse() }
        if archive.isReading { self = read }
    }
}

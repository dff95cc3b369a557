// One pass over bencoded bytes that leaves a flat array of tokens.

import Primitives

/// One pass over bencoded bytes that leaves a flat array of tokens.
///
/// No recursion: how deep a stranger nests costs an element of `open`, not a stack frame.
///
/// Invariants: `offset` never exceeds the number of bytes, which is at most 2³¹ − 1, so no sum below overflows;
/// the tokens of a container follow its own; each key's token is followed by its value's.
struct BencodeScanner {
    /// A list or dictionary that has not ended yet.
    private struct Container {
        var token: Int
        var isDictionary: Bool
        /// In a dictionary: a key comes next, not a value.
        var expectsKey: Bool
        /// The token of the key read last.
        var lastKey: Int?
        var isSorted = true
    }

    private let bytes: [UInt8]
    private let strictness: BencodeStrictness
    private let limits: BencodeLimits
    private var offset = 0
    private var open: [Container] = []
    private(set) var tokens: [BencodeToken] = []

    init(_ bytes: [UInt8], strictness: BencodeStrictness, limits: BencodeLimits) {
        self.bytes = bytes
        self.strictness = strictness
        self.limits = limits
    }

    /// Reads one value.
    ///
    /// Afterwards `tokens` holds at least one token.
    mutating func scan() throws(BencodeError) {
        guard bytes.count <= limits.byteCount else {
            throw BencodeError(.tooManyBytes(limit: limits.byteCount), at: limits.byteCount)
        }
        repeat { try step() } while !open.isEmpty
    }

    /// Reads a string, an integer, or the beginning or end of a container.
    private mutating func step() throws(BencodeError) {
        guard offset < bytes.count else { throw BencodeError(.endsEarly, at: offset) }
        let byte = bytes[offset]
        if byte == Bencode.end, let container = open.last {
            try close(container)
        } else if let container = open.last, container.isDictionary, container.expectsKey {
            guard Bencode.digits.contains(byte) else { throw BencodeError(.keyIsNoString, at: offset) }
            try readKey(after: container.lastKey)
        } else {
            if !open.isEmpty { open[open.count - 1].expectsKey = true }
            switch byte {
            case Bencode.integer: try readInteger()
            case Bencode.list: try begin(isDictionary: false)
            case Bencode.dictionary: try begin(isDictionary: true)
            case Bencode.digits: try readString()
            default: throw BencodeError(.unexpectedByte(byte), at: offset)
            }
        }
    }

    private mutating func begin(isDictionary: Bool) throws(BencodeError) {
        guard open.count < limits.depth else { throw BencodeError(.tooDeep(limit: limits.depth), at: offset) }
        open.append(
            Container(token: tokens.count, isDictionary: isDictionary, expectsKey: isDictionary, lastKey: nil))
        try addToken(from: offset, contentStart: offset + 1, end: offset + 1)
        offset += 1
    }

    private mutating func close(_ container: Container) throws(BencodeError) {
        if container.isDictionary {
            guard container.expectsKey else { throw BencodeError(.keyWithoutValue, at: offset) }
            if !container.isSorted { try requireUniqueKeys(of: container.token) }
        }
        offset += 1
        tokens[container.token].end = UInt32(offset)
        tokens[container.token].next = UInt32(tokens.count)
        open.removeLast()
    }

    private mutating func readKey(after last: Int?) throws(BencodeError) {
        let start = offset
        let key = tokens.count
        try readString()
        open[open.count - 1].lastKey = key
        open[open.count - 1].expectsKey = false
        guard let last, !content(of: last).lexicographicallyPrecedes(content(of: key)) else { return }
        guard content(of: last) != content(of: key) else { throw BencodeError(.keyRepeated, at: start) }
        guard strictness == .lenient else { throw BencodeError(.keysUnsorted, at: start) }
        open[open.count - 1].isSorted = false
    }

    /// A sorted dictionary shows a repeated key at once; an unsorted one is looked through when it ends.
    private func requireUniqueKeys(of dictionary: Int) throws(BencodeError) {
        var keys: [Int] = []
        var key = dictionary + 1
        while key < tokens.count {
            keys.append(key)
            key = Int(tokens[key + 1].next)
        }
        keys.sort { content(of: $0).lexicographicallyPrecedes(content(of: $1)) }
        for (key, next) in zip(keys, keys.dropFirst()) where content(of: key) == content(of: next) {
            throw BencodeError(.keyRepeated, at: Int(tokens[max(key, next)].start))
        }
    }

    private func content(of token: Int) -> ArraySlice<UInt8> {
        bytes[Int(tokens[token].contentStart)..<Int(tokens[token].end)]
    }

    /// Reads `4:spam`.
    private mutating func readString() throws(BencodeError) {
        let start = offset
        var end = start
        var byteCount = 0
        while end < bytes.count, Bencode.digits.contains(bytes[end]) {
            byteCount = byteCount * 10 + Int(bytes[end] - Bencode.zero)
            // More than there is: told before the number can grow beyond an Int.
            guard byteCount <= bytes.count else { throw BencodeError(.stringTooLong, at: start) }
            end += 1
        }
        guard end < bytes.count else { throw BencodeError(.endsEarly, at: end) }
        guard bytes[end] == Bencode.colon else { throw BencodeError(.unexpectedByte(bytes[end]), at: end) }
        guard bytes[start] != Bencode.zero || end == start + 1 else { throw BencodeError(.leadingZero, at: start) }
        guard byteCount <= bytes.count - end - 1 else { throw BencodeError(.stringTooLong, at: start) }
        try addToken(from: start, contentStart: end + 1, end: end + 1 + byteCount)
        offset = end + 1 + byteCount
    }

    /// Reads `i42e`.
    private mutating func readInteger() throws(BencodeError) {
        let start = offset
        var end = start + 1
        let isNegative = end < bytes.count && bytes[end] == Bencode.minus
        if isNegative { end += 1 }
        let firstDigit = end
        var value: Int64 = 0
        while end < bytes.count, Bencode.digits.contains(bytes[end]) {
            let digit = Int64(bytes[end] - Bencode.zero)
            let (tenfold, overflows) = value.multipliedReportingOverflow(by: 10)
            // Downwards for a negative number, so that the least one has room.
            let (sum, overflowsToo) =
                isNegative ? tenfold.subtractingReportingOverflow(digit) : tenfold.addingReportingOverflow(digit)
            guard !overflows, !overflowsToo else { throw BencodeError(.integerTooLarge, at: start) }
            value = sum
            end += 1
        }
        guard end < bytes.count else { throw BencodeError(.endsEarly, at: end) }
        guard bytes[end] == Bencode.end else { throw BencodeError(.unexpectedByte(bytes[end]), at: end) }
        guard end > firstDigit else { throw BencodeError(.integerWithoutDigits, at: start) }
        if bytes[firstDigit] == Bencode.zero {
            guard !isNegative else {
                throw BencodeError(end == firstDigit + 1 ? .negativeZero : .leadingZero, at: start)
            }
            guard end == firstDigit + 1 else { throw BencodeError(.leadingZero, at: start) }
        }
        try addToken(from: start, contentStart: start + 1, end: end + 1)
        offset = end + 1
    }

    private mutating func addToken(from start: Int, contentStart: Int, end: Int) throws(BencodeError) {
        guard tokens.count < limits.valueCount else {
            throw BencodeError(.tooManyValues(limit: limits.valueCount), at: start)
        }
        // Below 2³², since `BencodeLimits` keeps the bytes below 2³¹.
        tokens.append(
            BencodeToken(
                start: UInt32(start), contentStart: UInt32(contentStart), end: UInt32(end),
                next: UInt32(tokens.count + 1)))
    }
}

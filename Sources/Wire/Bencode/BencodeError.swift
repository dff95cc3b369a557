// Why bytes are not the bencoded value that they should be.

import Primitives

/// Why bytes are not the bencoded value that they should be, and where.
public struct BencodeError: Error, Sendable, Hashable {
    /// What is wrong; unless told otherwise, in a document of either strictness.
    public enum Reason: Sendable, Hashable {
        /// The bytes end inside a value.
        case endsEarly
        /// A byte that begins no value, ends no number, or closes what is not open.
        case unexpectedByte(UInt8)
        /// `ie` or `i-e`: no digits.
        case integerWithoutDigits
        /// `i03e`, or a length such as `04:`; BEP 3 forbids the former, and the latter has a second spelling.
        case leadingZero
        /// `i-0e`.
        case negativeZero
        /// An integer beyond 64 bits: legal by BEP 3, of no use to any field that we know.
        case integerTooLarge
        /// A string that claims more bytes than there are.
        case stringTooLong
        /// A dictionary whose key is not a string.
        case keyIsNoString
        /// A dictionary that ends after a key.
        case keyWithoutValue
        /// A key that sorts before the one ahead of it (strict only).
        case keysUnsorted
        /// A key that a dictionary has twice: which value counts would depend on the reader.
        case keyRepeated
        /// Bytes follow the value (strict only).
        case trailingBytes
        /// Lists and dictionaries inside one another, beyond `BencodeLimits.depth`.
        case tooDeep(limit: Int)
        /// More values than `BencodeLimits.valueCount`.
        case tooManyValues(limit: Int)
        /// More bytes than `BencodeLimits.byteCount`.
        case tooManyBytes(limit: Int)
    }

    /// What is wrong at `offset`.
    public var reason: Reason
    /// Where in the bytes, from 0.
    public var offset: Int

    /// Takes what is wrong, and where.
    public init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

extension BencodeError: CustomStringConvertible {
    /// A sentence for people; it repeats no byte of the input but the one that is wrong, as a number.
    public var description: String { "\(cause) (at byte \(offset))" }

    private var cause: String {
        switch reason {
        case .endsEarly: "the bencoded data end in the middle of a value: is the file cut off?"
        case .unexpectedByte(let byte): "byte 0x\(hexadecimal([byte])) cannot stand here: this is not bencoded data"
        case .integerWithoutDigits: "an integer has no digits"
        case .leadingZero: "a number has a leading zero, which BEP 3 forbids"
        case .negativeZero: "an integer is written -0, which BEP 3 forbids"
        case .integerTooLarge: "an integer does not fit 64 bits"
        case .stringTooLong: "a string is said to be longer than the data: is the file cut off?"
        case .keyIsNoString: "a dictionary has a key that is not a string"
        case .keyWithoutValue: "a dictionary ends after a key that has no value"
        case .keysUnsorted: "the keys of a dictionary are not in sorted order, which BEP 3 demands"
        case .keyRepeated: "a dictionary has the same key twice"
        case .trailingBytes: "there are bytes after the end of the value"
        case .tooDeep(let limit): "lists and dictionaries are nested more than \(limit) deep"
        case .tooManyValues(let limit): "there are more than \(limit) values"
        case .tooManyBytes(let limit): "there are more than \(limit) bytes"
        }
    }
}

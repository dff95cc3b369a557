// Frames of STOMP 1.2, the protocol of message brokers.

import Primitives

/// What a frame asks for, or tells.
public enum StompCommand: String, Sendable, Hashable, CaseIterable {
    // Of clients.
    case connect = "CONNECT"
    case stomp = "STOMP"
    case send = "SEND"
    case subscribe = "SUBSCRIBE"
    case unsubscribe = "UNSUBSCRIBE"
    case ack = "ACK"
    case nack = "NACK"
    case begin = "BEGIN"
    case commit = "COMMIT"
    case abort = "ABORT"
    case disconnect = "DISCONNECT"
    // Of brokers.
    case connected = "CONNECTED"
    case message = "MESSAGE"
    case receipt = "RECEIPT"
    case error = "ERROR"

    /// "C style string literal escapes are used to encode any colons and newlines that are found within the UTF-8
    /// encoded headers", but not in CONNECT and CONNECTED frames, "to remain backward compatible with STOMP 1.0".
    var escapesHeaders: Bool { self != .connect && self != .connected }
}

/// The headers of a frame, in their order; where a name is repeated, the first counts.
///
/// They lie in one buffer, so that a frame costs two allocations and not two a header.
public struct StompHeaders: Sendable, Hashable {
    private struct Field: Sendable, Hashable {
        var start: Int
        var nameEnd: Int
        var valueEnd: Int
    }

    /// Names and values, unescaped, one behind another.
    private var bytes: [UInt8] = []
    private var fields: [Field] = []

    /// No headers.
    public init() {}

    /// Takes headers unescaped, in their order; a name may be repeated.
    public init(_ headers: KeyValuePairs<String, String>) {
        for (name, value) in headers { append(name, value) }
    }

    /// How many headers there are, repeated names included.
    public var count: Int { fields.count }

    /// Appends a header; it is unescaped here, and escaped when its frame is encoded.
    public mutating func append(_ name: String, _ value: String) {
        append(name: name.utf8, value: value.utf8)
    }

    mutating func append(name: some Collection<UInt8>, value: some Collection<UInt8>) {
        let start = bytes.count
        bytes.append(contentsOf: name)
        let nameEnd = bytes.count
        bytes.append(contentsOf: value)
        fields.append(Field(start: start, nameEnd: nameEnd, valueEnd: bytes.count))
    }

    /// The first value of that name, as bytes; nil where there is none.
    public func bytes(of name: StaticString) -> ArraySlice<UInt8>? {
        let count = name.utf8CodeUnitCount
        return name.withUTF8Buffer { wanted in
            for field in fields where field.nameEnd - field.start == count {
                if bytes[field.start..<field.nameEnd].elementsEqual(wanted) {
                    return bytes[field.nameEnd..<field.valueEnd]
                }
            }
            return nil
        }
    }

    /// The first value of that name, as text: what is not UTF-8 in it is replaced; nil where there is none.
    public subscript(name: StaticString) -> String? { bytes(of: name).map { String(decoding: $0, as: UTF8.self) } }

    /// Calls with each header in order.
    func forEach(_ body: (_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Void) {
        for field in fields { body(bytes[field.start..<field.nameEnd], bytes[field.nameEnd..<field.valueEnd]) }
    }
}

/// Frames of STOMP 1.2, the protocol of message brokers: a command, headers, and a body that may hold any bytes.
///
///     COMMAND LF (name ":" value LF)* LF body NUL
///
/// The body's length is always written as `content-length`, so that a body may hold NUL. `StompParser.swift` reads.
///
/// - SeeAlso: https://stomp.github.io/stomp-specification-1.2.html
public struct StompFrame: Sendable, Hashable {
    /// What the frame asks for, or tells.
    public var command: StompCommand
    /// All headers but `content-length`, which follows from the body.
    public var headers: StompHeaders
    /// Any bytes, NUL included.
    public var body: [UInt8]
    /// Bytes of a body that was longer than the reader takes, and was passed over; `body` is empty then.
    public var skippedByteCount: Int

    /// A frame without headers.
    public init(_ command: StompCommand, body: [UInt8] = []) { self.init(command, StompHeaders(), body: body) }

    /// A frame with unescaped headers in their order.
    public init(_ command: StompCommand, _ headers: KeyValuePairs<String, String>, body: [UInt8] = []) {
        self.init(command, StompHeaders(headers), body: body)
    }

    /// A frame with headers that were built before.
    ///
    /// - Parameters:
    ///   - command: what the frame asks for, or tells.
    ///   - headers: without `content-length`.
    ///   - body: any bytes.
    ///   - skippedByteCount: of a frame that was read: bytes of a body that was passed over.
    public init(_ command: StompCommand, _ headers: StompHeaders, body: [UInt8] = [], skippedByteCount: Int = 0) {
        self.command = command
        self.headers = headers
        self.body = body
        self.skippedByteCount = skippedByteCount
    }

    /// Appends the frame's bytes.
    public func encode(into bytes: inout [UInt8]) {
        bytes.append(contentsOf: command.rawValue.utf8)
        bytes.append(Stomp.lineFeed)
        let escapes = command.escapesHeaders
        headers.forEach { name, value in
            Self.append(name, to: &bytes, escapes)
            bytes.append(Stomp.colon)
            Self.append(value, to: &bytes, escapes)
            bytes.append(Stomp.lineFeed)
        }
        if !body.isEmpty {
            bytes.append(contentsOf: "content-length:".utf8)
            bytes.append(contentsOf: String(body.count).utf8)
            bytes.append(Stomp.lineFeed)
        }
        bytes.append(Stomp.lineFeed)
        bytes.append(contentsOf: body)
        bytes.append(0)
    }

    /// The frame's bytes.
    public func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        encode(into: &bytes)
        return bytes
    }

    private static func append(_ text: ArraySlice<UInt8>, to bytes: inout [UInt8], _ escapes: Bool) {
        guard escapes, text.contains(where: { Stomp.escape(of: $0) != nil }) else {
            bytes.append(contentsOf: text)
            return
        }
        for byte in text {
            if let letter = Stomp.escape(of: byte) {
                bytes.append(Stomp.backslash)
                bytes.append(letter)
            } else {
                bytes.append(byte)
            }
        }
    }
}

/// The bytes that mean something to STOMP.
enum Stomp {
    static let lineFeed = UInt8(ascii: "\n")
    static let carriageReturn = UInt8(ascii: "\r")
    static let colon = UInt8(ascii: ":")
    static let backslash = UInt8(ascii: "\\")

    /// The letter behind the backslash that stands for a byte in a header.
    static func escape(of byte: UInt8) -> UInt8? {
        switch byte {
        case lineFeed: UInt8(ascii: "n")
        case carriageReturn: UInt8(ascii: "r")
        case colon: UInt8(ascii: "c")
        case backslash: backslash
        default: nil
        }
    }

    /// The byte that a letter behind a backslash stands for.
    static func unescaped(_ letter: UInt8) -> UInt8? {
        switch letter {
        case UInt8(ascii: "n"): lineFeed
        case UInt8(ascii: "r"): carriageReturn
        case UInt8(ascii: "c"): colon
        case backslash: backslash
        default: nil
        }
    }
}

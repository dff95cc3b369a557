// Reads STOMP frames from a stream of bytes that comes in pieces of any length.

import Primitives

/// Bytes that are no STOMP: the connection is of no use any more.
public enum StompError: Error, Hashable, CustomStringConvertible {
    /// A frame begins with something else than a command of STOMP 1.2; up to 20 printable characters of it.
    case unknownCommand(String)
    /// A header without a colon, with an unknown escape, or a carriage return within a line.
    case badHeader
    /// A `content-length` that is no number, or one that no broker takes.
    case badContentLength
    /// The head has more lines or bytes than `StompParser.Limits` allow.
    case headTooLong
    /// What follows a body of known length is not NUL.
    case bodyGoesOn

    /// What is wrong, as the end of a sentence about a connection.
    public var description: String {
        switch self {
        case .unknownCommand(let name): "a frame begins with \(name), which is no STOMP command"
        case .badHeader: "a frame has a header that is none"
        case .badContentLength: "a frame has a content-length that is no length"
        case .headTooLong: "a frame has more headers than any broker sends"
        case .bodyGoesOn: "a frame's body is longer than its content-length"
        }
    }
}

/// Reads STOMP frames from a stream of bytes that comes in pieces of any length.
///
///     ┌─────────┐ a letter ┌──────┐ blank line ┌────────────────┐ all of it ┌─────┐
///     │ between ├─────────►│ head ├───────────►│ body / passing ├──────────►│ end │
///     └─────────┘          └──────┘            └────────────────┘           └──┬──┘
///          ▲   ▲              no content-length: body / passing until NUL      │ NUL
///          │   └───────────────────────────────────────────────────────────────┘
///        ends of lines: heart-beats
///
/// A body that is longer than the reader wants is passed over and told, rather than an error: anyone who may send to a
/// topic could else break the connections of all its subscribers.
///
/// Deviation from the specification: an unknown command is an error here, as is a header line without a colon.
public struct StompParser: Sendable {
    /// What one frame may hold.
    ///
    /// RabbitMQ and ActiveMQ send some ten headers of below 200 bytes.
    public enum Limits {
        /// Of one frame, `content-length` not counted.
        public static let headers = 64
        /// Bytes of one line, its end not counted.
        static let lineByteCount = 8 << 10
        /// Bytes of the command and all headers, their ends counted.
        static let headByteCount = 16 << 10
        /// Bytes of an unknown command that an error shows.
        static let shownByteCount = 20
        /// Beyond this a `content-length` is no length: no broker takes such a message.
        static let contentLengthDigits = 15
    }

    private enum Phase: Sendable {
        /// Nothing of a frame has come. Can transition to: head.
        case between
        /// Lines of the head. Can transition to: body, passing.
        case head
        /// Within a body that is kept. Can transition to: end; between, where NUL ends it.
        case body
        /// Within a body that is passed over. Can transition to: end; between, where NUL ends it.
        case passing
        /// The body is complete, its NUL is awaited. Can transition to: between.
        case end
        /// An error was thrown. Can transition to: nothing.
        case broken(StompError)
    }

    /// Bytes of a body that are kept; longer ones are passed over.
    private let maxBodyByteCount: Int
    private var phase = Phase.between
    private var line: [UInt8] = []
    private var headByteCount = 0
    private var command: StompCommand?
    private var headers = StompHeaders()
    /// nil: NUL ends the body.
    private var contentLength: Int?
    private var body: [UInt8] = []
    /// Bytes of the body so far.
    private var bodyByteCount = 0

    /// A parser at the beginning of a stream.
    ///
    /// - Parameter maxBodyByteCount: a longer body is passed over, and its frame tells how long it was.
    public init(maxBodyByteCount: Int) { self.maxBodyByteCount = maxBodyByteCount }

    /// Whether the bytes so far end between two frames.
    public var isBetweenFrames: Bool {
        if case .between = phase { true } else { false }
    }

    /// Takes the next bytes of the stream, all of them.
    ///
    /// - Parameters:
    ///   - bytes: what has come; it may end anywhere, also within a character or a line's end.
    ///   - frames: gets the frames that are complete by now, appended.
    /// - Throws: what is wrong; frames before it are appended; all later calls throw it again.
    public mutating func parse(
        _ bytes: UnsafeRawBufferPointer, into frames: inout [StompFrame]
    ) throws(StompError) {
        var rest = bytes[...]
        do throws(StompError) {
            while !rest.isEmpty { try advance(&rest, &frames) }
        } catch {
            phase = .broken(error)
            throw error
        }
    }

    /// Takes the next bytes of the stream, as the other `parse` does.
    ///
    /// - Parameters:
    ///   - bytes: what has come.
    ///   - frames: gets the frames that are complete by now, appended.
    /// - Throws: what is wrong; frames before it are appended; all later calls throw it again.
    public mutating func parse(_ bytes: [UInt8], into frames: inout [StompFrame]) throws(StompError) {
        var failure: StompError?
        bytes.withUnsafeBytes { raw in
            do throws(StompError) { try parse(raw, into: &frames) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    private mutating func advance(
        _ rest: inout Slice<UnsafeRawBufferPointer>, _ frames: inout [StompFrame]
    ) throws(StompError) {
        switch phase {
        case .between:
            // "Servers MUST allow … multiple EOLs between frames": heart-beats, too.
            rest = rest.drop { $0 == Stomp.lineFeed || $0 == Stomp.carriageReturn }
            if !rest.isEmpty { phase = .head }
        case .head: try takeLine(&rest)
        case .body, .passing: takeBody(&rest, &frames)
        case .end:
            guard rest.removeFirst() == 0 else { throw .bodyGoesOn }
            finish(&frames)
        case .broken(let error): throw error
        }
    }

    // MARK: The head

    private mutating func takeLine(_ rest: inout Slice<UnsafeRawBufferPointer>) throws(StompError) {
        let end = rest.firstIndex(of: Stomp.lineFeed) ?? rest.endIndex
        let count = end - rest.startIndex
        headByteCount += count + 1
        guard line.count + count <= Limits.lineByteCount, headByteCount <= Limits.headByteCount else {
            throw .headTooLong
        }
        line.append(contentsOf: rest[..<end])
        guard end < rest.endIndex else {
            // The rest of this line comes with other bytes; its end is counted then.
            headByteCount -= 1
            rest = rest[end...]
            return
        }
        rest = rest[(end + 1)...]
        if line.last == Stomp.carriageReturn { line.removeLast() }
        guard let command else {
            try readCommand()
            return
        }
        if line.isEmpty {
            try beginBody()
        } else {
            guard headers.count < Limits.headers else { throw .headTooLong }
            try readHeader(command)
            line.removeAll(keepingCapacity: true)
        }
    }

    private mutating func readCommand() throws(StompError) {
        let name = String(decoding: line, as: UTF8.self)
        guard let known = StompCommand(rawValue: name) else {
            let shown = line.prefix(Limits.shownByteCount).map { (33...126).contains($0) ? $0 : UInt8(ascii: "?") }
            throw .unknownCommand(String(decoding: shown, as: UTF8.self))
        }
        command = known
        line.removeAll(keepingCapacity: true)
    }

    private mutating func readHeader(_ command: StompCommand) throws(StompError) {
        guard let colon = line.firstIndex(of: Stomp.colon), !line.contains(Stomp.carriageReturn) else {
            throw .badHeader
        }
        let (name, value) = (line[..<colon], line[(colon + 1)...])
        if name.elementsEqual("content-length".utf8) {
            // "If a client or a server receives repeated frame header entries, only the first header entry SHOULD be
            // used": a reader that ignores that could be made to see other frames than the broker does.
            if contentLength == nil { contentLength = try length(value) }
        } else if command.escapesHeaders, line.contains(Stomp.backslash) {
            headers.append(name: try unescaped(name), value: try unescaped(value))
        } else {
            headers.append(name: name, value: value)
        }
    }

    private func length(_ digits: ArraySlice<UInt8>) throws(StompError) -> Int {
        guard (1...Limits.contentLengthDigits).contains(digits.count),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { throw .badContentLength }
        return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    private func unescaped(_ text: ArraySlice<UInt8>) throws(StompError) -> [UInt8] {
        var result: [UInt8] = []
        var isEscaped = false
        for byte in text {
            if isEscaped {
                // "Undefined escape sequences such as \t MUST be treated as a fatal protocol error."
                guard let plain = Stomp.unescaped(byte) else { throw .badHeader }
                result.append(plain)
                isEscaped = false
            } else if byte == Stomp.backslash {
                isEscaped = true
            } else {
                result.append(byte)
            }
        }
        guard !isEscaped else { throw .badHeader }
        return result
    }

    // MARK: The body

    private mutating func beginBody() throws(StompError) {
        bodyByteCount = 0
        body = []
        guard let contentLength else {
            phase = .body
            return
        }
        if contentLength > maxBodyByteCount {
            phase = .passing
        } else if contentLength == 0 {
            phase = .end
        } else {
            phase = .body
            body.reserveCapacity(contentLength)
        }
    }

    private mutating func takeBody(_ rest: inout Slice<UnsafeRawBufferPointer>, _ frames: inout [StompFrame]) {
        let end: Int
        if let contentLength {
            end = rest.startIndex + min(rest.count, contentLength - bodyByteCount)
        } else {
            end = rest.firstIndex(of: 0) ?? rest.endIndex
        }
        let part = rest[rest.startIndex..<end]
        bodyByteCount += part.count
        if case .body = phase {
            if bodyByteCount > maxBodyByteCount {
                body = []
                phase = .passing
            } else {
                body.append(contentsOf: UnsafeRawBufferPointer(rebasing: part))
            }
        }
        rest = rest[end...]
        if let contentLength {
            if bodyByteCount == contentLength { phase = .end }
        } else if !rest.isEmpty {
            rest.removeFirst()
            finish(&frames)
        }
    }

    private mutating func finish(_ frames: inout [StompFrame]) {
        guard let command else { preconditionFailure("a body follows a head") }
        let isPassed = bodyByteCount > maxBodyByteCount
        frames.append(
            StompFrame(command, headers, body: body, skippedByteCount: isPassed ? bodyByteCount : 0))
        self.command = nil
        headers = StompHeaders()
        contentLength = nil
        body = []
        bodyByteCount = 0
        headByteCount = 0
        line.removeAll(keepingCapacity: true)
        phase = .between
    }
}

// Keeps the bytes of a request's target as they were sent.

import NIOCore

/// Keeps the bytes of a request's target as they were sent.
///
/// NIO makes a `String` of the target and repairs what is not UTF-8, so that a raw byte of an info hash would be lost.
/// Most clients percent-encode them, some do not. So before NIO's parser sees it, each byte from 0x80 on in a request
/// line becomes `%XX`, which decodes to the same byte. Below 0x80, NIO's parser passes on or refuses what it gets,
/// as it is.
///
/// It also is the valve: after a connection's last request nothing more is read into memory, neither a body nor what
/// follows an `Upgrade` (NIO's parser would keep the latter without a bound).
final class RequestLineEscaper: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Whether all further bytes are thrown away.
    var isShut = false
    private var scanner = RequestLineScanner()
    /// Whether targets are escaped: not where bodies are read, for a body has no lines to be looked for.
    private let escapes: Bool

    init(escapes: Bool) { self.escapes = escapes }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isShut else { return }
        guard escapes else { return context.fireChannelRead(data) }
        context.fireChannelRead(wrapInboundOut(scanner.escape(unwrapInboundIn(data))))
    }
}

/// Finds the request lines in a stream of heads without bodies.
///
/// A connection with a body is shut after its head (`RequestLineEscaper.isShut`), so that a body is never taken for
/// lines.
struct RequestLineScanner {
    private enum Place {
        /// Before a request line; empty lines there mean nothing (RFC 9112, 2.2).
        case lineStart
        case line
        /// At the beginning of a header field's line, or of the empty line that ends the head.
        case fieldStart
        case field
    }

    private var place = Place.lineStart

    mutating func escape(_ buffer: ByteBuffer) -> ByteBuffer {
        var rawCount = 0
        let start = place
        buffer.withUnsafeReadableBytes { bytes in
            for byte in bytes where advance(byte) { rawCount += 1 }
        }
        guard rawCount > 0 else { return buffer }
        place = start
        var escaped = ByteBuffer()
        escaped.reserveCapacity(buffer.readableBytes + 2 * rawCount)
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in buffer.readableBytesView {
            if advance(byte) {
                escaped.writeBytes([UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]])
            } else {
                escaped.writeInteger(byte)
            }
        }
        return escaped
    }

    /// - Returns: whether the byte has to be escaped.
    private mutating func advance(_ byte: UInt8) -> Bool {
        let lineFeed = UInt8(ascii: "\n")
        let carriageReturn = UInt8(ascii: "\r")
        switch place {
        case .lineStart:
            if byte != lineFeed, byte != carriageReturn { place = .line }
            return byte >= 0x80
        case .line:
            if byte == lineFeed { place = .fieldStart }
            return byte >= 0x80
        case .fieldStart:
            if byte == lineFeed { place = .lineStart } else if byte != carriageReturn { place = .field }
            return false
        case .field:
            if byte == lineFeed { place = .fieldStart }
            return false
        }
    }
}

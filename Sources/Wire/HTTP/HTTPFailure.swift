// A refusal over HTTP.

import Primitives

/// A refusal over HTTP: `failure reason` (BEP 3), and when to try again (BEP 31).
public struct HTTPFailure: Sendable, Hashable {
    /// When the client may ask again (BEP 31, `retry in`).
    public enum Retry: Sendable, Hashable {
        /// "the client should never send this query again"
        case never
        /// At least 1.
        case after(minutes: UInt32)
    }

    /// Bytes of a text for people that are sent or read; longer ones are cut, for clients show one line.
    public static let maxTextByteCount = 255

    /// A line for the person behind the client; cut at `maxTextByteCount` bytes when it is encoded.
    public var reason: String
    /// nil where the tracker does not say.
    public var retry: Retry?

    /// Takes the text, and when to ask again; nil leaves that to the client.
    public init(_ reason: String, retry: Retry? = nil) {
        self.reason = reason
        self.retry = retry
    }

    /// The answer to a request that could not be read.
    public init(_ error: HTTPRequestError) { self.init(error.failureReason) }

    /// Encodes the refusal of an announce or a scrape.
    ///
    /// Minutes are written as an integer, as the text of BEP 31 has it (its example, in PHP, makes a string of them),
    /// and as `interval` in seconds besides: that is what libtorrent reads of a failure.
    public func encoded() -> [UInt8] {
        var entries: [BencodeValue.Entry] = [.init("failure reason", .text(HTTPFailure.cut(reason)))]
        switch retry {
        case nil:
            break
        case .never:
            entries.append(.init("retry in", .text("never")))
        case .after(let minutes):
            let minutes = Int64(max(1, minutes))
            entries.append(.init("interval", .integer(minutes * 60)))
            entries.append(.init("retry in", .integer(minutes)))
        }
        return BencodeValue.dictionary(entries).encoded()
    }

    /// Reads an answer up to where it turns out to be a dictionary that is no refusal.
    static func root(_ bytes: [UInt8]) throws(HTTPReplyError) -> BencodeNode {
        let root: BencodeNode
        do throws(BencodeError) {
            root = try BencodeDocument(bytes, strictness: .lenient, limits: .message).root
        } catch {
            throw .notBencoded(error)
        }
        guard root.kind == .dictionary else { throw .malformed(key: "peers") }
        guard let reason = root["failure reason"]?.bytes else { return root }
        var failure = HTTPFailure(text(reason))
        if let retry = root["retry in"] {
            if retry.bytes?.elementsEqual("never".utf8) == true {
                failure.retry = .never
            } else {
                let minutes = retry.integer ?? retry.bytes.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
                failure.retry = minutes.flatMap { $0 > 0 ? .after(minutes: UInt32(clamping: $0)) : nil }
            }
        }
        throw .refused(failure)
    }

    /// A text from a stranger, fit to be shown.
    static func text(_ bytes: ArraySlice<UInt8>) -> String { cut(displayText(bytes.prefix(maxTextByteCount))) }

    /// At most `maxTextByteCount` bytes, whole characters of UTF-8.
    static func cut(_ text: String) -> String {
        guard text.utf8.count > maxTextByteCount else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: maxTextByteCount)
        while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
        return String(text[..<end])
    }
}

// Puts the answer to a GET together from the parts in which it arrives.

import Primitives

/// Status line and headers.
struct HTTPHead {
    var status: Int
    /// In the server's words, fit to be shown.
    var reason: String
    /// Names in lower case.
    private var headers: [String: String] = [:]

    subscript(name: String) -> String? { headers[name] }

    /// Bytes of status line and headers.
    static let maxByteCount = 65_536

    /// What else it may be, in words.
    static func isNone(_ bytes: ArraySlice<UInt8>) -> TrackerClientError {
        // A server of TLS turns down whoever begins with anything else: without a word, or by a record with an alert
        // (RFC 8446, 5.1).
        if bytes.isEmpty { return .malformed("it is empty; does the other side speak TLS? This program does not") }
        let isTLS = bytes.starts(with: [21, 3])
        return .malformed(isTLS ? "it is TLS, which this program does not speak" : "it is not HTTP")
    }

    /// - Throws: `.malformed` for what is not HTTP/1.
    init(_ bytes: ArraySlice<UInt8>) throws(TrackerClientError) {
        let text = String(decoding: bytes, as: UTF8.self)
        var lines = text.split(omittingEmptySubsequences: true) { $0 == "\r\n" || $0 == "\n" }[...]
        let first = lines.popFirst() ?? ""
        let words = first.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), words[1].utf8.count == 3,
            words[1].utf8.allSatisfy({ (48...57).contains($0) }), let status = Int(words[1])
        else { throw HTTPHead.isNone(bytes) }
        self.status = status
        reason = words.count > 2 ? shownText(words[2].utf8) : ""
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...]
            headers[line[..<colon].lowercased()] = value.split(separator: " ").joined(separator: " ")
        }
    }
}

/// Puts the answer to a GET together from the parts in which it arrives.
struct HTTPAnswerReader {
    private let limit: Int
    private var bytes: [UInt8] = []
    private var head: HTTPHead?
    private var bodyStart = 0

    /// - Parameter limit: bytes of head and body together.
    init(limit: Int) { self.limit = limit }

    /// Takes a part; an empty one is the end of the stream.
    ///
    /// - Returns: the answer, once it is whole.
    mutating func add(_ part: [UInt8]) throws(TrackerClientError) -> (HTTPHead, [UInt8])? {
        let isEnded = part.isEmpty
        guard bytes.count + part.count <= limit else { throw .malformed("it is longer than \(countText(limit)) bytes") }
        // The empty line that ends the head may straddle two parts.
        let searchStart = max(0, bytes.count - 3)
        bytes += part
        while head == nil {
            guard let end = Self.endOfHead(bytes, from: bodyStart == 0 ? searchStart : bodyStart) else {
                guard !isEnded, bytes.count <= HTTPHead.maxByteCount else { throw HTTPHead.isNone(bytes[bodyStart...]) }
                return nil
            }
            let next = try HTTPHead(bytes[bodyStart..<end])
            bodyStart = end
            // "1xx (Informational)": the answer itself follows.
            if next.status >= 200 { head = next }
        }
        guard let head else { return nil }
        if let body = try body(head, isEnded: isEnded) { return (head, body) }
        guard !isEnded else { throw .malformed("it was cut short") }
        return nil
    }

    static func endOfHead(_ bytes: [UInt8], from start: Int) -> Int? {
        var index = start
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "\n") {
                if index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: "\n") { return index + 2 }
                if index + 2 < bytes.count, bytes[index + 1] == 13, bytes[index + 2] == 10 { return index + 3 }
            }
            index += 1
        }
        return nil
    }

    private func body(_ head: HTTPHead, isEnded: Bool) throws(TrackerClientError) -> [UInt8]? {
        if head.status == 204 || head.status == 304 { return [] }
        if let coding = head["transfer-encoding"]?.lowercased() {
            guard coding == "chunked" else { throw .malformed("its transfer encoding is \(quoted(coding))") }
            return try chunks()
        }
        if let coding = head["content-encoding"]?.lowercased(), coding != "identity" {
            throw .malformed("it is compressed (\(quoted(coding))), though that was not asked for")
        }
        guard let text = head["content-length"] else { return isEnded ? Array(bytes[bodyStart...]) : nil }
        guard let length = Int(text), length >= 0 else { throw .malformed("its length is \(quoted(text))") }
        guard length <= limit else { throw .malformed("it is longer than \(countText(limit)) bytes") }
        return bytes.count - bodyStart >= length ? Array(bytes[bodyStart..<bodyStart + length]) : nil
    }

    /// RFC 9112, 7.1: the chunks so far.
    ///
    /// - Returns: nil while the last one is missing.
    private func chunks() throws(TrackerClientError) -> [UInt8]? {
        var body: [UInt8] = []
        var index = bodyStart
        while true {
            guard let end = bytes[index...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
            let line = bytes[index..<end].prefix { $0 != UInt8(ascii: ";") && $0 != 13 && $0 != 32 }
            guard line.count <= 8, let length = Int(Substring(decoding: line, as: UTF8.self), radix: 16), length >= 0
            else { throw .malformed("its chunks are not framed") }
            index = end + 1
            if length == 0 { return body }
            guard bytes.count - index >= length + 2 else { return nil }
            body += bytes[index..<index + length]
            index += length
            // "chunk-data CRLF"
            guard bytes[index] == 13, bytes[index + 1] == 10 else { throw .malformed("its chunks are not framed") }
            index += 2
        }
    }
}

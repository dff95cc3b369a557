// What announces and scrapes over HTTP have in common: the keys of a query string, and what can be wrong with one.

import Primitives

/// The keys of a query string that mean something to us.
public enum HTTPRequestKey: String, Sendable, Hashable {
    case infoHash = "info_hash"
    case peerID = "peer_id"
    case port
    case uploaded
    case downloaded
    case left
    case event
    case numWant = "numwant"
    case compact
    case noPeerID = "no_peer_id"
    case key
    case trackerID = "trackerid"
    case passkey
    case ip
    case ipv4
    case ipv6
}

/// Why a query string is no request.
///
/// None of these repeats a byte that the client sent.
public enum HTTPRequestError: Error, Sendable, Hashable {
    /// The query string is longer than the limit, in bytes.
    case tooLong(limit: Int)
    /// The key is absent, or has no value.
    case missing(HTTPRequestKey)
    /// The key is there twice, and which one counts would be a guess.
    case repeated(HTTPRequestKey)
    /// A `%` without two hexadecimal digits behind it.
    case notPercentEncoded(HTTPRequestKey)
    /// Not as many bytes as an info hash or a peer id has.
    case wrongLength(HTTPRequestKey, expected: Int, found: Int)
    /// Something else than decimal digits.
    case notANumber(HTTPRequestKey)
    /// A number that does not fit.
    case outOfRange(HTTPRequestKey)
    /// Nobody can be reached at port 0.
    case portZero
    /// More info hashes in one scrape than the limit.
    case tooManyInfoHashes(limit: Int)
}

extension HTTPRequestError: CustomStringConvertible {
    /// A sentence for the person behind the client, safe to send as `failure reason`.
    public var failureReason: String {
        switch self {
        case .tooLong(let limit): "the request has more than \(limit) bytes"
        case .missing(let key): "\(key.rawValue) is missing"
        case .repeated(let key): "\(key.rawValue) is there twice"
        case .notPercentEncoded(let key): "\(key.rawValue) is not percent-encoded"
        case .wrongLength(let key, let expected, let found):
            "\(key.rawValue) has \(found) bytes instead of \(expected)"
        case .notANumber(let key): "\(key.rawValue) is not a number"
        case .outOfRange(let key): "\(key.rawValue) is out of range"
        case .portZero: "port is 0, where nobody can be reached"
        case .tooManyInfoHashes(let limit): "more than \(limit) torrents in one scrape"
        }
    }

    /// The same as `failureReason`.
    public var description: String { failureReason }
}

/// The pairs of a query string whose keys we know, still encoded.
///
/// A query is read as raw bytes. `+` stands for itself: an info hash is binary, clients percent-encode it by RFC 3986
/// (or send it raw), and a `+` that meant a space would turn one torrent into another. Keys that we do not know
/// (`corrupt`, `supportcrypto`, `redundant`, …) are skipped unread.
struct HTTPQuery: Sequence, IteratorProtocol {
    private var rest: ArraySlice<UInt8>

    init(_ query: [UInt8]) { rest = query[...] }

    /// The next key that we know, with its value still encoded; a key without `=` has an empty one.
    mutating func next() -> (key: HTTPRequestKey, value: ArraySlice<UInt8>)? {
        while !rest.isEmpty {
            let pair = rest.prefix { $0 != UInt8(ascii: "&") }
            rest = rest[pair.endIndex...].dropFirst()
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            if let key = HTTPRequestKey(rawValue: String(decoding: name, as: UTF8.self)) {
                return (key, pair[name.endIndex...].dropFirst())
            }
        }
        return nil
    }
}

extension HTTPRequestKey {
    /// Values that must be bytes of one length.
    func bytes20(_ value: ArraySlice<UInt8>) throws(HTTPRequestError) -> Bytes20 {
        let bytes = try decoded(value)
        guard let result = Bytes20(bytes) else {
            throw .wrongLength(self, expected: Bytes20.byteCount, found: bytes.count)
        }
        return result
    }

    func decoded(_ value: ArraySlice<UInt8>) throws(HTTPRequestError) -> [UInt8] {
        guard let bytes = PercentEncoding.decoded(value) else { throw .notPercentEncoded(self) }
        return bytes
    }

    func passkey(_ value: ArraySlice<UInt8>) throws(HTTPRequestError) -> [UInt8]? {
        let bytes = try decoded(value)
        guard bytes.count <= HTTPAnnounceRequest.maxOpaqueByteCount else { throw .outOfRange(self) }
        return bytes.isEmpty ? nil : bytes
    }

    /// "encoded in base ten ascii" (BEP 3).
    func number<Number: FixedWidthInteger>(
        _ value: ArraySlice<UInt8>, as type: Number.Type = Number.self
    ) throws(HTTPRequestError) -> Number {
        guard !value.isEmpty else { throw .missing(self) }
        var result: Number = 0
        for character in value {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) else { throw .notANumber(self) }
        }
        for character in value {
            let (tenfold, overflows) = result.multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) = tenfold.addingReportingOverflow(Number(character - UInt8(ascii: "0")))
            guard !overflows, !overflowsToo else { throw .outOfRange(self) }
            result = sum
        }
        return result
    }
}

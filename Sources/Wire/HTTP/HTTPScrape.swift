// The scrape over HTTP (BEP 48).

import Primitives

/// The query string of a scrape, read.
public struct HTTPScrapeRequest: Sendable, Hashable {
    /// As many as BEP 15 lets a datagram carry, so that a scrape is one message inside the cluster whichever way it
    /// came.
    ///
    /// No client asks for more at once (Transmission 60, libtorrent 1).
    public static let maxInfoHashes = 74
    /// 74 info hashes take 5,253 bytes with every byte percent-encoded; the rest is room for a passkey.
    public static let maxQueryByteCount = 6_144

    /// In the order asked, repeats included; 1…`maxInfoHashes`.
    public var infoHashes: [InfoHash]
    /// BEP 27, where the key stands in the query.
    public var passkey: [UInt8]?

    /// Takes the fields as they are.
    public init(infoHashes: [InfoHash], passkey: [UInt8]? = nil) {
        self.infoHashes = infoHashes
        self.passkey = passkey
    }

    /// Reads what stands behind the `?` of a scrape URL.
    ///
    /// - Parameter query: raw, still percent-encoded bytes; at most `maxQueryByteCount`.
    /// - Throws: `HTTPRequestError`; no info hash at all, which once asked for everything, is `missing`.
    /// - SeeAlso: BEP 48.
    public init(query: [UInt8]) throws(HTTPRequestError) {
        guard query.count <= HTTPScrapeRequest.maxQueryByteCount else {
            throw .tooLong(limit: HTTPScrapeRequest.maxQueryByteCount)
        }
        self.init(infoHashes: [])
        for (key, value) in HTTPQuery(query) {
            if key == .infoHash {
                guard infoHashes.count < HTTPScrapeRequest.maxInfoHashes else {
                    throw .tooManyInfoHashes(limit: HTTPScrapeRequest.maxInfoHashes)
                }
                infoHashes.append(InfoHash(try key.bytes20(value)))
            } else if key == .passkey {
                passkey = try key.passkey(value)
            }
        }
        guard !infoHashes.isEmpty else { throw .missing(.infoHash) }
    }

    /// The query string, to be put behind the `?` of a scrape URL.
    public func encodedQuery() -> [UInt8] {
        var query: [UInt8] = []
        func add(_ key: HTTPRequestKey, _ value: [UInt8]) {
            if !query.isEmpty { query.append(UInt8(ascii: "&")) }
            query.append(contentsOf: key.rawValue.utf8)
            query.append(UInt8(ascii: "="))
            PercentEncoding.append(value, to: &query)
        }
        for infoHash in infoHashes { add(.infoHash, infoHash.bytes.bytes) }
        if let passkey { add(.passkey, passkey) }
        return query
    }
}

/// The answer to a scrape.
public struct HTTPScrapeReply: Sendable, Hashable {
    /// The counts of one swarm.
    public struct File: Sendable, Hashable {
        /// Of the swarm.
        public var infoHash: InfoHash
        /// `complete`: peers that have everything.
        public var seeders: UInt32
        /// `downloaded`: how often the torrent has been completed.
        public var completed: UInt32
        /// `incomplete`: all other peers.
        public var leechers: UInt32

        /// Takes the fields as they are.
        public init(infoHash: InfoHash, seeders: UInt32, completed: UInt32, leechers: UInt32) {
            self.infoHash = infoHash
            self.seeders = seeders
            self.completed = completed
            self.leechers = leechers
        }
    }

    /// BEP 48's `files`: at most `HTTPScrapeRequest.maxInfoHashes`, in the order in which they were given or found.
    public var files: [File]
    /// `flags.min_request_interval`: seconds until the next scrape.
    ///
    /// Not in BEP 48, but what clients look for.
    public var minRequestInterval: UInt32?

    /// Takes the fields as they are.
    public init(files: [File], minRequestInterval: UInt32? = nil) {
        self.files = files
        self.minRequestInterval = minRequestInterval
    }

    /// Encodes the reply.
    ///
    /// An info hash that was asked twice is answered once: it is a key of a dictionary.
    ///
    /// - SeeAlso: BEP 48, "Scrape Response".
    public func encoded() -> [UInt8] {
        let entries = files.map { file in
            BencodeValue.Entry(
                file.infoHash.bytes.bytes,
                .dictionary([
                    .init("complete", .integer(Int64(file.seeders))),
                    .init("downloaded", .integer(Int64(file.completed))),
                    .init("incomplete", .integer(Int64(file.leechers))),
                ]))
        }
        var reply: [BencodeValue.Entry] = [.init("files", .dictionary(entries))]
        if let minRequestInterval {
            let flags = [BencodeValue.Entry("min_request_interval", .integer(Int64(minRequestInterval)))]
            reply.append(.init("flags", .dictionary(flags)))
        }
        return BencodeValue.dictionary(reply).encoded()
    }

    /// Reads a tracker's answer, whose keys may be unsorted; counts that are absent or negative are 0.
    ///
    /// - Parameter bytes: at most 1 MiB (`BencodeLimits.message`).
    /// - Throws: `HTTPReplyError`; a `failure reason` is thrown as `refused`.
    /// - SeeAlso: BEP 48, "Scrape Response".
    public init(decoding bytes: [UInt8]) throws(HTTPReplyError) {
        let root = try HTTPFailure.root(bytes)
        guard let entries = root["files"]?.entries else { throw .malformed(key: "files") }
        self.init(files: [])
        for (key, node) in entries {
            guard files.count < HTTPScrapeRequest.maxInfoHashes else { break }
            guard let infoHash = Bytes20(key) else { continue }
            func count(_ key: String) -> UInt32 { UInt32(clamping: node[key]?.integer ?? 0) }
            files.append(
                File(
                    infoHash: InfoHash(infoHash), seeders: count("complete"), completed: count("downloaded"),
                    leechers: count("incomplete")))
        }
        minRequestInterval = root["flags"]?["min_request_interval"]?.integer.map { UInt32(clamping: $0) }
    }
}

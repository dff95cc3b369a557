// The API's pages on torrent files: upload, browse, download, delete.

import HTTPTypes
import Logging
import NIOCore
import Primitives
import TrackerLogic
import Wire

/// What became of an upload.
public enum UploadOutcome: Sendable, Equatable {
    /// It is there whole.
    case done(UploadedTorrent, isNew: Bool)
    /// What was sent is no torrent, in a sentence.
    case malformed(String)
    /// The change that failed.
    case failed(ChangeOutcome)
}

/// A torrent file, as people look at it.
public struct UploadedTorrent: Sendable, Equatable {
    /// A file in the torrent.
    public struct File: Sendable, Equatable {
        /// For people's eyes.
        public var path: String
        /// Its length.
        public var byteCount: UInt64

        /// Takes the fields as they are.
        public init(path: String, byteCount: UInt64) { (self.path, self.byteCount) = (path, byteCount) }
    }

    /// Files that are listed; of more, only the number is told.
    public static let maxFiles = 1_000

    /// Under which peers announce it.
    public var infoHash: InfoHash
    /// For people's eyes.
    public var name: String
    /// The sum of its files.
    public var byteCount: UInt64
    /// Of a piece.
    public var pieceByteCount: UInt64
    /// Of the torrent file itself.
    public var fileByteCount: UInt64
    /// The first `maxFiles`.
    public var files: [File]
    /// How many there are.
    public var fileCount: Int
    /// With this cluster's trackers.
    public var magnet: String
    /// Whether somebody has uploaded it, or the master's directory of torrents has it.
    public var origin: AccountOrigin
    /// The index of the entry that last changed it.
    public var changedAt: UInt64

    /// Takes the fields as they are.
    public init(
        infoHash: InfoHash, name: String, byteCount: UInt64, pieceByteCount: UInt64, fileByteCount: UInt64,
        files: [File], fileCount: Int, magnet: String, origin: AccountOrigin, changedAt: UInt64
    ) {
        self.infoHash = infoHash
        self.name = name
        self.byteCount = byteCount
        self.pieceByteCount = pieceByteCount
        self.fileByteCount = fileByteCount
        self.files = files
        self.fileCount = fileCount
        self.magnet = magnet
        self.origin = origin
        self.changedAt = changedAt
    }
}

/// Keeps torrent files, by the log.
public protocol TorrentFileProvider: Sendable {
    /// Bytes of a torrent file, at most.
    var maxByteCount: Int { get }
    /// Takes a torrent file in, part by part, and waits until it is there whole.
    func upload(_ bytes: [UInt8], expected: Expectation) async -> UploadOutcome
    /// What a torrent file holds; nil where it is not there.
    func torrent(_ infoHash: InfoHash) async -> UploadedTorrent?
    /// The bytes of a torrent file in parts, and the index of the entry that last changed it; nil where there are none.
    func bytes(of infoHash: InfoHash) async -> (parts: [[UInt8]], changedAt: UInt64)?
    /// Takes a torrent file out.
    func remove(_ infoHash: InfoHash, expected: Expectation) async -> ChangeOutcome
    /// Why a torrent that is registered has no file here, in a sentence.
    func reasonWithoutFile(_ infoHash: InfoHash) async -> String
    /// The link of a torrent that has no file here.
    func magnet(_ infoHash: InfoHash, name: String) async -> String
}

extension APIServer {
    func torrentRoutes(_ files: any TorrentFileProvider, _ swarms: any SwarmProvider) -> [APIRoute] {
        [
            APIRoute(.post, "/api/v1/torrents", bodyByteCount: files.maxByteCount) { request, _ in
                try await upload(request, files)
            }.needing(.uploader),
            APIRoute(.get, "/api/v1/torrents/{hash}") { _, values in
                let infoHash = try infoHash(values["hash"])
                if let torrent = await files.torrent(infoHash) {
                    let counts = try await swarm(infoHash, swarms)?.row.counts
                    return tagged(try .json(TorrentDocument(torrent, counts)), torrent.changedAt)
                }
                guard let row = try await swarm(infoHash, swarms)?.row, let registered = row.registered else {
                    throw Self.noSuchTorrent
                }
                let magnet = await files.magnet(infoHash, name: registered.name)
                let reason = await files.reasonWithoutFile(infoHash)
                return try .json(TorrentDocument(registered, row.counts, magnet: magnet, whyNoFile: reason))
            },
            APIRoute(.get, "/api/v1/torrents/{hash}/file") { request, values in
                let infoHash = try infoHash(values["hash"])
                let (parts, changedAt) = try await file(infoHash, files, swarms)
                var body = ByteBuffer()
                body.reserveCapacity(parts.reduce(0) { $0 + $1.count })
                for part in parts { body.writeBytes(part) }
                // The name that people gave it may be anything; the info hash is a name that every system takes.
                return tagged(
                    Response(
                        status: .ok,
                        headers: [
                            .contentType: "application/x-bittorrent",
                            .contentDisposition: "attachment; filename=\"\(infoHash).torrent\"",
                        ], body: body), changedAt)
            },
            APIRoute(.delete, "/api/v1/torrents/{hash}", bodyByteCount: APIRoute.jsonByteCount) { request, values in
                let infoHash = try infoHash(values["hash"])
                _ = try await file(infoHash, files, swarms)
                let outcome = await files.remove(infoHash, expected: try Self.expectation(of: request))
                _ = try Self.index(outcome, was: "the torrent")
                request.logger.notice("\(request.caller.name) has removed the torrent \(infoHash)")
                return try .json(DoneDocument())
            }.needing(.uploader),
        ]
    }

    /// - Throws: `APIError`: 404 where there is no such file, 503 where the node does not answer.
    private func file(
        _ infoHash: InfoHash, _ files: any TorrentFileProvider, _ swarms: any SwarmProvider
    ) async throws -> (parts: [[UInt8]], changedAt: UInt64) {
        if let file = await files.bytes(of: infoHash) { return file }
        _ = try await swarm(infoHash, swarms)
        throw Self.noSuchFile
    }

    private static var noSuchTorrent: APIError { APIError(.notFound, "no torrent of this info hash is known by name") }
    private static var noSuchFile: APIError {
        APIError(.notFound, "there is no torrent file of this info hash here")
    }

    private func upload(_ request: Request, _ files: any TorrentFileProvider) async throws -> Response {
        let kind = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard kind == "application/x-bittorrent" || kind == "application/octet-stream" else {
            throw APIError(.unsupportedMediaType, "send the file with Content-Type: application/x-bittorrent")
        }
        guard request.body.readableBytes > 0 else { throw APIError(.badRequest, "the file is empty") }
        let expected = try Self.expectation(of: request)
        switch await files.upload(Array(request.body.readableBytesView), expected: expected) {
        case .malformed(let words): throw APIError(.badRequest, "this is no torrent file: \(words)")
        case .failed(let outcome):
            _ = try Self.index(outcome, was: "the torrent")
            throw APIError(.serviceUnavailable, "the upload did not come to an end; try again")
        case .done(let torrent, let isNew):
            request.logger.notice("\(request.caller.name) has uploaded the torrent \(torrent.infoHash)")
            return tagged(try .json(TorrentDocument(torrent, nil), status: isNew ? .created : .ok), torrent.changedAt)
        }
    }

    /// With an ETag: the index of the entry that last changed a thing.
    func tagged(_ response: Response, _ index: UInt64) -> Response {
        var response = response
        response.headers[.eTag] = "\"\(index)\""
        return response
    }
}

struct TorrentDocument: Encodable {
    struct File: Encodable {
        var path: String
        var byteCount: UInt64
    }

    var infoHash: String
    var name: String
    var byteCount: UInt64
    var seeders: UInt32
    var leechers: UInt32
    var completed: UInt32
    var origin: String
    var hasFile: Bool
    var magnet: String
    // Left out where there is one.
    var whyNoFile: String?
    // Left out where there is no file.
    var files: [File]?
    var fileCount: Int?
    var pieceByteCount: UInt64?
    var fileByteCount: UInt64?

    init(_ torrent: UploadedTorrent, _ counts: SwarmCounts?) {
        infoHash = "\(torrent.infoHash)"
        name = torrent.name
        byteCount = torrent.byteCount
        (seeders, leechers, completed) = (counts?.seeders ?? 0, counts?.leechers ?? 0, counts?.completed ?? 0)
        (origin, hasFile, magnet) = (torrent.origin.word, true, torrent.magnet)
        files = torrent.files.map { File(path: $0.path, byteCount: $0.byteCount) }
        fileCount = torrent.fileCount
        pieceByteCount = torrent.pieceByteCount
        fileByteCount = torrent.fileByteCount
    }

    init(_ registered: RegisteredTorrent, _ counts: SwarmCounts, magnet: String, whyNoFile: String) {
        infoHash = "\(registered.infoHash)"
        name = registered.name
        byteCount = registered.byteCount
        (seeders, leechers, completed) = (counts.seeders, counts.leechers, counts.completed)
        (origin, hasFile, self.magnet) = (AccountOrigin.file.word, false, magnet)
        self.whyNoFile = whyNoFile
    }
}

extension AccountOrigin {
    /// As the API has it.
    var word: String {
        switch self {
        case .file: "file"
        case .console: "console"
        }
    }
}

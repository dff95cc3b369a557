// Bodies of requests to the peer's API, and what is wrong with them.

import Foundation
import HTTPTypes
import NIOCore
import Primitives
import Wire

/// A body of which every field is known: one that is not is a slip that would go unnoticed.
protocol KnownFields: Decodable {
    static var fields: [String] { get }
}

/// A name of a field that may be anything.
private struct AnyField: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
}

/// The names of a body's fields.
private struct FieldNames: Decodable {
    var names: [String]

    init(from decoder: any Decoder) throws {
        names = try decoder.container(keyedBy: AnyField.self).allKeys.map(\.stringValue).sorted()
    }
}

extension Request {
    /// The body as JSON, of which every field is known; without one, as an empty object.
    ///
    /// - Throws: `APIError`: 400, or 415 where it says that it is something else.
    func order<Order: KnownFields>(_ type: Order.Type) throws(APIError) -> Order {
        let names = try json(FieldNames.self).names
        if let stranger = names.first(where: { !Order.fields.contains($0) }) {
            let known = Order.fields.isEmpty ? "none" : Order.fields.joined(separator: ", ")
            throw APIError(.badRequest, "the body has a field \(quoted(stranger)); those that are known: \(known)")
        }
        return try json(type)
    }
}

extension KeyedDecodingContainer {
    /// What a change says of a field: not there, `null`, or a value.
    fileprivate func change<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> PeerChange<Value> {
        contains(key) ? .set(try decodeIfPresent(type, forKey: key)) : .leave
    }
}

struct EmptyOrder: KnownFields {
    static let fields: [String] = []
}

struct MagnetOrder: KnownFields {
    static let fields = ["magnet", "paused", "directory"]

    var magnet: String
    var paused: Bool?
    var directory: String?
}

struct AddressOrder: KnownFields {
    static let fields = ["address"]

    var address: String

    /// - Throws: `APIError`, for what is no address with a port.
    func checked() throws(APIError) -> Primitives.SocketAddress {
        let refusal = APIError(
            .badRequest, "\(quoted(address)) is no address; write for example 192.0.2.1:6881 or [2001:db8::1]:6881")
        guard let colon = address.lastIndex(of: ":"), let port = UInt16(address[address.index(after: colon)...]),
            port > 0
        else { throw refusal }
        var host = address[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard let found = Primitives.SocketAddress(host: host, port: port) else { throw refusal }
        return found
    }
}

struct SettingsOrder: KnownFields {
    static let fields = ["maxDown", "maxUp"]

    var maxDown: PeerChange<Int>
    var maxUp: PeerChange<Int>

    private enum CodingKeys: String, CodingKey { case maxDown, maxUp }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        maxDown = try container.change(Int.self, .maxDown)
        maxUp = try container.change(Int.self, .maxUp)
    }
}

struct TransferOrder: KnownFields {
    static let fields = ["files", "maxDown", "maxUp", "maxPeers", "ratio"]

    var change = PeerTransferChange()

    private enum CodingKeys: String, CodingKey { case files, maxDown, maxUp, maxPeers, ratio }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        change.files = try container.change([Int].self, .files)
        change.maxDown = try container.change(Int.self, .maxDown)
        change.maxUp = try container.change(Int.self, .maxUp)
        change.maxPeers = try container.change(Int.self, .maxPeers)
        change.ratio = try container.change(Double.self, .ratio)
    }
}

struct CreationOrder: KnownFields {
    static let fields = ["path", "trackers", "webSeeds", "pieceLength", "private", "comment", "publish", "seed"]
    /// URLs of trackers, or of mirrors.
    static let maxURLs = 100
    static let maxCommentByteCount = 1_024

    struct Console: KnownFields {
        static let fields = ["console", "token"]

        var console: String
        var token: String?

        private enum CodingKeys: String, CodingKey { case console, token }

        init(from decoder: any Decoder) throws {
            let names = try FieldNames(from: decoder).names
            if let stranger = names.first(where: { !Self.fields.contains($0) }) {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath + [AnyField(stranger)], debugDescription: "not known"))
            }
            let container = try decoder.container(keyedBy: CodingKeys.self)
            console = try container.decode(String.self, forKey: .console)
            token = try container.decodeIfPresent(String.self, forKey: .token)
        }
    }

    var path: String
    var trackers: [[String]]?
    var webSeeds: [String]?
    var pieceLength: Int?
    var `private`: Bool?
    var comment: String?
    var publish: Console?
    var seed: Bool?

    /// - Throws: `APIError`, for what makes no torrent.
    func checked() throws(APIError) -> PeerCreationOrder {
        var order = PeerCreationOrder(path: path)
        order.trackers = (trackers ?? []).filter { !$0.isEmpty }
        order.webSeeds = webSeeds ?? []
        order.pieceLength = pieceLength
        order.isPrivate = `private` ?? false
        order.comment = comment ?? ""
        order.publish = publish.map { PeerCreationOrder.Console(url: $0.console, token: $0.token) }
        order.seeds = seed ?? true
        guard order.trackers.reduce(0, { $0 + $1.count }) <= Self.maxURLs, order.webSeeds.count <= Self.maxURLs else {
            throw APIError(.badRequest, "a torrent has \(Self.maxURLs) trackers at most, and as many web seeds")
        }
        for url in order.trackers.flatMap({ $0 }) where !Self.isURL(url) {
            throw APIError(.badRequest, "\(quoted(url)) is no URL; write for example udp://host:6969/announce")
        }
        for url in order.webSeeds
        where !Self.isURL(url) || !["http://", "https://"].contains(where: { url.hasPrefix($0) }) {
            throw APIError(.badRequest, "\(quoted(url)) is no web seed; write for example https://host/data/")
        }
        guard order.comment.utf8.count <= Self.maxCommentByteCount else {
            throw APIError(.badRequest, "the comment may have \(Self.maxCommentByteCount) bytes")
        }
        return order
    }

    private static func isURL(_ text: String) -> Bool {
        text.utf8.count <= Metainfo.maxURLByteCount && text.contains("://")
            && text.utf8.allSatisfy { (33...126).contains($0) }
    }
}

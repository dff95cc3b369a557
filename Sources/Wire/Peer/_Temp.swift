import Primitives
public struct ExtensionHandshake { public init() {}; public init(decoding: [UInt8]) throws(OutOfBytes) {}
 public var metadataID: UInt8?; public var peerExchangeID: UInt8?; public var dontHaveID: UInt8?; public var client: String?; public var requestQueue: Int?; public var listenPort: UInt16?; public var metadataByteCount: Int?; public var isUploadOnly: Bool?; public var yourAddress: SocketAddress?
 public func encoded() -> [UInt8] { [] } }
public struct DontHave { public var piece: UInt32; public init(piece: UInt32) { self.piece = piece }; public init(decoding: [UInt8]) throws(OutOfBytes) { piece = 0 }; public func encoded() -> [UInt8] { [] } }
public enum MetadataMessage { case request(part: Int), data(part: Int, totalByteCount: Int, bytes: [UInt8]), reject(part: Int), unknown
 public init(decoding: [UInt8]) throws(OutOfBytes) { self = .unknown }; public func encoded() -> [UInt8] { [] } }
public struct PeerExchange { public struct Peer { public var address: SocketAddress }; public var added: [Peer]; public init(added: [SocketAddress], dropped: [SocketAddress]) { self.added = [] }
 public init(decoding: [UInt8]) throws(OutOfBytes) { added = [] }; public func encoded() -> [UInt8] { [] } }

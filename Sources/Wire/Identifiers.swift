/// The names that the protocols give to things, each a type of its own.

import Primitives

/// The SHA-1 of a torrent's info dictionary (BEP 3), or the first 20 bytes of its SHA-256 (BEP 52).
@frozen
public struct InfoHash: Sendable, Hashable, CustomStringConvertible {
    public var bytes: Bytes20

    @inlinable
    public init(_ bytes: Bytes20) { self.bytes = bytes }

    /// Reads forty hexadecimal digits.
    public init?(hexadecimal text: some StringProtocol) {
        guard let raw = Primitives.bytes(hexadecimal: text), let value = Bytes20(raw) else { return nil }
        self.init(value)
    }

    public var description: String { bytes.description }
}

/// Twenty bytes that a client chose for itself (BEP 3, BEP 20).
@frozen
public struct PeerID: Sendable, Hashable, CustomStringConvertible {
    public var bytes: Bytes20

    @inlinable
    public init(_ bytes: Bytes20) { self.bytes = bytes }

    public static let zero = PeerID(.zero)

    public var description: String { bytes.description }
}

/// Chosen by the client, echoed by the tracker (BEP 15).
@frozen
public struct TransactionID: Sendable, Hashable {
    public var rawValue: UInt32

    @inlinable
    public init(_ rawValue: UInt32) { self.rawValue = rawValue }
}

/// Proves that a client receives at the address it sends from (BEP 15).
@frozen
public struct ConnectionID: Sendable, Hashable {
    public var rawValue: UInt64

    @inlinable
    public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// What an announce says has happened (BEP 15's numbers).
///
/// Event 4 (*paused*, BEP 21) and whatever comes later are read as `none`.
@frozen
public enum AnnounceEvent: UInt32, Sendable, Hashable {
    case none = 0
    case completed = 1
    case started = 2
    case stopped = 3
}

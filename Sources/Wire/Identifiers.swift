// The names that the protocols give to things, each a type of its own.

import Primitives

/// The SHA-1 of a torrent's info dictionary (BEP 3), or the first 20 bytes of its SHA-256 (BEP 52).
@frozen
public struct InfoHash: Sendable, Hashable, CustomStringConvertible {
    /// The hash as it stands in requests, not in hexadecimal.
    public var bytes: Bytes20

    /// Any 20 bytes may be an info hash.
    @inlinable
    public init(_ bytes: Bytes20) { self.bytes = bytes }

    /// Reads forty hexadecimal digits of either case; nil for anything else.
    public init?(hexadecimal text: some StringProtocol) {
        guard let raw = Primitives.bytes(hexadecimal: text), let value = Bytes20(raw) else { return nil }
        self.init(value)
    }

    /// Forty lower-case hexadecimal digits.
    public var description: String { bytes.description }
}

/// Twenty bytes that a client chose for itself (BEP 3, BEP 20).
@frozen
public struct PeerID: Sendable, Hashable, CustomStringConvertible {
    /// As the client sends them; most begin with the client's name and version (BEP 20).
    public var bytes: Bytes20

    /// Any 20 bytes may be a peer id.
    @inlinable
    public init(_ bytes: Bytes20) { self.bytes = bytes }

    /// How our own begin: the program and its version, 0.1.0 (BEP 20).
    public static let ownPrefix = "-SW0100-"

    /// One of our own: the prefix and twelve further bytes.
    ///
    /// - Parameter byte: chooses each, by its place from 0; random ones, where nobody is to guess.
    /// - Returns: `-SW0100-` and what was chosen.
    public static func own(_ byte: (Int) -> UInt8) -> PeerID {
        var bytes = Array(ownPrefix.utf8)
        for place in 0..<12 { bytes.append(byte(place)) }
        guard let id = Bytes20(bytes) else { preconditionFailure("a prefix of 8 and 12 bytes make a peer id") }
        return PeerID(id)
    }

    /// Twenty zero bytes: where no peer id is known.
    public static let zero = PeerID(.zero)

    /// Forty lower-case hexadecimal digits.
    public var description: String { bytes.description }
}

/// Tells a client which of its requests a reply belongs to: chosen by the client, echoed by the tracker (BEP 15).
@frozen
public struct TransactionID: Sendable, Hashable {
    /// As on the wire, in the host's order.
    public var rawValue: UInt32

    /// Any 32 bits may be a transaction id.
    @inlinable
    public init(_ rawValue: UInt32) { self.rawValue = rawValue }
}

/// Proves that a client receives at the address it sends from (BEP 15).
@frozen
public struct ConnectionID: Sendable, Hashable {
    /// As on the wire, in the host's order.
    public var rawValue: UInt64

    /// Any 64 bits may be one; whether a tracker has issued them is for `ConnectionIDs` to say.
    @inlinable
    public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// What an announce says has happened (BEP 15's numbers).
///
/// Event 4 (*paused*, BEP 21) and whatever comes later are read as `none`.
@frozen
public enum AnnounceEvent: UInt32, Sendable, Hashable {
    /// A regular announce, which goes out at each interval.
    case none = 0
    /// The download has completed just now; not sent by who begins as a seeder (BEP 3).
    case completed = 1
    /// The first announce of a download.
    case started = 2
    /// The client leaves the swarm.
    case stopped = 3
}

extension AnnounceEvent: CustomStringConvertible {
    /// As HTTP trackers are told (BEP 3); `none` where they are told nothing.
    public var description: String {
        switch self {
        case .none: "none"
        case .completed: "completed"
        case .started: "started"
        case .stopped: "stopped"
        }
    }
}

// Who may announce what, as an operator states it.

import Primitives
import Wire

/// Who may announce what: anybody, a list of info hashes that are allowed or denied, or users with passkeys (BEP 27).
///
/// The numbers are those of the log.
public enum AccessMode: UInt8, Sendable, Hashable {
    /// Any info hash, any client.
    case open = 0
    /// Only the info hashes on the list.
    case allow = 1
    /// Any but the info hashes on the list.
    case deny = 2
    /// Any info hash, but only with the passkey of a user.
    case `private` = 3
}

/// All rules of access at once, as an operator states them.
public struct AccessRules: Sendable, Equatable {
    /// Which of the lists below are read.
    public var mode: AccessMode
    /// The list of `allow` or `deny`; in any order, repeats do no harm.
    public var infoHashes: [InfoHash]
    /// The users of `private`.
    public var users: [User]

    /// Takes the fields as they are.
    public init(mode: AccessMode = .open, infoHashes: [InfoHash] = [], users: [User] = []) {
        self.mode = mode
        self.infoHashes = infoHashes
        self.users = users
    }
}

/// Somebody with a passkey.
public struct User: Sendable, Hashable {
    /// UTF-8, unique.
    public var name: String
    /// The secret part of his announce URL: printable ASCII without `/ ? & # %`.
    public var passkey: [UInt8]

    /// Takes the fields as they are; what a passkey may hold is checked where an operator states it.
    public init(name: String, passkey: [UInt8]) {
        self.name = name
        self.passkey = passkey
    }
}

/// A torrent that the tracker knows by name.
public struct RegisteredTorrent: Sendable, Hashable {
    /// The key: no two torrents of a registry have the same.
    public var infoHash: InfoHash
    /// As an operator gave it; not always unique.
    public var name: String
    /// The sum of its files, in bytes.
    public var byteCount: UInt64

    /// Takes the fields as they are.
    public init(infoHash: InfoHash, name: String, byteCount: UInt64) {
        self.infoHash = infoHash
        self.name = name
        self.byteCount = byteCount
    }
}

/// A torrent of an operator's files.
public struct FileTorrent: Sendable, Hashable {
    /// By name and size.
    public var torrent: RegisteredTorrent
    /// Whether its torrent file is to be kept whole: it comes as an upload of its own, and its bytes are not here.
    public var isKept: Bool

    /// Takes the fields as they are.
    public init(_ torrent: RegisteredTorrent, isKept: Bool = false) { (self.torrent, self.isKept) = (torrent, isKept) }
}

/// Why a request was not granted; the numbers travel between trackers (`AnsweredRequest.Content.refusal`).
public enum Refusal: UInt8, Sendable, Hashable {
    case connectionIDExpired
    case malformedAnnounce
    case malformedScrape
    case unknownAction
    case portZero
    case infoHashNotAllowed
    case infoHashDenied
    case passkeyMissing
    case passkeyUnknown
    case trackerFull
    case notStored
    case storageFailed
    case busy
    case notServing
    case scrapeNeedsPasskey
    case addressFull
    case swarmFull

    /// The words for the client, in ASCII.
    ///
    /// They are short: an error is never larger than its request.
    public var text: StaticString {
        switch self {
        case .connectionIDExpired: "connection id expired"
        case .malformedAnnounce: "announce request is malformed"
        case .malformedScrape: "scrape takes 1 to 74 info hashes of 20 bytes"
        case .unknownAction: "unknown action"
        case .portZero: "port 0 cannot be reached by peers"
        case .infoHashNotAllowed: "info hash is not on this tracker's list"
        case .infoHashDenied: "info hash is banned from this tracker"
        case .passkeyMissing: "private tracker: the announce URL needs your passkey"
        case .passkeyUnknown: "private tracker: unknown passkey"
        case .trackerFull: "tracker is full, try again later"
        case .notStored: "tracker could not store the update, try again later"
        case .busy: "tracker is busy, try again soon"
        case .notServing: "tracker is starting or stopping, try again soon"
        case .scrapeNeedsPasskey: "private tracker: scrape over HTTP, with your passkey"
        case .addressFull: "too many peers from your address"
        case .swarmFull: "this swarm is full, try again later"
        case .storageFailed: "tracker has lost its disk, try another tracker"
        }
    }
}

extension User: Archived {
    static var blank: User { User(name: "", passkey: []) }

    mutating func walk(_ archive: inout Archive) {
        name.walk(&archive)
        archive.walk(bytes: &passkey)
    }
}

extension AccessRules: Archived {
    static var blank: AccessRules { AccessRules() }

    mutating func walk(_ archive: inout Archive) {
        mode.walk(&archive)
        infoHashes.walk(&archive)
        users.walk(&archive)
    }
}

extension RegisteredTorrent: Archived {
    static var blank: RegisteredTorrent { RegisteredTorrent(infoHash: .blank, name: "", byteCount: 0) }

    mutating func walk(_ archive: inout Archive) {
        infoHash.walk(&archive)
        name.walk(&archive)
        byteCount.walk(&archive)
    }
}

extension FileTorrent: Archived {
    static var blank: FileTorrent { FileTorrent(.blank, isKept: false) }

    mutating func walk(_ archive: inout Archive) {
        torrent.walk(&archive)
        isKept.walk(&archive)
    }
}

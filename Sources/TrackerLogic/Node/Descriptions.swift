// Values as interpolation shows them, written out: embedded Swift has no reflection.

import Primitives
import Wire

extension Role: CustomStringConvertible {
    /// The name of the case.
    public var description: String { rawValue }
}

extension AccessMode: CustomStringConvertible {
    /// The name of the case, as settings and the API have it.
    public var description: String {
        switch self {
        case .open: "open"
        case .allow: "allow"
        case .deny: "deny"
        case .private: "private"
        }
    }
}

extension Refusal: CustomStringConvertible {
    /// The name of the case; `text` is what clients are told.
    public var description: String {
        switch self {
        case .connectionIDExpired: "connectionIDExpired"
        case .malformedAnnounce: "malformedAnnounce"
        case .malformedScrape: "malformedScrape"
        case .unknownAction: "unknownAction"
        case .portZero: "portZero"
        case .infoHashNotAllowed: "infoHashNotAllowed"
        case .infoHashDenied: "infoHashDenied"
        case .passkeyMissing: "passkeyMissing"
        case .passkeyUnknown: "passkeyUnknown"
        case .trackerFull: "trackerFull"
        case .notStored: "notStored"
        case .storageFailed: "storageFailed"
        case .busy: "busy"
        case .notServing: "notServing"
        case .scrapeNeedsPasskey: "scrapeNeedsPasskey"
        case .addressFull: "addressFull"
        case .swarmFull: "swarmFull"
        }
    }
}

extension StorageFailure: CustomStringConvertible {
    /// The name of the case.
    public var description: String {
        switch self {
        case .full: "full"
        case .locked: "locked"
        case .readOnly: "readOnly"
        case .broken: "broken"
        }
    }
}

extension BookedRequest.Kind: CustomStringConvertible {
    var description: String {
        switch self {
        case .connect: "connect"
        case .announce: "announce"
        case .scrape: "scrape"
        }
    }
}

extension SwarmCounts: CustomStringConvertible {
    /// The counts, as Swift's own interpolation would show them.
    public var description: String {
        "SwarmCounts(seeders: \(seeders), leechers: \(leechers), completed: \(completed))"
    }
}

extension PeerImage: CustomStringConvertible {
    /// The fields, as Swift's own interpolation would show them.
    public var description: String {
        "PeerImage(address: \(address), peerID: \(peerID), downloaded: \(downloaded), left: \(left), "
            + "lastSeen: \(lastSeen), isCounted: \(isCounted))"
    }
}

extension ChunkDamaged: CustomStringConvertible {
    /// The number, as Swift's own interpolation would show it.
    public var description: String { "ChunkDamaged(number: \(number))" }
}

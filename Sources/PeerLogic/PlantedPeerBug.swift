// Mistakes that are planted into peers to see whether the simulator finds them: test-only switches.

/// One mistake.
///
/// As `PlantedBug` of the trackers: `has` is false, and costs nothing, unless the logic is compiled with
/// `PLANTED_BUGS`. Each breaks one rule of docs/rules.md, which names it there.
public enum PlantedPeerBug: String, CaseIterable, Sendable {
    // Bytes.

    /// A piece is written before its hash is known.
    case storedUnverified
    /// A piece that is wrong is taken for right.
    case wrongStored
    /// A piece is told of when it is verified, and not when it is on the disk.
    case haveToldEarly
    /// A piece that is gone from the disk is still given.
    case lossIgnored
    /// What the owner was handed of a piece before it was gone is given all the same.
    case lostStillSent

    // Requests.

    /// A second peer is asked for a block though others are free.
    case endgameAlways
    /// A piece that is on the disk is fetched again.
    case storedForgotten
    /// In the endgame everybody is asked for everything.
    case endgameUnbounded

    // Finishing.

    /// What a peer was asked for that has gone is asked of nobody else.
    case lossOfLinkForgotten
    /// A rejected block is asked of nobody else.
    case rejectIgnored
    /// Nobody is found silent.
    case silenceIgnored
    /// A piece that one peer alone was to give waits for it for ever.
    case onlyGiverAwaited
    /// A disk that did not take a piece is not tried again.
    case diskTriedOnce
    /// Who has all pieces is not told that we are interested.
    case interestForgotten
    /// A silent tracker is not left for the next.
    case trackerAwaited

    // Choking.

    /// Whoever is interested is unchoked.
    case everybodyUnchoked
    /// Those who have a slot keep it.
    case slotsKept
    /// A peer that is choked is given what it asks for all the same.
    case chokedServed

    // Bounds.

    /// Pieces are begun without a bound.
    case buffersUnbounded
    /// The owner is given all blocks at once.
    case sendingUnbounded
    /// Blocks are given as fast as they are asked for.
    case uploadUnlimited
    /// Blocks are asked for as fast as they come.
    case downloadUnlimited
    /// Seeding goes on beyond the ratio.
    case ratioIgnored

    // Leaving others alone.

    /// A peer that failed is called again at once.
    case impatientCalls
    /// The wait after a failure does not grow.
    case constantBackOff
    /// A tracker that failed is asked again at once.
    case impatientAnnounces

    // Bans.

    /// All who had a part in a wrong piece are banned.
    case companyBanned
    /// Nobody is banned.
    case poisonForgiven
    /// Who is banned is spoken to when it calls.
    case bannedLetIn
    /// A host that is banned is called at another of its ports.
    case bannedCalled

    // The protocol.

    /// The extension handshake goes before what we have.
    case bitfieldLate
    /// Extensions are named by our own numbers.
    case ownNumbers
    /// Requests are rejected without the fast extension.
    case fastWithoutBit
    /// What waits when a peer is choked is forgotten, and not rejected.
    case chokeWithoutReject
    /// Something is said to a connection that is closed.
    case saidAfterClose

    // Private torrents.

    /// Peers of a private torrent are taken from anywhere.
    case privateIgnored
}

extension TorrentSession {
    /// Whether a mistake is planted; never, in what is delivered.
    @inline(__always)
    func has(_ bug: PlantedPeerBug) -> Bool {
        #if PLANTED_BUGS
            settings.plantedBug == bug
        #else
            false
        #endif
    }
}

extension TrackerSet {
    /// As of the session.
    @inline(__always)
    func has(_ bug: PlantedPeerBug) -> Bool {
        #if PLANTED_BUGS
            plantedBug == bug
        #else
            false
        #endif
    }
}

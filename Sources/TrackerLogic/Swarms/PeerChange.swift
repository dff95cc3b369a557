// What an announce does to a peer.

import Primitives
import Wire

/// What an announce does to a peer: it comes, changes, or goes.
struct PeerChange: Sendable, Hashable {
    /// As the peer was; nil for one that is new.
    var before: Standing?
    /// As it is now; nil for one that has left.
    var after: Standing?
    /// Where it stands in its list; nil for one that has left.
    var position: Int?
    /// Whether this announce completes a download that had not been counted.
    var isNewlyCompleted = false

    enum Standing: Sendable, Hashable {
        case leecher
        case seeder

        init(isSeeder: Bool) { self = isSeeder ? .seeder : .leecher }
    }
}

extension Peer {
    init(_ image: PeerImage, endpoint: Endpoint) {
        self.init(
            downloaded: image.downloaded, left: image.left, peerID: image.peerID, lastSeen: image.lastSeen,
            endpoint: endpoint, isCounted: image.isCounted)
    }
}

extension PeerStore {
    /// Applies an announce to the list of its swarm.
    ///
    /// - Parameters:
    ///   - announce: found valid by the master that logged it.
    ///   - list: the swarm's peers of this family.
    ///   - torrent: the hash of the info hash, under the table's key.
    ///   - time: cluster time of the entry, in seconds since 1970.
    ///   - key: the table's.
    ///   - digest: the shard's sum of fingerprints, which is kept up to date.
    /// - Returns: what became of the announcer.
    mutating func apply(
        _ announce: AnnounceUpdate<Endpoint>, to list: inout PeerList, torrent: UInt64, time: UInt32, key: UInt64,
        digest: inout UInt64
    ) -> PeerChange {
        let position = position(of: announce.endpoint, in: list, key: key)
        var change = PeerChange()
        var wasCounted = false
        var isOther = false
        var lastSeen = time
        if let position {
            let before = peer(list, at: position)
            digest &-= before.fingerprint(torrent: torrent, key: key)
            change.before = .init(isSeeder: before.isSeeder)
            wasCounted = before.isCounted
            // A client draws a peer id when it starts. So `started` with a known id is an old copy of the announce,
            // or the client has lost pieces.
            isOther = before.peerID != announce.peerID
            // Later only where a merge has brought the peer from a tracker whose clock was ahead.
            lastSeen = max(time, before.lastSeen)
            if announce.event == .stopped {
                remove(at: position, from: &list, key: key)
                return change
            }
        } else if announce.event == .stopped {
            return change
        }
        // `completed` counts for the client that is in the list; with another peer id it is an old copy. A download
        // that another client starts at this address may complete again; nothing else is counted twice.
        let isAnew = announce.event == .started && announce.left > 0 && isOther
        change.isNewlyCompleted =
            announce.event == .completed && announce.left == 0 && !wasCounted && !isOther
        // A peer that arrives as a seeder has completed before: an old copy of its `completed` is not counted.
        let cameComplete = position == nil && announce.left == 0
        let after = Peer(
            downloaded: announce.downloaded, left: announce.left, peerID: announce.peerID, lastSeen: lastSeen,
            endpoint: announce.endpoint, isCounted: (wasCounted && !isAnew) || change.isNewlyCompleted || cameComplete)
        digest &+= after.fingerprint(torrent: torrent, key: key)
        change.after = .init(isSeeder: after.isSeeder)
        if let position {
            change.position = replace(after, at: position, in: &list, key: key)
        } else {
            change.position = insert(after, into: &list, key: key)
        }
        return change
    }

    /// Adds a peer of a snapshot.
    mutating func restore(
        _ peer: Peer<Endpoint>, to list: inout PeerList, torrent: UInt64, key: UInt64, digest: inout UInt64
    ) {
        digest &+= peer.fingerprint(torrent: torrent, key: key)
        _ = insert(peer, into: &list, key: key)
    }

    /// Takes out the peers last seen before a time.
    mutating func expire(
        _ list: inout PeerList, seenBefore: UInt32, torrent: UInt64, key: UInt64, digest: inout UInt64,
        addresses: inout AddressCounts
    ) -> (peers: Int, seeders: Int) {
        var expired = (peers: 0, seeders: 0)
        // From the last position down: what a removal moves into the gap has been looked at already.
        var position = Int(list.count) - 1
        while position >= 0 {
            if lastSeen(list, at: position) < seenBefore {
                let gone = peer(list, at: position)
                digest &-= gone.fingerprint(torrent: torrent, key: key)
                addresses.remove(gone.endpoint.socketAddress)
                expired.peers += 1
                if gone.isSeeder { expired.seeders += 1 }
                remove(at: position, from: &list, key: key)
            }
            position -= 1
        }
        return expired
    }
}

// An announce that an entry holds.

import Primitives
import TrackerLogic
import Wire

/// An announce, as an entry holds it, whichever family it is of.
struct Announced {
    var infoHash: InfoHash
    var peerID: PeerID
    var downloaded: UInt64
    var left: UInt64
    var event: AnnounceEvent
    var address: SocketAddress
    var isIPv4: Bool

    init?(_ update: Update) {
        switch update {
        case .announceIPv4(let announce): self.init(announce, isIPv4: true)
        case .announceIPv6(let announce): self.init(announce, isIPv4: false)
        case .expire, .registerTorrent, .unregisterTorrent, .setAccessMode, .listInfoHash, .unlistInfoHash, .putUser,
            .removeUser, .setMembers, .mergePeer, .mergeStop, .mergeCompleted, .setInterval, .emptyShard,
            .console:
            return nil
        }
    }

    private init<Endpoint>(_ announce: AnnounceUpdate<Endpoint>, isIPv4: Bool) {
        infoHash = announce.infoHash
        peerID = announce.peerID
        downloaded = announce.downloaded
        left = announce.left
        event = announce.event
        address = announce.endpoint.socketAddress
        self.isIPv4 = isIPv4
    }

    /// Whether a client has asked for just this.
    func isAsked(by request: AnnounceRequest, from source: SocketAddress) -> Bool {
        infoHash == request.infoHash && peerID == request.peerID && downloaded == request.downloaded
            && left == request.left && event == request.event && address.port == request.port
            && address.high == source.high && address.low == source.low
    }
}

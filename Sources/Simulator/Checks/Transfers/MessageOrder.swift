// What may be said when.

import PeerLogic
import Primitives
import Wire

/// What may be said when: the handshake first, then what one has, then all else; nothing of an extension that the other
/// side has not; and numbers of extensions as the receiver has given them (BEP 3, 6, 10).
struct MessageOrder: Sendable {
    mutating func says(_ end: Int, _ message: PeerMessage, at now: Instant, _ scene: inout TransferScene) {
        let isFirst = scene.ends[end].saidCount == 0
        let hasFast = scene.ends[end].hasFast
        scene.ends[end].saidCount += 1
        guard scene.ends[end].isGreeted else { return blame(end, message, "before the handshakes", at: now, &scene) }
        switch message {
        case .bitfield:
            if !isFirst { blame(end, message, "not first", at: now, &scene) }
        case .haveAll, .haveNone:
            if !isFirst { blame(end, message, "not first", at: now, &scene) }
            if !hasFast { blame(end, message, "without the fast extension", at: now, &scene) }
        case .suggest, .reject, .allowedFast:
            if !hasFast { blame(end, message, "without the fast extension", at: now, &scene) }
        case .extended(let id, let payload):
            checkExtension(end, id, payload, message, at: now, &scene)
        case .keepAlive, .choke, .unchoke, .interested, .notInterested, .have, .request, .piece, .cancel, .port: break
        }
        if isFirst, hasFast {
            switch message {
            case .bitfield, .haveAll, .haveNone: break
            default: blame(end, message, "before it says what it has", at: now, &scene)
            }
        }
        switch message {
        case .choke, .unchoke:
            if scene.ends[end].saysChoke == (message == .choke) { blame(end, message, "twice", at: now, &scene) }
        case .interested, .notInterested:
            let isInterested = message == .interested
            if scene.ends[end].saysInterested == isInterested { blame(end, message, "twice", at: now, &scene) }
            scene.ends[end].saysInterested = isInterested
        case .request:
            if !scene.ends[end].saysInterested { blame(end, message, "without interest", at: now, &scene) }
        default: break
        }
    }

    private func checkExtension(
        _ end: Int, _ id: UInt8, _ payload: [UInt8], _ message: PeerMessage, at now: Instant,
        _ scene: inout TransferScene
    ) {
        let record = scene.ends[end]
        if !record.hasExtensions { return blame(end, message, "without extensions", at: now, &scene) }
        guard id != 0 else { return }
        let theirs = record.theirExtensions
        if id != theirs.metadata, id != theirs.exchange, id != theirs.dontHave {
            blame(end, message, "and \(id) is no number that was given", at: now, &scene)
        }
        if id == theirs.exchange, scene.peers[record.peer].isPrivate {
            scene.violate(
                .privateStaysPrivate, at: now, "\(TransferScene.name(record.peer)) exchanges peers of a private torrent"
            )
        }
    }

    /// An extension handshake has come.
    mutating func hears(_ end: Int, _ said: ExtensionHandshake, _ scene: inout TransferScene) {
        if let id = said.metadataID { scene.ends[end].theirExtensions.metadata = id }
        if let id = said.peerExchangeID { scene.ends[end].theirExtensions.exchange = id }
        if let id = said.dontHaveID { scene.ends[end].theirExtensions.dontHave = id }
    }

    private func blame(
        _ end: Int, _ message: PeerMessage, _ what: String, at now: Instant, _ scene: inout TransferScene
    ) {
        let record = scene.ends[end]
        scene.violate(
            .messagesAreInOrder, at: now,
            "\(TransferScene.name(record.peer)) says \(message.words) to \(TransferScene.name(record.other)) \(what)")
    }
}

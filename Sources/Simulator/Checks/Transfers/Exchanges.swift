// How peers tell each other of peers (BEP 11).

import PeerLogic
import Primitives
import Wire

/// How peers tell each other of peers (BEP 11): once a minute at most, of those whom they are connected with, of each
/// once, and of those that have gone; no more than fifty of each; and within two minutes.
struct Exchanges: Sendable {
    private static let interval = Duration.seconds(60)
    private static let first = Duration.seconds(5)
    private static let lateness = Duration.milliseconds(1_200)
    private static let maxCount = 50

    private struct End: Sendable {
        var told: [SocketAddress] = []
        var toldAt: Instant?
    }

    /// By end.
    private var ends: [End] = []

    mutating func opened(_ end: Int) {
        while ends.count <= end { ends.append(End()) }
        ends[end] = End()
    }

    mutating func says(_ end: Int, _ payload: [UInt8], at now: Instant, _ scene: inout TransferScene) {
        guard let said = try? PeerExchange(decoding: payload) else { return }
        let local = scene.local(end)
        let earliest =
            ends[end].toldAt.map { $0 + Self.interval } ?? (scene.ends[end].extensionsAt ?? local) + Self.first
        if local < earliest { blame(end, "tells \(scene.otherName(end)) of peers too soon", at: now, &scene) }
        ends[end].toldAt = local
        if said.added.isEmpty, said.dropped.isEmpty { blame(end, "has nothing to tell, and says so", at: now, &scene) }
        if said.added.count > Self.maxCount || said.dropped.count > Self.maxCount {
            blame(end, "tells \(scene.otherName(end)) of too many peers at once", at: now, &scene)
        }
        for address in said.added {
            if ends[end].told.contains(address) {
                blame(end, "tells \(scene.otherName(end)) of \(address) twice", at: now, &scene)
            }
            if !connected(end, scene).contains(where: { scene.ends[$0].listens == address }) {
                blame(
                    end, "tells \(scene.otherName(end)) of \(address), with which it is not connected", at: now, &scene)
            }
            ends[end].told.append(address)
        }
        for address in said.dropped {
            guard let place = ends[end].told.firstIndex(of: address) else {
                blame(end, "takes \(address) back, of which it has not told", at: now, &scene)
                continue
            }
            ends[end].told.remove(at: place)
            if connected(end, scene).contains(where: { scene.ends[$0].listens == address }) {
                blame(end, "takes \(address) back, with which it is connected", at: now, &scene)
            }
        }
    }

    private func connected(_ end: Int, _ scene: TransferScene) -> [Int] {
        scene.ends(of: scene.ends[end].peer).filter { $0 != end && scene.ends[$0].isGreeted }
    }

    /// What there is to tell has been told.
    mutating func look(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.ends[end]
        let local = scene.local(end)
        let wait = Self.interval + Self.lateness
        guard record.theirExtensions.exchange != 0, !scene.peers[record.peer].isPrivate,
            scene.peers[record.peer].settings.exchangesPeers, let begun = record.extensionsAt,
            local - begun > wait + Self.first
        else { return }
        let others = connected(end, scene)
        guard others.count <= Self.maxCount, ends[end].told.count <= Self.maxCount else { return }
        for other in others {
            guard let address = scene.ends[other].listens, let known = scene.ends[other].listensAt,
                local - max(known, scene.ends[other].greetedAt) > wait, !ends[end].told.contains(address)
            else { continue }
            return blame(end, "does not tell \(scene.otherName(end)) of \(address)", at: now, &scene)
        }
        if let toldAt = ends[end].toldAt, local - toldAt > wait {
            for address in ends[end].told
            where !others.contains(where: { scene.ends[$0].listens == address })
                && scene.goneFor(record.peer, address, wait)
            {
                return blame(end, "does not tell \(scene.otherName(end)) that \(address) has gone", at: now, &scene)
            }
        }
    }

    private func blame(_ end: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.extensionsAreKept, at: now, "\(TransferScene.name(scene.ends[end].peer)) \(what)")
    }
}

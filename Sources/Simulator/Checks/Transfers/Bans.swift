// Who is banned.

import PeerLogic
import Primitives

/// Who is banned: whoever alone has sent a piece that is wrong, at once; whoever has sent a corrupt block among others
/// as soon as that is known (`Culprits`); each once; and nobody who has sent no corrupt byte.
struct Bans: Sendable {
    mutating func poisoned(_ peer: Int, by other: Int, _ scene: inout TransferScene) {
        if !scene.peers[peer].guilty.contains(other) { scene.peers[peer].guilty.append(other) }
    }

    /// A piece is wrong that came from these.
    mutating func failed(_ peer: Int, senders: [Int], _ scene: inout TransferScene) {
        scene.again.wrong += 1
        guard senders.count == 1, let sender = senders.first else { return }
        if sender < scene.peers.count {
            scene.peers[peer].mustBan.append(sender)
        } else {
            scene.peers[peer].lyingSeeds.append(sender - PieceSender.firstWebSeed)
        }
    }

    /// The metadata was wrong that this one has given.
    func metadataFailed(_ peer: Int, of other: Int, _ scene: inout TransferScene) {
        scene.peers[peer].mustBan.append(other)
    }

    func fetches(_ peer: Int, fromSeed seed: Int, at now: Instant, _ scene: inout TransferScene) {
        guard scene.peers[peer].lyingSeeds.contains(seed) else { return }
        scene.violate(
            .poisonersAreBanned, at: now,
            "\(TransferScene.name(peer)) fetches from web seed \(seed), which has given a wrong piece")
    }

    mutating func banned(_ peer: Int, _ other: Int?, at now: Instant, _ scene: inout TransferScene) {
        guard let other else {
            return scene.violate(
                .onlyTheGuiltyAreBanned, at: now, "\(TransferScene.name(peer)) bans an address where nobody is")
        }
        if !scene.peers[peer].guilty.contains(other) {
            scene.violate(
                .onlyTheGuiltyAreBanned, at: now,
                "\(TransferScene.name(peer)) bans \(TransferScene.name(other)), which has sent it no corrupt byte")
        }
        if scene.peers[peer].banned.contains(other) {
            scene.violate(
                .shownIsTrue, at: now,
                "\(TransferScene.name(peer)) tells again that it bans \(TransferScene.name(other))")
        }
        scene.peers[peer].banned.append(other)
    }

    func says(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        let (peer, other) = (scene.ends[end].peer, scene.ends[end].other)
        guard !scene.peers[peer].banned.isEmpty, scene.peers[peer].banned.contains(other) else { return }
        scene.violate(
            .bannedAreLeftAlone, at: now,
            "\(TransferScene.name(peer)) speaks to \(TransferScene.name(other)), which it banned")
    }

    /// At the end of a step.
    mutating func check(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        guard !scene.peers[peer].mustBan.isEmpty else { return }
        let guilty = scene.peers[peer].mustBan.first { !scene.peers[peer].banned.contains($0) }
        scene.peers[peer].mustBan.removeAll()
        guard let guilty else { return }
        scene.violate(
            .poisonersAreBanned, at: now,
            "\(TransferScene.name(peer)) goes on with \(TransferScene.name(guilty)), which is known to have sent "
                + "what is wrong")
    }
}

// What the rules and the room of the tracker were after each entry of the log.

import Primitives
import TrackerLogic
import Wire

/// What the rules and the room of the tracker were after each entry of the log, so that a refusal can be compared with
/// every state in which the request may have been looked at.
struct AccessHistory: Sendable {
    private struct Point: Sendable {
        /// The entry that led here.
        var index: UInt64
        var rules: AccessRules
        var torrents: Int
        var peers: Int
    }

    private var points = [Point(index: 0, rules: AccessRules(), torrents: 0, peers: 0)]

    /// After an entry the swarms are so.
    mutating func note(_ model: SwarmModel) {
        points.append(
            Point(index: model.index, rules: model.rules, torrents: model.swarms.count, peers: model.peerCount))
    }

    /// Whether something was so after an entry, or at any time since.
    private func any(since index: UInt64, _ holds: (Point) -> Bool) -> Bool {
        for point in points.reversed() {
            if holds(point) { return true }
            if point.index <= index { return false }
        }
        return false
    }

    /// Whether a request for this info hash has met this refusal at any time since an entry.
    func refused(_ infoHash: InfoHash, passkey: [UInt8], with refusal: Refusal, since index: UInt64) -> Bool {
        any(since: index) { $0.rules.refusal(infoHash, passkey: passkey) == refusal }
    }

    /// Whether only who had a passkey was heard, at any time since an entry.
    func wasPrivate(since index: UInt64) -> Bool { any(since: index) { $0.rules.mode == .private } }

    func wasFull(_ limits: Limits, since index: UInt64) -> Bool {
        any(since: index) { $0.torrents >= limits.torrents || $0.peers >= limits.peers }
    }
}

extension AccessRules {
    /// Why a request for this info hash must be refused.
    func refusal(_ infoHash: InfoHash, passkey: [UInt8]) -> Refusal? {
        switch mode {
        case .open: nil
        case .allow: infoHashes.contains(infoHash) ? nil : .infoHashNotAllowed
        case .deny: infoHashes.contains(infoHash) ? .infoHashDenied : nil
        case .private:
            passkey.isEmpty ? .passkeyMissing : users.contains { $0.passkey == passkey } ? nil : .passkeyUnknown
        }
    }
}

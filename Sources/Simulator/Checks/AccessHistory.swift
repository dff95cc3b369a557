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
        /// Of accounts of the console.
        var passkeys: [[UInt8]]
        var torrents: Int
        var peers: Int
    }

    private var points = [Point(index: 0, rules: AccessRules(), passkeys: [], torrents: 0, peers: 0)]

    /// After an entry the swarms are so, and what people keep at the console.
    mutating func note(_ model: SwarmModel, _ console: ConsoleModel) {
        points.append(
            Point(
                index: model.index, rules: model.rules, passkeys: console.passkeys, torrents: model.swarms.count,
                peers: model.peerCount))
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
        any(since: index) { $0.rules.refusal(infoHash, passkey: passkey, $0.passkeys) == refusal }
    }

    /// Whether a request for this info hash may have been let in at any time since an entry.
    func admitted(_ infoHash: InfoHash, passkey: [UInt8], since index: UInt64) -> Bool {
        any(since: index) { $0.rules.refusal(infoHash, passkey: passkey, $0.passkeys) == nil }
    }

    /// Whether somebody with this passkey may have looked at any time since an entry.
    func mayLook(passkey: [UInt8], since index: UInt64) -> Bool {
        any(since: index) { $0.rules.mode != .private || $0.rules.knows(passkey, $0.passkeys) }
    }

    /// Whether only who had a passkey was heard, at any time since an entry.
    func wasPrivate(since index: UInt64) -> Bool { any(since: index) { $0.rules.mode == .private } }

    /// Whether a user of the files has had a passkey all the time since an entry.
    func wasAlwaysUsers(_ passkey: [UInt8], since index: UInt64) -> Bool {
        !any(since: index) { point in !point.rules.users.contains { $0.passkey == passkey } }
    }

    func wasFull(_ limits: Limits, since index: UInt64) -> Bool {
        any(since: index) { $0.torrents >= limits.torrents || $0.peers >= limits.peers }
    }
}

extension AccessRules {
    /// Whether a passkey is a user's, or one of those of accounts.
    fileprivate func knows(_ passkey: [UInt8], _ ofAccounts: [[UInt8]]) -> Bool {
        users.contains { $0.passkey == passkey } || ofAccounts.contains(passkey)
    }

    /// Why a request for this info hash must be refused.
    fileprivate func refusal(_ infoHash: InfoHash, passkey: [UInt8], _ ofAccounts: [[UInt8]]) -> Refusal? {
        switch mode {
        case .open: nil
        case .allow: infoHashes.contains(infoHash) ? nil : .infoHashNotAllowed
        case .deny: infoHashes.contains(infoHash) ? .infoHashDenied : nil
        case .private:
            passkey.isEmpty ? .passkeyMissing : knows(passkey, ofAccounts) ? nil : .passkeyUnknown
        }
    }
}

// Accounts after a partition: which side's word counts (rule 12).

import Primitives
import Wire

/// Which side's word on an account counts.
///
/// Of what was said of one name the latest counts, and it is one of two:
///
///     it is there, as of its last change   <   it was removed, at the same time or later
///
/// Two changes at one time are ordered by their contents. So merging takes a maximum, for each name: in whatever order
/// sides are merged, and however often, the result is the same. For that each word on one side has a time behind those
/// that it follows, be they of another side whose clock was ahead; and a removal is remembered, though there is no
/// such account now, until an account is made under that name.
///
/// What a merge cannot know, or not follow:
/// - a removal that has made way for 256 later ones: the account comes back;
/// - that one passkey was given to two accounts, one on each side: one of them keeps it;
/// - that no admin would be left: the one that is the last where it is merged stays.
extension Accounts {
    /// Whether another side's word on an account counts more than all that is known here.
    func accepts(_ account: Account, at time: UInt32) -> Bool {
        if let removal = removal(of: account.name), removal.time >= time { return false }
        guard let kept = find(account.name) else { return true }
        return kept.changedTime != time ? kept.changedTime < time : kept.account.goesBefore(account)
    }

    /// Whether another side's word that an account was removed counts more than all that is known here.
    func accepts(_ removal: RemovedAccount) -> Bool {
        if let kept = find(removal.name) { return kept.changedTime <= removal.time }
        if let known = self.removal(of: removal.name) { return known.time < removal.time }
        return removed.count < Bounds.removed || removed[0].goesBefore(removal)
    }

    /// When an account of this name was removed; nil where that is not known, or there is one.
    func removal(of name: [UInt8]) -> RemovedAccount? { removed.first { $0.name == name } }

    /// Where a change of an account stands among all that was said of it: behind what it follows.
    ///
    /// - Returns: its time, in seconds since 1970; outside of survivor mode never before the change that it follows.
    func order(_ name: [UInt8], time: UInt32) -> UInt32 {
        guard let before = find(name)?.changedTime ?? removal(of: name)?.time else { return time }
        return max(time, keepsMergeData && before < .max ? before + 1 : before)
    }

    /// Remembers a removal; of two of one name the later, and of too many the first goes.
    mutating func insert(_ removal: RemovedAccount) {
        if let known = self.removal(of: removal.name) {
            guard known.time < removal.time else { return }
            forgetRemoval(of: removal.name)
        }
        removed.insert(removal, at: removed.firstIndex { removal.goesBefore($0) } ?? removed.count)
        digest &+= fingerprint(removal)
        if removed.count > Bounds.removed { digest &-= fingerprint(removed.removeFirst()) }
    }

    /// An account is made that was removed before.
    mutating func forgetRemoval(of name: [UInt8]) {
        guard let place = removed.firstIndex(where: { $0.name == name }) else { return }
        digest &-= fingerprint(removed.remove(at: place))
    }
}

extension RemovedAccount {
    /// By time, then by name.
    fileprivate func goesBefore(_ other: RemovedAccount) -> Bool {
        time != other.time ? time < other.time : name.lexicographicallyPrecedes(other.name)
    }
}

extension Account {
    /// Of two changes at one time: by their bytes, so that one with a passkey follows the same without.
    fileprivate func goesBefore(_ other: Account) -> Bool {
        var (own, others): ([UInt8], [UInt8]) = ([], [])
        encode(into: &own)
        other.encode(into: &others)
        return own.lexicographicallyPrecedes(others)
    }
}

extension ReplicatedState {
    /// The updates that bring what another tracker's chunk 0 knows of accounts, and this state does not.
    ///
    /// Sessions stay where they are: somebody may have ended them here.
    func mergeUpdates(from image: AccountsImage) -> [Update] {
        var words: [(time: UInt32, update: ConsoleUpdate)] = []
        for removal in image.removed where accounts.accepts(removal) {
            words.append((removal.time, .mergeRemovedAccount(name: removal.name, at: removal.time)))
        }
        for kept in image.accounts where accounts.accepts(kept.account, at: kept.changedTime) {
            words.append((kept.changedTime, .mergeAccount(kept.account, at: kept.changedTime)))
        }
        // As they followed each other there: what one gave up, another was given.
        let order = words.indices.sorted { (words[$0].time, $0) < (words[$1].time, $1) }
        let updates = order.map { words[$0].update }
        // What something else may have been in the way of, which has made room by then.
        let again = updates.filter { isInTheWay(of: $0) }
        return (updates + again).map { .console($0) }
    }

    /// Whether there has to be another admin first, or a passkey is wanted that another account has here.
    private func isInTheWay(of update: ConsoleUpdate) -> Bool {
        func isAdmin(_ name: [UInt8]) -> Bool { accounts.find(name)?.account.role == .admin }
        switch update {
        case .mergeRemovedAccount(let name, _): return isAdmin(name)
        case .mergeAccount(let account, _):
            if account.role < .admin, isAdmin(account.name) { return true }
            let holder = account.passkey.flatMap { accounts.holder(ofPasskey: $0) }
            return holder.map { $0 != account.name } ?? false
        case .putAccount, .removeAccount, .putSession, .removeSession, .expireSessions, .uploadPart, .finishUpload,
            .dropUpload, .forgetUploads, .removeTorrentFile, .mergeFile, .mergeRemovedFile:
            return false
        }
    }
}

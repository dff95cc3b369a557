// Whether somebody at a console was told the truth where he was told that nothing has become of what he wants.

import Primitives
import TrackerLogic
import Wire

/// Whether somebody at a console was told the truth where he was told that nothing has become of what he wants: the
/// reason that he reads holds in the state of the tracker that tells it, by a walk over all that there is.
///
/// What was done, the log says (`ConsoleModel`).
enum ConsoleVerdicts {
    /// What is wrong with an outcome.
    ///
    /// - Parameters:
    ///   - outcome: what somebody was told.
    ///   - change: what he wanted.
    ///   - state: of the tracker that told it, as it was then.
    ///   - limits: of that tracker.
    /// - Returns: in words; nil where it is right.
    static func fault(
        in outcome: ChangeOutcome, to change: ConsoleChange, _ state: ReplicatedState, _ limits: Limits
    ) -> String? {
        switch outcome {
        case .done, .dropped: nil
        case .outdated(let index): fault(inOutdatedAt: index, change, state)
        case .partWanted(let number): fault(inWanted: number, change, state)
        case .refused(let reason):
            holds(reason, for: change, state, limits) ? nil : "it is refused, and this does not hold: \(reason)"
        }
    }

    // MARK: - Another is there than was expected

    /// The entry that last changed the thing that a change is about; 0 where there is none, nil where nobody asks.
    private static func changedAt(_ change: ConsoleChange, _ state: ReplicatedState) -> UInt64? {
        switch change {
        case .putAccount(let account, _): state.accounts.find(account.name)?.changedAt ?? 0
        case .removeAccount(let name, _): state.accounts.find(name)?.changedAt ?? 0
        case .putSession(let session, _): state.accounts.find(session.account)?.changedAt ?? 0
        case .finishUpload(let head, _): state.files.find(head.upload.infoHash)?.changedAt ?? 0
        case .removeTorrentFile(let infoHash, _): state.files.find(infoHash)?.changedAt ?? 0
        case .removeSession, .uploadPart, .dropUpload: nil
        }
    }

    private static func expectation(of change: ConsoleChange) -> Expectation {
        switch change {
        case .putAccount(_, let expected), .removeAccount(_, let expected), .putSession(_, let expected),
            .finishUpload(_, let expected), .removeTorrentFile(_, let expected):
            expected
        case .removeSession, .uploadPart, .dropUpload: .any
        }
    }

    /// Whether all is as a change wants it.
    private static func isAsWanted(_ change: ConsoleChange, _ state: ReplicatedState) -> Bool {
        switch change {
        case .putAccount(let account, _): state.accounts.find(account.name)?.account == account
        case .removeAccount(let name, _): state.accounts.find(name) == nil
        case .putSession(let session, _): state.accounts.session(session.key)?.session == session
        case .removeSession(let key): state.accounts.session(key) == nil
        case .uploadPart(let part): parts(of: part.upload, state).map { $0 > Int(part.number) } ?? false
        case .finishUpload(let head, _): state.files.find(head.upload.infoHash)?.head == head
        case .dropUpload(let upload): parts(of: upload, state) == nil
        case .removeTorrentFile(let infoHash, _): state.files.find(infoHash) == nil
        }
    }

    private static func fault(
        inOutdatedAt index: UInt64, _ change: ConsoleChange, _ state: ReplicatedState
    ) -> String? {
        guard let changedAt = changedAt(change, state) else { return "it is outdated, and expects nothing" }
        if isAsWanted(change, state) { return "it is outdated, and all is as it is wanted" }
        if index != changedAt {
            return "it was changed by entry \(index), it is told, and that was entry \(changedAt)"
        }
        return expectation(of: change).isMet(by: changedAt == 0 ? nil : changedAt)
            ? "it is outdated, and is what was expected, of entry \(changedAt)" : nil
    }

    // MARK: - Another part is wanted

    /// How many parts of an upload there are; nil where there is none.
    private static func parts(of id: UploadID, _ state: ReplicatedState) -> Int? {
        state.files.uploads.first { $0.id == id }?.parts.count
    }

    private static func fault(inWanted number: UInt32, _ change: ConsoleChange, _ state: ReplicatedState) -> String? {
        let (upload, byteCount): (UploadID, UInt32)
        switch change {
        case .uploadPart(let part): (upload, byteCount) = (part.upload, part.byteCount)
        case .finishUpload(let head, _): (upload, byteCount) = (head.upload, head.byteCount)
        case .putAccount, .removeAccount, .putSession, .removeSession, .dropUpload, .removeTorrentFile:
            return "part \(number) is wanted of something that has none"
        }
        let known = parts(of: upload, state) ?? 0
        if Int(number) != known { return "part \(number) is wanted, and \(known) parts are there" }
        if known * UploadPart.partByteCount >= Int(byteCount) { return "part \(number) is wanted, and all are there" }
        if case .uploadPart(let part) = change, part.number == number { return "the part is wanted that has come" }
        return nil
    }

    // MARK: - Something forbids it

    /// Whether the reason for a refusal holds in a state.
    private static func holds(
        _ reason: String, for change: ConsoleChange, _ state: ReplicatedState, _ limits: Limits
    ) -> Bool {
        if reason.hasPart("the trackers could not keep it") { return !isAsWanted(change, state) }
        switch change {
        case .putAccount(let account, let expected):
            if reason.hasPart("there are accounts by now") {
                return expected == .noAccounts && state.accounts.count > 0 && !isAsWanted(change, state)
            }
            return holds(reason, for: account, state)
        case .removeAccount(let name, _): return holds(reason, forRemovalOf: name, state)
        case .putSession(let session, _): return holds(reason, for: session, state)
        case .uploadPart(let part): return holds(reason, for: part, state, limits)
        case .finishUpload(let head, _): return holds(reason, for: head, state)
        case .removeTorrentFile(let infoHash, _):
            if reason.hasPart("keeps no torrent files") { return state.files.chunk(of: infoHash) == nil }
            return reason.hasPart("in the master's directory") && state.files.find(infoHash)?.head.origin == .file
                && state.registry.find(infoHash) != nil
        case .dropUpload(let upload):
            return reason.hasPart("keeps no torrent files") && state.files.chunk(of: upload.infoHash) == nil
        case .removeSession: return false
        }
    }

    private static func isLastAdmin(_ name: [UInt8], _ state: ReplicatedState) -> Bool {
        let admins = state.accounts.all.filter { $0.account.role == .admin }
        return admins.count == 1 && admins[0].account.name == name
    }

    private static func holds(_ reason: String, for account: Account, _ state: ReplicatedState) -> Bool {
        let all = state.accounts.all
        let kept = all.first { $0.account.name == account.name }?.account
        if reason.hasPart("comes from a tracker's file") {
            var same = account
            same.passkey = kept?.passkey
            return kept?.origin == .file && same != kept
        }
        if reason.hasPart("an account has a name of") { return !account.isWithinBounds }
        if reason.hasPart("another has this passkey") {
            guard let passkey = account.passkey else { return false }
            return all.contains { $0.account.name != account.name && $0.account.passkey == passkey }
                || state.access.know(passkey: passkey)
        }
        if reason.hasPart("accounts already") { return kept == nil && all.count >= Accounts.Bounds.accounts }
        return reason.hasPart("is the last admin") && account.role != .admin && isLastAdmin(account.name, state)
    }

    private static func holds(_ reason: String, forRemovalOf name: [UInt8], _ state: ReplicatedState) -> Bool {
        if reason.hasPart("comes from a tracker's file") {
            return state.accounts.find(name)?.account.origin == .file
        }
        return reason.hasPart("is the last admin") && isLastAdmin(name, state)
    }

    private static func holds(_ reason: String, for session: Session, _ state: ReplicatedState) -> Bool {
        if reason.hasPart("there is no account") {
            return !state.accounts.all.contains { $0.account.name == session.account }
        }
        if reason.hasPart("a label has") { return !session.isWithinBounds }
        if reason.hasPart("has expired already") { return session.expires <= state.time.seconds }
        let own = state.accounts.allSessions.filter { $0.session.account == session.account }
        return reason.hasPart("tokens already") && session.isToken
            && own.count { $0.session.isToken } >= Accounts.Bounds.sessionsPerAccount
    }

    private static func holds(
        _ reason: String, for part: UploadPart, _ state: ReplicatedState, _ limits: Limits
    ) -> Bool {
        let infoHash = part.upload.infoHash
        if reason.hasPart("keeps no torrent files") { return state.files.chunk(of: infoHash) == nil }
        if reason.hasPart("a part has another length") { return !part.isWithinBounds }
        let upload = state.files.uploads.first { $0.id == part.upload }
        if reason.hasPart("the file has another length") {
            return upload.map { $0.byteCount != part.byteCount } ?? false
        }
        guard upload == nil, part.number == 0, state.files.find(infoHash)?.head.upload != part.upload else {
            return false
        }
        if reason.hasPart("uploads are under way") { return state.files.uploads.count >= limits.uploads }
        var (count, byteCount) = (0, state.files.uploads.reduce(0) { $0 + Int($1.byteCount) })
        state.files.forEach {
            count += 1
            byteCount += $0.bytes.count
        }
        if reason.hasPart("a torrent file may have") { return part.byteCount > limits.torrentFileByteCount }
        if reason.hasPart("torrent files already") { return count >= limits.torrentFiles }
        if reason.hasPart("together may have") {
            return byteCount + Int(part.byteCount) > limits.torrentFilesByteCount
        }
        // A chunk has room for more than any scenario has.
        return false
    }

    private static func holds(_ reason: String, for head: TorrentFileHead, _ state: ReplicatedState) -> Bool {
        let infoHash = head.upload.infoHash
        if reason.hasPart("keeps no torrent files") { return state.files.chunk(of: infoHash) == nil }
        if reason.hasPart("somebody has uploaded this torrent") {
            return head.origin == .file && state.files.find(infoHash)?.head.origin == .console
        }
        if reason.hasPart("does not have it any more") {
            return head.origin == .file && state.registry.find(infoHash) == nil
        }
        let upload = state.files.uploads.first { $0.id == head.upload }
        return reason.hasPart("the file has another length")
            && (!head.isWithinBounds || upload.map { $0.byteCount != head.byteCount } ?? false)
    }
}

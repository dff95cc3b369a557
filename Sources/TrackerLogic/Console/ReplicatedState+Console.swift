// What people keep at the console, as a part of the state: applied and judged.

import Primitives
import Wire

extension ReplicatedState {
    // MARK: - Applying

    mutating func apply(_ update: ConsoleUpdate) {
        let chunk = chunk(of: update)
        // Of a table that is too small for torrent files, or another tracker's.
        guard chunk < chunkCount else { return }
        let time = entryTime.seconds
        switch update {
        case .putAccount(let account): accounts.put(account, at: entryIndex, time: time)
        case .removeAccount(let name): accounts.remove(name, time: time)
        case .mergeAccount(let account, let changed):
            accounts.put(account, at: entryIndex, time: changed, isMerged: true)
        case .mergeRemovedAccount(let name, let removed): accounts.remove(name, time: removed, isMerged: true)
        case .putSession(let session): accounts.put(session, at: entryIndex, time: time)
        case .removeSession(let key): accounts.removeSession(key)
        case .expireSessions(let seconds): accounts.expireSessions(through: seconds)
        case .uploadPart(let part): files.take(part, time: time)
        case .finishUpload(let head): files.finish(head, at: entryIndex, time: time)
        case .mergeFile(let head, let changed): files.finish(head, at: entryIndex, time: changed, isMerged: true)
        case .dropUpload(let upload): files.drop(upload)
        case .forgetUploads(let chunk, let idleSince): files.forgetUploads(chunk: chunk, idleSince: idleSince)
        case .removeTorrentFile(let infoHash): files.remove(infoHash, time: time)
        case .mergeRemovedFile(let infoHash, let removed): files.remove(infoHash, time: removed, isMerged: true)
        }
        markChanged(chunk: chunk)
    }

    /// The chunk that an update touches; one that is not there where the update names what no tracker has.
    func chunk(of update: ConsoleUpdate) -> Int {
        switch update {
        case .putAccount, .removeAccount, .mergeAccount, .mergeRemovedAccount, .putSession, .removeSession,
            .expireSessions:
            0
        case .uploadPart(let part): fileChunk(part.upload.infoHash)
        case .finishUpload(let head), .mergeFile(let head, _): fileChunk(head.upload.infoHash)
        case .dropUpload(let upload): fileChunk(upload.infoHash)
        case .removeTorrentFile(let infoHash), .mergeRemovedFile(let infoHash, _): fileChunk(infoHash)
        case .forgetUploads(let chunk, _): chunk < files.chunks.count ? firstFileChunk + Int(chunk) : .max
        }
    }

    private func fileChunk(_ infoHash: InfoHash) -> Int {
        files.chunk(of: infoHash).map { firstFileChunk + $0 } ?? .max
    }

    // MARK: - Judging

    /// What a change comes to, in the state as it is.
    enum Judgement: Equatable {
        /// It cannot be, or not yet.
        case settled(ChangeOutcome)
        /// By this update.
        case update(ConsoleUpdate)
    }

    /// What a change comes to, asked when all that goes before it is applied.
    ///
    /// What is there already as it is wanted goes into the log again, where it changes nothing: so whoever asks twice,
    /// for nobody has said what became of it, hears what has been decided since he asked, and not what a master
    /// believes that has been deposed.
    func judge(_ change: ConsoleChange, _ limits: Limits) -> Judgement {
        // There is no chunk that an update about them could touch.
        if files.chunks.isEmpty, change.isAboutFiles { return refused("this cluster keeps no torrent files") }
        return switch change {
        case .putAccount(let account, let expected): judge(account, expected)
        case .removeAccount(let name, let expected): judgeRemoval(of: name, expected)
        case .putSession(let session, let expected): judge(session, expected)
        case .removeSession(let key): .update(.removeSession(key))
        case .uploadPart(let part): judge(part, limits)
        case .finishUpload(let head, let expected): judge(head, expected)
        case .dropUpload(let upload): .update(.dropUpload(upload))
        case .removeTorrentFile(let infoHash, let expected): judgeRemoval(of: infoHash, expected)
        }
    }

    /// What became of a change whose update is applied: it is done where all is as it was wanted.
    func outcome(of change: ConsoleChange) -> ChangeOutcome {
        completion(of: change).map { .done(at: $0) } ?? .refused("the trackers could not keep it")
    }

    /// The entry that made a thing as a change wants it; nil where it is otherwise.
    private func completion(of change: ConsoleChange) -> UInt64? {
        switch change {
        case .putAccount(let account, _):
            accounts.find(account.name).flatMap { $0.account == account ? $0.changedAt : nil }
        case .removeAccount(let name, _): accounts.find(name) == nil ? index : nil
        case .putSession(let session, _):
            accounts.session(session.key).flatMap { $0.session == session ? $0.createdAt : nil }
        case .removeSession(let key): accounts.session(key) == nil ? index : nil
        case .uploadPart(let part):
            files.upload(part.upload).map { $0.parts.count > Int(part.number) } ?? false ? index : nil
        case .finishUpload(let head, _):
            files.find(head.upload.infoHash).flatMap { $0.head == head ? $0.changedAt : nil }
        case .dropUpload(let upload): files.upload(upload) == nil ? index : nil
        case .removeTorrentFile(let infoHash, _): files.find(infoHash) == nil ? index : nil
        }
    }

    private func refused(_ reason: String) -> Judgement { .settled(.refused(reason)) }

    /// Nil where a thing is as expected.
    private func disappointment(_ expected: Expectation, _ index: UInt64?) -> Judgement? {
        if expected.isMet(by: index) || has(.expectationIgnored) { return nil }
        return .settled(.outdated(at: index ?? 0))
    }

    private func judge(_ account: Account, _ expected: Expectation) -> Judgement {
        let kept = accounts.find(account.name)
        if kept?.account == account { return .update(.putAccount(account)) }
        if expected == .noAccounts, accounts.count > 0 {
            return refused("there are accounts by now, so whoever makes another has to log in")
        }
        if let disappointment = disappointment(expected, kept?.changedAt) { return disappointment }
        if let kept, kept.account.origin == .file, !account.isSameButForPasskey(as: kept.account) {
            return refusedAsFiles(kept)
        }
        guard account.isWithinBounds else {
            return refused(
                "an account has a name of 1 to \(Account.maxNameByteCount) bytes, a password of ours, and a passkey of "
                    + "printable characters other than / ? & # %, if any")
        }
        if let passkey = account.passkey, passkey != kept?.account.passkey,
            accounts.know(passkey: passkey) || access.know(passkey: passkey)
        {
            return refused("another has this passkey")
        }
        if kept == nil, accounts.count >= Accounts.Bounds.accounts {
            return refused("there are \(Accounts.Bounds.accounts) accounts already")
        }
        if account.role < .admin, accounts.isLastAdmin(account.name), !has(.lastAdminLost) {
            return refused("\(text(account.name)) is the last admin: make another one first")
        }
        return .update(.putAccount(account))
    }

    private func judgeRemoval(of name: [UInt8], _ expected: Expectation) -> Judgement {
        guard let kept = accounts.find(name) else { return .update(.removeAccount(name: name)) }
        if let disappointment = disappointment(expected, kept.changedAt) { return disappointment }
        if kept.account.origin == .file { return refusedAsFiles(kept) }
        if accounts.isLastAdmin(name), !has(.lastAdminLost) {
            return refused("\(text(name)) is the last admin: make another one first")
        }
        return .update(.removeAccount(name: name))
    }

    /// What a file says is changed there: a start or SIGHUP would bring it back otherwise.
    private func refusedAsFiles(_ kept: KeptAccount) -> Judgement {
        refused("\(text(kept.account.name)) comes from a tracker's file: change it there, and have that read again")
    }

    private func judge(_ session: Session, _ expected: Expectation) -> Judgement {
        if accounts.session(session.key)?.session == session { return .update(.putSession(session)) }
        guard let account = accounts.find(session.account) else {
            return refused("there is no account \(text(session.account))")
        }
        if let disappointment = disappointment(expected, account.changedAt) { return disappointment }
        guard session.isWithinBounds else {
            return refused("a label has at most \(Session.maxLabelByteCount) bytes")
        }
        guard session.expires > time.seconds else { return refused("the session has expired already") }
        let own = accounts.sessions(of: session.account)
        if session.isToken, own.count(where: { $0.session.isToken }) >= Accounts.Bounds.sessionsPerAccount {
            return refused("the account has \(Accounts.Bounds.sessionsPerAccount) tokens already: remove one first")
        }
        return .update(.putSession(session))
    }

    private func judge(_ part: UploadPart, _ limits: Limits) -> Judgement {
        guard part.isWithinBounds else { return refused("a part has another length than it says") }
        if let upload = files.upload(part.upload) {
            let next = UInt32(upload.parts.count)
            guard upload.byteCount == part.byteCount else { return refused("the file has another length than before") }
            // It need not be decided again: that is said when all are there.
            if part.number < next { return .settled(.done(at: index)) }
            return part.number == next ? .update(.uploadPart(part)) : .settled(.partWanted(next))
        }
        if let file = files.find(part.upload.infoHash), file.head.upload == part.upload {
            return .settled(.done(at: file.changedAt))
        }
        guard part.number == 0 else { return .settled(.partWanted(0)) }
        if let reason = refusal(ofFile: part.upload.infoHash, byteCount: part.byteCount, limits) {
            return refused(reason)
        }
        return .update(.uploadPart(part))
    }

    private func judge(_ head: TorrentFileHead, _ expected: Expectation) -> Judgement {
        let file = files.find(head.upload.infoHash)
        if file?.head == head { return .update(.finishUpload(head)) }
        if let disappointment = disappointment(expected, file?.changedAt) { return disappointment }
        if head.origin == .file, let reason = refusal(ofFileTorrent: head.upload.infoHash) { return refused(reason) }
        guard let upload = files.upload(head.upload) else { return .settled(.partWanted(0)) }
        guard head.isWithinBounds, head.byteCount == upload.byteCount else {
            return refused("the file has another length than before, or too long a name")
        }
        guard upload.isComplete || has(.tornFileShown) else { return .settled(.partWanted(UInt32(upload.parts.count))) }
        return .update(.finishUpload(head))
    }

    private func judgeRemoval(of infoHash: InfoHash, _ expected: Expectation) -> Judgement {
        guard let file = files.find(infoHash) else { return .update(.removeTorrentFile(infoHash)) }
        if let disappointment = disappointment(expected, file.changedAt) { return disappointment }
        // One that a merge has left behind is anybody's.
        guard file.head.origin == .console || registry.find(infoHash) == nil else {
            return refused("it is in the master's directory of torrents: take it away there, and have that read again")
        }
        return .update(.removeTorrentFile(infoHash))
    }

    private func text(_ name: [UInt8]) -> String { String(decoding: name, as: UTF8.self) }

    // MARK: - Files of a tracker

    /// What the accounts in a tracker's files come to.
    struct FileAccounts {
        /// The updates that bring them; admins come first and what goes goes last, so that there is always one.
        var updates: [Update] = []
        /// How many were left out, as an account of that name was made or changed at the console.
        var leftOut = 0
    }

    /// What replaces the accounts that came from files by others.
    ///
    /// Accounts of the console stay. One of the same name wins: it is what somebody wanted later, and knowingly.
    ///
    /// - Parameter wanted: all that the files say; the first of a name counts.
    /// - Returns: the updates, or why it cannot be, in a sentence.
    func judge(fileAccounts wanted: [Account]) -> Result<FileAccounts, Refused> {
        var result = FileAccounts()
        var named = Accounts(secret: 0, keepsMergeData: false)
        var puts: [Account] = []
        for var account in wanted where named.find(account.name) == nil {
            named.insert(KeptAccount(account: account, changedAt: 0, passwordAt: 0, changedTime: 0))
            account.origin = .file
            // The one thing about it that the console gives.
            if let kept = accounts.find(account.name)?.account, kept.origin == .file { account.passkey = kept.passkey }
            guard account.isWithinBounds else {
                return .failure(Refused("the account \(text(account.name)) has too long a name, or a strange password"))
            }
            let kept = accounts.find(account.name)?.account
            if kept?.origin == .console {
                result.leftOut += 1
            } else if kept != account {
                puts.append(account)
            }
        }
        let all = accounts.all.map { $0.account }
        let gone = all.filter { $0.origin == .file && named.find($0.name) == nil }
        let stay = all.filter { $0.origin == .console || named.find($0.name) != nil }
        guard stay.count + puts.count(where: { accounts.find($0.name) == nil }) <= Accounts.Bounds.accounts else {
            return .failure(Refused("there would be more than \(Accounts.Bounds.accounts) accounts"))
        }
        let unchanged = stay.filter { account in !puts.contains { $0.name == account.name } }
        guard accounts.adminCount == 0 || (unchanged + puts).contains(where: { $0.role == .admin }) else {
            return .failure(Refused("no admin would be left: the accounts of the files need one"))
        }
        for role in AccountRole.allCases.reversed() {
            result.updates += puts.filter { $0.role == role }.map { .console(.putAccount($0)) }
        }
        result.updates += gone.map { .console(.removeAccount(name: $0.name)) }
        return .success(result)
    }

    /// Why something cannot be, in a sentence.
    struct Refused: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    // MARK: - Planted mistakes

    #if PLANTED_BUGS
        /// The same with a mistake of the state itself.
        func planted(_ bug: PlantedBug?) -> ReplicatedState {
            var state = self
            state.accounts.plantedBug = bug
            state.files.plantedBug = bug
            return state
        }
    #endif

    @inline(__always)
    private func has(_ bug: PlantedBug) -> Bool {
        #if PLANTED_BUGS
            accounts.plantedBug == bug
        #else
            false
        #endif
    }
}

extension Account {
    /// Whether the other one has at most another passkey.
    fileprivate func isSameButForPasskey(as other: Account) -> Bool {
        var account = self
        account.passkey = other.passkey
        return account == other
    }
}

extension ConsoleChange {
    fileprivate var isAboutFiles: Bool {
        switch self {
        case .uploadPart, .finishUpload, .dropUpload, .removeTorrentFile: true
        case .putAccount, .removeAccount, .putSession, .removeSession: false
        }
    }
}

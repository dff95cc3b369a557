// What people keep at the console, by a simple reading of the log.

import Primitives
import TrackerLogic
import Wire

/// What people keep at the console, by a simple reading of the log: lists that are walked over, and all that there has
/// been, so that what somebody was told can be compared with every state since he asked.
///
/// Of one history; what a merge brings is none.
struct ConsoleModel: Sendable {
    /// What a thing was from an entry on; nil where it was not there.
    private struct Point<Value: Sendable & Equatable>: Sendable {
        var index: UInt64
        var value: Value?
    }

    /// A thing and its past.
    private struct Line<Key: Sendable & Equatable, Value: Sendable & Equatable>: Sendable {
        var key: Key
        var points: [Point<Value>] = []

        var now: Value? { points.last?.value }

        func point(at index: UInt64) -> Int? { points.lastIndex { $0.index <= index } }
    }

    /// An account, and when its password was set.
    struct HeldAccount: Sendable, Equatable {
        var account: Account
        var changedAt: UInt64
        var passwordAt: UInt64
    }

    /// A session, and when it was made.
    struct HeldSession: Sendable, Equatable {
        var session: Session
        var createdAt: UInt64
    }

    /// A file and its bytes.
    struct HeldFile: Sendable, Equatable {
        var head: TorrentFileHead
        var bytes: [UInt8]
        var changedAt: UInt64
    }

    /// An upload under way.
    struct HeldUpload: Sendable, Equatable {
        var id: UploadID
        var byteCount: UInt32
        var bytes: [UInt8]
        var lastPartAt: UInt32
    }

    private var accounts: [Line<[UInt8], HeldAccount>] = []
    private var sessions: [Line<Bytes32, HeldSession>] = []
    private var files: [Line<InfoHash, HeldFile>] = []
    private var uploads: [HeldUpload] = []
    /// How many parts of each upload there were; of one that has become a file, more than any part's number.
    private var parts: [Line<UploadID, Int>] = []
    /// Torrents whose files somebody has asked to remove.
    private var removalsAsked: [InfoHash] = []
    /// The last entry.
    private(set) var index: UInt64 = 0
    private var time: UInt32 = 0

    // MARK: - Changing

    mutating func begin(_ header: EntryHeader) {
        index = header.index
        time = header.time.seconds
    }

    /// Somebody wants something at a console.
    mutating func asked(_ change: ConsoleChange) {
        guard case .removeTorrentFile(let infoHash, _) = change, !removalsAsked.contains(infoHash) else { return }
        removalsAsked.append(infoHash)
    }

    /// Whether an update of the entry that was begun gives an account a passkey that it did not have.
    func givenPasskey(by update: ConsoleUpdate) -> [UInt8]? {
        guard case .putAccount(let account) = update, let passkey = account.passkey,
            passkey != self.account(account.name)?.account.passkey
        else { return nil }
        return passkey
    }

    /// What an update of the entry that was begun takes out that the operator's directory has, in words.
    func loss(by update: ConsoleUpdate, _ directory: DirectoryWatch, at time: Instant) -> String? {
        guard case .removeTorrentFile(let infoHash) = update, file(infoHash)?.head.origin == .file,
            !removalsAsked.contains(infoHash), directory.isKept(infoHash, at: time)
        else { return nil }
        return "the torrent file \(infoHash) is removed, which the operator's directory has"
    }

    /// What an update of the entry that was begun takes from people though none has asked for it, in words.
    func theft(by update: ConsoleUpdate) -> String? {
        if case .removeTorrentFile(let infoHash) = update, file(infoHash)?.head.origin == .console,
            !removalsAsked.contains(infoHash)
        {
            return "the torrent file \(infoHash) is removed, and nobody has asked for it"
        }
        if case .finishUpload(let head) = update, head.origin == .file,
            uploads.contains(where: { $0.id == head.upload }),
            file(head.upload.infoHash)?.head.origin == .console
        {
            return "a file from files takes the place of the torrent file \(head.upload.infoHash)"
        }
        return nil
    }

    /// Applies an update of the entry that was begun.
    ///
    /// - Parameters:
    ///   - update: of the log.
    ///   - chunk: where a torrent file lies, which is a table's affair.
    mutating func apply(_ update: ConsoleUpdate, chunk: (InfoHash) -> Int?) {
        switch update {
        case .putAccount(let account): put(account)
        case .removeAccount(let name):
            guard let old = account(name), !isLastAdmin(old.account) else { return }
            ConsoleModel.set(nil, at: name, in: &accounts, index)
            endSessions { $0.session.account == name }
        case .putSession(let session): put(session)
        case .removeSession(let key): endSessions { $0.session.key == key }
        case .expireSessions(let through): endSessions { $0.session.expires <= through }
        case .uploadPart(let part): take(part)
        case .finishUpload(let head): finish(head)
        case .dropUpload(let id): forgetUploads { $0.id == id }
        case .forgetUploads(let number, let idleSince):
            forgetUploads { $0.lastPartAt <= idleSince && chunk($0.id.infoHash) == Int(number) }
        case .removeTorrentFile(let infoHash):
            if file(infoHash) != nil { ConsoleModel.set(nil, at: infoHash, in: &files, index) }
        case .mergeAccount, .mergeRemovedAccount, .mergeFile, .mergeRemovedFile: break
        }
    }

    private mutating func put(_ account: Account) {
        var account = account
        // Two never have the same passkey: who has it keeps it.
        if let passkey = account.passkey,
            accounts.contains(where: { $0.key != account.name && $0.now?.account.passkey == passkey })
        {
            account.passkey = nil
        }
        let old = self.account(account.name)
        guard old?.account != account, account.role == .admin || !isLastAdmin(old?.account) else { return }
        let keepsPassword = old != nil && old?.account.password == account.password
        let held = HeldAccount(
            account: account, changedAt: index, passwordAt: keepsPassword ? old?.passwordAt ?? index : index)
        ConsoleModel.set(held, at: account.name, in: &accounts, index)
        if !keepsPassword { endSessions { $0.session.account == account.name } }
    }

    private func isLastAdmin(_ account: Account?) -> Bool {
        account?.role == .admin && accounts.count { $0.now?.account.role == .admin } == 1
    }

    /// No scenario comes to the bounds of sessions.
    private mutating func put(_ session: Session) {
        guard session.expires > time, account(session.account) != nil, self.session(session.key) == nil else { return }
        ConsoleModel.set(HeldSession(session: session, createdAt: index), at: session.key, in: &sessions, index)
    }

    private mutating func endSessions(_ isMeant: (HeldSession) -> Bool) {
        for place in sessions.indices {
            guard let held = sessions[place].now, isMeant(held) else { continue }
            sessions[place].points.append(Point(index: index, value: nil))
        }
    }

    private mutating func forgetUploads(where isOver: (HeldUpload) -> Bool) {
        for upload in uploads where isOver(upload) { ConsoleModel.set(nil, at: upload.id, in: &parts, index) }
        uploads.removeAll(where: isOver)
    }

    private mutating func take(_ part: UploadPart) {
        let place: Int
        if let known = uploads.firstIndex(where: { $0.id == part.upload }) {
            place = known
        } else if part.number == 0 {
            place = uploads.count
            uploads.append(HeldUpload(id: part.upload, byteCount: part.byteCount, bytes: [], lastPartAt: time))
        } else {
            return
        }
        guard uploads[place].bytes.count == Int(part.number) * UploadPart.partByteCount,
            uploads[place].byteCount == part.byteCount, uploads[place].bytes.count < Int(part.byteCount)
        else { return }
        uploads[place].bytes += part.bytes
        uploads[place].lastPartAt = time
        ConsoleModel.set(Int(part.number) + 1, at: part.upload, in: &parts, index)
    }

    private mutating func finish(_ head: TorrentFileHead) {
        guard let place = uploads.firstIndex(where: { $0.id == head.upload }),
            uploads[place].bytes.count == Int(head.byteCount), uploads[place].byteCount == head.byteCount
        else { return }
        let held = HeldFile(head: head, bytes: uploads[place].bytes, changedAt: index)
        ConsoleModel.set(held, at: head.upload.infoHash, in: &files, index)
        ConsoleModel.set(.max, at: head.upload, in: &parts, index)
        uploads.remove(at: place)
    }

    private static func set<Key: Equatable, Value: Equatable>(
        _ value: Value?, at key: Key, in lines: inout [Line<Key, Value>], _ index: UInt64
    ) {
        let point = Point(index: index, value: value)
        if let place = lines.firstIndex(where: { $0.key == key }) {
            lines[place].points.append(point)
        } else {
            lines.append(Line(key: key, points: [point]))
        }
    }

    // MARK: - What there is

    /// Of all accounts.
    var passkeys: [[UInt8]] { accounts.compactMap { $0.now?.account.passkey } }

    private func account(_ name: [UInt8]) -> HeldAccount? { accounts.first { $0.key == name }?.now }
    private func session(_ key: Bytes32) -> HeldSession? { sessions.first { $0.key == key }?.now }
    private func file(_ infoHash: InfoHash) -> HeldFile? { files.first { $0.key == infoHash }?.now }

    /// What a state has otherwise than the model, in words; nil where they agree.
    func difference(from state: ReplicatedState) -> String? {
        let kept = state.accounts.all
        if kept.count != accounts.count(where: { $0.now != nil }) {
            return "there are other accounts than in the model"
        }
        for kept in kept
        where account(kept.account.name)
            != HeldAccount(account: kept.account, changedAt: kept.changedAt, passwordAt: kept.passwordAt)
        {
            return "account \(String(decoding: kept.account.name, as: UTF8.self)) is another than in the model"
        }
        let open = state.accounts.allSessions
        if open.count != sessions.count(where: { $0.now != nil }) {
            return "there are other sessions than in the model"
        }
        for kept in open
        where session(kept.session.key) != HeldSession(session: kept.session, createdAt: kept.createdAt) {
            return "session \(kept.session.key) is another than in the model"
        }
        if state.files.count != files.count(where: { $0.now != nil }) {
            return "there are \(state.files.count) torrent files, which is not what the model has"
        }
        var difference: String?
        state.files.forEach { kept in
            let known = file(kept.infoHash)
            if known != HeldFile(head: kept.head, bytes: kept.bytes, changedAt: kept.changedAt) {
                difference = "torrent file \(kept.infoHash) is another than in the model"
            }
        }
        let under = state.files.uploads
        if under.count != uploads.count { return "\(under.count) uploads are under way, in the model \(uploads.count)" }
        for upload in under {
            let held = HeldUpload(
                id: upload.id, byteCount: upload.byteCount, bytes: upload.parts.flatMap { $0 },
                lastPartAt: upload.lastPartAt)
            if !uploads.contains(held) { return "the upload of \(upload.id.infoHash) is another than in the model" }
        }
        return difference
    }

    // MARK: - What somebody was told

    /// Why it cannot be that a change was done by an entry; nil where it can.
    ///
    /// - Parameters:
    ///   - change: that somebody has asked for.
    ///   - done: the entry that he was told.
    /// - Returns: in which way it cannot; nil where it can.
    func objection(to change: ConsoleChange, doneAt done: UInt64) -> ConsoleObjection? {
        if done == 0 || done > index { return .undecided("entry \(done) is not decided, the last one is \(index)") }
        switch change {
        case .putAccount(let account, let expected):
            let line = accounts.first { $0.key == account.name }
            // Two who want the same, and leave the password as it is, are both told of the first.
            let isSole = line?.points.count { $0.value?.account.password == account.password } == 1
            if isSole, expected == .noAccounts, let other = accountBefore(done, but: account.name) {
                let name = String(decoding: other, as: UTF8.self)
                return .unexpected("there was the account \(name), and its maker believed that there was none")
            }
            return ConsoleModel.objection(line, done, isSole ? expected : .any) { $0.account == account }
        case .finishUpload(let head, let expected):
            return ConsoleModel.objection(files.first { $0.key == head.upload.infoHash }, done, expected) {
                $0.head == head
            }
        case .putSession(let session, let expected):
            let objection = ConsoleModel.objection(sessions.first { $0.key == session.key }, done, .any) {
                $0.session == session
            }
            return objection ?? self.objection(toSessionOf: session.account, madeAt: done, expected)
        case .removeAccount(let name, _): return ConsoleModel.objection(accounts.first { $0.key == name }, done)
        case .removeSession(let key): return ConsoleModel.objection(sessions.first { $0.key == key }, done)
        case .removeTorrentFile(let infoHash, _):
            return ConsoleModel.objection(files.first { $0.key == infoHash }, done)
        case .uploadPart(let part):
            let points = parts.first { $0.key == part.upload }?.points ?? []
            // What else that entry does with the upload may come after it.
            let before = points.last { $0.index < done }
            let isThere = (points.filter { $0.index == done } + (before.map { [$0] } ?? [])).contains {
                $0.value ?? 0 > Int(part.number)
            }
            return isThere ? nil : .undecided("after entry \(done) there is no such part of that upload")
        case .dropUpload: return nil
        }
    }

    /// The name of another account that was there before an entry; nil where there was none.
    private func accountBefore(_ done: UInt64, but name: [UInt8]) -> [UInt8]? {
        accounts.first { $0.key != name && $0.points.last { $0.index < done }?.value != nil }?.key
    }

    /// Whoever logs in knew the account as it was; where that entry has changed it, before or after.
    private func objection(
        toSessionOf name: [UInt8], madeAt done: UInt64, _ expected: Expectation
    ) -> ConsoleObjection? {
        let points = accounts.first { $0.key == name }?.points ?? []
        let before = points.last { $0.index < done }
        let all = points.filter { $0.index == done } + [before ?? Point(index: 0, value: nil)]
        if all.contains(where: { expected.isMet(by: $0.value == nil ? nil : $0.index) }) { return nil }
        return .unexpected("its account was last changed by entry \(before?.index ?? 0), which it does not follow")
    }

    /// Whether a thing was made as wanted by an entry, of what its maker believed that it was.
    private static func objection<Key, Value>(
        _ line: Line<Key, Value>?, _ done: UInt64, _ expected: Expectation, _ isWanted: (Value) -> Bool
    ) -> ConsoleObjection? {
        guard let line, let place = line.points.firstIndex(where: { $0.index == done }),
            let value = line.points[place].value, isWanted(value)
        else { return .undecided("entry \(done) does not make it as it was wanted") }
        // It was so already, as its changer knew.
        if expected == .asOf(done) { return nil }
        let before = place > 0 ? line.points[place - 1] : nil
        let previous = before?.value == nil ? nil : before?.index
        return expected.isMet(by: previous)
            ? nil : .unexpected("it was last changed by entry \(previous ?? 0), which its changer did not know")
    }

    /// Whether a thing was gone after an entry.
    private static func objection<Key, Value>(_ line: Line<Key, Value>?, _ done: UInt64) -> ConsoleObjection? {
        guard let line, let place = line.point(at: done), line.points[place].value != nil else { return nil }
        return .undecided("it is there still after entry \(done)")
    }
}

/// Why it cannot be that a change was done.
enum ConsoleObjection: Equatable {
    /// What was told is not in the log.
    case undecided(String)
    /// It has taken the place of what its changer did not know.
    case unexpected(String)
}

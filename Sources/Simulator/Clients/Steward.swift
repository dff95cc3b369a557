// What people do at consoles.

import Primitives
import TrackerLogic
import Wire

/// A torrent file that somebody uploads; its bytes are made up.
struct SimulatedFile: Sendable, Equatable {
    private(set) var head: TorrentFileHead
    let bytes: [UInt8]

    /// The same file of the operator's directory, on its way once more.
    init(_ file: SimulatedFile, upload number: UInt64) {
        (head, bytes) = (file.head, file.bytes)
        head.upload.number = number
        head.origin = .file
    }

    /// As the registry has it.
    var torrent: RegisteredTorrent {
        RegisteredTorrent(
            infoHash: head.upload.infoHash, name: String(decoding: head.name, as: UTF8.self),
            byteCount: head.contentByteCount)
    }

    init(_ infoHash: InfoHash, _ random: inout RandomStream) {
        let upload = UploadID(infoHash: infoHash, number: random.next())
        var bytes: [UInt8] = []
        let byteCount = random.oneIn(4) ? 1 + random.below(300) : 1 + random.below(4 * UploadPart.partByteCount)
        while bytes.count < byteCount { bytes.append(bigEndian: random.next()) }
        bytes.removeLast(bytes.count - byteCount)
        self.bytes = bytes
        head = TorrentFileHead(
            upload: upload, name: Array("file \(upload.number)".utf8), contentByteCount: random.next(),
            byteCount: UInt32(byteCount), sha256: SimulatedFile.hash(bytes))
    }

    /// What stands for the SHA-256 of bytes.
    static func hash(_ bytes: [UInt8]) -> Bytes32 {
        let sum = checksum(bytes.span.bytes)
        var hash: [UInt8] = []
        for word in 0..<4 as Range<UInt64> { hash.append(bigEndian: mixed(sum ^ mixed(word))) }
        guard let value = Bytes32(hash) else { preconditionFailure("four words are 32 bytes") }
        return value
    }
}

/// Somebody at a console: makes accounts, logs in and out, uploads torrent files, and takes them out again; and sends
/// what is in the operator's directory of torrents, as a master does that has read it.
///
/// He asks for one thing after another, of the tracker that he takes for the master, and asks again where nobody says
/// what became of it; as a tracker does that hands on what its own console is asked.
struct Steward: Sendable {
    /// Those who may have an account.
    static let names = ["root", "ada", "bob", "eve", "dan"].map { Array($0.utf8) }
    /// Torrents that have files.
    static let torrentCount = 4

    private static let rememberedCount = 32

    /// Which one he is.
    let number: Int
    var random: RandomStream
    /// What he wants, until he knows what became of it; nil while he thinks.
    var wish: ConsoleChange?
    /// When he first asked for it.
    var wishedAt = Instant(nanoseconds: 0)
    /// The number that his last question has; those of one wish follow each other.
    var question: UInt64 = 0
    /// The number of the first question for his wish.
    var firstQuestion: UInt64 = 0
    /// His last questions.
    private var asked: [(question: UInt64, change: ConsoleChange)] = []
    /// The file that he uploads, and the part that comes next.
    var upload: (file: SimulatedFile, next: UInt32)?
    /// Whether he finishes his upload without waiting for each part.
    var isHasty = false
    /// What he believes that the torrent's file is, which his is to replace.
    var expectedFile = Expectation.any
    /// The sessions that he has.
    var sessions: [Bytes32] = []

    init(number: Int, random: RandomStream) {
        self.number = number
        self.random = random
        question = UInt64(number) << 32
    }

    /// The number of the next question, which is for a wish.
    mutating func nextQuestion(for change: ConsoleChange) -> UInt64 {
        question += 1
        if asked.count >= Steward.rememberedCount { asked.removeFirst() }
        asked.append((question, change))
        return question
    }

    /// What he wanted by a question; nil where it is too long ago.
    func wanted(by question: UInt64) -> ConsoleChange? { asked.last { $0.question == question }?.change }

    /// What he wants next, having looked at a tracker's state; nil for nothing.
    ///
    /// - Parameters:
    ///   - state: of the tracker that he asks.
    ///   - torrents: that have files.
    ///   - directory: the operator's torrent files.
    ///   - clients: whose passkeys he gives out; where there are none, one of a client that there is not.
    /// - Returns: a change, or the next part of one.
    mutating func draw(
        _ state: ReplicatedState, _ torrents: [InfoHash], _ directory: [SimulatedFile], clients: Int
    ) -> ConsoleChange? {
        if let upload { return next(upload.file, upload.next) }
        // An admin comes first.
        if state.accounts.adminCount == 0 {
            let expected = state.accounts.count == 0 ? Expectation.noAccounts : .any
            return .putAccount(account("root", .admin), expected: expected)
        }
        switch random.below(13) {
        case 0, 1, 2: return drawAccount(state.accounts, clients)
        case 3, 4: return drawSession(state.accounts)
        case 5: return sessions.isEmpty ? nil : .removeSession(sessions.remove(at: random.below(sessions.count)))
        case 6:
            let infoHash = torrents[random.below(torrents.count)]
            return .removeTorrentFile(infoHash, expected: expected(state.files.find(infoHash)?.changedAt))
        case 7, 8:
            guard !directory.isEmpty else { return nil }
            let file = SimulatedFile(directory[random.below(directory.count)], upload: random.next())
            // In any case now and then: what is refused must not be taken.
            let isThere = state.files.find(file.head.upload.infoHash)?.head.sha256 == file.head.sha256
            if isThere, random.oneIn(2) { return nil }
            expectedFile = .any
            upload = (file, 0)
            isHasty = random.oneIn(4)
            return next(file, 0)
        case 9: return nil
        default:
            let infoHash = torrents[random.below(torrents.count)]
            expectedFile = expected(state.files.find(infoHash)?.changedAt)
            let file = SimulatedFile(infoHash, &random)
            upload = (file, 0)
            isHasty = random.oneIn(4)
            return next(file, 0)
        }
    }

    /// The directory after the operator has changed something in it: files come, go, and are others than before.
    mutating func changed(_ directory: [SimulatedFile], _ torrents: [InfoHash]) -> [SimulatedFile] {
        torrents.compactMap { infoHash -> SimulatedFile? in
            let old = directory.first { $0.head.upload.infoHash == infoHash }
            return switch random.below(4) {
            case 0: nil
            case 1: SimulatedFile(infoHash, &random)
            default: old
            }
        }
    }

    /// The accounts of the operator's files after he has changed something in them, with an admin at least where nobody
    /// has one yet; in no order, and perhaps with one name twice.
    mutating func changed(_ old: [Account], _ state: ReplicatedState) -> [Account] {
        var accounts: [Account] = []
        for name in Steward.names {
            let known = old.first { $0.name == name }
            switch random.below(4) {
            case 0: break
            case 1:
                var account = account("", AccountRole.allCases[random.below(4)])
                account.name = name
                accounts.append(account)
            default: if let known { accounts.append(known) }
            }
        }
        if state.accounts.adminCount == 0 || !random.oneIn(4) {
            accounts.removeAll { $0.name == Steward.names[0] }
            accounts.append(account("root", .admin))
        }
        if random.oneIn(8), let first = accounts.first { accounts.append(first) }
        for place in accounts.indices { accounts[place].origin = .file }
        return accounts
    }

    /// The next thing of an upload: a part, or that it is to be shown.
    private func next(_ file: SimulatedFile, _ number: UInt32) -> ConsoleChange {
        guard let part = UploadPart(number, of: file.bytes, file.head.upload) else {
            return finish(file)
        }
        return .uploadPart(part)
    }

    /// That the file is to be shown.
    func finish(_ file: SimulatedFile) -> ConsoleChange { .finishUpload(file.head, expected: expectedFile) }

    private mutating func account(_ name: String, _ role: AccountRole) -> Account {
        var hash: [UInt8] = []
        hash.append(bigEndian: random.next())
        return Account(
            name: Array(name.utf8), role: role, origin: .console,
            password: PasswordHash(log2N: 15, r: 8, p: 3, salt: [1], hash: hash))
    }

    private mutating func drawAccount(_ accounts: Accounts, _ clients: Int) -> ConsoleChange {
        let name = Steward.names[random.below(Steward.names.count)]
        let kept = accounts.find(name)
        let expected = expected(kept?.changedAt)
        if kept != nil, random.oneIn(3) { return .removeAccount(name: name, expected: expected) }
        if var account = kept?.account, random.oneIn(2) {
            account.passkey = random.oneIn(4) ? nil : Workload.passkey(random.below(max(1, clients)))
            return .putAccount(account, expected: expected)
        }
        let role = AccountRole.allCases[random.below(4)]
        var account = account("", role)
        account.name = name
        account.passkey = kept?.account.passkey
        // Another role, and the same password.
        if let kept, random.oneIn(2) { account.password = kept.account.password }
        return .putAccount(account, expected: expected)
    }

    /// Another thing that is wanted of an account, whatever it is by then.
    mutating func another(_ accounts: Accounts, _ name: [UInt8]) -> ConsoleChange {
        if random.oneIn(3) { return .removeAccount(name: name, expected: .any) }
        var account = account("", AccountRole.allCases[random.below(4)])
        account.name = name
        account.passkey = accounts.find(name)?.account.passkey
        return .putAccount(account, expected: .any)
    }

    private mutating func drawSession(_ accounts: Accounts) -> ConsoleChange? {
        let all = accounts.all
        guard !all.isEmpty else { return nil }
        let kept = all[random.below(all.count)]
        var bytes: [UInt8] = []
        for _ in 0..<4 { bytes.append(bigEndian: random.next()) }
        guard let key = Bytes32(bytes) else { return nil }
        // By the time of accounts, which is the cluster's.
        let session = Session(
            key: key, account: kept.account.name, expires: kept.changedTime &+ 20 &+ UInt32(random.below(100)),
            isToken: random.oneIn(4))
        return .putSession(session, expected: .asOf(kept.changedAt))
    }

    private mutating func expected(_ index: UInt64?) -> Expectation {
        if random.oneIn(2) { return .any }
        return index.map { .asOf($0) } ?? .nothing
    }
}

extension ConsoleChange {
    /// The name of the account that it makes, changes or takes out; nil where it is of something else.
    var account: [UInt8]? {
        switch self {
        case .putAccount(let account, _): account.name
        case .removeAccount(let name, _): name
        case .putSession, .removeSession, .uploadPart, .finishUpload, .dropUpload, .removeTorrentFile: nil
        }
    }
}

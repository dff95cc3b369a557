// Who may log in at the console, and who has.

import Primitives
import Wire

/// An account as it is kept.
public struct KeptAccount: Sendable, Hashable {
    /// Name, role, origin and password.
    public var account: Account
    /// The index of the entry that last changed it.
    public var changedAt: UInt64
    /// The index of the entry that last changed its password: no session is older.
    public var passwordAt: UInt64
    /// Cluster time of its last change, in seconds since 1970: after a partition the newer one stays.
    public var changedTime: UInt32

    /// Takes the fields as they are.
    public init(account: Account, changedAt: UInt64, passwordAt: UInt64, changedTime: UInt32) {
        (self.account, self.changedAt) = (account, changedAt)
        (self.passwordAt, self.changedTime) = (passwordAt, changedTime)
    }
}

/// A session as it is kept.
public struct KeptSession: Sendable, Hashable {
    /// Key, account, expiry and label.
    public var session: Session
    /// The index of the entry that made it.
    public var createdAt: UInt64

    /// Takes the fields as they are.
    public init(session: Session, createdAt: UInt64) { (self.session, self.createdAt) = (session, createdAt) }

    /// Whether it goes before another where there are too many: log-ins before tokens, the older before the younger.
    fileprivate func goesBefore(_ other: KeptSession) -> Bool {
        if session.isToken != other.session.isToken { return !session.isToken }
        return createdAt != other.createdAt ? createdAt < other.createdAt : session.key < other.session.key
    }
}

/// An account that was removed, which another side of a partition may still have.
public struct RemovedAccount: Sendable, Hashable {
    /// Of the account.
    public var name: [UInt8]
    /// Cluster time of its removal, in seconds since 1970.
    public var time: UInt32

    /// Takes the fields as they are.
    public init(name: [UInt8], time: UInt32) { (self.name, self.time) = (name, time) }
}

/// Accounts and sessions of the console: replicated, changed by updates alone.
///
/// Updates were judged by the master before they came into the log (`ReplicatedState.judge`); what is promised whatever
/// the log says is kept here: where there has been an admin, there is one; a session has an account, and is younger
/// than its password; there are never more than `Limits` says.
public struct Accounts: Sendable {
    /// Bounds on what people keep here, the same for all trackers, whatever they are configured to.
    public enum Bounds {
        /// Accounts: a large private tracker has some ten people who run it, and some thousand who upload.
        public static let accounts = 10_000
        /// Sessions of all accounts.
        public static let sessions = 10_000
        /// Sessions of one account, so that nobody who logs in again and again pushes out the others.
        public static let sessionsPerAccount = 64
        /// Removed accounts that are remembered for a merge (survivor mode): those removed last.
        public static let removed = 256
    }

    private(set) var accounts: FlatTable<KeptAccount>
    private(set) var sessions: FlatTable<KeptSession>
    /// Of the accounts that have one.
    private var passkeys: FlatTable<HeldPasskey>
    /// Where another side of a partition may have them still, each name once and none that is here; the one that was
    /// removed last, last.
    public internal(set) var removed: [RemovedAccount] = []
    private let secret: UInt64
    let keepsMergeData: Bool
    /// Accounts that are admins.
    public private(set) var adminCount = 0
    /// The sum of the fingerprints of all accounts, sessions and removals, in no order.
    public internal(set) var digest: UInt64 = 0
    /// No session expires before this cluster time, in seconds since 1970.
    private(set) var firstExpiry = UInt32.max
    #if PLANTED_BUGS
        var plantedBug: PlantedBug?
    #endif

    /// Nobody; `secret` keys the hashes of the tables.
    public init(secret: UInt64, keepsMergeData: Bool) {
        self.secret = secret
        self.keepsMergeData = keepsMergeData
        accounts = FlatTable(secret: secret)
        sessions = FlatTable(secret: secret)
        passkeys = FlatTable(secret: secret)
    }

    // MARK: - Looking

    /// How many accounts there are.
    public var count: Int { accounts.count }
    /// How many sessions there are, of all accounts.
    public var sessionCount: Int { sessions.count }
    /// Whether there is nothing to be written down.
    var isEmpty: Bool { accounts.count == 0 && sessions.count == 0 && removed.isEmpty }

    /// All accounts, by name.
    public var all: [KeptAccount] {
        accounts.records.sorted { $0.account.name.lexicographicallyPrecedes($1.account.name) }
    }

    /// All sessions, the oldest first.
    public var allSessions: [KeptSession] {
        sessions.records.sorted {
            $0.createdAt != $1.createdAt ? $0.createdAt < $1.createdAt : $0.session.key < $1.session.key
        }
    }

    /// The account with this name; nil where there is none.
    public func find(_ name: [UInt8]) -> KeptAccount? {
        accounts.find(keyHash: KeptAccount.keyHash(name, secret)) { $0.account.name == name }
    }

    /// The session with this key, expired or not; nil where there is none.
    public func session(_ key: Bytes32) -> KeptSession? {
        sessions.find(keyHash: KeptSession.keyHash(key, secret)) { $0.session.key == key }
    }

    /// Whose session it is, at a time.
    ///
    /// - Parameters:
    ///   - key: the SHA-256 of the id that somebody shows.
    ///   - seconds: cluster time; a session that has expired is nobody's, even before the log says so.
    /// - Returns: nil where the session is nobody's.
    public func holder(of key: Bytes32, at seconds: UInt32) -> KeptAccount? {
        guard let kept = session(key), kept.session.expires > seconds else { return nil }
        return find(kept.session.account)
    }

    /// Whether a passkey is an account's, which is asked for each announce on a private tracker.
    public func know(passkey: [UInt8]) -> Bool { passkeys.contains(HeldPasskey(passkey)) }

    /// How many passkeys are known.
    var passkeyCount: Int { passkeys.count }
    /// Whether each account's passkey is known, and no other: but for mistakes that are planted, always.
    var knowsPasskeys: Bool { !has(.passkeyOutlivesAccount) && !has(.passkeysNotRestored) }

    /// The name of the account that has a passkey; nil where it is nobody's.
    func holder(ofPasskey passkey: [UInt8]) -> [UInt8]? { passkeys.find(HeldPasskey(passkey))?.name }

    /// Sessions of an account, the oldest first.
    public func sessions(of name: [UInt8]) -> [KeptSession] { allSessions.filter { $0.session.account == name } }

    /// Whether any session has expired at a cluster time.
    func hasExpired(at seconds: UInt32) -> Bool {
        guard firstExpiry <= seconds else { return false }
        return sessions.records.contains { $0.session.expires <= seconds }
    }

    /// Whether an account is the only admin.
    func isLastAdmin(_ name: [UInt8]) -> Bool { adminCount == 1 && find(name)?.account.role == .admin }

    // MARK: - Changing

    /// Makes an account, or changes it; a passkey that another account has stays that one's.
    ///
    /// - Parameters:
    ///   - account: as it is to be.
    ///   - index: of the entry that says so.
    ///   - time: cluster time of the change, in seconds.
    ///   - isMerged: whether it was changed on another side of a partition; what counts more here stays.
    mutating func put(_ account: Account, at index: UInt64, time: UInt32, isMerged: Bool = false) {
        var account = account
        if let passkey = account.passkey, let holder = holder(ofPasskey: passkey), holder != account.name {
            account.passkey = nil
        }
        let old = find(account.name)
        guard isMerged ? accepts(account, at: time) : old?.account != account else { return }
        if var old, old.account == account {
            // The same on both sides: it stands as of the later time.
            old.changedTime = time
            return insert(old)
        }
        if old == nil, count >= Bounds.accounts { return }
        if account.role < .admin, isLastAdmin(account.name), !has(.lastAdminLost) { return }
        var kept = KeptAccount(account: account, changedAt: index, passwordAt: index, changedTime: time)
        if !isMerged { kept.changedTime = order(account.name, time: time) }
        if let old {
            if old.account.password == account.password {
                kept.passwordAt = old.passwordAt
            } else if !has(.sessionsOutlivePassword) {
                removeSessions(of: account.name)
            }
        }
        forgetRemoval(of: account.name)
        insert(kept)
    }

    /// Takes an account out, with its sessions.
    ///
    /// - Parameters:
    ///   - name: whose it is.
    ///   - time: cluster time of the removal, in seconds.
    ///   - isMerged: whether it was removed on another side of a partition. Then it is remembered also where there is
    ///     no such account now, for a third side may have one.
    mutating func remove(_ name: [UInt8], time: UInt32, isMerged: Bool = false) {
        var removal = RemovedAccount(name: name, time: time)
        let old = find(name)
        guard isMerged ? accepts(removal) : old != nil, !isLastAdmin(name) || has(.lastAdminLost) else { return }
        if let old {
            if !has(.sessionsOutliveAccount) { removeSessions(of: name) }
            forget(old)
            removal.time = max(time, old.changedTime)
        }
        if keepsMergeData { insert(removal) }
    }

    /// Logs somebody in; at a cluster time at which the session has expired it changes nothing.
    mutating func put(_ session: Session, at index: UInt64, time: UInt32) {
        guard session.expires > time, find(session.account) != nil, self.session(session.key) == nil else { return }
        let own = sessions(of: session.account)
        if own.count >= Bounds.sessionsPerAccount, let victim = own.min(by: { $0.goesBefore($1) }) {
            removeSession(victim.session.key)
        } else if sessionCount >= Bounds.sessions, let victim = sessions.records.min(by: { $0.goesBefore($1) }) {
            removeSession(victim.session.key)
        }
        insert(KeptSession(session: session, createdAt: index))
    }

    mutating func removeSession(_ key: Bytes32) {
        guard let old = session(key) else { return }
        sessions.remove(old)
        digest &-= fingerprint(old)
    }

    /// Ends the sessions that have expired at a cluster time.
    mutating func expireSessions(through seconds: UInt32) {
        for kept in sessions.records where kept.session.expires <= seconds { removeSession(kept.session.key) }
        firstExpiry = sessions.records.reduce(.max) { min($0, $1.session.expires) }
    }

    private mutating func removeSessions(of name: [UInt8]) {
        for kept in sessions.records where kept.session.account == name { removeSession(kept.session.key) }
    }

    // MARK: - Tables

    /// Puts an account in its place, as it was written down.
    mutating func insert(_ kept: KeptAccount) {
        if let old = accounts.put(kept) { note(old, isThere: false) }
        note(kept, isThere: true)
    }

    /// Puts a session in its place, as it was written down.
    mutating func insert(_ kept: KeptSession) {
        if let old = sessions.put(kept) { digest &-= fingerprint(old) }
        digest &+= fingerprint(kept)
        firstExpiry = min(firstExpiry, kept.session.expires)
    }

    private mutating func forget(_ old: KeptAccount) {
        accounts.remove(old)
        note(old, isThere: false)
        if has(.passkeyOutlivesAccount), let held = HeldPasskey(of: old) { passkeys.put(held) }
    }

    #if PLANTED_BUGS
        /// Whoever reads accounts knows none of their passkeys.
        mutating func plantedAfterRestore() {
            if has(.passkeysNotRestored) { passkeys = FlatTable(secret: secret) }
        }
    #endif

    private mutating func note(_ kept: KeptAccount, isThere: Bool) {
        let isAdmin = kept.account.role == .admin
        if isThere {
            digest &+= fingerprint(kept)
            if isAdmin { adminCount += 1 }
            if let held = HeldPasskey(of: kept) { passkeys.put(held) }
        } else {
            if let held = HeldPasskey(of: kept) { passkeys.remove(held) }
            digest &-= fingerprint(kept)
            if isAdmin { adminCount -= 1 }
        }
    }

    // MARK: - Fingerprints

    func fingerprint(_ kept: KeptAccount) -> UInt64 { fingerprint("A") { kept.encode(into: &$0) } }
    func fingerprint(_ kept: KeptSession) -> UInt64 { fingerprint("S") { kept.encode(into: &$0) } }
    func fingerprint(_ removal: RemovedAccount) -> UInt64 { fingerprint("R") { removal.encode(into: &$0) } }

    /// `kind` tells accounts, sessions and removals apart.
    private func fingerprint(_ kind: Unicode.Scalar, _ encode: (inout [UInt8]) -> Void) -> UInt64 {
        var bytes: [UInt8] = []
        encode(&bytes)
        return mixed(checksum(bytes.span.bytes) ^ mixed(secret ^ UInt64(kind.value)))
    }

    @inline(__always)
    private func has(_ bug: PlantedBug) -> Bool {
        #if PLANTED_BUGS
            plantedBug == bug
        #else
            false
        #endif
    }
}

// MARK: - Tables of them

extension KeptAccount: FlatRecord {
    fileprivate static func keyHash(_ name: [UInt8], _ secret: UInt64) -> UInt64 {
        Primitives.hash(name, secret: secret)
    }

    /// A hash of the name.
    public func keyHash(_ secret: UInt64) -> UInt64 { Self.keyHash(account.name, secret) }
    /// Whether the other account has the same name.
    public func hasSameKey(as other: Self) -> Bool { account.name == other.account.name }
}

extension KeptSession: FlatRecord {
    fileprivate static func keyHash(_ key: Bytes32, _ secret: UInt64) -> UInt64 { key.hash(key: secret) }

    /// A hash of the key.
    public func keyHash(_ secret: UInt64) -> UInt64 { Self.keyHash(session.key, secret) }
    /// Whether the other session has the same key.
    public func hasSameKey(as other: Self) -> Bool { session.key == other.session.key }
}

/// A passkey, and the account that has it.
private struct HeldPasskey: FlatRecord {
    var passkey: [UInt8]
    var name: [UInt8]

    init(_ passkey: [UInt8]) { (self.passkey, name) = (passkey, []) }

    /// Nil where the account has none.
    init?(of kept: KeptAccount) {
        guard let passkey = kept.account.passkey else { return nil }
        (self.passkey, name) = (passkey, kept.account.name)
    }

    func keyHash(_ secret: UInt64) -> UInt64 { hash(passkey, secret: secret) }
    func hasSameKey(as other: Self) -> Bool { passkey == other.passkey }
}

extension Accounts {
    mutating func walk(_ archive: inout Archive) {
        archive.walk(table: &accounts)
        archive.walk(table: &sessions)
        archive.walk(table: &passkeys)
        removed.walk(&archive)
        adminCount.walk(&archive)
        digest.walk(&archive)
        firstExpiry.walk(&archive)
    }
}

extension HeldPasskey: Archived {
    static var blank: HeldPasskey { HeldPasskey([]) }

    mutating func walk(_ archive: inout Archive) {
        archive.walk(bytes: &passkey)
        archive.walk(bytes: &name)
    }
}

// The access rules in force.

import Primitives
import Wire

/// The access rules in force: replicated, changed by updates alone.
public struct AccessControl: Sendable {
    /// Which of the rules below are read.
    public private(set) var mode = AccessMode.open
    private var infoHashes: FlatTable<ListedInfoHash>
    private var usersByName: FlatTable<UserByName>
    private var usersByPasskey: FlatTable<UserByPasskey>
    private let secret: UInt64
    /// The sum of the fingerprints of all rules, in no order.
    public private(set) var digest: UInt64 = 0

    /// Open to all; `secret` keys the hashes of the tables.
    public init(secret: UInt64) {
        self.secret = secret
        infoHashes = FlatTable(secret: secret)
        usersByName = FlatTable(secret: secret)
        usersByPasskey = FlatTable(secret: secret)
    }

    /// How many info hashes are listed, whether or not the mode reads them.
    public var infoHashCount: Int { infoHashes.count }
    /// How many users have a passkey, whether or not the mode reads them.
    public var userCount: Int { usersByName.count }

    /// Whether an announce or a scrape of a torrent may be granted.
    ///
    /// - Parameters:
    ///   - infoHash: the torrent's.
    ///   - accounts: whose passkeys are as good as those of users.
    ///   - passkey: called only on private trackers; empty for none.
    /// - Returns: nil where it may.
    public func refusal(_ infoHash: InfoHash, _ accounts: Accounts, passkey: () -> [UInt8]) -> Refusal? {
        switch mode {
        case .open: return nil
        case .allow: return infoHashes.contains(ListedInfoHash(infoHash)) ? nil : .infoHashNotAllowed
        case .deny: return infoHashes.contains(ListedInfoHash(infoHash)) ? .infoHashDenied : nil
        case .private: return refusal(accounts, passkey: passkey())
        }
    }

    /// Whether somebody with this passkey may ask at all; nil where he may.
    public func refusal(_ accounts: Accounts, passkey: [UInt8]) -> Refusal? {
        guard mode == .private else { return nil }
        guard !passkey.isEmpty else { return .passkeyMissing }
        return know(passkey: passkey) || accounts.know(passkey: passkey) ? nil : .passkeyUnknown
    }

    /// Whether a passkey is a user's.
    package func know(passkey: [UInt8]) -> Bool {
        usersByPasskey.contains(UserByPasskey(User(name: "", passkey: passkey)))
    }

    /// Whether a scrape over UDP may be granted.
    ///
    /// Not on a private tracker: BEP 41's options, which carry a passkey, belong to announces, and a scrape's length is
    /// that of its info hashes (BEP 15).
    public var udpScrapeRefusal: Refusal? { mode == .private ? .scrapeNeedsPasskey : nil }

    // MARK: Changing

    mutating func setMode(_ mode: AccessMode) {
        digest &-= folded(secret ^ 0x11, UInt64(self.mode.rawValue) &+ 0x9E37_79B9_7F4A_7C15)
        self.mode = mode
        digest &+= folded(secret ^ 0x11, UInt64(mode.rawValue) &+ 0x9E37_79B9_7F4A_7C15)
    }

    mutating func list(_ infoHash: InfoHash) {
        let record = ListedInfoHash(infoHash)
        if infoHashes.put(record) == nil { digest &+= record.keyHash(secret) }
    }

    mutating func unlist(_ infoHash: InfoHash) {
        let record = ListedInfoHash(infoHash)
        if infoHashes.remove(record) != nil { digest &-= record.keyHash(secret) }
    }

    mutating func put(_ user: User) {
        // A passkey belongs to one user only, the one who was given it last.
        if let holder = usersByPasskey.find(UserByPasskey(user)) { removeUser(named: holder.user.name) }
        removeUser(named: user.name)
        usersByName.put(UserByName(user))
        usersByPasskey.put(UserByPasskey(user))
        digest &+= fingerprint(user)
    }

    mutating func removeUser(named name: String) {
        guard let old = usersByName.remove(UserByName(User(name: name, passkey: []))) else { return }
        usersByPasskey.remove(UserByPasskey(old.user))
        digest &-= fingerprint(old.user)
    }

    private func fingerprint(_ user: User) -> UInt64 {
        folded(hash(user.name.utf8, secret: secret), hash(user.passkey, secret: secret ^ 0x22))
    }

    // MARK: As a whole

    /// The rules in force, in an order that means nothing.
    var rules: AccessRules {
        AccessRules(
            mode: mode, infoHashes: infoHashes.records.map { $0.infoHash }, users: usersByName.records.map { $0.user })
    }

    /// The updates that turn the rules in force into those wanted.
    ///
    /// Their order is such that a client that both sets of rules admit is never refused in between.
    func updates(towards wanted: AccessRules) -> [Update] {
        let lists = listChanges(towards: wanted)
        let users = userChanges(towards: wanted)
        let modeChange: [Update] = wanted.mode == mode ? [] : [.setAccessMode(wanted.mode.rawValue)]
        let listsAndMode: [Update]
        switch wanted.mode {
        case .open, .private:
            // The list means nothing from here on.
            listsAndMode = modeChange + lists.additions + lists.removals
        case .allow:
            listsAndMode = leaving(.deny) + lists.additions + modeChange + lists.removals
        case .deny:
            listsAndMode = leaving(.allow) + lists.additions + lists.removals + modeChange
        }
        return users.additions + listsAndMode + users.removals
    }

    /// `allow` and `deny` read a list in opposite ways: between the two it changes while it means nothing.
    private func leaving(_ opposite: AccessMode) -> [Update] {
        mode == opposite ? [.setAccessMode(AccessMode.open.rawValue)] : []
    }

    private func listChanges(towards wanted: AccessRules) -> (additions: [Update], removals: [Update]) {
        var listed = FlatTable<ListedInfoHash>(secret: secret)
        for infoHash in wanted.infoHashes { listed.put(ListedInfoHash(infoHash)) }
        return (
            listed.records.filter { !infoHashes.contains($0) }.map { .listInfoHash($0.infoHash) },
            infoHashes.records.filter { !listed.contains($0) }.map { .unlistInfoHash($0.infoHash) }
        )
    }

    private func userChanges(towards wanted: AccessRules) -> (additions: [Update], removals: [Update]) {
        var named = FlatTable<UserByName>(secret: secret)
        for user in wanted.users { named.put(UserByName(user)) }
        return (
            named.records.filter { usersByName.find($0)?.user != $0.user }.map {
                .putUser(name: Array($0.user.name.utf8), passkey: $0.user.passkey)
            },
            usersByName.records.filter { !named.contains($0) }.map { .removeUser(name: Array($0.user.name.utf8)) }
        )
    }
}

private struct ListedInfoHash: FlatRecord {
    var infoHash: InfoHash

    init(_ infoHash: InfoHash) { self.infoHash = infoHash }

    func keyHash(_ secret: UInt64) -> UInt64 { infoHash.bytes.hash(key: secret) }
    func hasSameKey(as other: Self) -> Bool { infoHash == other.infoHash }
}

private struct UserByName: FlatRecord {
    var user: User

    init(_ user: User) { self.user = user }

    func keyHash(_ secret: UInt64) -> UInt64 { hash(user.name.utf8, secret: secret) }
    func hasSameKey(as other: Self) -> Bool { user.name.utf8.elementsEqual(other.user.name.utf8) }
}

private struct UserByPasskey: FlatRecord {
    var user: User

    init(_ user: User) { self.user = user }

    func keyHash(_ secret: UInt64) -> UInt64 { hash(user.passkey, secret: secret) }
    func hasSameKey(as other: Self) -> Bool { user.passkey == other.user.passkey }
}

extension AccessControl {
    mutating func walk(_ archive: inout Archive) {
        mode.walk(&archive)
        archive.walk(table: &infoHashes)
        archive.walk(table: &usersByName)
        archive.walk(table: &usersByPasskey)
        digest.walk(&archive)
    }
}

extension ListedInfoHash: Archived {
    static var blank: ListedInfoHash { ListedInfoHash(.blank) }

    mutating func walk(_ archive: inout Archive) { infoHash.walk(&archive) }
}

extension UserByName: Archived {
    static var blank: UserByName { UserByName(.blank) }

    mutating func walk(_ archive: inout Archive) { user.walk(&archive) }
}

extension UserByPasskey: Archived {
    static var blank: UserByPasskey { UserByPasskey(.blank) }

    mutating func walk(_ archive: inout Archive) { user.walk(&archive) }
}

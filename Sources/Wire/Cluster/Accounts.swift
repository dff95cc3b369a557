// Accounts and sessions of the console, as updates and orders carry them.

import Primitives

/// What somebody may do at a console: each role may do all that the ones before it may.
public enum AccountRole: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    /// Looks.
    case viewer = 1
    /// Uploads torrents, too.
    case uploader = 2
    /// Steers the cluster, too.
    case `operator` = 3
    /// Changes accounts, too.
    case admin = 4

    /// Whether the right role may do more.
    public static func < (left: AccountRole, right: AccountRole) -> Bool { left.rawValue < right.rawValue }

    /// As people write it.
    public var word: String {
        switch self {
        case .viewer: "viewer"
        case .uploader: "uploader"
        case .operator: "operator"
        case .admin: "admin"
        }
    }

    /// The role of a word; nil where there is none.
    public init?(word: String) {
        guard let role = AccountRole.allCases.first(where: { $0.word == word }) else { return nil }
        self = role
    }
}

/// Where an account, or another thing that is kept, comes from.
public enum AccountOrigin: UInt8, Sendable, Hashable, CaseIterable {
    /// A file of a tracker, which a start or SIGHUP reads anew.
    case file = 1
    /// People at a console.
    case console = 2
}

/// A password, hashed with scrypt (RFC 7914): made and compared where somebody logs in, and only kept here.
public struct PasswordHash: Sendable, Hashable {
    /// The cost N of scrypt, as a power of two.
    public var log2N: UInt8
    /// The block size r of scrypt.
    public var r: UInt8
    /// The parallelism p of scrypt.
    public var p: UInt8
    /// Random; at most `maxByteCount` bytes.
    public var salt: [UInt8]
    /// What scrypt made of the password; at most `maxByteCount` bytes.
    public var hash: [UInt8]

    /// Bytes of a salt and of a hash, at most.
    public static let maxByteCount = 64
    /// Memory that one log-in may take, as the binary logarithm of bytes: 256 MiB.
    ///
    /// So no account that somebody made up brings a tracker down when its password is tried. N 2^15, r 8 take 32 MiB.
    public static let maxLog2Memory = 28
    /// Rounds of that work, at most.
    public static let maxParallelism: UInt8 = 16

    /// Takes the fields as they are.
    public init(log2N: UInt8, r: UInt8, p: UInt8, salt: [UInt8], hash: [UInt8]) {
        (self.log2N, self.r, self.p, self.salt, self.hash) = (log2N, r, p, salt, hash)
    }

    /// Whether a tracker may be asked to compare a password with it.
    public var isWithinBounds: Bool {
        guard log2N >= 1, Int(log2N) <= PasswordHash.maxLog2Memory, r >= 1, p >= 1, p <= PasswordHash.maxParallelism,
            salt.count <= PasswordHash.maxByteCount, (1...PasswordHash.maxByteCount).contains(hash.count)
        else { return false }
        return UInt64(r) << UInt64(log2N) <= UInt64(1) << UInt64(PasswordHash.maxLog2Memory - 7)
    }
}

/// Somebody who may log in at a console.
///
/// No `User`: those are of a file, and have nothing but a passkey, with which clients announce on a private tracker.
/// An account may have a passkey, too.
public struct Account: Sendable, Hashable {
    /// The key: UTF-8, 1 to `maxNameByteCount` bytes.
    ///
    /// Which characters a name may have is checked where it is made (`isName`).
    public var name: [UInt8]
    /// What the account may do.
    public var role: AccountRole
    /// Where it comes from.
    public var origin: AccountOrigin
    /// Nil for an account that has tokens only.
    public var password: PasswordHash?
    /// Lets clients announce on a private tracker, as that of a `User` does; nil for none.
    ///
    /// No two accounts have the same. Printable ASCII without `/ ? & # %`, 1 to `maxPasskeyByteCount` bytes
    /// (`isPasskey`).
    public var passkey: [UInt8]?

    /// Bytes of a passkey, at most.
    public static let maxPasskeyByteCount = 64
    /// Bytes of a name, at most.
    public static let maxNameByteCount = 64

    /// What a name has to be, for whoever gives another.
    public static let nameRule =
        "a name has 1 to \(maxNameByteCount) bytes: letters, digits and . - _ @ +, and begins with none of . - +"

    /// Whether somebody may be called so.
    ///
    /// Letters and digits of any script would do, but names that look alike would not.
    public static func isName(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        guard (1...maxNameByteCount).contains(bytes.count), let first = bytes.first else { return false }
        guard !Array(".-+".utf8).contains(first) else { return false }
        return bytes.allSatisfy { byte in
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                || Array(".-_@+".utf8).contains(byte)
        }
    }

    /// Takes the fields as they are.
    public init(
        name: [UInt8], role: AccountRole, origin: AccountOrigin, password: PasswordHash? = nil, passkey: [UInt8]? = nil
    ) {
        (self.name, self.role, self.origin) = (name, role, origin)
        (self.password, self.passkey) = (password, passkey)
    }

    /// Whether a byte may stand in a passkey: it is a part of an announce URL.
    public static func isPasskeyByte(_ byte: UInt8) -> Bool {
        (33...126).contains(byte) && !"/?&#%".utf8.contains(byte)
    }

    /// Whether it may be anybody's passkey.
    ///
    /// In an announce URL the one part that is none of two words is the passkey.
    public static func isPasskey(_ bytes: [UInt8]) -> Bool {
        (1...maxPasskeyByteCount).contains(bytes.count) && bytes.allSatisfy(isPasskeyByte)
            && !bytes.elementsEqual("announce".utf8) && !bytes.elementsEqual("scrape".utf8)
    }

    /// Whether the account may be kept.
    public var isWithinBounds: Bool {
        (1...Account.maxNameByteCount).contains(name.count) && (password?.isWithinBounds ?? true)
            && (passkey.map(Account.isPasskey) ?? true)
    }
}

/// A log-in, or a token for programs: who shows its id is the account.
public struct Session: Sendable, Hashable {
    /// The SHA-256 of the id, which only its holder knows.
    public var key: Bytes32
    /// The name of the account.
    public var account: [UInt8]
    /// Cluster time, in seconds since 1970, from which on it is good for nothing.
    public var expires: UInt32
    /// Whether it is a token for programs: log-ins do not push it out.
    public var isToken: Bool
    /// What its holder calls it: UTF-8, at most `maxLabelByteCount` bytes.
    public var label: [UInt8]

    /// Bytes of a label, at most.
    public static let maxLabelByteCount = 64

    /// Takes the fields as they are.
    public init(key: Bytes32, account: [UInt8], expires: UInt32, isToken: Bool = false, label: [UInt8] = []) {
        (self.key, self.account, self.expires, self.isToken, self.label) = (key, account, expires, isToken, label)
    }

    /// Whether the session may be kept.
    public var isWithinBounds: Bool {
        (1...Account.maxNameByteCount).contains(account.count) && label.count <= Session.maxLabelByteCount
    }
}

/// What somebody who changes a thing believes that it is: by the index of the entry that changed it last (an ETag).
public enum Expectation: Sendable, Hashable {
    /// Anything, or nothing.
    case any
    /// There is no such thing (`If-None-Match: *`).
    case nothing
    /// It is as this entry has left it (`If-Match`).
    case asOf(UInt64)
    /// There is no account at all: then whoever is on a tracker's machine makes the first one.
    case noAccounts

    /// Whether a thing is as expected.
    ///
    /// - Parameter index: of the entry that last changed it; nil where there is no such thing.
    /// - Returns: true for `any`, whatever is there.
    public func isMet(by index: UInt64?) -> Bool {
        switch self {
        case .any: true
        case .nothing, .noAccounts: index == nil
        case .asOf(let expected): index == expected
        }
    }
}

// MARK: - Bytes

extension PasswordHash {
    fileprivate func encode(into bytes: inout [UInt8]) {
        bytes.append(log2N)
        bytes.append(r)
        bytes.append(p)
        bytes.append(counted: salt)
        bytes.append(counted: hash)
    }

    fileprivate init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(
            log2N: try reader.u8(), r: try reader.u8(), p: try reader.u8(), salt: Array(try reader.counted()),
            hash: Array(try reader.counted()))
    }
}

extension Account {
    /// Appends its bytes, as updates, orders and snapshots have them.
    public func encode(into bytes: inout [UInt8]) {
        bytes.append(counted: name)
        bytes.append(role.rawValue)
        bytes.append(origin.rawValue)
        bytes.append((password == nil ? 0 : Account.hasPassword) | (passkey == nil ? 0 : Account.hasPasskey))
        password?.encode(into: &bytes)
        if let passkey { bytes.append(counted: passkey) }
    }

    private static let hasPassword: UInt8 = 1
    private static let hasPasskey: UInt8 = 2

    /// Reads an account that is within its bounds.
    public init(_ reader: inout ByteReader) throws(OutOfBytes) {
        let name = Array(try reader.counted())
        guard let role = AccountRole(rawValue: try reader.u8()), let origin = AccountOrigin(rawValue: try reader.u8())
        else { throw OutOfBytes() }
        self.init(name: name, role: role, origin: origin)
        let has = try reader.u8()
        guard has & ~(Account.hasPassword | Account.hasPasskey) == 0 else { throw OutOfBytes() }
        if has & Account.hasPassword != 0 { password = try PasswordHash(&reader) }
        if has & Account.hasPasskey != 0 { passkey = Array(try reader.counted()) }
        guard isWithinBounds else { throw OutOfBytes() }
    }
}

extension Session {
    /// Appends its bytes, as updates, orders and snapshots have them.
    public func encode(into bytes: inout [UInt8]) {
        bytes.append(key)
        bytes.append(counted: account)
        bytes.append(bigEndian: expires)
        bytes.append(isToken ? 1 : 0)
        bytes.append(counted: label)
    }

    /// Reads a session that is within its bounds.
    public init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(
            key: try reader.bytes32(), account: Array(try reader.counted()), expires: try reader.u32(),
            isToken: try reader.flag(), label: Array(try reader.counted()))
        guard isWithinBounds else { throw OutOfBytes() }
    }
}

extension Expectation {
    /// No index of an entry (`NumberBounds.index`).
    private static let noAccountsNumber = UInt64.max - 1

    func encode(into bytes: inout [UInt8]) {
        switch self {
        case .any: bytes.append(bigEndian: UInt64.max)
        case .nothing: bytes.append(bigEndian: 0 as UInt64)
        case .asOf(let index): bytes.append(bigEndian: index)
        case .noAccounts: bytes.append(bigEndian: Expectation.noAccountsNumber)
        }
    }

    init(_ reader: inout ByteReader) throws(OutOfBytes) {
        switch try reader.u64() {
        case .max: self = .any
        case Expectation.noAccountsNumber: self = .noAccounts
        case 0: self = .nothing
        case let index where index <= NumberBounds.index: self = .asOf(index)
        default: throw OutOfBytes()
        }
    }
}

extension ByteReader {
    /// A byte that is 0 or 1, and no other.
    mutating func flag() throws(OutOfBytes) -> Bool {
        switch try u8() {
        case 0: false
        case 1: true
        default: throw OutOfBytes()
        }
    }
}

// Accounts and sessions as a snapshot has them.

import Primitives
import Wire

/// Accounts and sessions as chunk 0 of a snapshot has them, behind all else and only where there are any.
public struct AccountsImage: Sendable, Equatable {
    /// Accounts, in an order that means nothing.
    public var accounts: [KeptAccount] = []
    /// Sessions, in an order that means nothing.
    public var sessions: [KeptSession] = []
    /// Accounts that were removed, the last one last.
    public var removed: [RemovedAccount] = []

    /// None at all.
    public init() {}

    init(_ accounts: Accounts) {
        self.accounts = accounts.all
        sessions = accounts.allSessions
        removed = accounts.removed
    }
}

extension AccountsImage {
    func encode(into bytes: inout [UInt8]) {
        bytes.append(bigEndian: UInt32(accounts.count))
        for kept in accounts { kept.encode(into: &bytes) }
        bytes.append(bigEndian: UInt32(sessions.count))
        for kept in sessions { kept.encode(into: &bytes) }
        bytes.append(bigEndian: UInt32(removed.count))
        for removal in removed { removal.encode(into: &bytes) }
    }

    /// Reads what no tracker goes beyond.
    init(_ reader: inout ByteReader) throws(OutOfBytes) {
        for _ in 0..<(try reader.count(atMost: Accounts.Bounds.accounts)) {
            accounts.append(try KeptAccount(&reader))
        }
        for _ in 0..<(try reader.count(atMost: Accounts.Bounds.sessions)) {
            sessions.append(try KeptSession(&reader))
        }
        for _ in 0..<(try reader.count(atMost: Accounts.Bounds.removed)) {
            removed.append(try RemovedAccount(&reader))
        }
    }
}

extension Accounts {
    /// Puts everything back into tables that have nothing yet.
    mutating func restore(_ image: AccountsImage) {
        for kept in image.accounts { insert(kept) }
        for kept in image.sessions { insert(kept) }
        for removal in image.removed { insert(removal) }
        #if PLANTED_BUGS
            plantedAfterRestore()
        #endif
    }
}

extension KeptAccount {
    func encode(into bytes: inout [UInt8]) {
        account.encode(into: &bytes)
        bytes.append(bigEndian: changedAt)
        bytes.append(bigEndian: passwordAt)
        bytes.append(bigEndian: changedTime)
    }

    fileprivate init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(
            account: try Account(&reader), changedAt: try reader.index(), passwordAt: try reader.index(),
            changedTime: try reader.u32())
    }
}

extension KeptSession {
    func encode(into bytes: inout [UInt8]) {
        session.encode(into: &bytes)
        bytes.append(bigEndian: createdAt)
    }

    fileprivate init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(session: try Session(&reader), createdAt: try reader.index())
    }
}

extension RemovedAccount {
    func encode(into bytes: inout [UInt8]) {
        bytes.append(counted: name)
        bytes.append(bigEndian: time)
    }

    fileprivate init(_ reader: inout ByteReader) throws(OutOfBytes) {
        self.init(name: Array(try reader.counted()), time: try reader.u32())
        guard (1...Account.maxNameByteCount).contains(name.count) else { throw OutOfBytes() }
    }
}

extension ByteReader {
    /// A count of four bytes, as bounded as what it counts.
    mutating func count(atMost limit: Int) throws(OutOfBytes) -> Int {
        let count = try u32()
        guard count <= limit else { throw OutOfBytes() }
        return Int(count)
    }

    /// The index of an entry.
    mutating func index() throws(OutOfBytes) -> UInt64 {
        let index = try u64()
        guard index <= NumberBounds.index else { throw OutOfBytes() }
        return index
    }
}

extension KeptAccount: Archived {
    static var blank: KeptAccount { KeptAccount(account: .blank, changedAt: 0, passwordAt: 0, changedTime: 0) }

    mutating func walk(_ archive: inout Archive) {
        account.walk(&archive)
        changedAt.walk(&archive)
        passwordAt.walk(&archive)
        changedTime.walk(&archive)
    }
}

extension KeptSession: Archived {
    static var blank: KeptSession { KeptSession(session: .blank, createdAt: 0) }

    mutating func walk(_ archive: inout Archive) {
        session.walk(&archive)
        createdAt.walk(&archive)
    }
}

extension RemovedAccount: Archived {
    static var blank: RemovedAccount { RemovedAccount(name: [], time: 0) }

    mutating func walk(_ archive: inout Archive) {
        archive.walk(bytes: &name)
        time.walk(&archive)
    }
}

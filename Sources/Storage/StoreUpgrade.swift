// Brings a database of version 3 to version 4, once.

import GRDB
import Primitives
import TrackerLogic
import Wire

/// Brings a database of version 3 to version 4, once: what it holds is checked as version 3 would have, and sealed.
///
/// Version 3 had checksums without a salt, and neither a head nor a mark, so whether it lacks what was written last
/// nobody can say.
struct StoreUpgrade {
    let db: Database
    let path: String
    let salt: UInt64

    /// Seals a database, inside a transaction.
    ///
    /// - Returns: its head.
    func run() throws -> RecordHead {
        var head = RecordHead()
        head.turn = 1
        head.trimmedThrough = UInt64(clamping: try meta("trimmed_through") ?? 0)
        if let promise = try promise() {
            head.epoch = promise.epoch
            head.promise = RecordSeal.of(promise, salt: salt)
        }
        head.snapshot = try sealSnapshot()
        try sealLog(&head)
        let setMeta = try PreparedStatement(db, "REPLACE INTO meta (key, value) VALUES (?, ?)")
        try setMeta.run([.text(MetaKey.salt), .integer(Int64(bitPattern: salt))])
        try setMeta.run([.text(MetaKey.head), .blob(head.sealed(salt: salt))])
        try db.execute(
            sql: "DELETE FROM meta WHERE key IN ('trimmed_through', 'snapshot_sum', 'promise_checksum')")
        return head
    }

    private func promise() throws -> Promise? {
        guard let sum = try meta("promise_checksum") else { return nil }
        guard let promise = try StoreRecovery.promise(db), StoreUpgrade.checksum(promise) == sum else {
            throw RecordDamage.promise
        }
        return promise
    }

    private func sealSnapshot() throws -> UInt64 {
        var numbers: [Int64] = []
        try PreparedStatement(db, "SELECT number FROM snapshot").forEach { numbers.append($0.integer(0)) }
        let read = try PreparedStatement(db, "SELECT number, idx, checksum, body FROM snapshot WHERE number = ?")
        let seal = try PreparedStatement(db, "UPDATE snapshot SET checksum = ? WHERE number = ?")
        var oldSum: Int64 = 0
        var sum: UInt64 = 0
        for number in numbers {
            var new: UInt64 = 0
            try read.forEach([.integer(number)]) { columns in
                let chunk = SnapshotChunk(
                    number: UInt32(clamping: number), index: UInt64(bitPattern: columns.integer(1)),
                    bytes: columns.blob(3))
                let old = StoreUpgrade.checksum(chunk.bytes, seed: mixed(chunk.index) &+ UInt64(chunk.number))
                guard columns.integer(2) == old else { throw RecordDamage.chunk(chunk.number) }
                oldSum &+= old
                new = RecordSeal.of(chunk, salt: salt)
            }
            try seal.run([.integer(Int64(bitPattern: new)), .integer(number)])
            sum &+= new
        }
        guard try oldSum == meta("snapshot_sum") ?? 0 else { throw RecordDamage.snapshot }
        return sum
    }

    private func sealLog(_ head: inout RecordHead) throws {
        try PreparedStatement(db, "DELETE FROM log WHERE idx <= ?")
            .run([.integer(Int64(clamping: head.trimmedThrough))])
        guard let first = try PreparedStatement(db, "SELECT min(idx) FROM log").integer(),
            let last = try PreparedStatement(db, "SELECT max(idx) FROM log").integer()
        else { return }
        head.trimmedThrough = UInt64(clamping: first - 1)
        let read = try PreparedStatement(db, "SELECT checksum, entry FROM log WHERE idx = ?")
        let seal = try PreparedStatement(db, "UPDATE log SET checksum = ? WHERE idx = ?")
        for number in first...last {
            let index = UInt64(clamping: number)
            var new: UInt64?
            try read.forEach([.integer(number)]) { columns in
                let entry = columns.blob(1)
                guard StoreUpgrade.checksum(entry, seed: index) == columns.integer(0) else {
                    throw RecordDamage.entry(index)
                }
                new = RecordSeal.of(entry: entry, index: index, salt: salt)
            }
            guard let new else { throw RecordDamage.entryMissing(index) }
            try seal.run([.integer(Int64(bitPattern: new)), .integer(number)])
            head.lastIndex = index
            head.lastEntry = new
        }
    }

    private func meta(_ key: String) throws -> Int64? {
        try PreparedStatement(db, "SELECT value FROM meta WHERE key = ?").integer([.text(key)])
    }

    // MARK: - Version 3's checksums

    private static func checksum(_ promise: Promise) -> Int64 {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: promise.epoch.round)
        bytes.append(bigEndian: promise.epoch.id)
        bytes.append(bigEndian: promise.incarnation)
        let secret = promise.secret
        for word in [secret.w0, secret.w1, secret.w2, secret.w3] { bytes.append(bigEndian: word) }
        bytes.append(bigEndian: promise.shardCount)
        bytes.append(promise.hasFullState ? 1 : 0)
        return checksum(bytes, seed: 0)
    }

    private static func checksum(_ bytes: [UInt8], seed: UInt64) -> Int64 {
        var sum = mixed(seed ^ 0xA076_1D64_78BD_642F)
        bytes.withUnsafeBytes { raw in
            var offset = 0
            while offset + 16 <= raw.count {
                let low = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                let high = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
                sum = folded(low ^ 0xE703_7ED1_A0B4_28DB, high ^ sum)
                offset += 16
            }
            while offset < raw.count {
                sum = folded(UInt64(raw[offset]) ^ 0x8EBC_6AF0_9C88_C6E3, sum)
                offset += 1
            }
        }
        return Int64(bitPattern: mixed(sum ^ UInt64(bytes.count)))
    }
}

/// How the record's values become rows: the promise as single values in `meta`, and a checksum beside everything that
/// a vote may rest on. SQLite would not notice a byte that changed inside a blob.

import Primitives
import TrackerLogic
import Wire

/// A fingerprint that shows accidental damage, not a forger's: folded 64×64→128-bit products, as wyhash does.
///
/// - Parameter seed: what the bytes belong to, so that two rows that changed places show too.
/// - Returns: always the same for the same bytes, on every machine and in every version.
func checksum(_ bytes: [UInt8], seed: UInt64) -> Int64 {
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

extension SnapshotChunk {
    /// The fingerprint of all that a chunk is: its bytes belong to its number, and to its index.
    var checksum: Int64 { Runtime.checksum(bytes, seed: mixed(index) &+ UInt64(number)) }
}

/// Keys of the `meta` table.
enum MetaKey {
    static let epochRound = "epoch_round"
    static let epochID = "epoch_id"
    static let incarnation = "incarnation"
    static let secret = "secret"
    static let shardCount = "shard_count"
    /// 1 where the record holds the whole state; 0 while one is being fetched from other trackers.
    static let isWhole = "is_whole"
    static let promiseChecksum = "promise_checksum"
    /// Entries up to this index are out of the log, even where their rows are still there.
    static let trimmedThrough = "trimmed_through"
    /// The sum of the checksums of all chunks, so that one that is missing is missed.
    static let snapshotSum = "snapshot_sum"
    /// How the registry wants access to be ruled; for people.
    static let accessMode = "access_mode"
    /// When the record was last opened, in seconds since 1970; for people.
    static let openedAt = "opened_at"
}

extension Promise {
    /// What `meta` holds of it.
    var rows: [(key: String, value: SQLValue)] {
        [
            (MetaKey.epochRound, .integer(Int64(bitPattern: epoch.round))),
            (MetaKey.epochID, .integer(Int64(epoch.id))),
            (MetaKey.incarnation, .integer(Int64(bitPattern: incarnation))),
            (MetaKey.secret, .blob(secret.bytes)),
            (MetaKey.shardCount, .integer(Int64(shardCount))),
            (MetaKey.isWhole, .integer(isWhole ? 1 : 0)),
            (MetaKey.promiseChecksum, .integer(checksum)),
        ]
    }

    /// - Parameters:
    ///   - numbers: the numbers of `meta`, by key.
    ///   - secret: its 32 bytes.
    /// - Returns: nil unless these are the rows of one promise.
    init?(numbers: [String: Int64], secret: [UInt8]) {
        guard let round = numbers[MetaKey.epochRound],
            let id = numbers[MetaKey.epochID].flatMap({ UInt32(exactly: $0) }),
            let incarnation = numbers[MetaKey.incarnation],
            let shardCount = numbers[MetaKey.shardCount].flatMap({ UInt32(exactly: $0) }),
            let isWhole = numbers[MetaKey.isWhole], 0...1 ~= isWhole,
            let sum = numbers[MetaKey.promiseChecksum],
            let secret = ClusterSecret(bytes: secret)
        else { return nil }
        self.init(
            epoch: Epoch(round: UInt64(bitPattern: round), id: id), incarnation: UInt64(bitPattern: incarnation),
            secret: secret, shardCount: shardCount, isWhole: isWhole == 1)
        guard checksum == sum else { return nil }
    }

    private var checksum: Int64 {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: epoch.round)
        bytes.append(bigEndian: epoch.id)
        bytes.append(bigEndian: incarnation)
        bytes += secret.bytes
        bytes.append(bigEndian: shardCount)
        bytes.append(isWhole ? 1 : 0)
        return Runtime.checksum(bytes, seed: 0)
    }
}

extension ClusterSecret {
    fileprivate var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for word in [w0, w1, w2, w3] { bytes.append(bigEndian: word) }
        return bytes
    }

    fileprivate init?(bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        guard bytes.count == 32, let w0 = try? reader.u64(), let w1 = try? reader.u64(), let w2 = try? reader.u64(),
            let w3 = try? reader.u64()
        else { return nil }
        self.init(w0, w1, w2, w3)
    }
}

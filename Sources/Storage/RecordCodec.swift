// How the record's values become rows: the promise as single values in `meta`, the head as one blob under its seal.

import Primitives
import TrackerLogic
import Wire

/// Keys of the `meta` table.
///
/// SQLite would not notice a byte that changed inside a blob, nor a page that is older than the others (`RecordAudit`).
enum MetaKey {
    static let epochRound = "epoch_round"
    static let epochID = "epoch_id"
    static let incarnation = "incarnation"
    static let secret = "secret"
    static let shardCount = "shard_count"
    /// 1 where the record holds the whole state; 0 while one is being fetched from other trackers.
    static let hasFullState = "is_whole"
    /// 1 where the last life in a cluster stopped in good order, and wants the swarms to go with it.
    static let leftInOrder = "left_in_order"
    /// What all parts of the record come to, with its seal (`RecordHead`).
    static let head = "head"
    /// Drawn when the database was made; all seals depend on it.
    static let salt = "salt"
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
            (MetaKey.hasFullState, .integer(hasFullState ? 1 : 0)),
            (MetaKey.leftInOrder, .integer(leftInOrder ? 1 : 0)),
        ]
    }

    /// The promise that the rows of `meta` hold; nil where one is missing, or cannot be.
    ///
    /// Whether they are of one promise, its seal tells.
    ///
    /// - Parameters:
    ///   - numbers: the numbers of `meta`, by key.
    ///   - secret: its 32 bytes.
    init?(numbers: [String: Int64], secret: [UInt8]) {
        guard let round = numbers[MetaKey.epochRound],
            let id = numbers[MetaKey.epochID].flatMap({ UInt32(exactly: $0) }),
            let incarnation = numbers[MetaKey.incarnation],
            let shardCount = numbers[MetaKey.shardCount].flatMap({ UInt32(exactly: $0) }),
            let hasFullState = numbers[MetaKey.hasFullState], 0...1 ~= hasFullState,
            case let leftInOrder = numbers[MetaKey.leftInOrder] ?? 0, 0...1 ~= leftInOrder,
            let secret = ClusterSecret(bytes: secret)
        else { return nil }
        self.init(
            epoch: Epoch(round: UInt64(bitPattern: round), id: id), incarnation: UInt64(bitPattern: incarnation),
            secret: secret, shardCount: shardCount, hasFullState: hasFullState == 1, leftInOrder: leftInOrder == 1)
    }
}

extension RecordHead {
    /// With its seal.
    func sealed(salt: UInt64) -> [UInt8] {
        var row = bytes
        row.append(bigEndian: RecordSeal.of(self, salt: salt))
        return row
    }

    /// - Returns: nil where that is not what was written.
    init?(sealed row: [UInt8], salt: UInt64) {
        guard row.count == RecordHead.byteCount + 8, let head = RecordHead(bytes: Array(row.dropLast(8))),
            row.span.bytes.u64(at: RecordHead.byteCount) == RecordSeal.of(head, salt: salt)
        else { return nil }
        self = head
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

// Looks at what is in a data directory before anything in it is changed.

import GRDB
import Primitives
import TrackerLogic
import Wire

/// Looks at what is in a data directory before anything in it is changed: whether a database is there, is ours, and has
/// come as far as its mark says.
struct StoreExaminer: Sendable {
    let path: String
    let mark: MarkFile.Found
    /// Whether what is left of a damaged record is wanted.
    let acceptsLoss: Bool

    /// There is no database.
    func examineMissing() throws(StoreError) {
        guard !acceptsLoss else { return }
        switch mark {
        case .missing: return
        case .mark(let slot, _) where slot.mark.isBeginning: return
        // A loss of power may have taken all of it.
        case .mark(let slot, _) where !slot.isBinding: return
        case .mark, .unreadable: throw damaged(.recordMissing)
        }
    }

    /// - Returns: the version of the database; 0 where it is empty.
    func examine(_ db: Database) throws -> Int {
        let version: Int
        do {
            version = try StoreSchema.look(db, path: path)
        } catch StoreError.foreign where mark != .missing {
            throw StoreError.damaged(path: path, detail: "it is not named as a tracker's any more")
        }
        guard !acceptsLoss else { return version }
        guard version > 0 else {
            try examineMissing()
            return version
        }
        guard version == StoreSchema.version else { return version }
        do {
            switch mark {
            case .missing: throw RecordDamage.markMissing
            case .unreadable: throw RecordDamage.markUnreadable
            case .mark: _ = try StoreRecovery.audit(db, bindingMark)
            }
        } catch let damage as RecordDamage {
            throw damaged(damage)
        }
        return version
    }

    /// The mark; nil where it says nothing.
    var bindingMark: RecordMark? {
        guard case .mark(let slot, _) = mark, slot.isBinding else { return nil }
        return slot.mark
    }

    /// What a new record begins with: a promise where there was a record before, that is lost.
    func firstPromise(_ options: StoreOptions) -> Promise? {
        guard case .mark(let slot, _) = mark, slot.mark.head.epoch > .zero else { return nil }
        var system = SystemRandomNumberGenerator()
        let secret = ClusterSecret(system.next(), system.next(), system.next(), system.next())
        // An epoch that cannot be is none that was promised.
        let epoch = slot.mark.head.excess == nil ? slot.mark.head.epoch : .zero
        return .afterLoss(epoch: epoch, secret: secret, shardCount: options.shardCount)
    }

    /// What an operator should know though the record is whole.
    var notes: [String] {
        var notes: [String] = []
        if case .mark(let slot, let isOtherSound) = mark {
            if !isOtherSound {
                notes.append(
                    "one of the two slots of the mark beside \(path) is not what was written: by a crash in the middle "
                        + "of a write, or by damage; the other one is good, and both are written again")
            }
            if !slot.isBinding {
                notes.append(
                    "the machine was started anew since \(path) was written with --durability process: what was "
                        + "answered in the last seconds before may be missing")
            }
        }
        return notes
    }

    private func damaged(_ damage: RecordDamage) -> StoreError { .damaged(path: path, detail: "\(damage)") }

    /// The promise that a database holds, whatever else has become of it; nil where that cannot be told.
    static func promise(_ path: String) -> Promise? {
        guard StoreFile.size(path) > 0, let database = try? StoreFile.connectReadOnly(path, StoreOptions()) else {
            return nil
        }
        defer { try? database.close() }
        return try? database.read { db in
            guard let promise = try StoreRecovery.promise(db) else { return nil }
            let (salt, head) = try StoreRecovery.head(db)
            return head.promise == RecordSeal.of(promise, salt: salt) ? promise : nil
        }
    }
}

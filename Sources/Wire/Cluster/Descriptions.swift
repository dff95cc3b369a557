// Values as interpolation shows them, written out: embedded Swift, for the browser, has no reflection.

import Primitives

extension ClusterRole: CustomStringConvertible {
    /// The name of the case: lower-case, for logs and the API.
    public var description: String {
        switch self {
        case .newcomer: "newcomer"
        case .slave: "slave"
        case .candidate: "candidate"
        case .master: "master"
        }
    }
}

extension JoinRefusal: CustomStringConvertible {
    /// The name of the case.
    public var description: String {
        switch self {
        case .idTaken: "idTaken"
        case .clusterFull: "clusterFull"
        case .otherMembers: "otherMembers"
        case .otherSettings: "otherSettings"
        }
    }
}

extension ClusterOrder: CustomStringConvertible {
    /// The case with its values, as Swift's own interpolation would show it.
    public var description: String {
        switch self {
        case .addMember(let id): "addMember(\(id))"
        case .removeMember(let id): "removeMember(\(id))"
        case .replaceMember(let id, let other): "replaceMember(\(id), by: \(other))"
        case .handOver(let id): "handOver(to: \(id))"
        case .stop: "stop"
        case .elect: "elect"
        case .change(let change): "change(\(change.words))"
        }
    }
}

extension OrderOutcome: CustomStringConvertible {
    /// The case with its values, as Swift's own interpolation would show it.
    public var description: String {
        switch self {
        case .members(let ids): "members(\(ids.inBrackets))"
        case .handedOver: "handedOver"
        case .isMaster: "isMaster"
        case .steppedDown(let id): "steppedDown(\(id))"
        case .stopping: "stopping"
        case .refused(let reason): "refused(\"\(reason)\")"
        case .busy: "busy"
        case .late: "late"
        case .stopped: "stopped"
        case .changed(let outcome): "changed(\(outcome))"
        }
    }
}

extension EntryDamaged: CustomStringConvertible {
    /// The type's name: there is nothing to add.
    public var description: String { "EntryDamaged()" }
}

extension ConsoleChange {
    /// What is asked for, without anybody's secrets.
    public var words: String {
        switch self {
        case .putAccount(let account, _): "put account \(String(decoding: account.name, as: UTF8.self))"
        case .removeAccount(let name, _): "remove account \(String(decoding: name, as: UTF8.self))"
        case .putSession(let session, _): "log in \(String(decoding: session.account, as: UTF8.self))"
        case .removeSession: "log out"
        case .uploadPart(let part):
            "part \(part.number) of \(UploadPart.count(part.byteCount)) of \(part.upload.infoHash)"
        case .finishUpload(let head, _): "show torrent file \(head.upload.infoHash)"
        case .dropUpload(let upload): "drop the upload of \(upload.infoHash)"
        case .removeTorrentFile(let infoHash, _): "remove torrent file \(infoHash)"
        }
    }
}

extension ChangeOutcome: CustomStringConvertible {
    /// What came of it.
    public var description: String {
        switch self {
        case .done(let index): "done by entry \(index)"
        case .outdated(let index): "not as expected: last changed by entry \(index)"
        case .partWanted(let number): "part \(number) is wanted"
        case .refused(let reason): "refused: \(reason)"
        case .dropped(let reason): "not carried out: \(reason)"
        }
    }
}

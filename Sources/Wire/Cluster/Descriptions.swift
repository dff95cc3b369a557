/// Values as interpolation shows them, written out: embedded Swift, in which the logic runs in a browser, has no
/// reflection.

import Primitives

extension ClusterRole: CustomStringConvertible {
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
    public var description: String {
        switch self {
        case .addMember(let id): "addMember(\(id))"
        case .removeMember(let id): "removeMember(\(id))"
        case .replaceMember(let id, let other): "replaceMember(\(id), by: \(other))"
        case .handOver(let id): "handOver(to: \(id))"
        case .stop: "stop"
        }
    }
}

extension OrderOutcome: CustomStringConvertible {
    public var description: String {
        switch self {
        case .members(let ids): "members(\(ids.inBrackets))"
        case .handedOver: "handedOver"
        case .isMaster: "isMaster"
        case .stopping: "stopping"
        case .refused(let reason): "refused(\"\(reason)\")"
        case .busy: "busy"
        case .late: "late"
        case .stopped: "stopped"
        }
    }
}

extension EntryDamaged: CustomStringConvertible {
    public var description: String { "EntryDamaged()" }
}

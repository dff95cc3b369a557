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
        }
    }
}

extension EntryDamaged: CustomStringConvertible {
    /// The type's name: there is nothing to add.
    public var description: String { "EntryDamaged()" }
}

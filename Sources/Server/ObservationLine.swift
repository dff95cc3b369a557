// What a node observes.

import Logging
import TrackerLogic
import Web
import Wire

/// What a node observes, as lines of the log in an operator's words.
public struct ObservationLine: Sendable {
    /// How urgent it is for an operator.
    public let level: Logger.Level
    /// In words, the same for all observations of a kind.
    public let message: String
    /// What differs from one observation to the next.
    public let metadata: Logger.Metadata

    /// The line for an observation.
    ///
    /// - Parameters:
    ///   - observation: what has happened.
    ///   - directory: where the node's record is kept.
    public init(_ observation: Observation, directory: String) {
        level = observation.level
        message = observation.message
        metadata = observation.metadata(directory: directory)
    }

    /// Why a master is none any more, in words.
    static func words(of reason: StepDownReason) -> String { reason.words }
}

extension Observation {
    fileprivate var level: Logger.Level {
        switch self {
        case .joinRefused, .aborted, .diverged, .storageFailed, .commandRefused: .error
        case .settingsDiffer(_, let settings): settings.contains(where: \.isBinding) ? .error : .warning
        case .commandDropped: .info
        case .voteFailed: .warning
        case .suspects(.zero): .notice
        // No file names any, as with most trackers.
        case .fileAccountsSet(accounts: 0, _): .debug
        case .fileAccountsSet(_, let leftOut) where leftOut > 0: .warning
        case .fenced, .steppedDown, .suspects, .trackerDown: .warning
        case .merged(_, _, let leftOut) where leftOut > 0: .warning
        case .becameMaster, .follows, .stands, .idAssigned, .trackerUp, .transferBegan, .transferEnded, .merged,
            .membersChanged, .storageRecovered, .voteRecovered, .accessChanged, .registryChanged,
            .stopsWithCluster, .swarmsEmptied, .fileAccountsSet:
            .notice
        case .drained: .info
        case .changeEnded: .debug
        }
    }

    fileprivate var message: String {
        switch self {
        case .becameMaster: "serving"
        case .steppedDown(_, let reason): "no longer master: \(reason.words)"
        case .follows: "following a master"
        case .suspects(.zero): "no master is there yet"
        case .suspects: "the master is not heard any more"
        case .stands: "standing for master"
        // The bus itself has told the reason; at the start `NodeService` has other words.
        case .fenced: "clients get no answer until the bus works and this tracker has caught up"
        case .joinRefused(let refusal): "this tracker may not join: \(refusal.words)"
        case .settingsDiffer(_, [.members]):
            "another tracker was told of other --members than this one, and is not let in: name the same to all"
        case .settingsDiffer(_, let settings):
            "another tracker was started with another \(settings.map(\.flag).joined(separator: ", ")) than this one"
                + (settings.contains(where: \.isBinding)
                    ? ", so neither hears the other: give all trackers of a cluster the same"
                    : ": what the master has counts; give all trackers of a cluster the same")
        case .idAssigned: "the master has given this tracker its number"
        case .trackerUp: "another tracker is there"
        case .trackerDown: "another tracker has left, or is not heard any more"
        case .transferBegan: "fetching the whole state from another tracker"
        case .transferEnded: "the whole state is here"
        case .merged(_, _, leftOut: 0): "what the other side of a partition knew is taken in"
        case .merged:
            "what the other side of a partition knew is taken in, but for what no tracker can have granted within its "
                + "limits: are they the same on all? Else a member lies, or its disk does"
        case .aborted: "announces are refused: too few trackers can store them"
        case .membersChanged: "the members that vote are set"
        case .diverged:
            "this tracker holds something else than the master: it answers nobody and has no vote until it has fetched "
                + "the state anew; look after the disks of both"
        // The store itself has told the reason.
        case .storageFailed: "announces are refused until they can be stored"
        case .storageRecovered: "announces are stored and answered again"
        case .voteFailed(let failure):
            "\(failure.words): this tracker's vote is missing; the others answer as long as enough of them can store"
        case .voteRecovered: "the disk takes writes again, and this tracker votes"
        case .stopsWithCluster: "the operator has stopped the whole cluster: this tracker stops, too"
        case .swarmsEmptied:
            "all who have elected this master had stopped in good order, so it begins without swarms; --keep-swarms "
                + "would keep them"
        case .drained: "all requests are answered; stopping"
        case .accessChanged: "access rules are in force"
        case .registryChanged: "torrents are registered"
        case .commandRefused(let reason): "a command was refused: \(reason)"
        case .commandDropped(let reason): "a command was not carried out: \(reason)"
        case .changeEnded(_, let outcome): "a change at the console: \(outcome)"
        case .fileAccountsSet(_, 0): "the accounts of the files are in force"
        case .fileAccountsSet:
            "the accounts of the files are in force, but for those that the console has others in the place of"
        }
    }

    fileprivate func metadata(directory: String) -> Logger.Metadata {
        switch self {
        case .becameMaster(let epoch): ["role": "master", "epoch": "\(epoch)"]
        case .steppedDown(let epoch, _), .suspects(let epoch), .stands(let epoch): ["epoch": "\(epoch)"]
        case .follows(let master, let epoch): ["role": "slave", "master": "\(master)", "epoch": "\(epoch)"]
        case .idAssigned(let id): ["id": "\(id)"]
        case .trackerUp(let id), .trackerDown(let id), .transferBegan(let id), .settingsDiffer(let id, _),
            .stopsWithCluster(let id):
            ["tracker": "\(id)"]
        case .voteFailed: ["data": "\(directory)"]
        case .transferEnded(let position), .diverged(let position): ["index": "\(position.index)"]
        case .merged(let id, let updates, let leftOut):
            ["tracker": "\(id)", "updates": "\(updates)", "left-out": "\(leftOut)"]
        case .aborted(let index, let refused): ["index": "\(index)", "refused": "\(refused)"]
        case .membersChanged(let members): ["members": "\(members.map(String.init).joined(separator: ","))"]
        case .storageFailed(_, let refused): ["waiting": "\(refused)", "data": "\(directory)"]
        case .accessChanged(let mode, let infoHashes, let users):
            ["mode": "\(mode)", "info-hashes": "\(infoHashes)", "users": "\(users)"]
        case .registryChanged(let torrents): ["torrents": "\(torrents)"]
        case .fenced, .joinRefused, .storageRecovered, .voteRecovered, .drained, .commandRefused, .commandDropped,
            .swarmsEmptied:
            [:]
        case .changeEnded(let number, _): ["number": "\(number)"]
        case .fileAccountsSet(let accounts, let leftOut): ["accounts": "\(accounts)", "left-out": "\(leftOut)"]
        }
    }
}

extension StepDownReason {
    fileprivate var words: String {
        switch self {
        case .superseded(let epoch): "tracker \(epoch.id) stands in a higher epoch (\(epoch))"
        case .quorumLost: "too few of the voters are heard"
        case .busLost: "the bus is lost"
        case .removed: "it has no vote any more"
        case .diskBroken: "its disk failed"
        case .stopping: "it stops"
        case .asked: "the operator wants an election"
        case .otherSettings(let id): "tracker \(id) leads, and was started with other settings"
        }
    }
}

// The settings that all trackers of a cluster must share.

import Primitives

/// A setting that must be the same on all trackers of a cluster.
///
/// Each travels as a fingerprint of its value, so that two trackers find out that they differ, and in what.
public enum SharedSetting: UInt8, Sendable, Hashable, CaseIterable {
    // Who votes, how a master is found, and by which clock: unlike ones do not act as one.
    case members
    case mode
    case election
    case vote
    case keepalive
    case missed
    case entry
    // What clients are told, which is the master's to say, and changes with it. Of unlike jitters the longer one tells
    // intervals that the master of the shorter one may not wait for.
    case interval
    case minInterval
    case intervalJitter
    case targetRate
    case peerLifetime

    /// Whether a tracker that differs in it may not take part.
    public var isBinding: Bool {
        switch self {
        case .members, .mode, .election, .vote, .keepalive, .missed, .entry: true
        case .interval, .minInterval, .intervalJitter, .targetRate, .peerLifetime: false
        }
    }
}

/// The fingerprints of all shared settings of one tracker: equal settings have equal prints.
@frozen
public struct SettingsPrint: Sendable, Hashable {
    /// Of the ids that were configured; what the log says of them since is another matter.
    public var members: UInt64
    /// Of quorum or survivor mode.
    public var mode: UInt32
    /// Of who is elected: the highest id, the lowest, or the next.
    public var election: UInt32
    /// Of how many votes decide an entry, with what happens where one is missing.
    public var vote: UInt32
    /// Of the interval of keepalives.
    public var keepalive: UInt32
    /// Of how many keepalives may be missed.
    public var missed: UInt32
    /// Of where requests come in: at any tracker, or at a multicast group.
    public var entry: UInt32
    /// Of the interval that clients are told.
    public var interval: UInt32
    /// Of the least interval that clients are told.
    public var minInterval: UInt32
    /// Of the random part of the interval.
    public var intervalJitter: UInt32
    /// Of the announces a second beyond which the interval is stretched.
    public var targetRate: UInt32
    /// Of the life of a silent peer.
    public var peerLifetime: UInt32

    /// Asks for the fingerprint of each setting's value; 32 bits of it are kept, of `members` all 64.
    public init(_ value: (SharedSetting) -> UInt64) {
        func short(_ setting: SharedSetting) -> UInt32 { UInt32(truncatingIfNeeded: value(setting)) }
        members = value(.members)
        mode = short(.mode)
        election = short(.election)
        vote = short(.vote)
        keepalive = short(.keepalive)
        missed = short(.missed)
        entry = short(.entry)
        interval = short(.interval)
        minInterval = short(.minInterval)
        intervalJitter = short(.intervalJitter)
        targetRate = short(.targetRate)
        peerLifetime = short(.peerLifetime)
    }

    /// In which settings two trackers differ, in the order of the cases; empty where they are alike.
    public func differences(from other: SettingsPrint) -> [SharedSetting] {
        if self == other { return [] }
        return SharedSetting.allCases.filter { self[$0] != other[$0] }
    }

    private subscript(setting: SharedSetting) -> UInt64 {
        switch setting {
        case .members: members
        case .mode: UInt64(mode)
        case .election: UInt64(election)
        case .vote: UInt64(vote)
        case .keepalive: UInt64(keepalive)
        case .missed: UInt64(missed)
        case .entry: UInt64(entry)
        case .interval: UInt64(interval)
        case .minInterval: UInt64(minInterval)
        case .intervalJitter: UInt64(intervalJitter)
        case .targetRate: UInt64(targetRate)
        case .peerLifetime: UInt64(peerLifetime)
        }
    }

    func encode(into bytes: inout [UInt8]) {
        bytes.append(bigEndian: members)
        for word in [
            mode, election, vote, keepalive, missed, entry, interval, minInterval, intervalJitter, targetRate,
            peerLifetime,
        ] {
            bytes.append(bigEndian: word)
        }
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        members = try reader.u64()
        mode = try reader.u32()
        election = try reader.u32()
        vote = try reader.u32()
        keepalive = try reader.u32()
        missed = try reader.u32()
        entry = try reader.u32()
        interval = try reader.u32()
        minInterval = try reader.u32()
        intervalJitter = try reader.u32()
        targetRate = try reader.u32()
        peerLifetime = try reader.u32()
    }
}

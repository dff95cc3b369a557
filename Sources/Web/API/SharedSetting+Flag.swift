// The names of settings that trackers of a cluster have to share.

import TrackerLogic
import Wire

extension SharedSetting {
    /// The flag by which it is given.
    public var flag: String {
        switch self {
        case .members: "--members"
        case .mode: "--mode"
        case .election: "--election"
        case .vote: "--vote"
        case .keepalive: "--keepalive"
        case .missed: "--missed"
        case .entry: "--entry"
        case .interval: "--interval"
        case .minInterval: "--min-interval"
        case .intervalJitter: "--interval-jitter"
        case .targetRate: "--target-rate"
        case .peerLifetime: "--peer-lifetime"
        }
    }
}

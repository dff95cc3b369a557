// Which broker to try next, and when.

import Primitives

/// Which broker to try next, and when: each in turn, quickly once round, then with growing patience.
///
/// The patience has jitter, so that the trackers of a cluster do not all come back to a restarted broker at one moment.
package struct BrokerRotation: Sendable, Equatable {
    package enum Limits {
        /// Before a broker that was not tried since the last success.
        static let quick = Duration.milliseconds(100)
        /// After a whole round in vain; doubles with each.
        static let first = Duration.milliseconds(250)
        /// A broker that starts anew is found soon, for until then nobody is answered.
        package static let most = Duration.seconds(3)
        /// After a refused login, which no haste mends, and which some brokers answer by locking the user.
        static let refused = Duration.seconds(15)
        /// A connection that lasted so long was a success.
        package static let success = Duration.seconds(5)
    }

    package let count: Int
    /// The broker to try, or in use.
    package private(set) var index = 0
    /// Attempts in vain since the last success.
    package private(set) var failures = 0
    private var random: RandomStream

    package init(count: Int, seed: UInt64) {
        precondition(count > 0, "there is a broker to try")
        self.count = count
        random = RandomStream(seed: seed)
    }

    /// A connection failed, or could not be made.
    ///
    /// - Parameters:
    ///   - lasted: for how long it was ready.
    ///   - wasRefused: whether the login was refused.
    /// - Returns: how long to wait before the next attempt, at the broker that `index` names then.
    package mutating func failed(lasted: Duration, wasRefused: Bool) -> Duration {
        if lasted >= Limits.success { failures = 0 }
        failures += 1
        index = (index + 1) % count
        if wasRefused, failures >= count { return jittered(Limits.refused) }
        // Within the first round each broker is asked without delay, but not by all trackers at the very same time.
        if failures < count || lasted >= Limits.success {
            return random.between(.zero, Limits.quick)
        }
        return jittered(patience)
    }

    /// A better one is in use now.
    package mutating func moved(to index: Int) {
        self.index = index
        failures = 0
    }

    private var patience: Duration {
        let rounds = (failures - 1) / count
        return rounds >= 10 ? Limits.most : min(Limits.most, Limits.first * (1 << rounds))
    }

    private mutating func jittered(_ span: Duration) -> Duration { random.between(span / 2, span) }
}

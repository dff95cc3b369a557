// Makes a bus of what the configuration says.

import Primitives

/// Makes a bus of what the configuration says.
public enum BusFactory {
    /// Makes the bus that the options name; it connects when it is started.
    ///
    /// - Parameters:
    ///   - options: what `--bus` says.
    ///   - key: the cluster's; all trackers of the cluster have the same.
    ///   - clusterName: tells clusters on one broker or group apart.
    ///   - incarnation: of this life of the tracker, as in its messages; never 0. What is for others is not delivered.
    /// - Returns: a bus that was not started.
    /// - Throws: what is wrong with a file that the options name, and what to do. A broker or an interface that is not
    ///   there yet is no error: the bus goes on trying, and says so.
    public static func make(
        options: BusOptions, key: ClusterKey, clusterName: ClusterName, incarnation: UInt64
    ) throws(BusConfigurationError) -> any Bus {
        precondition(incarnation != 0, "an incarnation of 0 stands for everybody")
        var system = SystemRandomNumberGenerator()
        let identity = BusIdentity(
            key: BusKey(key, clusterName: clusterName.description), clusterName: clusterName, incarnation: incarnation,
            seed: system.next())
        switch options.endpoint {
        case .stomp(let stomp):
            return try StompBus(options: stomp, endpoint: options.description, embedded: nil, identity: identity)
        case .embedded(let broker):
            let stomp = BusOptions.Stomp(
                brokers: [broker], login: nil, usesTLS: false, certificates: nil, virtualHost: "/")
            return try StompBus(options: stomp, endpoint: options.description, embedded: broker, identity: identity)
        case .multicast(let multicast):
            return MulticastBus(options: multicast, identity: identity)
        }
    }
}

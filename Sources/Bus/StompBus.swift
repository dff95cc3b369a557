// The bus over STOMP brokers (docs/bus.md).

import Datagrams
import NIOCore
import NIOPosix
import NIOSSL
import Primitives
import Synchronization
import Wire

/// The bus over STOMP brokers (docs/bus.md): a topic for all trackers of the cluster, and one for each life.
///
///     /topic/swarmkeeper.CLUSTER                 everybody
///     /topic/swarmkeeper.CLUSTER.INCARNATION     one life; its id may change, its incarnation does not
///
/// RabbitMQ makes of each subscription an exclusive queue that goes with the connection, ActiveMQ a topic consumer:
/// nothing outlives a tracker. Several messages that wait travel in one frame. `StompBusCore` does the work, on an
/// event loop.
final class StompBus: Bus {
    private let group: MultiThreadedEventLoopGroup
    private let core: StompBusCore
    private let busState: BusState

    /// A bus over brokers; it connects when it is started.
    ///
    /// - Parameters:
    ///   - options: which brokers, and how they are spoken to.
    ///   - endpoint: as the status shows it.
    ///   - embedded: the broker to be, where nobody is it yet.
    ///   - identity: key, name and incarnation.
    /// - Throws: where a file of certificates cannot be used.
    init(
        options: BusOptions.Stomp, endpoint: String, embedded: BusOptions.Broker?, identity: BusIdentity
    ) throws(BusConfigurationError) {
        let plan = StompPlan(
            options: options, tls: try Self.tls(options),
            destinations: [Self.destination(identity.clusterName, 0)]
                + [Self.destination(identity.clusterName, identity.incarnation)])
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let core = StompBusCore(plan: plan, embedded: embedded, identity: identity, loop: loop)
        self.core = core
        busState = BusState(endpoint: endpoint, queueByteCount: OutgoingQueue.Limits.byteCount) {
            loop.execute { core.flush() }
        }
    }

    func start(inbox: any BusInbox) {
        group.next().execute { [core, busState] in core.start(inbox: inbox, busState: busState) }
    }

    func send(_ messages: [BusMessage]) { busState.put(messages) }

    func stop() async {
        await withCheckedContinuation { continuation in
            group.next().execute { [core] in core.stop { continuation.resume() } }
        }
        try? await group.shutdownGracefully()
    }

    var status: BusStatus { busState.status }

    /// Where frames for a life go; 0 stands for all.
    static func destination(_ cluster: ClusterName, _ incarnation: UInt64) -> String {
        let all = "/topic/swarmkeeper.\(cluster)"
        guard incarnation != 0 else { return all }
        let digits = String(incarnation, radix: 16)
        return "\(all).\(String(repeating: "0", count: 16 - digits.count))\(digits)"
    }

    private static func tls(_ options: BusOptions.Stomp) throws(BusConfigurationError) -> NIOSSLContext? {
        guard options.usesTLS else { return nil }
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        if let path = options.certificates { configuration.trustRoots = .file(path) }
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            guard let path = options.certificates else {
                throw BusConfigurationError("TLS cannot be set up: \(error)")
            }
            throw BusConfigurationError(
                "the certificates of the bus in \(path) cannot be read: \(error). The option ca names a PEM file")
        }
    }
}

/// Who we are on a bus.
struct BusIdentity: Sendable {
    var key: BusKey
    var clusterName: ClusterName
    /// Of this life of the tracker; never 0.
    var incarnation: UInt64
    /// Random, for the session and all that is to be random.
    var seed: UInt64
}

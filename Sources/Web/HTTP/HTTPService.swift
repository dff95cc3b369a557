// One HTTP listener.

import Bus
import Logging
import NIOCore
import NIOExtras
import NIOPosix
import NIOSSL
import Primitives
import ServiceLifecycle
import Synchronization
import TrackerLogic

/// One HTTP listener: bound first, served from `run` on, stopped within a second.
///
/// Its parts are swift-nio's and a few of our own; docs/architecture.md says why there is no framework.
///
/// Nothing is accepted before `run`: clients that come early wait in the backlog.
public final class HTTPService: Service, CustomStringConvertible {
    /// What the listener is for.
    public struct Options: Sendable {
        /// In the metrics' `listener` label.
        public var name: String
        /// As in "cannot listen for …".
        public var purpose: String
        /// Bounds on what strangers can make the listener hold.
        public var limits = HTTPLimits()
        /// Addresses that may hold any number of connections.
        public var trusted: [AddressPrefix] = []
        /// For what goes wrong with the listener; single connections are not logged.
        public var logger = Logger(label: "swarmkeeper.http")
        /// Nil where connections are not encrypted.
        public var tls: NIOSSLContext?
        /// What the listener counts.
        public var tally = HTTPTally()

        /// Takes what has no default.
        public init(name: String, purpose: String) {
            self.name = name
            self.purpose = purpose
        }
    }

    /// Where it listens: as asked, with the port that the system chose where 0 was asked.
    public let address: Primitives.SocketAddress
    private let purpose: String
    private let logger: Logger
    private let channel: any Channel
    private let quiescing: ServerQuiescingHelper
    private let connections: AsyncStream<AcceptedConnection>
    private let connectionHandler: HTTPConnectionChannel
    private let isStopping = Atomic(false)

    /// Opens the listening socket.
    ///
    /// - Throws: `ListenFailure`.
    public static func listen(
        on address: Primitives.SocketAddress, _ options: Options, responder: some Responder
    ) async throws(ListenFailure) -> HTTPService {
        let group = MultiThreadedEventLoopGroup.singleton
        let quiescing = ServerQuiescingHelper(group: group)
        let (connections, continuation) = AsyncStream.makeStream(of: AcceptedConnection.self)
        let idle = IdleConnections()
        let handler = HTTPConnectionChannel(options: options, responder: responder, idle: idle)
        let limits = options.limits
        let maxConnections = limits.effectiveConnections
        var bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: Int32(clamping: limits.backlog))
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.autoRead, value: false)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers([
                        AcceptGate(limit: maxConnections, idle: idle),
                        quiescing.makeServerChannelHandler(channel: channel),
                    ])
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(.socketOption(.so_rcvbuf), value: .init(HTTPLimits.socketBufferByteCount))
            .childChannelOption(.socketOption(.so_sndbuf), value: .init(HTTPLimits.socketBufferByteCount))
            .childChannelOption(
                .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: HTTPLimits.readByteCount)
            )
            .childChannelInitializer { channel in
                handler.setup(channel).map { connection in
                    continuation.yield(AcceptedConnection(connection))
                }
            }
        if !address.isIPv4 {
            // Else it would take the port of an IPv4 listener.
            bootstrap = bootstrap.serverChannelOption(
                ChannelOptions.Types.SocketOption(level: .ipv6, name: .ipv6_v6only), value: 1)
        }
        do {
            let channel = try await bootstrap.bind(to: try address.nioAddress()).get()
            channel.closeFuture.whenComplete { _ in continuation.finish() }
            return HTTPService(
                channel: channel, asked: address, quiescing: quiescing, connections: connections, handler: handler,
                options: options)
        } catch {
            throw ListenFailure(purpose: options.purpose, address: address, error: error)
        }
    }

    private init(
        channel: any Channel, asked: Primitives.SocketAddress, quiescing: ServerQuiescingHelper,
        connections: AsyncStream<AcceptedConnection>, handler: HTTPConnectionChannel, options: Options
    ) {
        address = channel.localAddress.flatMap { Primitives.SocketAddress($0) } ?? asked
        purpose = options.purpose
        logger = options.logger
        self.channel = channel
        self.quiescing = quiescing
        self.connections = connections
        connectionHandler = handler
    }

    /// What the listener is for, and where.
    public var description: String { "\(purpose) on \(address)" }

    /// Serves until a graceful shutdown or cancellation; to be called once.
    ///
    /// - Throws: `ListenFailure` if the system closes the listening socket meanwhile.
    public func run() async throws {
        try await channel.setOption(.autoRead, value: true).get()
        logger.debug("serving \(purpose)", metadata: ["address": "\(address)"])
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for await connection in connections {
                    guard let value = connection.take() else { continue }
                    group.addTask { await self.connectionHandler.serve(value) }
                }
            }
        } onCancelOrGracefulShutdown: {
            self.stop()
        }
        guard isStopping.load(ordering: .acquiring) else {
            throw ListenFailure(purpose: purpose, address: address, cause: .other("the socket was closed"))
        }
    }

    /// Closes the socket of a service that is not going to run, or stops one that runs.
    public func close() async {
        stop()
        try? await channel.closeFuture.get()
    }

    private func stop() {
        isStopping.store(true, ordering: .releasing)
        quiescing.initiateShutdown(promise: nil)
    }
}

/// A connection on its way from the event loop to its task; one that never gets there is closed.
private final class AcceptedConnection: Sendable {
    private let connection: Mutex<HTTPConnectionChannel.Connection?>

    init(_ connection: HTTPConnectionChannel.Connection) { self.connection = Mutex(connection) }

    func take() -> HTTPConnectionChannel.Connection? {
        connection.withLock { connection in
            defer { connection = nil }
            return connection
        }
    }

    deinit {
        // NIO traps when one of its asynchronous channels goes unused.
        guard let connection = take() else { return }
        Task { try? await connection.executeThenClose { _, _ in } }
    }
}

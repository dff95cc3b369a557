// A peer and its page, from start to stop.

import Foundation
import Logging
import Primitives
import ServiceLifecycle
import UnixSignals
import Web

/// A peer and its page, from start to stop.
public struct PeerProgram: Sendable {
    /// Where everything listens, once it does.
    public struct Places: Sendable {
        /// Where the page is; nil where there is none.
        public var page: String?
        /// Where other peers may call.
        public var peers: [SocketAddress]
        /// How many transfers the record has brought back.
        public var transferCount: Int
    }

    private let options: PeerHostOptions

    /// A program that has not been started.
    public init(_ options: PeerHostOptions) { self.options = options }

    /// Runs until SIGTERM or SIGINT, and ends in good order.
    ///
    /// - Parameter ready: told once, when all sockets listen.
    /// - Throws: `PeerHostError`, or `ListenFailure` of the page.
    public func run(_ ready: @Sendable (Places) -> Void) async throws {
        let host = try await PeerHost.start(options)
        var services: [any Service] = [HostService(host: host)]
        var page: String?
        do {
            if let console = options.console {
                var server = PeerServer.Options()
                (server.token, server.tls, server.logger) = (console.token, console.tls, options.logger)
                let service = try await PeerServer(host).listen(on: console.address, server)
                page = "\(console.tls == nil ? "http" : "https")://\(service.address)/"
                services.append(service)
            }
        } catch {
            await host.stop()
            throw error
        }
        let state = await host.state()
        ready(Places(page: page, peers: await host.listenAddresses, transferCount: state.transfers.count))
        // Stopped in reverse: first no new requests, then the transfers.
        var group = ServiceGroupConfiguration(
            services: services.map {
                .init(
                    service: $0, successTerminationBehavior: .gracefullyShutdownGroup,
                    failureTerminationBehavior: .gracefullyShutdownGroup)
            },
            gracefulShutdownSignals: [.sigterm, .sigint], logger: Self.quiet)
        group.maximumGracefulShutdownDuration = .seconds(20)
        try await ServiceGroup(configuration: group).run()
    }

    /// What the group of services tells is of no use to people.
    private static var quiet: Logger {
        var logger = Logger(label: "swarmkeeper.services")
        logger.logLevel = .error
        return logger
    }
}

/// The transfers: they run by themselves, and are ended once nobody asks any more.
private struct HostService: Service {
    let host: PeerHost

    func run() async throws {
        try? await gracefulShutdown()
        await host.stop()
    }
}

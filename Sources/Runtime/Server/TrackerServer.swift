/// `tracker serve`: puts a node, its record, its sockets and its pages together, and takes them down in order.
///
/// Everything that can be refused is refused before the first client is answered: the record is opened and read, all
/// addresses are bound, the lists are read; only then does anything serve.

import Datagrams
import Foundation
import Logging
import Metrics
import Primitives
import ServiceLifecycle
import TrackerLogic
import UnixSignals
import Wire

public struct TrackerServer: Sendable {
    private let configuration: ServerConfiguration
    private let version: String
    private let logger: Logger
    /// Reads the configuration again, for SIGHUP.
    private let reload: @Sendable () throws -> ServerConfiguration

    /// - Parameters:
    ///   - version: of the program, as the status shows it.
    ///   - reload: reads the configuration again when SIGHUP asks for it.
    public init(
        configuration: ServerConfiguration, version: String, logger: Logger,
        reload: @escaping @Sendable () throws -> ServerConfiguration
    ) {
        self.configuration = configuration
        self.version = version
        self.logger = logger
        self.reload = reload
    }

    /// Serves until SIGTERM or SIGINT.
    ///
    /// - Throws: `StoreError`, `SocketError`, `ListenFailure`, `TextFileError` before anything is served; `RecordLost`
    ///   when the disk fails meanwhile. Each says what to do.
    public func run() async throws {
        Memory.prepare()
        let startedAt = Clock.read().wall
        let rules = try configuration.accessRules()
        let token = try configuration.consoleToken()
        let store = try Store.open(directory: configuration.dataDirectory, options: storeOptions)
        let node: TrackerNode
        let sockets: DatagramSockets
        do {
            node = try RecordReader(configuration: configuration, logger: logger).node(from: store)
            sockets = try DatagramSockets(bind: configuration.udp)
        } catch {
            store.close()
            throw error
        }
        let udp = sockets.sockets.map(\.address)
        let service = try NodeService(
            node: node, sockets: sockets, store: store, directory: configuration.dataDirectory, logger: logger)
        let pages: [HTTPService]
        do {
            pages = try await listen(service, udp: udp, token: token, startedAt: startedAt)
        } catch {
            store.close()
            throw error
        }
        for address in udp { logger.info("listening", metadata: ["udp": "\(address)"]) }
        let rulesKeeper = RulesKeeper(
            configuration: configuration, mailbox: service.mailbox, logger: logger, reload: reload)
        rulesKeeper.apply(rules, of: configuration)
        try await serve([service] + pages + [rulesKeeper])
    }

    private func serve(_ services: [any Service]) async throws {
        // Stopped in reverse: first no new HTTP requests, then the node, which answers those that wait.
        var group = ServiceGroupConfiguration(
            services: services.map { .init(service: $0, failureTerminationBehavior: .gracefullyShutdownGroup) },
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger.atMost(.warning))
        group.maximumGracefulShutdownDuration = .seconds(10)
        try await ServiceGroup(configuration: group).run()
        logger.notice("stopped")
    }

    private var storeOptions: StoreOptions {
        var options = StoreOptions()
        options.durability = configuration.durability
        return options
    }

    private func listen(
        _ service: NodeService, udp: [SocketAddress], token: String?, startedAt: WallTime
    ) async throws -> [HTTPService] {
        let registry = PrometheusRegistry()
        MetricsSystem.bootstrap(registry)
        var pages: [HTTPService] = []
        do {
            for address in configuration.http {
                let page = try await HTTPTracker.listen(
                    on: address, handler: service.requestHandler, trusted: configuration.node.trusted, logger: logger)
                logger.info("listening", metadata: ["http": "\(page.address)"])
                pages.append(page)
            }
            if let console = configuration.console {
                let facts = ProcessFacts(
                    version: version, processID: ProcessInfo.processInfo.processIdentifier, startedAt: startedAt,
                    listeners: udp.map { .init(.udp, $0) } + pages.map { .init(.http, $0.address) }
                        + [.init(.api, console)])
                let api = APIServer(status: service, torrents: service, registry: registry) { facts }
                var options = APIServer.Options()
                options.token = token
                options.logger = logger
                let page = try await api.listen(on: console, options)
                logger.info("listening", metadata: ["console": "\(page.address)"])
                pages.append(page)
            }
        } catch {
            for page in pages { await page.close() }
            throw error
        }
        return pages
    }
}

extension Logger {
    /// The same logger, for a library that talks more than an operator wants to hear.
    func atMost(_ level: Logger.Level) -> Logger {
        var logger = self
        logger.logLevel = max(logLevel, level)
        return logger
    }
}

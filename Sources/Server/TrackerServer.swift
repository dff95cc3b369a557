// `tracker serve`.

import Bus
import Datagrams
import Foundation
import Logging
import Primitives
import ServiceLifecycle
import Settings
import Storage
import Synchronization
import TrackerLogic
import UnixSignals
import Web
import Wire

/// `tracker serve`: puts a node, its record, its sockets and its pages together, and takes them down in order.
///
/// Everything that can be refused is refused before the first client is answered: the record is opened and read, all
/// addresses are bound, the lists are read; only then does anything serve.
public struct TrackerServer: Service {
    private let configuration: ServerConfiguration
    private let version: String
    private let logger: Logger
    /// In place of the one that the configuration names.
    private let givenBus: (any Bus)?
    /// Nil where none wants to know.
    private let manager: ServiceManager?
    private let onReady: @Sendable (ProcessFacts) -> Void
    /// Reads the configuration again, for SIGHUP.
    private let reload: @Sendable () throws -> ServerConfiguration

    /// A tracker that is not served yet.
    ///
    /// - Parameters:
    ///   - configuration: checked as a whole.
    ///   - version: of the program, as the status shows it.
    ///   - logger: for all that the tracker has to say.
    ///   - bus: in place of the one that the configuration names: another way to the other trackers.
    ///   - manager: told how the tracker fares.
    ///   - onReady: told when all addresses are bound, with the ports that the system chose; clients that come now are
    ///     served
    ///     in a moment.
    ///   - reload: reads the configuration again when SIGHUP asks for it.
    public init(
        configuration: ServerConfiguration, version: String, logger: Logger, bus: (any Bus)? = nil,
        manager: ServiceManager? = nil, onReady: @escaping @Sendable (ProcessFacts) -> Void = { _ in },
        reload: @escaping @Sendable () throws -> ServerConfiguration
    ) {
        self.configuration = configuration
        self.version = version
        self.logger = logger
        givenBus = bus
        self.manager = manager
        self.onReady = onReady
        self.reload = reload
    }

    /// Serves until SIGTERM or SIGINT, or until the group that it is part of shuts down.
    ///
    /// - Throws: `StoreError`, `SocketError`, `ListenFailure`, `TextFileError`, `BusConfigurationError` before anything
    ///   is served; `RecordLost` when the disk fails meanwhile. Each says what to do.
    public func run() async throws {
        Memory.prepare()
        let rules = try configuration.accessRules()
        let token = try configuration.consoleToken()
        let key = try configuration.clusterKey()
        manager?.opensRecord()
        let (store, node) = try RecordReader(configuration: configuration, logger: logger).open()
        let service: NodeService
        let pages: [HTTPService]
        do {
            let groups = configuration.cluster.groups.map {
                MulticastGroup($0, interface: configuration.cluster.interface)
            }
            let real = try givenBus ?? configuration.makeBus(key, incarnation: node.inspection.life.incarnation)
            let cuts = Cuts(hasBus: real != nil)
            let bus = real.map { CutBus($0, cuts: cuts) }
            let sockets = try DatagramSockets(bind: configuration.udp, groups: groups)
            let udp = sockets.sockets.map(\.address)
            let latest = LatestFigures(version: version, durability: configuration.durability)
            service = try NodeService(
                node: node, sockets: sockets, store: store, directory: configuration.dataDirectory,
                cluster: ClusterParts(
                    bus: bus, hooks: configuration.cluster.hooks, name: configuration.cluster.name, cuts: cuts),
                latest: latest, logger: logger)
            pages = try await listen(service, udp: udp, token: token)
            for address in udp where !address.isGroup { logger.info("listening", metadata: ["udp": "\(address)"]) }
            for group in groups { logger.info("listening", metadata: ["group": "\(group.address)"]) }
        } catch {
            store.close()
            throw error
        }
        let rulesReloader = RulesReloader(
            configuration: configuration, inbox: service.inbox, manager: manager, logger: logger, reload: reload)
        rulesReloader.apply(rules, of: configuration)
        var services: [any Service] = [service] + pages + [rulesReloader]
        // The last is stopped first, and says so.
        if let manager { services.append(ServiceReporter(manager, service)) }
        try await serve(services)
    }

    private func serve(_ services: [any Service]) async throws {
        // Stopped in reverse: first no new HTTP requests, then the node, which answers those that wait.
        var group = ServiceGroupConfiguration(
            services: services.map {
                .init(
                    service: $0, successTerminationBehavior: .gracefullyShutdownGroup,
                    failureTerminationBehavior: .gracefullyShutdownGroup)
            },
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger.atMost(.warning))
        // The node answers those who wait, or hands them over, which takes it two detection times at most.
        let leave = configuration.node.cluster.detectionTime * 2
        group.maximumGracefulShutdownDuration = .seconds(10 + leave.wholeSeconds)
        try await ServiceGroup(configuration: group).run()
        logger.notice("stopped")
    }

    private func listen(
        _ service: NodeService, udp: [SocketAddress], token: String?
    ) async throws -> [HTTPService] {
        let tally = HTTPTally()
        var facts = ProcessFacts(
            version: version, processID: ProcessInfo.processInfo.processIdentifier, startedAt: Clock.read().wall,
            listeners: udp.map { .init(.udp, $0) }, advertised: configuration.cluster.hooks.advertised)
        var pages: [HTTPService] = []
        do {
            for address in configuration.http {
                let page = try await HTTPTracker.listen(
                    on: address, handler: service.requestHandler, trusted: configuration.node.trusted, logger: logger,
                    tally: tally)
                logger.info("listening", metadata: ["http": "\(page.address)"])
                facts.listeners.append(.init(.http, page.address))
                pages.append(page)
            }
            if let console = configuration.console {
                let known = Mutex(facts)
                var api = APIServer(status: service, cluster: service, tally: tally) { known.withLock { $0 } }
                api.parts.events = (service.log, service.history)
                api.parts.swarms = service.swarms
                api.parts.faults = service.cuts
                api.parts.settings = SettingsInForce(configuration)
                var options = APIServer.Options()
                options.token = token
                options.logger = logger
                let page = try await api.listen(on: console, options)
                logger.info("listening", metadata: ["console": "\(page.address)"])
                facts.listeners.append(.init(.api, page.address))
                let complete = facts
                known.withLock { $0 = complete }
                pages.append(page)
            }
        } catch {
            for page in pages { await page.close() }
            throw error
        }
        service.latest.note(facts)
        onReady(facts)
        return pages
    }
}

extension ServerConfiguration {
    /// The bus that the settings name; nil for a tracker that is alone.
    ///
    /// - Parameters:
    ///   - key: the cluster's.
    ///   - incarnation: of this life of the tracker.
    /// - Returns: a bus that was not started.
    /// - Throws: what is wrong with a file that the settings name, and what to do.
    fileprivate func makeBus(_ key: ClusterKey?, incarnation: UInt64) throws(BusConfigurationError) -> (any Bus)? {
        guard let options = cluster.bus, let key else { return nil }
        return try BusFactory.make(
            options: options, key: key, clusterName: ClusterName(cluster.name), incarnation: incarnation)
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

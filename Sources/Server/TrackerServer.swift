// `tracker serve`.

import Bus
import Datagrams
import Logging
import Primitives
import ServiceLifecycle
import Settings
import Synchronization
import TrackerLogic
import UnixSignals
import Web

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
    /// Nil for a page that says how to get it.
    private let simulator: SimulatorFile?
    private let onReady: @Sendable (ProcessFacts) -> Void
    /// Reads the configuration again, for SIGHUP.
    private let reload: CurrentSettings.Load

    /// A tracker that is not served yet.
    ///
    /// - Parameters:
    ///   - configuration: checked as a whole.
    ///   - version: of the program, as the status shows it.
    ///   - logger: for all that the tracker has to say.
    ///   - bus: in place of the one that the configuration names: another way to the other trackers.
    ///   - manager: told how the tracker fares.
    ///   - simulator: for the console's page.
    ///   - onReady: told when all addresses are bound, with the ports that the system chose; clients that come now are
    ///     served in a moment.
    ///   - reload: reads the configuration again, for SIGHUP and for changes by the console, with what that adds.
    public init(
        configuration: ServerConfiguration, version: String, logger: Logger, bus: (any Bus)? = nil,
        manager: ServiceManager? = nil, simulator: SimulatorFile? = nil,
        onReady: @escaping @Sendable (ProcessFacts) -> Void = { _ in },
        reload: @escaping @Sendable (ConsoleSettings) throws -> ServerConfiguration
    ) {
        self.configuration = configuration
        self.version = version
        self.logger = logger
        givenBus = bus
        self.manager = manager
        self.simulator = simulator
        self.onReady = onReady
        self.reload = reload
    }

    /// Serves until SIGTERM or SIGINT, or until the group that it is part of shuts down.
    ///
    /// - Throws: `StoreError`, `SocketError`, `ListenFailure`, `TextFileError`, `BusConfigurationError` before anything
    ///   is served; `RecordLost` when the disk fails meanwhile. Each says what to do.
    public func run() async throws {
        Memory.prepare()
        for note in configuration.overriddenNotes { logger.warning("\(note)") }
        let token = try configuration.consoleToken()
        manager?.opensRecord()
        let tally = HTTPTally()
        let console = Mutex<SocketAddress?>(nil)
        let uploads = DirectoryUploads()
        let recordings = RecordingBoard(
            directory: configuration.dataDirectory, isWanted: configuration.recording == .ring, logger: logger)
        let current = CurrentSettings(configuration, revision: Clock.read().wall, load: reload)
        let maker = NodeMaker(
            configuration: configuration, version: version, logger: logger, key: try configuration.clusterKey(),
            givenBus: givenBus, tally: tally, uploads: uploads, recordings: recordings, startedAt: Clock.read().wall)
        let rules = try configuration.rules()
        let (first, feed, listeners) = try await maker.make(rules: rules)
        let host = NodeHost(first, clusterName: configuration.cluster.name, logger: logger) {
            try await maker.with(current.configuration).makeAgain(feed, console: console.withLock { $0 })
        }
        let files = host.files(atMost: configuration.node.limits.torrentFileByteCount, uploads)
        var facts = maker.facts(listeners, console: nil)
        var pages: [HTTPService] = []
        do {
            if let address = configuration.console {
                let desk = SettingsDesk(current: current, host: host)
                let page = try await listen(
                    on: address, host, desk, feed, files, recordings, tally, token: token, rules
                ) {
                    [maker] in
                    maker.with(current.configuration)
                        .facts(host.current?.listeners ?? [], console: console.withLock { $0 })
                }
                console.withLock { $0 = page.address }
                facts = maker.facts(listeners, console: page.address)
                pages.append(page)
            }
        } catch {
            await first.abandon()
            throw error
        }
        first.service.latest.note(facts)
        onReady(facts)
        let rulesReloader = RulesReloader(
            current: current, host: host, manager: manager, uploads: uploads, logger: logger)
        let uploader = DirectoryUploader(uploads: uploads, host: host, store: files, logger: logger)
        var services: [any Service] = [host] + pages + [rulesReloader, uploader, RecordingCopier(board: recordings)]
        // The last is stopped first, and says so.
        if let manager { services.append(ServiceReporter(manager, host)) }
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
        on address: SocketAddress, _ host: NodeHost, _ desk: SettingsDesk, _ feed: ConsoleFeed,
        _ files: TorrentFileStore, _ recordings: RecordingBoard, _ tally: HTTPTally, token: String?,
        _ rules: ServerConfiguration.Rules,
        facts: @escaping @Sendable () -> ProcessFacts
    ) async throws -> HTTPService {
        var api = APIServer(status: host, cluster: host, tally: tally, facts: facts)
        api.parts.events = (feed.log, feed.history)
        api.parts.swarms = host
        api.parts.faults = feed.cuts
        api.parts.settings = desk
        api.parts.node = host
        api.parts.accounts = host
        api.parts.hasAccounts = host.hadAccounts || !rules.accounts.isEmpty
        // Nobody is let in without a log-in in the moments before they are in force.
        api.parts.expectsAccounts = !rules.accounts.isEmpty
        api.parts.files = files
        api.parts.recordings = recordings
        api.parts.simulator = simulator.map { SimulatorModule(bytes: $0.bytes, gzipped: $0.gzipped) }
        api.parts.cookieSuffix = "\(configuration.cluster.name)-\(address.port)"
        var options = APIServer.Options()
        options.token = token
        if let certificates = configuration.consoleCertificateFile, let key = configuration.consoleKeyFile {
            options.tls = (certificates, key)
        }
        options.logger = logger
        let page = try await api.listen(on: address, options)
        logger.info("listening", metadata: ["console": "\(page.address)"])
        return page
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

// A life of the node, made from the configuration: record, bus, sockets, listeners.

import Bus
import Datagrams
import Foundation
import Logging
import Primitives
import ServiceLifecycle
import Settings
import Storage
import TrackerLogic
import Web
import Wire

/// Makes a life of the node from the configuration: reads the record, opens bus, sockets and listeners.
///
/// Everything that can be refused is refused here, before anybody is served.
struct NodeMaker: Sendable {
    var configuration: ServerConfiguration
    let version: String
    let logger: Logger
    /// The cluster's; nil for a tracker that is alone.
    let key: ClusterKey?
    /// In place of the bus that the configuration names, for one life.
    let givenBus: (any Bus)?
    let tally: HTTPTally
    let uploads: DirectoryUploads
    let recordings: RecordingBoard
    let startedAt: WallTime

    /// A given bus lives once.
    struct BusIsGone: Error, CustomStringConvertible {
        let description = "the bus that this tracker was given has stopped with it; start the process again"
    }

    /// The process's first life.
    ///
    /// - Parameter rules: of the operator's files.
    /// - Returns: it, not running yet; what the console shows of it and those after it; where it listens for clients.
    /// - Throws: `StoreError`, `SocketError`, `ListenFailure`, `BusConfigurationError`: each says what to do.
    func make(rules: ServerConfiguration.Rules) async throws -> (
        run: NodeHost.Run, feed: ConsoleFeed, listeners: [ProcessFacts.Listener]
    ) {
        let cuts = Cuts(hasBus: configuration.node.cluster.hasBus)
        let (run, feed) = try await make(rules: rules, bus: givenBus) { life in
            ConsoleFeed(incarnation: life.incarnation, id: life.id, cuts: cuts)
        }
        return (run, feed, run.service.listeners)
    }

    /// A further life, with the files of the operator as they are now.
    func makeAgain(_ feed: ConsoleFeed, console: SocketAddress?) async throws -> NodeHost.Run {
        guard givenBus == nil else { throw BusIsGone() }
        let (run, _) = try await make(rules: try configuration.rules(), bus: nil) { life in
            feed.begins(as: life.id)
            return feed
        }
        run.service.latest.note(facts(run.service.listeners, console: console))
        return run
    }

    /// The same with other settings.
    func with(_ configuration: ServerConfiguration) -> NodeMaker {
        var maker = self
        maker.configuration = configuration
        return maker
    }

    /// What does not change while a life goes on.
    func facts(_ listeners: [ProcessFacts.Listener], console: SocketAddress?) -> ProcessFacts {
        var facts = ProcessFacts(
            version: version, processID: ProcessInfo.processInfo.processIdentifier, startedAt: startedAt,
            listeners: listeners + (console.map { [.init(.api, $0)] } ?? []),
            advertised: configuration.cluster.hooks.advertised)
        facts.consoleURL = configuration.consoleURL
        return facts
    }

    private func make(
        rules: ServerConfiguration.Rules, bus given: (any Bus)?, feed makeFeed: (Life) -> ConsoleFeed
    ) async throws -> (NodeHost.Run, ConsoleFeed) {
        let (store, node) = try RecordReader(configuration: configuration, logger: logger).open()
        do {
            let life = node.inspection.life
            let feed = makeFeed(life)
            let groups = configuration.cluster.groups.map {
                MulticastGroup($0, interface: configuration.cluster.interface)
            }
            let real = try given ?? configuration.makeBus(key, incarnation: life.incarnation)
            let bus = real.map { CutBus($0, cuts: feed.cuts) }
            let sockets = try DatagramSockets(bind: configuration.udp, groups: groups)
            let udp = sockets.sockets.map(\.address)
            let latest = LatestFigures(version: version, durability: configuration.durability)
            let service = try NodeService(
                node: node, sockets: sockets, store: store, directory: configuration.dataDirectory,
                cluster: ClusterParts(
                    bus: bus, hooks: configuration.cluster.hooks, name: configuration.cluster.name, feed: feed,
                    uploads: uploads, recordings: recordings),
                latest: latest, logger: logger)
            let pages = try await listen(service)
            service.note(
                udp.map { .init(.udp, $0) } + pages.map { .init(.http, $0.address) })
            for address in udp where !address.isGroup { logger.info("listening", metadata: ["udp": "\(address)"]) }
            for group in groups { logger.info("listening", metadata: ["group": "\(group.address)"]) }
            RulesReloader.apply(rules, of: configuration, uploads, logger) { command in
                service.inbox.put { $0.commands.append(command) }
            }
            return (run(service, pages, node.state.accounts), feed)
        } catch {
            store.close()
            throw error
        }
    }

    private func run(_ service: NodeService, _ pages: [HTTPService], _ accounts: Accounts) -> NodeHost.Run {
        // Stopped in reverse: first no new HTTP requests, then the node, which answers those that wait.
        let group = ServiceGroupConfiguration(
            services: ([service] + pages as [any Service]).map {
                .init(
                    service: $0, successTerminationBehavior: .gracefullyShutdownGroup,
                    failureTerminationBehavior: .gracefullyShutdownGroup)
            }, logger: logger.atMost(.warning))
        return NodeHost.Run(
            service: service, pages: pages, group: ServiceGroup(configuration: group), accounts: accounts)
    }

    private func listen(_ service: NodeService) async throws -> [HTTPService] {
        var pages: [HTTPService] = []
        do {
            for address in configuration.http {
                let page = try await HTTPTracker.listen(
                    on: address, handler: service.requestHandler, trusted: configuration.node.trusted, logger: logger,
                    tally: tally)
                logger.info("listening", metadata: ["http": "\(page.address)"])
                pages.append(page)
            }
            return pages
        } catch {
            for page in pages { await page.close() }
            throw error
        }
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

// Keeps the access rules and the registered torrents as the operator's files say.

import Datagrams
import Logging
import ServiceLifecycle
import Settings
import TrackerLogic
import UnixSignals

/// Keeps the access rules and the registered torrents as the operator's files say: at the start, and again on SIGHUP.
struct RulesReloader: Service {
    let current: CurrentSettings
    let host: NodeHost
    let manager: ServiceManager?
    let logger: Logger

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        for await _ in signals.cancelOnGracefulShutdown() {
            logger.info("reading lists and torrents again")
            manager?.beginsToReload(now: Clock.monotonic())
            do {
                let configuration = try current.reload()
                Self.apply(try configuration.accessRules(), of: configuration, logger, host.command)
                warnOfOtherChanges(configuration)
            } catch {
                logger.error("the rules in force are kept: \(error)")
            }
            guard let manager else { continue }
            // The node has had its commands when it answers.
            _ = await host.status()
            manager.hasReloaded()
        }
    }

    /// Hands rules and torrents to a node.
    static func apply(
        _ rules: AccessRules, of configuration: ServerConfiguration, _ logger: Logger,
        _ command: (OperatorCommand) -> Void
    ) {
        command(.setAccess(rules))
        guard let directory = configuration.torrentsDirectory else { return }
        do {
            let torrents = try TorrentDirectory.read(
                directory, atMost: configuration.node.limits.registeredTorrents, logger: logger)
            command(.registerTorrents(torrents))
        } catch {
            logger.error(
                "no torrents are registered: the directory cannot be read: \(error)",
                metadata: ["torrents": "\(directory)"])
        }
    }

    /// Says so where the file has changed in a way that only a restart brings about.
    private func warnOfOtherChanges(_ new: ServerConfiguration) {
        let configuration = current.configuration
        var comparable = new
        comparable.accessMode = configuration.accessMode
        comparable.accessListFile = configuration.accessListFile
        comparable.usersFile = configuration.usersFile
        comparable.torrentsDirectory = configuration.torrentsDirectory
        if comparable != configuration {
            logger.warning("other settings have changed too; they are in force after a restart")
        }
    }
}

// Keeps the access rules, the accounts of files and the registered torrents as the operator's files say.

import Datagrams
import Logging
import ServiceLifecycle
import Settings
import TrackerLogic
import UnixSignals

/// Keeps the access rules, the accounts of files and the registered torrents as the operator's files say: at the start,
/// and again on SIGHUP.
struct RulesReloader: Service {
    let current: CurrentSettings
    let host: NodeHost
    let manager: ServiceManager?
    let uploads: DirectoryUploads
    let logger: Logger

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        for await _ in signals.cancelOnGracefulShutdown() {
            logger.info("reading lists, accounts and torrents again")
            manager?.beginsToReload(now: Clock.monotonic())
            do {
                let configuration = try current.reload()
                Self.apply(try configuration.rules(), of: configuration, uploads, logger, host.command)
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
        _ rules: ServerConfiguration.Rules, of configuration: ServerConfiguration, _ uploads: DirectoryUploads,
        _ logger: Logger,
        _ command: (OperatorCommand) -> Void
    ) {
        command(.setAccess(rules.access))
        // Without a file, too: what an earlier one said goes.
        command(.setFileAccounts(rules.accounts))
        guard let directory = configuration.torrentsDirectory else { return }
        do {
            let listing = try TorrentDirectory.read(directory, configuration.node.limits, logger: logger)
            uploads.read(listing)
            command(.setFileTorrents(listing.torrents))
        } catch {
            logger.error(
                "the torrents that are registered stay: the directory cannot be read: \(error)",
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
        comparable.accountsFile = configuration.accountsFile
        comparable.torrentsDirectory = configuration.torrentsDirectory
        if comparable != configuration {
            logger.warning("other settings have changed too; they are in force after a restart")
        }
    }
}

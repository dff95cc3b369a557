// `tracker serve`.

import ArgumentParser
import Bus
import Foundation
import Server
import Settings

/// `tracker serve`.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run a tracker.",
        discussion: """
            Every flag can also be set in a TOML file and in the environment: docs/configuration.md lists the keys \
            and the variables, examples/tracker.toml is a file with every default. Flags go before the environment, \
            the environment before what the console has kept, and that before the file. A setting that is wrong is \
            named with its place, and nothing is started.

            SIGTERM and SIGINT answer what waits and stop; SIGHUP reads the lists, the users, the accounts and the \
            torrents again. \
            systemd is told when the tracker is ready, how it fares and that its thread is alive (sd_notify): \
            docs/operations.md.
            """)

    @Option(help: ArgumentHelp("Read this TOML file; else the one that SWARMKEEPER_CONFIG names.", valueName: "file"))
    var config: String?

    @Flag(help: "Check the configuration and the files that it names, and stop.")
    var check = false

    @Flag(
        name: .customLong("stop-at-end-of-input"),
        help: ArgumentHelp(
            "Stop in good order when standard input ends: for programs that start a tracker, and want it to end with "
                + "them."))
    var stopsAtEndOfInput = false

    @Flag(
        name: .customLong("accept-loss"),
        help: ArgumentHelp(
            "Go on with what is left of a record that is damaged, for this start: without what it has lost, and in a "
                + "quorum with a vote. The damaged files are kept under another name."))
    var acceptsLoss = false

    @OptionGroup(title: "Settings")
    var flags: ServeFlags

    func run() async throws {
        let load: @Sendable (ConsoleSettings) throws -> ServerConfiguration = {
            [config, values = flags.values, acceptsLoss] console in
            var configuration = try ServerConfiguration.load(
                file: config, environment: ProcessInfo.processInfo.environment, flags: values, console: console)
            configuration.acceptsLoss = acceptsLoss
            return configuration
        }
        let configuration = try Self.checked { try load(ConsoleSettings()) }
        guard !check else {
            print("The configuration is fine.")
            return
        }
        EarlySignals.begin()
        try Self.prepareDefaultDirectory(configuration)
        // A peer that hangs up while it is answered is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        if stopsAtEndOfInput { Self.stopAtEndOfInput() }
        let logger = configuration.startLogging()
        let named = ProcessInfo.processInfo.environment[SettingKey.configurationFileVariable]
        configuration.warn(logger, file: config ?? named)
        let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().path
        let simulator = try Failure.telling(.configuration) { try configuration.simulator(of: program, logger) }
        let server = TrackerServer(
            configuration: configuration, version: version, logger: logger,
            manager: ServiceManager(environment: ProcessInfo.processInfo.environment),
            simulator: simulator, reload: load)
        do {
            try await server.run()
        } catch let error as TextFileError {
            throw Failure(.configuration, error.description)
        } catch let error as BusConfigurationError {
            throw Failure(.configuration, error.description)
        } catch let error as ListenFailure where error.cause == .tokenMissing {
            throw Failure(.configuration, error.description)
        } catch {
            throw Failure(.system, "\(error)")
        }
    }

    /// Has this process stop, as on SIGTERM, when nobody can write to it any more.
    private static func stopAtEndOfInput() {
        Thread.detachNewThread {
            var room = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = read(STDIN_FILENO, &room, room.count)
                guard count > 0 || count < 0 && errno == EINTR else { break }
            }
            kill(getpid(), SIGTERM)
        }
    }

    /// Loads the configuration and reads the files that it names.
    private static func checked(_ load: () throws -> ServerConfiguration) throws(Failure) -> ServerConfiguration {
        do {
            let configuration = try load()
            _ = try configuration.rules()
            _ = try configuration.consoleToken()
            _ = try configuration.clusterKey()
            _ = try configuration.simulator(of: nil)
            return configuration
        } catch let error as ConfigurationError {
            let isCommandLine = error.problems.allSatisfy { problem in
                if case .flag = problem.place { true } else { false }
            }
            Terminal.errors.write(error.description + "\n")
            throw Failure(isCommandLine ? .usage : .configuration, "nothing is started until this is put right")
        } catch {
            throw Failure(.configuration, "\(error)")
        }
    }

    /// Makes the parents of the default data directory, which a fresh account lacks.
    ///
    /// Of one that was named only the last part is made, by the store: a slip of the pen makes no tree.
    private static func prepareDefaultDirectory(_ configuration: ServerConfiguration) throws(Failure) {
        let environment = ProcessInfo.processInfo.environment
        guard configuration.dataDirectory == ServerConfiguration.defaultDataDirectory(environment: environment) else {
            return
        }
        let parent = URL(filePath: configuration.dataDirectory).deletingLastPathComponent()
        do {
            try FileManager.default.createDirectory(
                at: parent, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw Failure(
                .system,
                "the directory \(parent.path) cannot be made: \(error.localizedDescription); name another by --data DIR"
            )
        }
    }
}

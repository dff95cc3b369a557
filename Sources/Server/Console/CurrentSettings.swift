// The settings by which the node's next life is made.

import Primitives
import Settings
import Synchronization

/// The settings by which the node's next life is made: as the process began with them, but for what the console has
/// changed since.
final class CurrentSettings: Sendable {
    /// Reads all sources again, with what the console adds.
    typealias Load = @Sendable (ConsoleSettings) throws -> ServerConfiguration

    private struct State {
        var configuration: ServerConfiguration
        var given: [SettingKey: SettingInput] = [:]
        var revision: UInt64
    }

    private let state: Mutex<State>
    private let load: Load

    /// - Parameters:
    ///   - configuration: with which the process begins.
    ///   - revision: the time, so that no earlier process has counted so far.
    ///   - load: reads all sources again.
    init(_ configuration: ServerConfiguration, revision: WallTime, load: @escaping Load) {
        state = Mutex(State(configuration: configuration, revision: UInt64(clamping: max(revision.milliseconds, 1))))
        self.load = load
    }

    var configuration: ServerConfiguration { state.withLock { $0.configuration } }

    /// How many changes there were, from wherever the count began.
    var revision: UInt64 { state.withLock { $0.revision } }

    /// As the sources are now, with what this process has been told.
    func reload() throws -> ServerConfiguration { try read(state.withLock { ConsoleSettings(given: $0.given) }) }

    func read(_ console: ConsoleSettings) throws -> ServerConfiguration { try load(console) }

    /// Has them in force from the next life on.
    ///
    /// - Returns: the new revision.
    func take(_ configuration: ServerConfiguration, given: [SettingKey: SettingInput]) -> UInt64 {
        state.withLock { state in
            state.configuration = configuration
            state.given = given
            state.revision += 1
            return state.revision
        }
    }
}

// What this process records: shown to people, and copied when somebody asks for it.

import Datagrams
import Dispatch
import Logging
import Primitives
import Storage
import Synchronization
import TrackerLogic
import Web
import Wire

/// What this process records: shown to people, and copied when somebody asks for it, from any thread.
///
/// It outlives the lives of the node that the console stops and starts; each has a ring of its own.
final class RecordingBoard: RecordingProvider {
    /// Copies that are made unasked, in one process: of promises that are found broken.
    static let maxAlarms = 3

    private struct State {
        var room: RecordingRoom?
        var figures = RecordingFigures()
        var alarms = 0
    }

    private let directory: String
    private let isWanted: Bool
    private let logger: Logger
    private let state: Mutex<State>
    /// Copies are made one after another.
    private let queue = DispatchQueue(label: "swarmkeeper.recording", qos: .utility)

    init(directory: String, isWanted: Bool, logger: Logger) {
        (self.directory, self.isWanted, self.logger) = (directory, isWanted, logger)
        var state = State()
        state.figures.isOn = isWanted
        self.state = Mutex(state)
    }

    /// Begins the recording of a life.
    ///
    /// - Returns: nil where none is wanted, or possible.
    func begin(_ life: Life, version: String) -> NodeRecorder? {
        guard isWanted else { return nil }
        do throws(RecordingFailure) {
            let (room, kept) = try RecordingFile.begin(in: directory)
            if let kept {
                logger.notice(
                    "the last life did not end in order; its recording is kept: see it with tracker replay",
                    metadata: ["file": "\(kept)"])
            }
            let recorder = Recorder(
                room: room, life: life, now: Clock.read(), boot: KernelLife.id, program: version)
            state.withLock { $0.room = room }
            return NodeRecorder(recorder, self)
        } catch {
            logger.warning("\(error)")
            state.withLock { $0.figures.problem = error.description }
            return nil
        }
    }

    var figures: RecordingFigures { state.withLock { $0.figures } }

    func note(_ figures: RecordingFigures) { state.withLock { $0.figures = figures } }

    /// Copies the recording to a file in the data directory.
    func copy() async -> RecordingCopy {
        guard let room = state.withLock({ $0.room }) else {
            return .refused(figures.problem ?? "nothing is recorded: storage.recording is \"none\"")
        }
        return await withCheckedContinuation { continuation in
            queue.async { [self] in continuation.resume(returning: copy(room)) }
        }
    }

    private func copy(_ room: RecordingRoom) -> RecordingCopy {
        do throws(RecordingFailure) {
            let path = try RecordingFile.copy(room, to: directory)
            logger.notice("the recording is copied", metadata: ["file": "\(path)"])
            return .done(path)
        } catch {
            logger.error("the recording is not copied: \(error)")
            return .refused(error.description)
        }
    }

    /// A promise is broken: says so, and copies what led to it.
    func raise(_ broken: LifeChecks.Broken) {
        let (count, room) = state.withLock { state in
            state.alarms += 1
            return (state.alarms, state.room)
        }
        guard count <= RecordingBoard.maxAlarms else { return }
        logger.critical(
            """
            a promise is broken: \(broken.text). This is a mistake of this program, not of yours: please send its \
            recording to its makers
            """)
        guard let room else { return }
        // The step that showed it is to be in it, with what came of it.
        queue.asyncAfter(deadline: .now() + .milliseconds(200)) { [self] in _ = copy(room) }
    }
}

// Copies the recording on SIGUSR1.

import ServiceLifecycle
import UnixSignals

/// Copies the recording on SIGUSR1.
struct RecordingCopier: Service {
    let board: RecordingBoard

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sigusr1)
        for await _ in signals.cancelOnGracefulShutdown() { _ = await board.copy() }
    }
}

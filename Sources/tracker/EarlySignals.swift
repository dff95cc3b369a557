// Signals that come before anything is served.

import Foundation

/// Signals that come before anything is served, and before those are there who wait for them.
///
/// Without an answer process 1 of a container would not hear SIGTERM at all, and any other would end by SIGHUP.
enum EarlySignals {
    /// SIGTERM and SIGINT end the program at once, SIGHUP and SIGUSR1 do nothing.
    ///
    /// Nobody waits for it, its record is as it was, and what they ask for is about to be done, or a copy of nothing.
    static func begin() {
        for number in [SIGTERM, SIGINT] {
            signal(number) { _ in
                let words: StaticString = "stopped before it served anybody\n"
                _ = write(STDERR_FILENO, words.utf8Start, words.utf8CodeUnitCount)
                _exit(0)
            }
        }
        for number in [SIGHUP, SIGUSR1] { signal(number, SIG_IGN) }
    }
}

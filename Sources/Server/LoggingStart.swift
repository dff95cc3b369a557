// Starts the log as the configuration has it.

import Logging
import Settings

extension ServerConfiguration {
    /// Sets the log up as configured; to be called once in a process, before anything logs.
    ///
    /// - Returns: the program's logger, which writes to standard error.
    public func startLogging() -> Logger {
        LoggingSystem.bootstrap { [logFormat, logLevel] label in
            LineLogHandler(label: label, format: logFormat, level: logLevel)
        }
        return Logger(label: "swarmkeeper")
    }
}

// How the program ends when it does not end well.

import Client
import Foundation

/// How the program ends when it does not end well.
struct Failure: Error {
    /// What the program's exit code says; `tracker --help` lists them.
    ///
    /// The numbers above 64 are those of sysexits.h.
    enum Code: Int32 {
        case success = 0
        /// Failed, or answered with an error.
        case failed = 1
        /// The command line makes no sense.
        case usage = 2
        /// No answer.
        case unavailable = 69
        /// A file, a disk or a port.
        case system = 74
        /// The configuration is wrong.
        case configuration = 78
        /// Ended by a signal before it was done.
        case interrupted = 130
    }

    var code: Code
    /// What, why, and what to do; nil where it has been said already.
    var message: String?

    init(_ code: Code, _ message: String?) {
        self.code = code
        self.message = message
    }

    init(_ error: TrackerClientError) {
        self.init(error.isAnswer ? .failed : .unavailable, error.description)
    }

    /// Writes the message to standard error.
    func report() {
        guard let message else { return }
        let label = Terminal.errors.styled("error:", .bold, .red)
        Terminal.errors.write("\(label) \(message)\n")
    }

    /// Runs a part of a command, with the machine's failures told as such.
    static func telling<Value>(_ code: Code, _ body: () throws -> Value) throws(Failure) -> Value {
        do {
            return try body()
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(code, "\(error)")
        }
    }
}

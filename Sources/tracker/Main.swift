// Where the program begins.

import ArgumentParser
import Foundation

/// Where the program begins.
@main
enum Main {
    static func main() async {
        do {
            var command = try TrackerCommand.parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let failure as Failure {
            failure.report()
            exit(failure.code.rawValue)
        } catch {
            // Help and version are "errors" of the argument parser that belong on standard output.
            let text = TrackerCommand.fullMessage(for: error)
            guard !TrackerCommand.exitCode(for: error).isSuccess else {
                print(text)
                exit(Failure.Code.success.rawValue)
            }
            Terminal.errors.write(text + "\n")
            exit((error is ExitCode ? Failure.Code.failed : .usage).rawValue)
        }
    }
}

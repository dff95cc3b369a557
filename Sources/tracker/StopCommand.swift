// `tracker stop`.

import ArgumentParser
import Client

/// `tracker stop`: the orderly stop of a whole cluster.
struct StopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop",
        abstract: "Stop all trackers of a cluster, in good order.",
        discussion: """
            Any tracker hands the order to the master, which tells all others, and stops when they have. Whoever waits \
            is answered first. The swarms go with the cluster, unless its trackers run with --keep-swarms; to stop one \
            tracker only, while the others go on, send it SIGTERM.
            """)

    @OptionGroup var options: ClusterConsoles
    @OptionGroup var report: ReportOptions

    func run() async throws {
        let console = try await options.first().client
        do throws(TrackerClientError) {
            try await console.stopCluster()
            struct Stop: Encodable { var isStopping = true }
            if report.isJSON {
                try? report.writeJSON(Stop())
            } else {
                Terminal.output.write("All trackers of the cluster stop.\n")
            }
        } catch {
            throw Failure(error)
        }
    }
}

// `tracker elect`.

import ArgumentParser
import Client

/// `tracker elect`: an election without a failure.
struct ElectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "elect",
        abstract: "Have a cluster elect its master anew.",
        discussion: """
            The master steps down, and the trackers elect one by their policy: it may be the same again. Requests that \
            come meanwhile are kept, and answered by the new master. To say who is to be master, use tracker handover.
            """)

    @OptionGroup var options: ClusterConsoles
    @OptionGroup var report: ReportOptions

    func run() async throws {
        let console = try await options.first().client
        do throws(TrackerClientError) {
            let former = try await console.elect()
            struct Election: Encodable { var formerMaster: UInt32 }
            if report.isJSON {
                try? report.writeJSON(Election(formerMaster: former))
            } else {
                Terminal.output.write("Tracker \(former) has stepped down; the trackers elect a master.\n")
            }
        } catch {
            throw Failure(error)
        }
    }
}

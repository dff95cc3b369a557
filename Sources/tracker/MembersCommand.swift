/// `tracker members add|remove|replace` and `tracker handover`: orders to a cluster's master.

import ArgumentParser
import Runtime

struct MembersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "members",
        abstract: "Change who votes in a cluster.",
        discussion: """
            The members are a part of the cluster's log, and change by one at a time. A tracker that is to be added has \
            to run and be in sync: start it with --members as the others have it, and --spare.
            """,
        subcommands: [Add.self, Remove.self, Replace.self])

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Give a tracker a vote.")

        @Argument(help: "The tracker's number.") var id: UInt32
        @OptionGroup var options: MasterOptions
        @OptionGroup var report: ReportOptions

        func run() async throws { try await change(options, report, adding: id, removing: nil) }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Take a tracker's vote; it goes on following.")

        @Argument(help: "The tracker's number.") var id: UInt32
        @OptionGroup var options: MasterOptions
        @OptionGroup var report: ReportOptions

        func run() async throws { try await change(options, report, adding: nil, removing: id) }
    }

    struct Replace: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give one tracker's vote to another, in two steps.")

        @Argument(help: "The tracker that votes now.") var old: UInt32
        @Argument(help: "The tracker that is to vote.") var new: UInt32
        @OptionGroup var options: MasterOptions
        @OptionGroup var report: ReportOptions

        func run() async throws { try await change(options, report, adding: new, removing: old) }
    }

    private static func change(
        _ options: MasterOptions, _ report: ReportOptions, adding added: UInt32?, removing removed: UInt32?
    ) async throws {
        let master = try await options.master()
        do throws(TrackerClientError) {
            let members = try await master.changeMembers(adding: added, removing: removed)
            struct Members: Encodable { var members: [UInt32] }
            if report.isJSON {
                try? report.writeJSON(Members(members: members))
            } else {
                Terminal.output.write("Members: \(members.map(String.init).joined(separator: ", "))\n")
            }
        } catch {
            throw Failure(error)
        }
    }
}

struct HandoverCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "handover",
        abstract: "Make another tracker of a cluster master.",
        discussion: """
            No request is lost: the master stops proposing, and the other one is elected. Where the election policy \
            prefers another tracker, that one is given the role again when it has been in step for a while.
            """)

    @Argument(help: "The number of the tracker that is to be master.") var id: UInt32
    @OptionGroup var options: MasterOptions
    @OptionGroup var report: ReportOptions

    func run() async throws {
        let master = try await options.master()
        do throws(TrackerClientError) {
            try await master.handOver(to: id)
            struct Master: Encodable { var master: UInt32 }
            if report.isJSON {
                try? report.writeJSON(Master(master: id))
            } else {
                Terminal.output.write("Tracker \(id) is master.\n")
            }
        } catch {
            throw Failure(error)
        }
    }
}

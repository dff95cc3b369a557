// `tracker members list|add|remove|replace` and `tracker handover`.

import ArgumentParser
import Client

/// `tracker members list|add|remove|replace` and `tracker handover`: orders to a cluster, through any of its trackers.
struct MembersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "members",
        abstract: "Show or change who votes in a cluster.",
        discussion: """
            The members are a part of the cluster's log, and change by one at a time. A tracker that is to be added \
            has to run and be in sync: start it with --members as the others have it, and --spare. Any tracker takes \
            the order, and hands it to the master.
            """,
        subcommands: [List.self, Add.self, Remove.self, Replace.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show who votes, and who is there.")

        @OptionGroup var options: ClusterConsoles
        @OptionGroup var report: ReportOptions

        private struct Member: Encodable {
            var id: UInt32
            var hasVote: Bool
            var role: String
            var host: String
            var clients: String
        }

        func run() async throws {
            let (_, view) = try await options.first()
            var members = view.trackers.map { tracker in
                Member(
                    id: tracker.id, hasVote: view.voters.contains(tracker.id), role: tracker.role,
                    host: tracker.report?.host ?? "", clients: tracker.report?.clients ?? "")
            }
            for id in view.voters where !members.contains(where: { $0.id == id }) {
                members.append(Member(id: id, hasVote: true, role: "not heard", host: "", clients: ""))
            }
            members.sort { $0.id < $1.id }
            if report.isJSON { return try report.writeJSON(["members": members]) }
            var table = TextTable(.right, .left, .left, .left, .left)
            table.add("id", "vote", "role", "host", "clients")
            for member in members {
                table.add("\(member.id)", member.hasVote ? "yes" : "no", member.role, member.host, member.clients)
            }
            Terminal.output.write(table.text { Terminal.output.styled($0, .bold) })
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Give a tracker a vote.")

        @Argument(help: "The tracker's number.") var id: UInt32
        @OptionGroup var options: ClusterConsoles
        @OptionGroup var report: ReportOptions

        func run() async throws { try await change(options, report, adding: id, removing: nil) }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Take a tracker's vote; it goes on following.")

        @Argument(help: "The tracker's number.") var id: UInt32
        @OptionGroup var options: ClusterConsoles
        @OptionGroup var report: ReportOptions

        func run() async throws { try await change(options, report, adding: nil, removing: id) }
    }

    struct Replace: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give one tracker's vote to another, in two steps.")

        @Argument(help: "The tracker that votes now.") var old: UInt32
        @Argument(help: "The tracker that is to vote.") var new: UInt32
        @OptionGroup var options: ClusterConsoles
        @OptionGroup var report: ReportOptions

        func run() async throws { try await change(options, report, adding: new, removing: old) }
    }

    private static func change(
        _ options: ClusterConsoles, _ report: ReportOptions, adding added: UInt32?, removing removed: UInt32?
    ) async throws {
        let console = try await options.first().client
        do throws(TrackerClientError) {
            let members = try await console.changeMembers(adding: added, removing: removed)
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
    @OptionGroup var options: ClusterConsoles
    @OptionGroup var report: ReportOptions

    func run() async throws {
        let console = try await options.first().client
        do throws(TrackerClientError) {
            let wasMaster = try await console.handOver(to: id)
            struct Master: Encodable {
                var master: UInt32
                var wasMaster: Bool
            }
            if report.isJSON {
                try? report.writeJSON(Master(master: id, wasMaster: wasMaster))
            } else {
                Terminal.output.write("Tracker \(id) is master\(wasMaster ? " already" : "").\n")
            }
        } catch {
            throw Failure(error)
        }
    }
}

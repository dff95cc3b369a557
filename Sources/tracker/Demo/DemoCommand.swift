// `tracker demo`.

import ArgumentParser
import Bus
import Foundation
import UnixSignals

/// `tracker demo`: three trackers that act as one, on this machine, to be watched while they are killed.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Run a cluster of three trackers on this machine, and watch it.",
        discussion: """
            Each tracker is a process of its own, with its own UDP port, console and record; they meet on a small \
            broker inside this program. Kill one, and see another take over. What was killed comes back after a while. \
            Nothing of it is reachable from other machines, and nothing is left when you stop it with Ctrl-C.
            """)

    @Option(
        help: ArgumentHelp(
            "The first of the ports: the bus has this one, the trackers' UDP ports follow, and their consoles ten "
                + "above them.", valueName: "port"))
    var basePort: UInt16 = 7000

    @Option(
        help: ArgumentHelp("The policies of the cluster: classic, rotating, lowest or paxos.", valueName: "name"))
    var profile = "paxos"

    func validate() throws {
        guard (1024...60_000).contains(basePort) else {
            throw ValidationError("the first port has to be one of 1024 to 60000")
        }
        guard ["classic", "rotating", "lowest", "paxos"].contains(profile) else {
            throw ValidationError("there is no profile \"\(profile)\"; there are classic, rotating, lowest and paxos")
        }
    }

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        signal(SIGPIPE, SIG_IGN)
        let directory = FileManager.default.temporaryDirectory.appending(path: "swarmkeeper-demo-\(getpid())")
        let broker: LoopbackBroker
        do {
            try FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            let key = directory.appending(path: "cluster.key")
            try Data(ClusterKey.makeKey().utf8).write(to: key)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key.path)
            broker = try await LoopbackBroker.start(port: basePort)
        } catch {
            try? FileManager.default.removeItem(at: directory)
            throw Failure(.system, "\(error)")
        }
        let demo = Demo(basePort: basePort, profile: profile, directory: directory, bus: broker.url)
        let outcome = await demo.run(until: signals)
        await broker.stop()
        try? FileManager.default.removeItem(at: directory)
        if let outcome { throw outcome }
    }
}

import Client
import Foundation
import Logging
import Primitives
import Server
import Settings
import Testing
import Wire

/// The commands that run when the role changes.
@Suite("Hooks")
struct HookTests {
    private static func state(master: Bool, round: UInt64 = 1) -> HookState {
        HookState(isMaster: master, id: 2, epoch: Epoch(round: round, id: 2), master: master ? 2 : 3)
    }

    private func lines(_ path: String) -> [String] {
        ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
    }

    @Test
    func `a command finds role, id, epoch, master and URL in its environment`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path("told")
        let variables = "$TRACKER_ROLE $TRACKER_ID $TRACKER_EPOCH $TRACKER_MASTER $TRACKER_ADVERTISE"
        let command = "echo \"\(variables)\" >> '\(file)'"
        let runner = HookRunner(
            Hooks(onMaster: command, onSlave: command, advertised: "udp://t.example:1/announce"), logger: quiet)
        runner.changed(Self.state(master: false))
        await runner.finish()
        runner.changed(Self.state(master: true, round: 7))
        await runner.finish()
        #expect(
            lines(file) == [
                "slave 2 1.2 3 udp://t.example:1/announce", "master 2 7.2 2 udp://t.example:1/announce",
            ])
    }

    @Test
    func `while one command runs none other does, and then only the last word counts`() async throws {
        let directory = try TemporaryDirectory()
        let (file, gate) = (directory.path("told"), directory.path("gate"))
        let wait = "while [ ! -e '\(gate)' ]; do sleep 0.02; done"
        let runner = HookRunner(
            Hooks(
                onMaster: "echo master $TRACKER_EPOCH >> '\(file)'",
                onSlave: "echo slave >> '\(file)'; \(wait); echo end >> '\(file)'"), logger: quiet)
        runner.changed(Self.state(master: false))
        while lines(file).isEmpty { try await Task.sleep(for: .milliseconds(10)) }
        // All of this happens while the first command runs.
        runner.changed(Self.state(master: true, round: 2))
        runner.changed(Self.state(master: false))
        runner.changed(Self.state(master: true, round: 3))
        _ = try directory.write("gate", "")
        await runner.finish()
        #expect(lines(file) == ["slave", "end", "master 3.2"])
    }

    @Test
    func `what does not change the role runs nothing; a further term as master does`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path("told")
        let runner = HookRunner(
            Hooks(onMaster: "echo master >> '\(file)'", onSlave: "echo slave >> '\(file)'"), logger: quiet)
        for state in [
            Self.state(master: false), Self.state(master: false, round: 2), Self.state(master: true, round: 3),
            Self.state(master: true, round: 3), Self.state(master: true, round: 4),
        ] {
            runner.changed(state)
            await runner.finish()
        }
        #expect(lines(file) == ["slave", "master", "master"])
    }

    @Test
    func `a command that fails is told of`() async throws {
        let log = Seen<String>()
        let logger = Logger(label: "test") { _ in CollectingLog(lines: log) }
        let runner = HookRunner(Hooks(onMaster: "exit 3"), logger: logger, patience: Waiting.most)
        runner.changed(Self.state(master: true))
        await runner.finish()
        #expect(
            log.all.contains(
                "error: the command of on-master failed with exit code 3; is it right, and may this user run it?"))
    }

    @Test
    func `a command that takes too long is told of, and stopped with all that it started`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path("told")
        let log = Seen<String>()
        let logger = Logger(label: "test") { _ in CollectingLog(lines: log) }
        // On a busy machine the command may have started nothing by the time that it is stopped: then it gets more.
        var seconds = 0.3
        while lines(file).isEmpty, seconds < 100 {
            let runner = HookRunner(
                Hooks(onSlave: "(sleep 1000; echo late >> '\(file)') & echo $! >> '\(file)'; wait"),
                logger: logger, patience: .seconds(seconds))
            runner.changed(Self.state(master: false))
            await runner.finish()
            seconds *= 4
        }
        #expect(log.all.contains { $0.hasPrefix("error: the command of on-slave takes longer than 0.3 seconds") })
        // Its child has gone with it.
        let child = try #require(lines(file).first.flatMap { Int32($0) })
        try await eventually("the child is gone") { kill(child, 0) != 0 || Self.isZombie(child) }
    }

    /// Ended, and not yet fetched by whoever took it over.
    private static func isZombie(_ process: Int32) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        return status.split(separator: " ").dropFirst(2).first == "Z"
    }

    @Test
    func `the tracker itself runs them: at its start, when it becomes master, and when it stops`() async throws {
        let cluster = try TestCluster([:])
        let file = cluster.directory.path("told")
        let tracker = try await cluster.start(
            1, [.onMaster: ["echo $TRACKER_ROLE $TRACKER_ID >> '\(file)'"], .onSlave: ["echo slave >> '\(file)'"]])
        try await tracker.sees("it is master") { $0.isServing }
        try await tracker.stop()
        #expect(lines(file).suffix(2) == ["master 1", "slave"])
    }
}

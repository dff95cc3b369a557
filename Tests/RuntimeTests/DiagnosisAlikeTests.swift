import Bus
import Client
import Primitives
import Testing
import TrackerLogic
import Web
import Wire

/// Why nobody is answered: the status, `/healthz` and HTTP clients are told the same.
@Suite("Diagnosis: the same everywhere")
struct DiagnosisAlikeTests {
    struct Trouble: Sendable, CustomTestStringConvertible {
        var name: String
        /// As clients and monitors are told.
        var words: String
        /// As operators are told.
        var text: String
        /// What becomes of an announce.
        var refusal: Refusal
        var make: @Sendable () -> DiagnosisTests.Case

        var testDescription: String { name }
    }

    static let troubles = [
        Trouble(
            name: "the bus is lost", words: "the bus is lost", text: "the bus is lost (the broker 10.0.0.9 is gone)",
            refusal: .notServing
        ) {
            var lost = DiagnosisTests.Case(up: [1])
            (lost.bus.isConnected, lost.bus.lastProblem) = (false, "the broker 10.0.0.9 is gone")
            return lost
        },
        Trouble(
            name: "another cluster name", words: "another cluster name",
            text: "another cluster name (4 messages refused from 10.0.0.7)", refusal: .notServing
        ) {
            var stray = DiagnosisTests.Case(up: [1])
            stray.bus.refusals = [
                BusRefusal(sender: "10.0.0.7", reason: .otherCluster, count: 4, silentSeconds: 1)
            ]
            return stray
        },
        Trouble(
            name: "a full disk, alone", words: "disk full: announces are refused until they can be stored",
            text: "disk full: announces are refused until they can be stored", refusal: .notStored
        ) {
            var full = DiagnosisTests.Case()
            (full.cluster.mode, full.cluster.isServing, full.node.storageFailure) = (nil, true, .full)
            full.node.role = .master
            return full
        },
        Trouble(
            name: "full disks, too many",
            words: "disk full at this tracker: announces are refused: too few trackers can store them",
            text: "disk full at this tracker: announces are refused: too few trackers can store them",
            refusal: .notStored
        ) {
            var full = DiagnosisTests.Case()
            (full.cluster.isServing, full.cluster.master, full.node.storageFailure) = (true, 3, .full)
            full.fill(2)
            return full
        },
        Trouble(
            name: "one is down, and the disk of another is full",
            words:
                "the disk fails at tracker 2, and tracker 3 is not heard: "
                + "too few trackers can store what is announced",
            text:
                "the disk fails at tracker 2, and tracker 3 is not heard: "
                + "too few trackers can store what is announced",
            refusal: .notServing
        ) {
            var full = DiagnosisTests.Case(up: [1, 2])
            (full.cluster.isServing, full.cluster.master, full.node.role) = (true, 1, .master)
            full.fill(2)
            return full
        },
        Trouble(
            name: "full disks, and no master",
            words: "disk full at this tracker: no election can end, for too few trackers can store their promise",
            text: "disk full at this tracker: no election can end, for too few trackers can store their promise",
            refusal: .notServing
        ) {
            var full = DiagnosisTests.Case()
            (full.node.storageFailure, full.node.role) = (.full, .candidate)
            full.fill(2)
            return full
        },
    ]

    private struct Status: StatusProvider {
        var value: NodeStatus
        func status() async -> NodeStatus? { value }
    }

    private struct Cluster: ClusterProvider {
        var report: ClusterReport
        func cluster() async -> ClusterReport? { report }
        func carryOut(_ order: ClusterOrder) async -> OrderOutcome { .stopped }
    }

    /// The logic of a tracker in trouble.
    private struct Troubled: RequestHandler {
        var refusal: Refusal
        var problem: String?

        func handle(
            _ content: ClientRequest.Content, source: SocketAddress, passkey: [UInt8]
        ) async throws -> Answer.Content { .failure(refusal) }
    }

    @Test(arguments: troubles)
    func `status, health and HTTP clients are told the same, and only operators learn addresses`(_ trouble: Trouble)
        async throws
    {
        let made = trouble.make()
        var report = ClusterReport(
            status: made.cluster, bus: made.bus, tally: made.tally, elections: ElectionTally())
        report.findings = made.found
        let server = APIServer(
            status: Status(value: made.node), cluster: Cluster(report: report), tally: HTTPTally()
        ) {
            ProcessFacts(version: "1", processID: 1, startedAt: WallTime(milliseconds: 0), listeners: [])
        }
        var options = APIServer.Options()
        options.logger = quiet
        let console = try await server.listen(on: loopback, options)
        let http = try await tracker(
            Troubled(refusal: trouble.refusal, problem: Finding.problem(made.found)))
        try await running([console, http]) {
            let view = try await ConsoleClient.patient(console.address).cluster()
            let finding = try #require(view.findings?.first)
            #expect(finding.text == trouble.text && finding.isSilence)
            #expect(finding.code == made.found[0].code.rawValue)
            let health = try await fetch("/healthz", from: console.address)
            #expect(health.status == 503)
            #expect(health.text == "\(made.node.role.rawValue)\n\(trouble.words)\n")
            let metrics = try await fetch("/metrics", from: console.address).text
            #expect(metrics.contains("swarmkeeper_silent 1\n"))
            #expect(metrics.contains("swarmkeeper_finding{code=\"\(finding.code)\"} 1\n"))
            let answer = try await fetch("/announce?\(exampleQuery)", from: http.address).text
            let words = "tracker cannot answer now: \(trouble.words); try again later"
            #expect(answer.contains("14:failure reason\(words.utf8.count):\(words)"), "\(answer)")
            #expect(answer.contains("retry in"))
        }
    }

    @Test
    func `while the reason is not known yet, an announce that could not be stored is refused in other words`()
        async throws
    {
        let http = try await tracker(Troubled(refusal: .notStored, problem: nil))
        try await running([http]) {
            let answer = try await fetch("/announce?\(exampleQuery)", from: http.address).text
            #expect(answer.contains("\(Refusal.notStored.text)") && answer.contains("retry in"))
        }
    }

    @Test
    func `a refusal that has nothing to do with the trouble keeps its words`() async throws {
        let http = try await tracker(Troubled(refusal: .infoHashDenied, problem: "disk full"))
        try await running([http]) {
            let answer = try await fetch("/announce?\(exampleQuery)", from: http.address).text
            #expect(answer.contains("\(Refusal.infoHashDenied.text)") && !answer.contains("disk full"))
        }
    }
}

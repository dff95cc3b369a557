import Client
import Foundation
import Primitives
import Settings
import Testing
import TrackerLogic
import Wire

/// Whole trackers as one: threads, sockets, disks and a bus, as an operator starts them.
@Suite("Cluster", .serialized)
struct ClusterServeTests {
    /// Three trackers of which one is master, and the others follow.
    private func three(_ cluster: TestCluster) async throws -> [RunningTracker] {
        var trackers: [RunningTracker] = []
        for id in 1...3 { trackers.append(try await cluster.start(id)) }
        for tracker in trackers {
            try await tracker.sees("all three follow the highest") { view in
                view.master == 3 && view.isServing && view.trackers.map(\.role) == ["slave", "slave", "master"]
            }
        }
        return trackers
    }

    @Test
    func `an announce to a slave is answered by that slave, and all trackers know of it`() async throws {
        let cluster = try TestCluster(TestCluster.patient)
        let trackers = try await three(cluster)
        let seeder = try await trackers[0].announce(infoHash(1), client: 1, left: 0)
        #expect(seeder.server == trackers[0].udp[0])
        #expect(seeder.seeders == 1)
        // The master and the other slave know of it, and have the same to tell.
        for (index, tracker) in trackers.enumerated().dropFirst() {
            let leecher = try await tracker.announce(infoHash(1), client: UInt16(1 + index))
            #expect(leecher.server == tracker.udp[0])
            #expect(leecher.seeders == 1)
            #expect(leecher.peers.contains { $0.address.port == 1001 })
        }
        let counts = try await trackers[0].scrape(infoHash(1))
        #expect(counts?.seeders == 1 && counts?.leechers == 2 && counts?.completed == 0)
        for tracker in trackers {
            let counters = try await tracker.console.status().report.node.counters
            #expect((counters.announces, counters.scrapes) == (1, tracker === trackers[0] ? 1 : 0))
        }
        for tracker in trackers {
            try await tracker.sees("all have applied the same") { view in
                view.commitIndex > 0 && view.trackers.allSatisfy { $0.lag == 0 && $0.agreement == "same" }
            }
        }
        // An entry of the master's own may come between two looks.
        try await eventually("they hold the same") {
            try await trackers[0].cluster().digest == trackers[1].cluster().digest
        }
        for tracker in trackers.reversed() { try await tracker.stop() }
    }

    @Test
    func `the master is cut off: another takes over, nothing answered is lost, and the old one comes back`()
        async throws
    {
        let cluster = try TestCluster()
        let trackers = try await three(cluster)
        _ = try await trackers[0].announce(infoHash(2), client: 1, left: 0)
        try await trackers[2].crash()
        // Asked at once, while nobody is master: the answer comes when somebody is.
        let reply = try await trackers[0].announce(infoHash(2), client: 2)
        #expect(reply.seeders == 1)
        #expect(reply.server == trackers[0].udp[0])
        try await trackers[0].sees("the next highest is master") { view in
            view.master == 2 && view.isServing && view.trackers.map(\.role) == ["slave", "master", "down"]
        }
        let back = try await cluster.start(3)
        // It fetches what it has missed, and is handed the role that it prefers.
        try await back.sees("it is master again") { $0.master == 3 && $0.isServing }
        let late = try await back.announce(infoHash(2), client: 3)
        #expect(late.seeders == 1 && late.leechers == 2)
        for tracker in [back, trackers[1], trackers[0]] { try await tracker.stop() }
    }

    @Test
    func `without a majority there is silence, and without its bus a tracker says nothing`() async throws {
        let cluster = try TestCluster()
        let trackers = try await three(cluster)
        // At the start nothing is lost, and it is said what is awaited.
        let fenced = "warning: clients get no answer until the bus works and this tracker has caught up"
        let awaited = """
            notice: clients get no answer yet: this tracker waits for the bus, and for a master that lets it in; a new \
            cluster begins when trackers 2 and 3 are there, too
            """
        #expect(trackers[0].log.all.count { $0 == awaited } == 1 && !trackers[0].log.all.contains(fenced))
        trackers[0].bus.lose("the cable is out. Put it back")
        try await trackers[0].sees("it is fenced") { $0.isFenced && !$0.isServing && $0.master == 0 }
        try await trackers[0].sees("it tells why") { $0.bus?.lastProblem == "the cable is out. Put it back" }
        try await eventually {
            trackers[0].log.all.contains("error: the bus is lost: the cable is out. Put it back")
        }
        try await eventually { trackers[0].log.all.count { $0 == fenced } == 1 }
        trackers[0].bus.mend()
        try await trackers[0].sees("it is back") { $0.master == 3 && $0.isServing }
        try await trackers[1].crash()
        try await trackers[2].crash()
        try await trackers[0].sees("one of three serves nobody") { !$0.isServing && $0.master == 0 }
        try await trackers[0].stop()
    }

    @Test
    func `any tracker tells about all, and with the majority gone clients and monitors are told so`() async throws {
        let cluster = try TestCluster([.members: ["1,2,3"], .http: ["127.0.0.1:0"]])
        let trackers = try await three(cluster)
        _ = try await trackers[0].announce(infoHash(4))
        let view = try await trackers[0].sees("reports of all, with the way there and back") { view in
            view.trackers.allSatisfy { $0.report?.host.isEmpty == false && $0.report?.durability == "process" }
                && view.trackers[0].report.map { $0.roundTripSeconds.median > 0 } == true
                && view.trackers[2].report.map { $0.commitSeconds.p99 > 0 } == true
                && view.trackers.allSatisfy { $0.report?.problem == "" && $0.report?.disk == "works" }
        }
        #expect(view.trackers.map { $0.report?.console } == trackers.map { "127.0.0.1:\($0.console.port)" })
        #expect(view.findings?.contains { $0.isSilence } == false)
        let api = trackers[0].console
        let place = try #require(SocketAddress(host: api.host, port: api.port))
        let page = try await fetch("/metrics", from: place).text
        for name in ["answer", "commit", "write", "bus_round_trip"] {
            #expect(page.contains("# TYPE swarmkeeper_\(name)_seconds histogram\n"), "\(name)")
        }
        #expect(page.contains("swarmkeeper_answer_seconds_count{route=\"announce\"} 1\n"))
        #expect(page.contains("\nswarmkeeper_datagrams_lost_total 0\n"))
        try await trackers[1].crash()
        try await trackers[2].crash()
        let words = "no majority (1 of 3): trackers 2 and 3 are not heard"
        try await trackers[0].sees("it says why") { $0.findings?.first?.text == words }
        let health = try await fetch("/healthz", from: place)
        #expect(health.status == 503 && health.text.hasSuffix("\n\(words)\n"))
        try await eventually {
            trackers[0].log.all.count { $0 == "warning: clients get no answer: \(words)" } == 1
        }
        let http = try #require(trackers[0].http)
        // Told when the patience of the listener ends.
        let connection = try await RawConnection(to: http)
        try await connection.send("GET /announce?\(exampleQuery) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        var answer = ""
        while !answer.contains("retry in"), let bytes = try await connection.receive(within: 30_000), !bytes.isEmpty {
            answer += String(decoding: bytes, as: UTF8.self)
        }
        #expect(answer.contains("tracker cannot answer now: \(words); try again later"))
        try await trackers[0].stop()
        #expect(!trackers[0].log.all.contains { $0.hasPrefix("error: a command") })
    }

    @Test
    func `what is no message for this tracker is left alone and counted`() async throws {
        let cluster = try TestCluster(TestCluster.patient)
        let trackers = try await three(cluster)
        cluster.wire.inject([
            [], Array("SKM".utf8), [UInt8](repeating: 0xFF, count: 400), Array("SKM".utf8) + [9, 9, 9],
        ])
        _ = try await trackers[1].announce(infoHash(3))
        try await trackers[1].sees("they are counted") { $0.messages?.malformed == 4 }
        let api = trackers[1].console
        let page = try await fetch("/metrics", from: try #require(SocketAddress(host: api.host, port: api.port))).text
        #expect(page.contains("\nswarmkeeper_cluster_messages_malformed_total 4\n"))
        #expect(page.contains("\nswarmkeeper_bus_up 1\n"))
        #expect(page.contains("\nswarmkeeper_cluster_master 3\n"))
        #expect(page.contains("\nswarmkeeper_cluster_tracker_up{tracker=\"1\"} 1\n"))
        try await eventually {
            trackers[1].log.all.contains { $0.contains("speaks version 9 of the cluster protocol") }
        }
        for tracker in trackers.reversed() { try await tracker.stop() }
    }

    @Test
    func `trackers of another version are not heard; each is named once, with both versions, and all is counted`()
        async throws
    {
        let cluster = try TestCluster(TestCluster.patient)
        let trackers = try await three(cluster)
        func message(_ id: UInt32, _ epoch: Epoch) -> [UInt8] {
            var bytes: [UInt8] = []
            ClusterMessage(
                sender: Life(id: id, incarnation: 99), destination: .all, epoch: epoch, body: .election
            ).encode(into: &bytes)
            bytes[3] = 4
            return bytes
        }
        // A candidate of an epoch beyond all others would depose the master, were it heard.
        let epoch = Epoch(round: 1_000_000, id: 7)
        let foreigner = BusFrameOrigin(Array("SKB".utf8) + [3] + [UInt8](repeating: 0xA, count: 60))
        for _ in 0..<50 {
            cluster.wire.inject([message(7, epoch), message(8, epoch)])
            trackers[1].bus.refuse([try #require(foreigner)])
        }
        _ = try await trackers[1].announce(infoHash(3))
        let view = try await trackers[1].sees("all were counted") { $0.messages?.otherVersion == 150 }
        #expect(view.master == 3 && view.epoch.round < 1_000_000 && view.trackers.map(\.id) == [1, 2, 3])
        func told() -> [String] { trackers[1].log.all.filter { $0.contains("run the same release") } }
        // It is counted first, then told.
        try await eventually { told().count >= 3 }
        #expect(
            told().sorted() == [
                "error: a message on the bus is left alone: tracker 7 speaks version 4 of the cluster protocol, this "
                    + "one version 3; run the same release on all trackers of a cluster",
                "error: a message on the bus is left alone: tracker 8 speaks version 4 of the cluster protocol, this "
                    + "one version 3; run the same release on all trackers of a cluster",
                "error: a tracker on the bus is not heard: tracker session a0a0a0a0a0a0a0a speaks version 3 of the "
                    + "bus, this one version 1; run the same release on all trackers of a cluster",
            ])
        let api = trackers[1].console
        let page = try await fetch("/metrics", from: try #require(SocketAddress(host: api.host, port: api.port))).text
        #expect(page.contains("\nswarmkeeper_cluster_messages_other_version_total 150\n"))
        // However many there are, the log stays short.
        cluster.wire.inject((100..<1000).map { message($0, epoch) })
        try await trackers[1].sees("these, too") { $0.messages?.otherVersion == 1050 }
        try await eventually { told().count >= 64 }
        _ = try await trackers[1].announce(infoHash(3), event: .none)
        #expect(told().count == 64)
        for tracker in trackers.reversed() { try await tracker.stop() }
    }

    @Test
    func `a tracker whose record is damaged says so, and joins as a newcomer that fetches everything`() async throws {
        let cluster = try TestCluster()
        let trackers = try await three(cluster)
        _ = try await trackers[0].announce(infoHash(4), client: 1, left: 0)
        try await trackers[0].stop()
        let path = cluster.directory.path("1/tracker.sqlite")
        try Data(repeating: 0x55, count: 40_000).write(to: URL(filePath: path))
        let back = try await cluster.start(1)
        #expect(back.log.all.contains { $0.hasPrefix("error: ") && $0.contains("joins its cluster as a newcomer") })
        #expect(try Data(contentsOf: URL(filePath: path + ".unreadable-1")).first == 0x55)
        try await back.sees("it has everything") { $0.isServing && $0.trackers.allSatisfy(\.isWhole) }
        #expect(try await back.scrape(infoHash(4))?.seeders == 1)
        for tracker in [trackers[2], trackers[1], back] { try await tracker.stop() }
    }

    @Test
    func `trackers without members or numbers find each other, are numbered, and go on down to the last`() async throws
    {
        let cluster = try TestCluster([:])
        // Nobody has given them a number; each has a record of its own.
        func start(_ place: Int) async throws -> RunningTracker {
            var configuration = try cluster.configuration(place)
            configuration.node.id = 0
            return try await RunningTracker(configuration, on: cluster.wire)
        }
        let first = try await start(1)
        try await first.sees("it is alone, and master") { $0.id == 1 && $0.master == 1 && $0.isServing }
        let second = try await start(2)
        try await second.sees("it was given a number") { $0.id == 2 && $0.isServing && $0.trackers.count == 2 }
        _ = try await second.announce(infoHash(5), client: 1, left: 0)
        try await first.crash()
        try await second.sees("it goes on alone") { $0.master == 2 && $0.isServing }
        #expect(try await second.announce(infoHash(5), client: 2).seeders == 1)
        try await second.stop()
    }

    @Test
    func `the role is handed over on demand, and members change, whichever tracker is asked`() async throws {
        let cluster = try TestCluster(TestCluster.patient.merging([.election: ["next"]]) { $1 })
        var trackers: [RunningTracker] = []
        for id in 1...3 { trackers.append(try await cluster.start(id)) }
        let spare = try await cluster.start(4, [.spare: ["true"]])
        trackers.append(spare)
        let view = try await spare.sees("all four follow") { view in
            view.isServing && view.trackers.count(where: { $0.role == "slave" }) == 3
        }
        let master = trackers[Int(view.master) - 1]
        let slave = try #require(trackers.first { $0 !== master && $0 !== spare })
        let successor = try await slave.cluster().id
        // A slave hands the order to the master, and tells what came of it.
        #expect(try await slave.console.changeMembers(adding: 4, removing: nil) == [1, 2, 3, 4])
        await #expect(throws: TrackerClientError.refused("tracker 9 does not follow, or is not in sync yet")) {
            try await slave.console.changeMembers(adding: 9, removing: nil)
        }
        // Whoever is master already need not become it.
        #expect(try await slave.console.handOver(to: view.master))
        #expect(try await master.console.handOver(to: view.master))
        #expect(try await master.console.changeMembers(adding: 4, removing: nil) == [1, 2, 3, 4])
        await #expect(throws: TrackerClientError.refused("tracker 9 does not follow, or is not in sync yet")) {
            try await master.console.changeMembers(adding: 9, removing: nil)
        }
        #expect(try await spare.console.handOver(to: successor) == false)
        try await slave.sees("it is master") { $0.master == successor && $0.isServing }
        #expect(try await slave.console.changeMembers(adding: nil, removing: 4) == [1, 2, 3])
        #expect(try await slave.cluster().voters == [1, 2, 3])
        for tracker in trackers.reversed() { try await tracker.stop() }
    }

    @Test
    func `a page of another site may not give orders`() async throws {
        let cluster = try TestCluster([:])
        let tracker = try await cluster.start(1)
        let console = tracker.console
        let address = try #require(SocketAddress(host: console.host, port: console.port))
        let place = "Host: 127.0.0.1:\(console.port)"
        func order(_ name: String, _ body: String, _ headers: [String] = []) async throws -> Int {
            try await fetch(
                "/api/v1/cluster/\(name)", from: address, headers: [place] + headers, method: "POST", body: body
            ).status
        }
        let wish = "{\"to\":2}"
        #expect(try await order("handover", wish, ["Origin: http://evil.example"]) == 403)
        // It has joined nobody yet, and may not know who has an account.
        #expect(try await order("handover", wish, ["Origin: http://127.0.0.1:\(console.port)"]) == 503)
        try await tracker.stop()
    }
}

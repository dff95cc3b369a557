import Client
import Foundation
import Testing

/// What `tracker doctor` makes of what it is told.
@Suite("Doctor")
struct CheckupTests {
    private static func report(
        host: String, version: String = "1", problem: String = "", disk: String = "works", buffer: Int = 8,
        clock: Double = 0, durability: String = "disk", files: Int = 10
    ) -> String {
        let none = "{\"median\":0,\"p99\":0}"
        return """
            {"version":"\(version)","host":"\(host)","clients":"u","console":"c","problem":"\(problem)",
            "durability":"\(durability)","disk":"\(disk)","announcesPerSecond":1,"answerSeconds":\(none),
            "commitSeconds":\(none),"writeSeconds":\(none),"roundTripSeconds":\(none),"openFiles":\(files),
            "maxFiles":100,"receiveBufferBytes":\(buffer),"wantedReceiveBufferBytes":8,"lostDatagrams":0,
            "clockDifferenceSeconds":\(clock)}
            """
    }

    private static func view(_ id: Int, master: Int = 2, findings: String = "", _ trackers: [(Int, String, String)])
        throws -> ClusterView
    {
        let views = trackers.map { number, role, report in
            """
            {"id":\(number),"incarnation":"0","isThis":\(number == id),"role":"\(role)","epoch":{"round":1,"id":2},
            "silentSeconds":0,"commitIndex":7,"lag":0,"agreement":"same","isWhole":true,"hasVote":true,
            "report":\(report)}
            """
        }
        let json = """
            {"id":\(id),"mode":"quorum","epoch":{"round":1,"id":2},"master":\(master),"isServing":true,"isFenced":false,
            "voters":[1,2],"commitIndex":7,"digest":"0","trackers":[\(views.joined(separator: ","))],
            "findings":[\(findings)]}
            """
        return try JSONDecoder().decode(ClusterView.self, from: Data(json.utf8))
    }

    @Test
    func `one that is asked tells about all, and nothing is wrong`() throws {
        let view = try Self.view(
            1, [(1, "slave", Self.report(host: "one")), (2, "master", Self.report(host: "two", clock: 0.5))])
        let checkup = Checkup([.init(console: "c", view: view)])
        #expect(checkup.isWell)
        #expect(checkup.patients.map(\.id) == [1, 2])
        #expect(checkup.patients.map(\.wasAsked) == [true, false])
        #expect(checkup.patients.map { $0.report?.host } == ["one", "two"])
    }

    @Test
    func `what is wrong is said, with whom it is about`() throws {
        let finding = "{\"code\":\"otherKey\",\"isSilence\":false,\"text\":\"another key\"}"
        let other = Self.report(
            host: "two", version: "2", problem: "no majority", disk: "full", buffer: 4096, clock: -7.25,
            durability: "process", files: 90)
        let view = try Self.view(
            1, findings: finding, [(1, "slave", Self.report(host: "one", buffer: 7)), (2, "master", other)])
        let checkup = Checkup([.init(console: "c", view: view), .init(console: "d", failure: "nobody is there")])
        #expect(
            checkup.complaints.map { "\($0.tracker ?? 0): \($0.text)" } == [
                "0: the console at d could not be asked: nobody is there", "1: another key",
                "1: its receive buffer has 0 KiB of 0; raise net.core.rmem_max, or let it have CAP_NET_ADMIN",
                "2: no majority", "2: its disk: full",
                "2: its clock differs by -7.3 s; run chrony or another NTP client",
                "2: it has 90 files open of 100; raise LimitNOFILE",
                "0: not the same release: 1 at tracker 1, 2 at tracker 2",
                "0: not the same durability: disk at tracker 1, process at tracker 2",
            ])
    }

    @Test
    func `trackers that do not hear each other are found when both are asked`() throws {
        let first = try Self.view(1, master: 1, [(1, "master", Self.report(host: "one"))])
        let second = try Self.view(
            2, master: 2, [(1, "down", Self.report(host: "one")), (2, "master", Self.report(host: "two"))])
        let checkup = Checkup([.init(console: "a", view: first), .init(console: "b", view: second)])
        #expect(checkup.patients.map(\.role) == ["master", "master"])
        #expect(
            checkup.complaints.map { "\($0.tracker ?? 0): \($0.text)" } == [
                "1: it does not hear tracker 2, which answers on its console",
                "1: it has not heard tracker 2, which has a vote, since it found the bus",
                "2: it does not hear tracker 1, which answers on its console",
                "0: there is more than one master: 1, 2",
            ])
    }
}

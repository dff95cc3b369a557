// What the timeline is made of, and how it is streamed.

import Foundation
import Primitives
import Server
import Testing
import TrackerLogic
import Web
import Wire

@Suite("Console: transitions")
struct TransitionTests {
    private func transition(_ kind: Transition.Kind = .change, _ text: String = "x") -> Transition {
        Transition(at: WallTime(milliseconds: 1), tracker: 1, kind: kind, text: text)
    }

    @Test func `the oldest go, and commits push out nothing but commits`() {
        let log = TransitionLog(incarnation: 1)
        log.append(transition(.master, "the first"))
        for _ in 0..<5_000 { log.append(transition(.commit)) }
        #expect(log.after(0, atMost: 1).map(\.text) == ["the first"])
        #expect(log.after(0, atMost: .max).count == 1_001)
        for _ in 0..<TransitionLog.capacity { log.append(transition()) }
        let all = log.after(0, atMost: .max)
        #expect(all.count == TransitionLog.capacity)
        #expect(all.map(\.number) == all.map(\.number).sorted())
        #expect(all.last?.number == 15_001)
        #expect(log.after(15_000, atMost: 10).map(\.number) == [15_001])
        #expect(log.after(15_001, atMost: 10).isEmpty)
        #expect(log.after(all[10].number, atMost: 2).map(\.number) == all[11...12].map(\.number))
    }

    // MARK: - The stream

    /// Reads a stream until it has what is awaited, or all patience has gone.
    private func read(
        _ headers: [String] = [], from address: Primitives.SocketAddress, until awaited: String
    ) async throws -> String {
        let connection = try await RawConnection(to: address)
        try await connection.send(
            "GET /api/v1/events HTTP/1.1\r\n\((["Host: localhost"] + headers).joined(separator: "\r\n"))\r\n\r\n")
        var text = ""
        let end = ContinuousClock.now.advanced(by: Waiting.most)
        while !text.contains(awaited), ContinuousClock.now < end {
            guard let bytes = try await connection.receive() else { break }
            text += String(decoding: bytes, as: UTF8.self)
        }
        return text
    }

    private func withStream(
        _ log: TransitionLog, _ body: @escaping @Sendable (Primitives.SocketAddress) async throws -> Void
    ) async throws {
        struct Status: StatusProvider {
            func status() async -> NodeStatus? { MetricsNodeTests.status() }
        }
        var server = APIServer(status: Status(), cluster: StillCluster(), tally: HTTPTally()) {
            ProcessFacts(version: "1", processID: 1, startedAt: WallTime(milliseconds: 0), listeners: [])
        }
        server.parts.events = (log, History())
        var options = APIServer.Options()
        options.logger = quiet
        let service = try await server.listen(on: loopback, options)
        let (_, stop) = try await running([service]) { try await body(service.address) }
        // A stream does not hold up the end.
        #expect(stop < .seconds(5))
    }

    @Test func `a reader gets what was, the state, and then each transition as it comes`() async throws {
        let log = TransitionLog(incarnation: 0xAB)
        log.append(transition(.master, "tracker 1 is \"master\"\n<b>"))
        try await withStream(log) { address in
            let first = try await read(from: address, until: "event: state")
            #expect(first.contains("Content-Type: text/event-stream"))
            let event =
                "event: transition\nid: 00000000000000ab-1\ndata: {\"at\":\"1970-01-01T00:00:00.001Z\",\"causes\":[],"
            #expect(first.contains(event))
            // One line, whatever the text is.
            #expect(first.contains("\"text\":\"tracker 1 is \\\"master\\\"\\n<b>\""))
            #expect(first.contains("\"name\":\"still\""))
            log.append(transition(.follow, "later"))
            let second = try await read(
                ["Last-Event-ID: 00000000000000ab-1"], from: address, until: "later")
            #expect(!second.contains("ab-1\n"))
            // Of another life, all is news.
            let third = try await read(["Last-Event-ID: 00000000000000cd-2"], from: address, until: "later")
            #expect(third.contains("ab-1\n"))
        }
    }

    @Test func `a reader of HTTP 1_0 gets no chunks`() async throws {
        let log = TransitionLog(incarnation: 1)
        log.append(transition(.master, "the first"))
        try await withStream(log) { address in
            let connection = try await RawConnection(to: address)
            try await connection.send("GET /api/v1/events HTTP/1.0\r\nHost: localhost\r\n\r\n")
            var text = ""
            while !text.contains("event: state"), let bytes = try await connection.receive(), !bytes.isEmpty {
                text += String(decoding: bytes, as: UTF8.self)
            }
            let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
            #expect(parts.count == 2)
            #expect(parts[0].lowercased().contains("connection: close"))
            #expect(!parts[0].lowercased().contains("transfer-encoding"))
            #expect(parts[1].hasPrefix("retry: 1000\n\n"))
            #expect(!parts[1].contains("\r"))
        }
    }

    @Test func `those without an account hold so many streams, and the next is told why`() async throws {
        try await withStream(TransitionLog(incarnation: 1)) { address in
            var held: [RawConnection] = []
            for _ in 0..<32 {
                let connection = try await RawConnection(to: address)
                try await connection.send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try await connection.response(withBody: false).status == 200)
                held.append(connection)
            }
            let refusal = try await fetch("/api/v1/events", from: address)
            #expect(refusal.status == 429)
            #expect(refusal.text.contains("reads 32 streams of events already; close a page"))
            #expect(refusal["retry-after"] == "10")
            held.removeAll()
            try await eventually {
                let connection = try await RawConnection(to: address)
                try await connection.send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return try await connection.response(withBody: false).status == 200
            }
        }
    }

    // MARK: - Causes

    private func recorded(_ body: (inout TransitionRecorder) -> Void) -> [Transition] {
        let log = TransitionLog(incarnation: 1)
        var recorder = TransitionRecorder(log: log, id: 2)
        body(&recorder)
        return log.after(0, atMost: .max)
    }

    private let now = WallTime(milliseconds: 1_000_000)

    @Test func `a failover is told with what led to it`() {
        let one = Epoch(round: 1, id: 3)
        let two = Epoch(round: 2, id: 2)
        let all = recorded { recorder in
            recorder.observed(.follows(master: 3, one), at: now)
            recorder.observed(.trackerDown(3), at: now)
            recorder.observed(.suspects(one), at: now)
            recorder.observed(.stands(two), at: now)
            recorder.observed(.becameMaster(two), at: now)
            recorder.observed(.trackerUp(3), at: now)
        }
        #expect(all.map(\.kind) == [.master, .follow, .fault, .election, .vote, .master, .mended])
        #expect(all.map(\.tracker) == [3, 2, 3, 2, 2, 2, 3])
        #expect(all.map(\.causes) == [[], [1], [], [3], [4], [5], [3]])
    }

    @Test func `a cut is the cause of what comes of it, and its end of what is mended`() {
        let epoch = Epoch(round: 1, id: 2)
        let all = recorded { recorder in
            recorder.observed(.becameMaster(epoch), at: now)
            recorder.cutChanged(.bus, begins: true, at: now)
            recorder.observed(.steppedDown(epoch, .busLost), at: now)
            recorder.observed(.fenced, at: now)
            recorder.cutChanged(.bus, begins: false, at: now)
        }
        #expect(all.map(\.kind) == [.master, .fault, .stepDown, .fault, .mended])
        #expect(all[2].causes == [2])
        #expect(all[3].causes == [2])
        #expect(all[4].causes == [2])
    }

    @Test func `what was long ago is no cause`() {
        let later = WallTime(milliseconds: now.milliseconds + 61_000)
        let all = recorded { recorder in
            recorder.observed(.suspects(Epoch(round: 1, id: 3)), at: now)
            recorder.observed(.stands(Epoch(round: 2, id: 2)), at: later)
        }
        #expect(all.last?.causes == [])
    }

    @Test func `commits are told as a rate`() {
        let all = recorded { recorder in
            recorder.observed(.becameMaster(Epoch(round: 1, id: 2)), at: now)
            for second in 0...25 {
                recorder.reached(
                    UInt64(100 + second), at: WallTime(milliseconds: now.milliseconds + Int64(second) * 1000))
            }
        }
        #expect(all.dropFirst().map(\.kind) == [.commit, .commit])
        #expect(all.dropFirst().map(\.count) == [10, 10])
        #expect(all.last?.text == "10 entries were decided in 10 s")
    }
}

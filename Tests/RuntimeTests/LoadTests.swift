// The load generator: its requests, its judgement, its books. Whole runs: `LoadRunTests`.

import Foundation
import LoadGenerator
import Primitives
import Testing
import Wire

private let tracker = SocketAddress(ipv4: 0x7F00_0001, port: 6969)

private func options(_ change: (inout LoadOptions) -> Void = { _ in }) -> LoadOptions {
    var options = LoadOptions(target: tracker)
    change(&options)
    return options
}

private func written(_ count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0xEE, count: count)
    let used = bytes.withUnsafeMutableBytes(fill)
    #expect(used == count)
    return bytes
}

@Suite("Load: requests")
struct LoadRequestTests {
    @Test func `a connect is the magic, action 0 and the transaction id`() {
        let bytes = written(16) { LoadRequests(options()).writeConnect(0x0102_0304, into: $0) }
        #expect(hexadecimal(bytes) == "00000417271019800000000001020304")
    }

    @Test func `an announce has every field where BEP 15 puts it`() throws {
        let hash = try #require(Bytes20((0..<20).map { UInt8($0) }))
        let peer = try #require(Bytes20((20..<40).map { UInt8($0) }))
        let request = LoadRequests.Announce(
            connection: 0x1112_1314_1516_1718, transaction: 0x2122_2324, infoHash: hash, peerID: peer,
            left: 0x3132_3334_3536_3738, event: 2, port: 0x4142)
        let bytes = written(98) { LoadRequests(options { $0.numWant = -1 }).writeAnnounce(request, into: $0) }
        #expect(hexadecimal(bytes[..<16]) == "11121314151617180000000121222324")
        #expect(Array(bytes[16..<36]) == hash.bytes)
        #expect(Array(bytes[36..<56]) == peer.bytes)
        #expect(hexadecimal(bytes[56..<80]) == "000000000000000031323334353637380000000000000000")
        #expect(hexadecimal(bytes[80..<88]) == "0000000200000000")
        #expect(hexadecimal(bytes[92...]) == "ffffffff4142")
    }

    @Test func `a scrape has its torrents in order, beginning again after the last`() {
        let options = options {
            $0.torrents = 3
            $0.scrapeHashes = 2
        }
        let population = LoadPopulation(options)
        let bytes = written(56) {
            LoadRequests(options).writeScrape(
                connection: 1, transaction: 0x0A0B_0C0D, first: 2, population, into: $0)
        }
        #expect(hexadecimal(bytes[..<16]) == "0000000000000001000000020a0b0c0d")
        #expect(Array(bytes[16..<36]) == population.infoHash(2).bytes)
        #expect(Array(bytes[36...]) == population.infoHash(0).bytes)
    }
}

@Suite("Load: who is who")
struct LoadPopulationTests {
    @Test func `torrents are named by the seed, as Benchmarks/run names them`() {
        // From the Python of Benchmarks/run.
        let population = LoadPopulation(options())
        #expect(population.infoHash(0).description == "35e5b3cb6c36152be0e7ed3e901f5830d9c2b616")
        #expect(population.infoHash(1).description == "ff0e76924354606d24faf7e48b19ea9d067f6e9e")
        #expect(LoadPopulation(options { $0.seed = 2 }).infoHash(0) != population.infoHash(0))
    }

    @Test func `no two peers have the same address and port, and none a port of the system`() {
        let options = options {
            $0.sources = 3
            $0.peers = 3 * LoadPopulation.portsPerSource
        }
        let population = LoadPopulation(options)
        var seen: Set<UInt32> = []
        for peer in 0..<options.peers {
            let port = population.port(ofPeer: peer)
            #expect(port >= 1024)
            seen.insert(UInt32(population.source(ofPeer: peer)) << 16 | UInt32(port))
        }
        #expect(seen.count == options.peers)
    }

    @Test func `sources are loopback addresses that end neither in 0 nor in 255`() {
        let sources = LoadPopulation(options { $0.sources = 1000 }).sources
        #expect(Set(sources).count == 1000)
        #expect(sources.first?.host == "127.1.0.1")
        #expect(sources.allSatisfy { $0.isLoopback && !(Set([0, 255]).contains($0.ipv4 & 255)) })
        #expect(LoadPopulation(options { $0.sources = 1 }).sources == [.unspecified])
    }

    @Test func `every swarm gets its part of the peers`() {
        let population = LoadPopulation(
            options {
                $0.torrents = 7
                $0.peers = 70
            })
        let sizes = (0..<70).reduce(into: [Int: Int]()) { $0[population.torrent(ofPeer: $1), default: 0] += 1 }
        #expect(sizes == Dictionary(uniqueKeysWithValues: (0..<7).map { ($0, 10) }))
    }

    @Test func `peer ids begin like a client's and differ`() {
        let population = LoadPopulation(options())
        let ids = (0..<1000).map { population.peerID($0) }
        #expect(Set(ids).count == 1000)
        #expect(ids.allSatisfy { $0.bytes.prefix(8).elementsEqual(PeerID.ownPrefix.utf8) })
    }

    @Test func `a peer starts first, then says nothing new, completes once, and stops`() {
        let options = options { $0.seederShare = 0 }
        let population = LoadPopulation(options)
        var states = LoadPeerStates(options, population)
        let (stops, completes, goesOn) = (0 as UInt64, UInt64(0.015 * 4_294_967_296), UInt64(UInt32.max))
        var told: [UInt32] = []
        var left: [UInt64] = []
        for chance in [stops, goesOn, completes, completes, goesOn, stops, goesOn] {
            let next = states.next(0, chance: chance, population)
            told.append(next.event)
            left.append(next.left)
        }
        #expect(told == [2, 0, 1, 0, 0, 3, 2])
        let whole = LoadPeerStates.left
        #expect(left == [whole, whole, 0, 0, 0, 0, whole])
    }

    @Test func `the share of seeders is as asked, and a filled swarm has no new starters`() {
        let options = options {
            $0.seederShare = 0.25
            $0.isFilled = true
        }
        let population = LoadPopulation(options)
        let seeders = (0..<100_000).count { population.beginsAsSeeder($0) }
        #expect((24_000...26_000).contains(seeders))
        var states = LoadPeerStates(options, population)
        #expect(states.next(1, chance: UInt64(UInt32.max), population).event == 0)
    }
}

@Suite("Load: requests under way")
struct LoadFlightTests {
    private func flight(_ number: UInt32, at nanoseconds: Int64 = 0) -> LoadFlight {
        LoadFlight(
            kind: .announce, isMeasured: true, attempts: 0, number: number,
            start: Instant(nanoseconds: nanoseconds))
    }

    @Test func `an answer finds its request once`() {
        var flights = LoadFlights(capacity: 2)
        let first = flights.depart(flight(1))
        let second = flights.depart(flight(2))
        #expect(flights.isFull)
        #expect(flights.arrive(second) == .expected(flight(2)))
        #expect(flights.arrive(second) == .late)
        #expect(flights.arrive(first) == .expected(flight(1)))
        #expect(flights.count == 0)
    }

    @Test func `a late answer does not take the place of the slot's next request`() {
        var flights = LoadFlights(capacity: 1)
        let old = flights.depart(flight(1, at: 5))
        var budget = 10
        #expect(flights.expire(before: Instant(nanoseconds: 6), budget: &budget) == flight(1, at: 5))
        let new = flights.depart(flight(2))
        #expect(flights.arrive(old) == .late)
        #expect(flights.arrive(new) == .expected(flight(2)))
    }

    @Test func `numbers that were never given out are unknown`() {
        var flights = LoadFlights(capacity: 1)
        let id = flights.depart(flight(1))
        #expect(flights.arrive(0) == .unknown)
        #expect(flights.arrive(id | 1) == .unknown)  // no such slot
        #expect(flights.arrive(id &+ 1 << 16) == .unknown)  // a use to come
        #expect(flights.count == 1)
    }

    @Test func `a sweep looks at no more slots than its budget, and goes on where it ended`() {
        var flights = LoadFlights(capacity: 10)
        for number in 0..<10 { _ = flights.depart(flight(UInt32(number))) }
        var expired: [UInt32] = []
        for _ in 0..<5 {
            var budget = 3
            while let flight = flights.expire(before: Instant(nanoseconds: 1), budget: &budget) {
                expired.append(flight.number)
            }
            #expect(budget == 0)
        }
        #expect(expired.sorted() == Array(0..<10))
    }
}

@Suite("Load: judgement")
struct LoadJudgeTests {
    private static let asker = SocketAddress(ipv4: 0x7F01_0001, port: 5000)

    private func verdict(
        _ action: UInt32, _ body: [UInt8], to kind: LoadFlight.Kind = .announce, numWant: Int32 = 2
    ) -> LoadVerdict {
        var reply: [UInt8] = []
        reply.append(bigEndian: action)
        reply.append(bigEndian: 77 as UInt32)
        reply += body
        return LoadJudge(options { $0.numWant = numWant }).judge(reply.span.bytes, kind, asker: Self.asker)
    }

    private let header = [UInt8](repeating: 0, count: 12)
    private let stranger: [UInt8] = [127, 1, 0, 2, 0x13, 0x88]
    private let own: [UInt8] = [127, 1, 0, 1, 0x13, 0x88]

    @Test func `good answers are good`() {
        #expect(verdict(0, [0, 0, 0, 0, 0, 0, 1, 2], to: .connect) == .connected(258))
        #expect(verdict(1, header) == .announced(peers: 0, flaws: .init()))
        #expect(verdict(1, header + stranger + stranger) == .announced(peers: 2, flaws: .init()))
        #expect(verdict(2, Array(repeating: 0, count: 48), to: .scrape) == .scraped)
        #expect(verdict(3, Array("no".utf8)) == .refused)
    }

    @Test func `bad answers are told apart`() {
        #expect(verdict(0, header) == .wrongAction)
        #expect(verdict(9, header) == .wrongAction)
        #expect(verdict(1, []) == .wrongSize)
        #expect(verdict(1, header + [1]) == .wrongSize)
        #expect(verdict(2, header, to: .scrape) == .wrongSize)
        #expect(verdict(0, header, to: .connect) == .wrongSize)
        let many = header + stranger + stranger + stranger
        #expect(verdict(1, many) == .announced(peers: 3, flaws: .init(isTooLong: true)))
        #expect(verdict(1, many, numWant: -1) == .announced(peers: 3, flaws: .init()))
        #expect(verdict(1, header + stranger + own) == .announced(peers: 2, flaws: .init(namesAsker: true)))
    }

    @Test func `IPv6 lists have 18 bytes a peer`() throws {
        let asker = try #require(SocketAddress(host: "2001:db8::7", port: 5000))
        let judge = LoadJudge(LoadOptions(target: SocketAddress(high: 0, low: 1, port: 6969)))
        var reply: [UInt8] = []
        reply.append(bigEndian: 1 as UInt32)
        reply += [UInt8](repeating: 0, count: 16)
        reply.append(bigEndian: asker.high)
        reply.append(bigEndian: asker.low)
        reply.append(bigEndian: asker.port)
        #expect(
            judge.judge(reply.span.bytes, .announce, asker: asker)
                == .announced(peers: 1, flaws: .init(namesAsker: true)))
        reply[19] = 1
        reply[37] ^= 1
        #expect(judge.judge(reply.span.bytes, .announce, asker: asker) == .announced(peers: 1, flaws: .init()))
    }
}

@Suite("Load: options")
struct LoadOptionsTests {
    @Test(arguments: [
        ("udp://127.0.0.1:6969/announce", "127.0.0.1:6969"), ("127.0.0.1:80", "127.0.0.1:80"),
        ("127.0.0.1", "127.0.0.1:6969"), ("udp://[::1]:7000", "[::1]:7000"), ("::1", "[::1]:6969"),
        ("UDP://[2001:db8::1]/announce", "[2001:db8::1]:6969"),
    ])
    func `addresses are read`(_ text: String, _ address: String) throws {
        #expect(try LoadOptions.target(text).description == address)
    }

    @Test(arguments: ["", "udp://", "udp://:1", "127.0.0.1:0", "127.0.0.1:65536", "[::1", "[::1]x", "http://a:1"])
    func `anything else is refused with an example or a reason`(_ text: String) {
        let error = #expect(throws: LoadError.self) { try LoadOptions.target(text) }
        #expect(error?.description.contains("udp://") == true)
    }

    @Test func `what cannot be done is refused before anything is sent`() {
        let elsewhere = SocketAddress(ipv4: 0xC000_0201, port: 6969)
        #expect(LoadOptions(target: elsewhere).sources == 1)
        let wrong: [LoadOptions] = [
            options { $0.target.port = 0 }, options { $0.torrents = 0 }, options { $0.peers = 64 * 64_512 + 1 },
            options { $0.pace = .closed(inFlight: 0) }, options { $0.duration = .zero },
            options { $0.announceShare = 1.5 }, options { $0.scrapeHashes = 75 },
            options {
                $0.work = .fill
                $0.pace = .open(rate: 5)
            },
            options {
                $0.target = elsewhere
                $0.sources = 2
            },
        ]
        for options in wrong { #expect(throws: LoadError.self) { try options.validate() } }
        #expect(throws: Never.self) { try options().validate() }
    }
}

@Suite("Load: report")
struct LoadReportTests {
    private var report: LoadReport {
        var report = LoadReport()
        (report.mode, report.target, report.inFlight) = ("closed", "127.0.0.1:6969", 256)
        (report.torrents, report.peers, report.sources) = (1000, 100_000, 64)
        (report.sent, report.answered, report.lost, report.errors) = (1_234_567, 1_234_560, 6, 1)
        report.firstError = "bad connection id"
        report.wrong.ownEndpoint = 1200
        report.wrong.size = 3
        report.seconds = 5.004
        report.repliesPerSecond = 246_714.6
        (report.bytesInPerSecond, report.bytesOutPerSecond) = (78_123_456, 24_180_000)
        report.latencyMicroseconds.p50 = 911.4
        report.latencyMicroseconds.p90 = 999.4
        report.latencyMicroseconds.p99 = 1300
        report.latencyMicroseconds.p999 = 20_040
        report.latencyMicroseconds.max = 1_500_000
        (report.meanPeersPerReply, report.generatorLoad) = (49.96, 0.97)
        return report
    }

    @Test func `people read a table`() {
        #expect(
            report.description == """
                UDP load on 127.0.0.1:6969: 256 requests in flight, 1,000 torrents, 100,000 peers, 64 client addresses

                  sent            1,234,567
                  answered        1,234,560 in 5.00 s: 246,715 a second
                  lost            6
                  errors          1, first "bad connection id"
                  wrong           1,203: size 3, the asker in its own list 1,200
                  latency         p50 911 µs, p90 999 µs, p99 1.30 ms, p99.9 20.04 ms, max 1.50 s
                  traffic         24.2 MB/s there, 78.1 MB/s back
                  peers a reply   50.0
                  generator       97 % busy: the tracker may be able to do more
                """)
        #expect(!report.isClean)
    }

    @Test func `programs read JSON`() throws {
        let data = try JSONEncoder().encode(report)
        #expect(try JSONDecoder().decode(LoadReport.self, from: data) == report)
    }
}

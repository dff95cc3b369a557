import Datagrams
import Primitives
import Server
import Testing
import TrackerLogic
import Web
import Wire

/// Datagrams that the kernel dropped: from the sockets to the metrics and the diagnosis, for as long as they matter.
@Suite("Drops")
struct DropTests {
    private static let start = Instant(nanoseconds: 7_000_000_000)

    /// Sends more to a socket than fits into its buffer.
    ///
    /// - Returns: how many were lost.
    private static func flood(_ sockets: DatagramSockets) throws -> UInt64 {
        let before = sockets.lostByKernel
        let client = try DatagramSocket(bind: loopback)
        var batch = DatagramBatch()
        for _ in 0..<200 { batch.append(Array(repeating: 0, count: 1000), remote: sockets.sockets[0].address) }
        client.send(batch)
        return sockets.lostByKernel - before
    }

    private static func sockets() throws -> DatagramSockets {
        var options = DatagramSocket.Options()
        options.receiveBufferByteCount = 4096
        return try DatagramSockets(bind: [loopback], options: options)
    }

    private static func metrics(_ figures: NodeFigures) -> String {
        var text = PrometheusText()
        figures.write(into: &text)
        return text.text
    }

    private static func findings(_ figures: NodeFigures) -> [Finding] {
        var well = DiagnosisTests.Case()
        (well.cluster.isServing, well.cluster.master) = (true, 3)
        return Diagnosis.findings(
            well.node, well.cluster, bus: well.bus, tally: well.tally, lostDatagrams: figures.lostLately)
    }

    @Test
    func `what the sockets lost is in the metrics and in the diagnosis, which says it for five minutes`() throws {
        let sockets = try Self.sockets()
        var tally = LoopTally()
        tally.look(at: sockets, now: Self.start)
        #expect(Self.metrics(tally.figures).contains("\nswarmkeeper_datagrams_lost_total 0\n"))
        #expect(Self.findings(tally.figures) == [])

        let lost = try Self.flood(sockets)
        #expect(lost > 0)
        tally.look(at: sockets, now: Self.start + .seconds(1))
        #expect(tally.figures.lostByKernel == lost)
        #expect(Self.metrics(tally.figures).contains("\nswarmkeeper_datagrams_lost_total \(lost)\n"))
        let words =
            "the kernel dropped \(lost) datagrams of clients in the last five minutes: the receive buffer was full"
        #expect(Self.findings(tally.figures).map(\.text) == [words])
        #expect(Self.findings(tally.figures).map(\.code) == [.kernelDrops])

        // Looked at each second, as the loop does.
        for second in 2...300 as ClosedRange<Int64> { tally.look(at: sockets, now: Self.start + .seconds(second)) }
        #expect(Self.findings(tally.figures).map(\.text) == [words])
        for second in 301...320 as ClosedRange<Int64> { tally.look(at: sockets, now: Self.start + .seconds(second)) }
        #expect(Self.findings(tally.figures) == [])
        // The total of the metrics stays, for monitors take their own differences.
        #expect(Self.metrics(tally.figures).contains("\nswarmkeeper_datagrams_lost_total \(lost)\n"))

        let more = try Self.flood(sockets)
        tally.look(at: sockets, now: Self.start + .seconds(321))
        #expect(tally.figures.lostLately == more && tally.figures.lostByKernel == lost + more)
    }

    @Test
    func `drops from before the first look count`() throws {
        let sockets = try Self.sockets()
        let lost = try Self.flood(sockets)
        var tally = LoopTally()
        tally.look(at: sockets, now: Self.start)
        #expect(lost > 0 && tally.figures.lostLately == lost)
    }

    @Test
    func `a count's growth is that of the last five minutes, whenever it is looked at, within bounds`() {
        var random = RandomStream(seed: 5)
        for _ in 0..<20 {
            var window = RecentGrowth()
            var now = Self.start
            var total: UInt64 = 0
            var history: [(at: Instant, grown: UInt64)] = []
            for _ in 0..<2_000 {
                now = now + .milliseconds(Int64(random.below(9_000)))
                let grown = random.below(10) == 0 ? UInt64(random.below(50)) : 0
                total += grown
                history.append((now, grown))
                window.note(total, at: now)
                func sum(_ span: Duration) -> UInt64 {
                    history.reduce(0) { now - $1.at < span ? $0 + $1.grown : $0 }
                }
                // It may be told for a step longer, and for as long as nobody looked.
                #expect(window.growth >= sum(RecentGrowth.span))
                #expect(window.growth <= sum(RecentGrowth.span + RecentGrowth.step + .seconds(9)))
                #expect(window.sampleCount <= 21)
            }
        }
    }

    @Test
    func `a count that begins anew is taken as it is`() {
        var window = RecentGrowth()
        window.note(100, at: Self.start)
        window.note(3, at: Self.start + .seconds(1))
        #expect(window.growth == 3)
        window.note(3, at: Self.start + .seconds(301))
        window.note(3, at: Self.start + .seconds(317))
        window.note(3, at: Self.start + .seconds(617))
        #expect(window.growth == 0)
    }
}

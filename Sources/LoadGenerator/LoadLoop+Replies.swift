// The other half of the loop: answers, and the lack of them.

import Datagrams
import Primitives

extension LoadLoop {
    /// Sends what is prepared and takes in what has come.
    ///
    /// - Returns: how many datagrams came.
    mutating func exchange() -> Int {
        if !outgoing.isEmpty {
            socket.send(outgoing)
            outgoing.removeAll()
        }
        let count = socket.receive(into: &incoming, limit: Self.batchLimit)
        guard count > 0 else { return 0 }
        let now = Clock.monotonic()
        for index in 0..<count { arrive(incoming.datagrams[index], now) }
        return count
    }

    private mutating func arrive(_ datagram: Datagram, _ now: Instant) {
        // In a group anybody may answer, from an address of its own.
        guard datagram.remote == options.target || options.target.isGroup else {
            tally.wrong.sender += 1
            return
        }
        let (start, byteCount) = (Int(datagram.offset), Int(datagram.byteCount))
        guard byteCount >= 8 else {
            tally.wrong.size += 1
            return
        }
        let transaction = incoming.bytes.span.bytes.u32(at: start + 4)
        switch flights.arrive(transaction) {
        case .expected(let flight): answer(flight, datagram, now)
        case .late: tally.late += 1
        case .unknown: tally.wrong.transaction += 1
        }
    }

    private mutating func answer(_ flight: LoadFlight, _ datagram: Datagram, _ now: Instant) {
        let number = Int(flight.number)
        let source = flight.kind == .connect ? number : population.source(ofPeer: number)
        var asker = connections[source].address
        if connections[source].since != nil || population.sources.count > 1 {
            let expected = population.sources.count > 1 ? population.sources[source] : asker
            if datagram.local.high != expected.high || datagram.local.low != expected.low {
                tally.wrong.addressee += 1
            }
        }
        asker.port = flight.kind == .announce ? population.port(ofPeer: number) : 0
        let (start, byteCount) = (Int(datagram.offset), Int(datagram.byteCount))
        let verdict = judge.judge(
            incoming.bytes.span.bytes.extracting(start..<start + byteCount), flight.kind, asker: asker)
        switch verdict {
        case .connected(let id):
            if connections[source].since == nil { connected += 1 }
            connections[source] = Connection(id: id, since: now, isAsked: false, address: datagram.local)
        case .announced(let peers, let flaws):
            tally.count(answered: flight, at: now, byteCount: byteCount)
            tally.count(peers: peers, flaws: flaws, of: flight)
        case .scraped:
            tally.count(answered: flight, at: now, byteCount: byteCount)
        case .refused:
            refused(flight, datagram)
        case .wrongAction:
            tally.wrong.action += 1
            fail(flight)
        case .wrongSize:
            tally.wrong.size += 1
            fail(flight)
        }
    }

    /// An error reply has come: perhaps for a connection id that is no longer good, so another is asked for.
    private mutating func refused(_ flight: LoadFlight, _ datagram: Datagram) {
        tally.errors += 1
        if tally.firstError == nil {
            let text = Int(datagram.offset) + 8..<Int(datagram.offset) + Int(datagram.byteCount)
            // A stranger's text: nothing in it may steer a terminal.
            let shown = incoming.bytes[text].prefix(100).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
            tally.firstError = String(decoding: shown, as: UTF8.self)
        }
        if flight.kind != .connect {
            let source = population.source(ofPeer: Int(flight.number))
            if let since = connections[source].since, since < flight.start, !connections[source].isAsked {
                connections[source].since = flight.start - Self.connectionLife
            }
        }
        if options.work == .fill, flight.kind == .announce, flight.attempts > 0 {
            // Refused twice, the second time with a fresh connection id: the tracker means it.
            tally.lost += 1
        } else {
            fail(flight)
        }
    }

    /// A request has no good answer: a fill asks again.
    private mutating func fail(_ flight: LoadFlight) {
        if flight.kind == .connect {
            connections[Int(flight.number)].isAsked = false
        } else if options.work == .fill, flight.attempts + 1 < Self.attemptLimit {
            again.append((flight.number, flight.attempts + 1))
        } else if options.work == .fill {
            tally.lost += 1
        }
    }

    /// Gives up some of the requests that left before a time; over some calls, all of them.
    mutating func giveUp(before time: Instant, slots: Int = 2 * batchLimit) {
        var budget = slots
        while let flight = flights.expire(before: time, budget: &budget) {
            if options.work == .mixed, flight.kind != .connect, flight.isMeasured { tally.lost += 1 }
            fail(flight)
        }
    }

    func report() -> LoadReport {
        var report = LoadReport()
        switch (options.work, options.pace) {
        case (.fill, .closed(let inFlight)):
            report.mode = "fill"
            report.inFlight = inFlight
        case (_, .closed(let inFlight)):
            report.mode = "closed"
            report.inFlight = inFlight
        case (_, .open(let rate)):
            report.mode = "open"
            report.rate = rate
        }
        report.target = options.target.description
        (report.torrents, report.peers, report.sources) = (options.torrents, options.peers, options.sources)
        (report.sent, report.resent, report.answered) = (tally.sent, tally.resent, tally.answered)
        (report.lost, report.unsent, report.late) = (tally.lost, tally.unsent, tally.late)
        (report.errors, report.firstError, report.wrong) = (tally.errors, tally.firstError, tally.wrong)
        report.answeredInAll = tally.answeredInAll
        let seconds = Double(measured.nanoseconds) / 1e9
        report.seconds = seconds
        guard seconds > 0 else { return report }
        report.repliesPerSecond = Double(tally.answered) / seconds
        report.bytesInPerSecond = Double(tally.bytesIn) / seconds
        report.bytesOutPerSecond = Double(tally.bytesOut) / seconds
        report.generatorLoad = min(1, Double(busy.nanoseconds) / Double(measured.nanoseconds))
        if tally.listedAnswers > 0 {
            report.meanPeersPerReply = Double(tally.listedPeers) / Double(tally.listedAnswers)
        }
        report.latencyMicroseconds.p50 = tally.latency(50)
        report.latencyMicroseconds.p90 = tally.latency(90)
        report.latencyMicroseconds.p99 = tally.latency(99)
        report.latencyMicroseconds.p999 = tally.latency(99.9)
        report.latencyMicroseconds.max = tally.highestLatency
        return report
    }
}

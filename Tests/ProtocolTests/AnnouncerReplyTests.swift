// What an announcer makes of replies: good ones, late ones, those of others, and errors.

import PeerLogic
import Primitives
import Testing
import Wire

@Suite("Announcer: replies")
struct AnnouncerReplyTests {
    typealias Rig = AnnouncerTests.Rig

    private func asking(isIPv6: Bool = false) -> Rig {
        var rig = Rig(isIPv6: isIPv6)
        rig.at(0, .announceWanted(AnnouncerTests.subject, AnnouncerTests.half, .none))
        rig.connect(0)
        return rig
    }

    @Test
    func `over IPv6 a peer has 18 bytes`() {
        var rig = asking(isIPv6: true)
        let peer: [UInt8] = [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0x1A, 0xE1]
        rig.at(1, .datagramReceived(AnnouncerTests.announceReply(rig.transaction, peers: peer + peer)))
        guard case .announced(let announce)? = rig.effects.outcomes.first else {
            Issue.record("not announced: \(rig.effects.outcomes)")
            return
        }
        let address = SocketAddress(high: 0x2001_0DB8_0000_0000, low: 9, port: 6881)
        #expect(announce.peers == [address, address])
    }

    @Test
    func `counts come in the order asked`() {
        var rig = Rig()
        rig.at(0, .scrapeWanted([AnnouncerTests.infoHash, AnnouncerTests.infoHash]))
        rig.connect(0)
        #expect(rig.sent == ["scrape 2"])
        var reply: [UInt8] = []
        for word in [2, rig.transaction, 1, 2, 3, 4, 5, 6] { reply.append(bigEndian: word) }
        rig.at(1, .datagramReceived(reply))
        guard case .scraped(let counts)? = rig.effects.outcomes.first else {
            Issue.record("not scraped: \(rig.effects.outcomes)")
            return
        }
        #expect(counts.map(\.seeders) == [1, 4])
        #expect(counts.map(\.completed) == [2, 5])
        #expect(counts.map(\.leechers) == [3, 6])
        #expect(rig.announcer.isIdle)
    }

    @Test
    func `a late answer to an early copy counts`() {
        var rig = asking()
        let transaction = rig.transaction
        rig.at(15, .deadlineReached)
        #expect(rig.transaction == transaction)
        rig.at(45, .deadlineReached)
        rig.at(105, .deadlineReached)
        #expect(rig.sent == ["connect"])
        rig.at(106, .datagramReceived(AnnouncerTests.announceReply(transaction)))
        #expect(rig.effects.outcomes.count == 1)
        #expect(rig.announcer.isIdle)
    }

    @Test
    func `what does not belong to the request is passed over`() {
        var rig = asking()
        let transaction = rig.transaction
        let before = rig.announcer
        let strays: [[UInt8]] = [
            [], [1, 2, 3], AnnouncerTests.announceReply(transaction &+ 1), AnnouncerTests.connectReply(transaction, 9),
            AnnouncerTests.errorReply(transaction ^ 0x80, "no"),
        ]
        for stray in strays {
            rig.at(1, .datagramReceived(stray))
            #expect(rig.effects == Announcer.Effects())
            #expect(rig.announcer == before)
        }
    }

    @Test
    func `an answer that is none ends the request`() {
        for spoil: (UInt32) -> [UInt8] in [
            { AnnouncerTests.announceReply($0, peers: [1, 2, 3]) },
            { AnnouncerTests.announceReply($0).dropLast(3) },
            { transaction in
                var bytes: [UInt8] = []
                for word in [2, transaction, 0, 0, 0] { bytes.append(bigEndian: word) }
                return bytes
            },
            { transaction in
                var bytes: [UInt8] = []
                for word in [9, transaction] { bytes.append(bigEndian: word) }
                return bytes
            },
        ] {
            var rig = asking()
            rig.at(1, .datagramReceived(spoil(rig.transaction)))
            #expect(rig.effects.outcomes == [.malformed])
            #expect(rig.announcer.isIdle)
        }
    }

    @Test
    func `an error ends the request, in the tracker's words`() {
        var rig = asking()
        rig.at(1, .datagramReceived(AnnouncerTests.errorReply(rig.transaction, "no such torrent")))
        #expect(rig.effects.outcomes == [.refused(message: Array("no such torrent".utf8))])
        #expect(rig.announcer.isIdle)
        rig = Rig()
        rig.at(0, .announceWanted(AnnouncerTests.subject, AnnouncerTests.half, .none))
        rig.at(1, .datagramReceived(AnnouncerTests.errorReply(rig.transaction, "Connection ID? none for you")))
        #expect(rig.effects.outcomes.count == 1)
    }

    @Test(arguments: ["connection id expired", "Connection ID missmatch.", "Bad CONNECTION ID"])
    func `an error about the connection id is answered by connect`(_ text: String) {
        var rig = asking()
        let transaction = rig.transaction
        rig.at(1, .datagramReceived(AnnouncerTests.errorReply(transaction, text)))
        #expect(rig.sent == ["connect"])
        #expect(rig.effects.outcomes.isEmpty)
        rig.connect(2, id: 0xEF)
        #expect(rig.sentAnnounce?.connectionID == ConnectionID(0xEF))
        #expect(rig.sentAnnounce?.transactionID == TransactionID(transaction))
        // The second time it waits, so that the two do not shout at each other.
        rig.at(3, .datagramReceived(AnnouncerTests.errorReply(transaction, text)))
        #expect(rig.effects == Announcer.Effects())
        #expect(rig.deadline == 17)
        rig.at(17, .deadlineReached)
        #expect(rig.sent == ["connect"])
    }

    /// Whatever a tracker, or somebody in its name, sends: no trap, and what goes out are requests.
    @Test
    func `no bytes trap it`() {
        var random = RandomStream(seed: 15)
        for round in 0..<4000 {
            var rig = Rig(isIPv6: round.isMultiple(of: 2))
            rig.at(0, .downloadStarted(AnnouncerTests.subject, AnnouncerTests.half))
            if random.oneIn(3) { rig.connect(0) }
            for second in 1..<6 {
                var bytes = AnnouncerTests.announceReply(
                    rig.transaction, interval: UInt32(truncatingIfNeeded: random.next()))
                bytes[3] = UInt8(random.below(5))
                for _ in 0..<random.below(30) { bytes.append(UInt8(random.below(256))) }
                if random.oneIn(3) { bytes.removeLast(random.below(bytes.count)) }
                rig.at(Int64(second), .datagramReceived(bytes))
                #expect(!rig.sent.contains("junk"))
                if let deadline = rig.deadline { #expect(deadline >= Int64(second)) }
            }
        }
    }
}

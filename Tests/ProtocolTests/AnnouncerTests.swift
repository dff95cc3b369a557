// The client's side of BEP 15: tables of events and what each makes the announcer do.

import PeerLogic
import Primitives
import Testing
import Wire

@Suite("Announcer")
struct AnnouncerTests {
    static let infoHash = InfoHash(Bytes20((1...20).map { UInt8($0) }) ?? .zero)
    static let subject = Announcer.Subject(
        infoHash: infoHash, peerID: PeerID(Bytes20((101...120).map { UInt8($0) }) ?? .zero), port: 6881, key: 77,
        numWant: 30)
    static let half = Announcer.Progress(downloaded: 500, left: 500, uploaded: 20)
    static let whole = Announcer.Progress(downloaded: 1000, left: 0, uploaded: 30)

    /// An announcer with its clock, and a tracker that is played by the test.
    struct Rig {
        var announcer: Announcer
        var seconds: Int64 = 0
        var effects = Announcer.Effects()

        init(isIPv6: Bool = false, patience: Announcer.RetryTimeouts = .init()) {
            announcer = Announcer(isIPv6: isIPv6, random: RandomStream(seed: 1), patience: patience)
        }

        /// One event, some seconds after the start; whatever came before is forgotten.
        mutating func at(_ seconds: Int64, _ event: Announcer.Event) {
            self.seconds = seconds
            effects.removeAll()
            announcer.step(event, now: Instant(nanoseconds: 0) + .seconds(seconds), into: &effects)
        }

        /// What was sent by the last event, in words.
        var sent: [String] {
            effects.sends.map { bytes in
                switch try? TrackerRequest(bytes.span.bytes) {
                case .connect: "connect"
                case .announce(let request): "announce \(request.event)"
                case .scrape(_, _, let count): "scrape \(count)"
                case nil: "junk"
                }
            }
        }

        var sentAnnounce: AnnounceRequest? {
            guard let last = effects.sends.last, case .announce(let request)? = try? TrackerRequest(last.span.bytes)
            else { return nil }
            return request
        }

        /// Seconds after the start at which it wants to be woken.
        var deadline: Int64? {
            announcer.nextDeadline.map { ($0 - Instant(nanoseconds: 0)).wholeSeconds }
        }

        /// The transaction id of the last datagram sent.
        var transaction: UInt32 {
            guard let last = effects.sends.last else { return 0 }
            return last.span.bytes.u32(at: 12)
        }

        mutating func connect(_ seconds: Int64, id: UInt64 = 0xABCD) {
            at(seconds, .datagramReceived(AnnouncerTests.connectReply(transaction, id)))
        }
    }

    static func connectReply(_ transaction: UInt32, _ id: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: UInt32(0))
        bytes.append(bigEndian: transaction)
        bytes.append(bigEndian: id)
        return bytes
    }

    static func announceReply(_ transaction: UInt32, interval: UInt32 = 1800, peers: [UInt8] = []) -> [UInt8] {
        var bytes: [UInt8] = []
        for word in [1, transaction, interval, 3, 4] { bytes.append(bigEndian: word) }
        return bytes + peers
    }

    static func errorReply(_ transaction: UInt32, _ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: UInt32(3))
        bytes.append(bigEndian: transaction)
        return bytes + Array(text.utf8)
    }

    // MARK: - BEP 15's examples

    @Test
    func `a normal announce connects, announces and ends`() throws {
        var rig = Rig()
        rig.at(0, .announceWanted(Self.subject, Self.half, .started))
        #expect(rig.sent == ["connect"])
        rig.connect(1, id: 0x1122_3344_5566_7788)
        #expect(rig.sent == ["announce started"])
        let request = try #require(rig.sentAnnounce)
        #expect(
            request
                == AnnounceRequest(
                    connectionID: ConnectionID(0x1122_3344_5566_7788), transactionID: request.transactionID,
                    infoHash: Self.infoHash, peerID: Self.subject.peerID, downloaded: 500, left: 500, uploaded: 20,
                    event: .started, key: 77, numWant: 30, port: 6881))
        rig.at(2, .datagramReceived(Self.announceReply(rig.transaction, peers: [192, 0, 2, 7, 0x1A, 0xE1])))
        #expect(rig.effects.sends.isEmpty)
        guard case .announced(let announce)? = rig.effects.outcomes.first else {
            Issue.record("not announced: \(rig.effects.outcomes)")
            return
        }
        #expect(announce.interval == 1800)
        #expect(announce.leechers == 3)
        #expect(announce.seeders == 4)
        #expect(announce.peers == [SocketAddress(ipv4: 0xC000_0207, port: 6881)])
        #expect(rig.announcer.isIdle)
        #expect(rig.deadline == nil)
    }

    @Test
    func `connect times out`() {
        var rig = Rig()
        rig.at(0, .announceWanted(Self.subject, Self.half, .none))
        for due: Int64 in [15, 45, 105, 225] {
            #expect(rig.deadline == due)
            rig.at(due, .deadlineReached)
            #expect(rig.sent == ["connect"])
        }
    }

    @Test
    func `announce times out`() {
        var rig = Rig()
        rig.at(0, .announceWanted(Self.subject, Self.half, .none))
        rig.connect(1)
        let table: [(due: Int64, sent: String)] = [
            (16, "announce none"), (46, "announce none"), (106, "connect"), (226, "connect"), (466, "connect"),
        ]
        for (due, sent) in table {
            #expect(rig.deadline == due)
            rig.at(due, .deadlineReached)
            #expect(rig.sent == [sent])
        }
    }

    @Test
    func `a connection id is used for a minute`() {
        var rig = Rig()
        rig.at(0, .scrapeWanted([Self.infoHash]))
        rig.connect(1)
        #expect(rig.sent == ["scrape 1"])
        rig.at(60, .announceWanted(Self.subject, Self.half, .none))
        #expect(rig.sent == ["announce none"])
        rig.at(61, .announceWanted(Self.subject, Self.half, .none))
        #expect(rig.sent == ["connect"])
    }

    @Test
    func `after nine silences the request has timed out`() {
        var rig = Rig()
        rig.at(0, .announceWanted(Self.subject, Self.half, .none))
        var sends = rig.effects.sends.count
        while let due = rig.deadline {
            rig.at(due, .deadlineReached)
            sends += rig.effects.sends.count
        }
        #expect(rig.seconds == 15 * 511)
        #expect(sends == 9)
        #expect(rig.effects.outcomes == [.timedOut])
        #expect(rig.announcer.isIdle)
    }

    @Test
    func `a tracker that answers connect and nothing else is given up too`() {
        var rig = Rig()
        rig.at(0, .announceWanted(Self.subject, Self.half, .none))
        var connects = 0
        while let due = rig.deadline, due < 20_000 {
            if rig.sent == ["connect"] {
                connects += 1
                rig.connect(rig.seconds)
                #expect(rig.sent == ["announce none"])
            }
            guard let due = rig.deadline else { break }
            rig.at(due, .deadlineReached)
        }
        #expect(rig.effects.outcomes == [.timedOut])
        #expect(connects > 5)
    }

    @Test
    func `patience is the owner's`() {
        var patience = Announcer.RetryTimeouts()
        patience.firstWait = .seconds(3)
        patience.maxRetransmissions = 1
        var rig = Rig(patience: patience)
        rig.at(0, .announceWanted(Self.subject, Self.half, .none))
        rig.at(3, .deadlineReached)
        #expect(rig.sent == ["connect"])
        #expect(rig.deadline == 9)
        rig.at(9, .deadlineReached)
        #expect(rig.effects.outcomes == [.timedOut])
    }

    @Test
    func `a spurious deadline does nothing`() {
        var rig = Rig()
        rig.at(0, .deadlineReached)
        #expect(rig.effects == Announcer.Effects())
        rig.at(0, .announceWanted(Self.subject, Self.half, .none))
        let before = rig.announcer
        rig.at(14, .deadlineReached)
        #expect(rig.effects == Announcer.Effects())
        #expect(rig.announcer == before)
    }
}

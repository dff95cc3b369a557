// BEP 15 requests and BEP 41 options: bytes written out by hand from the specifications.

import Primitives
import Testing
import Wire

@Suite("BEP 15 requests")
struct TrackerRequestTests {
    /// What is in a request, as far as anybody asks.
    private struct Contents: Equatable {
        var request: TrackerRequest
        var urlData: [UInt8]
        var infoHashes: [InfoHash]
    }

    private static let torture = CodecTorture<Contents>(
        name: "BEP 15 request",
        decode: { bytes in
            guard let request = try? TrackerRequest(bytes.span.bytes) else { return nil }
            var contents = Contents(request: request, urlData: [], infoHashes: [])
            switch request {
            case .connect: break
            case .announce: contents.urlData = AnnounceOptions.urlData(bytes.span.bytes)
            case .scrape(_, _, let count):
                for number in 0..<count {
                    contents.infoHashes.append(InfoHash(Bytes20(bytes.span.bytes, at: 16 + 20 * number)))
                }
            }
            return contents
        },
        encode: { contents in
            var bytes: [UInt8] = []
            switch contents.request {
            case .connect(let transaction): ConnectRequest(transactionID: transaction).encode(into: &bytes)
            case .announce(let request): request.encode(into: &bytes, urlData: contents.urlData)
            case .scrape(let connection, let transaction, _):
                ScrapeRequest(
                    connectionID: connection, transactionID: transaction, infoHashes: contents.infoHashes
                ).encode(into: &bytes)
            }
            return bytes
        },
        spice: [0, 1, 2, 3, 4, 0xFF, 0x04, 0x17, 0x27, 0x10, 0x19, 0x80])

    // MARK: Vectors

    /// BEP 15: offset 0 protocol_id 0x41727101980, 8 action 0, 12 transaction_id.
    static let connect: [UInt8] = [
        0x00, 0x00, 0x04, 0x17, 0x27, 0x10, 0x19, 0x80,
        0x00, 0x00, 0x00, 0x00,
        0xDE, 0xAD, 0xBE, 0xEF,
    ]

    /// BEP 15: offset 0 connection_id, 8 action 1, 12 transaction_id, 16 info_hash, 36 peer_id, 56 downloaded, 64 left,
    /// 72 uploaded, 80 event, 84 IP address, 88 key, 92 num_want, 96 port.
    static let announce: [UInt8] =
        [
            0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
            0x00, 0x00, 0x00, 0x01,
            0xDE, 0xAD, 0xBE, 0xEF,
        ] + Array(0xA0...0xB3) + Array("-XX0001-abcdefghijkl".utf8) + [
            0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x07,
            0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x0A,
            0x00, 0x00, 0x00, 0x02,
            0xC0, 0x00, 0x02, 0x01,
            0x12, 0x34, 0x56, 0x78,
            0xFF, 0xFF, 0xFF, 0xFF,
            0x1A, 0xE1,
        ]

    /// BEP 15: offset 0 connection_id, 8 action 2, 12 transaction_id, 16 + 20 n info_hash.
    static let scrape: [UInt8] =
        [
            0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
            0x00, 0x00, 0x00, 0x02,
            0xDE, 0xAD, 0xBE, 0xEF,
        ] + Array(0xA0...0xB3) + Array(0x20...0x33)

    private static let decodedAnnounce = AnnounceRequest(
        connectionID: ConnectionID(0x0102_0304_0506_0708), transactionID: TransactionID(0xDEAD_BEEF),
        infoHash: InfoHash(Bytes20(Array(0xA0...0xB3))!), peerID: PeerID(Bytes20(Array("-XX0001-abcdefghijkl".utf8))!),
        downloaded: 0x1_0000_0000, left: 0x2_0000_0007, uploaded: 0x3_0000_000A, event: .started, ip: 0xC000_0201,
        key: 0x1234_5678, numWant: -1, port: 6881)

    @Test func `connect`() throws {
        #expect(try TrackerRequest(Self.connect.span.bytes) == .connect(TransactionID(0xDEAD_BEEF)))
        Self.torture.comesBack(Self.connect)
    }

    @Test func `announce`() throws {
        #expect(Self.announce.count == 98)
        #expect(try TrackerRequest(Self.announce.span.bytes) == .announce(Self.decodedAnnounce))
        Self.torture.comesBack(Self.announce)
    }

    @Test func `scrape`() throws {
        let id = ConnectionID(0x0102_0304_0506_0708)
        #expect(
            try TrackerRequest(Self.scrape.span.bytes) == .scrape(id, TransactionID(0xDEAD_BEEF), hashCount: 2))
        Self.torture.comesBack(Self.scrape)
    }

    static let events: [(UInt8, AnnounceEvent)] = [
        (0, .none), (1, .completed), (2, .started), (3, .stopped), (4, .none), (99, .none),
    ]

    @Test(arguments: events)
    func `events have BEP 15's numbers, and what is beyond them is none`(
        _ number: UInt8, _ event: AnnounceEvent
    ) throws {
        var bytes = Self.announce
        bytes[83] = number
        guard case .announce(let request) = try TrackerRequest(bytes.span.bytes) else {
            Issue.record("not an announce")
            return
        }
        #expect(request.event == event)
    }

    // MARK: What is no request

    @Test func `a cut request is an error, and says whether to answer`() {
        let whole = [Self.connect, Self.announce, Self.scrape]
        for bytes in whole {
            for count in bytes.indices {
                let cut = Array(bytes[..<count])
                do throws(TrackerRequestError) {
                    let request = try TrackerRequest(cut.span.bytes)
                    // A scrape of two, cut to a scrape of one, is a scrape.
                    guard case .scrape(_, _, hashCount: 1) = request, count == 36 else {
                        Issue.record("\(count) bytes are read as \(request)")
                        continue
                    }
                } catch {
                    guard case .answerable(let complaint) = error else {
                        #expect(count < 16)
                        continue
                    }
                    #expect(count >= 16)
                    #expect(complaint.connectionID == ConnectionID(0x0102_0304_0506_0708))
                    #expect(complaint.transactionID == TransactionID(0xDEAD_BEEF))
                    #expect(complaint.fault == (bytes == Self.announce ? .shortAnnounce : .scrapeLength))
                }
            }
        }
    }

    @Test func `a connect whose magic is wrong in any bit is unsafe to answer`() {
        for bit in 0..<64 {
            var bytes = Self.connect
            bytes[bit / 8] ^= 1 << UInt8(bit & 7)
            #expect(throws: TrackerRequestError.unsafe) { try TrackerRequest(bytes.span.bytes) }
        }
    }

    @Test(arguments: [3, 4, 255] as [UInt8])
    func `an unknown action is an error that may be answered`(_ action: UInt8) throws {
        var bytes = Self.announce
        bytes[11] = action
        let error = #expect(throws: TrackerRequestError.self) { try TrackerRequest(bytes.span.bytes) }
        guard case .answerable(let complaint)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(complaint.fault == .unknownAction)
        #expect(complaint.transactionID == TransactionID(0xDEAD_BEEF))
    }

    @Test func `a scrape takes 1 to 74 info hashes`() {
        for count in 0...80 {
            let bytes = Self.scrape[..<16] + Array(repeating: 7, count: 20 * count)
            let isRead = (try? TrackerRequest(Array(bytes).span.bytes)) != nil
            #expect(isRead == (1...74).contains(count), "\(count) hashes")
        }
    }

    @Test func `mutated requests never trap, and what is read is read the same again`() {
        let inputs = [
            Self.connect, Self.announce, Self.scrape, Self.announce + [2, 3, 97, 98, 99, 0],
            Self.announce + [1, 1, 2, 2, 97, 98, 7, 2, 0, 0, 2, 1, 99],
        ]
        let counts = Self.torture.mutate(inputs, seed: 71, rounds: rounds(100_000))
        #expect(counts.accepted > 1_000)
        #expect(counts.refused > 1_000)
    }

    // MARK: BEP 41

    private static func options(_ parts: [UInt8]...) -> [UInt8] { parts.flatMap { $0 } }

    static let urlOptions: [(String, [UInt8], String)] = [
        ("nothing", [], ""),
        ("the example of BEP 41", options([0x02, 0x0C], Array("/dir?a=b&c=d".utf8)), "/dir?a=b&c=d"),
        ("with an end", options([0x02, 0x0C], Array("/dir?a=b&c=d".utf8), [0x00]), "/dir?a=b&c=d"),
        ("in two parts", options([2, 5], Array("/dir?".utf8), [2, 7], Array("a=b&c=d".utf8)), "/dir?a=b&c=d"),
        (
            "with NOPs between",
            options([1, 1, 2, 5], Array("/dir?".utf8), [1, 2, 7], Array("a=b&c=d".utf8), [1, 0]), "/dir?a=b&c=d"
        ),
        ("with an unknown option before", options([9, 3, 2, 1, 0], [2, 1, 47]), "/"),
        ("with an unknown option of no length", options([9, 0], [2, 1, 47]), "/"),
        ("with an unknown option behind", options([2, 1, 47], [255, 2, 7, 7]), "/"),
        ("behind the end nothing counts", options([2, 1, 47], [0], [2, 1, 65]), "/"),
        ("end first", options([0], [2, 1, 47]), ""),
        ("empty", options([2, 0]), ""),
        ("empty, then not", options([2, 0, 2, 1, 47]), "/"),
        ("only NOPs, as aria2's two bytes could be", [1, 1], ""),
        ("two zero bytes, as aria2 sends", [0, 0], ""),
        ("a type without a length", [2], ""),
        ("a length beyond the end", [2, 5, 47], ""),
        ("a good one, then a length beyond the end", options([2, 1, 47], [2, 255, 65]), "/"),
        ("an unknown length beyond the end", options([2, 1, 47], [9, 255, 65]), "/"),
        ("the longest", options([2, 255], Array(repeating: 120, count: 255)), String(repeating: "x", count: 255)),
    ]

    @Test(arguments: urlOptions)
    func `URL data is found`(_ name: String, _ options: [UInt8], _ expected: String) {
        let bytes = Self.announce + options
        #expect(AnnounceOptions.urlData(bytes.span.bytes) == Array(expected.utf8), "\(name)")
    }

    @Test func `URL data beyond what is sensible is not kept`() {
        var bytes = Self.announce
        for _ in 0..<200 { bytes += [2, 255] + Array(repeating: 120, count: 255) }
        #expect(AnnounceOptions.urlData(bytes.span.bytes).count == AnnounceOptions.maxURLData)
    }

    @Test(arguments: [0, 1, 254, 255, 256, 510, 511, 1_024])
    func `URL data of any length comes back`(_ count: Int) {
        let data = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        var bytes: [UInt8] = []
        Self.decodedAnnounce.encode(into: &bytes, urlData: data)
        #expect(AnnounceOptions.urlData(bytes.span.bytes) == data)
        #expect(bytes.count == 98 + (count == 0 ? 0 : count + 2 * ((count + 254) / 255) + 1))
    }
}

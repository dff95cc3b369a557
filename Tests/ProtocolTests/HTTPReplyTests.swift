// What a tracker answers over HTTP: BEP 3, 7, 23, 24, 31 and 48.

import Primitives
import Testing
import Wire

@Suite("Answers over HTTP")
struct HTTPReplyTests {
    static let peers4 = [UInt8](ascii: "iiiipp")
    static let peers6 = [UInt8](ascii: "iiiiiiiiiiiiiiiipp")

    // MARK: - Announces

    @Test func `the example of BEP 7 is written and read`() throws {
        let reply = HTTPAnnounceReply(interval: 1_800)
        let bytes = reply.encoded(compactIPv4: HTTPReplyTests.peers4, compactIPv6: HTTPReplyTests.peers6)
        // The BEP's own bytes lack the "e" behind 1800 and have one at the end too few; the keys and values are these.
        #expect(printable(bytes) == "d8:intervali1800e5:peers6:iiiipp6:peers618:iiiiiiiiiiiiiiiippe")
        let (read, peers) = try HTTPAnnounceReply.decode(bytes)
        #expect(read == reply)
        #expect(
            peers.map(\.address.description) == [
                "105.105.105.105:28784", "[6969:6969:6969:6969:6969:6969:6969:6969]:28784",
            ])
    }

    static let full = HTTPAnnounceReply(
        interval: 1_800, minInterval: 900, seeders: 3, leechers: 4, completed: 5,
        externalIP: SocketAddress(ipv4: 0x4142_4344, port: 7), trackerID: [0x00, 0x2F], warningMessage: "älter")

    @Test func `everything a tracker can say is written in order`() throws {
        let bytes = HTTPReplyTests.full.encoded(compactIPv4: [])
        #expect(
            printable(bytes) == """
                d8:completei3e10:downloadedi5e11:external ip4:ABCD10:incompletei4e8:intervali1800e\
                12:min intervali900e5:peers0:10:tracker id2:\\x00/15:warning message6:\\xc3\\xa4ltere
                """)
        let (read, peers) = try HTTPAnnounceReply.decode(bytes)
        var expected = HTTPReplyTests.full
        expected.externalIP?.port = 0
        #expect(read == expected)
        #expect(peers.isEmpty)
    }

    @Test func `the dictionary form names each peer, with its id unless that is not wanted`() throws {
        let peers: [(PeerID, SocketAddress)] = [
            (
                PeerID(try #require(Bytes20([UInt8](ascii: "-XX0001-abcdefghijkl")))),
                SocketAddress(ipv4: 0xC000_0201, port: 6881)
            ),
            (.zero, SocketAddress(high: 0xFE80 << 48, low: 1, scope: 3, port: 1)),
        ]
        let reply = HTTPAnnounceReply(interval: 60)
        let zeros = String(repeating: "\\x00", count: 20)
        #expect(
            printable(reply.encoded(peers: peers, withPeerIDs: true)) == """
                d8:intervali60e5:peersld2:ip9:192.0.2.17:peer id20:-XX0001-abcdefghijkl4:porti6881ee\
                d2:ip7:fe80::17:peer id20:\(zeros)4:porti1eeee
                """)
        let bytes = reply.encoded(peers: peers, withPeerIDs: false)
        #expect(
            printable(bytes) == "d8:intervali60e5:peersld2:ip9:192.0.2.14:porti6881eed2:ip7:fe80::14:porti1eeee")
        #expect(try HTTPAnnounceReply.decode(bytes).peers.map(\.peerID) == [nil, nil])
        let read = try HTTPAnnounceReply.decode(reply.encoded(peers: peers, withPeerIDs: true)).peers
        #expect(read.map(\.peerID) == peers.map(\.0))
        #expect(read[0].address == peers[0].1)
        #expect(printable(reply.encoded(peers: [], withPeerIDs: true)) == "d8:intervali60e5:peerslee")
    }

    @Test func `an external IPv6 address has sixteen bytes`() throws {
        let address = SocketAddress(high: 0x4142_4344_4546_4748, low: 0x494A_4B4C_4D4E_4F50, port: 0)
        let bytes = HTTPAnnounceReply(interval: 1, externalIP: address).encoded(compactIPv4: [])
        #expect(printable(bytes).contains("11:external ip16:ABCDEFGHIJKLMNOP"))
        #expect(try HTTPAnnounceReply.decode(bytes).reply.externalIP == address)
    }

    // MARK: - Failures

    @Test(arguments: [
        (
            HTTPFailure("Overloaded", retry: .after(minutes: 5)),
            "d14:failure reason10:Overloaded8:intervali300e8:retry ini5ee"
        ),
        (HTTPFailure("Not a tracker", retry: .never), "d14:failure reason13:Not a tracker8:retry in5:nevere"),
        (HTTPFailure("No"), "d14:failure reason2:Noe"),
        (
            HTTPFailure("Soon", retry: .after(minutes: .max)),
            "d14:failure reason4:Soon8:intervali257698037700e8:retry ini4294967295ee"
        ),
    ])
    func `a failure says when to come back`(_ failure: HTTPFailure, _ text: String) throws {
        #expect(printable(failure.encoded()) == text)
        #expect(throws: HTTPReplyError.refused(failure)) { try HTTPAnnounceReply.decode(failure.encoded()) }
        #expect(throws: HTTPReplyError.refused(failure)) { try HTTPScrapeReply(decoding: failure.encoded()) }
    }

    @Test func `a failure of another tracker may say it in a string`() throws {
        let bytes = [UInt8](ascii: "d14:failure reason10:Overloaded8:retry in1:5e")
        #expect(throws: HTTPReplyError.refused(HTTPFailure("Overloaded", retry: .after(minutes: 5)))) {
            try HTTPAnnounceReply.decode(bytes)
        }
        let odd = [UInt8](ascii: "d14:failure reason6:a\u{1B}[2Jb8:retry ini-5ee")
        #expect(throws: HTTPReplyError.refused(HTTPFailure("a\u{FFFD}[2Jb"))) { try HTTPAnnounceReply.decode(odd) }
    }

    @Test func `a text that is too long is cut between characters`() throws {
        for lead in 0..<4 {
            let text = String(repeating: "x", count: lead) + String(repeating: "🐝", count: 100)
            let bytes = HTTPFailure(text).encoded()
            let reason = try #require(BencodeValue(decoding: bytes)["failure reason"]?.bytes)
            #expect(reason.count <= 255 && reason.count > 251)
            #expect(String(validating: reason, as: UTF8.self).map { text.hasPrefix($0) } == true)
        }
    }

    // MARK: - Scrapes

    private static func file(_ letter: Character, _ seeders: UInt32, _ completed: UInt32, _ leechers: UInt32) throws
        -> HTTPScrapeReply.File
    {
        let hash = try #require(Bytes20([UInt8](ascii: String(repeating: letter, count: 20))))
        return .init(infoHash: InfoHash(hash), seeders: seeders, completed: completed, leechers: leechers)
    }

    @Test func `the example of BEP 48 is written, whatever the order, and read`() throws {
        let (x, y) = try (HTTPReplyTests.file("x", 11, 13_772, 19), HTTPReplyTests.file("y", 21, 206, 20))
        let text = """
            d5:filesd20:xxxxxxxxxxxxxxxxxxxxd8:completei11e10:downloadedi13772e10:incompletei19ee\
            20:yyyyyyyyyyyyyyyyyyyyd8:completei21e10:downloadedi206e10:incompletei20eeee
            """  // with the "e" that the BEP forgets
        #expect(printable(HTTPScrapeReply(files: [x, y]).encoded()) == text)
        // Asked twice and out of order: a dictionary has each key once, sorted.
        #expect(printable(HTTPScrapeReply(files: [y, x, y, x]).encoded()) == text)
        #expect(try HTTPScrapeReply(decoding: [UInt8](ascii: text)).files == [x, y])
    }

    @Test func `a scrape says when to ask again`() throws {
        let reply = HTTPScrapeReply(files: [], minRequestInterval: 900)
        #expect(printable(reply.encoded()) == "d5:filesde5:flagsd20:min_request_intervali900eee")
        #expect(try HTTPScrapeReply(decoding: reply.encoded()) == reply)
    }

    // MARK: - What other trackers answer

    @Test func `an answer with unsorted keys is read`() throws {
        let text = "d8:intervali10e5:peers0:8:completei5e10:incompletei-2ee"
        let reply = try HTTPAnnounceReply.decode([UInt8](ascii: text)).reply
        #expect(reply == HTTPAnnounceReply(interval: 10, seeders: 5, leechers: 0))
    }

    @Test func `peers that cannot be reached are left out`() throws {
        let text = """
            d5:peersld2:ip9:192.0.2.14:porti1eed2:ip11:example.com4:porti1eed2:ip9:192.0.2.24:porti0ee\
            d2:ip9:192.0.2.34:porti65536eed4:porti1ee2:xxd2:ip9:192.0.2.47:peer id3:abc4:porti2eeee
            """
        let (reply, peers) = try HTTPAnnounceReply.decode([UInt8](ascii: text))
        #expect(peers.map(\.address.description) == ["192.0.2.1:1", "192.0.2.4:2"])
        #expect(peers.map(\.peerID) == [nil, nil])
        #expect(reply.interval == 1_800)
        // Six bytes, six with port 0, and five that are none.
        let packed = [UInt8](ascii: "d5:peers17:iiiippiiii") + [0, 0] + [UInt8](ascii: "iiiiie")
        #expect(try HTTPAnnounceReply.decode(packed).peers.count == 1)
    }

    @Test func `a flood of peers has an end`() throws {
        let bytes = HTTPAnnounceReply(interval: 1).encoded(
            compactIPv4: [UInt8](repeating: 1, count: 6 * 900), compactIPv6: [UInt8](repeating: 1, count: 18 * 900))
        #expect(try HTTPAnnounceReply.decode(bytes).peers.count == HTTPAnnounceReply.maxPeerCount)
        let large = HTTPAnnounceReply(interval: 1).encoded(compactIPv4: [UInt8](repeating: 1, count: 6 * 200_000))
        #expect(throws: HTTPReplyError.self) { try HTTPAnnounceReply.decode(large) }
    }

    @Test(arguments: ["", "<html>", "i1e", "le", "d5:filesle"])
    func `what is no answer is refused`(_ text: String) {
        #expect(throws: HTTPReplyError.self) { try HTTPScrapeReply(decoding: [UInt8](ascii: text)) }
        if text != "d5:filesle" {
            #expect(throws: HTTPReplyError.self) { try HTTPAnnounceReply.decode([UInt8](ascii: text)) }
        }
    }

    // MARK: - Torture

    /// A reply without the differences that its two forms do not carry: order, and which peers have no id.
    struct Answer: Equatable {
        var reply: HTTPAnnounceReply
        var peers: [HTTPAnnounceReply.Peer]

        init(decoding bytes: [UInt8]) throws {
            (reply, peers) = try HTTPAnnounceReply.decode(bytes)
            for index in peers.indices { peers[index].peerID = peers[index].peerID ?? .zero }
            peers.sort { "\($0)" < "\($1)" }
        }
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `mutated answers are read or refused`(_ seed: UInt64) {
        let announces = CodecTorture<Answer>(
            name: "HTTP announce reply",
            decode: { try? Answer(decoding: $0) },
            encode: { answer in
                answer.reply.encoded(peers: answer.peers.map { ($0.peerID ?? .zero, $0.address) }, withPeerIDs: true)
            },
            spice: Array("eild:0123456789".utf8))
        let inputs = [
            HTTPReplyTests.full.encoded(peers: [(.zero, SocketAddress(ipv4: 1, port: 2))], withPeerIDs: true),
            HTTPReplyTests.full.encoded(compactIPv4: HTTPReplyTests.peers4, compactIPv6: HTTPReplyTests.peers6),
        ]
        let counts = announces.mutate(inputs, seed: seed, rounds: 4_000)
        #expect(counts.accepted > 200 && counts.refused > 200)
        for input in inputs { #expect(announces.acceptedCuts(of: input).isEmpty) }

        let scrapes = CodecTorture<HTTPScrapeReply>(
            name: "HTTP scrape reply",
            decode: { bytes in
                guard var reply = try? HTTPScrapeReply(decoding: bytes) else { return nil }
                reply.files.sort { $0.infoHash.description < $1.infoHash.description }
                return reply
            },
            encode: { $0.encoded() },
            spice: announces.spice)
        let scrape = [UInt8](ascii: "d5:filesd20:xxxxxxxxxxxxxxxxxxxxd8:completei11e10:incompletei19eeee")
        #expect(scrapes.mutate([scrape], seed: seed, rounds: 2_000).accepted > 50)
        #expect(scrapes.acceptedCuts(of: scrape).isEmpty)
    }
}

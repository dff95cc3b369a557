// Extensions as strangers may send them: bombs, nonsense, floods (BEP 10, 9, 11, 54).

import PeerLogic
import Primitives
import Testing
import Wire

@Suite("Hostile extensions")
struct HostileExtensionTests {
    // MARK: - Handshakes (BEP 10)

    static let bombs: [(name: String, payload: [UInt8])] = [
        ("nothing", []),
        ("deep dictionaries", Array(String(repeating: "d1:a", count: 15_000).utf8)),
        (
            "deep and closed",
            Array((String(repeating: "d1:a", count: 1_000) + "de" + String(repeating: "e", count: 1_000)).utf8)
        ),
        ("deep lists", Array((String(repeating: "l", count: 30_000) + String(repeating: "e", count: 30_000)).utf8)),
        ("many values", Array(("d1:ml" + String(repeating: "i1e", count: 20_000) + "ee").utf8)),
        ("a string that is longer than all", Array("d1:v4294967296:xe".utf8)),
        ("a string whose length is no number", Array("d1:v999999999999999999999:xe".utf8)),
        ("a number of many digits", Array(("d4:reqqi" + String(repeating: "9", count: 60_000) + "ee").utf8)),
        ("too long", Array(("d1:v70000:" + String(repeating: "x", count: 70_000) + "e").utf8)),
        ("cut short", Array("d1:md11:ut_metadatai1e".utf8)),
        ("a list", Array("li1ee".utf8)),
    ]

    @Test(arguments: bombs.indices)
    func `a bomb ends the connection, and costs the others nothing`(index: Int) {
        var stage = Stage()
        let hostile = stage.join()
        let honest = stage.join()
        stage.say(hostile, .extended(id: 0, payload: Self.bombs[index].payload))
        #expect(stage.isBreached(hostile), "\(Self.bombs[index].name)")
        stage.say(honest, .haveAll)
        stage.say(honest, .unchoke)
        #expect(stage.actions.contains { if case .send(honest, .request) = $0 { true } else { false } })
    }

    @Test(arguments: [
        "d1:mi5ee", "d1:m4:texte", "d1:mle", "d1:md11:ut_metadata1:16:ut_pexi-1eee", "d1:md11:ut_metadatai256eee",
        "d1:md11:lt_donthavelee6:ut_pexdeee", "d13:metadata_sizei-1ee", "d13:metadata_size4:1234e", "d1:pi65536ee",
        "d1:pi-1ee", "d1:p2:80e", "d4:reqqi-5ee", "d4:reqq1:xe", "d4:reqqi0ee", "d1:vi7ee", "d11:upload_onlyi-3ee",
        "d6:yourip3:abce", "d6:yourip0:e", "d6:youripi9ee", "de",
    ])
    func `what has the wrong type is passed over`(text: String) {
        var stage = Stage(isMagnet: true)
        let link = stage.join()
        // A list where a dictionary is to be may be closed wrongly: then it is no bencode.
        let isBencode = (try? BencodeValue(decoding: Array(text.utf8), strictness: .lenient)) != nil
        stage.say(link, .extended(id: 0, payload: Array(text.utf8)))
        #expect(stage.isBreached(link) == !isBencode)
        #expect(stage.heard(link, id: 11).isEmpty)
        stage.pass(.seconds(30))
        #expect(stage.actions.allSatisfy { if case .send(link, .extended(let id, _)) = $0 { id == 0 } else { true } })
    }

    @Test func `extensions without having said so end the connection`() {
        var stage = Stage()
        let link = stage.join([.fast])
        stage.say(link, .extended(id: 0, payload: Array("de".utf8)))
        #expect(stage.isBreached(link))
    }

    @Test func `numbers that we have given to nobody are passed over`() {
        var stage = Stage()
        let link = stage.join()
        for id in UInt8(4)...255 { stage.say(link, .extended(id: id, payload: [1, 2, 3])) }
        #expect(stage.closed(link) == nil)
    }

    // MARK: - Metadata (BEP 9)

    @Test(arguments: [0, -1, (32 << 20) + 1, 1 << 30, Int.max])
    func `metadata of an absurd size is asked of nobody`(size: Int) {
        var stage = Stage(isMagnet: true)
        let link = stage.join(metadataByteCount: size)
        stage.pass(.seconds(60))
        #expect(stage.heard(link, id: 11).isEmpty)
        #expect(stage.closed(link) == nil)
    }

    @Test func `a large size costs nothing before its parts come`() {
        var stage = Stage(isMagnet: true)
        let link = stage.join(metadataByteCount: 32 << 20)
        // Four parts are asked for ahead, whatever the size.
        #expect(stage.heard(link, id: 11).count == 4)
    }

    @Test func `parts that were not asked for, or do not fit, are of no use`() throws {
        var stage = Stage(isMagnet: true)
        let bytes = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 3) }
        let first = stage.join(metadataByteCount: bytes.count)
        let second = stage.join(metadataByteCount: bytes.count)
        func part(_ number: Int, count: Int? = nil) -> [UInt8] {
            let slice = Array(bytes[(number * 16_384)...].prefix(count ?? 16_384))
            return MetadataMessage.data(part: number, totalByteCount: bytes.count, bytes: slice).encoded()
        }
        func data(_ number: Int, _ count: Int) -> [UInt8] {
            MetadataMessage.data(part: number, totalByteCount: bytes.count, bytes: Array(repeating: 9, count: count))
                .encoded()
        }
        #expect(stage.heard(first, id: 11).count == 3)
        // Another peer's parts, and parts that there are not.
        for number in [0, 1, 2, 3, 4_000_000, Int(Int32.max)] {
            stage.say(second, .extended(id: 1, payload: data(number, 16_384)))
        }
        for number in [3, 7, Int(Int32.max)] { stage.say(first, .extended(id: 1, payload: data(number, 16_384))) }
        stage.say(first, .extended(id: 1, payload: part(0)))
        // Twice the same: the second counts for nothing.
        stage.say(first, .extended(id: 1, payload: data(0, 16_384)))
        stage.say(first, .extended(id: 1, payload: part(1)))
        #expect(stage.checked.isEmpty)
        stage.say(first, .extended(id: 1, payload: part(2)))
        #expect(stage.checked == [bytes])
        #expect(stage.closed(first) == nil && stage.closed(second) == nil)
    }

    @Test(arguments: [0, 1, 16_383, 16_385, 100_000])
    func `after a part of the wrong length the next peer is asked`(count: Int) {
        var stage = Stage(isMagnet: true)
        let first = stage.join(metadataByteCount: 40_000)
        let second = stage.join(metadataByteCount: 40_000)
        #expect(stage.heard(second, id: 11).isEmpty)
        let wrong = MetadataMessage.data(part: 0, totalByteCount: 40_000, bytes: Array(repeating: 9, count: count))
        stage.say(first, .extended(id: 1, payload: wrong.encoded()))
        #expect(stage.heard(second, id: 11).count == 3)
    }

    @Test func `who rejects, or is silent, is left for the next`() {
        var stage = Stage(isMagnet: true)
        let links = (0..<3).map { _ in stage.join(metadataByteCount: 40_000) }
        stage.say(links[0], .extended(id: 1, payload: MetadataMessage.reject(part: 0).encoded()))
        #expect(stage.heard(links[1], id: 11).count == 3)
        // A reject of one who is not asked changes nothing.
        stage.say(links[0], .extended(id: 1, payload: MetadataMessage.reject(part: 0).encoded()))
        #expect(stage.heard(links[2], id: 11).isEmpty)
        stage.pass(.seconds(25))
        #expect(stage.heard(links[2], id: 11).count == 3)
    }

    /// It was once asked again at once, and refused at once, as fast as the line goes.
    @Test func `who rejects is not asked again at once, though nobody else is there`() {
        var stage = Stage(isMagnet: true)
        let link = stage.join(metadataByteCount: 40_000)
        #expect(stage.heard(link, id: 11).count == 3)
        stage.say(link, .extended(id: 1, payload: MetadataMessage.reject(part: 0).encoded()))
        stage.pass(.seconds(18))
        #expect(stage.heard(link, id: 11).count == 3)
        stage.pass(.seconds(4))
        #expect(stage.heard(link, id: 11).count == 6)
    }

    @Test func `requests for parts that there are not are rejected, and a flood of requests is`() throws {
        let metadata = [UInt8](repeating: 5, count: 20_000)
        var stage = Stage(metadata: metadata)
        let link = stage.join(metadataByteCount: nil)
        for part in [2, 3, 1 << 40, Int.max] {
            stage.say(link, .extended(id: 1, payload: MetadataMessage.request(part: part).encoded()))
            #expect(try MetadataMessage(decoding: #require(stage.heard(link, id: 11).last)) == .reject(part: part))
        }
        for _ in 0..<100 { stage.say(link, .extended(id: 1, payload: MetadataMessage.request(part: 1).encoded())) }
        let answers = try stage.heard(link, id: 11).dropFirst(4).map { try MetadataMessage(decoding: $0) }
        let given = answers.filter { if case .data(1, 20_000, let bytes) = $0 { bytes.count == 3_616 } else { false } }
        // Each of two parts three times.
        #expect(given.count == 6)
        #expect(answers.count == 100 && answers.dropFirst(6).allSatisfy { $0 == .reject(part: 1) })
        stage.say(link, .extended(id: 1, payload: Array("d8:msg_typei0e5:piecei-1ee".utf8)))
        #expect(stage.isBreached(link))
    }

    @Test func `whoever lies about the metadata is banned, and the next peer is asked`() {
        var world = SmallWorld(metadata: (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        let liars = (0..<3).map { number in
            world.addSeeder { _, torrent in
                // The right size, and the wrong hash.
                torrent.metadata?[20_000 + number] ^= 1
            }
        }
        let honest = world.addSeeder()
        let leecher = world.add(isMagnet: true)
        for liar in liars { world.introduce(leecher, to: liar) }
        #expect(
            world.run { world in
                liars.allSatisfy { world.peers[leecher].observations.contains(.banned(world.peers[$0].address)) }
            })
        #expect(world.peers[leecher].session.layout == nil)
        world.introduce(leecher, to: honest)
        #expect(world.run { $0.peers[leecher].session.isComplete })
        #expect(!world.peers[leecher].observations.contains(.banned(world.peers[honest].address)))
    }

    // MARK: - Peer exchange (BEP 11)

    private func addresses(_ range: Range<UInt32>) -> [SocketAddress] {
        range.map { SocketAddress(ipv4: 0xC000_0000 + $0, port: 6_881) }
    }

    @Test func `of a flood of addresses so many are taken in a minute`() {
        var stage = Stage()
        let link = stage.join(metadataByteCount: nil)
        let before = stage.session.knownPeerCount
        for batch in UInt32(0)..<50 {
            let flood = PeerExchange(added: addresses(batch * 200..<batch * 200 + 200), dropped: [])
            stage.say(link, .extended(id: 2, payload: flood.encoded()))
        }
        #expect(stage.session.knownPeerCount - before == 200)
        #expect(stage.closed(link) == nil)
        // Ten of them are called at once, no more.
        #expect(stage.actions.reduce(0) { if case .dial = $1 { $0 + 1 } else { $0 } } == 10)
    }

    @Test func `however many flood, the book of addresses has an end`() {
        var stage = Stage()
        for number in UInt32(0)..<20 {
            let link = stage.join(metadataByteCount: nil)
            let flood = PeerExchange(added: addresses(number * 200..<number * 200 + 200), dropped: [])
            stage.say(link, .extended(id: 2, payload: flood.encoded()))
        }
        #expect(stage.session.knownPeerCount <= 1_000)
    }

    @Test(arguments: ["", "le", "i1e", "d5:added", "d5:added6:abcdef"])
    func `a peer exchange that is none ends the connection`(text: String) {
        var stage = Stage()
        let link = stage.join(metadataByteCount: nil)
        stage.say(link, .extended(id: 2, payload: Array(text.utf8)))
        #expect(stage.isBreached(link))
    }

    @Test(arguments: [
        "de", "d5:addedi5ee", "d5:addedlee", "d5:added5:abcdee", "d5:added6:\0\0\0\0\0\0e",
        "d6:added617:abcdefghijklmnopqe",
        "d5:added6:abcd\0\0e", "d7:added.f3:abc5:added0:e",
    ])
    func `addresses that are none are passed over`(text: String) {
        var stage = Stage()
        let link = stage.join(metadataByteCount: nil)
        let before = stage.session.knownPeerCount
        stage.say(link, .extended(id: 2, payload: Array(text.utf8)))
        #expect(stage.closed(link) == nil)
        #expect(stage.session.knownPeerCount == before)
    }

    // MARK: - Don't have (BEP 54)

    @Test(arguments: [[], [0], [0, 0, 0], [0, 0, 0, 0, 0]] as [[UInt8]])
    func `a don't-have of another length ends the connection`(payload: [UInt8]) {
        var stage = Stage()
        let link = stage.join()
        stage.say(link, .extended(id: 3, payload: payload))
        #expect(stage.isBreached(link))
    }

    @Test func `a don't-have for a piece that there is not ends the connection`() {
        var stage = Stage()
        let link = stage.join()
        stage.say(link, .extended(id: 3, payload: DontHave(piece: 10).encoded()))
        #expect(stage.isBreached(link))
    }

    @Test func `a don't-have for what nobody has takes nothing away`() {
        var stage = Stage()
        let one = stage.join()
        let other = stage.join()
        stage.say(other, .haveAll)
        for _ in 0..<3 {
            for piece in UInt32(0)..<10 { stage.say(one, .extended(id: 3, payload: DontHave(piece: piece).encoded())) }
        }
        #expect(stage.session.availability == Array(repeating: 1, count: 10))
        // What somebody has is lost once, however often it is said.
        for _ in 0..<3 { stage.say(other, .extended(id: 3, payload: DontHave(piece: 4).encoded())) }
        #expect(stage.session.availability == [1, 1, 1, 1, 0, 1, 1, 1, 1, 1])
        #expect(stage.closed(one) == nil && stage.closed(other) == nil)
    }
}

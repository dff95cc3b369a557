// Metainfo files and magnet links that we make: BEP 3, 9, 12, 19 and 27.

import Primitives
import Testing
import Wire

@Suite("Making metainfo files and magnet links")
struct MetainfoBuilderTests {
    private func builder(_ pieceHashes: [UInt8] = [UInt8](repeating: 0x61, count: 40)) throws -> MetainfoBuilder {
        try MetainfoBuilder(
            name: PathComponent("a.bin"), pieceLength: 32_768, content: .file(length: 50_000), pieceHashes: pieceHashes)
    }

    @Test func `the least that a torrent needs is written in canonical form`() throws {
        let metainfo = try builder().build()
        let hashes = String(repeating: "a", count: 40)
        let info = "d6:lengthi50000e4:name5:a.bin12:piece lengthi32768e6:pieces40:\(hashes)e"
        #expect(printable(metainfo.bytes) == "d4:info\(info)e")
        #expect(printable(metainfo.infoBytes) == info)
    }

    @Test func `everything that is given comes back`() throws {
        var builder = try builder()
        builder.content = try .directory([
            .init(path: [PathComponent("z"), PathComponent("run.sh")], length: 40_000, isExecutable: true),
            .init(path: [PathComponent("a")], length: 10_000),
        ])
        builder.isPrivate = true
        builder.trackers = [["udp://one:1", "udp://two:2"], ["http://three/announce?passkey=x"]]
        builder.urlList = ["http://seed.example/"]
        builder.comment = "grüße"
        builder.createdBy = "Swarmkeeper"
        builder.creationDate = WallTime(milliseconds: 1_700_000_000_999)
        let metainfo = try builder.build()
        #expect(Sample.paths(metainfo.info) == ["z/run.sh", "a"])
        #expect(metainfo.info.files[0].attributes == .executable)
        #expect(metainfo.info.isPrivate)
        #expect(metainfo.announce == "udp://one:1")
        #expect(metainfo.trackers == builder.trackers)
        #expect(metainfo.urlList == builder.urlList)
        #expect(metainfo.comment == "grüße")
        #expect(metainfo.createdBy == "Swarmkeeper")
        #expect(metainfo.creationDate == WallTime(milliseconds: 1_700_000_000_000))
    }

    @Test func `a single tracker needs no tiers`() throws {
        var builder = try builder()
        builder.trackers = [["udp://one:1"]]
        let metainfo = try builder.build()
        #expect(metainfo.announce == "udp://one:1")
        #expect(metainfo.announceList.isEmpty)
    }

    @Test func `a hybrid lists its files twice, and each begins a piece`() throws {
        let (one, two) = (try #require(Bytes32(Sample.root1)), try #require(Bytes32(Sample.root2)))
        let layer = [UInt8](repeating: 5, count: 64)
        var builder = try builder([UInt8](repeating: 0x61, count: 60))
        builder.content = try .directory([
            .init(path: [PathComponent("a.b")], length: 40_000),
            .padding(2 * 32_768 - 40_000),
            .init(path: [PathComponent("a"), PathComponent("empty")], length: 0),
            .init(path: [PathComponent("a"), PathComponent("z")], length: 7, isExecutable: true),
        ])
        builder.trees = [.init(root: one, layer: layer), .init(root: nil, layer: []), .init(root: two, layer: [])]
        // In the tree `a` comes before `a.b`, so that this list is in the wrong order.
        #expect(throws: MetainfoError.self) { try builder.build() }
        builder.content = try .directory([
            .init(path: [PathComponent("a"), PathComponent("empty")], length: 0),
            .init(path: [PathComponent("a"), PathComponent("z")], length: 7, isExecutable: true),
            .padding(32_768 - 7),
            .init(path: [PathComponent("a.b")], length: 40_000),
        ])
        builder.trees = [.init(root: nil, layer: []), .init(root: two, layer: []), .init(root: one, layer: layer)]
        let metainfo = try builder.build()
        #expect(metainfo.info.version == .hybrid)
        #expect(Sample.paths(metainfo.info) == ["a/empty", "a/z", ".pad/32761", "a.b"])
        #expect(metainfo.info.files.map(\.isPadding) == [false, false, true, false])
        #expect(metainfo.info.files.map(\.piecesRoot) == [nil, two, nil, one])
        #expect(metainfo.info.totalLength == 40_007)
        #expect(metainfo.pieceLayers.map(\.root) == [one])
        #expect(metainfo.pieceLayers.map { Array($0.hashes) } == [layer])
    }

    @Test func `what a client would refuse is not made`() throws {
        func refusal(_ change: (inout MetainfoBuilder) throws -> Void) throws -> MetainfoError? {
            var builder = try builder()
            try change(&builder)
            return #expect(throws: MetainfoError.self) { try builder.build() }
        }
        #expect(try refusal { $0.pieceHashes.removeLast() }?.reason == .ragged(hashByteCount: 20))
        #expect(try refusal { $0.content = .file(length: 1) }?.reason == .pieceCount(expected: 1, found: 2))
        #expect(try refusal { $0.content = .file(length: -1) }?.key == "length")
        #expect(try refusal { $0.content = .directory([]) }?.reason == .nothingToShare)
        #expect(try refusal { $0.pieceLength = 0 }?.key == "piece length")
        #expect(try refusal { $0.trackers = [["not a url"]] } == MetainfoError(.badURL, key: "announce"))
        #expect(try refusal { $0.trackers = [["udp://a"], []] } == MetainfoError(.badURL, key: "announce"))
        #expect(try refusal { $0.urlList = [""] } == MetainfoError(.badURL, key: "url-list"))
        let twice = try MetainfoBuilder.File(path: [PathComponent("a")], length: 25_000)
        #expect(try refusal { $0.content = .directory([twice, twice]) }?.reason == .samePath)
        #expect(try refusal { $0.content = .directory([.init(path: [], length: 1)]) }?.key == "path")
    }

    @Test(arguments: [
        (0, 16_384), (1 << 20, 16_384), (32 << 20, 16_384), (33 << 20, 32_768), (4 << 30, 2 << 20), (1 << 40, 16 << 20),
    ])
    func `the suggested piece length grows with the content`(_ totalLength: Int, _ pieceLength: Int) {
        #expect(MetainfoBuilder.pieceLength(for: totalLength) == pieceLength)
    }

    // MARK: - Magnet links

    @Test func `a magnet link names the torrent and its trackers`() throws {
        var builder = try builder()
        builder.name = try PathComponent("a b&c=ä.bin")
        builder.trackers = [["udp://one:1/announce", "http://two/?a=b&c"], ["udp://three"]]
        let link = MagnetLink(
            try builder.build(), infoHash: InfoHash(hexadecimal: "c12fe1c06bba254a9dc9f519b335aa7c1367a88a"))
        #expect(
            link.text == """
                magnet:?xt=urn:btih:c12fe1c06bba254a9dc9f519b335aa7c1367a88a&dn=a%20b%26c%3D%C3%A4.bin\
                &tr=udp%3A%2F%2Fone%3A1%2Fannounce&tr=http%3A%2F%2Ftwo%2F%3Fa%3Db%26c&tr=udp%3A%2F%2Fthree
                """)
    }

    @Test func `a hybrid's magnet link names both hashes, and a list of trackers has an end`() {
        let link = MagnetLink(
            infoHash: InfoHash(hexadecimal: String(repeating: "0a", count: 20)), infoHashV2: Bytes32(Sample.root1),
            trackers: Array(repeating: "udp://t", count: 1_000))
        let text = link.text
        #expect(
            text.hasPrefix(
                "magnet:?xt=urn:btih:\(String(repeating: "0a", count: 20))"
                    + "&xt=urn:btmh:1220\(String(repeating: "a1", count: 32))&tr="))
        #expect(text.split(separator: "&tr=").count == 1 + MagnetLink.maxTrackerCount)
    }

    @Test func `thirty-two bytes come back and compare as bytes`() throws {
        let bytes = (0..<32).map { UInt8($0 * 8) }
        let value = try #require(Bytes32(bytes))
        #expect(value.bytes == bytes)
        #expect(value.description == hexadecimal(bytes))
        #expect(Bytes32.zero < value)
        #expect(Bytes32(bytes.dropLast()) == nil)
    }
}

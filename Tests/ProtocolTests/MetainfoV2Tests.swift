// Metainfo files of version 2 and hybrids: BEP 52; and what every metainfo file has to bear.

import Primitives
import Testing
import Wire

@Suite("Metainfo files, v2 and hybrid")
struct MetainfoV2Tests {
    static let codec = CodecTorture(
        name: "metainfo",
        decode: { try? Metainfo(decoding: $0) },
        encode: { $0.bytes },
        spice: Array("eild:0123456789./".utf8) + [0, 0xFF])

    static let examples = [
        Sample.encoded(Sample.singleInfo, [.init("announce", .text("udp://tracker.example:6969"))]),
        Sample.encoded(
            Sample.multiInfo,
            [.init("announce-list", .list([Sample.texts("udp://a", "udp://b"), Sample.texts("http://c")]))]),
        Sample.encoded(Sample.v2Info, [.init("piece layers", Sample.layers)]),
        Sample.encoded(
            Sample.hybridInfo,
            [.init("piece layers", Sample.layers), .init("url-list", Sample.texts("http://seed.example/"))]),
    ]

    @Test func `the files of a tree begin pieces, in the order of their names`() throws {
        let metainfo = try Sample.decoded(Sample.v2Info, [.init("piece layers", Sample.layers)])
        let info = metainfo.info
        #expect(info.version == .v2)
        #expect(Sample.paths(info) == ["big", "dir/empty", "dir/small"])
        #expect(info.files.map(\.offset) == [0, 49_152, 49_152])
        #expect(info.files.map(\.piecesRoot) == [Bytes32(Sample.root1), nil, Bytes32(Sample.root2)])
        #expect(info.pieceHashes == nil)
        #expect(info.pieceCount == 4)
        #expect(info.length(ofPiece: 0) == nil)
        #expect(info.totalLength == 40_005)
        #expect(!info.isSingleFile)
        #expect(metainfo.pieceLayers.map(\.root) == [Bytes32(Sample.root1)])
        #expect(metainfo.pieceLayers.map(\.hashes.count) == [96])
    }

    @Test func `the tree of BEP 52's example is read`() throws {
        // With `name`, `meta version` and `piece length`, which the example leaves out.
        let root = String(repeating: "a", count: 32)
        let text = """
            d4:infod9:file treed4:dir1d4:dir2d9:fileA.txtd0:d5:lengthi1024e11:pieces root32:\(root)eeeee\
            12:meta versioni2e4:name1:n12:piece lengthi16384eee
            """
            .replacing("5:length", with: "6:length")  // the BEP miscounts
        let info = try Metainfo(decoding: [UInt8](ascii: text), strictness: .strict).info
        #expect(Sample.paths(info) == ["dir1/dir2/fileA.txt"])
        #expect(info.files[0].piecesRoot == Bytes32([UInt8](ascii: root)))
    }

    @Test func `a tree with one name at its top is a single file`() throws {
        let tree = BencodeValue.dictionary([.init("a.bin", Sample.leaf(5, Sample.root1))])
        #expect(try Sample.decoded(Sample.v2Info.with("file tree", tree)).info.isSingleFile)
    }

    private static func tree(_ entries: BencodeValue.Entry...) -> [BencodeValue.Entry] {
        Sample.v2Info.with("file tree", .dictionary(entries))
    }

    static let badTrees: [([BencodeValue.Entry], MetainfoError)] = [
        (Sample.v2Info.with("file tree", nil), MetainfoError(.missing, key: "file tree")),
        (
            Sample.v2Info.with("file tree", .integer(1)),
            MetainfoError(.wrongKind(expected: .dictionary), key: "file tree")
        ),
        (Sample.v2Info.with("piece length", .integer(8_192)), MetainfoError(.notPowerOfTwo, key: "piece length")),
        (Sample.v2Info.with("piece length", .integer(16_385)), MetainfoError(.notPowerOfTwo, key: "piece length")),
        (
            Sample.v2Info.with("file tree", Sample.leaf(5, Sample.root1)),
            MetainfoError(.fileIsDirectory, key: "file tree")
        ),
        (Sample.v2Info.with("file tree", .dictionary([])), MetainfoError(.nothingToShare, key: "info")),
        (
            tree(.init("..", Sample.leaf(5, Sample.root1))),
            MetainfoError(.badName(.dots), key: "file tree", fileIndex: 0)
        ),
        (
            tree(.init("a/b", Sample.leaf(5, Sample.root1))),
            MetainfoError(.badName(.slash), key: "file tree", fileIndex: 0)
        ),
        (
            tree(.init("", .dictionary([.init("", Sample.leaf(5, Sample.root1))]))),
            MetainfoError(.badName(.empty), key: "file tree", fileIndex: 0)
        ),
        (
            tree(.init("a", .integer(1))),
            MetainfoError(.wrongKind(expected: .dictionary), key: "file tree", fileIndex: 0)
        ),
        (
            tree(
                .init(
                    "a",
                    .dictionary(
                        (Sample.leaf(5, Sample.root1).entries ?? []) + [.init("b", Sample.leaf(5, Sample.root1))]))),
            MetainfoError(.fileIsDirectory, key: "file tree", fileIndex: 0)
        ),
        (tree(.init("a", Sample.leaf(5, nil))), MetainfoError(.missing, key: "pieces root", fileIndex: 0)),
        (
            tree(.init("a", Sample.leaf(5, [UInt8](repeating: 0, count: 32)))),
            MetainfoError(.missing, key: "pieces root", fileIndex: 0)
        ),
        (
            tree(.init("a", Sample.leaf(5, [1, 2, 3]))),
            MetainfoError(.ragged(hashByteCount: 32), key: "pieces root", fileIndex: 0)
        ),
        (
            tree(.init("a", Sample.leaf(.max, Sample.root1))),
            MetainfoError(
                .outOfRange(lowest: 0, highest: TorrentInfo.maxTotalLength), key: "length", fileIndex: 0)
        ),
        (
            tree(
                .init("a", Sample.leaf(Int64(TorrentInfo.maxTotalLength), Sample.root1)),
                .init("b", Sample.leaf(1, Sample.root1))),
            MetainfoError(.outOfRange(lowest: 0, highest: 0), key: "length", fileIndex: 1)
        ),
    ]

    @Test(arguments: badTrees)
    func `a bad tree is refused`(_ info: [BencodeValue.Entry], _ error: MetainfoError) {
        #expect(Sample.refusal(info, [.init("piece layers", Sample.layers)]) == error)
    }

    @Test func `padding has no place in a tree, where each file begins a piece`() {
        let properties: [BencodeValue.Entry] = [
            .init("attr", .text("p")), .init("length", .integer(5)), .init("pieces root", .bytes(Sample.root1)),
        ]
        let tree = BencodeValue.dictionary([.init("a", .dictionary([.init("", .dictionary(properties))]))])
        #expect(Sample.refusal(Sample.v2Info.with("file tree", tree))?.reason == .paddingInTree)
    }

    @Test func `an unsorted tree is refused even leniently, since its order is that of the pieces`() {
        let leafText = "d0:d6:lengthi5e11:pieces root32:\(String(repeating: "a", count: 32))ee"
        let text = """
            d4:infod9:file treed1:b\(leafText)1:a\(leafText)e12:meta versioni2e4:name1:n12:piece lengthi16384eee
            """
        let error = #expect(throws: MetainfoError.self) { try Metainfo(decoding: [UInt8](ascii: text)) }
        guard case .notBencoded(let cause) = error?.reason else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(cause.reason == .keysUnsorted)
    }

    @Test func `a tree is no deeper than a path may be`() {
        var tree = Sample.leaf(5, Sample.root1)
        for _ in 0...TorrentInfo.maxPathDepth { tree = .dictionary([.init("d", tree)]) }
        #expect(
            Sample.refusal(Sample.v2Info.with("file tree", tree))?.reason == .tooMany(limit: TorrentInfo.maxPathDepth))
    }

    @Test func `each file longer than a piece needs its layer, and no layer is for nothing`() {
        func refused(_ layers: [BencodeValue.Entry]?) -> MetainfoError? {
            Sample.refusal(Sample.v2Info, layers.map { [.init("piece layers", .dictionary($0))] } ?? [])
        }
        #expect(refused(nil) == MetainfoError(.missing, key: "piece layers"))
        #expect(refused([]) == MetainfoError(.missing, key: "piece layers", fileIndex: 0))
        #expect(
            refused([.init(Sample.root1, Sample.hashes(2, byteCount: 32))])
                == MetainfoError(.pieceCount(expected: 3, found: 2), key: "piece layers", fileIndex: 0))
        #expect(
            refused([.init(Sample.root1, .bytes([1]))])
                == MetainfoError(.ragged(hashByteCount: 32), key: "piece layers"))
        #expect(
            refused([.init(Sample.root1, .integer(1))])
                == MetainfoError(.wrongKind(expected: .bytes), key: "piece layers"))
        #expect(
            refused([.init("short", .bytes([]))])
                == MetainfoError(.ragged(hashByteCount: 32), key: "piece layers"))
        // Under a wrong root, which sorts before or behind the right one.
        let hashes = Sample.hashes(3, byteCount: 32)
        #expect(refused([.init([UInt8](repeating: 1, count: 32), hashes)])?.reason == .layerWithoutFile)
        #expect(refused([.init(Sample.root2, hashes)])?.reason == .missing)
        let good = BencodeValue.Entry(Sample.root1, Sample.hashes(3, byteCount: 32))
        // One for a file that fits a piece, and one for no file, before and behind the good one.
        for root in [Sample.root2, [UInt8](repeating: 0, count: 32), [UInt8](repeating: 0xFF, count: 32)] {
            #expect(
                refused([good, .init(root, Sample.hashes(3, byteCount: 32))])
                    == MetainfoError(.layerWithoutFile, key: "piece layers"))
        }
    }

    @Test func `a file of just one piece needs no layer`() throws {
        let tree = BencodeValue.dictionary([.init("a", Sample.leaf(16_384, Sample.root1))])
        #expect(try Sample.decoded(Sample.v2Info.with("file tree", tree)).pieceLayers.isEmpty)
    }

    @Test func `the last file may end where the space for pieces does`() throws {
        let length = Int64(TorrentInfo.maxTotalLength) - 1
        let tree = BencodeValue.dictionary([
            .init("a", Sample.leaf(length, Sample.root1)), .init("b", Sample.leaf(0, nil)),
        ])
        let info = BencodeValue.dictionary(Sample.v2Info.with("file tree", tree)).encoded()
        #expect(try TorrentInfo(decoding: info).files.map(\.offset) == [0, TorrentInfo.maxTotalLength])
    }

    @Test func `identical files share a layer`() throws {
        let tree = BencodeValue.dictionary([
            .init("a", Sample.leaf(40_000, Sample.root1)), .init("b", Sample.leaf(40_000, Sample.root1)),
        ])
        let metainfo = try Sample.decoded(
            Sample.v2Info.with("file tree", tree), [.init("piece layers", Sample.layers)])
        #expect(metainfo.pieceLayers.count == 1)
        #expect(metainfo.info.files[1].offset == 49_152)
    }

    // MARK: - Hybrid

    @Test func `a hybrid has the hashes of both versions`() throws {
        let info = try Sample.decoded(Sample.hybridInfo, [.init("piece layers", Sample.layers)]).info
        #expect(info.version == .hybrid)
        #expect(Sample.paths(info) == ["big", ".pad/9152", "dir/empty", "dir/small"])
        #expect(info.files.map(\.piecesRoot) == [Bytes32(Sample.root1), nil, nil, Bytes32(Sample.root2)])
        #expect(info.pieceHashes?.count == 4)
        #expect(info.length(ofPiece: 3) == 5)
        #expect(info.totalLength == 40_005)
    }

    @Test(arguments: [
        [
            Sample.file(40_000, "big"), Sample.file(9_152, ".pad", "9152", attr: "p"), Sample.file(0, "dir", "empty"),
            Sample.file(5, "dir", "x"),
        ],
        [
            Sample.file(40_000, "big"), Sample.file(9_152, ".pad", "9152", attr: "p"), Sample.file(0, "dir", "empty"),
            Sample.file(6, "dir", "small"),
        ],
        [
            Sample.file(40_000, "big"), Sample.file(9_152, ".pad", "9152", attr: "p"), Sample.file(5, "dir", "small"),
            Sample.file(0, "dir", "empty"),
        ],
        [Sample.file(40_000, "big"), Sample.file(9_152, ".pad", "9152", attr: "p"), Sample.file(5, "dir", "small")],
        [
            Sample.file(40_000, "big"), Sample.file(9_151, ".pad", "9151", attr: "p"), Sample.file(0, "dir", "empty"),
            Sample.file(5, "dir", "small"),
        ],
        [
            Sample.file(40_000, "big"), Sample.file(9_152, ".pad", "9152", attr: "p"), Sample.file(0, "dir", "empty"),
            Sample.file(5, "dir", "small"), Sample.file(0, "more"),
        ],
        [Sample.file(40_000, "big"), Sample.file(0, "dir", "empty")],
    ])
    func `halves that differ in names, lengths, order or alignment are refused`(_ files: [BencodeValue]) {
        let info = Sample.hybridInfo.with("files", .list(files))
        #expect(Sample.refusal(info, [.init("piece layers", Sample.layers)])?.reason == .hybridMismatch)
    }

    // MARK: - Torture

    @Test(arguments: examples)
    func `a metainfo file is whole or refused`(_ bytes: [UInt8]) {
        MetainfoV2Tests.codec.comesBack(bytes)
        #expect(MetainfoV2Tests.codec.acceptedCuts(of: bytes).isEmpty)
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `mutated metainfo files are read or refused`(_ seed: UInt64) {
        let counts = MetainfoV2Tests.codec.mutate(MetainfoV2Tests.examples, seed: seed, rounds: 4_000)
        #expect(counts.accepted > 50 && counts.refused > 50)
    }

    /// What a caller relies on without looking again.
    @Test(arguments: 20..<22 as Range<UInt64>)
    func `whatever is read keeps what it promises`(_ seed: UInt64) {
        let watched = CodecTorture<Metainfo>(
            name: "metainfo",
            decode: { bytes in
                guard let metainfo = try? Metainfo(decoding: bytes) else { return nil }
                let info = metainfo.info
                #expect(info.totalLength > 0 && info.totalLength <= info.pieceSpaceLength)
                #expect(info.files.allSatisfy { $0.offset + $0.length <= info.pieceSpaceLength && !$0.path.isEmpty })
                #expect(info.pieceHashes.map { $0.count == info.pieceCount } ?? (info.version == .v2))
                #expect((info.pieceHashes == nil) == (info.length(ofPiece: info.pieceCount - 1) == nil))
                #expect(info.files.flatMap(\.path).allSatisfy { !$0.bytes.contains(0x2F) && $0.bytes != [0x2E, 0x2E] })
                #expect(try! BencodeDocument(Array(metainfo.infoBytes), strictness: .lenient).root.kind == .dictionary)
                return metainfo
            },
            encode: { $0.bytes }, spice: MetainfoV2Tests.codec.spice)
        watched.mutate(MetainfoV2Tests.examples, seed: seed, rounds: 2_000)
    }
}

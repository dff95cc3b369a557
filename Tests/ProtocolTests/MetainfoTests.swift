// Metainfo files of version 1: BEP 3, 9, 12, 19, 27 and 47.

import Primitives
import Testing
import Wire

@Suite("Metainfo files, v1")
struct MetainfoTests {
    @Test func `a single file is read with all that is said about it`() throws {
        let metainfo = try Sample.decoded(
            Sample.singleInfo.with("private", .integer(1)),
            [
                .init("announce", .text("udp://tracker.example:6969/announce")),
                .init("comment", .text("two\nlines")), .init("created by", .text("mktorrent 1.1")),
                .init("creation date", .integer(1_700_000_000)), .init("encoding", .text("UTF-8")),
            ])
        #expect(metainfo.info.version == .v1)
        #expect(metainfo.info.name.description == "a.bin")
        #expect(metainfo.info.isSingleFile)
        #expect(metainfo.info.isPrivate)
        #expect(metainfo.info.pieceLength == 32_768)
        #expect(Sample.paths(metainfo.info) == ["a.bin"])
        #expect(metainfo.totalLength == 50_000)
        #expect(metainfo.trackers == [["udp://tracker.example:6969/announce"]])
        #expect(metainfo.comment == "two\nlines")
        #expect(metainfo.createdBy == "mktorrent 1.1")
        #expect(metainfo.creationDate == WallTime(milliseconds: 1_700_000_000_000))
        #expect(metainfo.pieceLayers.isEmpty)
    }

    @Test(arguments: [(0, false), (1, true), (2, true)] as [(Int64, Bool)])
    func `a torrent is private where it says so`(_ value: Int64, _ isPrivate: Bool) throws {
        let info = Sample.singleInfo.with("private", .integer(value))
        #expect(try Sample.decoded(info).info.isPrivate == isPrivate)
        #expect(try !Sample.decoded(Sample.singleInfo).info.isPrivate)
    }

    @Test func `pieces are counted and measured, the last one short`() throws {
        let info = try Sample.decoded(Sample.singleInfo).info
        #expect(info.pieceCount == 2)
        #expect([-1, 0, 1, 2].map { info.length(ofPiece: $0) } == [nil, 32_768, 17_232, nil])
        #expect(info.pieceHashes?.count == 2)
        #expect(info.pieceHashes?[piece: 1] == Bytes20([UInt8](repeating: 2, count: 20)))
        #expect(info.pieceHashes?[piece: 2] == nil)
        #expect(info.pieceHashes?[piece: -1] == nil)
        let full = try Sample.decoded(Sample.singleInfo.with("length", .integer(65_536))).info
        #expect(full.pieceCount == 2 && full.length(ofPiece: 1) == 32_768)
    }

    @Test func `files in directories follow one another`() throws {
        let info = try Sample.decoded(Sample.multiInfo).info
        #expect(!info.isSingleFile)
        #expect(Sample.paths(info) == ["a", "b/empty", "b/c.txt"])
        #expect(info.files.map(\.offset) == [0, 40_000, 40_000])
        #expect(info.files.map(\.length) == [40_000, 0, 10_000])
        #expect(info.files[2].attributes == [.executable, .hidden])
        #expect(info.totalLength == 50_000)
    }

    @Test func `padding counts for pieces and not for people`() throws {
        let padding: [BencodeValue.Entry] = [.init("attr", .text("p")), .init("length", .integer(22_768))]
        let info = try Sample.decoded(
            Sample.multiInfo.with(
                "files",
                .list([
                    Sample.file(10_000, "a"), .dictionary(padding), Sample.file(20_000, "b"),
                    Sample.file(768, "_____padding_file_0_x"),
                    Sample.file(12_000, "_____padding_file_0_x"),
                ])
            ).with("pieces", Sample.hashes(2))
        ).info
        #expect(info.totalLength == 30_000)
        #expect(info.pieceSpaceLength == 65_536)
        #expect(info.files.map(\.isPadding) == [false, true, false, true, true])
        // BEP 47: "The recommended path is [".pad", "N"]".
        #expect(Sample.paths(info)[1] == ".pad/22768")
    }

    @Test func `symbolic links have no bytes`() throws {
        let link: [BencodeValue.Entry] = [
            .init("attr", .text("l")), .init("path", Sample.texts("link")),
            .init("symlink path", Sample.texts("..", "etc")),
        ]
        let info = try Sample.decoded(
            Sample.multiInfo.with("files", .list([Sample.file(50_000, "a"), .dictionary(link)]))
        ).info
        #expect(info.files[1].attributes == .symbolicLink)
        #expect(info.files[1].length == 0)
    }

    @Test func `names in UTF-8 go before names in an unknown encoding`() throws {
        let latin1 = BencodeValue.bytes([0x63, 0x61, 0x66, 0xE9])
        let info = try Sample.decoded(
            Sample.multiInfo.with("name", latin1).with("name.utf-8", .text("café")).with(
                "files", .list([.dictionary([.init("length", .integer(50_000)), .init("path", .list([latin1]))])]))
        ).info
        #expect(info.name.description == "café")
        #expect(info.files[0].path[0].bytes == [0x63, 0x61, 0x66, 0xE9])
        #expect(info.files[0].path[0].description == "caf\u{FFFD}")
    }

    // MARK: - The info hash

    @Test func `the info dictionary is taken as it stands, also where the file breaks the rules`() throws {
        // Keys unsorted inside and out, and a warning of a web script behind.
        let info = "d6:pieces20:aaaaaaaaaaaaaaaaaaaa12:piece lengthi9e4:name1:n6:lengthi9ee"
        let bytes = [UInt8](ascii: "d4:info\(info)8:announce8:http://xe\nWarning: …")
        let metainfo = try Metainfo(decoding: bytes)
        #expect(printable(metainfo.infoBytes) == info)
        #expect(metainfo.infoRange == 7..<7 + info.utf8.count)
        #expect(metainfo.announce == "http://x")
        #expect(metainfo.trailingByteCount == "\nWarning: …".utf8.count)
        #expect(try Metainfo(decoding: Array(bytes.dropLast(metainfo.trailingByteCount))).trailingByteCount == 0)
        #expect(throws: MetainfoError.self) { try Metainfo(decoding: bytes, strictness: .strict) }
    }

    @Test func `an info dictionary from a peer is read alone, and nothing may follow it`() throws {
        let bytes = BencodeValue.dictionary(Sample.multiInfo).encoded()
        #expect(try TorrentInfo(decoding: bytes) == Sample.decoded(Sample.multiInfo).info)
        // BEP 9: the hash is taken over all bytes that peers handed out.
        let error = #expect(throws: MetainfoError.self) { try TorrentInfo(decoding: bytes + [0x0A]) }
        #expect(error?.reason == .notBencoded(BencodeError(.trailingBytes, at: bytes.count)))
    }

    // MARK: - Trackers and web seeds

    @Test func `tiers of trackers go before the single one`() throws {
        let list = BencodeValue.list([Sample.texts("udp://a", "udp://b"), Sample.texts("http://c")])
        let metainfo = try Sample.decoded(
            Sample.singleInfo, [.init("announce", .text("udp://z")), .init("announce-list", list)])
        #expect(metainfo.trackers == [["udp://a", "udp://b"], ["http://c"]])
        #expect(metainfo.announce == "udp://z")
    }

    @Test func `what cannot be a tracker is left out, and the torrent is not refused for it`() throws {
        let list = BencodeValue.list([
            Sample.texts(" udp://a\r\n", "", "with blanks inside", "b\u{7}ell"), .list([]), Sample.texts(""),
            .text("udp://alone"),
            .integer(7), .list([.integer(7), .bytes([0xFF, 0xFE])]),
            Sample.texts("udp://" + String(repeating: "x", count: Metainfo.maxURLByteCount)),
        ])
        let metainfo = try Sample.decoded(
            Sample.singleInfo, [.init("announce", .integer(1)), .init("announce-list", list)])
        #expect(metainfo.announceList == [["udp://a"], ["udp://alone"]])
        #expect(metainfo.announce == nil)
        let none = try Sample.decoded(
            Sample.singleInfo, [.init("announce", .text("  ")), .init("announce-list", .list([]))])
        #expect(none.trackers.isEmpty)
    }

    @Test func `more trackers than anybody has are left out`() throws {
        let tier = BencodeValue.list((0..<700).map { .text("udp://t\($0)") })
        let metainfo = try Sample.decoded(Sample.singleInfo, [.init("announce-list", .list([tier, tier, tier]))])
        #expect(metainfo.announceList.map(\.count) == [700, Metainfo.maxURLCount - 700])
    }

    @Test(arguments: [
        (BencodeValue.text("http://mirror.com/file.exe"), ["http://mirror.com/file.exe"]),
        (Sample.texts("http://a/", "http://b/"), ["http://a/", "http://b/"]),
        (.text(""), []), (.list([]), []), (.integer(3), []),
    ])
    func `web seeds are one or many`(_ value: BencodeValue, _ urls: [String]) throws {
        #expect(try Sample.decoded(Sample.singleInfo, [.init("url-list", value)]).urlList == urls)
    }

    @Test(arguments: [-1, Int64.max, Int64.min])
    func `an absurd date is none`(_ seconds: Int64) throws {
        #expect(try Sample.decoded(Sample.singleInfo, [.init("creation date", .integer(seconds))]).creationDate == nil)
    }

    @Test func `a terminal cannot be made to obey a comment or a name`() throws {
        let comment = "\u{1B}[2Jhello\u{202E}gpj\r\n" + String(repeating: "x", count: 50_000)
        let metainfo = try Sample.decoded(
            Sample.singleInfo.with("name", .text("a\u{1B}]0;b\u{9B}\u{2066}")), [.init("comment", .text(comment))])
        #expect(metainfo.info.name.description == "a\u{FFFD}]0;b\u{FFFD}\u{FFFD}")
        #expect(metainfo.comment?.hasPrefix("\u{FFFD}[2Jhello\u{FFFD}gpj\u{FFFD}\nxxx") == true)
        #expect((metainfo.comment?.utf8.count ?? 0) < Metainfo.maxTextByteCount + 100)
        #expect(metainfo.info.name.bytes == [UInt8](ascii: "a\u{1B}]0;b\u{9B}\u{2066}"))
    }

    // MARK: - Refusals

    static let pieceLengths = MetainfoError.Reason.outOfRange(
        lowest: 1, highest: TorrentInfo.maxPieceLength)
    static let lengths = MetainfoError.Reason.outOfRange(lowest: 0, highest: TorrentInfo.maxTotalLength)

    @Test(arguments: [
        (Sample.singleInfo.with("name", nil), MetainfoError(.missing, key: "name")),
        (Sample.singleInfo.with("name", .integer(1)), MetainfoError(.wrongKind(expected: .bytes), key: "name")),
        (Sample.singleInfo.with("name", .text("")), MetainfoError(.badName(.empty), key: "name")),
        (Sample.singleInfo.with("name", .text("..")), MetainfoError(.badName(.dots), key: "name")),
        (Sample.singleInfo.with("piece length", nil), MetainfoError(.missing, key: "piece length")),
        (Sample.singleInfo.with("piece length", .integer(0)), MetainfoError(pieceLengths, key: "piece length")),
        (Sample.singleInfo.with("piece length", .integer(-1)), MetainfoError(pieceLengths, key: "piece length")),
        (Sample.singleInfo.with("piece length", .integer(1 << 30)), MetainfoError(pieceLengths, key: "piece length")),
        (Sample.singleInfo.with("piece length", .integer(.max)), MetainfoError(pieceLengths, key: "piece length")),
        (
            Sample.singleInfo.with("piece length", .text("1")),
            MetainfoError(.wrongKind(expected: .integer), key: "piece length")
        ),
        (Sample.singleInfo.with("pieces", nil), MetainfoError(.missing, key: "pieces")),
        (Sample.singleInfo.with("pieces", .list([])), MetainfoError(.wrongKind(expected: .bytes), key: "pieces")),
        (Sample.singleInfo.with("pieces", .text("short")), MetainfoError(.ragged(hashByteCount: 20), key: "pieces")),
        (
            Sample.singleInfo.with("pieces", Sample.hashes(3)),
            MetainfoError(.pieceCount(expected: 2, found: 3), key: "pieces")
        ),
        (
            Sample.singleInfo.with("pieces", .bytes([])),
            MetainfoError(.pieceCount(expected: 2, found: 0), key: "pieces")
        ),
        (Sample.singleInfo.with("length", nil), MetainfoError(.missing, key: "length")),
        (Sample.singleInfo.with("length", .integer(-1)), MetainfoError(lengths, key: "length")),
        (Sample.singleInfo.with("length", .integer(.max)), MetainfoError(lengths, key: "length")),
        (Sample.singleInfo.with("length", .integer(0)), MetainfoError(.nothingToShare, key: "info")),
        (Sample.multiInfo.with("length", .integer(1)), MetainfoError(.bothLengthAndFiles, key: "files")),
        (Sample.multiInfo.with("files", .integer(1)), MetainfoError(.wrongKind(expected: .list), key: "files")),
        (Sample.multiInfo.with("files", .list([])), MetainfoError(.nothingToShare, key: "info")),
        (Sample.singleInfo.with("private", .text("1")), MetainfoError(.wrongKind(expected: .integer), key: "private")),
        (Sample.singleInfo.with("meta version", .integer(3)), MetainfoError(.unknownVersion(3), key: "meta version")),
        (Sample.singleInfo.with("meta version", .integer(1)), MetainfoError(.unknownVersion(1), key: "meta version")),
    ])
    func `a bad info dictionary is refused by name`(_ info: [BencodeValue.Entry], _ error: MetainfoError) {
        #expect(Sample.refusal(info) == error)
    }

    @Test(arguments: [
        (Sample.file(1, "..", "etc"), MetainfoError(.badName(.dots), key: "path", fileIndex: 1)),
        (Sample.file(1, "a", "."), MetainfoError(.badName(.dots), key: "path", fileIndex: 1)),
        (Sample.file(1, "", "x"), MetainfoError(.badName(.empty), key: "path", fileIndex: 1)),
        (Sample.file(1, "/etc/passwd"), MetainfoError(.badName(.slash), key: "path", fileIndex: 1)),
        (Sample.file(1, "a\0"), MetainfoError(.badName(.nul), key: "path", fileIndex: 1)),
        (
            Sample.file(1, String(repeating: "x", count: PathComponent.maxByteCount + 1)),
            MetainfoError(.badName(.tooLong), key: "path", fileIndex: 1)
        ),
        (Sample.file(1), MetainfoError(.badName(.empty), key: "path", fileIndex: 1)),
        (Sample.file(1, "first"), MetainfoError(.samePath, key: "path", fileIndex: 1)),
        (Sample.file(1, "first", "x"), MetainfoError(.samePath, key: "path", fileIndex: 1)),
        (.integer(1), MetainfoError(.wrongKind(expected: .dictionary), key: "files", fileIndex: 1)),
        (.dictionary([]), MetainfoError(.missing, key: "length", fileIndex: 1)),
        (.dictionary([.init("length", .integer(1))]), MetainfoError(.missing, key: "path", fileIndex: 1)),
        (
            Sample.file(Int64(TorrentInfo.maxTotalLength), "x"),
            MetainfoError(
                .outOfRange(lowest: 0, highest: TorrentInfo.maxTotalLength - 50_000), key: "length", fileIndex: 1)
        ),
        (
            .dictionary([
                .init("length", .integer(1)),
                .init("path", .list(Array(repeating: .text("x"), count: TorrentInfo.maxPathDepth + 1))),
            ]),
            MetainfoError(.tooMany(limit: TorrentInfo.maxPathDepth), key: "path", fileIndex: 1)
        ),
    ])
    func `a bad file is refused by its number`(_ second: BencodeValue, _ error: MetainfoError) {
        let info = Sample.multiInfo.with("files", .list([Sample.file(50_000, "first"), second]))
        #expect(Sample.refusal(info) == error)
        #expect(error.description.hasPrefix("not a valid .torrent file: file number 2: "))
    }

    @Test func `paths clash only where one is the other's directory`() throws {
        let names = [("a", "b"), ("a.b", "c"), ("a", "bc"), ("ab", "b"), ("a", "B")]
        let files = names.map { Sample.file(10_000, $0.0, $0.1) }
        #expect(try Sample.decoded(Sample.multiInfo.with("files", .list(files))).info.files.count == 5)
        // "a" sorts before "a.b" as a component, though "a.b…" stands between "a" and "a/b" as text.
        #expect(
            Sample.refusal(Sample.multiInfo.with("files", .list(files + [Sample.file(0, "a.b")])))?.reason == .samePath)
        #expect(
            Sample.refusal(Sample.multiInfo.with("files", .list(files + [Sample.file(0, "a", "b")])))?.reason
                == .samePath)
    }

    @Test func `what is sloppy and in the wild is read leniently, and said`() throws {
        func read(_ files: BencodeValue...) throws -> TorrentInfo {
            try Metainfo(decoding: Sample.encoded(Sample.multiInfo.with("files", .list(files)))).info
        }
        let first = Sample.file(40_000, "first")
        // Clients leave the empty names out (libtorrent).
        let empty = try read(first, Sample.file(10_000, "", "x", ""))
        #expect(Sample.paths(empty) == ["first", "x"])
        #expect(empty.hasDistinctPaths)
        // Clients rename the second.
        for path in [["first"], ["first", "x"], ["first", ""]] {
            let names = BencodeValue.list(path.map { .text($0) })
            let info = try read(first, .dictionary([.init("length", .integer(10_000)), .init("path", names)]))
            #expect(info.files.count == 2)
            #expect(!info.hasDistinctPaths)
        }
        #expect(throws: MetainfoError.self) { try read(first, Sample.file(10_000, "", "")) }
    }

    @Test(arguments: ["", "hello", "i1e", "le", "de", "d4:infoi1ee", "<html>404</html>"])
    func `what is no metainfo file at all is refused with a sentence`(_ text: String) {
        let error = #expect(throws: MetainfoError.self) { try Metainfo(decoding: [UInt8](ascii: text)) }
        #expect(error?.description.contains(".torrent file: ") == true)
    }

    @Test func `more files than the limit are refused`() {
        // Empty ones without pieces: the limit strikes before anything else is looked at.
        let one = [UInt8](ascii: "d6:lengthi0e4:pathl1:aee")
        var bytes = [UInt8](ascii: "d4:infod5:filesl")
        for _ in 0...TorrentInfo.maxFileCount { bytes += one }
        bytes += [UInt8](ascii: "e4:name1:n12:piece lengthi1e6:pieces0:ee")
        let error = #expect(throws: MetainfoError.self) { try Metainfo(decoding: bytes) }
        #expect(error == MetainfoError(.tooMany(limit: TorrentInfo.maxFileCount), key: "files"))
    }

    @Test func `a component is safe to join to a path`() throws {
        for text in ["a", "...", "..a", ".a", "a b", "a\\b", "ä", "-rf", "~", "CON"] {
            #expect(try PathComponent(text).description == text)
        }
        #expect(throws: PathComponent.Refusal.dots) { try PathComponent(".") }
        #expect(throws: PathComponent.Refusal.dots) { try PathComponent("..") }
        #expect(throws: PathComponent.Refusal.slash) { try PathComponent("a/..") }
        #expect(throws: PathComponent.Refusal.empty) { try PathComponent("") }
        #expect(try PathComponent("a") < PathComponent("ab"))
    }
}

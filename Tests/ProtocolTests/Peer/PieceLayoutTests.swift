// How torrents of each version are cut into pieces.

import PeerLogic
import Testing
import Wire

@Suite("Piece layout")
struct PieceLayoutTests {
    @Test func `files of version 1 follow one another`() throws {
        let layout = try #require(PieceLayout(Sample.decoded(Sample.multiInfo).info))
        #expect(layout.pieceCount == 2)
        #expect(layout.length(ofPiece: 1) == 50_000 - 32_768)
        #expect(layout.files.map(\.length) == [40_000, 0, 10_000])
        #expect(layout.files.map(\.offset) == [0, 40_000, 40_000])
        #expect((0..<3).map { layout.pieces(ofFile: $0) } == [0..<2, 0..<0, 1..<2])
    }

    @Test func `in a hybrid each file begins a piece, behind padding that nobody keeps`() throws {
        let metainfo = try Sample.decoded(Sample.hybridInfo, [.init("piece layers", Sample.layers)])
        #expect(metainfo.info.version == .hybrid)
        let layout = try #require(PieceLayout(metainfo.info))
        #expect(layout.files.map(\.isPadding) == [false, true, false, false])
        #expect(layout.files.map(\.length) == [40_000, 9_152, 0, 5])
        #expect(layout.pieceCount == 4)
        #expect(layout.totalLength == 49_157)
        // No piece is shared by two files that are kept.
        #expect(layout.pieces(ofFile: 0) == 0..<3)
        #expect(layout.pieces(ofFile: 3) == 3..<4)
        #expect(layout.length(ofPiece: 3) == 5)
    }

    @Test func `a torrent of version 2 alone has no layout, as its pieces have no SHA-1`() throws {
        let metainfo = try Sample.decoded(Sample.v2Info, [.init("piece layers", Sample.layers)])
        #expect(metainfo.info.version == .v2)
        #expect(PieceLayout(metainfo.info) == nil)
    }

    @Test func `a hybrid whose halves differ is refused`() {
        let other = Sample.hybridInfo.with(
            "files",
            .list([
                Sample.file(40_000, "big"), Sample.file(9_152, ".pad", "9152", attr: "p"),
                Sample.file(0, "dir", "empty"),
                Sample.file(6, "dir", "small"),
            ]))
        #expect(Sample.refusal(other, [.init("piece layers", Sample.layers)]) != nil)
    }
}

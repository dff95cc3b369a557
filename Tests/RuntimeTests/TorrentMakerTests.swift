import Foundation
import Glibc
import Primitives
import Synchronization
import Testing
import Torrents
import Wire

/// .torrent files made of real files.
@Suite("Torrent maker", .ownThreads)
struct TorrentMakerTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Bytes that look random and are always the same.
    private static func bytes(_ count: Int) -> [UInt8] {
        var random = RandomStream(seed: 7)
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    /// SHA-1 by another program.
    private static func sha1(_ bytes: ArraySlice<UInt8>, in directory: TemporaryDirectory) throws -> String {
        let file = try directory.write("../sha1-\(UUID().uuidString)", Array(bytes))
        defer { try? FileManager.default.removeItem(atPath: file) }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/sha1sum")
        process.arguments = [file]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        process.waitUntilExit()
        return String(decoding: pipe.fileHandleForReading.readDataToEndOfFile().prefix(40), as: UTF8.self)
    }

    @Test
    func `a single file: name, length, and the SHA-1 of each piece and of the info dictionary`() throws {
        let content = Self.bytes(100_000)
        var maker = TorrentMaker(path: try directory.write("disc image.iso", content))
        maker.pieceLength = 32_768
        maker.trackers = ["udp://a:1/announce", "http://b/announce"]
        maker.comment = "für alle"
        maker.isPrivate = true
        maker.createdBy = "test"
        maker.creationDate = WallTime(milliseconds: 1_700_000_000_000)
        let seen = Mutex<[Int]>([])
        let metainfo = try maker.make { progress in seen.withLock { $0.append(progress.done) } }.metainfo
        let info = metainfo.info
        #expect(info.name.description == "disc image.iso")
        #expect(info.isSingleFile)
        #expect(info.totalLength == 100_000)
        #expect(info.isPrivate)
        #expect(info.pieceCount == 4)
        let pieces = stride(from: 0, to: 100_000, by: 32_768).map { content[$0..<min($0 + 32_768, 100_000)] }
        for (index, piece) in pieces.enumerated() {
            #expect(info.pieceHashes?[piece: index]?.description == (try Self.sha1(piece, in: directory)))
        }
        #expect(metainfo.infoHashV1?.description == (try Self.sha1(metainfo.infoBytes, in: directory)))
        #expect(metainfo.trackers == [["udp://a:1/announce", "http://b/announce"]])
        #expect(metainfo.comment == "für alle")
        #expect(metainfo.creationDate == WallTime(milliseconds: 1_700_000_000_000))
        #expect(seen.withLock { $0.last } == 100_000)
        // Nothing of the day or the machine is in it otherwise.
        maker.creationDate = nil
        #expect(try maker.make().metainfo.bytes == maker.make().metainfo.bytes)
    }

    @Test
    func `a directory: files sorted by their bytes, pieces across their ends, links and pipes left out and named`()
        throws
    {
        let content = Self.bytes(70_000)
        _ = try directory.write("set/b/2.bin", Array(content[40_000..<70_000]))
        _ = try directory.write("set/a.txt", Array(content[0..<10]))
        _ = try directory.write("set/b/1.bin", Array(content[10..<40_000]))
        _ = try directory.write("set/b.empty", [])
        #expect(chmod(directory.path("set/b/2.bin"), 0o755) == 0)
        #expect(symlink("/etc/passwd", directory.path("set/link")) == 0)
        #expect(mkfifo(directory.path("set/pipe"), 0o600) == 0)
        var maker = TorrentMaker(path: directory.path("set") + "/")
        maker.pieceLength = 16_384
        let result = try maker.make()
        let info = result.metainfo.info
        #expect(info.name.description == "set")
        #expect(!info.isSingleFile)
        let paths = info.files.map { $0.path.map(\.description).joined(separator: "/") }
        #expect(paths == ["a.txt", "b/1.bin", "b/2.bin", "b.empty"])
        #expect(info.files.map(\.length) == [10, 39_990, 30_000, 0])
        #expect(info.files.map { $0.attributes.contains(.executable) } == [false, false, true, false])
        #expect(result.skipped.map { $0.split(separator: "/").last ?? "" } == ["link", "pipe"])
        for (index, start) in stride(from: 0, to: 70_000, by: 16_384).enumerated() {
            let piece = content[start..<min(start + 16_384, 70_000)]
            #expect(info.pieceHashes?[piece: index]?.description == (try Self.sha1(piece, in: directory)))
        }
    }

    @Test
    func `names are bytes, also where they are not UTF-8`() throws {
        _ = try directory.write("set/plain", [1])
        let name: [CChar] = directory.path("set").utf8.map { CChar(bitPattern: $0) } + [0x2F, 0x61, -28, 0x62, 0]
        let descriptor = open(name, O_CREAT | O_WRONLY, 0o600)
        #expect(descriptor >= 0)
        #expect(write(descriptor, [2], 1) == 1)
        close(descriptor)
        let files = try TorrentMaker(path: directory.path("set")).make().metainfo.info.files
        #expect(files.map { $0.path[0].bytes } == [[0x61, 0xE4, 0x62], Array("plain".utf8)])
    }

    @Test
    func `what makes no torrent is said, with the file's name`() throws {
        func problem(_ path: String, _ change: (inout TorrentMaker) -> Void = { _ in }) -> String {
            var maker = TorrentMaker(path: path)
            change(&maker)
            do throws(TorrentMakerError) {
                _ = try maker.make()
                return ""
            } catch {
                return error.description.replacing(directory.path("") + "/", with: "")
            }
        }
        #expect(problem(directory.path("none")) == "none cannot be read: there is no such file or directory")
        let empty = try directory.write("empty", [])
        #expect(
            problem(empty)
                == "\(empty) has no file with a byte in it; there is nothing to share".replacing(
                    directory.path("") + "/", with: ""))
        #expect(problem("/dev/null") == "/dev/null is neither a file nor a directory")
        let file = try directory.write("file", [1])
        for length in [0, 1, 16_383, 20_000, 1 << 30] {
            #expect(
                problem(file) { $0.pieceLength = length }
                    == "a piece has a power of two of bytes, from 16 KiB to 512 MiB")
        }
        #expect(
            problem(file) { $0.name = "a/b" } == "the torrent would have a name with “/” in it, which would lead "
                + "elsewhere; give it another with --name")
        #expect(problem(file) { $0.trackers = ["no url"] }.hasPrefix("file makes no torrent: "))
    }

    @Test
    func `a piece length is chosen so that there are at most 2,048 pieces`() throws {
        let file = directory.path("sparse")
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        #expect(truncate(file, 40 << 20) == 0)
        #expect(try TorrentMaker(path: file).make().metainfo.info.pieceLength == 32_768)
    }

    @Test
    func `any number of threads makes the same torrent, whatever the pieces and files`() throws {
        let content = Self.bytes(3_400_001)
        var start = 0
        for (index, length) in [1, 16_384, 0, 16_383, 1_000_000, 5, 1_500_000, 867_228].enumerated() {
            _ = try directory.write("set/\(index)", Array(content[start..<start + length]))
            start += length
        }
        for pieceLength in [16_384, 65_536, 1 << 20, 2 << 20, 8 << 20] {
            var maker = TorrentMaker(path: directory.path("set"))
            maker.pieceLength = pieceLength
            let one = try maker.make(threadCount: 1).metainfo
            for threadCount in [2, 3, 16] {
                #expect(try maker.make(threadCount: threadCount).metainfo.bytes == one.bytes)
            }
            let last = content[(start - 1) / pieceLength * pieceLength..<start]
            #expect(
                one.info.pieceHashes?[piece: one.info.pieceCount - 1]?.description
                    == (try Self.sha1(last, in: directory)))
        }
    }

    @Test
    func `any number of threads makes the same hybrid, from files shorter and longer than a run`() throws {
        let content = Self.bytes(5_000_003)
        var start = 0
        for (index, length) in [1, 0, 65_536, 1_048_577, 3_000_000, 885_889].enumerated() {
            _ = try directory.write("set/\(index)", Array(content[start..<start + length]))
            start += length
        }
        for pieceLength in [16_384, 65_536, 1 << 20, 2 << 20] {
            var maker = TorrentMaker(path: directory.path("set"))
            maker.pieceLength = pieceLength
            maker.isHybrid = true
            let one = try maker.make(threadCount: 1).metainfo
            #expect(one.info.version == .hybrid)
            for threadCount in [2, 3, 16] {
                #expect(try maker.make(threadCount: threadCount).metainfo.bytes == one.bytes)
            }
        }
    }

    @Test
    func `several paths become entries of one directory, and need a name`() throws {
        _ = try directory.write("one/b", [1])
        _ = try directory.write("two/c/d", [2])
        let paths = [directory.path("two/c"), directory.path("one/b")]
        var maker = TorrentMaker(paths: paths)
        #expect(throws: TorrentMakerError.self) { try maker.make() }
        maker.name = "both"
        let info = try maker.make().metainfo.info
        #expect(info.name.description == "both")
        #expect(info.files.map { $0.path.map(\.description).joined(separator: "/") } == ["b", "c/d"])
        maker.paths = [directory.path("one/b"), try directory.write("three/b", [3])]
        #expect(throws: TorrentMakerError.self) { try maker.make() }
    }

    @Test
    func `a flipped byte is found in its piece and its files, with any number of threads`() throws {
        var content = Self.bytes(200_000)
        _ = try directory.write("set/a", Array(content[..<70_000]))
        let file = try directory.write("set/b", Array(content[70_000...]))
        var maker = TorrentMaker(path: directory.path("set"))
        maker.pieceLength = 16_384
        let info = try maker.make().metainfo.info
        let verifier = TorrentVerifier(info: info, path: directory.path("set"))
        #expect(verifier.verify()?.isRight == true)
        // In the piece that both files share, in one of b's own, and the very last byte.
        for (offset, pieces, states) in [
            (70_000, [4], [TorrentVerifier.FileState.wrong, .wrong]), (120_000, [7], [.right, .wrong]),
            (199_999, [12], [.right, .wrong]),
        ] {
            content[offset] ^= 1
            _ = try directory.write("set/b", Array(content[70_000...]))
            for threadCount in [1, 4] {
                let found = try #require(verifier.verify(threadCount: threadCount))
                #expect(found.wrongPieces == pieces)
                #expect(found.files.map(\.state) == states)
            }
            content[offset] ^= 1
        }
        #expect(truncate(file, 100_000) == 0)
        let short = try #require(verifier.verify())
        #expect(short.wrongPieces == Array(10...12))
        #expect(short.files.map(\.state) == [.right, .size(100_000)])
        #expect(unlink(file) == 0)
        #expect(mkfifo(file, 0o600) == 0)
        let pipe = try #require(verifier.verify())
        #expect(pipe.wrongPieces == Array(4...12))
        guard case .unreadable = pipe.files[1].state else {
            Issue.record("a pipe is \(pipe.files[1].state)")
            return
        }
    }
}

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
}

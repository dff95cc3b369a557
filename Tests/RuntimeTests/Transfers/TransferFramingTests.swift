import Datagrams
import Foundation
import Glibc
import Primitives
import Testing
import Torrents
import Transfers
import Wire

/// Peers that say what no peer should.
@Suite("Transfer framing")
struct TransferFramingTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// A blocking socket with a time-out.
    private static func connect(_ address: SocketAddress) throws -> CInt {
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var patience = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        try #require(address.withSystemAddress { Glibc.connect(descriptor, $0, $1) } == 0)
        return descriptor
    }

    private static func send(_ bytes: [UInt8], _ descriptor: CInt) {
        _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
    }

    /// Whether the other side closes, whatever it says before.
    private static func isClosed(_ descriptor: CInt) -> Bool {
        var room = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &room, room.count, 0)
            if count == 0 || (count < 0 && errno == ECONNRESET) { return true }
            if count < 0 { return false }
        }
    }

    private static func handshake(_ infoHash: InfoHash) -> [UInt8] {
        [19] + Array("BitTorrent protocol".utf8) + [0, 0, 0, 0, 0, 0, 0, 0] + infoHash.bytes.bytes
            + Array("-XX0001-abcdefghijkl".utf8)
    }

    @Test
    func `who says what is no message is left, and the others are served`() async throws {
        let torrent = try TestTorrent.make("served", sizes: [100_000], pieceLength: 32_768, in: directory)
        let infoHash = try #require(try Metainfo(decoding: torrent).infoHashV1)
        let seeder = try TestEngine()
        _ = try await seeder.engine.add(.metainfo(torrent), TransferOptions(directory: directory.path("")))
        try await eventually("it seeds") { seeder.told.checked == 4 }
        let address = await seeder.address()
        let hello = Self.handshake(infoHash)
        let strange: [(String, [UInt8])] = [
            ("no handshake", Array("GET / HTTP/1.1\r\n\r\n".utf8)),
            ("another torrent", Self.handshake(InfoHash(.zero))),
            ("a message of 4 GiB", hello + [255, 255, 255, 255, 5]),
            ("a bitfield of another length", hello + [0, 0, 0, 3, 5, 255, 255]),
            ("a request that is too short", hello + [0, 0, 0, 2, 6, 0]),
            ("a block that is too long", hello + [0, 16, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0]),
            ("a block without its head", hello + [0, 0, 0, 3, 7, 0, 0]),
            ("a request beyond the last piece", hello + [0, 0, 0, 13, 6, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 64, 0]),
        ]
        for (what, bytes) in strange {
            let descriptor = try Self.connect(address)
            Self.send(bytes, descriptor)
            #expect(Self.isClosed(descriptor), "\(what)")
            close(descriptor)
        }
        // A piece that nobody has asked for is drained, and no reason to leave.
        let descriptor = try Self.connect(address)
        defer { close(descriptor) }
        let unasked = [0, 0, 64, 9, 7, 0, 0, 0, 1, 0, 0, 0, 0] + [UInt8](repeating: 7, count: 16_384)
        // Interested, byte by byte.
        for byte in hello + [0, 0, 0, 1, 2] { Self.send([byte], descriptor) }
        Self.send(unasked + [0, 0, 0, 13, 6, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 6, 160], descriptor)
        let expected = Array(TestTorrent.bytes(100_000, seed: 0)[98_304...])
        var got: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 65_536)
        while !got.suffix(expected.count).elementsEqual(expected) {
            let count = recv(descriptor, &room, room.count, 0)
            try #require(count > 0, "the last block is given")
            got += room[..<count]
            // It was asked for before the seeder had let us: asked again, as without the fast extension one has to.
            if got.count < 200 { Self.send([0, 0, 0, 13, 6, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 6, 160], descriptor) }
        }
        await seeder.engine.stop()
    }
}

// STOMP frames: vectors both ways, every cut, drip by drip, what is refused and where its bounds are.

import Primitives
import Testing
import Wire

@Suite("STOMP")
struct StompTests {
    /// Reads all of the bytes as one piece.
    private static func frames(_ bytes: [UInt8], maxBody: Int = 1000) throws(StompError) -> [StompFrame] {
        var parser = StompParser(maxBodyByteCount: maxBody)
        var frames: [StompFrame] = []
        try parser.parse(bytes, into: &frames)
        return frames
    }

    struct Vector: Sendable, CustomTestStringConvertible {
        var frame: StompFrame
        var text: String

        init(_ frame: StompFrame, _ text: String) {
            self.frame = frame
            self.text = text
        }

        var testDescription: String { frame.command.rawValue }
    }

    static let vectors = [
        Vector(
            StompFrame(.connect, ["accept-version": "1.2", "host": "/", "passcode": "a:b\\n"]),
            "CONNECT\naccept-version:1.2\nhost:/\npasscode:a:b\\n\n\n\0"),
        Vector(
            StompFrame(.connected, ["version": "1.2", "heart-beat": "0,0"]),
            "CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0"),
        Vector(StompFrame(.send, ["destination": "/topic/a"]), "SEND\ndestination:/topic/a\n\n\0"),
        Vector(
            StompFrame(.message, ["subscription": "0"], body: [0x41, 0, 0x42, 0x0A]),
            "MESSAGE\nsubscription:0\ncontent-length:4\n\nA\0B\n\0"),
        Vector(
            StompFrame(.subscribe, ["id": "0", "destination": "a:b\\c\r\nd"]),
            "SUBSCRIBE\nid:0\ndestination:a\\cb\\\\c\\r\\nd\n\n\0"),
        Vector(StompFrame(.error, ["message": ""], body: [0x21]), "ERROR\nmessage:\ncontent-length:1\n\n!\0"),
        Vector(StompFrame(.receipt, ["receipt-id": "ä"]), "RECEIPT\nreceipt-id:ä\n\n\0"),
        Vector(StompFrame(.disconnect), "DISCONNECT\n\n\0"),
    ]

    @Test(arguments: vectors)
    func `a frame is its bytes, and comes back`(_ vector: Vector) throws {
        #expect(vector.frame.encoded() == Array(vector.text.utf8))
        #expect(try Self.frames(Array(vector.text.utf8)) == [vector.frame])
    }

    @Test func `a stream is read the same however it is cut`() throws {
        let stream: [UInt8] = Self.vectors.flatMap { vector -> [UInt8] in [0x0A, 0x0D, 0x0A] + vector.frame.encoded() }
        let whole = try Self.frames(stream)
        #expect(whole == Self.vectors.map(\.frame))
        for step in [1, 2, 3, 7, 64] {
            var parser = StompParser(maxBodyByteCount: 1000)
            var frames: [StompFrame] = []
            for start in stride(from: 0, to: stream.count, by: step) {
                try parser.parse(Array(stream[start..<min(stream.count, start + step)]), into: &frames)
            }
            #expect(frames == whole, "\(step) bytes at a time")
            #expect(parser.isBetweenFrames)
        }
    }

    @Test(arguments: vectors)
    func `a cut frame is no frame yet`(_ vector: Vector) throws {
        let bytes = vector.frame.encoded()
        for count in 1..<bytes.count {
            var parser = StompParser(maxBodyByteCount: 1000)
            var frames: [StompFrame] = []
            try parser.parse(Array(bytes[..<count]), into: &frames)
            #expect(frames.isEmpty && !parser.isBetweenFrames, "\(count) bytes")
        }
    }

    @Test func `lines may end in CR LF, repeats of a header do not count, and a body may end with NUL alone`() throws {
        let frames = try Self.frames(
            Array("MESSAGE\r\nid:1\r\nid:2\r\n\r\nbody\0\r\n\r\nRECEIPT\nreceipt-id:7\n\n\0\n\n".utf8))
        #expect(frames.count == 2)
        #expect(frames[0].headers["id"] == "1")
        #expect(frames[0].headers["nothing"] == nil)
        #expect(frames[0].body == Array("body".utf8))
        #expect(frames[1].headers["receipt-id"] == "7")
    }

    @Test func `the first content-length counts`() throws {
        let frames = try Self.frames(Array("MESSAGE\ncontent-length:3\ncontent-length:1\n\na\0b\0".utf8))
        #expect(frames.map(\.body) == [[0x61, 0, 0x62]])
    }

    @Test(
        arguments: [
            ("HELLO\n\n\0", StompError.unknownCommand("HELLO")),
            ("HTTP/1.1 400 Bad Request\r\n\r\n", .unknownCommand("HTTP/1.1?400?Bad?Req")),
            ("\0", .unknownCommand("?")),
            ("send\n\n\0", .unknownCommand("send")),
            ("SEND\nno colon\n\n\0", .badHeader),
            ("SEND\na:\\t\n\n\0", .badHeader),
            ("SEND\na:\\\n\n\0", .badHeader),
            ("SEND\na:b\rc\n\n\0", .badHeader),
            ("SEND\ncontent-length:-1\n\n\0", .badContentLength),
            ("SEND\ncontent-length:\n\n\0", .badContentLength),
            ("SEND\ncontent-length:+1\n\na\0", .badContentLength),
            ("SEND\ncontent-length:99999999999999999999\n\n\0", .badContentLength),
            ("SEND\ncontent-length:1\n\nab\0", .bodyGoesOn),
            ("SEND\ncontent-length:0\n\na\0", .bodyGoesOn),
        ] as [(String, StompError)])
    func `what is no STOMP is refused, at once or byte by byte`(_ text: String, _ error: StompError) throws {
        // An unknown command shows once its line is over.
        let bytes = Array(text.utf8) + (text == "\0" ? [0x0A] : [])
        #expect(throws: error) { try Self.frames(bytes) }
        var parser = StompParser(maxBodyByteCount: 1000)
        var frames: [StompFrame] = []
        #expect(throws: error) { for byte in bytes { try parser.parse([byte], into: &frames) } }
        // Whatever comes after that is refused, too.
        #expect(throws: error) { try parser.parse(Self.vectors[0].frame.encoded(), into: &frames) }
        #expect(frames.isEmpty)
    }

    @Test func `frames before a damaged one are kept`() {
        var parser = StompParser(maxBodyByteCount: 1000)
        var frames: [StompFrame] = []
        let good = Self.vectors[2].frame
        #expect(throws: StompError.badHeader) {
            try parser.parse(good.encoded() + Array("SEND\nx\n\n\0".utf8), into: &frames)
        }
        #expect(frames == [good])
    }

    @Test func `a body that is too long is passed over, and the frames behind it are read`() throws {
        let long = [UInt8](repeating: 7, count: 1001)
        let next = Self.vectors[3].frame
        var known = StompFrame(.message, ["id": "1"], body: long).encoded()
        known += next.encoded()
        // Without its length, NUL ends it.
        let unknown = Array("MESSAGE\nid:1\n\n".utf8) + long + [0] + next.encoded()
        let expected = [StompFrame(.message, StompHeaders(["id": "1"]), skippedByteCount: 1001), next]
        for stream in [known, unknown] {
            #expect(try Self.frames(stream) == expected)
            var parser = StompParser(maxBodyByteCount: 1000)
            var frames: [StompFrame] = []
            for byte in stream { try parser.parse([byte], into: &frames) }
            #expect(frames == expected)
        }
        #expect(try Self.frames(StompFrame(.message, body: Array(long.dropLast())).encoded())[0].body.count == 1000)
    }

    @Test func `a head has bounds`() throws {
        func headers(_ count: Int) -> [UInt8] {
            Array(("SEND\n" + (0..<count).map { "a\($0):b\n" }.joined() + "\n\0").utf8)
        }
        #expect(try Self.frames(headers(64)).count == 1)
        #expect(throws: StompError.headTooLong) { try Self.frames(headers(65)) }
        func line(_ count: Int) -> [UInt8] { Array("SEND\na:".utf8) + [UInt8](repeating: 0x62, count: count - 2) }
        #expect(try Self.frames(line(8192) + Array("\n\n\0".utf8)).count == 1)
        #expect(throws: StompError.headTooLong) { try Self.frames(line(8193)) }
        let two = line(8000) + [0x0A] + line(8000).dropFirst(5) + [0x0A]
        #expect(try Self.frames(two + [0x0A, 0]).count == 1)
        #expect(throws: StompError.headTooLong) { try Self.frames(two + line(400).dropFirst(5)) }
    }

    @Test func `mutated frames are read or refused, and what is read comes back`() {
        let torture = CodecTorture<[StompFrame]>(
            name: "STOMP",
            decode: { bytes in
                var parser = StompParser(maxBodyByteCount: 1000)
                var frames: [StompFrame] = []
                guard (try? parser.parse(bytes, into: &frames)) != nil, parser.isBetweenFrames else { return nil }
                return frames
            },
            encode: { $0.flatMap { $0.encoded() } },
            spice: Array("\n\r:\\\0c".utf8))
        let inputs = Self.vectors.map { $0.frame.encoded() }
        for input in inputs { torture.comesBack(input) }
        let counts = torture.mutate(inputs, seed: 1, rounds: 20_000)
        #expect(counts.accepted > 1000 && counts.refused > 1000)
    }
}

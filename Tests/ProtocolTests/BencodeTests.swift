// Bencoding, BEP 3.

import Primitives
import Testing
import Wire

@Suite("Bencoding")
struct BencodeTests {
    static let torture = CodecTorture(
        name: "bencode",
        decode: { try? BencodeValue(decoding: $0) },
        encode: { $0.encoded() },
        spice: Array("eild:-0123456789".utf8),
        // A reader that checks every rule may decode and encode again (BEP 3, `info_hash`).
        isCanonical: true)

    private func refusal(
        of text: String, _ strictness: BencodeStrictness = .strict, _ limits: BencodeLimits = .metainfo
    ) -> BencodeError? {
        #expect(throws: BencodeError.self, "\(text)") {
            try BencodeValue(decoding: [UInt8](ascii: text), strictness: strictness, limits: limits)
        }
    }

    // MARK: - What BEP 3 says

    @Test(arguments: [
        ("4:spam", BencodeValue.text("spam")),
        ("0:", .bytes([])),
        ("i3e", .integer(3)),
        ("i-3e", .integer(-3)),
        ("i0e", .integer(0)),
        ("l4:spam4:eggse", .list([.text("spam"), .text("eggs")])),
        ("le", .list([])),
        ("d3:cow3:moo4:spam4:eggse", .dictionary([.init("cow", .text("moo")), .init("spam", .text("eggs"))])),
        ("d4:spaml1:a1:bee", .dictionary([.init("spam", .list([.text("a"), .text("b")]))])),
        ("de", .dictionary([])),
        ("i9223372036854775807e", .integer(.max)),
        ("i-9223372036854775808e", .integer(.min)),
    ])
    func `the examples of BEP 3 are read and written`(_ text: String, _ value: BencodeValue) throws {
        #expect(try BencodeValue(decoding: [UInt8](ascii: text)) == value)
        #expect(printable(value.encoded()) == text)
    }

    @Test(arguments: [
        ("i-0e", BencodeError.Reason.negativeZero, 0),
        ("i03e", .leadingZero, 0),
        ("i-03e", .leadingZero, 0),
        ("i00e", .leadingZero, 0),
        ("ie", .integerWithoutDigits, 0),
        ("i-e", .integerWithoutDigits, 0),
        ("i--1e", .unexpectedByte(UInt8(ascii: "-")), 2),
        ("i+1e", .unexpectedByte(UInt8(ascii: "+")), 1),
        ("i1.5e", .unexpectedByte(UInt8(ascii: ".")), 2),
        ("i 1e", .unexpectedByte(UInt8(ascii: " ")), 1),
        ("i9223372036854775808e", .integerTooLarge, 0),
        ("i-9223372036854775809e", .integerTooLarge, 0),
        ("i99999999999999999999999999999999999e", .integerTooLarge, 0),
        ("04:spam", .leadingZero, 0),
        ("00:", .leadingZero, 0),
        ("-1:a", .unexpectedByte(UInt8(ascii: "-")), 0),
        ("5:spam", .stringTooLong, 0),
        ("99999999999999999999999999999:a", .stringTooLong, 0),
        ("4spam", .unexpectedByte(UInt8(ascii: "s")), 1),
        ("di1e1:ae", .keyIsNoString, 1),
        ("dle1:ae", .keyIsNoString, 1),
        ("d1:ae", .keyWithoutValue, 4),
        ("d1:b0:1:a0:e", .keysUnsorted, 6),
        ("d1:a0:1:a0:e", .keyRepeated, 6),
        ("d2:ab0:1:b0:1:a0:e", .keysUnsorted, 12),
        ("e", .unexpectedByte(UInt8(ascii: "e")), 0),
        ("x", .unexpectedByte(UInt8(ascii: "x")), 0),
        ("li1e", .endsEarly, 4),
        ("", .endsEarly, 0),
        ("i12", .endsEarly, 3),
        ("12", .stringTooLong, 0),
        ("1", .endsEarly, 1),
        ("i1ei2e", .trailingBytes, 3),
        ("i1e\n", .trailingBytes, 3),
    ])
    func `what BEP 3 forbids is refused, with the place`(
        _ text: String, _ reason: BencodeError.Reason, _ offset: Int
    ) {
        let error = refusal(of: text)
        #expect(error == BencodeError(reason, at: offset), "\(text)")
        #expect(error?.description.contains("byte \(offset))") == true)
    }

    @Test func `keys are sorted as raw bytes, the shorter first`() throws {
        let value = BencodeValue.dictionary([
            .init("b", .integer(1)), .init("a", .integer(2)), .init("ab", .integer(3)), .init([0xFF], .integer(4)),
            .init([], .integer(5)), .init("B", .integer(6)),
        ])
        #expect(printable(value.encoded()) == "d0:i5e1:Bi6e1:ai2e2:abi3e1:bi1e1:\\xffi4ee")
        #expect(try BencodeValue(decoding: value.encoded()).encoded() == value.encoded())
    }

    @Test func `of equal keys the encoder writes the first`() {
        let value = BencodeValue.dictionary([
            .init("b", .integer(1)), .init("a", .integer(2)), .init("b", .integer(3)), .init("a", .integer(4)),
        ])
        #expect(printable(value.encoded()) == "d1:ai2e1:bi1ee")
    }

    // MARK: - Leniency

    @Test func `lenient reading lets unsorted keys and trailing bytes through, and keeps the order`() throws {
        let bytes = [UInt8](ascii: "d4:infoi1e8:announce1:xe\r\nfatal error")
        let value = try BencodeValue(decoding: bytes, strictness: .lenient)
        #expect(value.entries?.map { printable($0.key) } == ["info", "announce"])
        #expect(value["announce"] == .text("x"))
        #expect(value["absent"] == nil)
    }

    @Test(arguments: ["d1:a0:1:a0:e", "d1:b0:1:a0:1:b0:e", "d1:c0:1:b0:1:a0:1:b0:e", "ld1:b0:1:a0:1:b0:eee"])
    func `a repeated key is refused in any order`(_ text: String) {
        #expect(refusal(of: text, .lenient)?.reason == .keyRepeated)
    }

    @Test(arguments: ["i03e", "i-0e", "01:a", "ie", "d1:ae", "i1"])
    func `lenient reading allows no second spelling`(_ text: String) {
        _ = refusal(of: text, .lenient)
    }

    // MARK: - Bounds

    @Test func `nesting is bounded, whatever a stranger nests`() throws {
        let limit = BencodeLimits.metainfo.depth
        let deepest = String(repeating: "l", count: limit) + String(repeating: "e", count: limit)
        #expect(try BencodeValue(decoding: [UInt8](ascii: deepest)).encoded() == [UInt8](ascii: deepest))
        #expect(refusal(of: "l\(deepest)e") == BencodeError(.tooDeep(limit: limit), at: limit))
        let bomb = [UInt8](repeating: UInt8(ascii: "l"), count: 1_000_000)
        #expect(throws: BencodeError(.tooDeep(limit: limit), at: limit)) { try BencodeDocument(bomb) }
        let keys = String(repeating: "d0:", count: 1_000)
        #expect(refusal(of: keys)?.reason == .tooDeep(limit: limit))
    }

    @Test func `values and bytes are bounded`() throws {
        let limits = BencodeLimits(byteCount: 16, depth: 3, valueCount: 5)
        #expect(try BencodeValue(decoding: [UInt8](ascii: "d1:ai1e1:c0:e"), limits: limits)["b"] == nil)
        #expect(refusal(of: "llelelelelee", .strict, limits) == BencodeError(.tooManyValues(limit: 5), at: 9))
        #expect(refusal(of: "14:aaaaaaaaaaaaaa", .strict, limits) == BencodeError(.tooManyBytes(limit: 16), at: 16))
    }

    // MARK: - Raw ranges

    @Test func `every value knows its raw bytes`() throws {
        let text = "d1:ai-42e1:bl3:xyzdee1:cd0:0:ee"
        let document = try BencodeDocument([UInt8](ascii: text))
        let root = document.root
        #expect(printable(root.rawBytes) == text)
        #expect(printable(root["a"]?.rawBytes ?? []) == "i-42e")
        #expect(printable(root["b"]?.rawBytes ?? []) == "l3:xyzdee")
        #expect(root["b"]?.elements?.map { printable($0.rawBytes) } == ["3:xyz", "de"])
        #expect(root["c"]?.entries?.map { printable($0.value.rawBytes) } == ["0:"])
        #expect(root["a"]?.integer == -42)
        #expect(root["a"]?.kind == .integer)
        #expect(root["a"]?.bytes == nil)
        #expect(root["b"]?.elements?.first { _ in true }?.bytes.map(printable) == "xyz")
        #expect(root["b"]?.kind == .list)
        #expect(root["c"]?.kind == .dictionary)
        #expect(root["c"]?[""]?.kind == .bytes)
        #expect(root["d"] == nil)
        #expect(root["a"]?["a"] == nil)
        #expect(root["c"].map { document.bytes[$0.range] } == [UInt8](ascii: "d0:0:e")[...])
    }

    @Test func `a message may be followed by its payload`() throws {
        // BEP 9, "data".
        let bytes = [UInt8](ascii: "d8:msg_typei1e5:piecei0e10:total_sizei34256eexxxxxxxx")
        let document = try BencodeDocument(prefixOf: bytes)
        #expect(document.root["total_size"]?.integer == 34_256)
        #expect(printable(bytes[document.root.range.upperBound...]) == "xxxxxxxx")
        #expect(throws: BencodeError(.trailingBytes, at: 45)) { try BencodeDocument(bytes) }
    }

    // MARK: - Torture

    static let vectors = [
        "d3:cow3:moo4:spam4:eggse", "d4:spaml1:a1:bee", "i-9223372036854775808e", "lli0eel0:ee", "de",
        "d1:ad1:bd1:cd1:dl4:spameeeee", "d0:i1e1:a2:xy3:abcle4:zzzzd0:0:ee",
        "d5:filesd20:xxxxxxxxxxxxxxxxxxxxd8:completei11e10:downloadedi13772e10:incompletei19eeee",
    ].map { [UInt8](ascii: $0) }

    @Test(arguments: vectors)
    func `canonical bytes come back, and no proper prefix is a value`(_ bytes: [UInt8]) {
        BencodeTests.torture.comesBack(bytes)
        #expect(BencodeTests.torture.acceptedCuts(of: bytes).isEmpty)
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `mutations are refused, or read and written byte for byte`(_ seed: UInt64) {
        let strict = BencodeTests.torture.mutate(BencodeTests.vectors, seed: seed, rounds: 5_000)
        #expect(strict.accepted > 100 && strict.refused > 100)
        let lenient = CodecTorture(
            name: "lenient bencode",
            decode: { bytes in
                // Sorted, as the encoder leaves it; only then can two readings be compared.
                (try? BencodeValue(decoding: bytes, strictness: .lenient)).flatMap {
                    try? BencodeValue(decoding: $0.encoded())
                }
            },
            encode: { $0.encoded() }, spice: BencodeTests.torture.spice)
        let counts = lenient.mutate(BencodeTests.vectors, seed: seed, rounds: 5_000)
        #expect(counts.accepted > strict.accepted)
    }

    @Test func `random trees come back`() throws {
        var random = RandomStream(seed: 7)
        func tree(_ depth: Int) -> BencodeValue {
            let bytes = (0..<random.below(5)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            switch random.below(depth > 0 ? 4 : 2) {
            case 0: return .integer(Int64(bitPattern: random.next()) >> Int64(random.below(64)))
            case 1: return .bytes(bytes)
            case 2: return .list((0..<random.below(5)).map { _ in tree(depth - 1) })
            default:
                return .dictionary((0..<random.below(5)).map { .init([UInt8($0)] + bytes, tree(depth - 1)) })
            }
        }
        for _ in 0..<2_000 {
            let value = tree(5)
            #expect(try BencodeValue(decoding: value.encoded()) == value)
        }
    }
}

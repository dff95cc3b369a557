// What every codec has to bear: its own output, every cut of it, and thousands of random mutations.
//
// A decoder that traps takes the test process with it, so "nothing traps" needs no expectation. Where a mutated
// input still decodes, encoding what was read and decoding that again must change nothing more.

import Primitives
import Testing

/// A codec as two functions, with inputs that it must accept.
struct CodecTorture<Value: Equatable>: Sendable {
    let name: String
    /// nil where the bytes are refused.
    let decode: @Sendable ([UInt8]) -> Value?
    let encode: @Sendable (Value) -> [UInt8]
    /// Bytes that mean something to the format, which mutations favour.
    var spice: [UInt8] = [0, 0xFF]
    /// Each value has one spelling, and the decoder accepts no other.
    var isCanonical = false

    /// Canonical bytes come back as they were.
    func comesBack(_ canonical: [UInt8], _ location: SourceLocation = #_sourceLocation) {
        guard let value = decode(canonical) else {
            Issue.record("\(name): \(printable(canonical)) is refused", sourceLocation: location)
            return
        }
        #expect(encode(value) == canonical, "\(name)", sourceLocation: location)
    }

    /// Decodes every proper prefix.
    ///
    /// - Returns: the lengths, in bytes, of the prefixes that were accepted.
    func acceptedCuts(of bytes: [UInt8]) -> [Int] {
        (0..<bytes.count).filter { decode(Array(bytes[..<$0])) != nil }
    }

    /// Mutates the inputs at random, each time one of them.
    ///
    /// - Returns: how many mutations were accepted, and how many refused; a test that sees only one kind tests little.
    @discardableResult
    func mutate(
        _ inputs: [[UInt8]], seed: UInt64, rounds: Int, _ location: SourceLocation = #_sourceLocation
    ) -> (accepted: Int, refused: Int) {
        var random = RandomStream(seed: seed)
        var counts = (accepted: 0, refused: 0)
        for round in 0..<rounds {
            var bytes = inputs[random.below(inputs.count)]
            for _ in 0...random.below(3) { mutateOnce(&bytes, inputs, &random) }
            guard let value = decode(bytes) else {
                counts.refused += 1
                continue
            }
            counts.accepted += 1
            let encoded = encode(value)
            guard decode(encoded) == value, !isCanonical || encoded == bytes else {
                Issue.record(
                    """
                    \(name), seed \(seed), round \(round): \(printable(bytes)) is read, written as \
                    \(printable(encoded)), and that is not the same
                    """, sourceLocation: location)
                return counts
            }
        }
        return counts
    }

    private func mutateOnce(_ bytes: inout [UInt8], _ inputs: [[UInt8]], _ random: inout RandomStream) {
        let index = random.below(bytes.count + 1)
        let end = min(bytes.count, index + random.below(8))
        switch random.below(8) {
        case 0 where index < bytes.count: bytes[index] ^= 1 << UInt8(random.below(8))
        case 1 where index < bytes.count: bytes[index] = UInt8(truncatingIfNeeded: random.next())
        case 2 where index < bytes.count: bytes[index] = spice[random.below(spice.count)]
        case 3: bytes.insert(spice[random.below(spice.count)], at: index)
        case 4: bytes.removeSubrange(index..<end)
        case 5: bytes.insert(contentsOf: bytes[index..<end], at: index)
        case 6: bytes.removeSubrange(index...)
        default:
            // The head of one input and the tail of another.
            let other = inputs[random.below(inputs.count)]
            bytes.replaceSubrange(index..., with: other[random.below(other.count + 1)...])
        }
    }
}

/// ASCII as it is, the rest as `\xHH`.
func printable(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
        (0x20..<0x7F).contains(byte) ? String(UnicodeScalar(byte)) : "\\x" + hexadecimal([byte])
    }.joined()
}

extension [UInt8] {
    /// The UTF-8 bytes of a text.
    init(ascii text: String) { self = Array(text.utf8) }
}

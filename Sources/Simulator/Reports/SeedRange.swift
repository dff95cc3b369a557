// Which seeds a sweep runs: one, from one to another, or so many from 1 on.

/// Seeds in rising order.
public struct SeedRange: Sendable, Hashable {
    /// Scenarios in one sweep, at most: some weeks of work.
    public static let maxCount: UInt64 = 1_000_000_000

    /// The first seed.
    public var first: UInt64
    /// How many seeds; at least 1.
    public var count: UInt64

    /// One seed.
    public init(seed: UInt64) {
        first = seed
        count = 1
    }

    /// The seeds 1 … count.
    public init(count: Int) throws(SeedRangeError) {
        guard count >= 1 else { throw .tooFew }
        guard UInt64(count) <= SeedRange.maxCount else { throw .tooMany }
        first = 1
        self.count = UInt64(count)
    }

    /// Reads `17..4000`; both ends belong to it.
    public init(_ text: String) throws(SeedRangeError) {
        let bytes = Array(text.utf8)
        let dot = UInt8(ascii: ".")
        guard let gap = bytes.indices.dropLast().first(where: { bytes[$0] == dot && bytes[$0 + 1] == dot }),
            let first = SeedRange.seed(bytes[..<gap]), let last = SeedRange.seed(bytes[(gap + 2)...])
        else { throw .notARange(text) }
        guard first <= last else { throw .backwards(first, last) }
        guard last - first < SeedRange.maxCount else { throw .tooMany }
        self.first = first
        count = last - first + 1
    }

    /// Digits, and nothing else.
    private static func seed(_ bytes: ArraySlice<UInt8>) -> UInt64? {
        guard bytes.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return UInt64(String(decoding: bytes, as: UTF8.self))
    }

    /// The seed at a place below `count`.
    public subscript(place: UInt64) -> UInt64 { first &+ place }
}

/// Seeds that cannot be run, and what to write instead.
public enum SeedRangeError: Error, Hashable, CustomStringConvertible {
    case notARange(String)
    case backwards(UInt64, UInt64)
    case tooFew
    case tooMany

    /// A sentence with what to write instead.
    public var description: String {
        switch self {
        case .notARange(let text):
            "\"\(text)\" is no range of seeds: write the first and the last with two dots between, as in 1..4000"
        case .backwards(let first, let last):
            "\(first)..\(last) runs backwards: write \(last)..\(first)"
        case .tooFew: "a sweep has at least one scenario: write --count 1 or more"
        case .tooMany: "a sweep has at most \(SeedRange.maxCount) scenarios: run several, one after another"
        }
    }
}

// Keeps a stream of blocks below a rate.

import Primitives

/// Keeps a stream of blocks below a rate: a bucket that fills with time, from which each block takes its bytes.
///
/// A block may be taken as soon as the bucket is not empty, and may overdraw it: so blocks longer than the bucket pass,
/// and the mean is kept all the same.
struct TokenBucket: Sendable, Hashable {
    /// Bytes a second; nil for no limit.
    private(set) var rate: Int?
    private var tokens = 0
    private var filledAt = Instant(nanoseconds: 0)

    /// So many bytes may go at once after a rest: a quarter of a second's, and a block at least.
    static func burst(_ rate: Int) -> Int { max(rate / 4, 16_384) }

    mutating func setRate(_ rate: Int?, now: Instant) {
        fill(now)
        self.rate = rate
        tokens = rate.map { min(max(tokens, 0), Self.burst($0)) } ?? 0
        filledAt = now
    }

    /// Takes the bytes if anything may go now.
    mutating func take(_ byteCount: Int, now: Instant) -> Bool {
        guard rate != nil else { return true }
        fill(now)
        guard tokens > 0 else { return false }
        tokens -= byteCount
        return true
    }

    /// Bytes that were taken and did not go.
    mutating func giveBack(_ byteCount: Int) {
        guard let rate else { return }
        tokens = min(tokens + byteCount, Self.burst(rate))
    }

    /// When something may go again; nil where it may now.
    mutating func opensAt(_ now: Instant) -> Instant? {
        guard let rate else { return nil }
        fill(now)
        guard tokens <= 0 else { return nil }
        let missing = Int64(1 - tokens)
        return now + Duration(nanoseconds: missing * 1_000_000_000 / Int64(max(rate, 1)) + 1)
    }

    private mutating func fill(_ now: Instant) {
        guard let rate, now > filledAt else { return }
        // Whole tokens only; what is left of the time stays for the next filling.
        let product = ((now - filledAt).nanoseconds / 1_000).multipliedReportingOverflow(by: Int64(rate))
        let gained = (product.overflow ? Int64.max : product.partialValue) / 1_000_000
        guard gained > 0 else { return }
        tokens = min(tokens + Int(gained), Self.burst(rate))
        filledAt = now
    }
}

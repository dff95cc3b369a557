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
        return filledAt + Self.time(of: Int64(1 - tokens), rate)
    }

    /// To fill it twice at one time fills it once: what is left of the time, less than a token's, stays for the next.
    private mutating func fill(_ now: Instant) {
        guard let rate, now > filledAt else { return }
        let gained = Self.tokens(of: now - filledAt, rate)
        guard gained > 0 else { return }
        guard gained < Int64(Self.burst(rate) - tokens) else {
            tokens = Self.burst(rate)
            filledAt = now
            return
        }
        tokens += Int(gained)
        filledAt = filledAt + Self.time(of: gained, rate)
    }

    /// Whole tokens that come in a time.
    private static func tokens(of time: Duration, _ rate: Int) -> Int64 {
        let product = time.nanoseconds.multipliedFullWidth(by: Int64(rate))
        guard product.high < 500_000_000 else { return .max }
        return (1_000_000_000 as Int64).dividingFullWidth(product).quotient
    }

    /// The shortest time in which so many tokens come.
    private static func time(of tokens: Int64, _ rate: Int) -> Duration {
        let rate = Int64(max(rate, 1))
        return .seconds(tokens / rate) + Duration(nanoseconds: below(tokens % rate, rate))
    }

    /// The nanoseconds in which a part of a second's tokens comes, rounded up.
    private static func below(_ tokens: Int64, _ rate: Int64) -> Int64 {
        let (quotient, remainder) = rate.dividingFullWidth(tokens.multipliedFullWidth(by: 1_000_000_000))
        return remainder > 0 ? quotient + 1 : quotient
    }
}

// How often somebody may try to log in.

import Primitives

/// How often somebody may try to log in: ten times at once, then once in ten seconds, for each address or network of 64
/// bits (IPv6).
///
/// By address and not by account, so that nobody can lock out anybody else. Whoever has many addresses meets
/// `PasswordHasher`, which does three a second for all of them together.
struct LoginLimiter {
    /// Attempts that an address has at once.
    static let burst = 10
    /// How long until it has another.
    static let refill = Duration.seconds(10)
    /// Addresses that are remembered; of more, those go that have all their attempts, then whichever was first.
    static let maxAddresses = 4096

    private struct Bucket {
        /// When all attempts are there again.
        var fullAt: Instant
    }

    private var buckets: [SocketAddress: Bucket] = [:]

    /// Takes an attempt.
    ///
    /// - Returns: nil where there was one; else how long until there is.
    mutating func take(_ address: SocketAddress, now: Instant) -> Duration? {
        let key = LoginLimiter.network(address)
        let fullAt = max(buckets[key]?.fullAt ?? now, now) + LoginLimiter.refill
        let wait = fullAt - (now + LoginLimiter.refill * LoginLimiter.burst)
        guard wait <= .zero else { return wait }
        if buckets[key] == nil, buckets.count >= LoginLimiter.maxAddresses {
            buckets = buckets.filter { $0.value.fullAt > now }
            if buckets.count >= LoginLimiter.maxAddresses,
                let any = buckets.min(by: { $0.value.fullAt < $1.value.fullAt })
            {
                buckets[any.key] = nil
            }
        }
        buckets[key] = Bucket(fullAt: fullAt)
        return nil
    }

    /// Whoever has logged in has all attempts again.
    mutating func succeeded(_ address: SocketAddress) { buckets[LoginLimiter.network(address)] = nil }

    private static func network(_ address: SocketAddress) -> SocketAddress {
        address.isIPv4
            ? SocketAddress(high: address.high, low: address.low, port: 0)
            : SocketAddress(high: address.high, low: 0, port: 0)
    }
}

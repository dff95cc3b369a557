// Passwords, hashed where somebody logs in.

import CryptoExtras
import Dispatch
import Foundation
import Synchronization
import Wire

/// Hashes passwords with scrypt, one at a time, on a thread of its own.
///
/// A hash takes some tenths of a second and 32 MiB on purpose. So no more than a few wait, and whoever comes then is
/// told to try again: log-ins never take more than one processor from the announces.
///
/// - SeeAlso: RFC 7914; the parameters are those of OWASP's table, N 2^15, r 8, p 3.
public final class PasswordHasher: Sendable {
    /// Log-ins that wait, with the one that is being worked on.
    public static let maxWaiting = 16
    /// Bytes of a password: none in use is longer, and none is so long that it takes long to read.
    public static let maxPasswordByteCount = 1024
    /// Characters of a new password, at least (NIST SP 800-63B).
    public static let minPasswordLength = 8
    /// What a new password has to be, for whoever gives another.
    public static let passwordRule =
        "a password has \(minPasswordLength) characters or more, and at most \(maxPasswordByteCount) bytes"

    /// Whether it may be anybody's new password.
    public static func isAcceptable(_ password: String) -> Bool {
        password.count >= minPasswordLength && password.utf8.count <= maxPasswordByteCount
    }

    private static let parameters = (log2N: UInt8(15), r: UInt8(8), p: UInt8(3))
    private static let saltByteCount = 16
    private static let hashByteCount = 32

    private let queue = DispatchQueue(label: "swarmkeeper.passwords", qos: .utility)
    private let waiting = Mutex(0)

    /// Works when it is asked.
    public init() {}

    /// The hash of a new password, with a salt of its own.
    ///
    /// - Returns: nil where too many wait.
    public func hash(_ password: String) async -> PasswordHash? {
        var random = SystemRandomNumberGenerator()
        let salt = (0..<Self.saltByteCount).map { _ in UInt8.random(in: 0...255, using: &random) }
        var hash = PasswordHash(
            log2N: Self.parameters.log2N, r: Self.parameters.r, p: Self.parameters.p, salt: salt, hash: [])
        guard let bytes = await derive(password, like: hash, byteCount: Self.hashByteCount) else { return nil }
        hash.hash = bytes
        return hash
    }

    /// Whether a password is the one that was hashed.
    ///
    /// - Parameters:
    ///   - password: as somebody has typed it.
    ///   - hash: nil for somebody who is not known, or has no password: then it takes as long, and is wrong.
    /// - Returns: nil where too many wait.
    public func isRight(_ password: String, _ hash: PasswordHash?) async -> Bool? {
        let standIn = PasswordHash(
            log2N: Self.parameters.log2N, r: Self.parameters.r, p: Self.parameters.p,
            salt: [UInt8](repeating: 0, count: Self.saltByteCount), hash: [])
        let known = hash ?? standIn
        guard let bytes = await derive(password, like: known, byteCount: max(known.hash.count, Self.hashByteCount))
        else { return nil }
        guard let hash else { return false }
        return Self.areSame(bytes, hash.hash)
    }

    /// Whether two hashes are the same, in a time that does not tell where they differ; none is the same as nothing.
    package static func areSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard !left.isEmpty, left.count == right.count else { return false }
        var difference: UInt8 = 0
        // Not in one expression: `|` and `^` bind alike there, from the left.
        for (one, other) in zip(left, right) { difference |= one ^ other }
        return difference == 0
    }

    /// Whether a hash was made with other parameters than a new one would be.
    public func isOutdated(_ hash: PasswordHash) -> Bool {
        (hash.log2N, hash.r, hash.p) != (Self.parameters.log2N, Self.parameters.r, Self.parameters.p)
    }

    private func derive(_ password: String, like hash: PasswordHash, byteCount: Int) async -> [UInt8]? {
        let isFree = waiting.withLock { count in
            guard count < Self.maxWaiting else { return false }
            count += 1
            return true
        }
        guard isFree else { return nil }
        defer { waiting.withLock { $0 -= 1 } }
        return await withCheckedContinuation { continuation in
            queue.async {
                let key = try? KDF.Scrypt.deriveKey(
                    from: Array(password.utf8), salt: hash.salt, outputByteCount: byteCount,
                    rounds: 1 << Int(hash.log2N), blockSize: Int(hash.r), parallelism: Int(hash.p))
                // What cannot be computed is no password's hash.
                continuation.resume(returning: key?.withUnsafeBytes { Array($0) } ?? [])
            }
        }
    }
}

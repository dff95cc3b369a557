// The key of a cluster, and the MAC that proves that a frame comes from one of its trackers.

import Crypto
import Wire

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// What is wrong with the configuration of a bus: what, why, what to do.
///
/// Never holds credentials.
public struct BusConfigurationError: Error, Equatable, CustomStringConvertible {
    /// A sentence that names the thing, the cause and the way out.
    public var description: String

    /// Takes the sentence.
    public init(_ description: String) { self.description = description }
}

/// The secret that all trackers of a cluster share, as its file holds it.
public struct ClusterKey: Sendable, Equatable {
    /// Shorter ones could be guessed, were they a person's words; 32 random bytes are as strong as the MAC.
    public static let minByteCount = 32
    /// Longer files are surely something else.
    public static let maxByteCount = 4096

    let bytes: [UInt8]

    /// - Throws: when there are too few or too many bytes.
    public init(_ bytes: [UInt8]) throws(BusConfigurationError) {
        guard bytes.count >= ClusterKey.minByteCount else {
            throw BusConfigurationError(
                "the cluster key has \(bytes.count) bytes, and needs \(ClusterKey.minByteCount) at least; make one "
                    + "with: openssl rand -hex 32")
        }
        guard bytes.count <= ClusterKey.maxByteCount else {
            throw BusConfigurationError(
                "the cluster key has more than \(ClusterKey.maxByteCount) bytes; is it the right file?")
        }
        self.bytes = bytes
    }

    /// Reads a key file: at least 32 bytes, of which white space at both ends does not count, so that an editor's last
    /// line end makes no other key.
    ///
    /// Only its owner may read it; where that is root, and the tracker is not, a group may read it, too. So are the
    /// credentials that systemd passes on to a service, and the secrets of some container engines.
    ///
    /// - Throws: what is wrong with the file and how to mend it.
    public init(file path: String) throws(BusConfigurationError) {
        // A pipe would keep us until somebody writes into it: for ever, and no signal would end that.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw ClusterKey.failure(path, errno) }
        defer { close(descriptor) }
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { throw ClusterKey.failure(path, errno) }
        switch information.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw ClusterKey.failure(path, EISDIR)
        default:
            throw BusConfigurationError(
                "the cluster key file \(path): this is no regular file but a pipe or a device; write the key to a file")
        }
        guard ClusterKey.isGuarded(mode: information.st_mode, owner: information.st_uid, user: geteuid()) else {
            let mode = String(information.st_mode & 0o777, radix: 8)
            throw BusConfigurationError(
                "the cluster key file \(path) can be read or written by others than its owner (mode \(mode)); whoever "
                    + "has it can speak for the whole cluster. Run: chmod 600 \(path)")
        }
        // One more than allowed, so that a file which is too long shows.
        var bytes = [UInt8](repeating: 0, count: ClusterKey.maxByteCount + 1)
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress! + count, $0.count - count) }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw ClusterKey.failure(path, errno) }
            if got == 0 { break }
            count += got
        }
        var content = bytes[..<count]
        func isBlank(_ byte: UInt8) -> Bool { byte == 32 || (9...13).contains(byte) }
        content = content.drop(while: isBlank)
        while let last = content.last, isBlank(last) { content.removeLast() }
        do throws(BusConfigurationError) {
            try self.init(Array(content))
        } catch {
            throw BusConfigurationError("\(path): \(error)")
        }
    }

    /// Whether nobody reads or writes a key file who should not.
    package static func isGuarded(mode: mode_t, owner: uid_t, user: uid_t) -> Bool {
        let isGiven = owner == 0 && user != 0
        return mode & (isGiven ? 0o037 : 0o077) == 0
    }

    /// Draws a new key, as the text of a key file: 64 hexadecimal digits and a line end.
    public static func makeKey() -> String {
        var system = SystemRandomNumberGenerator()
        let digits = Array("0123456789abcdef")
        var text = ""
        for _ in 0..<ClusterKey.minByteCount {
            let byte = UInt8.random(in: 0...255, using: &system)
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return text + "\n"
    }

    private static func failure(_ path: String, _ code: Int32) -> BusConfigurationError {
        let reason =
            switch code {
            case ENOENT: "there is no such file; make one with: (umask 077; openssl rand -hex 32 > \(path))"
            case EACCES, EPERM: "this user may not read it; it must belong to the user that runs the tracker"
            case EISDIR: "this is a directory; name a file"
            default: "it cannot be read: \(String(cString: strerror(code)))"
            }
        return BusConfigurationError("the cluster key file \(path): \(reason)")
    }
}

/// The key of one cluster's bus: follows from the cluster's key and name.
package struct BusKey: Sendable {
    /// Of no bytes yet: the key's own two blocks are hashed once, not with each frame.
    private let begun: HMAC<SHA256>
    /// The first bytes of a hash of the cluster's name: tells foreign frames from forged ones, proves nothing.
    package let cluster: UInt32

    package init(_ clusterKey: ClusterKey, clusterName: String) {
        let name = Array(clusterName.utf8)
        let key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: clusterKey.bytes), salt: Array("swarmkeeper bus 1".utf8), info: name,
            outputByteCount: 32)
        begun = HMAC<SHA256>(key: key)
        cluster = SHA256.hash(data: name).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Appends the MAC of what the frame holds: HMAC-SHA256, cut to 16 bytes (RFC 2104, 5).
    package func seal(_ frame: inout [UInt8]) {
        let mac = frame.withUnsafeBytes { code($0) }
        mac.withUnsafeBytes { frame.append(contentsOf: $0.prefix(BusFrameHead.macByteCount)) }
    }

    /// Whether a frame ends with its MAC.
    ///
    /// The time that this takes does not depend on where they differ.
    package func isAuthentic(_ frame: [UInt8]) -> Bool {
        guard frame.count >= BusFrameHead.macByteCount else { return false }
        return frame.withUnsafeBytes { bytes in
            let split = bytes.count - BusFrameHead.macByteCount
            let mac = code(UnsafeRawBufferPointer(rebasing: bytes[..<split]))
            return mac.withUnsafeBytes { right in
                var difference: UInt8 = 0
                for index in 0..<BusFrameHead.macByteCount { difference |= right[index] ^ bytes[split + index] }
                return difference == 0
            }
        }
    }

    private func code(_ bytes: UnsafeRawBufferPointer) -> HMAC<SHA256>.MAC {
        var mac = begun
        mac.update(data: bytes)
        return mac.finalize()
    }
}

extension ClusterKey {
    /// Whether all bytes are the same: zeros of `/dev/zero`, or a row of the digit 0.
    package var isMonotonous: Bool { bytes.allSatisfy { $0 == bytes[0] } }
}

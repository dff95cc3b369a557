// Info hashes: computed over the raw bytes of the info dictionary, never over an encoding of our own.

import Crypto
import Primitives
import Wire

extension Metainfo {
    /// The SHA-1 of the info dictionary (BEP 3); nil for a torrent that is v2 only.
    public var infoHashV1: InfoHash? {
        guard info.version != .v2 else { return nil }
        return Bytes20(Insecure.SHA1.hash(data: infoBytes).map { $0 }).map { InfoHash($0) }
    }

    /// The SHA-256 of the info dictionary (BEP 52); nil for a torrent that is v1 only.
    public var infoHashV2: Bytes32? {
        guard info.version != .v1 else { return nil }
        return Bytes32(SHA256.hash(data: infoBytes).map { $0 })
    }

    /// The info hashes under which peers announce the torrent: a v2 hash is cut to 20 bytes (BEP 52).
    public var trackerInfoHashes: [InfoHash] {
        let v2 = infoHashV2.flatMap { Bytes20($0.bytes.prefix(20)) }.map { InfoHash($0) }
        return [infoHashV1, v2].compactMap { $0 }
    }
}

/// The SHA-256 of some bytes.
package func sha256(_ bytes: some Sequence<UInt8>) -> [UInt8] { SHA256.hash(data: Array(bytes)).map { $0 } }

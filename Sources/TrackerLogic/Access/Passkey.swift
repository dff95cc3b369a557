// Finds the passkey in the path and query of an announce URL.

/// Finds the passkey in the path and query of an announce URL: `/PASSKEY/announce`, `/announce/PASSKEY` or
/// `?passkey=PASSKEY`.
public enum Passkey {
    /// Longest passkey, in bytes: more is no passkey.
    public static let maxByteCount = 128

    /// Reads the passkey out of path and query, as BEP 41 carries them; empty where there is none, or it is too long.
    public static func inURL(_ url: [UInt8]) -> [UInt8] {
        let parts = url.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 {
            for pair in parts[1].split(separator: UInt8(ascii: "&")) where pair.starts(with: "passkey=".utf8) {
                return bounded(pair.dropFirst(8))
            }
        }
        let path = parts.first ?? []
        for component in path.split(separator: UInt8(ascii: "/")) {
            if !component.elementsEqual("announce".utf8), !component.elementsEqual("scrape".utf8) {
                return bounded(component)
            }
        }
        return []
    }

    private static func bounded(_ passkey: ArraySlice<UInt8>) -> [UInt8] {
        passkey.count <= maxByteCount ? Array(passkey) : []
    }
}

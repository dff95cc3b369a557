// The passkey in an announce URL, read once more.

/// The passkey in an announce URL, read once more: by a walk over its bytes, so that the tracker's own reading is
/// judged, and not believed (docs/bounds.md: 128 bytes at most).
enum AskedPasskey {
    private static let maxByteCount = 128
    private static let key = Array("passkey=".utf8)
    /// No part of a path that is a passkey.
    private static let words = [Array("announce".utf8), Array("scrape".utf8)]

    /// The passkey in path and query; empty where there is none, or it is too long.
    ///
    /// What the query says counts first: `passkey=` at its beginning, or behind a `&`. Else it is the first part of the
    /// path that is neither `announce` nor `scrape`.
    static func read(_ url: [UInt8]) -> [UInt8] {
        guard !url.isEmpty else { return [] }
        let (slash, question, ampersand) = (UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "&"))
        let queryStart = url.firstIndex(of: question) ?? url.count
        var part: [UInt8] = []
        var query: [[UInt8]] = []
        var path: [[UInt8]] = []
        for place in 0...url.count {
            let isInQuery = place > queryStart
            let separator = isInQuery ? ampersand : slash
            guard place == url.count || place == queryStart || url[place] == separator else {
                part.append(url[place])
                continue
            }
            if isInQuery { query.append(part) } else if !part.isEmpty { path.append(part) }
            part = []
        }
        let asked = query.first { $0.starts(with: key) }.map { Array($0.dropFirst(key.count)) }
        let passkey = asked ?? path.first { !words.contains($0) } ?? []
        return passkey.count <= maxByteCount ? passkey : []
    }
}

// The web seeds of one torrent as its owner knows them (BEP 19).

import Primitives

/// The web seeds of one torrent as its owner knows them (BEP 19): URLs, and what has come of them.
struct WebSeedBook {
    /// Web seeds of a torrent that are asked; more are left out.
    static let maxCount = 100

    /// In the torrent's order, those that cannot be asked among them.
    private(set) var views: [TransferSnapshot.WebSeed] = []
    /// Of the session's numbers, the places.
    private var numbers: [Int] = []
    /// URLs that cannot be asked, and why.
    private(set) var unusable: [(url: String, reason: String)] = []

    init(_ urls: [String]) {
        for url in urls.prefix(Self.maxCount) {
            let reason = Self.problem(of: url)
            if let reason { unusable.append((url, reason)) } else { numbers.append(views.count) }
            views.append(TransferSnapshot.WebSeed(url: url, received: 0, problem: reason))
        }
    }

    private static func problem(of url: String) -> String? {
        let lower = url.prefix(8).lowercased()
        if lower.hasPrefix("http://") { return nil }
        return lower.hasPrefix("https://")
            ? "\(quoted(url)) cannot be asked: HTTPS is not spoken; use a mirror over http://"
            : "\(quoted(url)) cannot be asked: files come over http:// only"
    }

    /// How many the session may ask, by numbers from 0.
    var count: Int { numbers.count }

    func url(of seed: Int) -> String { views[numbers[seed]].url }

    mutating func gave(_ seed: Int, byteCount: Int) {
        views[numbers[seed]].received += byteCount
        views[numbers[seed]].problem = nil
    }

    mutating func failed(_ seed: Int, _ reason: String) { views[numbers[seed]].problem = reason }
}

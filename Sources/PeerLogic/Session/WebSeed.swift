// A web server that has the files (BEP 19).

import Primitives
import Wire

/// A web server that has the files (BEP 19): it is asked for whole pieces, a few at a time, and not again once it has
/// lied.
struct WebSeed: Sendable, Equatable {
    static let maxFetchCount = 4
    static let firstWait = Duration.seconds(15)

    private var fetching: [Int] = []
    private var failures = 0
    /// After a failure.
    private var nextTry: Instant?
    private var isGivenUp = false

    func mayFetch(_ now: Instant) -> Bool { !isGivenUp && nextTry ?? now <= now && fetching.count < Self.maxFetchCount }

    mutating func began(_ piece: Int) { fetching.append(piece) }

    /// Whether the piece was being fetched.
    mutating func ended(_ piece: Int, _ problem: WebSeedProblem?, now: Instant) -> Bool {
        guard let index = fetching.firstIndex(of: piece) else { return false }
        fetching.remove(at: index)
        switch problem {
        case nil: failures = 0
        case .unavailable:
            nextTry = now + Self.firstWait * (1 << Int64(min(failures, 8)))
            failures += 1
        case .unusable: isGivenUp = true
        }
        return true
    }

    mutating func giveUp() { isGivenUp = true }
}

extension TorrentSession {
    /// Names a web seed among the senders of blocks: above all entries of the book.
    static func sender(ofSeed seed: Int) -> UInt32 { UInt32.max - UInt32(seed) }

    mutating func fetchFromWeb(_ now: Instant, _ actions: inout [Action]) {
        guard phase == .running, torrent.layout != nil else { return }
        for seed in webSeeds.indices {
            while webSeeds[seed].mayFetch(now) {
                guard downloadLimit.take(torrent.layout?.pieceLength ?? 0, now: now) else { return }
                guard
                    let piece = picker?.beginForWeb(seed, budget: settings.maxBufferedByteCount / 2, random: &random)
                else {
                    downloadLimit.giveBack(torrent.layout?.pieceLength ?? 0)
                    return
                }
                webSeeds[seed].began(piece)
                actions.append(.fetchFromWeb(seed: seed, piece: piece))
            }
        }
    }

    mutating func webPiece(
        _ seed: Int, _ piece: Int, _ problem: WebSeedProblem?, _ now: Instant, _ actions: inout [Action]
    ) {
        guard webSeeds.indices.contains(seed), webSeeds[seed].ended(piece, problem, now: now) else { return }
        let isWhole = picker?.webPiece(piece, from: Self.sender(ofSeed: seed), isHere: problem == nil) ?? false
        if isWhole {
            received += torrent.layout?.length(ofPiece: piece) ?? 0
            actions.append(.verify(piece: piece, wantsDigests: suspicions.concern(piece)))
        } else {
            actions.append(.releaseBuffer(piece: piece))
            refillAll(now, &actions)
        }
        fetchFromWeb(now, &actions)
    }
}

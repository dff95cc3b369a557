// What the two sides of a partition know, and what has to come of it.

import Primitives
import TrackerLogic
import Wire

/// The latest that a side knows of a thing.
struct Word<Key: Sendable & Equatable, Value: Sendable & Equatable>: Sendable, Equatable {
    var key: Key
    /// When it became so: seconds since 1970.
    var time: UInt32
    /// nil where it was removed, or has stopped.
    var value: Value?

    /// Whether it counts more than another by their times: an end outlives what began at the same time.
    func isLater(than other: Word) -> Bool {
        time != other.time ? time > other.time : value == nil && other.value != nil
    }
}

/// A peer of a swarm.
struct PeerKey: Sendable, Equatable {
    var infoHash: InfoHash
    var address: SocketAddress
}

/// All that a side of a partition knows, as a merge goes by it.
struct SideWords: Sendable {
    var accounts: [Word<[UInt8], Account>]
    /// Torrent files of the console; what came from files is said anew by each that reads them.
    var files: [Word<InfoHash, TorrentFileHead>]
    var peers: [Word<PeerKey, PeerImage>]
    var counts: [DownloadCount]
    var torrents: [InfoHash]

    init(_ state: ReplicatedState) {
        accounts =
            state.accounts.all.map { Word(key: $0.account.name, time: $0.changedTime, value: $0.account) }
            + state.accounts.removed.map { Word(key: $0.name, time: $0.time, value: nil) }
        var uploaded: [Word<InfoHash, TorrentFileHead>] = []
        state.files.forEach { file in
            guard file.head.origin == .console else { return }
            uploaded.append(Word(key: file.infoHash, time: file.changedTime, value: file.head))
        }
        files = uploaded + state.files.removed.map { Word(key: $0.infoHash, time: $0.time, value: nil) }
        peers = state.table.peerWords.map {
            Word(key: PeerKey(infoHash: $0.infoHash, address: $0.address), time: $0.time, value: $0.peer)
        }
        counts = state.table.downloadCounts
        torrents = state.registry.all.map { $0.infoHash }
    }

    /// The winner of two sides' words on each thing; of two that count the same, both.
    static func latest<Key, Value>(_ one: [Word<Key, Value>], _ other: [Word<Key, Value>]) -> [Word<Key, Value>] {
        let all = one + other
        return all.filter { word in !all.contains { $0.key == word.key && $0.isLater(than: word) } }
    }

    /// What is wrong with what has come of two sides.
    ///
    /// - Parameters:
    ///   - left: what is known now.
    ///   - latest: the winners of the two sides' words.
    ///   - isChanged: whether something else has been said of a thing since that counts more than a word on it.
    ///   - isEqual: whether two values are the same, as far as it can be asked.
    /// - Returns: the thing, and what is wrong with it, in words; nil where all is as it has to be.
    static func fault<Key, Value>(
        _ left: [Word<Key, Value>], of latest: [Word<Key, Value>], isChanged: (Word<Key, Value>) -> Bool,
        isEqual: (Value, Value) -> Bool = { $0 == $1 }
    ) -> (key: Key, words: String)? {
        for word in latest {
            guard let found = left.first(where: { $0.key == word.key }) else {
                let before = word.value == nil ? "was gone" : "was there"
                return (word.key, "is forgotten, and \(before) as of \(word.time)")
            }
            if found.time < word.time {
                return (word.key, "is as of \(found.time), and was another at \(word.time)")
            }
            if isChanged(word) { continue }
            if found.time > word.time { return (word.key, "is as of \(found.time), and last changed at \(word.time)") }
            let isSaid = latest.contains { other in
                guard other.key == word.key else { return false }
                guard let value = other.value, let kept = found.value else {
                    return other.value == nil && found.value == nil
                }
                return isEqual(value, kept)
            }
            if !isSaid {
                return (word.key, "\(found.value == nil ? "is gone" : "is there") otherwise than was said last")
            }
        }
        let invented = left.first { found in
            !latest.contains { $0.key == found.key } && !isChanged(Word(key: found.key, time: 0, value: nil))
        }
        return invented.map { ($0.key, "is there, and nobody has said so") }
    }
}

// The counts of each swarm after each entry of the log.

import Primitives
import TrackerLogic
import Wire

/// The counts of each swarm after each entry of the log, so that a scrape can be compared with every state that it may
/// have seen.
struct CountHistory: Sendable {
    private struct Point: Sendable {
        /// The entry that led to these counts.
        var index: UInt64
        var counts: SwarmCounts
    }

    private struct Track: Sendable {
        var infoHash: InfoHash
        var points: [Point] = []
    }

    private var tracks: [Track] = []

    var infoHashes: [InfoHash] { tracks.map { $0.infoHash } }

    private func place(of infoHash: InfoHash) -> Int? { tracks.firstIndex { $0.infoHash == infoHash } }

    /// After this entry the swarm has these counts.
    mutating func note(_ infoHash: InfoHash, _ counts: SwarmCounts, after index: UInt64) {
        guard let place = place(of: infoHash) else {
            return tracks.append(Track(infoHash: infoHash, points: [Point(index: index, counts: counts)]))
        }
        guard let last = tracks[place].points.last, last.counts == counts else {
            return tracks[place].points.append(Point(index: index, counts: counts))
        }
    }

    func counts(of infoHash: InfoHash, after index: UInt64) -> SwarmCounts {
        guard let place = place(of: infoHash) else { return SwarmCounts() }
        let points = tracks[place].points
        var (low, high) = (0, points.count)
        while low < high {
            let middle = (low + high) / 2
            if points[middle].index <= index { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? SwarmCounts() : points[low - 1].counts
    }

    /// The most peers that a swarm has had after an entry, or after any since.
    func mostPeers(of infoHash: InfoHash, since index: UInt64) -> Int {
        func peers(_ counts: SwarmCounts) -> Int { Int(counts.seeders) + Int(counts.leechers) }
        var most = peers(counts(of: infoHash, after: index))
        guard let place = place(of: infoHash) else { return most }
        for point in tracks[place].points.reversed() {
            guard point.index > index else { break }
            most = max(most, peers(point.counts))
        }
        return most
    }

    /// The latest entry of a range after which all these swarms had these counts; nil where there is none.
    func latest(_ told: [(infoHash: InfoHash, counts: SwarmCounts)], in range: ClosedRange<UInt64>) -> UInt64? {
        func matches(_ index: UInt64) -> Bool {
            told.allSatisfy { counts(of: $0.infoHash, after: index) == $0.counts }
        }
        if matches(range.upperBound) { return range.upperBound }
        // Between changes of the swarms that were asked for nothing changes: only the ends of these times count.
        var candidates: [UInt64] = []
        for asked in told {
            guard let place = place(of: asked.infoHash) else { continue }
            for point in tracks[place].points.reversed() {
                guard point.index > range.lowerBound else { break }
                if point.index <= range.upperBound { candidates.append(point.index - 1) }
            }
        }
        return candidates.sorted(by: >).first(where: matches)
    }
}

// What a book of requests keeps for speed, looked at: counts and places must be what a search would find.

import Primitives

extension RequestBook {
    /// Looks whether all that is kept beside the requests is what it stands for: for simulated worlds and tests.
    ///
    /// - Returns: the first thing that is not, in words; nil where all is right.
    func audit() -> String? {
        var (found, connects, visitors) = (0, 0, 0)
        var firstWaiting: Int?
        // Where the datagrams that were looked at end, in bytes from the first that the book ever held.
        var end = goneByteCount
        for (place, request) in requests.enumerated() {
            guard let request else { continue }
            let number = floor + UInt64(place)
            firstWaiting = firstWaiting ?? place
            found += 1
            if request.kind == .connect { connects += 1 }
            switch request.content {
            case .datagram(let start, let byteCount):
                let last = goneByteCount + UInt64(bytes.count)
                guard start >= end, start + UInt64(byteCount) <= last else {
                    return "the datagram of request \(number) is at \(start), of bytes from \(end) to \(last)"
                }
                end = start + UInt64(byteCount)
            case .visit:
                visitors += 1
                guard visits.contains(where: { $0.number == number }) else { return "visit \(number) is not there" }
            case .forgotten: break
            }
            if isKeyed, find(key: request.key).flatMap({ self[$0]?.key }) != request.key {
                return "request \(number) is not found by its key"
            }
            if place < forwardedCount, request.forwardedIn != forwardedEpoch {
                return "request \(number) counts as handed to the master of \(forwardedEpoch)"
            }
        }
        guard found == count, connects == connectCount else {
            return "the book counts \(count) requests and \(connectCount) connects, and has \(found) and \(connects)"
        }
        guard (firstWaiting ?? 0) == doneCount else {
            return "\(doneCount) requests count as done, and the first that waits is at \(firstWaiting ?? 0)"
        }
        if isKeyed, keys.count != found { return "\(keys.count) keys belong to \(found) requests" }
        if let stray = visits.first(where: { $0.number < floor || $0.number >= nextNumber }) {
            return "visit \(stray.number) is kept, of requests from \(floor) to \(nextNumber)"
        }
        guard requests.isEmpty else { return nil }
        return bytes.isEmpty ? nil : "\(bytes.count) bytes are kept while nobody waits"
    }
}

extension RequestRouter {
    /// Looks at the book.
    func audit() -> String? { book.audit() }
}

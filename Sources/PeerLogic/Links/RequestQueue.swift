// What has been asked of a peer and has not come yet.

import Primitives
import Wire

/// What has been asked of a peer and has not come yet, in the order of asking.
///
/// Blocks mostly come in that order, so that the first is found at once.
struct RequestQueue: Sendable, Equatable {
    struct Request: Sendable, Equatable {
        var block: Block
        var askedAt: Instant
        /// The piece picker has given the block to others meanwhile: it is taken if it comes all the same.
        var isGivenUp = false
    }

    private var requests = Queue<Request>()

    /// All, those that were given up among them.
    var count: Int { requests.count }
    /// Those that count for the window.
    private(set) var activeCount = 0

    mutating func append(_ block: Block, at now: Instant) {
        requests.append(Request(block: block, askedAt: now))
        activeCount += 1
    }

    func index(of block: Block) -> Int? { requests.firstIndex { $0.block == block } }

    /// A request that still counts; an older one for the same block may have been given up before it.
    func activeIndex(of block: Block) -> Int? { requests.firstIndex { $0.block == block && !$0.isGivenUp } }

    subscript(index: Int) -> Request { requests[index] }

    @discardableResult
    mutating func remove(at index: Int) -> Request {
        let request = requests.remove(at: index)
        if !request.isGivenUp { activeCount -= 1 }
        return request
    }

    /// Marks a request as given up.
    mutating func giveUp(at index: Int) {
        guard !requests[index].isGivenUp else { return }
        requests[index].isGivenUp = true
        activeCount -= 1
    }

    /// The indices that `subscript` takes, oldest first.
    var indices: Range<Int> { requests.indices }

    /// Forgets those that were given up longest ago, beyond so many.
    mutating func trimGivenUp(to limit: Int) {
        var excess = count - activeCount - limit
        guard excess > 0 else { return }
        requests.removeAll { request in
            guard request.isGivenUp, excess > 0 else { return false }
            excess -= 1
            return true
        }
    }

    mutating func removeAll() {
        requests.removeAll()
        activeCount = 0
    }
}

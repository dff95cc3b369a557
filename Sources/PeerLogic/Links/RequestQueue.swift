// What has been asked of a peer and has not come yet.

import Primitives
import Wire

/// What has been asked of a peer and has not come yet, in the order of asking.
///
/// Blocks mostly come in that order, so that the first is found at once.
struct RequestQueue: Sendable, Hashable {
    struct Request: Sendable, Hashable {
        var block: Block
        var askedAt: Instant
        /// The piece picker has given the block to others meanwhile: it is taken if it comes all the same.
        var isGivenUp = false
    }

    private var requests: [Request] = []
    private var head = 0

    /// All, those that were given up among them.
    var count: Int { requests.count - head }
    var isEmpty: Bool { count == 0 }
    /// Those that count for the window.
    private(set) var activeCount = 0

    mutating func append(_ block: Block, at now: Instant) {
        requests.append(Request(block: block, askedAt: now))
        activeCount += 1
    }

    func index(of block: Block) -> Int? {
        var index = head
        while index < requests.count {
            if requests[index].block == block { return index }
            index += 1
        }
        return nil
    }

    /// A request that still counts; an older one for the same block may have been given up before it.
    func activeIndex(of block: Block) -> Int? {
        var index = head
        while index < requests.count {
            if requests[index].block == block, !requests[index].isGivenUp { return index }
            index += 1
        }
        return nil
    }

    subscript(index: Int) -> Request { requests[index] }

    @discardableResult
    mutating func remove(at index: Int) -> Request {
        let request = requests[index]
        if !request.isGivenUp { activeCount -= 1 }
        if index == head {
            head += 1
            if head >= 64, head * 2 >= requests.count {
                requests.removeFirst(head)
                head = 0
            }
        } else {
            requests.remove(at: index)
        }
        return request
    }

    /// Marks a request as given up.
    mutating func giveUp(at index: Int) {
        guard !requests[index].isGivenUp else { return }
        requests[index].isGivenUp = true
        activeCount -= 1
    }

    /// The indices that `subscript` takes, oldest first.
    var indices: Range<Int> { head..<requests.count }

    /// Forgets those that were given up longest ago, beyond so many.
    mutating func trimGivenUp(to limit: Int) {
        var excess = count - activeCount - limit
        guard excess > 0 else { return }
        var kept: [Request] = []
        kept.reserveCapacity(count)
        for request in requests[head...] {
            if request.isGivenUp, excess > 0 {
                excess -= 1
            } else {
                kept.append(request)
            }
        }
        requests = kept
        head = 0
    }

    mutating func removeAll() {
        requests.removeAll(keepingCapacity: true)
        head = 0
        activeCount = 0
    }
}

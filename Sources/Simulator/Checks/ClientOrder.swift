// In which order a client tells of its download.

import Primitives
import Wire

/// In which order a client tells of its download: that it has started first, until a tracker has taken that; then
/// anything else.
///
/// That it has stopped it may tell at any time.
struct ClientOrder: Sendable {
    /// By client: a download has started, and no tracker has taken that yet.
    private var owesStarted: [Bool] = []

    /// A download starts, or starts anew at another tracker.
    mutating func starts(_ client: Int) {
        while owesStarted.count <= client { owesStarted.append(false) }
        owesStarted[client] = true
    }

    /// An announce was answered.
    mutating func answered(_ client: Int) { if client < owesStarted.count { owesStarted[client] = false } }

    /// A client sends something.
    ///
    /// - Returns: what is wrong with that; nil for nothing.
    func sent(_ client: Int, _ bytes: [UInt8]) -> String? {
        guard client < owesStarted.count, owesStarted[client],
            case .announce(let request)? = try? TrackerRequest(bytes.span.bytes)
        else { return nil }
        switch request.event {
        case .started, .stopped: return nil
        case .completed: return "client \(client) has completed, it says, before a tracker knows that it has started"
        case .none: return "client \(client) says nothing of its start, which no tracker has taken"
        }
    }
}

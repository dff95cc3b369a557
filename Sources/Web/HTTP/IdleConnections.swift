// Which connections can be done without when a listener is full.

import NIOCore
import Synchronization

/// Which connections can be done without when a listener is full: those that bring no request, the longest first.
///
/// Without it, as many sockets as the listener takes, which say nothing, would keep everybody else out until they are
/// let go for their silence. Connections that are being answered stay, streams among them.
///
/// The event loops of the connections note in their places how they are; the loop of the listener reads that. Neither
/// waits for the other.
final class IdleConnections: Sendable {
    /// How a connection is, from its opening to its end.
    final class Place: Sendable {
        fileprivate let channel: any Channel
        /// 0 while it is being answered, or is closing; else since when it brings nothing, in nanoseconds.
        ///
        /// Of those that go last the highest bit is set.
        fileprivate let since = Atomic<UInt64>(0)

        fileprivate init(_ channel: any Channel) { self.channel = channel }

        /// It brings no whole request for now.
        ///
        /// - Parameters:
        ///   - now: when that began.
        ///   - isKnown: whether it has brought one before, or brings a body that somebody wants: then those that have
        ///     not go first.
        func idles(since now: NIODeadline, isKnown: Bool) {
            let span = max(now.uptimeNanoseconds & ~Self.knownBit, 1)
            since.store(isKnown ? span | Self.knownBit : span, ordering: .relaxed)
        }

        /// It has brought a request, and is answered.
        func isAnswered() { since.store(0, ordering: .relaxed) }

        fileprivate static func time(of since: UInt64) -> UInt64 { since & ~knownBit }

        private static let knownBit: UInt64 = 1 << 63
    }

    /// How long a connection stays that has just come, or has just been answered: its request may be on the way.
    private static let grace = TimeAmount.milliseconds(500)

    private let places = Mutex<[ObjectIdentifier: Place]>([:])

    /// A place for a connection, until it closes.
    func open(_ channel: any Channel) -> Place {
        let place = Place(channel)
        places.withLock { $0[ObjectIdentifier(place)] = place }
        channel.closeFuture.whenComplete { _ in self.places.withLock { $0[ObjectIdentifier(place)] = nil } }
        return place
    }

    /// Closes the connection that can be done without best.
    ///
    /// - Returns: the connection, which is closing; nil where all are being answered, or have come just now.
    /// - Complexity: O(n), and only while a listener is full.
    func closeLongest() -> (any Channel)? {
        let latest = (NIODeadline.now() - Self.grace).uptimeNanoseconds
        return places.withLock { places in
            while true {
                var longest: (place: Place, since: UInt64)?
                for place in places.values {
                    let since = place.since.load(ordering: .relaxed)
                    guard since > 0, Place.time(of: since) <= latest else { continue }
                    if since < longest?.since ?? .max { longest = (place, since) }
                }
                guard let longest else { return nil }
                // It may have brought a request just now.
                let (isStill, _) = longest.place.since.compareExchange(
                    expected: longest.since, desired: 0, ordering: .relaxed)
                guard isStill else { continue }
                longest.place.channel.close(promise: nil)
                return longest.place.channel
            }
        }
    }
}

// How far a round that another tracker tells may be ahead of all that was heard before.

import Primitives
import Wire

/// Keeps one word of a member that lies, or whose memory is wrong, from using up the rounds of epochs.
///
/// A round that is a little ahead is believed at once: so far elections get. One that is far ahead is believed too, for
/// its sender may have been alone for long, but only once in a while, and by one jump at most. So whoever tells ever
/// greater rounds needs decades to come to the last one (`NumberBounds.round`), and what a cluster has been led to by
/// others is believed in the end.
package struct RoundHorizon: Sendable, Hashable {
    /// Rounds up to here, and a jump, are not far-fetched.
    private var plausible: UInt64 = 0
    private var jumpedAt: Instant?

    package init() {}

    /// Whether a round is believed.
    ///
    /// - Parameters:
    ///   - round: as another tracker says it.
    ///   - known: the highest round promised or heard so far.
    ///   - now: the monotonic clock.
    ///   - pause: between two jumps.
    /// - Returns: false where it is too far ahead; then the same round may be believed after a pause.
    package mutating func admits(_ round: UInt64, known: UInt64, now: Instant, pause: Duration) -> Bool {
        let known = max(known, plausible)
        if round <= known + NumberBounds.roundStep { return true }
        if let jumpedAt, now - jumpedAt < pause { return false }
        jumpedAt = now
        guard round <= known + NumberBounds.roundJump else {
            plausible = known + NumberBounds.roundJump
            return false
        }
        return true
    }
}

extension RoundHorizon {
    mutating func walk(_ archive: inout Archive) {
        plausible.walk(&archive)
        jumpedAt.walk(&archive)
    }
}

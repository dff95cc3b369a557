// Which life stood for which epoch.

import Wire

/// Which life stood for which epoch, and which led it.
///
/// An epoch is named by the life that stands for it and by no other ever after (rule 1).
struct EpochRegister: Sendable {
    private struct Claim: Sendable {
        var epoch: Epoch
        var life: Life
    }

    private var claims: [Claim] = []

    /// A life stands for an epoch, or leads it.
    ///
    /// - Returns: whoever has claimed it before, where that is another.
    mutating func claim(_ epoch: Epoch, by life: Life) -> Life? {
        // The latest are asked for most.
        for claim in claims.reversed() where claim.epoch == epoch { return claim.life == life ? nil : claim.life }
        claims.append(Claim(epoch: epoch, life: life))
        return nil
    }

    /// A tracker has forgotten what it used, and nobody could tell it.
    mutating func forget(id: UInt32) { claims.removeAll { $0.epoch.id == id } }
}

// Who has sent a corrupt block among others.

import PeerLogic
import Primitives

/// Who has sent a corrupt block of a piece that came from several: when the piece has come again and is right, it is
/// known, and is banned.
///
/// Who has hung up meanwhile may be forgotten.
struct Culprits: Sendable {
    /// Wrong pieces that are remembered (docs/bounds.md).
    private static let maxCount = 32

    private struct Wrong: Sendable {
        let piece: Int
        var senders: [PieceSender]
    }

    /// By peer.
    private var wrongs: [[Wrong]]

    init(peerCount: Int) { wrongs = Array(repeating: [], count: peerCount) }

    mutating func began(_ peer: Int) { wrongs[peer].removeAll() }

    /// A piece is wrong that came from several; these have sent corrupt blocks of it.
    mutating func failed(_ peer: Int, _ piece: Int, corrupt: [PieceSender]) {
        if let known = wrongs[peer].firstIndex(where: { $0.piece == piece }) {
            wrongs[peer][known].senders += corrupt
        } else {
            if wrongs[peer].count == Self.maxCount { wrongs[peer].removeFirst() }
            wrongs[peer].append(Wrong(piece: piece, senders: corrupt))
        }
    }

    /// A piece is right.
    ///
    /// - Returns: those who have sent corrupt blocks of it before.
    mutating func verified(_ peer: Int, _ piece: Int) -> [PieceSender] {
        guard let known = wrongs[peer].firstIndex(where: { $0.piece == piece }) else { return [] }
        return wrongs[peer].remove(at: known).senders
    }
}

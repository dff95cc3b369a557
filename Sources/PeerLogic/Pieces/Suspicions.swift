// Who has sent corrupt bytes.

import Primitives

/// Who has sent corrupt bytes: a piece that several peers had a part in is compared, once it is right, block by block.
///
/// A piece that came from one peer and is wrong convicts that peer. Of a piece that came from several, a digest of each
/// block is kept with its sender; when the piece has come again and is right, those are convicted whose blocks were
/// others. (The idea is that of libtorrent's "smart ban".) Nobody is convicted of company.
struct Suspicions: Sendable, Equatable {
    /// Wrong pieces that are remembered; of more, the oldest are forgotten.
    static let maxCount = 32
    /// Blocks of a wrong piece that are remembered, for all that there are.
    static let maxBlockCount = 16_384

    struct Sent: Sendable, Hashable {
        var block: Int
        var sender: UInt32
        var digest: UInt64
    }

    struct Wrong: Sendable, Equatable {
        var piece: Int
        var sent: [Sent]
    }

    private var wrongs: [Wrong] = []

    /// Whether a piece has been wrong, so that its digests are wanted.
    func concern(_ piece: Int) -> Bool { wrongs.contains { $0.piece == piece } }

    mutating func note(_ piece: ActivePiece, digests: [UInt64]) {
        guard digests.count == piece.blocks.count else { return }
        var sent: [Sent] = []
        for (index, block) in piece.blocks.enumerated().prefix(Self.maxBlockCount) {
            sent.append(Sent(block: index, sender: block.sender, digest: digests[index]))
        }
        if let known = wrongs.firstIndex(where: { $0.piece == piece.piece }) {
            wrongs[known].sent = Array((wrongs[known].sent + sent).suffix(2 * Self.maxBlockCount))
        } else {
            if wrongs.count == Self.maxCount { wrongs.removeFirst() }
            wrongs.append(Wrong(piece: piece.piece, sent: sent))
        }
    }

    /// The piece has come and is right: who sent other blocks.
    mutating func convicted(_ piece: Int, digests: [UInt64]) -> [UInt32] {
        guard let index = wrongs.firstIndex(where: { $0.piece == piece }) else { return [] }
        let wrong = wrongs.remove(at: index)
        var result: [UInt32] = []
        for sent in wrong.sent where sent.block < digests.count && digests[sent.block] != sent.digest {
            if !result.contains(sent.sender) { result.append(sent.sender) }
        }
        return result
    }
}

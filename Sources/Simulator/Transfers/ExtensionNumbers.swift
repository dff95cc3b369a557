// What peers call extensions.

import PeerLogic
import Primitives
import Wire

/// What peers call extensions (BEP 10): a session has numbers of its own for them, and the same in all peers. Some
/// peers stand for other programs, which have others: what they say in their handshakes is written anew, and what is
/// said to them is read so.
extension TransferWorld {
    private static let sessionNumbers: [UInt8] = [1, 2, 3]

    /// What a peer's session says, as others hear it.
    func renumbered(_ message: PeerMessage, from peer: Int) -> PeerMessage {
        guard case .extended(0, let payload) = message, peers[peer].traits.extensionNumbers != Self.sessionNumbers,
            var said = try? ExtensionHandshake(decoding: payload)
        else { return message }
        let numbers = peers[peer].traits.extensionNumbers
        func other(_ id: UInt8?) -> UInt8? { id.map { (1...3).contains($0) ? numbers[Int($0) - 1] : $0 } }
        (said.metadataID, said.peerExchangeID, said.dontHaveID) =
            (other(said.metadataID), other(said.peerExchangeID), other(said.dontHaveID))
        return .extended(id: 0, payload: said.encoded())
    }

    /// What comes to an end, as its peer's session is told.
    ///
    /// Liars say what they say by a session's own numbers.
    func translated(_ message: PeerMessage, to end: Int) -> PeerMessage {
        guard case .extended(let id, let payload) = message, id != 0 else { return message }
        let (peer, sender) = (table.ends[end].peer, table.ends[end ^ 1].peer)
        guard peers[peer].traits.extensionNumbers != Self.sessionNumbers, sender >= 0, peers[sender].isHonest else {
            return message
        }
        let place = peers[peer].traits.extensionNumbers.firstIndex(of: id)
        return .extended(id: place.map { UInt8($0 + 1) } ?? 255, payload: payload)
    }
}

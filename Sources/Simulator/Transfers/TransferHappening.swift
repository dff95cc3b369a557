// What may be next in a swarm.

import PeerLogic
import Primitives
import Wire

extension TransferWorld {
    /// What is going to happen.
    ///
    /// `end` is one side of a connection (`LinkTable`), `epoch` tells connections of one place.
    enum Happening: Sendable {
        /// A connection that was dialled is there, or refused.
        case connected(link: Int, epoch: UInt32)
        case refused(link: Int, epoch: UInt32)
        /// Of what this end has sent, the next so many items have come whole to the other end.
        case arrives(end: Int, epoch: UInt32, itemCount: Int)
        /// Of what this end has sent, the head of a block has come to the other end.
        case blockBegins(end: Int, epoch: UInt32)
        /// The other end of this one has closed.
        case closes(end: Int, epoch: UInt32)
        /// Nothing could be sent for too long.
        case isStuck(end: Int, epoch: UInt32)
        case blockDropped(end: Int, epoch: UInt32, Block)
        case blockUnread(end: Int, epoch: UInt32, Block)
        case uplinkIsFree(Int, life: Int)
        case wakes(Int, life: Int)
        case hashed(Int, life: Int, piece: Int)
        case written(Int, life: Int, piece: Int)
        case metadataChecked(Int, life: Int, isRight: Bool)
        case trackerAnswers(Int, life: Int, tracker: Int, question: Int, TrackerAnswer)
        /// A peer's word to its local network has come to the others.
        case localNews(Int)
        /// People want all pieces again.
        case wantsAll(Int, life: Int)
        case datagramAtPeer(Int, life: Int, tracker: Int, [UInt8])
        case webSeedAnswers(Int, life: Int, seed: Int, piece: Int)
        case comes(Int)
        case returns(Int, life: Int)
        case leaves(Int, life: Int)
        case hasLeft(Int, life: Int)
        case goesOn(Int, life: Int)
        case isOnline(Int)
        case diskMends(Int)
        case trackerMends(Int)
        case liarActs(Int, life: Int)
        case strangerSpeaks(Int)
        case fault
        case turn(Int)
        case heals
        case looks
    }
}

// Why something did not come about, in words for people.

extension LinkEnd: CustomStringConvertible {
    /// A clause without a subject: the peer.
    public var description: String {
        switch self {
        case .unreachable: "cannot be reached"
        case .closed: "closed by the other side"
        case .malformed: "said something that is no message"
        case .stuck: "takes nothing"
        }
    }
}

extension CloseReason: CustomStringConvertible {
    /// A clause for people.
    public var description: String {
        switch self {
        case .ended: "the transfer rests"
        case .ourselves: "it is ourselves"
        case .duplicate: "there is another connection to it"
        case .bothComplete: "both sides have all"
        case .otherTorrent: "it has another torrent"
        case .handshakeTimedOut: "no handshake in time"
        case .idle: "nothing was heard for too long"
        case .full: "as many connections as may be"
        case .breach(let what): "broke the protocol: \(what)"
        case .banned: "sent corrupt bytes"
        case .stalled: "a block was begun and did not end"
        }
    }
}

extension StoreProblem: CustomStringConvertible {
    /// A clause for people.
    public var description: String {
        switch self {
        case .full: "the disk is full"
        case .readOnly: "the files or their directory are read-only"
        case .other(let words): words
        }
    }
}

extension WebSeedProblem: CustomStringConvertible {
    /// A clause without a subject: the web seed.
    public var description: String {
        switch self {
        case .unavailable: "does not answer now"
        case .unusable: "has not the file, or another"
        }
    }
}

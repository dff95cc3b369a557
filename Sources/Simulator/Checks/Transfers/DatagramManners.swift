// How trackers are asked over UDP (BEP 15).

import PeerLogic
import Primitives
import Wire

/// How trackers are asked over UDP (BEP 15): for a connection id first, which is used for a minute; again when there is
/// silence, after 15 · 2ⁿ seconds; and what answers a request that was not made is no answer.
///
/// A silent tracker is left for the next after two tries (docs/peer.md).
struct DatagramManners: Sendable {
    private static let firstWait = Duration.seconds(15)
    private static let lifetime = Duration.seconds(60)
    private static let maxRetransmissions = 1
    private static let lateness = Duration.milliseconds(200)

    /// What has come of a datagram.
    enum Outcome: Sendable, Equatable {
        case nothing
        case answered(interval: UInt32, peers: [SocketAddress])
        case failed
    }

    private struct Asked: Sendable {
        var isConnecting = false
        var isRequesting = false
        var connectTransaction = TransactionID(0)
        /// Nil before the first announce of a request: it has not been connected yet.
        var transaction: TransactionID?
        var connection: ConnectionID?
        var connectedAt = Instant(nanoseconds: 0)
        /// When the request is sent again, or given up.
        var due = Instant(nanoseconds: 0)
        var silences = 0
        var hasReconnected = false
        /// A connection id, or a complaint about one, has come in this step: something is sent at once.
        var mustSend = false
        /// Its session ends: what it knew of the tracker it may have forgotten.
        var isLoose = false
        /// Its session has ended since something was sent: what is sent next is another request.
        var hasEnded = false

        var isWaiting: Bool { isConnecting || isRequesting }
    }

    /// By peer, then by tracker.
    private var asked: [[Asked]]
    let trackerCount: Int

    init(trackerCount: Int, peerCount: Int) {
        self.trackerCount = trackerCount
        asked = Array(repeating: [], count: peerCount)
    }

    mutating func began(_ peer: Int) { asked[peer] = Array(repeating: Asked(), count: trackerCount) }

    /// A session ends, or goes on.
    mutating func stepBegins(_ peer: Int, _ scene: TransferScene) {
        switch scene.cause {
        case .started:
            for number in asked[peer].indices {
                // What it knows of the tracker it may have kept over a pause.
                let before = asked[peer][number]
                asked[peer][number] = Asked()
                asked[peer][number].isLoose = before.isLoose
            }
        case .ended:
            for number in asked[peer].indices {
                asked[peer][number].isLoose = true
                asked[peer][number].hasEnded = true
            }
        default: break
        }
    }

    /// What was under way has come to its end; where it has failed, all that was known of the tracker is forgotten.
    private mutating func restarts(_ peer: Int, _ number: Int, isFailed: Bool) {
        let before = asked[peer][number]
        asked[peer][number] = Asked()
        asked[peer][number].isLoose = before.isLoose
        guard !isFailed else { return }
        (asked[peer][number].connection, asked[peer][number].connectedAt) = (before.connection, before.connectedAt)
    }

    // MARK: - Sent

    /// A datagram goes out.
    ///
    /// - Returns: whether it begins a new request; and the announce, where it is one.
    mutating func sends(
        _ peer: Int, _ number: Int, _ bytes: [UInt8], at now: Instant, _ scene: inout TransferScene
    ) -> (isNew: Bool, announce: AnnounceRequest?) {
        let local = scene.peers[peer].local
        guard let request = try? TrackerRequest(bytes.span.bytes) else {
            blame(peer, number, "what is no request", at: now, &scene)
            return (false, nil)
        }
        var before = asked[peer][number]
        let mayBeKnown = before.connection != nil && local - before.connectedAt < Self.lifetime
        var isNew = false
        if before.mustSend {
            before.mustSend = false
        } else if before.isWaiting, !before.hasEnded {
            // Sent again, when it is time; or something else is wanted of the tracker now.
            var isAgain = local >= before.due && before.silences < Self.maxRetransmissions
            if isAgain, case .announce(let announce) = request, let known = before.transaction {
                isAgain = announce.transactionID == known
            }
            if isAgain { before.silences += 1 } else { isNew = true }
        } else {
            isNew = true
        }
        if isNew {
            before.silences = 0
            before.hasReconnected = false
            before.transaction = nil
        }
        before.hasEnded = false
        before.due = local + Self.firstWait * (1 << Int64(before.silences))
        var said: AnnounceRequest?
        switch request {
        case .connect(let transaction):
            if mayBeKnown, !before.isLoose { blame(peer, number, "for a connection id, and has one", at: now, &scene) }
            before.connection = nil
            (before.isConnecting, before.isRequesting) = (true, false)
            before.connectTransaction = transaction
        case .announce(let announce):
            if !before.isLoose, !mayBeKnown || announce.connectionID != before.connection {
                blame(peer, number, "with a connection id that it may not use", at: now, &scene)
            }
            if let known = before.transaction, !before.isLoose, known != announce.transactionID {
                blame(peer, number, "the same again under another number", at: now, &scene)
            }
            before.transaction = announce.transactionID
            (before.isConnecting, before.isRequesting) = (false, true)
            said = announce
        case .scrape: blame(peer, number, "for counts", at: now, &scene)
        }
        asked[peer][number] = before
        return (isNew, said)
    }

    // MARK: - Heard

    mutating func hears(
        _ peer: Int, _ number: Int, _ bytes: [UInt8], _ scene: TransferScene
    ) -> Outcome {
        let local = scene.peers[peer].local
        let before = asked[peer][number]
        guard before.isWaiting, bytes.count >= 8 else { return .nothing }
        let transaction = TransactionID(bytes.span.bytes.u32(at: 4))
        let isForConnect = before.isConnecting && transaction == before.connectTransaction
        guard isForConnect || transaction == before.transaction else { return .nothing }
        guard let reply = try? TrackerReply(bytes, isIPv6: false) else { return ends(peer, number, .failed) }
        switch reply {
        case .connect(_, let id):
            guard isForConnect else { return .nothing }
            if scene.peers[peer].isRunning { asked[peer][number].isLoose = false }
            asked[peer][number].connection = id
            asked[peer][number].connectedAt = local
            asked[peer][number].mustSend = true
            return .nothing
        case .announce(_, let announce):
            if isForConnect { return ends(peer, number, .failed) }
            return ends(peer, number, .answered(interval: announce.interval, peers: announce.peers))
        case .error(_, let message):
            guard !isForConnect, Self.isAboutConnection(message) else { return ends(peer, number, .failed) }
            asked[peer][number].connection = nil
            if !before.hasReconnected, before.isRequesting {
                asked[peer][number].hasReconnected = true
                asked[peer][number].mustSend = true
            }
            return .nothing
        case .scrape: return ends(peer, number, .failed)
        }
    }

    private mutating func ends(_ peer: Int, _ number: Int, _ outcome: Outcome) -> Outcome {
        restarts(peer, number, isFailed: outcome == .failed)
        return outcome
    }

    private static func isAboutConnection(_ message: [UInt8]) -> Bool {
        message.starts(with: "Connection ID".utf8)
    }

    /// The clock has come to a request's end: whether its tracker is given up now.
    mutating func timesOut(_ peer: Int, _ number: Int, _ scene: TransferScene) -> Bool {
        let before = asked[peer][number]
        guard before.isWaiting, before.silences >= Self.maxRetransmissions, before.due <= scene.peers[peer].local else {
            return false
        }
        restarts(peer, number, isFailed: true)
        return true
    }

    // MARK: - The time has come

    mutating func stepEnds(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        for number in asked[peer].indices where asked[peer][number].mustSend {
            asked[peer][number].mustSend = false
            if !asked[peer][number].isLoose {
                blame(peer, number, "nothing, and knows the connection", at: now, &scene)
            }
        }
    }

    func look(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        guard scene.peers[peer].isRunning else { return }
        for number in asked[peer].indices where asked[peer][number].isWaiting {
            guard scene.peers[peer].local - asked[peer][number].due > Self.lateness else { continue }
            scene.violate(
                .trackersAreTold, at: now,
                "\(TransferScene.name(peer)) waits for tracker \(number), and does not ask it again")
        }
    }

    private func blame(_ peer: Int, _ number: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.trackersAreSpared, at: now, "\(TransferScene.name(peer)) asks tracker \(number) \(what)")
    }
}

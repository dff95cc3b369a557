// What peers may rely on, and what their clients have downloaded.

import Primitives
import TrackerLogic
import Wire

/// What peers may rely on, and what their clients have downloaded: made from requests and replies, with no look at any
/// table.
struct PeerLedger: Sendable {
    struct Account: Sendable {
        var infoHash: InfoHash
        /// Where the peer listens.
        var address: SocketAddress
        /// The entry that holds the announce which was answered last.
        var index: UInt64 = 0
        /// Cluster time of that entry, in seconds since 1970; 0 before the first answer.
        var answeredAt: UInt32 = 0
        /// When the answer left, by no tracker's clock.
        var answeredIn = Instant(nanoseconds: 0)
        /// The interval that was told, in seconds.
        var told: UInt32 = 0
        /// Whether that announce was `stopped`.
        var hasLeft = false
        /// Cluster time of the latest `stopped` that was answered.
        var stoppedAt: UInt32 = 0
        /// Copies of `stopped` that a tracker has heard, and those that are known to have been carried out: any other
        /// may be carried out yet.
        var stopsHeard = 0
        var stopsDone = 0
        /// When the last of them was heard, by no tracker's clock.
        var stopHeardAt = Instant(nanoseconds: 0)
        /// Downloads that the client has told of, and how many have been counted.
        var downloads = 0
        var counted = 0
        /// The entry with the latest `stopped`.
        var stopIndex: UInt64 = 0
        /// When the newest of its announces in the log was sent.
        var latestSentAt = Instant(nanoseconds: 0)
        /// Whether the client's last word on the download was that it is complete.
        var isComplete = false
        /// Whether somebody else may have spoken in its name.
        var isSpoiled = false
        /// When a tracker last heard what may have been spoken in its name.
        var spoiledAt = Instant(nanoseconds: 0)

        /// The last second of cluster time at which the peer may not be taken out: a fifth of a second counts as one.
        var livesUntil: UInt64 { UInt64(answeredAt) + (UInt64(told) * 6 + 4) / 5 }
    }

    /// After so long nothing comes any more of a request that a tracker has heard: it is kept for 15 s by a clock that
    /// may be slow, and what is forwarded is under way for 10 s at most.
    ///
    /// What is in an entry by then that is not decided never will be, once a later announce is answered.
    private static let longestWay = Duration.seconds(30)

    private(set) var accounts: [[Account]]

    init(clientCount: Int) { accounts = Array(repeating: [], count: clientCount) }

    func account(_ client: Int, _ infoHash: InfoHash, _ address: SocketAddress) -> Account? {
        accounts[client].first { $0.infoHash == infoHash && $0.address == address }
    }

    private mutating func change(
        _ client: Int, _ infoHash: InfoHash, _ address: SocketAddress, _ body: (inout Account) -> Void
    ) {
        let known = accounts[client].firstIndex { $0.infoHash == infoHash && $0.address == address }
        if known == nil { accounts[client].append(Account(infoHash: infoHash, address: address)) }
        body(&accounts[client][known ?? accounts[client].count - 1])
    }

    /// A client tells of itself; the first copy of a request only.
    mutating func sent(_ request: AnnounceRequest, by client: Int, _ address: SocketAddress) {
        change(client, request.infoHash, address) { account in
            if request.event == .completed, request.left == 0 {
                if !account.isComplete { account.downloads += 1 }
                account.isComplete = true
            } else if request.event == .started || request.left > 0 && request.event != .stopped {
                // Who starts anew may have had all of it by the time that he was first heard.
                account.isComplete = false
            }
        }
    }

    /// A tracker has heard what a bit on the way has made of a request.
    mutating func spoiled(_ request: AnnounceRequest, by client: Int, _ address: SocketAddress, at now: Instant) {
        sent(request, by: client, address)
        // It may name the port of somebody in the same house.
        for other in accounts.indices {
            for place in accounts[other].indices
            where accounts[other][place].infoHash == request.infoHash && accounts[other][place].address == address {
                accounts[other][place].isSpoiled = true
                accounts[other][place].spoiledAt = now
            }
        }
    }

    /// A tracker has heard `stopped`.
    mutating func heardStop(_ infoHash: InfoHash, by client: Int, _ address: SocketAddress, at now: Instant) {
        change(client, infoHash, address) { account in
            account.stopsHeard += 1
            account.stopHeardAt = now
        }
    }

    /// A `stopped` is in the log, at an index: the peer has left, whether or not anybody answers it.
    mutating func decidedStop(_ infoHash: InfoHash, by client: Int, _ address: SocketAddress, index: UInt64) {
        change(client, infoHash, address) { account in
            account.stopsDone += 1
            account.stopIndex = max(account.stopIndex, index)
            if index >= account.index { account.hasLeft = true }
        }
    }

    /// An announce is in the log.
    ///
    /// - Returns: whether it is late: the client has said something newer since, and that is in the log already.
    mutating func isLate(_ infoHash: InfoHash, by client: Int, _ address: SocketAddress, sentAt: Instant) -> Bool {
        var isLate = false
        change(client, infoHash, address) { account in
            isLate = sentAt < account.latestSentAt
            account.latestSentAt = max(account.latestSentAt, sentAt)
        }
        return isLate
    }

    /// A download has been counted.
    ///
    /// - Returns: whether the client has told of so many.
    mutating func counted(_ infoHash: InfoHash, by client: Int, _ address: SocketAddress) -> Bool {
        var isRight = false
        change(client, infoHash, address) { account in
            account.counted += 1
            isRight = account.counted <= account.downloads || account.isSpoiled
        }
        return isRight
    }

    /// An announce is answered.
    ///
    /// What is later in the log counts, whichever reply leaves first.
    mutating func answered(
        _ announced: Announced, client: Int, index: UInt64, told: UInt32, time: WallTime, at now: Instant
    ) {
        change(client, announced.infoHash, announced.address) { account in
            if announced.event == .stopped { account.stoppedAt = max(account.stoppedAt, time.seconds) }
            guard (time.seconds, index) >= (account.answeredAt, account.index) else { return }
            account.index = index
            account.answeredAt = time.seconds
            account.answeredIn = now
            account.told = told
            // Both may be in one entry, and the `started` be answered last.
            account.hasLeft = announced.event == .stopped || index <= account.stopIndex
        }
    }

    /// The swarms of some info hashes are gone, as they should be.
    mutating func forget(where isGone: (InfoHash) -> Bool) {
        for client in accounts.indices {
            for place in accounts[client].indices where isGone(accounts[client][place].infoHash) {
                accounts[client][place].answeredAt = 0
            }
        }
    }

    /// What was promised is lost, and nobody can be blamed.
    mutating func close() {
        for client in accounts.indices {
            for place in accounts[client].indices { accounts[client][place].answeredAt = 0 }
        }
    }

    /// The first peer that a state must hold and does not.
    ///
    /// Where `time` is given, a peer whose interval has run out by then, by no tracker's clock, need not be there.
    /// `knowsStops` is whether it is known which `stopped` have been carried out (quorum mode). Where `lag` is given,
    /// who was answered after it by a later entry than the state's need not be there: that entry is on its way.
    func missing(
        in state: ReplicatedState, onTimeAt time: Instant?, knowsStops: Bool, lag: Instant? = nil
    ) -> Account? {
        let now = UInt64(state.time.seconds)
        // By clocks that differ at will a word that is older may be taken for the newer one for ever.
        func isOver(_ heardAt: Instant, _ account: Account) -> Bool {
            time == nil && account.answeredIn - heardAt > PeerLedger.longestWay
        }
        for account in accounts.joined() where account.answeredAt > 0 && !account.hasLeft {
            if account.isSpoiled, !isOver(account.spoiledAt, account) { continue }
            // An older `stopped` that is still on its way may come after all.
            let isOpen = account.stopsHeard > (knowsStops ? account.stopsDone : 0)
            if isOpen, !isOver(account.stopHeardAt, account) { continue }
            if account.stoppedAt >= account.answeredAt { continue }
            if let lag, account.index > state.index, account.answeredIn >= lag { continue }
            if let time, time - account.answeredIn >= .seconds(Int64(account.told)) { continue }
            if now <= account.livesUntil, !state.table.contains(account.infoHash, account.address) { return account }
        }
        return nil
    }
}

/// What peers were told is so: made from requests and replies alone, with no look at the log or at any table.
///
/// After a crash, whoever was answered and has not left, nor been silent for too long, must be in the table.

import Primitives
import TrackerLogic
import Wire

struct Ledger: Sendable {
    struct Account: Sendable {
        var infoHash: InfoHash
        var address: SocketAddress
        /// Cluster time of the answer, in seconds since 1970.
        var answeredAt: UInt32
        /// The interval that was told, in seconds.
        var told: UInt32
        /// Whether the last answer was to `stopped`.
        var hasLeft: Bool
        /// How often a node has heard `stopped` without having answered: each may have been carried out.
        var unansweredStops = 0

        var mayBeGone: Bool { hasLeft || unansweredStops > 0 }
    }

    /// Accounts of one peer that are kept; those of swarms that it left long ago make room.
    private static let accountsPerPeer = 4

    private var accounts: [[Account]]

    init(peerCount: Int) { accounts = Array(repeating: [], count: peerCount) }

    /// An announce has reached a node.
    mutating func heard(_ announce: AnnounceRequest, from peer: Int, _ address: SocketAddress) {
        guard announce.event == .stopped else { return }
        if let place = place(peer, announce.infoHash, address) { accounts[peer][place].unansweredStops += 1 }
    }

    /// An announce has been answered.
    mutating func answered(
        _ event: AnnounceEvent, _ infoHash: InfoHash, peer: Int, _ address: SocketAddress, told: UInt32, time: WallTime
    ) {
        var account = Account(
            infoHash: infoHash, address: address, answeredAt: time.seconds, told: told, hasLeft: event == .stopped)
        if let place = place(peer, infoHash, address) {
            account.unansweredStops = accounts[peer][place].unansweredStops
            if event == .stopped { account.unansweredStops = max(0, account.unansweredStops - 1) }
            accounts[peer][place] = account
            return
        }
        if accounts[peer].count == Ledger.accountsPerPeer { accounts[peer].removeFirst() }
        accounts[peer].append(account)
    }

    private func place(_ peer: Int, _ infoHash: InfoHash, _ address: SocketAddress) -> Int? {
        accounts[peer].firstIndex { $0.infoHash == infoHash && $0.address == address }
    }

    /// The first account that a state does not honour.
    func broken(by state: ReplicatedState) -> Account? {
        let now = state.time.seconds
        for account in accounts.joined() where !account.mayBeGone {
            if now < account.answeredAt &+ account.told, !state.table.contains(account.infoHash, account.address) {
                return account
            }
        }
        return nil
    }

    /// A node has come back: what was not answered has been carried out, or never will be.
    mutating func settle(with state: ReplicatedState) {
        for peer in accounts.indices {
            for place in accounts[peer].indices where accounts[peer][place].unansweredStops > 0 {
                let account = accounts[peer][place]
                accounts[peer][place].unansweredStops = 0
                if !state.table.contains(account.infoHash, account.address) { accounts[peer][place].hasLeft = true }
            }
        }
    }

    /// The swarms have been emptied on purpose.
    mutating func close() {
        for peer in accounts.indices { accounts[peer] = [] }
    }
}

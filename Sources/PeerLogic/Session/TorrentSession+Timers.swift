// What happens for no other reason than that time has passed.

import Primitives
import Wire

extension TorrentSession {
    /// What is looked after by and by: signs of life, patience, calls.
    ///
    /// Blocks wait for none of it.
    static let housekeepingInterval = Duration.seconds(1)
    /// "Generally 2 minutes" (BEP 3).
    static let keepAliveInterval = Duration.seconds(110)
    /// Who has said nothing for so long is gone.
    static let silence = Duration.seconds(240)
    /// Who is asked, has unchoked us, and gives nothing for so long is left.
    static let uselessness = Duration.seconds(120)
    /// BEP 14: "at most once per minute"; libtorrent's five.
    static let localAnnounceInterval = Duration.seconds(300)

    /// When the session wants `deadlineReached`; nil when it waits for nothing.
    public var nextDeadline: Instant? {
        var result = trackers.deadline
        guard phase == .running else { return result }
        result = earliest(result, housekeepingAt)
        result = earliest(result, haveDeadline)
        result = earliest(result, storeRetryAt)
        result = earliest(result, localAnnounceAt)
        result = earliest(result, limitOpensAt)
        return result
    }

    mutating func deadlineReached(_ now: Instant, _ actions: inout [Action]) {
        let outcomes = trackers.woken(progress, now: now, &actions)
        trackersHaveSaid(outcomes, now, &actions)
        guard phase == .running else { return }
        if let due = haveDeadline, due <= now { tellAllHaves(now, &actions) }
        if let due = storeRetryAt, due <= now { retryStoring(now, &actions) }
        if let due = limitOpensAt, due <= now {
            limitOpensAt = nil
            upload(now, &actions)
            refillAll(now, &actions)
            fetchFromWeb(now, &actions)
        }
        if let due = localAnnounceAt, due <= now {
            localAnnounceAt = now + Self.localAnnounceInterval
            actions.append(.announceLocally)
        }
        if let due = housekeepingAt, due <= now { keepHouse(now, &actions) }
        limitOpensAt = earliest(limitOpensAt, waitsForLimit(now))
    }

    private mutating func keepHouse(_ now: Instant, _ actions: inout [Action]) {
        housekeepingAt = now + Self.housekeepingInterval
        for slot in links.indices {
            switch links[slot].phase {
            case .free: break
            case .dialling:
                if now - links[slot].since >= Self.dialPatience { close(slot, .handshakeTimedOut, now, &actions) }
            case .greeting:
                if now - links[slot].since >= Self.greetingPatience { close(slot, .handshakeTimedOut, now, &actions) }
            case .ready: keepLink(slot, now, &actions)
            }
        }
        if let due = choker.nextRound, due <= now { rechoke(now, &actions) }
        // Whoever had nothing to give but what others were asked for may be asked, too, since the last block was asked
        // for.
        if !hasCompleted, picker?.isEndgame ?? false { refillAll(now, &actions) }
        fetchMetadata(now, &actions)
        makeRoomForMetadata(now, &actions)
        connect(now, &actions)
        fetchFromWeb(now, &actions)
    }

    private mutating func keepLink(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        let heardAt = links[slot].heardAt
        let unhelpful = now - links[slot].blockAt
        let wasSnubbed = links[slot].isSnubbed
        if now - heardAt >= Self.silence { return close(slot, .idle, now, &actions) }
        if links[slot].arriving != nil, now - max(links[slot].arrivingSince, heardAt) >= Self.arrivalPatience {
            return close(slot, .stalled, now, &actions)
        }
        let rest = now - links[slot].saidAt
        let exchangeAt = links[slot].exchangeAt
        if links[slot].requests.activeCount > 0, !has(.silenceIgnored), unhelpful >= Self.blockPatience {
            snub(slot, now, &actions)
        }
        if wasSnubbed, !links[slot].peerChokes, links[slot].weAreInterested, unhelpful >= Self.uselessness {
            return close(slot, .idle, now, &actions)
        }
        if rest >= Self.keepAliveInterval { say(slot, .keepAlive, now, &actions) }
        if let due = exchangeAt, due <= now { exchangePeers(slot, now, &actions) }
    }

    /// A peer gives nothing though it was asked: others are asked, and it is asked no more until one of its blocks
    /// comes.
    private mutating func snub(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        links[slot].isSnubbed = true
        links[slot].window.shrink()
        giveUpRequests(slot, &actions)
        refillAll(now, &actions)
    }

    /// When a limit lets something go again that waits for it now.
    func waitsForLimit(_ now: Instant) -> Instant? {
        var result: Instant?
        if links.contains(where: { $0.isReady && $0.uploads.waitingCount > 0 }) {
            var limit = uploadLimit
            result = earliest(result, limit.opensAt(now))
        }
        if downloadLimit.rate != nil, !isComplete {
            var limit = downloadLimit
            result = earliest(result, limit.opensAt(now))
        }
        return result
    }
}

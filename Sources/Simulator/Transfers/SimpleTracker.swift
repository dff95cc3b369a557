// A tracker that is no more than a list.

import PeerLogic
import Primitives
import Wire

/// What simple trackers know: one list for all of them, as the trackers of a cluster have.
struct SimpleSwarm: Sendable {
    var random: RandomStream
    /// Peers, and whether each has all.
    private(set) var peers: [(peer: Int, isSeeder: Bool)] = []

    init(random: RandomStream) { self.random = random }

    /// Takes an announce; who is told are others, by chance, no more than are wanted.
    mutating func announced(_ peer: Int, _ request: HTTPAnnounceRequest) -> [Int] {
        peers.removeAll { $0.peer == peer }
        var others = peers.map { $0.peer }
        if request.event != .stopped { peers.append((peer, request.left == 0)) }
        random.shuffle(&others)
        let count = request.numWant.map { $0 < 0 ? 50 : $0 } ?? 50
        return Array(others.prefix(min(count, 200)))
    }

    var seederCount: Int { peers.count { $0.isSeeder } }
}

/// A tracker that is no more than a list, asked over HTTP: for swarms whose trackers are not what is looked at.
struct SimpleTracker: Sendable {
    enum State: Sendable, Hashable {
        case works
        /// Who asks hears nothing.
        case silent
        /// Who asks is told an error.
        case fails
    }

    var state = State.works
    /// By which it knows its connection ids.
    var secret = 1
}

extension TransferWorld {
    /// An owner's patience with a tracker over HTTP.
    private static let trackerPatience = Duration.seconds(20)

    /// A session asks a simple tracker.
    mutating func announce(_ peer: Int, _ tracker: Int, _ request: HTTPAnnounceRequest) {
        guard simpleTrackers.indices.contains(tracker) else { return }
        tally.announces += 1
        if peers[peer].isHonest { checks.announces(peer, tracker, request, at: now) }
        let life = peers[peer].life
        while peers[peer].questions.count <= tracker { peers[peer].questions.append(0) }
        peers[peer].questions[tracker] += 1
        let question = peers[peer].questions[tracker]
        let roundTrip = peers[peer].traits.latency * 2 + .milliseconds(5) + trackerPause(peer)
        let state = peers[peer].isOffline ? .silent : simpleTrackers[tracker].state
        switch state {
        case .silent:
            queue.put(
                .trackerAnswers(peer, life: life, tracker: tracker, question: question, .failed("no answer")),
                at: now + TransferWorld.trackerPatience)
        case .fails:
            queue.put(
                .trackerAnswers(peer, life: life, tracker: tracker, question: question, .failed("error 503")),
                at: now + roundTrip)
        case .works:
            let others = simpleSwarm.announced(peer, request)
            let seederCount = simpleSwarm.seederCount
            let answer = TrackerAnswer.announced(
                interval: options.interval, seeders: seederCount,
                leechers: simpleSwarm.peers.count - seederCount, peers: addressesOf(others, for: peer))
            queue.put(
                .trackerAnswers(peer, life: life, tracker: tracker, question: question, answer), at: now + roundTrip)
        }
    }

    /// So long a tracker thinks.
    func trackerPause(_ peer: Int) -> Duration {
        guard options.slowAnswerPercent > 0 else { return .zero }
        var random = RandomStream(seed, .slowAnswer, peer, tally.announces)
        return random.below(100) < options.slowAnswerPercent ? random.between(.milliseconds(100), .seconds(4)) : .zero
    }

    mutating func trackerAnswers(_ peer: Int, _ tracker: Int, _ answer: TrackerAnswer) {
        if peers[peer].isHonest {
            readClock(peer)
            if case .announced(let interval, _, _, let addresses) = answer {
                checks.trackerAnswered(peer, tracker, interval: interval, addresses)
            } else {
                checks.trackerFailed(peer, tracker)
            }
        }
        if peers[peer].isHonest {
            step(peer, .trackerAnswered(tracker: tracker, answer))
        } else {
            liarFinds(peer, answer)
        }
    }

    /// Somebody tells all peers of a private torrent of peers, by ways that are not allowed.
    mutating func strangerSpeaks(_ number: Int) {
        guard !isHealed else { return }
        queue.put(.strangerSpeaks(number + 1), at: now + .seconds(7))
        let addresses = [SimulatedPeer.address(firstPlace + options.peerCount + 7 + number)]
        for peer in peers.indices where peers[peer].session != nil && !peers[peer].isPaused {
            for address in addresses { checks.found(peer, address, isProper: false) }
            step(peer, .peersFound(addresses, number.isMultiple(of: 2) ? .local : .exchange))
        }
    }
}

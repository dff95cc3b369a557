// Grounds on which mistakes of one kind show themselves: what seeds draw apart, brought together.

import Primitives
import TrackerLogic

extension ScenarioOptions {
    /// Brings together what shows mistakes of one kind; what the seed has drawn besides stays.
    mutating func lead(to stress: Stress) {
        switch stress {
        case .crashes: meetCrashes()
        case .partitions: meetPartitions()
        case .pairs: meetPairs()
        case .amnesia: meetAmnesia()
        case .refusals: meetRefusals()
        case .snapshots: meetSnapshots()
        case .stops: meetStops()
        case .members: meetMemberChanges()
        case .scrapes: meetScrapes()
        case .groups: meetGroups()
        case .overtakings: meetOvertakings()
        case .crowds: meetCrowds()
        case .rules: meetRules()
        case .conjunctions: meetConjunctions()
        case .hours: liveForHours()
        case .misconfigured: misconfigure()
        case .beginnings: meetBeginnings()
        case .slips: meetSlips()
        case .laggards: meetLaggards()
        case .silence: fallSilent()
        case .slow, .duplicates, .lossy, .deaths, .disks, .damaged:
            preconditionFailure("\(stress.rawValue) is no ground")
        }
    }

    private mutating func size(_ count: Int) {
        (nodeCount, spareCount, unnumberedCount) = (count, 0, min(unnumberedCount, count - 1))
    }

    private var isAlone: Bool { nodeCount == 1 }

    /// Injects a fault at one of so many moments of a kind.
    private mutating func inject(_ odds: Int, at moments: Moment...) {
        for moment in moments { faults.injectOneIn[moment.rawValue] = odds }
    }

    /// Faults by the clock, of these kinds; a tracker alone has only those that need no others.
    private mutating func meet(_ kinds: [Fault.Kind], every gap: Duration, atMost count: Int) {
        faults.kinds = kinds.filter { !isAlone || !$0.needsOthers }
        (faults.meanGap, faults.maxOutages) = (gap, count)
    }

    private mutating func meetCrashes() {
        if !isAlone { size(3) }
        coreLength = .seconds(60)
        meet([], every: .seconds(5), atMost: 60)
        faults.maxDown = 2
        inject(30, at: .halfWay, .entryDurable)
        inject(8, at: .prepareSent, .commitSent)
        bus.lossPerMille = 100
        disk.failPerMille = 50
        updatesPerEntry = 8
        stay = .seconds(8)
    }

    private mutating func meetPartitions() {
        meet([.partition, .partition, .oneWayPartition, .memoryLoss], every: .seconds(10), atMost: 20)
        (stay, maxWallError, maxDrift) = (.seconds(8), 1000, 0)
        // Each side has swarms of its own, and people at its consoles.
        swarmCount = 8
        setStewards(2)
    }

    private mutating func meetPairs() {
        // By turns, as the seed has drawn how many there are.
        if !isAlone { size(nodeCount % 2 == 0 ? 1 : 2) }
        meet([.crash, .partition, .busLoss], every: .seconds(5), atMost: 40)
        faults.maxDown = 2
        inject(6, at: .commitSent)
        (maxWallError, maxDrift) = (1000, 0)
    }

    private mutating func meetAmnesia() {
        meet(
            faults.kinds + [.memoryLoss, .memoryLoss, .memoryLoss, .diskFailure, .crash], every: .seconds(4), atMost: 20
        )
        inject(6, at: .chunkFetched, .chunkSent, .transferEnded, .restarted, .becameMaster)
        faults.hasRefusalsAtMoments = true
        (tailCount, shardCount, updatesPerEntry) = (1 + tailCount % 20, 4, 4)
        bus.maxDelay = .milliseconds(300)
        bus.lossPerMille = 60
        bus.redeliveredPerMille = 60
        disk.failPerMille = 60
        stay = .seconds(5)
    }

    private mutating func meetRefusals() {
        disk.failPerMille = 300
        disk.maxDelay = .milliseconds(60)
        bus.stragglerPerMille = 100
        bus.maxStragglerDelay = .seconds(1)
        bus.repeatPerMille = 100
        bus.isReordering = true
        stay = .seconds(8)
        faults.maxOutages = 30
        inject(12, at: .writeFailed, .entrySubmitted, .promiseSubmitted)
        // By turns, as the seed has drawn something else.
        if isFlashCrowd { fillDisks() }
    }

    /// Nothing goes wrong but that for ten seconds no voter's disk takes anything, and by turns all but one's.
    private mutating func fillDisks() {
        faults = FaultOptions()
        (bus.lossPerMille, bus.repeatPerMille, bus.stragglerPerMille, bus.redeliveredPerMille) = (0, 0, 0, 0)
        bus.maxDelay = min(bus.maxDelay, .milliseconds(50))
        (disk.failPerMille, disk.stallPerMille, disk.maxDelay) = (0, 0, min(disk.maxDelay, .milliseconds(60)))
        (entry, updatesPerEntry, maxDrift) = (.any, max(updatesPerEntry, 64), min(maxDrift, 2000))
        (maxStartDelay, latecomerDelay, coreLength) = (.milliseconds(500), .zero, .seconds(100))
        script = (0..<4).map { turn in
            let spared = turn % 2 == 1 && !isAlone ? turn % nodeCount : nil
            return ScriptedEvent(
                at: .seconds(10 + 22 * Int64(turn)), .fullDisks((0..<nodeCount).filter { $0 != spared }, .seconds(10)))
        }
    }

    private mutating func meetSnapshots() {
        (snapshotAge, snapshotLogByteCount, tailCount) = (.seconds(1), 300, 1 + tailCount % 8)
        disk.failPerMille = 100
        faults.maxOutages = 20
        faults.hasRefusalsAtMoments = true
        inject(6, at: .snapshotUnderWay, .trimSubmitted)
    }

    private mutating func meetStops() {
        if !isAlone { size(3) }
        meet([.cleanStop, .crash], every: .seconds(2), atMost: 80)
        (faults.maxDown, coreLength, keepsSwarms) = (3, .seconds(60), false)
        disk.maxDelay = .milliseconds(300)
        disk.stallPerMille = 200
        disk.maxStall = .seconds(2)
        (clientCount, interval, stay) = (3, 30, .seconds(60))
        makeRoom()
    }

    private mutating func meetMemberChanges() {
        if !isAlone { (nodeCount, spareCount, unnumberedCount) = (5, 2, 0) }
        meet([.memberChange, .memberChange, .crash, .handover, .partition], every: .seconds(2), atMost: 20)
        tailCount = 1 + tailCount % 20
        inject(8, at: .transferEnded, .handover)
    }

    private mutating func meetScrapes() {
        (scraperCount, visitorCount) = (8, 4)
        stay = .seconds(5)
        meet([.pause, .oneWayPartition, .deafLinks, .partition, .slowPair], every: .seconds(3), atMost: 30)
        faults.hasPausesAtMoments = true
        makeRoom()
    }

    private mutating func meetGroups() {
        if !isAlone { entry = .group }
        clientWait = .seconds(15)
        bus.stragglerPerMille = 150
        bus.maxStragglerDelay = .seconds(20)
        stay = .seconds(8)
        visitorCount = max(visitorCount, 2)
        meet(faults.kinds + [.crash, .pause, .busLoss], every: .seconds(5), atMost: 30)
    }

    private mutating func meetOvertakings() {
        harden(.deaths)
        bus.isReordering = true
        bus.maxDelay = .milliseconds(50)
    }

    private mutating func meetCrowds() {
        (clientCount, swarmCount, targetRate) = (24, 1 + swarmCount % 2, 1)
        (maxTorrents, maxPeers, updatesPerEntry, maxUploads) = (2, 12, 2, 1)
        (interval, intervalJitter) = (4, 1)
        (clientWait, clientRetransmissions) = (entry == .group ? .seconds(15) : .seconds(2), 2)
        (waitingRequests, forwardPause) = (0, .milliseconds(50))
        // By turns, as the seed has drawn something else.
        if keepsSwarms {
            (maxPeersPerSwarm, maxPeersPerAddress, clientsPerAddress) = (6, 3, 4)
            maxPeers = 40
        }
        setStewards(3)
        makeRoom()
        meet([.partition, .deafLinks, .crash, .darkness], every: .seconds(4), atMost: 20)
    }

    private mutating func meetRules() {
        (visitorCount, hasWhimsicalVisitors) = (4, true)
        setStewards(3)
        (hasFileAccounts, hasHastyStewards) = (true, true)
        (hasOddPasskeys, trustsVisitors) = (true, true)
        meet([.ruleChange, .registration, .crash, .partition, .handover], every: .seconds(2), atMost: 15)
        inject(40, at: .entrySubmitted, .entryDurable, .prepareSent)
    }

    private mutating func meetConjunctions() {
        faults.strikesTwice = true
        faults.hasRefusalsAtMoments = true
        (faults.hasPausesAtMoments, faults.hasCutsAtMoments) = (true, true)
        meet(
            [.diskFailure, .slowDisk, .busLoss, .crash, .pause, .clog, .memoryLoss, .partition], every: .seconds(3),
            atMost: 30)
        inject(
            12, at: .promiseSubmitted, .entrySubmitted, .snapshotUnderWay, .trimSubmitted, .transferEnded, .writeFailed,
            .restarted, .becameMaster, .handover)
        tailCount = 1 + tailCount % 8
    }

    private mutating func misconfigure() {
        hasReports = true
        guard !isAlone else { return }
        // By its number one is known again.
        unnumberedCount = 0
        misconfiguredCount = max(1, (nodeCount - spareCount - 1) / 2)
        meet([.crash, .partition, .busLoss, .memoryLoss], every: .seconds(6), atMost: 12)
        (bus.lossPerMille, bus.stragglerPerMille, bus.redeliveredPerMille) = (0, 0, 0)
        bus.maxDelay = min(bus.maxDelay, .milliseconds(50))
        (disk.failPerMille, disk.stallPerMille, disk.maxDelay) = (0, 0, min(disk.maxDelay, .milliseconds(60)))
        maxDrift = min(maxDrift, 2000)
    }

    /// By turns, as the seed has drawn how many swarms there are.
    private mutating func meetBeginnings() {
        faults = FaultOptions()
        (bus.lossPerMille, bus.stragglerPerMille, bus.redeliveredPerMille) = (0, 0, 0)
        bus.maxDelay = min(bus.maxDelay, .milliseconds(50))
        (disk.failPerMille, disk.stallPerMille, disk.maxDelay) = (0, 0, min(disk.maxDelay, .milliseconds(60)))
        (maxDrift, coreLength) = (min(maxDrift, 2000), .seconds(50))
        guard !isAlone else { return }
        switch swarmCount {
        case 1:
            // In quorum mode the first one is all of the cluster.
            (nodeCount, spareCount, unnumberedCount) = (3, 2, 3)
            meet([.crash, .partition], every: .seconds(10), atMost: 3)
        case 2:
            (nodeCount, spareCount, unnumberedCount, misinformsSpare) = (5, 2, 0, true)
            meet([.memberChange, .memberChange, .crash], every: .seconds(3), atMost: 20)
        case 3:
            latecomerDelay = .seconds(8)
            tailCount = 1 + tailCount % 4
            faults.leavesFetchersAlone = true
        default:
            let (first, second) = (nodeCount - 1, nodeCount / 2)
            script = [
                ScriptedEvent(at: .seconds(9), .tellFarRound), ScriptedEvent(at: .seconds(10), .stop(0)),
                ScriptedEvent(at: .seconds(20), .stop(first)),
                ScriptedEvent(at: .seconds(33), .breakDisk(0)),
                ScriptedEvent(at: .seconds(35), .brokerOutage(.seconds(6))),
                ScriptedEvent(at: .seconds(36), .stop(second)),
            ]
        }
    }

    /// Clients that ask all the time, and a master that dies as somebody lags behind; by turns its log is short.
    private mutating func meetLaggards() {
        harden(.deaths)
        (faults, bus.repeatPerMille) = (FaultOptions(), 0)
        if !isAlone { size(nodeCount < 5 ? 3 : 5) }
        (disk.maxDelay, maxDrift) = (min(disk.maxDelay, .milliseconds(60)), min(maxDrift, 2000))
        (maxStartDelay, bus.maxConnectDelay, bus.maxNoticeDelay) = (
            .milliseconds(500), .milliseconds(50), .milliseconds(100)
        )
        (clientCount, interval, intervalJitter, targetRate) = (32, 4, 1, 100_000)
        (stay, clientWait) = (.seconds(10), entry == .group ? .seconds(15) : .seconds(2))
        tailCount = isFlashCrowd ? 1 + tailCount % 4 : 12 + tailCount % 20
        makeRoom()
        coreLength = .seconds(100)
        guard !isAlone else { return }
        script = (0..<6).flatMap { turn -> [ScriptedEvent] in
            let at = Duration.seconds(12 + 14 * Int64(turn))
            if turn % 3 == 2 { return [ScriptedEvent(at: at, .stopMaster)] }
            return [
                ScriptedEvent(at: at, .partHeir(6 + turn)),
                ScriptedEvent(at: at + .milliseconds(600 + 100 * Int64(turn)), .masterDies(.seconds(6))),
            ]
        }
    }

    private mutating func meetSlips() {
        slipGap = .seconds(3)
        meet([.crash, .handover, .memoryLoss], every: .seconds(12), atMost: 20)
        (bus.lossPerMille, bus.stragglerPerMille, bus.redeliveredPerMille) = (0, 0, 0)
        bus.maxDelay = min(bus.maxDelay, .milliseconds(50))
        (disk.failPerMille, disk.stallPerMille, disk.maxDelay) = (0, 0, min(disk.maxDelay, .milliseconds(60)))
        (maxDrift, coreLength) = (min(maxDrift, 2000), .seconds(80))
        network.lossPerMille = max(network.lossPerMille, 80)
        (visitorCount, hasWhimsicalVisitors, scraperCount) = (6, true, 3)
        (shardCount, tailCount) = (4, 1 + tailCount % 20)
        updatesPerEntry = max(updatesPerEntry, 64)
        // By turns, as the seed has drawn something else: most who come find no room.
        if keepsSwarms { maxPeers = 4 }
        makeRoom()
    }

    /// Few words, each said once: what a tracker loses of them nobody says again before all are looked at.
    private mutating func fallSilent() {
        if !isAlone { size(nodeCount < 5 ? 3 : 5) }
        (clientCount, swarmCount, scraperCount, visitorCount, stewardCount) = (30, 1, 0, 0, 0)
        (interval, intervalJitter, stay, ipv6Percent) = (120, 10, .seconds(60), ipv6Percent / 10)
        (maxTorrents, maxPeers, targetRate) = (1000, 1000, 100_000)
        (maxWallError, maxDrift) = (1000, min(maxDrift, 2000))
        makeRoom()
        disk.maxDelay = .milliseconds(60)
        if isFlashCrowd {
            // Votes refuse what is merged.
            meet([.partition], every: .seconds(8), atMost: 10)
            (disk.failPerMille, updatesPerEntry) = (300, 4)
            return
        }
        meet([.crash, .crash, .partition], every: .seconds(4), atMost: 30)
        faults.maxDown = 3
        disk.stallPerMille = 50
        disk.maxStall = .seconds(1)
        inject(8, at: .commitSent, .replied, .okSent)
        coreLength = .seconds(40)
    }

    private mutating func liveForHours() {
        coreLength = .seconds(1200)
        (clientCount, scraperCount, visitorCount) = (6, 1, 1)
        (interval, intervalJitter, stay) = (120, 20, .seconds(600))
        (snapshotAge, snapshotLogByteCount) = (.seconds(60), 2000)
        meet([.crash, .pause, .partition, .darkness, .cleanStop, .clockStep], every: .seconds(120), atMost: 40)
        outlastsTheSilent = true
        makeRoom()
    }
}

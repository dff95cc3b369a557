// What each peer of a swarm is like, and what a seed means.

import PeerLogic
import Primitives

extension PeerTraits {
    /// The peer of a place, drawn from its stream.
    init(_ place: Int, _ options: TransferOptions, _ random: inout RandomStream) {
        isSeeder = place < options.seederCount
        let firstLiar = options.seederCount + options.leecherCount
        if place >= firstLiar { liar = options.liars[place - firstLiar] }
        func hits(_ percent: Int) -> Bool { random.below(100) < percent }
        isReachable = !hits(options.natPercent) || place == 0
        isMagnet = hits(options.magnetPercent) && !isSeeder && liar == nil
        leavesWhenComplete = hits(options.leavePercent) && !isSeeder
        func rate() -> Int {
            guard options.maxLineRate > 0 else { return 0 }
            // As many slow lines as fast ones: by the power, not by the number.
            var rate = options.minLineRate
            while rate < options.maxLineRate, !random.oneIn(3) { rate *= 2 }
            return min(rate, options.maxLineRate)
        }
        upRate = rate()
        downRate = max(rate(), upRate)
        if liar == .snail { upRate = 16_000 }
        latency = random.between(.microseconds(100), options.maxLatency)
        settings.maxLinks = place == 0 ? options.firstMaxLinks ?? options.maxLinks : options.maxLinks
        settings.uploadSlots = 1 + random.below(options.maxUploadSlots)
        settings.maxBufferedByteCount = options.maxBufferedByteCount
        let isLimited = hits(options.limitPercent)
        let limits = (up: 60_000 + random.below(600_000), down: 60_000 + random.below(600_000))
        settings.announcesLocally = options.announcesLocally
        if isLimited { (settings.maxUploadRate, settings.maxDownloadRate) = (limits.up, limits.down) }
        if hits(options.ratioPercent), place != 0 { settings.targetRatio = 0.5 + Double(random.below(4)) * 0.5 }
        #if PLANTED_BUGS
            settings.plantedBug = options.plantedBug
        #endif
    }

    /// What else it may be like, drawn from a stream of its own.
    mutating func drawWhims(_ place: Int, _ options: TransferOptions, _ random: inout RandomStream) {
        guard liar == nil else { return }
        if random.below(100) < options.hiddenPercent, place > 0 {
            settings.listenPort = 0
            settings.announcesLocally = false
            isReachable = false
        }
        settings.exchangesPeers = random.below(100) >= options.withoutExchangePercent
        if random.below(100) < options.otherNumbersPercent {
            extensionNumbers = [[2, 1, 3], [3, 1, 2], [20, 1, 7], [1, 3, 2], [200, 201, 202]][random.below(5)]
        }
    }
}

extension TransferOptions {
    /// What the swarm of a seed is like.
    ///
    /// Each swarm has some kinds of trouble and lacks others, for those that are always there would hide each other.
    static func drawn(seed: UInt64) -> TransferOptions {
        var random = RandomStream(seed, .transferOptions)
        var options = TransferOptions()
        func percent(_ most: Int) -> Int { random.oneIn(2) ? 0 : 1 + random.below(most) }
        options.seederCount = 1 + random.below(2)
        // Most are small, some are not.
        options.leecherCount = 1 + random.below(random.oneIn(6) ? 30 : 9)
        if random.oneIn(2) {
            for _ in 0..<1 + random.below(2) { options.liars.append(LiarKind.allCases[random.below(8)]) }
        }
        options.pieceCount = 1 + random.below(random.oneIn(4) ? 120 : 40)
        options.blocksPerPiece = [1, 2, 2, 4, 16, 64][random.below(6)]
        if options.blocksPerPiece > 4 { options.pieceCount = min(options.pieceCount, 12) }
        options.lastPieceByteCount = 1 + random.below(options.blocksPerPiece * 16_384)
        options.isPrivate = random.oneIn(4)
        options.magnetPercent = percent(60)
        options.partialPercent = percent(60)
        options.natPercent = percent(50)
        options.withoutFastPercent = percent(100)
        options.limitPercent = percent(60)
        options.ratioPercent = percent(60)
        options.leavePercent = percent(60)
        options.arrivalTime = random.oneIn(2) ? .seconds(2) : .seconds(30)
        options.minLineRate = 100_000
        options.maxLineRate = random.oneIn(4) ? 0 : 4_000_000
        options.maxLatency = random.oneIn(2) ? .milliseconds(20) : .milliseconds(150)
        options.maxDrift = random.oneIn(2) ? 0 : 500
        options.maxLinks = random.oneIn(3) ? 4 + random.below(8) : 50
        options.maxUploadSlots = 1 + random.below(8)
        let pieceLength = options.blocksPerPiece * 16_384
        options.maxBufferedByteCount = random.oneIn(3) ? pieceLength * (2 + random.below(3)) : 4 << 20
        options.trackerTiers = [[1], [1], [2], [1, 1], [2, 1]][random.below(5)]
        options.webSeedCount = random.oneIn(4) ? 1 + random.below(2) : 0
        options.lyingWebSeedCount = random.below(options.webSeedCount + 1)
        options.coreLength = random.between(.seconds(20), .seconds(90))
        for fault in TransferFault.common where random.oneIn(2) { options.faults.append(fault) }
        options.meanFaultGap = random.oneIn(5) ? nil : random.between(.seconds(1), .seconds(8))
        // Now and then many want much of few, over narrow lines: then it shows who has his turn.
        if random.oneIn(12) {
            options.seederCount = 1
            options.leecherCount = 8 + random.below(8)
            options.liars = []
            (options.pieceCount, options.blocksPerPiece) = (30 + random.below(30), 4)
            (options.minLineRate, options.maxLineRate) = (20_000, 60_000)
            (options.natPercent, options.limitPercent, options.webSeedCount, options.lyingWebSeedCount) = (0, 0, 0, 0)
            (options.maxUploadSlots, options.maxLinks) = (2, 50)
            options.faults = options.faults.filter { $0 != .settings }
        }
        options.drawMore(seed: seed)
        options.drawLate(seed: seed)
        options.drawLatest(seed: seed)
        return options
    }

    /// What there is in half of the swarms, drawn from a stream of its own, so that the other half is what it was
    /// before there was any of it.
    private mutating func drawMore(seed: UInt64) {
        var random = RandomStream(seed, .transferMore)
        guard random.oneIn(2) else { return }
        isOverUDP = random.oneIn(2)
        if isOverUDP, random.oneIn(2) { datagramLossPercent = 1 + random.below(40) }
        interval = [20, 60, 90, 240, 600][random.below(5)]
        if random.oneIn(2) { trackerTiers = [[3], [1, 2], [2, 2], [1, 1, 1], [3, 2]][random.below(5)] }
        if random.oneIn(4) { rest = random.between(.seconds(60), .seconds(500)) }
        namesAsker = random.oneIn(4)
        if random.oneIn(6) { staleAddressCount = 1 + random.below(random.oneIn(3) ? 120 : 12) }
        metadataByteCount = [1_000, 16_384, 16_385, 40_000, 98_304, 150_000][random.below(6)]
        hasPartialMagnets = random.oneIn(2)
        announcesLocally = random.oneIn(3)
        hasWebTrouble = webSeedCount > 0 && random.oneIn(2)
        if random.oneIn(6) { liars.append(.forger) }
        if random.oneIn(8) { liars.append(.gossip) }
        for fault in TransferFault.more where random.oneIn(2) { faults.append(fault) }
        if random.oneIn(3) { blocksPerPiece = 1 }
        if random.oneIn(8) { pieceCount = 1 }
        lastPieceByteCount = random.oneIn(3) ? 1 + random.below(20) : lastPieceByteCount
    }

    /// What there is in half of the swarms, drawn from a third stream, for the same reason.
    private mutating func drawLate(seed: UInt64) {
        var random = RandomStream(seed, .transferLate)
        guard random.oneIn(2) else { return }
        if random.oneIn(2) { slowAnswerPercent = [10, 40, 100][random.below(3)] }
        if random.oneIn(2) { quietEndPercent = [20, 60, 100][random.below(3)] }
        if random.oneIn(3) { leavePercent = 40 + random.below(60) }
        if random.oneIn(6) { lastPieceByteCount = random.oneIn(2) ? blocksPerPiece * 16_384 : 16_385 }
        if random.oneIn(6) { pieceCount = [8, 24, 64][random.below(3)] }
        // One piece may always be held; whoever has room for no more has as little as a snail gives that was asked for
        // it.
        if random.oneIn(6) {
            let byteCount = blocksPerPiece * 16_384 * (1 + random.below(3)) / 2
            if !liars.contains(.snail) { maxBufferedByteCount = byteCount }
        }
        // Long after all is done there are second announces, local words, and signs of life: of few it costs little.
        if random.oneIn(3) {
            leecherCount = min(leecherCount, 1 + random.below(5))
            rest = random.between(.seconds(70), .seconds(400))
            interval = [60, 240, 600][random.below(3)]
            if random.oneIn(3) { liars = [] }
        }
    }

    /// What there is in half of the swarms, drawn from a fourth stream, for the same reason.
    private mutating func drawLatest(seed: UInt64) {
        var random = RandomStream(seed, .transferLatest)
        guard random.oneIn(2) else { return }
        if random.oneIn(3) { hiddenPercent = 10 + random.below(40) }
        if random.oneIn(3) { withoutExchangePercent = 10 + random.below(60) }
        if random.oneIn(2) { otherNumbersPercent = 20 + random.below(80) }
        hasTalesOfNoPort = random.oneIn(2)
        if random.oneIn(8) { liars.append(.gossip) }
        hasMisers = random.oneIn(2)
        if random.oneIn(8) { liars.append(.rejecter) }
        if random.oneIn(40) { crowd() }
        if random.oneIn(12) { lackMetadata() }
    }

    /// More than fifty are connected with each other, and stay so for a while.
    private mutating func crowd() {
        (seederCount, leecherCount, maxLinks, liars) = (1, 56, 120, [])
        (pieceCount, blocksPerPiece, lastPieceByteCount) = (10, 1, 16_384)
        (minLineRate, maxLineRate) = (10_000, 40_000)
        (natPercent, hiddenPercent, webSeedCount, lyingWebSeedCount) = (0, 0, 0, 0)
        (arrivalTime, meanFaultGap, isPrivate) = (.seconds(2), nil, false)
        (staleAddressCount, rest) = (0, .zero)
    }

    /// Few have places for many, and most pairs have no extensions: who lacks the metadata has to look for long.
    private mutating func lackMetadata() {
        (seederCount, leecherCount, maxLinks, firstMaxLinks, liars) = (1, 8 + leecherCount % 7, 4, 60, [])
        (magnetPercent, natPercent, withoutExtensionsPercent) = (50, 0, 85)
        (arrivalTime, interval) = (.seconds(2), 60)
        faults = faults.filter { $0 != .crash && $0 != .stop && $0 != .offline && $0 != .pause }
    }
}

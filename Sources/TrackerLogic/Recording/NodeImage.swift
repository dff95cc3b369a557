// A tracker between two steps, as bytes and back.

import Primitives
import Wire

/// A tracker between two steps, as bytes and back.
///
///     version, configuration, promise, secret of the state │ every part of every machine (`Archived`)
///
/// What is read back behaves as what was written, to the last draw of chance: the order of peers in their swarms is
/// part of it. Tables are indexed anew, and what follows from the configuration is made of it.
extension TrackerNode {
    /// Of the bytes; another one is not read.
    static let imageVersion: UInt32 = 3

    /// All that this tracker is.
    ///
    /// - Complexity: O(what it holds), some 60 bytes a peer; a copy of the node may be asked on any thread.
    public var image: [UInt8] {
        var archive = Archive()
        var version = TrackerNode.imageVersion
        version.walk(&archive)
        var node = self
        var configuration = configuration
        configuration.walk(&archive)
        node.acceptor.walk(&archive)
        var (secret, shardCount) = (state.secret, UInt32(state.table.shards.count))
        secret.walk(&archive)
        shardCount.walk(&archive)
        node.walk(&archive)
        return archive.bytes
    }

    /// The tracker that an image is of; nil where the bytes are none of this version.
    public init?(image: [UInt8]) {
        var archive = Archive(image)
        var version: UInt32 = 0
        version.walk(&archive)
        guard version == TrackerNode.imageVersion else { return nil }
        var configuration = NodeConfiguration()
        configuration.walk(&archive)
        var acceptor = Acceptor(.blank)
        acceptor.walk(&archive)
        var (secret, shardCount) = (ClusterSecret.blank, 0 as UInt32)
        secret.walk(&archive)
        shardCount.walk(&archive)
        guard !archive.isDamaged, NumberBounds.isShardCount(shardCount),
            NumberBounds.isShardCount(acceptor.promise.shardCount)
        else { return nil }
        self.init(
            configuration: configuration, incarnation: acceptor.promise.incarnation, secret: acceptor.promise.secret,
            record: acceptor.promise, seed: 0)
        self.acceptor = acceptor
        state = ReplicatedState(secret: secret, shardCount: shardCount, keepsMergeData: configuration.keepsMergeData)
        #if PLANTED_BUGS
            state = state.planted(configuration.plantedBug)
        #endif
        walk(&archive)
        guard archive.isWhole else { return nil }
    }

    /// About how many bytes an image takes; nothing is looked through for it.
    public var imageByteCountEstimate: Int {
        let counts = state.table.counts
        return (counts.peersIPv4 + counts.peersIPv6) * 64 + counts.torrents * 64 + log.tailByteCount
            + state.files.byteCount + state.registry.count * 80 + (state.access.infoHashCount + state.access.userCount)
            * 40
            + 65_536
    }

    /// All machines but the acceptor, which the others are made of.
    private mutating func walk(_ archive: inout Archive) {
        state.walk(&archive)
        log.walk(&archive)
        writes.walk(&archive)
        snapshotter.walk(&archive)
        office.walk(&archive)
        candidate.walk(&archive)
        detector.walk(&archive)
        proposer.walk(&archive)
        reads.walk(&archive)
        admission.walk(&archive)
        transfer.walk(&archive)
        merging.walk(&archive)
        handover.walk(&archive)
        departure.walk(&archive)
        timers.walk(&archive)
        neighbours.walk(&archive)
        reports.walk(&archive)
        pauses.walk(&archive)
        router.walk(&archive)
        gathering.walk(&archive)
        commands.walk(&archive)
        commandUnderWay.walk(&archive)
        backlog.walk(&archive)
        commandsResumeAt.walk(&archive)
        connectionIDs.walk(&archive)
        errorLimiter.walk(&archive)
        clock.walk(&archive)
        sweep.walk(&archive)
        intervalUnderWay.walk(&archive)
        random.walk(&archive)
        restoredThrough.walk(&archive)
        lastRestored.walk(&archive)
        restoredEntry.walk(&archive)
        counters.walk(&archive)
    }
}

extension Counters {
    mutating func walk(_ archive: inout Archive) {
        connects.walk(&archive)
        announces.walk(&archive)
        scrapes.walk(&archive)
        errors.walk(&archive)
        errorsWithheld.walk(&archive)
        ignored.walk(&archive)
        dropped.walk(&archive)
        timedOut.walk(&archive)
        implausible.walk(&archive)
        entries.walk(&archive)
        updates.walk(&archive)
        expired.walk(&archive)
        completed.walk(&archive)
    }
}

// MARK: - What the operator has chosen

extension NodeConfiguration {
    mutating func walk(_ archive: inout Archive) {
        id.walk(&archive)
        cluster.walk(&archive)
        interval.walk(&archive)
        minInterval.walk(&archive)
        intervalJitter.walk(&archive)
        targetRate.walk(&archive)
        peerLifetime.walk(&archive)
        numWant.walk(&archive)
        maxNumWant.walk(&archive)
        limits.walk(&archive)
        trusted.walk(&archive)
        keepsSwarms.walk(&archive)
        shardCount.walk(&archive)
        snapshotAge.walk(&archive)
        snapshotLogByteCount.walk(&archive)
        uploadPatience.walk(&archive)
        tailCount.walk(&archive)
        walkBug(&archive)
    }

    /// The planted mistake by its place among all, behind 0 for none: whoever was built without them has none.
    private mutating func walkBug(_ archive: inout Archive) {
        var place: UInt16 = 0
        #if PLANTED_BUGS
            place = UInt16((plantedBug.flatMap { PlantedBug.allCases.firstIndex(of: $0) } ?? -1) + 1)
        #endif
        place.walk(&archive)
        guard Int(place) <= PlantedBug.allCases.count else { return archive.refuse() }
        #if PLANTED_BUGS
            plantedBug = place == 0 ? nil : PlantedBug.allCases[Int(place) - 1]
        #endif
    }
}

extension Limits {
    fileprivate mutating func walk(_ archive: inout Archive) {
        torrents.walk(&archive)
        peers.walk(&archive)
        peersPerAddress.walk(&archive)
        peersPerSwarm.walk(&archive)
        addressSharePercent.walk(&archive)
        errorsPerSecond.walk(&archive)
        updatesPerEntry.walk(&archive)
        waitingRequests.walk(&archive)
        registeredTorrents.walk(&archive)
        listedInfoHashes.walk(&archive)
        users.walk(&archive)
        torrentFileByteCount.walk(&archive)
        torrentFilesByteCount.walk(&archive)
        torrentFiles.walk(&archive)
        uploads.walk(&archive)
    }
}

extension AddressPrefix: Archived {
    static var blank: AddressPrefix { AddressPrefix(.unspecified, bits: 128) }

    mutating func walk(_ archive: inout Archive) {
        address.walk(&archive)
        bits.walk(&archive)
    }
}

extension ClusterConfiguration {
    fileprivate mutating func walk(_ archive: inout Archive) {
        var hasBus = hasBus
        hasBus.walk(&archive)
        if archive.isReading { self = hasBus ? ClusterConfiguration(mode: .survivor) : .alone }
        mode.walk(&archive)
        members.walk(&archive)
        election.walk(&archive)
        vote.walk(&archive)
        keepalive.walk(&archive)
        missed.walk(&archive)
        entry.walk(&archive)
        forwardPause.walk(&archive)
    }
}

extension ClusterConfiguration.Mode: Archived {
    static var blank: Self { .survivor }
    mutating func walk(_ archive: inout Archive) { archive.walk(choice: &self) }
}

extension ClusterConfiguration.ElectionPolicy: Archived {
    static var blank: Self { .highest }
    mutating func walk(_ archive: inout Archive) { archive.walk(choice: &self) }
}

extension ClusterConfiguration.Entry: Archived {
    static var blank: Self { .any }
    mutating func walk(_ archive: inout Archive) { archive.walk(choice: &self) }
}

extension Archive {
    /// A choice by its place among all.
    fileprivate mutating func walk<Choice: CaseIterable & Equatable>(choice: inout Choice)
    where Choice.AllCases == [Choice] {
        let read = tag(UInt8(Choice.allCases.firstIndex(of: choice) ?? 0))
        guard Int(read) < Choice.allCases.count else { return refuse() }
        choice = Choice.allCases[Int(read)]
    }
}

extension ClusterConfiguration.VotePolicy: Archived {
    static var blank: Self { .majority }

    mutating func walk(_ archive: inout Archive) {
        let told: (tag: UInt8, span: Duration) =
            switch self {
            case .majority: (0, .zero)
            case .allDropped(let span): (1, span)
            case .allAskedAgain(let span): (2, span)
            }
        var span = told.span
        let tag = archive.tag(told.tag)
        span.walk(&archive)
        switch tag {
        case 0: self = .majority
        case 1: self = .allDropped(after: span)
        case 2: self = .allAskedAgain(every: span)
        default: archive.refuse()
        }
    }
}

// What goes wrong in a swarm, and how it is put right.

import PeerLogic
import Primitives

extension TransferWorld {
    mutating func planFault() {
        guard let mean = options.meanFaultGap, !options.faults.isEmpty else { return }
        var random = RandomStream(seed, .transferGap, lastFault + 1)
        queue.put(.fault, at: now + random.between(.milliseconds(50), mean * 2))
    }

    mutating func nextFault() {
        guard !isHealed else { return }
        lastFault += 1
        planFault()
        if let only = options.onlyFaults, !only.contains(lastFault) { return }
        var random = RandomStream(seed, .transferFault, lastFault)
        let fault = options.faults[random.below(options.faults.count)]
        let peer = random.below(options.seederCount + options.leecherCount)
        let span = random.between(.milliseconds(500), .seconds(20))
        tally.faults[TransferFault.allCases.firstIndex(of: fault) ?? 0] += 1
        guard peers[peer].isUp, !peers[peer].isGone, !peers[peer].isLeaving else { return }
        switch fault {
        case .crash: die(peer, isHost: random.oneIn(2), for: span)
        case .stop:
            // The session is paused, and its life ends a moment later.
            pause(peer, for: .seconds(3600))
            die(peer, isHost: false, for: span)
        case .cut, .freeze: cut(peer, isNoticed: fault == .cut, &random)
        case .offline: goOffline(peer, for: span)
        case .diskFull: failDisk(peer, .full, for: span)
        case .diskReadOnly: failDisk(peer, .readOnly, for: span)
        case .diskSlow:
            peers[peer].writeTime = random.between(.milliseconds(100), .seconds(3))
            queue.put(.diskMends(peer), at: now + span)
        case .pieceLost:
            let piece = random.below(layout.pieceCount)
            // The first seeder is to be left with all.
            if peer > 0 { losePiece(peer, piece, isNoticed: random.oneIn(2)) }
        case .trackerSilent, .trackerFails:
            guard !simpleTrackers.isEmpty else { return }
            silence(random.below(simpleTrackers.count), fault == .trackerSilent ? .silent : .fails, for: span * 3)
        case .settings: changeSettings(peer, &random)
        case .pause: pause(peer, for: span)
        case .selection: select(peer, for: span, &random)
        case .update:
            guard peers[peer].session != nil, !peers[peer].isPaused else { return }
            step(peer, .updateWanted)
        case .trackersAway:
            for tracker in simpleTrackers.indices {
                silence(tracker, random.oneIn(2) ? .silent : .fails, for: span * (1 + Int64(random.below(20))))
            }
        case .trackerForgets:
            if !simpleTrackers.isEmpty { simpleTrackers[random.below(simpleTrackers.count)].secret += 1 }
        case .diskLong: failDisk(peer, .full, for: span * 8)
        }
    }

    private mutating func cut(_ peer: Int, isNoticed: Bool, _ random: inout RandomStream) {
        let open = table.ends.indices.filter { table.ends[$0].peer == peer && table.ends[$0].phase == .open }
        guard !open.isEmpty else { return }
        let end = open[random.below(open.count)]
        tell(peer, .faults, "connection with peer \(table.ends[end ^ 1].peer) \(isNoticed ? "breaks" : "freezes")")
        table.isFrozen[end >> 1] = true
        guard isNoticed else { return }
        let epoch = table.epoch(of: end)
        told(end, .closed)
        if table.epoch(of: end) == epoch { told(end ^ 1, .closed) }
    }

    mutating func goOffline(_ peer: Int, for span: Duration) {
        tell(peer, .faults, "is offline for \(Figure.seconds(span)) s")
        peers[peer].isOffline = true
        for end in table.ends.indices where table.ends[end].peer == peer && table.ends[end].phase != .none {
            table.isFrozen[end >> 1] = true
        }
        queue.put(.isOnline(peer), at: now + span)
    }

    mutating func failDisk(_ peer: Int, _ problem: StoreProblem, for span: Duration) {
        tell(peer, .faults, "its disk takes nothing (\(problem)) for \(Figure.seconds(span)) s")
        peers[peer].diskProblem = problem
        queue.put(.diskMends(peer), at: now + span)
    }

    mutating func silence(_ tracker: Int, _ state: SimpleTracker.State, for span: Duration) {
        simpleTrackers[tracker].state = state
        queue.put(.trackerMends(tracker), at: now + span)
    }

    /// Now and then a tracker falls silent right before somebody ends.
    mutating func quieten(_ peer: Int) {
        guard options.quietEndPercent > 0, !simpleTrackers.isEmpty else { return }
        var random = RandomStream(seed, .quietEnd, peer, tally.announces)
        guard random.below(100) < options.quietEndPercent else { return }
        silence(
            random.below(simpleTrackers.count), random.oneIn(4) ? .fails : .silent,
            for: random.between(.milliseconds(300), .seconds(20)))
    }

    /// People want only some of the pieces for a while.
    private mutating func select(_ peer: Int, for span: Duration, _ random: inout RandomStream) {
        guard peers[peer].session != nil, peers[peer].hasMetadata else { return }
        var wanted = Bitfield(count: layout.pieceCount)
        for piece in 0..<layout.pieceCount where random.oneIn(2) { wanted.insert(piece) }
        checks.selects(peer, wanted)
        step(peer, .wantedChanged(wanted))
        queue.put(.wantsAll(peer, life: peers[peer].life), at: now + span)
    }

    mutating func wantAll(_ peer: Int) {
        guard peers[peer].session != nil, peers[peer].hasMetadata else { return }
        let wanted = Bitfield(count: layout.pieceCount, isFull: true)
        checks.selects(peer, wanted)
        step(peer, .wantedChanged(wanted))
    }

    /// What a peer says to its local network, all others there hear who say something there themselves.
    mutating func hearLocally(_ speaker: Int) {
        let address = peers[speaker].address
        for peer in peers.indices
        where peer != speaker && peers[peer].isUp && peers[peer].session != nil && !peers[peer].isPaused
            && !peers[peer].isLeaving && peers[peer].traits.settings.announcesLocally && !peers[peer].isOffline
        {
            readClock(peer)
            checks.found(peer, address, isProper: true, isNews: true)
            step(peer, .peersFound([address], .local))
        }
    }

    private mutating func changeSettings(_ peer: Int, _ random: inout RandomStream) {
        guard peers[peer].session != nil else { return }
        var settings = peers[peer].traits.settings
        settings.uploadSlots = random.below(options.maxUploadSlots + 1)
        settings.maxUploadRate = random.oneIn(2) ? nil : 50_000 + random.below(400_000)
        settings.maxDownloadRate = random.oneIn(2) ? nil : 50_000 + random.below(400_000)
        tell(peer, .commands, "is given other limits")
        checks.changed(peer, settings: settings, at: now)
        step(peer, .settingsChanged(settings))
    }

    /// What a script says.
    mutating func take(_ event: ScriptedTransfer.Event) {
        switch event {
        case .crash(let peer, let span): die(peer, isHost: false, for: span)
        case .leave(let peer): if peers[peer].isUp { leave(peer) }
        case .join(let peer): come(peer)
        case .diskFails(let peer, let problem, let span): failDisk(peer, problem, for: span)
        case .pieceLost(let peer, let piece): losePiece(peer, piece, isNoticed: false)
        case .trackersSilent(let span):
            for tracker in simpleTrackers.indices { silence(tracker, .silent, for: span) }
        case .offline(let peer, let span): goOffline(peer, for: span)
        }
    }

    /// All is repaired, as far as anybody can: what sessions hold against each other they find out by themselves.
    mutating func heal() {
        isHealed = true
        if isRecording { line("all is repaired") }
        for tracker in simpleTrackers.indices { simpleTrackers[tracker].state = .works }
        for peer in peers.indices {
            mendDisk(peer)
            peers[peer].isOffline = false
            if peers[peer].isUp, !(checks.wantsAll(peer)) { wantAll(peer) }
            if peers[peer].isHonest, peers[peer].isUp, peers[peer].session != nil, !peers[peer].isLeaving {
                let settings = peers[peer].traits.settings
                checks.changed(peer, settings: settings, at: now)
                step(peer, .settingsChanged(settings))
            }
            goOn(peer)
            if !peers[peer].isUp { queue.put(.returns(peer, life: peers[peer].life), at: now) }
        }
    }
}

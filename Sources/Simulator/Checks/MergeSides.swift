// What comes of the two sides of a merge.

import Primitives
import TrackerLogic
import Wire

/// What comes of the two sides of a merge: the later word on each account, torrent file and peer, all downloads by who
/// has counted them, and all registered torrents; and the same whichever side takes in the other (rule 12).
///
///     master ── asks for chunk 0: its own words are noted, and from then on what is said on its side
///     other  ── is asked for chunk 0: its words are noted, with the place in its history
///     master ── tells `.merged`: its words now are judged by both
///
/// Sides are values, so that what goes on in trackers does not touch what is noted. Merges are rare.
struct MergeSides: Sendable {
    /// How often sides of each kind have met.
    struct Counts: Sendable, Hashable {
        /// Merges that were judged.
        var judged = 0
        /// Those in which each side had an account, a torrent file or a peer that the other had not, or not so.
        var (ofAccounts, ofFiles, ofPeers) = (0, 0, 0)
        /// Those in which one side had an account or a torrent file that was removed on the other.
        var ofRemovals = 0
    }

    /// Things that something was said of since a side's words were noted.
    private struct Said<Key: Sendable & Equatable, Value: Sendable & Equatable>: Sendable {
        private var keys: [Key] = []
        /// What merges have said, perhaps the one before, which was broken off.
        private(set) var merged: [Word<Key, Value>] = []

        /// Somebody has said something on this side: it counts more than all before.
        mutating func note(_ key: Key) { keys.append(key) }
        mutating func noteMerged(_ key: Key, at time: UInt32, _ value: Value?) {
            merged.append(Word(key: key, time: time, value: value))
        }

        func contains(_ key: Key) -> Bool { keys.contains(key) }

        /// Whether something was said that counts more than a word, as an end of the same second does.
        func containsLater(than word: Word<Key, Value>) -> Bool {
            contains(word.key) || merged.contains { $0.key == word.key && $0.isLater(than: word) }
        }
    }

    /// What was said on a side since its words were noted.
    private struct Changes: Sendable {
        var accounts = Said<[UInt8], Account>()
        var files = Said<InfoHash, TorrentFileHead>()
        var peers = Said<PeerKey, PeerImage>()
        /// What an earlier merge has said of peers, in the entry that was under way as the side's words were noted.
        var earlierPeers: [Word<PeerKey, PeerImage>] = []
        var unregistered: [InfoHash] = []
        var hasEmptied = false
        /// Whether anybody has changed an account.
        var hasAccounts = false
    }

    /// A master that takes in another's history.
    private struct Own: Sendable {
        var state: ReplicatedState
        /// The entry that was under way by then: what it says is none of this merge.
        var underWay: Ballot?
        var changes = Changes()
    }

    /// For each tracker, its side as it was when it asked for another's.
    private var own: [Own?]
    /// For each tracker, its side as it was when it was last asked for it by a master.
    private var given: [ReplicatedState?]
    /// Whether swarms were emptied in the life of a tracker: what a whole cluster has stopped with does not count.
    private var hasEmptied: [Bool]
    /// Lives that have said that the one before had stopped in good order: their swarms need not count.
    private var leftInOrder: [Life] = []
    private(set) var counts = Counts()

    init(nodeCount: Int) {
        own = Array(repeating: nil, count: nodeCount)
        given = Array(repeating: nil, count: nodeCount)
        hasEmptied = Array(repeating: false, count: nodeCount)
    }

    /// Whether the state of a tracker is to be looked at after a step.
    func wantsState(
        _ step: borrowing Step, _ event: Event, _ effects: borrowing Effects, _ scene: borrowing Scene
    ) -> Bool {
        MergeSides.isAsked(step, event, scene) || MergeSides.asks(effects) || Merges.isMerged(effects)
    }

    private static func asks(_ effects: borrowing Effects) -> Bool {
        effects.messages.contains { if case .fetchChunk(0) = $0.body { true } else { false } }
    }

    /// Whether a master asks for the first chunk: others that ask for it take the state over.
    private static func isAsked(_ step: borrowing Step, _ event: Event, _ scene: borrowing Scene) -> Bool {
        guard step.kind == .fetchChunk, case .messageReceived(let message) = event, case .fetchChunk(0) = message.body,
            let sender = scene.node(of: message.sender)
        else { return false }
        return scene.nodes[sender].view?.leads != nil
    }

    /// A tracker has taken a step.
    mutating func note(_ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects) {
        if step.kind == .started { (own[step.node], hasEmptied[step.node]) = (nil, false) }
        if effects.observations.contains(where: { if case .swarmsEmptied = $0 { true } else { false } }) {
            hasEmptied[step.node] = true
        }
        if step.kind == .hello || step.kind == .answer, case .messageReceived(let message) = event {
            note(message)
        }
        guard case .some = own[step.node] else { return }
        for entry in step.applied { note(entry, step.node) }
        // What it has applied and nobody has seen may have changed anything.
        let isSeen = step.view.position.index == before.position.index &+ UInt64(step.applied.count)
        if step.view.leads == nil || !isSeen { own[step.node] = nil }
    }

    private mutating func note(_ message: ClusterMessage) {
        let isInOrder =
            switch message.body {
            case .hello(let hello): hello.leftInOrder
            case .answer(let answer): answer.leftInOrder
            default: false
            }
        if isInOrder, !leftInOrder.contains(message.sender) { leftInOrder.append(message.sender) }
    }

    private mutating func note(_ entry: Entry, _ node: Int) {
        var cursor = UpdateCursor(entry.header)
        while let update = try? cursor.next(entry.bytes) {
            if let announced = Announced(update) {
                own[node]?.changes.peers.note(PeerKey(infoHash: announced.infoHash, address: announced.address))
            }
            switch update {
            case .emptyShard: own[node]?.changes.hasEmptied = true
            case .unregisterTorrent(let infoHash): own[node]?.changes.unregistered.append(infoHash)
            case .mergePeer(let peer):
                let key = PeerKey(infoHash: peer.infoHash, address: peer.address)
                let image = PeerImage(
                    address: peer.address, peerID: peer.peerID, downloaded: peer.downloaded, left: peer.left,
                    lastSeen: peer.lastSeen, isCounted: peer.isCounted)
                notePeer(Word(key: key, time: peer.lastSeen, value: image), of: entry, node)
            case .mergeStop(let infoHash, let address, let time):
                let key = PeerKey(infoHash: infoHash, address: address)
                notePeer(Word(key: key, time: time, value: nil), of: entry, node)
            case .console(let update): note(update, node)
            default: break
            }
        }
    }

    private mutating func notePeer(_ word: Word<PeerKey, PeerImage>, of entry: Entry, _ node: Int) {
        own[node]?.changes.peers.noteMerged(word.key, at: word.time, word.value)
        if own[node]?.underWay == entry.header.ballot { own[node]?.changes.earlierPeers.append(word) }
    }

    private mutating func note(_ update: ConsoleUpdate, _ node: Int) {
        switch update {
        case .putAccount(let account): noteAccount(account.name, node)
        case .removeAccount(let name): noteAccount(name, node)
        case .mergeAccount(let account, let time):
            own[node]?.changes.accounts.noteMerged(account.name, at: time, account)
        case .mergeRemovedAccount(let name, let time): own[node]?.changes.accounts.noteMerged(name, at: time, nil)
        case .finishUpload(let head): own[node]?.changes.files.note(head.upload.infoHash)
        case .removeTorrentFile(let infoHash): own[node]?.changes.files.note(infoHash)
        case .mergeFile(let head, let time): own[node]?.changes.files.noteMerged(head.upload.infoHash, at: time, head)
        case .mergeRemovedFile(let infoHash, let time): own[node]?.changes.files.noteMerged(infoHash, at: time, nil)
        case .putSession, .removeSession, .expireSessions, .uploadPart, .dropUpload, .forgetUploads: break
        }
    }

    private mutating func noteAccount(_ name: [UInt8], _ node: Int) {
        own[node]?.changes.accounts.note(name)
        own[node]?.changes.hasAccounts = true
    }

    /// Looks at the state of a tracker that is asked for it, asks for another's, or has taken that in.
    mutating func look(
        _ state: ReplicatedState, _ step: borrowing Step, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        if MergeSides.isAsked(step, event, scene) { given[step.node] = state }
        if MergeSides.asks(effects), step.view.leads != nil {
            own[step.node] = Own(state: state, underWay: step.view.pending)
        }
        for case .merged(_, _, let leftOut) in effects.observations {
            let own = own[step.node]
            self.own[step.node] = nil
            // What there was no room for is said, and so is how much it was.
            if leftOut > 0, let own, MergeSides.hasRoom(state, scene.nodes[step.node].configuration.limits),
                MergeSides.hasRoom(own.state, scene.nodes[step.node].configuration.limits)
            {
                scene.violate(
                    .mergeTakesTheLatest, at: step.time,
                    "a merge at \(scene.name(step.node)) leaves out \(leftOut) updates, and there was room")
            }
            guard leftOut == 0, let own, let (source, life, answered) = Merges.source(of: effects, scene) else {
                continue
            }
            guard let other = given[source], other.position == answered else { continue }
            given[source] = nil
            let hasSwarms = !(hasEmptied[step.node] && leftInOrder.contains(life))
            judge(state, own, other, hasSwarms: hasSwarms, step, &scene)
        }
    }

    /// Whether nothing is near its bound; a merge may fill what announces may not.
    private static func hasRoom(_ state: ReplicatedState, _ limits: Limits) -> Bool {
        let counts = state.table.counts
        return counts.torrents < limits.torrents && counts.peers < min(limits.peers, limits.peersPerSwarm)
            && counts.peers < limits.peersPerAddress && state.registry.count < limits.registeredTorrents
            && state.files.byteCount < limits.torrentFilesByteCount / 2
            && state.accounts.count < Accounts.Bounds.accounts
    }

    // MARK: - Judging

    private mutating func judge(
        _ state: ReplicatedState, _ own: Own, _ other: ReplicatedState, hasSwarms: Bool, _ step: borrowing Step,
        _ scene: inout Scene
    ) {
        let (mine, theirs, left) = (SideWords(own.state), SideWords(other), SideWords(state))
        note(mine, theirs)
        let name = scene.name(step.node)
        let interval = scene.nodes[step.node].configuration.interval
        // Whoever was silent for so long may be gone.
        let oldest = Int64(state.time.seconds) - Int64(interval)
        MergeSides.check(left, mine, theirs, own.changes, hasSwarms: hasSwarms, since: oldest) { invariant, words in
            scene.violate(invariant, at: step.time, "after a merge at \(name), \(words)")
        }
        guard let one = try? own.state.merged(with: other), let two = try? other.merged(with: own.state) else {
            return scene.violate(.mergesCommute, at: step.time, "a chunk of one side of a merge cannot be read")
        }
        checkCommutes(SideWords(one), SideWords(two), mine, theirs, step, &scene)
    }

    private mutating func note(_ mine: SideWords, _ theirs: SideWords) {
        counts.judged += 1
        func meet<Key, Value>(_ one: [Word<Key, Value>], _ other: [Word<Key, Value>]) -> Bool {
            one.contains { $0.value != nil && !other.contains($0) }
                && other.contains { $0.value != nil && !one.contains($0) }
        }
        func areRemoved<Key, Value>(_ one: [Word<Key, Value>], _ other: [Word<Key, Value>]) -> Bool {
            one.contains { word in word.value == nil && other.contains { $0.key == word.key && $0.value != nil } }
        }
        if meet(mine.accounts, theirs.accounts) { counts.ofAccounts += 1 }
        if meet(mine.files, theirs.files) { counts.ofFiles += 1 }
        if meet(mine.peers, theirs.peers) { counts.ofPeers += 1 }
        if areRemoved(mine.accounts, theirs.accounts) || areRemoved(theirs.accounts, mine.accounts)
            || areRemoved(mine.files, theirs.files) || areRemoved(theirs.files, mine.files)
        {
            counts.ofRemovals += 1
        }
    }

    private static func check(
        _ left: SideWords, _ mine: SideWords, _ theirs: SideWords, _ changes: Changes, hasSwarms: Bool,
        since oldest: Int64, _ violate: (Invariant, String) -> Void
    ) {
        checkAccounts(left, mine, theirs, changes, violate)
        let files = SideWords.latest(mine.files, theirs.files)
        if let fault = SideWords.fault(left.files, of: files, isChanged: { changes.files.containsLater(than: $0) }) {
            violate(.mergeTakesTheLatest, "the torrent file \(fault.key) \(fault.words)")
        }
        for infoHash in mine.torrents + theirs.torrents
        where !left.torrents.contains(infoHash) && !changes.unregistered.contains(infoHash) {
            violate(.answeredSurvives, "the torrent \(infoHash) is registered no more")
        }
        if changes.hasEmptied || !hasSwarms { return }
        // What a merge before this one has said is known here, and counts by its time as what the sides knew does. Of
        // what the other side knows it is that side's own word that is to be here, not what this merge has made of it.
        // What was under way before is none of this merge: of two of the same second it may be the one that counts.
        let merged = changes.peers.merged.filter { word in
            changes.earlierPeers.contains(word)
                || !theirs.peers.contains { $0.key == word.key && !word.isLater(than: $0) }
        }
        let peers = SideWords.latest(mine.peers + merged, theirs.peers)
        let young = peers.filter { Int64($0.time) > oldest }
        let kept = left.peers.filter { word in Int64(word.time) > oldest || young.contains { $0.key == word.key } }
        if let fault = SideWords.fault(kept, of: young, isChanged: { changes.peers.contains($0.key) }) {
            violate(.mergeTakesTheLatest, "peer \(fault.key.address) of \(fault.key.infoHash) \(fault.words)")
        }
        for count in mine.counts + theirs.counts {
            let found = left.counts.first { $0.infoHash == count.infoHash && $0.origin == count.origin }?.count ?? 0
            if found < count.count {
                violate(
                    .answeredSurvives,
                    "tracker \(count.origin) has counted \(found) downloads of \(count.infoHash), and "
                        + "\(count.count) before")
            }
        }
    }

    /// The last admin stays one, and a passkey is one account's.
    private static func checkAccounts(
        _ left: SideWords, _ mine: SideWords, _ theirs: SideWords, _ changes: Changes,
        _ violate: (Invariant, String) -> Void
    ) {
        let said = mine.accounts + theirs.accounts + left.accounts
        let latest = SideWords.latest(mine.accounts, theirs.accounts)
        let admins = left.accounts.filter { $0.value?.role == .admin }.map { $0.key }
        // One that nobody wants to be an admin may be the last, or have been as the word came.
        let spared =
            admins.count > 1 && !changes.hasAccounts
            ? []
            : admins.filter { admin in latest.contains { $0.key == admin && $0.value?.role != .admin } }
        let fault = SideWords.fault(
            left.accounts, of: latest.filter { !spared.contains($0.key) },
            isChanged: { changes.accounts.containsLater(than: $0) || spared.contains($0.key) },
            isEqual: { $0.isSame(as: $1, whereClaimedTwice: said) })
        if let fault {
            let name = String(decoding: fault.key, as: UTF8.self)
            violate(.mergeTakesTheLatest, "the account \(name) \(fault.words)")
        }
    }

    /// Whichever side takes in the other, they come to the same.
    private func checkCommutes(
        _ one: SideWords, _ two: SideWords, _ mine: SideWords, _ theirs: SideWords, _ step: borrowing Step,
        _ scene: inout Scene
    ) {
        func differ<Element: Equatable>(_ left: [Element], _ right: [Element]) -> Bool {
            left.count != right.count || left.contains { !right.contains($0) }
        }
        let said = mine.accounts + theirs.accounts
        // Which admin is the last, and who keeps a passkey, is up to who takes in the other.
        let hasAdmin = SideWords.latest(mine.accounts, theirs.accounts).contains { $0.value?.role == .admin }
        let claims = said.contains { word in word.value.map { $0.isClaimedTwice(in: said) } ?? false }
        let areFree = !claims && (hasAdmin || !said.contains { $0.value?.role == .admin })
        var differing: String?
        if areFree, differ(one.accounts, two.accounts) { differing = "accounts" }
        if differ(one.files, two.files) { differing = "torrent files" }
        if differ(one.torrents, two.torrents) { differing = "registered torrents" }
        if differ(one.peers, two.peers) { differing = "peers" }
        if differ(one.counts, two.counts) { differing = "counts of downloads" }
        guard let differing else { return }
        scene.violate(
            .mergesCommute, at: step.time,
            "what \(scene.name(step.node)) merges comes to other \(differing) if the other side merges it")
    }
}

extension Account {
    /// Whether more than one account of some sides has the passkey of this one.
    fileprivate func isClaimedTwice(in said: [Word<[UInt8], Account>]) -> Bool {
        guard let passkey else { return false }
        return said.contains { $0.key != name && $0.value?.passkey == passkey }
    }

    /// Whether another is the same, but for a passkey that two have been given.
    fileprivate func isSame(as other: Account, whereClaimedTwice said: [Word<[UInt8], Account>]) -> Bool {
        if self == other { return true }
        guard isClaimedTwice(in: said) || other.isClaimedTwice(in: said) else { return false }
        var account = self
        account.passkey = other.passkey
        return account == other
    }
}

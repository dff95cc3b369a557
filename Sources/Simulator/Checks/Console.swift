// What people keep at the console is kept, whole, and within bounds.

import Primitives
import TrackerLogic
import Wire

/// What people keep at the console: each change that somebody was told is done is in the log and follows what he knew,
/// no torrent file is seen in pieces, what came from files goes with them and takes nobody's upload along, an admin
/// stays, a session has an account, and what is broken off leaves nothing.
struct Console: Sendable {
    /// So long after its patience a broken upload may still be there: the sweep of the master comes round, and cluster
    /// time may go an eighth slower than the world's.
    private static let sweepTime: UInt32 = 12

    /// Whether each tracker had an admin when it was last looked at.
    private var hadAdmin: [Bool]

    init(nodeCount: Int) {
        hadAdmin = Array(repeating: false, count: nodeCount)
        times = Array(repeating: [], count: nodeCount)
        wholeFiles = Array(repeating: [], count: nodeCount)
    }

    /// By tracker, the latest time of change of each account that it has had.
    private var times: [[(name: [UInt8], time: UInt32)]]
    /// By tracker, the torrent files that were whole when it was last looked at.
    private var wholeFiles: [[TrackerLogic.TorrentFile]]

    /// A tracker holds what it has not made of what it held before: a life begins, or a state was fetched.
    mutating func holds(_ accounts: Accounts, _ node: Int) {
        hadAdmin[node] = accounts.adminCount > 0
        times[node] = accounts.all.map { ($0.account.name, $0.changedTime) }
    }

    /// Where sides may be merged, by the times of their changes, each change has a time behind that of the one before
    /// it, if by a second of no clock.
    mutating func checkTimes(
        _ accounts: Accounts, after entries: [Entry], _ node: Int, at time: Instant, _ scene: inout Scene
    ) {
        var (put, merged): ([[UInt8]], [[UInt8]]) = ([], [])
        for entry in entries {
            var cursor = UpdateCursor(entry.header)
            while let update = try? cursor.next(entry.bytes) {
                guard case .console(let update) = update else { continue }
                switch update {
                case .putAccount(let account): put.append(account.name)
                case .mergeAccount(let account, _): merged.append(account.name)
                case .mergeRemovedAccount(let name, _): merged.append(name)
                case .removeAccount, .putSession, .removeSession, .expireSessions, .uploadPart, .finishUpload,
                    .mergeFile, .dropUpload, .forgetUploads, .removeTorrentFile, .mergeRemovedFile:
                    break
                }
            }
        }
        for kept in accounts.all {
            let (name, changed) = (kept.account.name, kept.changedTime)
            guard let place = times[node].firstIndex(where: { $0.name == name }) else {
                times[node].append((name, changed))
                continue
            }
            let before = times[node][place].time
            times[node][place].time = changed
            guard changed <= before, put.contains(name), !merged.contains(name),
                entries.contains(where: { $0.header.index == kept.changedAt })
            else { continue }
            scene.violate(
                .mergeTakesTheLatest, at: time,
                "\(scene.name(node)) changes the account \(name.text) at \(changed) s, and it was changed at "
                    + "\(before) s before")
        }
    }

    /// Somebody was told what became of his change.
    ///
    /// In survivor mode another side of a partition may have told something else, and what is merged has other entries.
    func ended(_ change: ConsoleChange, _ outcome: ChangeOutcome, node: Int, at time: Instant, _ scene: inout Scene) {
        guard scene.promises.hasOneHistory, case .done(let index) = outcome else { return }
        switch scene.console.objection(to: change, doneAt: index) {
        case nil: break
        case .undecided(let why):
            scene.violate(
                .changesAreDecided, at: time, "\(scene.name(node)) tells that it is done, to \(change.words): \(why)")
        case .unexpected(let why):
            scene.violate(
                .changesFollow, at: time, "\(scene.name(node)) tells that it is done, to \(change.words): \(why)")
        }
    }

    /// What a state promises by itself, whatever led to it.
    mutating func check(_ state: ReplicatedState, _ node: Int, at time: Instant, _ scene: inout Scene) {
        checkFiles(state.files, node, at: time, &scene)
        // A merge may bring a file while what the operator says takes its torrent away.
        let isOneHistory = scene.promises.hasOneHistory
        state.files.forEach { file in
            guard isOneHistory, file.head.origin == .file, state.registry.find(file.infoHash) == nil else { return }
            scene.violate(
                .filesAreRegistered, at: time,
                "\(scene.name(node)) keeps the torrent file \(file.infoHash), and files have it no more")
        }
        let accounts = state.accounts.all
        let admins = accounts.count { $0.account.role == .admin }
        // The first account of each history is an admin's, and people make no other before it is there.
        if scene.promises.hasOneHistory, !accounts.isEmpty, admins == 0 {
            scene.violate(.adminStays, at: time, "\(scene.name(node)) has \(accounts.count) accounts, and no admin")
        } else if hadAdmin[node], admins == 0 {
            scene.violate(.adminStays, at: time, "\(scene.name(node)) had an admin, and has none")
        }
        hadAdmin[node] = admins > 0
        if admins != state.accounts.adminCount {
            scene.violate(.adminStays, at: time, "\(scene.name(node)) counts admins that are not there")
        }
        for kept in state.accounts.allSessions {
            let account = accounts.first { $0.account.name == kept.session.account }
            guard let account, account.passwordAt <= kept.createdAt else {
                let name = String(decoding: kept.session.account, as: UTF8.self)
                scene.violate(
                    .sessionsHaveAccounts, at: time,
                    "\(scene.name(node)) has a session of \(name), which is gone or has another password since")
                continue
            }
        }
    }

    /// What came from files is in force as it was commanded, when that is told; a merge may bring more.
    func check(
        _ state: ReplicatedState, _ commanded: [FileTorrent], _ node: Int, at time: Instant, _ scene: inout Scene
    ) {
        guard scene.promises.hasOneHistory else { return }
        let isSame =
            state.registry.count == commanded.count
            && commanded.allSatisfy { state.registry.find($0.torrent.infoHash) == $0.torrent }
        if !isSame {
            scene.violate(
                .filesAreRegistered, at: time,
                "\(scene.name(node)) has \(state.registry.count) torrents registered, and was commanded others")
        }
        state.files.forEach { file in
            guard file.head.origin == .file,
                !commanded.contains(where: { $0.isKept && $0.torrent.infoHash == file.infoHash })
            else { return }
            scene.violate(
                .filesAreRegistered, at: time,
                "\(scene.name(node)) keeps the torrent file \(file.infoHash), which it was commanded to keep no more")
        }
    }

    /// The accounts of files are in force as they were commanded, when that is told; one of the console's wins.
    func check(
        _ accounts: Accounts, _ commanded: [Account], leftOut: Int, _ node: Int, at time: Instant, _ scene: inout Scene
    ) {
        guard scene.promises.hasOneHistory else { return }
        for (place, wanted) in commanded.enumerated() {
            guard commanded.firstIndex(where: { $0.name == wanted.name }) == place else { continue }
            guard var kept = accounts.find(wanted.name)?.account else {
                violate("no account \(wanted.name.text), which files have", node, at: time, &scene)
                continue
            }
            // The passkey is given at the console, whoever made the account.
            kept.passkey = wanted.passkey
            if kept.origin == .file, kept != wanted {
                violate("another account \(wanted.name.text) than files have", node, at: time, &scene)
            }
        }
        for kept in accounts.all where kept.account.origin == .file {
            guard !commanded.contains(where: { $0.name == kept.account.name }) else { continue }
            violate("the account \(kept.account.name.text), which files have no more", node, at: time, &scene)
        }
        let ofConsole = commanded.count { accounts.find($0.name)?.account.origin == .console }
        if ofConsole != leftOut {
            violate(
                "\(ofConsole) accounts of the console in their place, and tells of \(leftOut)", node, at: time, &scene)
        }
    }

    private func violate(_ words: String, _ node: Int, at time: Instant, _ scene: inout Scene) {
        scene.violate(.filesAreRegistered, at: time, "\(scene.name(node)) has \(words)")
    }

    private mutating func checkFiles(_ files: TorrentFiles, _ node: Int, at time: Instant, _ scene: inout Scene) {
        let uploads = files.uploads
        var byteCount = uploads.reduce(0) { $0 + Int($1.byteCount) }
        var whole: [TrackerLogic.TorrentFile] = []
        files.forEach { file in
            byteCount += file.parts.reduce(0) { $0 + $1.count }
            // Most are as they were, in the same places of memory.
            if wholeFiles[node].contains(file) { return whole.append(file) }
            let bytes = file.bytes
            if bytes.count == Int(file.head.byteCount), SimulatedFile.hash(bytes) == file.head.sha256 {
                return whole.append(file)
            }
            scene.violate(
                .torrentFilesAreWhole, at: time,
                "\(scene.name(node)) shows torrent file \(file.infoHash) with other bytes than were uploaded")
        }
        wholeFiles[node] = whole
        if byteCount != files.byteCount || uploads.count != files.uploadCount {
            scene.violate(
                .queuesAreBounded, at: time,
                "\(scene.name(node)) holds \(byteCount) bytes of torrent files, and counts \(files.byteCount)")
        }
        let limits = scene.nodes[node].configuration.limits
        if scene.promises.hasOneHistory, uploads.count > limits.uploads || byteCount > limits.torrentFilesByteCount {
            scene.violate(
                .queuesAreBounded, at: time,
                "\(scene.name(node)) holds \(uploads.count) uploads, and \(byteCount) bytes of torrent files")
        }
    }

    /// The run is over: of what was broken off long ago nothing is left.
    mutating func finish(_ state: ReplicatedState, _ node: Int, at time: Instant, _ scene: inout Scene) {
        check(state, node, at: time, &scene)
        let patience = scene.nodes[node].configuration.uploadPatience + Console.sweepTime
        let now = state.time.seconds
        for upload in state.files.uploads where now > patience && upload.lastPartAt < now - patience {
            scene.violate(
                .uploadsAreForgotten, at: time,
                "\(scene.name(node)) keeps \(upload.parts.count) parts of \(upload.id.infoHash), and none has come for "
                    + "\(now - upload.lastPartAt) s")
        }
    }
}

extension [UInt8] {
    /// A name, for people.
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}

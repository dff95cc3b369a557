// What people want at the console, on its way into the log and back.

import Primitives
import Wire

/// What people want at the console: judged by the master, brought into the log one with each entry, and told about.
///
///     waiting ── its turn ──► judged ── needs no update ────────────────────────► told: done, outdated, refused …
///                               └── its update ──► in an entry ── applied ──► judged again ──► told
///
/// So an entry has one part of a torrent file at most, beside all that clients announce, and nobody waits behind an
/// upload for more than the time that 16 KiB take. Whoever has heard nothing asks again, this master or the next: what
/// is there already is done.
extension TrackerNode {
    /// Takes up a change when all that goes before it is applied.
    mutating func begin(_ change: ConsoleChange, _ number: UInt64, _ effects: inout Effects) {
        switch state.judge(change, configuration.limits) {
        case .settled(let outcome): effects.observations.append(.changeEnded(number: number, outcome))
        case .update(let update):
            commandUnderWay = .change(number: number, change)
            backlog = [.console(update)]
            if has(.changeToldEarly) { effects.observations.append(.changeEnded(number: number, .done(at: 0))) }
        }
    }

    /// What is over by the cluster's time: sessions that have expired, uploads that nobody goes on with.
    func consoleExpiries(at time: UInt32) -> [Update] {
        var updates: [Update] = []
        if state.accounts.hasExpired(at: time) { updates.append(.console(.expireSessions(through: time))) }
        let patience = configuration.uploadPatience
        guard time > patience, !has(.uploadsKept) else { return updates }
        for chunk in state.files.idleChunks(since: time - patience) {
            updates.append(.console(.forgetUploads(chunk: UInt32(chunk), idleSince: time - patience)))
        }
        return updates
    }

    /// The chunks that an orderly stop leaves, where the swarms go with it.
    var chunksWithoutSwarms: [SnapshotChunk] {
        var chunks = [state.chunk(0)]
        guard !has(.filesStopWithSwarms) else { return chunks }
        for (number, chunk) in state.files.chunks.enumerated() where !chunk.isEmpty {
            chunks.append(state.chunk(state.firstFileChunk + number))
        }
        return chunks
    }
}

extension Update {
    /// Whether it is a part of a torrent file, of which an entry has one at most.
    var isUploadPart: Bool { if case .console(.uploadPart) = self { true } else { false } }
}

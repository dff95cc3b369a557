// Files that another program has written to.

import PeerLogic
import Primitives
import Wire

extension Transfer {
    /// Files that another program has written to, which are hashed again one after another.
    ///
    /// What is asked of them waits meanwhile: it would be wrong to give it, and premature to say that it is gone.
    struct Suspects {
        /// The first is being looked at.
        var files: [Int] = []
        var held: [(link: LinkID, block: Block)] = []
        var run: CheckRun?
        /// Runs so far, so that one that was given up is known by its number.
        var runCount = 0
    }

    /// Whether a block waits, with all others of a piece that lies in a suspect file.
    func holds(_ block: Block, on link: LinkID) -> Bool {
        guard !suspects.files.isEmpty, let store else { return false }
        let files = store.files(ofPiece: Int(block.piece))
        guard suspects.files.contains(where: files.contains) else { return false }
        suspects.held.append((link, block))
        return true
    }

    /// Somebody does not want a block any more.
    ///
    /// - Returns: whether it has waited.
    func letGo(_ block: Block, on link: LinkID) -> Bool {
        guard let place = suspects.held.firstIndex(where: { $0.link == link && $0.block == block }) else {
            return false
        }
        suspects.held.remove(at: place)
        return true
    }

    /// Another program has written to a file that a block was to be read from.
    func suspect(_ file: Int, asked block: Block, on link: LinkID) {
        guard let store else { return }
        suspects.held.append((link, block))
        suspects.files.append(file)
        loop.tell(.fileChanged(id, path: store.shownPath(file)))
        if suspects.run == nil { lookAgain() }
    }

    private func lookAgain() {
        guard let file = suspects.files.first, let content, let store, let have = session.have else { return }
        // From before its bytes are looked at.
        store.remember(file)
        let pieces = store.pieces(ofFile: file).filter { have[$0] }
        suspects.runCount += 1
        let (inbox, id, number) = (loop.inbox, id, suspects.runCount)
        let run = CheckRun(
            content.info, store, pieces: pieces, known: Bitfield(count: have.count), workers: loop.hasherCount
        ) { right in
            guard let right else { return }
            inbox.post { loop in loop.transfers[id]?.looked(number, pieces, right) }
        }
        suspects.run = run
        run.start(on: loop.hashers)
    }

    /// What another program has written is not ours to write over: only whoever wants it has it fetched anew.
    private func looked(_ number: Int, _ pieces: [Int], _ right: Bitfield) {
        guard suspects.run != nil, suspects.runCount == number, let store, let have = session.have else { return }
        suspects.run = nil
        let file = suspects.files.removeFirst()
        let wrong = pieces.filter { !right[$0] && have[$0] }
        if !wrong.isEmpty, !options.isSeedOnly {
            // Whoever goes on is not to take them for right.
            for piece in wrong { disown(piece) }
            let words = wrong.count == 1 ? "one piece is" : "\(wrong.count) pieces are"
            return fail(
                "another program has changed \(store.shownPath(file)), and \(words) no longer right; put the file "
                    + "back, or go on to have them fetched anew")
        }
        for piece in wrong { lost(piece) }
        unrecorded += pieces.filter { right[$0] }
        loop.tell(.checked(id, have: session.have?.setCount ?? 0, of: have.count))
        let held = suspects.held
        suspects.held = []
        for (link, block) in held { send(block, on: link) }
        if suspects.run == nil { lookAgain() }
    }

    /// Nobody waits for an answer any more; the next start hashes what has changed.
    func forgetSuspects() {
        suspects.run?.cancel()
        suspects = Suspects(runCount: suspects.runCount)
    }
}

// People at consoles, and what they are told.

import Primitives
import TrackerLogic
import Wire

/// People at consoles, and what they are told.
extension World {
    /// Who has heard nothing for so long asks again.
    private static let stewardPatience = Duration.milliseconds(1500)
    /// Who has asked for so long gives up.
    private static let stewardEndurance = Duration.seconds(25)

    mutating func stewardActs(_ number: Int) {
        guard !isHealed || clientsWokenAt != nil else { return }
        guard let node = console(of: number) else { return think(number, .milliseconds(300)) }
        if stewards[number].wish == nil {
            guard clientsWokenAt == nil, let state = nodes[node].state,
                let wish = stewards[number].draw(state, stewardTorrents, directory, clients: options.clientCount)
            else {
                if clientsWokenAt == nil { readDirectory(number, at: node) }
                return think(number, .milliseconds(500))
            }
            stewards[number].wish = wish
            stewards[number].wishedAt = now
            stewards[number].firstQuestion = stewards[number].question + 1
            // What he has seen may have changed when he asks.
            let isOfUpload = stewards[number].upload != nil
            if !isOfUpload, stewards[number].random.oneIn(2) { return think(number, .milliseconds(400)) }
        }
        ask(number, at: node)
    }

    private mutating func ask(_ number: Int, at node: Int) {
        guard let wish = stewards[number].wish else { return }
        if clientsWokenAt == nil, now - stewards[number].wishedAt > World.stewardEndurance {
            // Nobody knows what becomes of it.
            (stewards[number].wish, stewards[number].upload) = (nil, nil)
            return think(number, .seconds(1))
        }
        let question = stewards[number].nextQuestion(for: wish)
        queue.put(.stewardWaits(number, question: question), at: now + World.stewardPatience)
        checks.changeAsked(wish)
        step(node, .commandReceived(.change(number: question, wish)))
        if options.hasHastyStewards, let name = wish.account { hurry(number, name, at: node) }
        // The last parts and the end of a hasty upload come at once, whatever becomes of each.
        while stewards[number].isHasty, stewards[number].wish == wish, let upload = stewards[number].upload,
            nodes[node].isUp
        {
            stewards[number].upload?.next = upload.next + 1
            let last = UploadPart(upload.next + 1, of: upload.file.bytes, upload.file.head.upload)
            let change = last.map { ConsoleChange.uploadPart($0) } ?? stewards[number].finish(upload.file)
            let question = stewards[number].nextQuestion(for: change)
            step(node, .commandReceived(.change(number: question, change)))
            if last == nil {
                stewards[number].isHasty = false
                guard stewards[number].wish == wish else { return }
                stewards[number].wish = change
                stewards[number].firstQuestion = stewards[number].question
            }
        }
    }

    /// Now and then several things are wanted of one account at once; only of the last it matters what becomes of it.
    private mutating func hurry(_ number: Int, _ name: [UInt8], at node: Int) {
        guard clientsWokenAt == nil, stewards[number].random.oneIn(6) else { return }
        for _ in 0...stewards[number].random.below(2) {
            // Nobody makes another account before there is an admin.
            guard nodes[node].isUp, let state = nodes[node].state, state.accounts.adminCount > 0 else {
                return
            }
            let change = stewards[number].another(state.accounts, name)
            stewards[number].wish = change
            let question = stewards[number].nextQuestion(for: change)
            stewards[number].firstQuestion = question
            queue.put(.stewardWaits(number, question: question), at: now + World.stewardPatience)
            checks.changeAsked(change)
            step(node, .commandReceived(.change(number: question, change)))
            // What was told at once is another matter already.
            guard stewards[number].wish == change else { return }
        }
    }

    /// Now and then the operator changes something in his directory, and has a tracker read it.
    private mutating func readDirectory(_ number: Int, at node: Int) {
        guard stewards[number].upload == nil, stewards[number].random.oneIn(3) else { return }
        if options.hasFileAccounts, stewards[number].random.oneIn(2), let state = nodes[node].state {
            fileAccounts = stewards[number].changed(fileAccounts, state)
            return step(node, .commandReceived(.setFileAccounts(fileAccounts)))
        }
        directory = stewards[number].changed(directory, stewardTorrents)
        step(node, .commandReceived(.setFileTorrents(fileTorrents)))
    }

    /// A tracker says that the accounts of the operator's files are in force, but for some that the console has others
    /// in the place of.
    mutating func checkFileAccounts(_ node: Int, leftOut: Int) {
        guard let accounts = commandedAccounts[node], let state = nodes[node].state else { return }
        checks.checkAccounts(state.accounts, accounts, leftOut: leftOut, node, at: now)
    }

    /// Nobody has said what became of a question: it is asked once more.
    mutating func stewardWaits(_ number: Int, _ question: UInt64) {
        guard stewards[number].wish != nil, stewards[number].question == question else { return }
        stewardActs(number)
    }

    /// A tracker says what became of a change.
    mutating func stewardHears(_ node: Int, _ question: UInt64, _ outcome: ChangeOutcome) {
        let number = Int(question >> 32)
        checkVerdict(node, question, outcome)
        guard stewards.indices.contains(number), let wish = stewards[number].wish,
            question >= stewards[number].firstQuestion
        else { return }
        // Of an earlier question only what is certain counts.
        let isCertain = if case .done = outcome { true } else { false }
        guard isCertain || question == stewards[number].question else { return }
        checks.changeEnded(wish, outcome, node: node, at: now)
        switch outcome {
        case .done:
            tally.changes += 1
            if case .putSession(let session, _) = wish { stewards[number].sessions.append(session.key) }
            goOn(number, after: wish)
        case .partWanted(let part):
            stewards[number].wish = nil
            stewards[number].upload?.next = part
            think(number, .milliseconds(50))
        case .outdated, .refused:
            tally.changesRefused += 1
            (stewards[number].wish, stewards[number].upload) = (nil, nil)
            think(number, .seconds(1))
        case .dropped:
            // Of another tracker, in a moment.
            let pause = stewards[number].random.between(.milliseconds(50), .milliseconds(600))
            queue.put(.stewardWaits(number, question: question), at: now + pause)
        }
    }

    /// Somebody was told why nothing has become of what he wanted.
    private mutating func checkVerdict(_ node: Int, _ question: UInt64, _ outcome: ChangeOutcome) {
        let number = Int(question >> 32)
        guard stewards.indices.contains(number), let change = stewards[number].wanted(by: question),
            let state = nodes[node].state,
            let fault = ConsoleVerdicts.fault(in: outcome, to: change, state, nodes[node].configuration.limits)
        else { return }
        violate(.changesAreJudged, "\(trace.names[node]), asked \(change.words): \(fault)")
    }

    /// What was wanted is done: the next part follows at once, and all else in a while.
    private mutating func goOn(_ number: Int, after wish: ConsoleChange) {
        stewards[number].wish = nil
        switch wish {
        case .uploadPart(let part):
            // Now and then nobody sends the rest.
            if stewards[number].random.oneIn(12) {
                stewards[number].upload = nil
                return think(number, .seconds(2))
            }
            stewards[number].upload?.next = part.number + 1
            think(number, .milliseconds(20))
        case .finishUpload:
            tally.filesShown += 1
            stewards[number].upload = nil
            think(number, .seconds(2))
        case .putAccount, .removeAccount, .putSession, .removeSession, .dropUpload, .removeTorrentFile:
            think(number, .seconds(2))
        }
    }

    private mutating func think(_ number: Int, _ most: Duration) {
        guard clientsWokenAt == nil else { return }
        queue.put(.stewardActs(number), at: now + stewards[number].random.between(.milliseconds(1), most))
    }

    /// The tracker that somebody asks: one that says that it is master, or now and then any other that is up.
    private mutating func console(of number: Int) -> Int? {
        let up = nodes.indices.filter { nodes[$0].isUp && nodes[$0].heldUntil <= now && !nodes[$0].isStopping }
        let masters = up.filter { connectivity[$0].isMaster }
        let asked = masters.isEmpty || stewards[number].random.oneIn(10) ? up : masters
        return asked.isEmpty ? nil : asked[stewards[number].random.below(asked.count)]
    }

    // MARK: - When all is well again

    /// Everybody at a console makes an admin of his own.
    mutating func wakeStewards() {
        for number in stewards.indices {
            let name = Array("last \(number)".utf8)
            stewards[number].upload = nil
            stewards[number].isHasty = false
            stewards[number].wish = .putAccount(Account(name: name, role: .admin, origin: .console), expected: .any)
            stewards[number].wishedAt = now
            stewards[number].firstQuestion = stewards[number].question + 1
            stewardActs(number)
        }
    }

    /// Whoever has asked at a console when all was well has been told that it is done.
    mutating func checkStewards() {
        for steward in stewards where steward.wish != nil {
            violate(
                .healedIsAnswered,
                "somebody has waited at a console for \((now - steward.wishedAt).wholeMilliseconds) ms")
        }
    }
}

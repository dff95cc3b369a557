// Accounts and sessions: what may be changed, by whom believed what, and what is promised whatever is asked.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Accounts")
struct AccountTests {
    private static let start = UInt32(NodeHarness.wallStart / 1000)

    private func harness(_ accounts: Account...) throws -> NodeHarness {
        var harness = NodeHarness()
        for account in accounts { try harness.done(.putAccount(account, expected: .nothing)) }
        return harness
    }

    private func name(_ text: String) -> [UInt8] { [UInt8](ascii: text) }

    // MARK: - Accounts

    @Test func `an account is there when its entry is applied, and tells which one that was`() throws {
        var harness = NodeHarness()
        harness.step(.commandReceived(.change(number: 7, .putAccount(.test("ada", .admin), expected: .nothing))))
        #expect(harness.node.state.accounts.count == 0)
        _ = harness.takeObservations()
        harness.completeWrites()
        let index = harness.node.state.index
        #expect(harness.observations == [.changeEnded(number: 7, .done(at: index))])
        let kept = try #require(harness.node.state.accounts.find(name("ada")))
        #expect(kept.account == .test("ada", .admin))
        #expect(kept.changedAt == index)
        #expect(kept.passwordAt == index)
    }

    @Test func `what is there already as it is wanted is done, and decided once more without a change`() throws {
        var harness = try harness(.test("ada", .admin))
        let digest = harness.node.state.digest
        // As by somebody who has not heard what became of it.
        let index = try harness.done(.putAccount(.test("ada", .admin), expected: .nothing))
        #expect(index == harness.node.state.accounts.find(name("ada"))?.changedAt)
        #expect(
            harness.change(.removeAccount(name: name("eve"), expected: .asOf(3))) == .done(at: harness.node.state.index)
        )
        #expect(harness.change(.removeSession(.numbered(1))) == .done(at: harness.node.state.index))
        #expect(harness.node.state.digest == digest)
        #expect(harness.node.state.index > index)
    }

    /// Whoever is on a tracker's machine makes the first account, and may not know that another one was made since.
    @Test func `whoever believes that there are no accounts makes the first one, and no other`() throws {
        var harness = try harness()
        let first = ConsoleChange.putAccount(.test("ada", .admin), expected: .noAccounts)
        let index = try harness.done(first)
        #expect(try harness.done(first) == index, "who asks again has made it")
        let digest = harness.node.state.digest
        for other in [Account.test("eve", .admin), .test("ada", .operator)] {
            guard case .refused = harness.change(.putAccount(other, expected: .noAccounts)) else {
                Issue.record("\(other) is made")
                continue
            }
        }
        #expect(harness.node.state.digest == digest)
    }

    @Test func `who believes something else of an account hears what is there, and changes nothing`() throws {
        var harness = try harness(.test("ada", .admin), .test("bob"))
        let index = try #require(harness.node.state.accounts.find(name("bob"))?.changedAt)
        let digest = harness.node.state.digest
        #expect(harness.change(.putAccount(.test("bob", .operator), expected: .nothing)) == .outdated(at: index))
        #expect(
            harness.change(.putAccount(.test("bob", .operator), expected: .asOf(index - 1))) == .outdated(at: index))
        #expect(harness.change(.putAccount(.test("eve"), expected: .asOf(index))) == .outdated(at: 0))
        #expect(harness.change(.removeAccount(name: name("bob"), expected: .asOf(1))) == .outdated(at: index))
        #expect(harness.node.state.digest == digest)
        let later = try harness.done(.putAccount(.test("bob", .operator), expected: .asOf(index)))
        #expect(later > index)
        #expect(harness.node.state.accounts.find(name("bob"))?.account.role == .operator)
        try harness.done(.removeAccount(name: name("bob"), expected: .asOf(later)))
        #expect(harness.node.state.accounts.find(name("bob")) == nil)
    }

    @Test func `the last admin stays one, and who makes another may go`() throws {
        var harness = try harness(.test("ada", .admin), .test("bob", .operator))
        for change: ConsoleChange in [
            .removeAccount(name: name("ada"), expected: .any), .putAccount(.test("ada", .operator), expected: .any),
        ] {
            #expect(harness.change(change) == .refused("ada is the last admin: make another one first"))
        }
        try harness.done(.putAccount(.test("bob", .admin), expected: .any))
        try harness.done(.putAccount(.test("ada", .viewer), expected: .any))
        #expect(
            harness.change(.removeAccount(name: name("bob"), expected: .any)) != .done(at: harness.node.state.index))
        #expect(harness.node.state.accounts.adminCount == 1)
        // A new password of the last admin is no loss.
        try harness.done(.putAccount(.test("bob", .admin, password: 2), expected: .any))
    }

    @Test func `whatever the log says, there is an admin where there was one`() throws {
        var state = ReplicatedState(secret: NodeHarness.secret, shardCount: 8)
        try state.apply([.console(.putAccount(.test("ada", .admin))), .console(.putAccount(.test("bob")))], at: 100)
        try state.apply(
            [
                .console(.removeAccount(name: name("ada"))), .console(.putAccount(.test("ada", .viewer))),
                .console(.mergeRemovedAccount(name: name("ada"), at: 200)),
                .console(.mergeAccount(.test("ada", .viewer), at: 200)),
            ], at: 101)
        #expect(state.accounts.find(name("ada"))?.account.role == .admin)
    }

    @Test func `accounts are bounded, and a known one may still be changed`() throws {
        var harness = try harness(.test("ada", .admin))
        var updates: [Update] = []
        for number in 0..<Accounts.Bounds.accounts + 10 {
            updates.append(.console(.putAccount(.test("user \(number)"))))
        }
        var state = harness.node.state
        try state.apply(updates, at: Self.start)
        #expect(state.accounts.count == Accounts.Bounds.accounts)
        let accounts = (0..<Accounts.Bounds.accounts - 1).map { Account.test("user \($0)", origin: .file) }
        harness.step(.commandReceived(.setFileAccounts(accounts)))
        harness.completeWrites()
        #expect(harness.node.state.accounts.count == Accounts.Bounds.accounts)
        #expect(
            harness.change(.putAccount(.test("eve"), expected: .any))
                == .refused("there are \(Accounts.Bounds.accounts) accounts already"))
        try harness.done(.putAccount(.test("ada", .admin, password: 2), expected: .any))
    }

    // MARK: - Sessions

    @Test func `a session is its account's until it expires by the cluster's time, and goes with an entry then`() throws
    {
        var harness = try harness(.test("ada", .admin))
        let session = Session.test(1, of: "ada", expires: Self.start + 100)
        let index = try harness.done(.putSession(session, expected: .any))
        let accounts = harness.node.state.accounts
        #expect(accounts.holder(of: .numbered(1), at: Self.start + 99)?.account.name == name("ada"))
        #expect(accounts.holder(of: .numbered(1), at: Self.start + 100) == nil)
        #expect(accounts.holder(of: .numbered(2), at: Self.start) == nil)
        #expect(accounts.session(.numbered(1)) == KeptSession(session: session, createdAt: index))
        harness.run(.seconds(90))
        #expect(harness.node.state.accounts.sessionCount == 1)
        let entries = harness.node.state.index
        harness.run(.seconds(20))
        #expect(harness.node.state.accounts.sessionCount == 0)
        #expect(harness.node.state.index == entries + 1, "one entry, and none while nothing expires")
    }

    @Test func `a session of nobody, of another account than believed, or of the past is refused`() throws {
        var harness = try harness(.test("ada", .admin), .test("bob"))
        let index = try #require(harness.node.state.accounts.find(name("bob"))?.changedAt)
        #expect(
            harness.change(.putSession(.test(1, of: "eve"), expected: .any)) == .refused("there is no account eve"))
        #expect(harness.change(.putSession(.test(1, of: "bob"), expected: .asOf(1))) == .outdated(at: index))
        #expect(
            harness.change(.putSession(.test(1, of: "bob", expires: 5), expected: .any))
                == .refused("the session has expired already"))
        #expect(harness.node.state.accounts.sessionCount == 0)
        try harness.done(.putSession(.test(1, of: "bob"), expected: .asOf(index)))
    }

    @Test func `a removed account, or another password, ends its sessions, and another role does not`() throws {
        var harness = try harness(.test("ada", .admin), .test("bob"), .test("eve"))
        for (number, account) in ["ada", "bob", "bob", "eve"].enumerated() {
            try harness.done(.putSession(.test(number, of: account, isToken: number == 2), expected: .any))
        }
        try harness.done(.putAccount(.test("bob", .operator), expected: .any))
        #expect(harness.node.state.accounts.sessions(of: name("bob")).count == 2)
        try harness.done(.putAccount(.test("bob", .operator, password: 2), expected: .any))
        #expect(harness.node.state.accounts.sessions(of: name("bob")).isEmpty)
        try harness.done(.removeAccount(name: name("eve"), expected: .any))
        #expect(harness.node.state.accounts.allSessions.map(\.session.account) == [name("ada")])
        try harness.done(.removeSession(.numbered(0)))
        #expect(harness.node.state.accounts.sessionCount == 0)
    }

    @Test func `of too many sessions of an account the oldest goes, a token last`() throws {
        var harness = try harness(.test("ada", .admin), .test("bob"))
        try harness.done(.putSession(.test(9999, of: "bob"), expected: .any))
        try harness.done(.putSession(.test(0, of: "ada", isToken: true), expected: .any))
        for number in 1...Accounts.Bounds.sessionsPerAccount {
            try harness.done(.putSession(.test(number, of: "ada"), expected: .any))
        }
        let accounts = harness.node.state.accounts
        #expect(accounts.sessions(of: name("ada")).count == Accounts.Bounds.sessionsPerAccount)
        #expect(accounts.session(.numbered(0)) != nil)
        #expect(accounts.session(.numbered(1)) == nil)
        #expect(accounts.session(.numbered(2)) != nil)
        #expect(accounts.session(.numbered(9999)) != nil, "nobody pushes out another")
        for number in 100..<100 + Accounts.Bounds.sessionsPerAccount - 1 {
            try harness.done(.putSession(.test(number, of: "ada", isToken: true), expected: .any))
        }
        #expect(
            harness.change(.putSession(.test(500, of: "ada", isToken: true), expected: .any))
                == .refused("the account has \(Accounts.Bounds.sessionsPerAccount) tokens already: remove one first"))
    }

    @Test func `sessions of all accounts are bounded, and the oldest goes`() throws {
        var state = ReplicatedState(secret: NodeHarness.secret, shardCount: 8)
        let accounts = Accounts.Bounds.sessions / Accounts.Bounds.sessionsPerAccount + 2
        try state.apply((0..<accounts).map { .console(.putAccount(.test("\($0)"))) }, at: 100)
        var number = 0
        for account in 0..<accounts {
            var updates: [Update] = []
            for _ in 0..<Accounts.Bounds.sessionsPerAccount {
                updates.append(.console(.putSession(.test(number, of: "\(account)"))))
                number += 1
            }
            try state.apply(updates, at: 100)
        }
        #expect(state.accounts.sessionCount == Accounts.Bounds.sessions)
        #expect(state.accounts.session(.numbered(0)) == nil)
        #expect(state.accounts.session(.numbered(number - Accounts.Bounds.sessions)) != nil)
        #expect(state.accounts.session(.numbered(number - Accounts.Bounds.sessions - 1)) == nil)
    }

    // MARK: - Files

    @Test func `a start replaces the accounts of files, and those of the console stay and win`() throws {
        var harness = try harness(.test("ada", .admin), .test("bob", .operator))
        _ = harness.takeObservations()
        let first: [Account] = [.test("bob"), .test("cora", .uploader, origin: .console), .test("dan")]
        harness.step(.commandReceived(.setFileAccounts(first)))
        harness.completeWrites()
        #expect(harness.takeObservations() == [.fileAccountsSet(accounts: 3, leftOut: 1)])
        func all(_ harness: NodeHarness) -> [Account] { harness.node.state.accounts.all.map(\.account) }
        let kept: [Account] = [.test("ada", .admin), .test("bob", .operator)]
        #expect(
            all(harness) == kept + [.test("cora", .uploader, origin: .file), .test("dan", origin: .file)])
        let index = harness.node.state.index
        harness.step(.commandReceived(.setFileAccounts(first)))
        harness.completeWrites()
        #expect(harness.node.state.index == index, "nothing has changed")
        harness.step(.commandReceived(.setFileAccounts([.test("dan", .operator)])))
        harness.completeWrites()
        #expect(all(harness) == kept + [.test("dan", .operator, origin: .file)])
        // Nobody changes them at the console, where the next start would bring them back.
        let reason = "dan comes from a tracker's file: change it there, and have that read again"
        #expect(try harness.change(.putAccount(.test("dan", .viewer), expected: .any)) == .refused(reason))
        #expect(try harness.change(.removeAccount(name: name("dan"), expected: .any)) == .refused(reason))
        #expect(all(harness) == kept + [.test("dan", .operator, origin: .file)])
        harness.step(.commandReceived(.setFileAccounts([])))
        harness.completeWrites()
        #expect(all(harness) == kept)
    }

    @Test func `files without an admin do not take the last one, and a new one comes before the old one goes`() throws {
        var harness = NodeHarness()
        func set(_ accounts: [Account]) {
            harness.step(.commandReceived(.setFileAccounts(accounts)))
            while !harness.pending.isEmpty {
                harness.completeWrite()
                #expect(harness.node.state.accounts.adminCount > 0 || harness.node.state.accounts.count == 0)
            }
        }
        set([.test("zoe", .admin), .test("bob")])
        #expect(harness.node.state.accounts.adminCount == 1)
        _ = harness.takeObservations()
        set([.test("bob")])
        #expect(
            harness.takeObservations()
                == [.commandRefused("no admin would be left: the accounts of the files need one")])
        set([.test("zoe"), .test("bob", .admin)])
        #expect(harness.node.state.accounts.find(name("zoe"))?.account.role == .viewer)
        set([.test("ada", .admin)])
        #expect(harness.node.state.accounts.all.map(\.account.name) == [name("ada")])
    }

    // MARK: - Written down

    @Test func `accounts are written down in chunk 0, and read back with all that counts`() throws {
        var harness = try harness(.test("ada", .admin), .test("bob", password: nil))
        try harness.done(.putSession(.test(1, of: "ada"), expected: .any))
        try harness.done(.putSession(.test(2, of: "bob", isToken: true), expected: .any))
        let state = harness.node.state
        let copy = try state.readBack()
        #expect(copy.digest == state.digest)
        #expect(copy.accounts.all == state.accounts.all)
        #expect(copy.accounts.allSessions == state.accounts.allSessions)
        #expect(copy.accounts.adminCount == 1)
        // And by a crash, from the log.
        let restarted = try harness.disk.restored()
        #expect(restarted.state.accounts.all == state.accounts.all)
    }

    @Test func `each change of an account or a session shows in the digest`() throws {
        var harness = try harness(.test("ada", .admin))
        var digests = [harness.node.state.digest]
        for change: ConsoleChange in [
            .putAccount(.test("bob"), expected: .any), .putAccount(.test("bob", .uploader), expected: .any),
            .putAccount(.test("bob", .uploader, password: 2), expected: .any),
            .putSession(.test(1, of: "bob"), expected: .any), .putSession(.test(2, of: "bob"), expected: .any),
            .removeSession(.numbered(1)), .removeAccount(name: name("bob"), expected: .any),
        ] {
            try harness.done(change)
            digests.append(harness.node.state.digest)
        }
        #expect(Set(digests).count == digests.count - 1)
        #expect(digests.first == digests.last, "nothing is left of bob")
    }

    @Test func `a chunk without accounts is what it was before there were any`() {
        let state = ReplicatedState(secret: NodeHarness.secret, shardCount: 8)
        // Header, mode, four counts, members, three numbers of the interval, checksum.
        #expect(state.chunk(0).bytes.count == 30 + 1 + 4 + 4 + 4 + 1 + 4 + 12 + 8)
        #expect(state.chunkCount == 9)
    }
}

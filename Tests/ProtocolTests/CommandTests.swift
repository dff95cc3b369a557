// What an operator asks of a running node: in order, whole, and without harm to those who are welcome all along.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Operator's commands")
struct CommandTests {
    private func rules(_ mode: AccessMode, _ infoHashes: some Sequence<Int>, users: [Int] = []) -> AccessRules {
        AccessRules(mode: mode, infoHashes: infoHashes.map { .numbered($0) }, users: users.map(user))
    }

    private func user(_ number: Int) -> User { User(name: "user \(number)", passkey: passkey(number)) }

    private func passkey(_ number: Int) -> [UInt8] { [UInt8](ascii: "key-\(number)") }

    private func torrent(_ number: Int, _ name: String = "name") -> RegisteredTorrent {
        RegisteredTorrent(infoHash: .numbered(number), name: name, byteCount: 5)
    }

    /// The fingerprint of rules that came into force alone.
    private func digest(_ rules: AccessRules) -> UInt64 {
        var harness = NodeHarness()
        harness.setAccess(rules)
        return harness.node.state.access.digest
    }

    private func harness(updatesPerEntry: Int) -> NodeHarness {
        var configuration = NodeConfiguration.test
        configuration.limits.updatesPerEntry = updatesPerEntry
        var harness = NodeHarness(configuration)
        _ = harness.takeObservations()
        return harness
    }

    // MARK: In force

    @Test func `rules come into force with the entry that holds them, and not before`() {
        var harness = NodeHarness()
        harness.step(.commandReceived(.setAccess(rules(.deny, 1...3))))
        #expect(harness.node.state.access.mode == .open)
        harness.completeWrite()
        #expect(harness.node.state.access.mode == .deny)
        #expect(harness.node.state.access.infoHashCount == 3)
        #expect(harness.observations.last == .accessChanged(.deny, infoHashes: 3, users: 0))
    }

    @Test func `rules of many entries are told of once, when all are in force`() {
        var harness = harness(updatesPerEntry: 10)
        harness.step(.commandReceived(.setAccess(rules(.allow, 0..<55, users: [1, 2]))))
        while !harness.pending.isEmpty {
            #expect(harness.observations.isEmpty)
            harness.completeWrite()
        }
        #expect(harness.disk.entries.count == 6)
        #expect(harness.observations == [.accessChanged(.allow, infoHashes: 55, users: 2)])
    }

    @Test func `rules that are in force already are told of too, and nothing is written`() {
        var harness = harness(updatesPerEntry: 10)
        harness.setAccess(rules(.deny, [1, 2]))
        let changes = harness.changes.count
        _ = harness.takeObservations()
        harness.step(.commandReceived(.setAccess(rules(.deny, [2, 1, 1]))))
        #expect(harness.observations == [.accessChanged(.deny, infoHashes: 2, users: 0)])
        #expect(harness.pending.isEmpty)
        #expect(harness.changes.count == changes)
    }

    @Test func `only the difference is written`() throws {
        var harness = NodeHarness()
        harness.setAccess(rules(.deny, 0..<1_000))
        harness.setAccess(rules(.deny, 1..<1_001))
        #expect(try #require(harness.disk.entries.last).header.updateCount == 2)
    }

    @Test func `commands given before the start are carried out after it`() {
        var harness = NodeHarness(starts: false)
        harness.step(.commandReceived(.setAccess(rules(.deny, [1]))))
        harness.step(.started)
        harness.step(.commandReceived(.fileTorrents([torrent(1)])))
        harness.completeWrites()
        #expect(harness.node.state.access.mode == .deny)
        #expect(harness.node.state.registry.count == 1)
    }

    @Test func `clients are answered while a long command is under way`() throws {
        var harness = harness(updatesPerEntry: 4)
        harness.step(.commandReceived(.setAccess(rules(.deny, 100..<200))))
        let reply = try harness.peers(.numbered(1), from: .v4(1))
        #expect(reply.leechers == 1)
    }

    @Test func `a command is carried out under a load that never pauses`() {
        var harness = harness(updatesPerEntry: 100)
        harness.step(.commandReceived(.setAccess(rules(.deny, [1]))))
        harness.step(.commandReceived(.fileTorrents([torrent(1)])))
        for number in 0..<10 {
            let announce = Announce(infoHash: .numbered(5), peerID: .zero, left: 1, port: UInt16(number + 1))
            harness.step(
                .requestReceived(ClientRequest(id: 1, source: .v4(number), content: .announce(announce))))
            harness.completeWrite()
        }
        #expect(
            harness.observations == [.accessChanged(.deny, infoHashes: 1, users: 0), .registryChanged(torrents: 1)])
    }

    // MARK: In order

    @Test func `the last rules given are those in force, wherever the ones before had got to`() {
        var random = RandomStream(seed: 41)
        let modes: [AccessMode] = [.open, .allow, .deny, .private]
        for _ in 0..<rounds(2_000) {
            var harness = harness(updatesPerEntry: 1 + random.below(4))
            var last = AccessRules()
            for _ in 0..<1 + random.below(5) {
                for _ in 0..<random.below(6) where !harness.pending.isEmpty {
                    if random.oneIn(8) { harness.failWrite(.full) } else { harness.completeWrite() }
                }
                last = rules(
                    modes[random.below(4)], (0..<random.below(6)).map { _ in random.below(8) },
                    users: (0..<random.below(4)).map { _ in random.below(5) })
                harness.step(.commandReceived(.setAccess(last)))
            }
            harness.completeWrites()
            harness.run(.seconds(2))
            #expect(harness.node.state.access.mode == last.mode)
            #expect(harness.node.state.access.digest == digest(last))
            #expect(
                harness.observations.last
                    == .accessChanged(
                        last.mode, infoHashes: Set(last.infoHashes).count, users: Set(last.users).count))
        }
    }

    @Test func `a torrent that is registered and taken out at once is gone`() {
        var harness = NodeHarness()
        harness.step(.commandReceived(.fileTorrents([torrent(1), torrent(2)])))
        harness.step(.commandReceived(.fileTorrents([torrent(2)])))
        harness.step(.commandReceived(.fileTorrents([torrent(2, "another name"), torrent(3)])))
        harness.completeWrites()
        #expect(harness.node.state.registry.find(.numbered(1)) == nil)
        #expect(harness.node.state.registry.find(.numbered(2)) == torrent(2, "another name"))
        #expect(harness.node.state.registry.find(.numbered(3)) == torrent(3))
        #expect(harness.observations.last == .registryChanged(torrents: 2))
    }

    @Test func `rules and torrents do not get in each other's way`() {
        var harness = harness(updatesPerEntry: 3)
        harness.step(.commandReceived(.fileTorrents((0..<10).map { torrent($0) })))
        harness.step(.commandReceived(.setAccess(rules(.deny, 0..<10))))
        harness.step(.commandReceived(.fileTorrents((5..<10).map { torrent($0) })))
        harness.completeWrites()
        // The later word on torrents has overtaken the one that was under way.
        #expect(
            harness.observations == [
                .accessChanged(.deny, infoHashes: 10, users: 0), .registryChanged(torrents: 5),
            ])
    }

    // MARK: Without harm

    static let modes: [AccessMode] = [.open, .allow, .deny, .private]

    @Test(arguments: modes, modes)
    func `nobody who is welcome before and after is refused on the way`(_ before: AccessMode, _ after: AccessMode) {
        var random = RandomStream(seed: 42)
        for _ in 0..<40 {
            func some(_ bound: Int) -> [Int] { (0..<bound).filter { _ in random.oneIn(2) } }
            let old = rules(before, some(6), users: some(4))
            let new = rules(after, some(6), users: some(4))
            var harness = harness(updatesPerEntry: 1)
            harness.setAccess(old)
            func isAdmitted(_ client: Int, _ access: AccessControl) -> Bool {
                let accounts = Accounts(secret: 0, keepsMergeData: false)
                return access.refusal(.numbered(client % 6), accounts, passkey: { passkey(client / 6) }) == nil
            }
            let clients = (0..<24).filter { isAdmitted($0, harness.node.state.access) }
            harness.step(.commandReceived(.setAccess(new)))
            var refused: [Int] = []
            while !harness.pending.isEmpty {
                harness.completeWrite()
                refused += clients.filter { !isAdmitted($0, harness.node.state.access) }
            }
            let welcomeAfter = clients.filter { isAdmitted($0, harness.node.state.access) }
            #expect(Set(refused).isDisjoint(with: welcomeAfter), "from \(old) to \(new)")
        }
    }

    // MARK: A disk that refuses

    @Test func `a command that the disk had no room for is tried again until it is in force`() {
        var harness = harness(updatesPerEntry: 4)
        harness.step(.commandReceived(.setAccess(rules(.deny, 0..<10))))
        harness.completeWrite()
        harness.failWrite(.full)
        #expect(harness.pending.isEmpty, "no haste with a full disk")
        let start = harness.now.monotonic
        for _ in 0..<3 {
            while harness.pending.isEmpty, let due = harness.node.nextDeadline, due <= start + .seconds(10) {
                harness.pass(due - harness.now.monotonic)
                harness.step(.deadlineReached)
            }
            harness.failWrite(.full)
        }
        #expect(harness.now.monotonic - start == .seconds(3), "once a second")
        harness.run(.seconds(2))
        #expect(harness.node.state.access.mode == .deny)
        #expect(harness.node.state.access.infoHashCount == 10)
        #expect(harness.observations.last == .accessChanged(.deny, infoHashes: 10, users: 0))
    }

    // MARK: Refused

    @Test func `lists beyond their limits are refused, and what was in force stays`() {
        var configuration = NodeConfiguration.test
        configuration.limits.listedInfoHashes = 10
        configuration.limits.users = 2
        configuration.limits.registeredTorrents = 10
        var harness = NodeHarness(configuration)
        harness.setAccess(rules(.deny, 0..<10, users: [1, 2]))
        let before = harness.node.state
        func expect(_ reason: String, _ command: OperatorCommand) {
            _ = harness.takeObservations()
            harness.step(.commandReceived(command))
            harness.completeWrites()
            #expect(harness.observations == [.commandRefused(reason)])
            #expect(harness.node.state == before)
        }
        expect("the list holds more than 10 info hashes", .setAccess(rules(.open, 0..<11)))
        expect("there are more than 2 users", .setAccess(rules(.open, [], users: [1, 2, 3])))
        expect("the registry would hold more than 10 torrents", .fileTorrents((0..<11).map { torrent($0) }))
    }

    @Test func `torrents that are registered already take no room a second time`() {
        var configuration = NodeConfiguration.test
        configuration.limits.registeredTorrents = 10
        var harness = NodeHarness(configuration)
        for _ in 0..<3 {
            harness.step(.commandReceived(.fileTorrents((0..<10).map { torrent($0) })))
            harness.completeWrites()
            #expect(harness.observations.last == .registryChanged(torrents: 10))
        }
        harness.step(.commandReceived(.fileTorrents((0..<11).map { torrent($0) })))
        #expect(harness.observations.last == .commandRefused("the registry would hold more than 10 torrents"))
        harness.step(.commandReceived(.fileTorrents([torrent(10)])))
        harness.completeWrites()
        #expect(harness.observations.last == .registryChanged(torrents: 1))
    }

    @Test func `commands that pile up are refused at last`() {
        var harness = NodeHarness(starts: false)
        for number in 0..<200 {
            let account = ConsoleChange.putAccount(.test("a\(number)"), expected: .any)
            harness.step(.commandReceived(.change(number: UInt64(number), account)))
            harness.step(.commandReceived(.fileTorrents([torrent(number)])))
        }
        harness.step(.started)
        harness.completeWrites()
        // Of torrents only the last word that there was room for waits.
        #expect(harness.node.state.accounts.count == Limits.waitingCommands - 1)
        #expect(harness.node.state.registry.count == 1)
    }

    @Test func `a command that a stop overtakes is not forgotten in silence`() {
        var harness = harness(updatesPerEntry: 4)
        harness.step(.commandReceived(.setAccess(rules(.deny, 0..<10))))
        harness.step(.commandReceived(.drain))
        harness.completeWrites()
        #expect(
            harness.observations == [.commandDropped("the tracker stopped before it was carried out"), .drained])
        harness.step(.commandReceived(.setAccess(rules(.deny, 0..<10))))
        #expect(harness.observations.last == .commandRefused("the tracker is stopping, or has lost its disk"))
    }

    @Test func `a name that is too long is cut`() {
        var harness = NodeHarness()
        harness.step(.commandReceived(.fileTorrents([torrent(1, String(repeating: "x", count: 100_000))])))
        harness.completeWrites()
        #expect(harness.node.state.registry.find(.numbered(1))?.name.utf8.count == Limits.maxNameByteCount)
        let index = harness.node.state.index
        harness.step(.commandReceived(.fileTorrents([torrent(1, String(repeating: "x", count: 100_000))])))
        harness.completeWrites()
        #expect(harness.node.state.index == index, "it is there as it is kept")
    }
}

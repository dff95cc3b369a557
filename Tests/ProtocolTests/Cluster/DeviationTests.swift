// Where the protocol departs from the textbooks: a test for each row of the two tables of docs/protocol.md.
//
// E1 to E8 are the deviations from the bully algorithm, V1 to V5 those from two-phase commit. The master is 3 of three
// trackers, or 5 of five, where nothing else is said.

import Foundation
import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Deviations from the textbooks")
struct DeviationTests {
    private static let client = SocketAddress.v4(1)

    private func isElection(_ body: ClusterMessage.Body) -> Bool { body == .election }
    private func isOK(_ body: ClusterMessage.Body) -> Bool { if case .ok = body { true } else { false } }
    private func isPrepare(_ body: ClusterMessage.Body) -> Bool { if case .prepare = body { true } else { false } }
    private func isKeepalive(_ body: ClusterMessage.Body) -> Bool { if case .keepalive = body { true } else { false } }

    /// How often anybody has stood since the cluster served.
    private func elections(_ trio: Trio) -> Int {
        trio.told.count { if case .stands = $0.observation { true } else { false } }
    }

    private func knows(_ trio: Trio, _ id: UInt32, _ client: SocketAddress) -> Bool {
        trio[id].state.table.contains(.numbered(1), client)
    }

    private func errors(_ trio: Trio, to client: SocketAddress) throws -> [String?] {
        try trio.replies(to: client).map { try TrackerReply($0.payload, isIPv6: false).errorText }
    }

    // MARK: - The bully algorithm

    @Test func `E1: nobody stands before a quorum misses the master`() {
        var trio = Trio.serving()
        trio.holdMessages { $0.from == 3 && $0.to == 1 }
        trio.run(.seconds(10))
        #expect(!trio.said(by: 1) { if case .suspect = $0 { true } else { false } }.isEmpty)
        #expect(elections(trio) == 0)
        // Now a second one misses it.
        trio.holdMessages { $0.from == 3 }
        trio.run(.seconds(5))
        #expect(elections(trio) == 1)
        #expect(trio.masters == [2])
    }

    @Test func `E2: the others let the preferred one go first, and stand when it does not`() {
        var trio = Trio.serving(count: 5)
        trio.crash(5)
        trio.run(.seconds(5))
        #expect(trio.masters == [4])
        #expect(elections(trio) == 1)
        trio.forget()
        // The next one in the order is there, and nobody hears it stand.
        trio.crash(4)
        trio.holdMessages { $0.from == 3 && isElection($0.body) }
        trio.run(.seconds(8))
        #expect(trio.masters == [2])
    }

    @Test func `E3: two who stand at once harm nothing`() throws {
        var trio = Trio.serving(count: 5)
        trio.crash(5)
        trio.holdMessages { isElection($0.body) }
        for _ in 0..<200 where elections(trio) < 2 { trio.run(.milliseconds(50)) }
        #expect(elections(trio) >= 2)
        #expect(trio.masters.isEmpty)
        trio.releaseMessages()
        trio.run(.seconds(8))
        #expect(trio.masters.count == 1)
        let epochs = Set([1, 2, 3, 4].map { trio.epoch($0) })
        #expect(epochs.count == 1)
        #expect(try trio.announce(Self.client, at: 1) != nil)
    }

    @Test func `E4: who is far behind comes last, whatever its id`() throws {
        var trio = Trio.serving()
        trio.holdMessages { letter in
            guard letter.to == 2 else { return false }
            switch letter.body {
            case .prepare, .commit, .entries: return true
            default: return false
            }
        }
        let before = trio.index(2)
        for number in 1...10 { #expect(try trio.announce(.v4(number), at: 3) != nil) }
        #expect(trio.index(1) > before + 9)
        #expect(trio.index(2) <= before + 1)
        trio.crash(3)
        trio.drop { _ in true }
        trio.holdMessages { _ in false }
        trio.run(.seconds(5))
        #expect(trio.masters == [1])
        #expect(elections(trio) == 1)
    }

    @Test func `E5: a master does not stand against a candidate`() {
        var trio = Trio.serving()
        trio.crash(3)
        trio.run(.seconds(8))
        trio.start(3)
        trio.forget()
        // The successor's ELECTION comes after its KEEPALIVE, which names the higher epoch.
        trio.holdMessages { $0.from == 3 && isElection($0.body) }
        for _ in 0..<200 where elections(trio) == 0 { trio.run(.milliseconds(50)) }
        trio.run(.milliseconds(400))
        #expect(trio.observed(by: 3).contains { if case .stands = $0 { true } else { false } })
        #expect(trio.said(by: 2, where: isElection).isEmpty)
        trio.releaseMessages()
        trio.run(.seconds(2))
        #expect(trio.masters == [3])
        #expect(elections(trio) == 1)
    }

    @Test func `E6: a master makes way for whom its voter follows, and nobody outbids anybody`() {
        var trio = Trio.serving()
        // 2 and 3 never hear each other; 1 hears 3 no more for a while, and elects 2.
        trio.holdMessages { letter in
            [letter.from, letter.to].sorted() == [2, 3] || letter.from == 3 && letter.to == 1
        }
        for _ in 0..<100 where !trio.masters.contains(2) { trio.run(.milliseconds(50)) }
        #expect(trio.masters.contains(2))
        let epoch = trio.epoch(1)
        trio.drop { _ in true }
        trio.holdMessages { letter in [letter.from, letter.to].sorted() == [2, 3] }
        trio.forget()
        trio.run(.seconds(20))
        #expect(trio.masters == [2])
        #expect(trio.epoch(1) == epoch)
        #expect(trio.said(by: 3, where: isElection).isEmpty)
    }

    @Test func `E6: a master does not stand against whom it hands its role to, though a voter is heard first`() {
        var trio = Trio.serving()
        trio.crash(3)
        trio.run(.seconds(8))
        trio.start(3)
        trio.forget()
        // Nothing that 3 says as a candidate comes to 2, and no promise of 1 to 3: 2 hears of the epoch from 1 first.
        trio.holdMessages { letter in
            if case .answer = letter.body { return letter.to == 3 }
            guard letter.from == 3, letter.to == 2 else { return false }
            if case .keepalive(let keepalive) = letter.body { return keepalive.role == .candidate }
            return isElection(letter.body)
        }
        for _ in 0..<200 where elections(trio) == 0 { trio.run(.milliseconds(50)) }
        let epoch = trio.epoch(3)
        func isTold() -> Bool { trio.said(by: 1, where: isKeepalive).contains { $0.message.epoch == epoch } }
        for _ in 0..<30 where !isTold() { trio.run(.milliseconds(50)) }
        #expect(isTold())
        #expect(trio.said(by: 2, where: isElection).isEmpty)
        trio.releaseMessages()
        trio.run(.seconds(2))
        #expect(trio.masters == [3])
        #expect(elections(trio) == 1)
    }

    @Test func `E7: all voters that live count when it is asked whose turn it is`() {
        var trio = Trio.serving(count: 5)
        // The last KEEPALIVE comes to the preferred one a moment later than to the others: they miss the master first.
        trio.holdMessages { $0.from == 5 && $0.to == 4 && isKeepalive($0.body) }
        for _ in 0..<100 where trio.held.isEmpty { trio.run(.milliseconds(50)) }
        trio.run(.milliseconds(150))
        trio.releaseMessages()
        trio.crash(5)
        trio.run(.seconds(6))
        #expect(trio.masters == [4])
        #expect(elections(trio) == 1)
    }

    @Test func `E8: of several who come back, the role is handed to the one that is preferred to all`() {
        var trio = Trio.serving(count: 5)
        trio.crash(5)
        trio.crash(4)
        trio.run(.seconds(8))
        #expect(trio.masters == [3])
        trio.start(4)
        trio.start(5)
        trio.forget()
        trio.run(.milliseconds(3500))
        #expect(trio.masters == [3], "nobody has been in step for four keepalives")
        trio.run(.seconds(10))
        #expect(trio.masters == [5])
        #expect(elections(trio) == 1)
        let heirs = trio.said.filter { $0.body == .handover }.map(\.message.destination)
        #expect(!heirs.isEmpty)
        #expect(heirs.allSatisfy { $0 == .one(trio.life(5)) })
    }

    // MARK: - Two-phase commit

    @Test func `V1: a majority decides, and with the policy all everybody who is active`() throws {
        var trio = Trio.serving()
        trio.holdMessages { $0.from == 1 && isOK($0.body) }
        #expect(try trio.announce(Self.client, at: 3) != nil)
        var strict = Trio.serving(.lowest)
        strict.holdMessages { $0.from == 3 && isOK($0.body) }
        #expect(try strict.announce(Self.client, at: 1) == nil)
        strict.run(.seconds(20))
        #expect(strict.replies(to: Self.client).isEmpty)
        strict.releaseMessages()
        #expect(strict.replies(to: Self.client).count == 1)
    }

    @Test func `V2: a time-out is no abort`() throws {
        var trio = Trio.serving()
        trio.holdMessages { isOK($0.body) }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.run(.seconds(20))
        #expect(trio.replies(to: Self.client).isEmpty)
        #expect(trio.masters == [3])
        trio.releaseMessages()
        #expect(try errors(trio, to: Self.client) == [nil])
    }

    @Test func `V3: a refusal by vote is itself decided, unless everybody has refused`() throws {
        var trio = Trio.serving()
        for id: UInt32 in [1, 2] { trio.failWrites(id, .full) }
        trio.forget()
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.run(.seconds(1))
        let attempts = trio.said(by: 3, where: isPrepare).compactMap { letter -> EntryHeader? in
            guard case .prepare(let entry, _) = letter.body else { return nil }
            return entry.header
        }
        #expect(attempts.last?.updateCount == 0)
        #expect((attempts.last?.ballot.attempt ?? 0) >= 1)
        #expect(trio.replies(to: Self.client).isEmpty, "the empty entry is not decided, either")
        // Where nobody has the entry, there is nothing to be decided.
        var alone = Trio.serving(count: 1)
        alone.failWrites(1, .full)
        let index = alone.index(1)
        let reply = try alone.announce(Self.client, at: 1)
        #expect(reply?.errorText == Refusal.notStored.clientText)
        alone.failWrites(1, nil)
        alone.run(.seconds(5))
        let second = try #require(try alone.announce(Self.client, at: 1))
        #expect(second.errorText == nil)
        #expect(alone.index(1) == index + 1)
    }

    @Test func `V4: an entry that a new master inherits is never given up`() throws {
        var trio = Trio.serving()
        trio.holdMessages { letter in isOK(letter.body) || isPrepare(letter.body) && letter.to == 2 }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.crash(3)
        trio.drop { _ in true }
        trio.holdMessages { isPrepare($0.body) }
        for _ in 0..<100 where trio.masters != [2] { trio.run(.milliseconds(50)) }
        #expect(trio.masters == [2])
        // Its voter cannot write what it is asked to vote for.
        trio.failWrites(1, .full)
        trio.forget()
        trio.holdMessages { _ in false }
        trio.deliver { _ in true }
        trio.run(.seconds(5))
        let values = trio.said(by: 2, where: isPrepare)
        #expect(!values.isEmpty)
        #expect(
            values.allSatisfy { letter in
                guard case .prepare(let entry, _) = letter.body else { return false }
                return entry.header.updateCount == 1
            })
        trio.failWrites(1, nil)
        trio.run(.seconds(8))
        #expect(knows(trio, 1, Self.client) && knows(trio, 2, Self.client))
    }

    @Test func `V5: the coordinator's death does not block`() throws {
        var trio = Trio.serving()
        trio.holdMessages { isOK($0.body) }
        #expect(try trio.announce(Self.client, at: 1) == nil)
        trio.crash(3)
        trio.drop { _ in true }
        trio.holdMessages { _ in false }
        trio.run(.seconds(5))
        #expect(trio.masters == [2])
        #expect(trio.replies(to: Self.client).map(\.by) == [1])
        #expect(knows(trio, 1, Self.client) && knows(trio, 2, Self.client))
    }

    // MARK: - Rule 23: it heals by itself

    /// A client announces, and what is sent of a kind is lost; two seconds later, whoever waits has been answered.
    private func healed(from isLost: @escaping (ClusterMessage.Body) -> Bool) throws -> Trio {
        var trio = Trio.serving()
        trio.holdMessages { isLost($0.body) }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        #expect(!trio.held.isEmpty)
        trio.drop { _ in true }
        trio.holdMessages { _ in false }
        trio.run(.seconds(2))
        #expect(trio.replies(to: Self.client).count == 1)
        return trio
    }

    @Test func `rule 23: a vote that was lost is asked for and given again`() throws {
        _ = try healed { isOK($0) }
    }

    @Test func `rule 23: a proposal that was lost is sent again`() throws {
        let trio = try healed { isPrepare($0) }
        #expect(knows(trio, 1, Self.client) && knows(trio, 2, Self.client))
    }

    @Test func `rule 23: what a slave has missed it fetches`() throws {
        var trio = Trio.serving()
        trio.cutOff(1)
        for number in 1...5 { #expect(try trio.announce(.v4(number), at: 3) != nil) }
        trio.mend(1)
        trio.run(.seconds(4))
        #expect(trio.index(1) == trio.index(3))
        #expect(trio[1].inspection.digest == trio[3].inspection.digest)
    }

    @Test func `rule 23: a CONFIRM that was lost is said again while entries follow each other`() throws {
        var trio = Trio.serving()
        trio.holdMessages { if case .confirm = $0.body { true } else { false } }
        #expect(try trio.scrape(Self.client, at: 1) == nil)
        #expect(trio.held.count == 2)
        trio.drop { _ in true }
        trio.holdMessages { _ in false }
        let index = trio.index(3)
        for number in 0..<5 {
            try trio.announce(.v4(10 + number), at: 3)
            trio.run(.milliseconds(100))
        }
        #expect(trio.index(3) >= index + 5, "no pause between two entries is long enough to ask again")
        #expect(trio.replies(to: Self.client).map(\.by) == [1])
    }

    // MARK: - The tables

    @Test func `each row of the two tables of deviations has its test`() throws {
        let here = URL(fileURLWithPath: #filePath)
        let root = (0..<4).reduce(here) { url, _ in url.deletingLastPathComponent() }
        let page = try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
        let rows = page.split(separator: "\n").compactMap { line -> String? in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard let name = cells.first, name.count == 2, "EV".contains(name.prefix(1)), cells.count == 3 else {
                return nil
            }
            return name
        }
        #expect(rows == (1...8).map { "E\($0)" } + (1...5).map { "V\($0)" })
        let tests = try String(contentsOf: here, encoding: .utf8)
        for row in rows { #expect(tests.contains("@Test func `\(row): "), "no test of \(row)") }
    }
}

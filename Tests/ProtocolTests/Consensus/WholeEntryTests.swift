// An entry that is known to be whole.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct WholeEntryTests {
    private static let epoch = Epoch(2, by: 1)

    @Test func `an entry is what its bytes say`() throws {
        let made = Entry.made(7, after: 55, Self.epoch, attempt: 3, waiting: [9])
        let read = try Entry(made.bytes)
        #expect(read == made)
        #expect(read.header.index == 7)
        #expect(read.header.previous == 55)
        #expect(read.header.ballot == Ballot(epoch: Self.epoch, attempt: 3, index: 7))
        #expect(read.chain == EntryHeader.chain(made.bytes))
        #expect(read.position == Position(index: 7, chain: read.chain))
    }

    @Test func `bytes that are damaged are no entry`() {
        var bytes = Entry.made(7).bytes
        bytes[bytes.count - 1] ^= 1
        #expect(throws: EntryDamaged.self) { try Entry(bytes) }
        #expect(throws: EntryDamaged.self) { try Entry([]) }
    }

    @Test func `proposed by another ballot it is the same value`() throws {
        let entry = Entry.made(7, after: 55, Self.epoch)
        for isAlone in [false, true] {
            let ballot = Ballot(epoch: Epoch(3, by: 2), attempt: 4, index: 7)
            let again = entry.proposed(ballot, isAlone: isAlone)
            #expect(again.header.ballot == ballot)
            #expect(again.header.isAlone == isAlone)
            #expect(again.header.origin == 1, "who made it stays")
            #expect(again.position == entry.position)
            #expect(again.bytes != entry.bytes)
            #expect(try Entry(again.bytes) == again)
        }
    }

    @Test(
        arguments: [
            ([], nil),
            ([.setAccessMode(1)], nil),
            ([.setInterval(60)], 60),
            ([.setInterval(60), .setAccessMode(1), .setInterval(90), .setAccessMode(2)], 90),
        ] as [([Update], UInt32?)])
    func `the interval that it sets last counts`(_ updates: [Update], _ interval: UInt32?) {
        #expect(Entry.made(7, updates: updates).interval == interval)
    }

    /// Another one at the place of `[.setInterval(60)]` of epoch 2.1, with a client that waits.
    struct Rival: Sendable, CustomTestStringConvertible {
        var about: String
        var other: Entry
        var isRival = false

        var testDescription: String { about }
    }

    private static let own = Entry.made(7, after: 55, epoch, waiting: [9])

    @Test(arguments: [
        Rival(about: "the same value of another master", other: .made(7, after: 55, Epoch(3, by: 2), waiting: [9])),
        Rival(
            about: "another of the same master",
            other: .made(7, after: 55, epoch, updates: [.setInterval(1)], waiting: [9])),
        Rival(
            about: "another that one alone has kept as decided since the same master came",
            other: Entry.made(7, after: 55, updates: [.setInterval(1)])
                .proposed(Ballot(epoch: epoch, attempt: 0, index: 7), isAlone: true), isRival: true),
        Rival(
            about: "the same value, kept so",
            other: own.proposed(Ballot(epoch: epoch, attempt: 0, index: 7), isAlone: true)),
        Rival(
            about: "another of another master",
            other: .made(7, after: 55, Epoch(3, by: 2), updates: [.setInterval(1)], waiting: [9]), isRival: true),
        Rival(
            about: "of an earlier master", other: .made(7, after: 55, Epoch(1, by: 1), updates: [.setInterval(1)]),
            isRival: true
        ),
        Rival(about: "of another past", other: .made(7, after: 54, Epoch(3, by: 2), waiting: [9]), isRival: true),
        Rival(about: "at another place", other: .made(8, after: 55, Epoch(3, by: 2), updates: [.setInterval(1)])),
        Rival(about: "its own void", other: .made(7, after: 55, Epoch(3, by: 2), updates: [], waiting: [9])),
        Rival(
            about: "a void for another client", other: .made(7, after: 55, Epoch(3, by: 2), updates: [], waiting: [8]),
            isRival: true),
        Rival(about: "a void for nobody", other: .made(7, after: 55, Epoch(3, by: 2), updates: []), isRival: true),
    ])
    func `in survivor mode two at a place are rivals if both may have been decided`(_ row: Rival) {
        #expect(Self.own.rivals(row.other) == row.isRival)
    }

    @Test func `an empty one is nobody's rival`() {
        let empty = Entry.made(7, after: 55, Self.epoch, updates: [], waiting: [9])
        #expect(!empty.rivals(.made(7, after: 55, Epoch(3, by: 2), updates: [.setInterval(1)])))
    }
}

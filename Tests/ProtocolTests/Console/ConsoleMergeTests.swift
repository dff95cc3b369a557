// Accounts and torrent files after a partition: the later word counts, whoever is merged, how often and in which order.

import Primitives
import Testing
import TrackerLogic
import Wire

/// One side of a partition, with a clock of its own, at whose consoles people do as they like.
struct ConsoleSide {
    private(set) var state = ReplicatedState(secret: NodeHarness.secret, shardCount: 16, keepsMergeData: true)
    var time: UInt32

    init(at time: UInt32 = 1_000) throws {
        self.time = time
        // An admin that stays, for the last one is not taken out.
        try put(.test("root", .admin))
    }

    mutating func apply(_ updates: [Update]) throws { try state.apply(updates, at: time) }
    mutating func put(_ account: Account) throws { try apply([.console(.putAccount(account))]) }
    mutating func remove(_ name: String) throws { try apply([.console(.removeAccount(name: [UInt8](ascii: name)))]) }
    mutating func upload(_ file: TestFile) throws {
        try apply(file.parts.map { .console(.uploadPart($0)) } + [.console(.finishUpload(file.head))])
    }
    mutating func remove(_ file: TestFile) throws { try apply([.console(.removeTorrentFile(file.infoHash))]) }

    /// Somebody does something.
    mutating func act(_ random: inout RandomStream) throws {
        // Often more than once in a second, and now and then the clock is set back.
        if random.oneIn(2) { time += UInt32(random.below(3)) } else if random.oneIn(8) { time -= 2 }
        let name = ["ada", "bob", "eve"][random.below(3)]
        let number = 1 + random.below(3)
        switch random.below(5) {
        case 0: try remove(name)
        case 1: try remove(TestFile(number))
        case 2:
            let fill = random.next() % 1_000
            try upload(TestFile(number, byteCount: 1 + random.below(20_000), upload: fill, fill: fill))
        default:
            let role: AccountRole = random.oneIn(2) ? .viewer : .operator
            try put(.test(name, role, password: UInt8(random.below(3))))
        }
    }

    mutating func merge(_ other: ConsoleSide) throws {
        for number in 0..<other.state.chunkCount { try apply(try state.mergeUpdates(from: other.state.chunk(number))) }
    }

    func merged(with other: ConsoleSide) throws -> ConsoleSide {
        var side = self
        try side.merge(other)
        return side
    }

    /// The latest word on each thing, in an order fit for comparing: when, whether it is gone, and what it is.
    var words: [String: [UInt8]] {
        var words: [String: [UInt8]] = [:]
        func note(_ key: String, _ time: UInt32, isGone: Bool, _ contents: [UInt8]) {
            #expect(words[key] == nil, "two words on \(key)")
            var bytes: [UInt8] = []
            bytes.append(bigEndian: time)
            words[key] = bytes + [isGone ? 1 : 0] + contents
        }
        for kept in state.accounts.all {
            var bytes: [UInt8] = []
            kept.account.encode(into: &bytes)
            note("account \(kept.account.name)", kept.changedTime, isGone: false, bytes)
        }
        for removal in state.accounts.removed { note("account \(removal.name)", removal.time, isGone: true, []) }
        state.files.forEach { file in
            var bytes: [UInt8] = []
            file.head.encode(into: &bytes)
            note("file \(file.infoHash)", file.changedTime, isGone: false, bytes + file.bytes)
        }
        for removal in state.files.removed { note("file \(removal.infoHash)", removal.time, isGone: true, []) }
        return words
    }
}

@Suite("Merge of what is kept at consoles")
struct ConsoleMergeTests {
    private func kept(_ name: String, _ side: ConsoleSide) -> Account? {
        side.state.accounts.find([UInt8](ascii: name))?.account
    }

    @Test(arguments: [10, 12] as [UInt32])
    func `what is removed and made anew at once, or after the clock was set back, is there`(_ removedAt: UInt32) throws
    {
        let file = TestFile(1, upload: 2)
        var lower = try ConsoleSide(at: 5)
        try lower.put(.test("eve"))
        try lower.upload(TestFile(1, upload: 1))
        var higher = lower
        lower.time = removedAt
        try lower.remove("eve")
        try lower.remove(file)
        lower.time = 10
        try lower.put(.test("eve", .operator))
        try lower.upload(file)
        higher.time = 20
        for side in [try higher.merged(with: lower), try lower.merged(with: higher)] {
            #expect(kept("eve", side)?.role == .operator)
            #expect(side.state.files.find(file.infoHash)?.bytes == file.bytes)
            #expect(side.words == lower.words)
        }
    }

    @Test func `an account of another side's clock is made anew behind its removal`() throws {
        var ahead = try ConsoleSide(at: 3_600)
        try ahead.put(.test("eve"))
        var side = try ConsoleSide(at: 10)
        try side.merge(ahead)
        try side.remove("eve")
        try side.put(.test("eve", .operator))
        #expect(side.state.accounts.find([UInt8](ascii: "eve"))?.changedTime == 3_601)
        try side.merge(ahead)
        #expect(kept("eve", side)?.role == .operator)
    }

    @Test func `a removal is carried on where the thing is not there`() throws {
        let file = TestFile(1)
        var common = try ConsoleSide(at: 5)
        try common.put(.test("bob"))
        try common.upload(file)
        var (a, b, c) = (common, common, common)
        b.time = 10
        try b.remove("bob")
        try b.remove(file)
        c.time = 15
        try c.put(.test("bob", .operator))
        try c.upload(TestFile(1, upload: 2))
        a.time = 20
        try a.remove("bob")
        try a.remove(file)
        for others in [[a, c], [c, a]] {
            var whole = b
            for other in others { try whole.merge(other) }
            #expect(kept("bob", whole) == nil)
            #expect(whole.state.files.find(file.infoHash) == nil)
            #expect(whole.words == a.words)
        }
    }

    @Test func `of two changes at one time one counts on both sides`() throws {
        var (one, other) = (try ConsoleSide(), try ConsoleSide())
        try one.put(.test("eve", .operator))
        try other.put(.test("eve", .viewer))
        try one.upload(TestFile(1, upload: 1))
        try other.upload(TestFile(1, upload: 2))
        #expect(try one.merged(with: other).words == other.merged(with: one).words)
        // The second change of a second on one side counts more than its first.
        var later = one
        try later.put(.test("eve", .viewer, password: 0))
        let both = try one.merged(with: later)
        #expect(kept("eve", both) == kept("eve", later))
    }

    @Test func `what one account gives up another may be given, and an admin goes when there is another`() throws {
        let common = try ConsoleSide(at: 5)
        var side = common
        try side.put(.test("ada", passkey: "first-key"))
        let old = side
        side.time = 10
        try side.put(.test("ada"))
        try side.put(.test("bob", passkey: "first-key"))
        try side.put(.test("eve", .admin))
        try side.remove("root")
        side.time = 20
        try side.put(.test("ada", .operator))
        try side.put(.test("eve", .admin, password: 2))
        let merged = try old.merged(with: side)
        #expect(merged.words == side.words)
        #expect(kept("bob", merged)?.passkey == [UInt8](ascii: "first-key"))
        #expect(merged.state.accounts.adminCount == 1)
    }

    @Test func `a file from files does not take the place of an upload that a merge has just brought`() throws {
        let (own, listed) = (TestFile(1, upload: 1), TestFile(1, upload: 2, fill: 9, from: .file))
        var (side, other) = (try ConsoleSide(), try ConsoleSide())
        try side.apply(listed.parts.map { .console(.uploadPart($0)) })
        try other.upload(own)
        try side.merge(other)
        // It was judged before the merge was applied.
        try side.apply([.console(.finishUpload(listed.head))])
        #expect(side.state.files.find(own.infoHash)?.head == own.head)
        #expect(side.state.files.uploads.isEmpty)
    }

    @Test func `an upload of which a merge repeats a part is not idle`() throws {
        let file = TestFile(1)
        var (side, whole) = (try ConsoleSide(at: 5), try ConsoleSide(at: 5))
        try side.apply([.console(.uploadPart(file.parts[0]))])
        try whole.upload(file)
        let updates = try side.state.mergeUpdates(from: whole.state.chunk(Int(fileChunk(of: file, whole))))
        #expect(updates.count == file.parts.count + 1)
        for (number, update) in updates.enumerated() {
            side.time = 70 + UInt32(number)
            try side.apply([update])
            // What nobody has gone on with for a minute goes.
            let forget = (0..<4).map { Update.console(.forgetUploads(chunk: $0, idleSince: side.time - 60)) }
            try side.apply(forget)
        }
        #expect(side.state.files.find(file.infoHash)?.bytes == file.bytes)
    }

    /// The chunk of a state that a torrent file lies in, of the four behind chunk 0 and sixteen shards.
    private func fileChunk(of file: TestFile, _ side: ConsoleSide) -> UInt32 {
        UInt32(17 + (side.state.files.chunk(of: file.infoHash) ?? 0))
    }

    @Test func `removals are bounded, and of too many the last stay on every side`() throws {
        var (one, other) = (try ConsoleSide(), try ConsoleSide())
        for number in 0..<200 {
            for name in ["left \(number)", "right \(number)"] {
                if name.hasPrefix("left") {
                    one.time += 1
                    try one.put(.test(name))
                    try one.remove(name)
                } else {
                    other.time += 1
                    try other.put(.test(name))
                    try other.remove(name)
                }
            }
        }
        let (whole, same) = (try one.merged(with: other), try other.merged(with: one))
        #expect(whole.words == same.words)
        #expect(whole.state.accounts.removed.count == Accounts.Bounds.removed)
        #expect(try whole.merged(with: one).words == whole.words)
        let copy = try whole.state.readBack(keepsMergeData: true)
        #expect(copy.digest == whole.state.digest)
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `three sides come to the same in whatever order they are merged`(_ seed: UInt64) throws {
        var random = RandomStream(seed: seed)
        var common = try ConsoleSide()
        for _ in 0..<random.below(12) { try common.act(&random) }
        var sides = [common, common, common]
        for side in sides.indices { sides[side].time += UInt32(random.below(6)) }
        for _ in 0..<(10 + random.below(40)) { try sides[random.below(3)].act(&random) }
        // The latest word on each thing, then an end, then by contents.
        let expected = sides.map { $0.words }.reduce([:]) { all, words in
            all.merging(words) { $0.lexicographicallyPrecedes($1) ? $1 : $0 }
        }
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let (a, b, c) = (sides[order[0]], sides[order[1]], sides[order[2]])
            let left = try a.merged(with: b).merged(with: c)
            let right = try a.merged(with: try b.merged(with: c))
            #expect(left.words == expected, "seed \(seed), \(order)")
            #expect(right.words == expected, "seed \(seed), \(order)")
            #expect(try left.merged(with: a).merged(with: right).words == expected, "seed \(seed), \(order), twice")
            #expect(try left.state.readBack(keepsMergeData: true).digest == left.state.digest)
        }
    }
}

// Fetching the whole state, chunk by chunk, event by event.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct StateTransferTests {
    private static let source = Life(3, life: 7)
    private static let retry = Duration.seconds(1)

    /// Entries 11 to 14, and what the history comes to at 10 … 14.
    private static let entries: [Entry] = (11...14).reduce(into: []) { entries, index in
        entries.append(.made(index, after: entries.last?.chain ?? 5))
    }
    private static func chain(_ index: UInt64) -> UInt64 { index == 10 ? 5 : entries[Int(index) - 11].chain }
    private static func log(_ indices: UInt64...) -> [Entry] { indices.map { entries[Int($0) - 11] } }

    /// Chunks that were received, in order; nil for one that is missing.
    private static func fetching(_ indices: [UInt64?]) -> StateTransfer {
        var transfer = StateTransfer()
        transfer.begin(from: source, chunkCount: indices.count)
        for (number, index) in indices.enumerated() {
            guard let index else { continue }
            _ = transfer.chunkReceived(.sound(UInt32(number), at: index, chain: chain(index)), from: source)
        }
        return transfer
    }

    @Test func `at first nothing is fetched, and nothing taken`() {
        var transfer = StateTransfer()
        #expect(!transfer.isFetching)
        #expect(transfer.source == nil)
        #expect(!transfer.isWriting)
        #expect(transfer.chunkReceived(.sound(0, at: 10), from: Self.source) == false)
        #expect(transfer.entriesReceived(Self.log(11), toReach: 0) == .nothing)
        transfer.cancel()
        #expect(transfer == StateTransfer())
    }

    @Test func `what begins asks one tracker for all chunks`() {
        let transfer = Self.fetching([nil, nil, nil])
        #expect(transfer.isFetching)
        #expect(transfer.source == Self.source)
        #expect(transfer.chunks.count == 3)
        #expect(!transfer.hasAllChunks)
        #expect(transfer.completeThrough == 0)
        #expect(transfer.tail.isEmpty)
    }

    @Test func `a transfer that begins takes nothing over from the last one`() {
        var transfer = Self.fetching([10, 10])
        _ = transfer.entriesReceived(Self.log(11), toReach: 14)
        transfer.begin(from: Life(2), chunkCount: 1)
        #expect(transfer.source == Life(2))
        #expect(transfer.chunks == [nil])
        #expect(transfer.tail.isEmpty)
        #expect(transfer.wanted(now: .at(0), retryAfter: Self.retry) == .chunks([0]))
    }

    // MARK: - Asking

    @Test(
        arguments: [
            (999, StateTransfer.NextRequest.chunks([])), (1000, .chunks([0, 1, 2])), (1001, .chunks([0, 1, 2])),
        ] as [(Int64, StateTransfer.NextRequest)])
    func `a chunk that does not come is asked for again after a while`(_ now: Int64, _ next: StateTransfer.NextRequest)
    {
        var transfer = Self.fetching([nil, nil, nil])
        #expect(transfer.wanted(now: .at(0), retryAfter: Self.retry) == .chunks([0, 1, 2]))
        #expect(transfer.wanted(now: .at(now), retryAfter: Self.retry) == next)
    }

    @Test func `at most a window of chunks is asked for at once`() {
        var transfer = Self.fetching(Array(repeating: nil, count: 11))
        #expect(transfer.wanted(now: .at(0), retryAfter: Self.retry) == .chunks(Array(0...7)))
        #expect(transfer.wanted(now: .at(1), retryAfter: Self.retry) == .chunks([]))
        for number: UInt32 in [0, 5] { _ = transfer.chunkReceived(.sound(number, at: 10), from: Self.source) }
        #expect(transfer.wanted(now: .at(500), retryAfter: Self.retry) == .chunks([8, 9]))
        // Six are late, two are under way: one more would be too many.
        #expect(transfer.wanted(now: .at(1000), retryAfter: Self.retry) == .chunks([1, 2, 3, 4, 6, 7]))
        #expect(transfer.wanted(now: .at(1500), retryAfter: Self.retry) == .chunks([8, 9]))
    }

    @Test func `when all chunks are here, the log behind the least of them is asked for`() {
        var transfer = Self.fetching([12, 10, 14])
        #expect(transfer.hasAllChunks)
        #expect(transfer.completeThrough == 10)
        #expect([0, 1, 2].map { transfer.heldThrough($0) } == [12, 10, 14])
        #expect(transfer.wanted(now: .at(0), retryAfter: Self.retry) == .entries(after: 10))
        _ = transfer.entriesReceived(Self.log(11, 12), toReach: 0)
        #expect(transfer.wanted(now: .at(0), retryAfter: Self.retry) == .entries(after: 12))
        #expect(transfer.wantedTail == .entries(after: 12))
    }

    // MARK: - Chunks

    @Test(arguments: [
        (SnapshotChunk.sound(1, at: 10), source, true),
        (.sound(1, at: 10), Life(3, life: 8), false),
        (.sound(1, at: 10), Life(2, life: 7), false),
        (.none(1, at: 10), source, false),
        (.sound(0, at: 10), source, false),
        (.sound(2, at: 10), source, true),
        (.sound(3, at: 10), source, false),
        (.sound(.max, at: 10), source, false),
        (SnapshotChunk(number: 1, index: 11, bytes: SnapshotChunk.sound(1, at: 10).bytes), source, false),
        (SnapshotChunk(number: 1, index: 10, bytes: SnapshotChunk.sound(2, at: 10).bytes), source, false),
        (SnapshotChunk(number: 1, index: 10, bytes: [1]), source, false),
    ])
    func `a chunk is taken that was missing, from the source, and sound`(
        _ chunk: SnapshotChunk, _ sender: Life, _ isTaken: Bool
    ) {
        let before = Self.fetching([10, nil, nil])
        var transfer = before
        #expect(transfer.chunkReceived(chunk, from: sender) == isTaken)
        if isTaken {
            #expect(transfer.chunks[Int(chunk.number)] == chunk)
            #expect(transfer.chunks.filter { $0 != nil }.count == 2)
            #expect(!transfer.hasAllChunks)
        } else {
            #expect(transfer == before)
        }
    }

    // MARK: - The log behind

    @Test func `entries say nothing before all chunks are here`() {
        var transfer = Self.fetching([10, nil])
        #expect(transfer.entriesReceived(Self.log(11), toReach: 0) == .nothing)
        #expect(transfer.tail.isEmpty)
    }

    @Test(
        arguments: [
            // The chunks alone reach as far as is asked.
            ([10, 10], [], 0, .isComplete, 0),
            ([10, 10], [], 10, .isComplete, 0),
            ([10, 10], [], 11, .nothing, 0),
            ([10, 10], [11], 11, .isComplete, 1),
            ([10, 10], [11], 12, .wantsMore, 1),
            // Up to the newest chunk, in any case.
            ([10, 12], [], 0, .nothing, 0),
            ([10, 12], [11], 0, .wantsMore, 1),
            ([12, 10], [11, 12], 0, .isComplete, 2),
            ([12, 10], [11, 12], 13, .wantsMore, 2),
            ([12, 10], [11, 12, 13], 13, .isComplete, 3),
            // What every chunk holds is passed over, and so is what comes twice.
            ([12, 12], [11, 12, 13], 13, .isComplete, 1),
            ([12, 12], [11, 12], 13, .wantsMore, 0),
            ([10, 10], [11, 11, 12, 11], 13, .wantsMore, 2),
        ] as [([UInt64], [UInt64], UInt64, StateTransfer.Progress, Int)])
    func `all is here when the log reaches the newest chunk, and what was voted for`(
        _ chunks: [UInt64], _ indices: [UInt64], _ reach: UInt64, _ progress: StateTransfer.Progress, _ count: Int
    ) {
        var transfer = Self.fetching(chunks)
        let sent = indices.flatMap { Self.log($0) }
        #expect(transfer.entriesReceived(sent, toReach: reach) == progress)
        #expect(transfer.tail == (0..<count).map { Self.entries[Int(transfer.completeThrough) - 10 + $0] })
    }

    @Test func `the log comes in pieces, in order`() {
        var transfer = Self.fetching([10, 10])
        #expect(transfer.entriesReceived(Self.log(11), toReach: 13) == .wantsMore)
        #expect(transfer.entriesReceived(Self.log(11, 12), toReach: 13) == .wantsMore)
        #expect(transfer.entriesReceived([], toReach: 13) == .nothing)
        #expect(transfer.entriesReceived(Self.log(13), toReach: 13) == .isComplete)
        #expect(transfer.tail == Self.log(11, 12, 13))
    }

    @Test func `where the log was cut, the chunks that are older are fetched again, and no others`() {
        var transfer = Self.fetching([nil, nil, nil, nil])
        #expect(transfer.wanted(now: .at(0), retryAfter: Self.retry) == .chunks([0, 1, 2, 3]))
        for (number, index) in ([10, 11, 12, 13] as [UInt64]).enumerated() {
            let chunk = SnapshotChunk.sound(UInt32(number), at: index, chain: Self.chain(index))
            _ = transfer.chunkReceived(chunk, from: Self.source)
        }
        #expect(transfer.entriesReceived(Self.log(11), toReach: 0) == .wantsMore)
        // Behind 12 all is there.
        #expect(transfer.entriesReceived(Self.log(13), toReach: 0) == .isCut)
        #expect(transfer.chunks.map { $0?.index } == [nil, nil, 12, 13])
        #expect(transfer.tail.isEmpty)
        #expect(transfer.heldThrough(0) == 0)
        #expect(transfer.isFetching)
        #expect(transfer.wanted(now: .at(0), retryAfter: Self.retry) == .chunks([0, 1]), "they are asked for at once")
    }

    @Test func `a gap in what is sent is a cut, too`() {
        var transfer = Self.fetching([10, 12])
        #expect(transfer.entriesReceived(Self.log(11, 13), toReach: 0) == .isCut)
        #expect(transfer.chunks.map { $0?.index } == [nil, 12])
        #expect(transfer.tail.isEmpty)
    }

    // MARK: - One history

    @Test func `chunks and log of one history belong together`() {
        var transfer = Self.fetching([12, 10, 11])
        #expect(!transfer.isOfOneHistory, "chunks are ahead of the log")
        _ = transfer.entriesReceived(Self.log(11), toReach: 0)
        #expect(!transfer.isOfOneHistory, "one still is")
        _ = transfer.entriesReceived(Self.log(12), toReach: 0)
        #expect(transfer.isOfOneHistory)
        _ = transfer.entriesReceived(Self.log(13), toReach: 13)
        #expect(transfer.isOfOneHistory)
    }

    @Test(arguments: [0, 1, 2])
    func `a chunk of another history is seen, whichever it is`(_ stray: Int) {
        var transfer = StateTransfer()
        transfer.begin(from: Self.source, chunkCount: 3)
        for (number, index) in ([12, 10, 11] as [UInt64]).enumerated() {
            let chain = Self.chain(index) ^ (number == stray ? 2 : 0)
            _ = transfer.chunkReceived(.sound(UInt32(number), at: index, chain: chain), from: Self.source)
        }
        _ = transfer.entriesReceived(Self.log(11, 12), toReach: 0)
        #expect(transfer.tail.count == 2)
        #expect(!transfer.isOfOneHistory)
    }

    @Test func `an entry of another history is seen`() {
        var transfer = Self.fetching([10, 10])
        _ = transfer.entriesReceived(Self.log(11), toReach: 14)
        let stray = Entry.made(12, after: Self.chain(11) ^ 2)
        _ = transfer.entriesReceived([stray], toReach: 14)
        #expect(transfer.tail == Self.log(11) + [stray])
        #expect(!transfer.isOfOneHistory)
    }

    @Test func `without a log, all chunks are as of one place`() {
        #expect(Self.fetching([10, 10, 10]).isOfOneHistory)
        var transfer = Self.fetching([10, nil])
        _ = transfer.chunkReceived(.sound(1, at: 10, chain: Self.chain(10) ^ 2), from: Self.source)
        #expect(!transfer.isOfOneHistory)
    }

    // MARK: - The end

    @Test func `who cancels has nothing, and what is written is written on`() {
        var transfer = Self.fetching([10, 10])
        _ = transfer.entriesReceived(Self.log(11), toReach: 14)
        transfer.taken()
        #expect(!transfer.isFetching)
        #expect(transfer.chunks.isEmpty)
        #expect(transfer.tail.isEmpty)
        #expect(transfer.isWriting)
        transfer.begin(from: Life(2), chunkCount: 1)
        #expect(transfer.isWriting, "another may begin meanwhile")
        transfer.cancel()
        #expect(transfer.source == nil)
        #expect(transfer.chunks.isEmpty)
        #expect(transfer.isWriting)
        transfer.writeEnded()
        #expect(transfer == StateTransfer())
    }
}

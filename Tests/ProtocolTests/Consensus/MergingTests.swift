// Taking in what was known on the other side of a partition, event by event.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct MergingTests {
    private static let source = Life(3, life: 7)
    private static let position = Position(index: 20, chain: 99)
    private static let pause = Duration.milliseconds(250)
    private static let updates: [Update] = [.setInterval(1), .setInterval(2), .setInterval(3)]

    private static func sound(_ number: UInt32) -> SnapshotChunk { .sound(number, at: 20, chain: 99) }

    /// One that began at 0 ms.
    private static func merging(hasSwarms: Bool = true) -> Merging {
        var merging = Merging()
        merging.begin(source, position, hasSwarms: hasSwarms, now: .at(0))
        return merging
    }

    /// Merges a history of no chunks.
    private static func merge(_ chain: UInt64, into merging: inout Merging) {
        merging.begin(source, Position(index: 20, chain: chain), hasSwarms: true, now: .at(0))
        _ = merging.chunkReceived(.none(0, at: 20), from: source)
        _ = merging.wanted(applied: 0, isIdle: true, now: .at(0), pause: pause)
    }

    /// How it ended, where it did.
    private static func outcome(_ next: Merging.NextRequest) -> Merging.Outcome? {
        if case .done(let outcome) = next { outcome } else { nil }
    }

    private func wanted(_ merging: inout Merging, at milliseconds: Int64) -> Merging.NextRequest {
        merging.wanted(applied: 100, isIdle: true, now: .at(milliseconds), pause: Self.pause)
    }

    @Test func `at first nobody is merged, and nothing done`() {
        var merging = Merging()
        #expect(merging.source == nil)
        #expect(!merging.isUnderWay)
        #expect(!merging.hasMerged(Self.position))
        #expect(merging.chunkReceived(Self.sound(0), from: Self.source) == .ignored)
        merging.take(Self.updates)
        #expect(merging.nextUpdate() == nil)
        merging.gathered(by: 9)
        merging.leftOut()
        merging.beginAnew()
        #expect(wanted(&merging, at: 9999) == .nothing)
        #expect(merging == Merging())
    }

    @Test func `without the other's swarms it ends with chunk 0, or goes on to the torrent files where there are any`()
    {
        for hasFiles in [false, true] {
            var merging = Self.merging(hasSwarms: false)
            #expect(!merging.takesSwarms)
            merging.take([], hasFiles: hasFiles)
            let next = wanted(&merging, at: 0)
            #expect(hasFiles ? next == .chunk(1) : Self.outcome(next) != nil)
        }
    }

    @Test func `a late answer to what was asked before all began anew takes the place of nothing`() {
        var merging = Self.merging()
        #expect(merging.chunkReceived(Self.sound(0), from: Self.source) == .wanted)
        merging.take([])
        #expect(wanted(&merging, at: 10) == .chunk(1))
        // An entry is refused, and chunk 0 brings something this time.
        merging.beginAnew()
        #expect(wanted(&merging, at: 300) == .chunk(0))
        #expect(merging.chunkReceived(Self.sound(0), from: Self.source) == .wanted)
        merging.take(Self.updates)
        #expect(merging.chunkReceived(Self.sound(1), from: Self.source) == .ignored)
        #expect(merging.chunkReceived(.none(1, at: 20), from: Self.source) == .ignored)
        for update in Self.updates { #expect(merging.nextUpdate() == update) }
        #expect(wanted(&merging, at: 310) == .chunk(1))
        #expect(merging.chunkReceived(Self.sound(1), from: Self.source) == .wanted)
    }

    @Test func `one merge is under way at a time`() async {
        await #expect(processExitsWith: .failure) {
            var merging = Merging()
            merging.begin(Life(3), .start, hasSwarms: true, now: Instant(nanoseconds: 0))
            merging.begin(Life(2), .start, hasSwarms: true, now: Instant(nanoseconds: 0))
        }
    }

    @Test func `one that was cancelled leaves room for the next, and is to be done still`() {
        var merging = Self.merging()
        #expect(merging.source == Self.source && merging.isUnderWay)
        merging.take(Self.updates)
        merging.cancel()
        #expect(merging == Merging())
        merging.begin(Life(2), Self.position, hasSwarms: true, now: .at(0))
        #expect(merging.source == Life(2))
        #expect(merging.nextUpdate() == nil)
    }

    // MARK: - Chunks

    @Test(arguments: [(249, .nothing), (250, .chunk(0)), (251, .chunk(0))] as [(Int64, Merging.NextRequest)])
    func `the chunk that is awaited is asked for again after a pause`(_ now: Int64, _ next: Merging.NextRequest) {
        var merging = Self.merging()
        #expect(wanted(&merging, at: now) == next)
        #expect(wanted(&merging, at: 250) == (next == .nothing ? .chunk(0) : .nothing), "and then waited for")
    }

    @Test(
        arguments: [
            (sound(0), source, .wanted),
            (.none(0, at: 20), source, .complete),
            (sound(0), Life(3, life: 8), .ignored),
            (sound(0), Life(2, life: 7), .ignored),
            (sound(1), source, .ignored),
            (.none(1, at: 20), source, .ignored),
            (SnapshotChunk(number: 0, index: 20, bytes: [1]), source, .ignored),
            (SnapshotChunk(number: 0, index: 21, bytes: sound(0).bytes), source, .ignored),
            // It has gone on deciding, or over to another history.
            (.sound(0, at: 21, chain: 99), source, .cancelled),
            (.sound(0, at: 19, chain: 99), source, .cancelled),
            (.sound(0, at: 20, chain: 98), source, .cancelled),
            (.none(0, at: 21), source, .cancelled),
        ] as [(SnapshotChunk, Life, Merging.Reception)])
    func `a chunk is taken in that is awaited, sound, and of the history that was told`(
        _ chunk: SnapshotChunk, _ sender: Life, _ reception: Merging.Reception
    ) {
        let before = Self.merging()
        var merging = before
        #expect(merging.chunkReceived(chunk, from: sender) == reception)
        #expect(merging.isUnderWay == (reception != .cancelled))
        if reception == .ignored { #expect(merging == before) }
        #expect(!merging.hasMerged(Self.position))
    }

    @Test func `what comes after the last chunk is ignored, also if its sender has gone on`() {
        var merging = Self.merging()
        #expect(merging.chunkReceived(.none(0, at: 20), from: Self.source) == .complete)
        #expect(merging.chunkReceived(.none(0, at: 20), from: Self.source) == .ignored)
        #expect(merging.chunkReceived(.none(0, at: 21), from: Self.source) == .ignored)
        #expect(merging.isUnderWay)
    }

    @Test func `a chunk that comes twice is taken in once`() {
        var merging = Self.merging()
        #expect(merging.chunkReceived(Self.sound(0), from: Self.source) == .wanted)
        merging.take(Self.updates)
        #expect(merging.chunkReceived(Self.sound(0), from: Self.source) == .ignored)
        #expect(merging.chunkReceived(Self.sound(1), from: Self.source) == .ignored, "one after another")
        while merging.nextUpdate() != nil {}
        #expect(merging.chunkReceived(Self.sound(1), from: Self.source) == .wanted)
    }

    // MARK: - Updates

    @Test func `the updates of a chunk go into the log in order, and then the next chunk is asked for at once`() {
        var merging = Self.merging()
        merging.take(Self.updates)
        for update in Self.updates {
            #expect(wanted(&merging, at: 0) == .nothing, "the updates of one chunk at a time")
            #expect(merging.nextUpdate() == update)
        }
        #expect(merging.nextUpdate() == nil)
        #expect(wanted(&merging, at: 0) == .chunk(1))
        #expect(wanted(&merging, at: 249) == .nothing)
        #expect(wanted(&merging, at: 250) == .chunk(1))
    }

    @Test func `where swarms do not count, the first chunk is all`() throws {
        var merging = Self.merging(hasSwarms: false)
        merging.take([.setInterval(1)])
        _ = merging.nextUpdate()
        let outcome = try #require(Self.outcome(wanted(&merging, at: 0)))
        #expect(outcome.updates == 1)
        #expect(outcome.leftOut == 0)
    }

    @Test func `after a refusal all is asked for anew, from the first chunk`() {
        var merging = Self.merging()
        merging.take(Self.updates)
        merging.gathered(by: 500)
        merging.beginAnew()
        #expect(merging.nextUpdate() == nil)
        #expect(wanted(&merging, at: 0) == .chunk(0))
        _ = merging.chunkReceived(.none(0, at: 20), from: Self.source)
        merging.beginAnew()
        #expect(wanted(&merging, at: 250) == .chunk(0), "that it was complete is past")
        _ = merging.chunkReceived(.none(0, at: 20), from: Self.source)
        let next = merging.wanted(applied: 0, isIdle: false, now: .at(250), pause: Self.pause)
        #expect(Self.outcome(next) != nil, "no entry is to be waited for")
    }

    // MARK: - The end

    @Test(
        arguments: [(8, false, false), (9, false, true), (10, false, true), (8, true, true)] as [(UInt64, Bool, Bool)])
    func `it is done when the last of its updates is decided, or nothing is under way`(
        _ applied: UInt64, _ isIdle: Bool, _ isDone: Bool
    ) {
        var merging = Self.merging()
        merging.take(Self.updates)
        for index in 8...9 as ClosedRange<UInt64> {
            _ = merging.nextUpdate()
            merging.gathered(by: index)
        }
        _ = merging.nextUpdate()
        merging.leftOut()
        _ = merging.chunkReceived(.none(1, at: 20), from: Self.source)
        let next = merging.wanted(applied: applied, isIdle: isIdle, now: .at(0), pause: Self.pause)
        let outcome = Self.outcome(next)
        #expect((outcome != nil) == isDone)
        #expect(outcome != nil || next == .nothing)
        #expect(outcome?.source == (isDone ? Self.source : nil))
        #expect(outcome?.position == (isDone ? Self.position : nil))
        #expect(outcome?.updates == (isDone ? 2 : nil))
        #expect(outcome?.leftOut == (isDone ? 1 : nil))
        #expect(merging.isUnderWay == !isDone)
        #expect(merging.hasMerged(Self.position) == isDone)
    }

    /// The entry that empties this side's swarms may never be decided, and the other's are of account then.
    @Test(arguments: [(false, true, false), (false, false, true), (true, true, true)])
    func `where the other's swarms do not count, it is not done before this side's are gone`(
        _ hasSwarms: Bool, _ isEmptying: Bool, _ isDone: Bool
    ) {
        var merging = Self.merging(hasSwarms: hasSwarms)
        merging.take([])
        _ = merging.chunkReceived(.none(1, at: 20), from: Self.source)
        let next = merging.wanted(
            applied: 100, isIdle: true, isEmptying: isEmptying, now: .at(0), pause: Self.pause)
        #expect((Self.outcome(next) != nil) == isDone)
        #expect(merging.hasMerged(Self.position) == isDone)
    }

    @Test func `it is not done before its last chunk has come`() {
        var merging = Self.merging()
        merging.take([])
        #expect(wanted(&merging, at: 0) == .chunk(1))
        _ = merging.chunkReceived(.none(1, at: 20), from: Self.source)
        #expect(Self.outcome(wanted(&merging, at: 0))?.updates == 0)
        #expect(wanted(&merging, at: 0) == .nothing, "it is done once")
    }

    @Test func `a history is known by what it comes to, the latest of them as long as there is room`() {
        var merging = Merging()
        for chain in 1...UInt64(Merging.maxMergedCount) { Self.merge(chain, into: &merging) }
        func isKnown(_ chain: UInt64) -> Bool { merging.hasMerged(Position(index: 7, chain: chain)) }
        #expect(isKnown(1))
        #expect(isKnown(63))
        #expect(!isKnown(64))
        Self.merge(64, into: &merging)
        #expect(!isKnown(1))
        #expect(isKnown(2))
        #expect(isKnown(64))
    }
}

// What a tracker of a group remembers of requests that were settled: for how long, behind which entry, and how many.

import Primitives
import Testing
import TrackerLogic

@Suite("Recent keys")
struct RecentKeysTests {
    private static func at(_ seconds: Double) -> Instant { Instant(nanoseconds: Int64(seconds * 1e9)) }

    @Test
    func `a copy is one that comes before its client would ask anew, and not later`() {
        var keys = RecentKeys()
        keys.insert(7, at: 1, now: Self.at(100))
        #expect(keys.isRecent(7, now: Self.at(111.9)))
        #expect(!keys.isRecent(7, now: Self.at(112)))
        #expect(keys.isRecent(7, within: RecentKeys.memoryOfOthers, now: Self.at(126.9)))
        #expect(!keys.isRecent(8, now: Self.at(100)))
        // Settled once more, as the client has asked anew.
        keys.insert(7, at: 2, now: Self.at(115))
        #expect(keys.isRecent(7, now: Self.at(120)))
    }

    @Test
    func `what another tracker forwards was settled behind its index, or not as far as is known`() {
        var keys = RecentKeys()
        keys.insert(7, at: 5, now: Self.at(0))
        #expect(keys.isSettled(7, behind: 4))
        #expect(!keys.isSettled(7, behind: 5))
        #expect(!keys.isSettled(8, behind: 0))
        keys.insert(7, at: 3, now: Self.at(1))
        #expect(keys.isSettled(7, behind: 4), "an index does not go back")
    }

    @Test
    func `keys that came with a state may not be all that its entries have settled`() {
        var keys = RecentKeys()
        keys.insert([SettledKey(key: 1, seconds: 0), SettledKey(key: 2, seconds: 0)], through: 9, now: Self.at(0))
        #expect(keys.completeSince == 9)
        #expect(keys.isSettled(1, behind: 8) && keys.isSettled(2, behind: 8))
        keys.insert([], through: 4, now: Self.at(0))
        #expect(keys.completeSince == 9, "what was missing once is missing still")
    }

    /// A few kinds of numbers that collide in the low bits, by which the index of slots looks first.
    private static func key(_ random: inout RandomStream) -> UInt64 {
        random.below(4 as UInt64) << 40 | random.below(12_000 as UInt64)
    }

    @Test
    func `the oldest keys make room, and it is known behind which entry all are there still`() {
        struct Noted {
            var key: UInt64
            var index: UInt64
            var time: Double
        }
        var random = RandomStream(seed: 71)
        var keys = RecentKeys()
        var model: [Noted] = []
        var places: [UInt64: Int] = [:]
        var (first, completeSince) = (0, 0 as UInt64)
        for step in 0..<30_000 {
            let (key, index, now) = (Self.key(&random), UInt64(step / 3), Double(step) / 1000)
            keys.insert(key, at: index, now: Self.at(now))
            if let place = places[key] {
                (model[place].index, model[place].time) = (index, now)
            } else {
                places[key] = model.count
                model.append(Noted(key: key, index: index, time: now))
                if model.count - first > RecentKeys.maxCount {
                    completeSince = max(completeSince, model[first].index)
                    places[model[first].key] = nil
                    first += 1
                }
            }
            #expect(keys.completeSince == completeSince)
            let asked = Self.key(&random)
            let known = places[asked].map { model[$0] }
            let isRecent = known.map { now - $0.time < 12 } ?? false
            #expect(keys.isRecent(asked, now: Self.at(now)) == isRecent)
            let behind = index - UInt64(random.below(Int(min(index, 5_000)) + 1))
            #expect(keys.isSettled(asked, behind: behind) == (known.map { $0.index > behind } ?? false))
        }
        #expect(completeSince > 0, "the test has to fill it")
    }
}

// The flat index and the flat table against dictionaries.

import Primitives
import Testing

@Suite("Flat tables")
struct TableTests {
    /// How hashes fall: well spread, into one lump, or onto the ends of the table.
    enum Spread: CaseIterable, Sendable {
        case wide
        case lumps
        case ends
        case one

        func hash(_ value: Int) -> UInt32 {
            switch self {
            case .wide: UInt32(truncatingIfNeeded: mixed(UInt64(value)))
            case .lumps: UInt32(value % 7) << 28
            case .ends: value % 2 == 0 ? .max - UInt32(value % 3) : UInt32(value % 3)
            case .one: 0xDEAD_BEEF
            }
        }
    }

    @Test(arguments: Spread.allCases)
    func `an index finds what was put in, and only that`(_ spread: Spread) {
        var random = RandomStream(seed: 81)
        var index = SlotIndex()
        /// Which value lies in which slot, as the owner of the index keeps it.
        var slots: [Int?] = []
        var model: [Int: Int] = [:]
        let bound = spread == .one ? 60 : 400
        var wrong = 0
        for step in 0..<rounds(60_000) {
            let value = random.below(bound)
            let isGrowing = step / 4_000 % 2 == 0
            func find(_ value: Int) -> Int? { index.find(spread.hash(value)) { slots[$0] == value } }
            if find(value) != model[value] { wrong += 1 }
            if let slot = model[value] {
                if random.oneIn(3) {
                    // The owner moves the record.
                    slots.append(value)
                    slots[slot] = nil
                    index.move(spread.hash(value), from: slot, to: slots.count - 1)
                    model[value] = slots.count - 1
                } else if random.oneIn(isGrowing ? 10 : 2) {
                    index.remove(spread.hash(value), slot: slot)
                    slots[slot] = nil
                    model[value] = nil
                }
            } else if random.oneIn(isGrowing ? 2 : 10) {
                slots.append(value)
                index.insert(spread.hash(value), slot: slots.count - 1)
                model[value] = slots.count - 1
            }
            if index.count != model.count { wrong += 1 }
            if step % 500 == 0 { for value in 0..<bound where find(value) != model[value] { wrong += 1 } }
        }
        #expect(wrong == 0)
        index.removeAll()
        #expect(index.count == 0)
        #expect(index.find(spread.hash(1)) { _ in true } == nil)
    }

    private struct Record: FlatRecord, Equatable {
        var key: Int
        var value: Int
        var spread: Spread

        func keyHash(_ secret: UInt64) -> UInt64 { UInt64(spread.hash(key)) ^ secret }
        func hasSameKey(as other: Self) -> Bool { key == other.key }
    }

    @Test(arguments: Spread.allCases)
    func `a table does what a dictionary does`(_ spread: Spread) {
        var random = RandomStream(seed: 82)
        var table = FlatTable<Record>(secret: 99)
        var model: [Int: Int] = [:]
        var wrong = 0
        for step in 0..<rounds(60_000) {
            let record = Record(key: random.below(spread == .one ? 60 : 300), value: step, spread: spread)
            let old = model[record.key]
            if table.find(record)?.value != old || table.contains(record) != (old != nil) { wrong += 1 }
            if random.oneIn(step / 3_000 % 2 == 0 ? 2 : 4) {
                if table.put(record)?.value != old { wrong += 1 }
                model[record.key] = record.value
            } else {
                if table.remove(record)?.value != old { wrong += 1 }
                model[record.key] = nil
            }
            if table.count != model.count { wrong += 1 }
        }
        #expect(wrong == 0)
        let left = table.records.reduce(into: [Int: Int]()) { $0[$1.key] = $1.value }
        #expect(left == model)
    }

    @Test func `an index grows by no more than it needs`() {
        var index = SlotIndex()
        for slot in 0..<100_000 { index.insert(UInt32(truncatingIfNeeded: mixed(UInt64(slot))), slot: slot) }
        #expect(index.count == 100_000)
        #expect((800_000...1_600_000).contains(index.byteCount), "\(index.byteCount) bytes")
    }

    @Test func `hashes of bytes depend on the secret, on every byte and on the length`() {
        let base: [UInt8] = [1, 2, 3, 4]
        let hashes = [
            hash(base, secret: 1), hash(base, secret: 2), hash([1, 2, 3], secret: 1), hash([1, 2, 4, 3], secret: 1),
            hash([0, 1, 2, 3, 4], secret: 1), hash([1, 2, 3, 4, 0], secret: 1), hash([], secret: 1),
            hash([0], secret: 1),
        ]
        #expect(Set(hashes).count == hashes.count)
    }
}

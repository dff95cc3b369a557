// Records in blocks of a few sizes, in one array.

/// Records in blocks of a few sizes, in one array: small swarms stand side by side without a header or a pointer each.
///
/// Freed blocks are handed out again by size. When many records lie free, the owner compacts: it copies what lives
/// into a new pool.
struct BlockPool<Record: Sendable>: Sendable {
    /// The sizes of blocks, in records; a list that outgrows the last becomes a large swarm.
    static var sizes: [8 of Int] { [1, 2, 3, 4, 6, 8, 12, 16] }
    static var largest: Int { 16 }

    private(set) var records: [Record] = []
    /// Where free blocks begin, by size class.
    private var free: [8 of [UInt32]] = [[], [], [], [], [], [], [], []]
    private(set) var freeRecords = 0

    /// The class of the smallest block for so many records, 1…16.
    static func sizeClass(_ count: Int) -> Int {
        switch count {
        case ...1: 0
        case 2: 1
        case 3: 2
        case 4: 3
        case ...6: 4
        case ...8: 5
        case ...12: 6
        default: 7
        }
    }

    /// The records of a block of this class.
    static func capacity(_ sizeClass: Int) -> Int { sizes[sizeClass] }

    subscript(place: Int) -> Record {
        get { records[place] }
        set { records[place] = newValue }
        _modify { yield &records[place] }
    }

    /// - Returns: the first record of a block whose contents mean nothing yet.
    mutating func allocate(_ sizeClass: Int, filler: Record) -> Int {
        let size = BlockPool.capacity(sizeClass)
        if let place = free[sizeClass].popLast() {
            freeRecords -= size
            return Int(place)
        }
        let place = records.count
        if place + size > records.capacity {
            // Growth by an eighth: the table is large, and doubling would leave half of it empty.
            records.reserveCapacity(max(place + place / 8, place + size, 8))
        }
        for _ in 0..<size { records.append(filler) }
        return place
    }

    mutating func release(_ place: Int, _ sizeClass: Int) {
        free[sizeClass].append(UInt32(place))
        freeRecords += BlockPool.capacity(sizeClass)
    }

    /// Whether a good part of the pool lies free, so that compacting is worth its copy.
    var isSparse: Bool { freeRecords > 64 && freeRecords > records.count / 8 }

    var byteCount: Int { records.capacity * MemoryLayout<Record>.stride }
}

extension BlockPool where Record: Archived {
    mutating func walk(_ archive: inout Archive) {
        records.walk(&archive)
        for sizeClass in 0..<8 { free[sizeClass].walk(&archive) }
        freeRecords.walk(&archive)
    }
}

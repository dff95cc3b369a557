// How the process asks the kernel for memory.

import Foundation

/// How the process asks the kernel for memory.
enum Memory {
    /// Arrays from this size on get pages of their own, which go back to the kernel when the array grows out of them.
    ///
    /// The swarm table consists of some thousand arrays that all grow at about the same pace. Side by side in one
    /// heap, what each leaves behind when it moves is too small for the others: a table of 1 M torrents took 320 MB
    /// where its arrays take 195 MB. With pages of their own it takes 249 MB, and the announces are answered as fast.
    private static let ownPagesFrom: Int32 = 8_192
    /// Mappings at most; Linux allows a process 65,530, and libraries want some.
    private static let maxMappings: Int32 = 30_000
    /// What a heap may keep free at its end, and how much it asks for at a time, in bytes.
    ///
    /// Messages and entries come and go by the thousand each second: with glibc's 128 KiB, each burst gave its pages
    /// back and faulted them in.
    private static let keptFree: Int32 = 8 << 20
    private static let heapStep: Int32 = 1 << 20

    /// To be called once, before anything large is allocated.
    ///
    /// An allocator without `mallopt` stays as it is.
    static func prepare() {
        // glibc declares it in malloc.h, which Swift's module of it leaves out; so do its constants.
        guard let symbol = dlsym(nil, "mallopt") else { return }
        let mallopt = unsafeBitCast(symbol, to: (@convention(c) (_ parameter: Int32, _ value: Int32) -> Int32).self)
        let (trimThreshold, topPad, mmapThreshold, mmapMax): (Int32, Int32, Int32, Int32) = (-1, -2, -3, -4)
        _ = mallopt(trimThreshold, keptFree)
        _ = mallopt(topPad, heapStep)
        _ = mallopt(mmapThreshold, ownPagesFrom)
        _ = mallopt(mmapMax, maxMappings)
    }
}

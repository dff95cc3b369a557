// What a run with a mutant alive may take: then the process ends, by a signal.

import MutationTable

/// What a run with a mutant alive may take.
enum Limits {
    /// Seconds of processor time: many times what any run takes without a mutant.
    private static let seconds: Int32 = 10
    /// Bytes of memory: likewise.
    private static let memory: UInt64 = 3 << 30

    /// Runs something; ends the process by `SIGPROF` where it takes too long, by a trap where it takes too much.
    static func within<T>(_ body: () -> T) -> T {
        mutation_limit(seconds, memory)
        let result = body()
        mutation_limit(0, memory)
        return result
    }
}

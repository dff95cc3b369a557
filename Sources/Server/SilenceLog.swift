// When the log says that nobody is answered, and why.

import Web

/// When the log says that nobody is answered, and why: when that has lasted from one look to the next, and not again
/// until the reason changes.
package struct SilenceLog {
    package enum Line: Equatable {
        case silent(Finding)
        /// What was told is over.
        case over
    }

    /// The reason at the last look, and the one that was told.
    private var last: Finding?
    private var told: Finding?

    package init() {}

    package mutating func look(_ findings: [Finding]) -> Line? {
        let now = findings.first { $0.isSilence }
        defer { last = now }
        guard let now else {
            guard told != nil else { return nil }
            told = nil
            return .over
        }
        // Counts in the details rise all the time.
        guard now.code == last?.code, now.words == last?.words else { return nil }
        guard now.code != told?.code || now.words != told?.words else { return nil }
        told = now
        return .silent(now)
    }
}

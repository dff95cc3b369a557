// Makes a failure smaller.

/// Makes a failure smaller: fewer of this, less of that, as long as it still fails.
///
/// Delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002, `ddmin`), with a
/// bound on how often the failure is tried. Whether something still fails is asked of a predicate that must always
/// answer the same for the same thing.
package struct Shrinker: Sendable {
    /// Tries that are left.
    package private(set) var triesLeft: Int
    /// Tries that were made.
    package private(set) var tries = 0

    /// A search that tries so many candidates at most.
    package init(maxTries: Int) { triesLeft = maxTries }

    /// Finds a part of a list that still fails, of which no single item can be left out.
    ///
    /// - Parameters:
    ///   - items: fails as it is.
    ///   - stillFails: whether a part of the list, in the same order, fails.
    /// - Returns: the least that was found; where the tries run out, perhaps not the least there is.
    package mutating func fewest<Item>(_ items: [Item], stillFails: ([Item]) -> Bool) -> [Item] {
        guard !items.isEmpty else { return items }
        if holds([], stillFails) { return [] }
        var kept = items
        var parts = 2
        while kept.count >= 2, triesLeft > 0 {
            if let less = reduced(kept, parts, stillFails) {
                kept = less.items
                parts = max(2, less.isOnePart ? 2 : parts - 1)
            } else if parts < kept.count {
                parts = min(kept.count, parts * 2)
            } else {
                break
            }
        }
        return kept
    }

    /// One round of `ddmin`: one of so many parts alone, or all but one.
    private mutating func reduced<Item>(
        _ items: [Item], _ parts: Int, _ stillFails: ([Item]) -> Bool
    ) -> (items: [Item], isOnePart: Bool)? {
        let bounds = (0...parts).map { $0 * items.count / parts }
        for part in 0..<parts {
            let one = Array(items[bounds[part]..<bounds[part + 1]])
            if holds(one, stillFails) { return (one, true) }
        }
        guard parts > 2 else { return nil }
        for part in 0..<parts {
            let others = Array(items[..<bounds[part]]) + Array(items[bounds[part + 1]...])
            if holds(others, stillFails) { return (others, false) }
        }
        return nil
    }

    /// Finds the least number that still fails.
    ///
    /// - Parameters:
    ///   - value: fails as it is.
    ///   - floor: no less than this is tried.
    ///   - stillFails: whether a number fails.
    /// - Returns: the least that was found; where the tries run out, perhaps not the least there is.
    package mutating func least(_ value: Int, downTo floor: Int, stillFails: (Int) -> Bool) -> Int {
        var kept = value
        var step = kept - floor
        while step > 0, triesLeft > 0 {
            let candidate = kept - step
            if candidate >= floor, holds(candidate, stillFails) {
                kept = candidate
                step = min(step, kept - floor)
            } else {
                step /= 2
            }
        }
        return kept
    }

    /// Tries one thing, if a try is left.
    package mutating func holds<Candidate>(_ candidate: Candidate, _ stillFails: (Candidate) -> Bool) -> Bool {
        guard triesLeft > 0 else { return false }
        triesLeft -= 1
        tries += 1
        return stillFails(candidate)
    }
}

// All mutants that were found, numbered.

/// All mutants that were found, numbered.
struct MutantBook {
    /// What the table of `Judge/Sources/MutationTable` has room for.
    static let limit = 1 << 15

    private(set) var mutants: [Mutant] = []
    /// Points, numbered from 1.
    private(set) var points = 0
    private var seen: [String: Int] = [:]

    /// Makes a new point, whose mutants would say what `afters` has, from the first of them that is a mistake.
    ///
    /// - Returns: the point's number.
    mutating func add(
        _ kind: Operator, file: String, line: Int, place: String, before: String, afters: [String], first: Int = 0
    ) -> Int {
        points += 1
        for (number, after) in afters.enumerated() where number >= first {
            var mutant = Mutant(
                point: points, number: number, kind: kind, file: file, line: line, place: place,
                before: Self.short(before), after: Self.short(after))
            let key = mutant.identity
            mutant.ordinal = seen[key, default: 0]
            seen[key, default: 0] += 1
            mutants.append(mutant)
        }
        return points
    }

    /// On one line, 80 characters at most.
    private static func short(_ text: String) -> String {
        let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return words.count <= 80 ? words : String(words.prefix(79)) + "…"
    }
}

// What is wrong with a configuration.

import Primitives

/// What is wrong with a configuration: everything at once, each with its place and what would be right.
public struct ConfigurationError: Error, Equatable, CustomStringConvertible {
    /// At least one, in the order of the sources: file (by line), environment, flags.
    public var problems: [ConfigurationProblem]

    /// Takes at least one problem.
    public init(problems: [ConfigurationProblem]) { self.problems = problems }

    /// A line for each problem.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// One thing that is wrong with a configuration.
public struct ConfigurationProblem: Sendable, Equatable, CustomStringConvertible {
    /// Where the value was given.
    public var place: Place
    /// What is wrong and what would be right, in a sentence.
    public var message: String
    /// The setting to which the message belongs; nil where it is no setting's.
    public var key: SettingKey?

    /// Takes the fields as they are.
    public init(_ place: Place, _ message: String, key: SettingKey? = nil) {
        self.place = place
        self.message = message
        self.key = key
    }

    /// As in `tracker.toml:9:12: announce.interval = "soon" is not a duration; …`.
    public var description: String {
        switch place {
        case .file(let name, let position?), .kept(let name, let position?):
            "\(name):\(position.line):\(position.column): \(message)"
        case .file(let name, nil), .kept(let name, nil): "\(name): \(message)"
        case .environment, .flag, .console, .nowhere: message
        }
    }

    /// Where a value was given.
    public enum Place: Sendable, Hashable {
        case file(String, TextPosition?)
        /// The file in which the console keeps settings.
        case kept(String, TextPosition?)
        /// The name of the variable; its messages begin with it.
        case environment(String)
        /// The flag, with its dashes; its messages begin with it.
        case flag(String)
        /// The console of the process that runs.
        case console
        /// A default, or a value that is missing.
        case nowhere
    }
}

/// A place in a text, both counted from 1; columns are Unicode scalars.
public struct TextPosition: Sendable, Hashable, Comparable {
    /// From 1.
    public var line: Int
    /// From 1, in Unicode scalars.
    public var column: Int

    /// Takes the fields as they are.
    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// By line, then by column.
    public static func < (left: Self, right: Self) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

/// The candidate that a mistyped word most likely meant.
///
/// - Returns: nil where none is near: more than a third of its letters, or more than three, would have to change.
func nearest(_ word: String, among candidates: [String]) -> String? {
    let ranked = candidates.map { (candidate: $0, distance: editDistance(word, $0)) }
    guard let best = ranked.min(by: { $0.distance < $1.distance }),
        best.distance <= min(3, max(1, word.count / 3))
    else { return nil }
    return best.candidate
}

/// Insertions, deletions, substitutions and swaps of neighbours that lead from one word to the other.
///
/// - Complexity: O(n·m); words beyond 64 letters count as entirely different.
func editDistance(_ left: String, _ right: String) -> Int {
    let (a, b) = (Array(left.lowercased().unicodeScalars), Array(right.lowercased().unicodeScalars))
    guard a.count <= 64, b.count <= 64 else { return max(a.count, b.count) }
    guard !a.isEmpty, !b.isEmpty else { return max(a.count, b.count) }
    var before: [Int] = []
    var previous = Array(0...b.count)
    for i in 1...a.count {
        var current = [i]
        for j in 1...b.count {
            var best = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1))
            if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] { best = min(best, before[j - 2] + 1) }
            current.append(best)
        }
        (before, previous) = (previous, current)
    }
    return previous[b.count]
}

// What the standard library does for text, but not where it is embedded.

extension Sequence where Element: CustomStringConvertible {
    /// `[1, 2]`, as an array of such elements is printed.
    public var inBrackets: String { "[\(map { $0.description }.joined(separator: ", "))]" }
}

extension String {
    /// Whether these very bytes stand somewhere in it.
    public func hasPart(_ part: String) -> Bool {
        let (own, wanted) = (Array(utf8), Array(part.utf8))
        guard own.count >= wanted.count else { return false }
        return (0...own.count - wanted.count).contains { own[$0...].starts(with: wanted) }
    }
}

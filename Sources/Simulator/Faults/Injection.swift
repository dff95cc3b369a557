// Faults by name: names do not depend on what else happens, so that the rest can be left out.

/// A fault that is injected at a bad moment.
public struct Injection: Sendable, Hashable, CustomStringConvertible {
    /// The number of the tracker, by its place from 1.
    public var tracker: Int
    /// The moment at which it is injected.
    public var moment: Moment
    /// Counts such moments of this tracker, from 1.
    public var count: Int

    /// Takes the fields as they are.
    public init(tracker: Int, moment: Moment, count: Int) {
        self.tracker = tracker
        self.moment = moment
        self.count = count
    }

    /// Reads what `description` writes.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let tracker = Int(parts[0]), let count = Int(parts[2]), tracker >= 1, count >= 1,
            let moment = Moment.allCases.first(where: { "\($0)" == parts[1] })
        else { return nil }
        self.init(tracker: tracker, moment: moment, count: count)
    }

    /// For example `2-okSent-1`.
    public var description: String { "\(tracker)-\(moment)-\(count)" }
}

/// A fault by the clock that is carried out, perhaps in part.
public struct ChosenFault: Sendable, Hashable, CustomStringConvertible {
    /// Of the lasting, and of the strength, that was drawn, no less than one part in so many.
    public static let divisorRange = 1...1024

    /// From 1.
    public var number: Int
    /// It is so many times as short, and as weak, as was drawn.
    public var divisor: Int

    /// Takes the fields as they are.
    public init(_ number: Int, dividedBy divisor: Int = 1) {
        self.number = number
        self.divisor = divisor
    }

    /// Reads what `description` writes.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let number = Int(parts[0]), number >= 1 else { return nil }
        let divisor = parts.count == 1 ? 1 : Int(parts[1])
        guard let divisor, ChosenFault.divisorRange.contains(divisor) else { return nil }
        self.init(number, dividedBy: divisor)
    }

    /// For example `17`, or `17/4` for a quarter of it.
    public var description: String { divisor == 1 ? "\(number)" : "\(number)/\(divisor)" }
}

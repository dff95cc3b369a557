// Which frames of a sender have come, where lost ones are not asked for again.

/// Which frames of a sender have come, where lost ones are not asked for again: a bit for each of the last 32,768
/// numbers.
///
/// What is older is taken for a replay. A broker that delivers a frame once more does so at once (RFC 4303, 3.4.3, does
/// the same for packets).
package struct ReplayWindow: Sendable, Equatable {
    /// Two destinations of one sender overtake each other by what waits for one of them at the broker: seconds of it
    /// where the broker cannot keep up.
    package static let width = 32_768

    /// The greatest number that came; 0 before the first.
    package private(set) var greatest: UInt64 = 0
    /// Bit `n % width` stands for number `n`.
    private var words = [UInt64](repeating: 0, count: width / 64)

    package init() {}

    /// Begins behind a number: it, and all before it, came in an earlier time.
    package mutating func start(behind sequence: UInt64) {
        precondition(greatest == 0, "a window begins once")
        greatest = sequence
        for index in words.indices { words[index] = .max }
    }

    /// Takes a number.
    ///
    /// - Returns: whether it comes for the first time; false also where it is too old to tell.
    package mutating func receive(_ sequence: UInt64) -> Bool {
        let width = UInt64(Self.width)
        if sequence > greatest {
            if sequence - greatest >= width {
                for index in words.indices { words[index] = 0 }
            } else {
                for number in (greatest + 1)...sequence { clear(number % width) }
            }
            greatest = sequence
        } else {
            guard greatest - sequence < width, !isSet(sequence % width) else { return false }
        }
        words[Int(sequence % width / 64)] |= 1 << (sequence % 64)
        return true
    }

    private mutating func clear(_ bit: UInt64) { words[Int(bit / 64)] &= ~(1 << (bit % 64)) }

    private func isSet(_ bit: UInt64) -> Bool { words[Int(bit / 64)] >> (bit % 64) & 1 == 1 }
}

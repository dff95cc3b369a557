// A place in the sources where something can be otherwise, and its mutants.

/// A kind of mistake.
enum Operator: String, CaseIterable {
    /// `<` is `<=` or `>=`, `==` is `!=`.
    case relation
    /// A condition is its opposite.
    case negation
    /// A condition, a part of one, or a guard's, always holds, or never does.
    case condition
    /// One side of `&&` or `||` is dropped.
    case side
    /// An assignment, or a call for what it does, is left out.
    case statement
    /// A function goes back at once.
    case `return`
    /// A number is one more or one less; a truth is the other one.
    case constant
    /// Two arguments of one type change places.
    case swap
    /// A case of an enumeration is another one.
    case `case`
    /// `min` is `max`.
    case extreme
}

/// One mistake that can be made at a point.
struct Mutant {
    /// The point's number, and the mutant's among those of the point.
    var (point, number): (Int, Int)
    var kind: Operator
    /// Of the source's root, such as `TrackerLogic/Consensus/Office.swift`.
    var file: String
    var line: Int
    /// The function, or whatever it is in.
    var place: String
    /// What it says, and what it would say.
    var (before, after): (String, String)
    /// Of those in one place that read the same, which.
    var ordinal = 0

    /// What stays where other parts of the sources change.
    var identity: String { "\(file) \(place) \(kind.rawValue) \(before) → \(after) #\(ordinal)" }

    /// A name of twelve hexadecimal digits (FNV-1a of its identity, 48 bits of it).
    var name: String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in identity.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        let digits = String(hash >> 16, radix: 16)
        return String(repeating: "0", count: 12 - digits.count) + digits
    }

    /// A line of the list of mutants.
    var listed: String {
        [
            name, "\(point)", "\(number)", kind.rawValue, file, "\(line)", place, before, after,
        ].joined(separator: "\t")
    }
}

// What the mutated sources call, wherever there is something to mutate.
//
// Each function does what the code said, or what one of its mutants says instead. While runs are traced, it notes that
// the point was reached, and which of its mutants would have gone another way.

public import MutationTable

/// Whether a point does what the code says.
@inlinable @inline(__always)
func isQuiet(_ point: UInt32) -> Bool { _fastPath(mutation_state(point) == 0) }

/// The mutant that is alive at a point; nil while runs are traced.
@inlinable @inline(__always)
func alive(_ point: UInt32) -> UInt8? {
    let state = mutation_state(point)
    return state >= 2 ? state - 2 : nil
}

/// Notes that a point of mutants that always differ was reached.
@inlinable @inline(never)
func reach(_ point: UInt32, mutants: UInt8) {
    let all = UInt8(truncatingIfNeeded: (2 << UInt16(mutants)) - 1)
    mutation_note(point, all, all)
}

/// The answer to a question, or the one of the mutant that is alive.
@inlinable @inline(never)
func decide(_ point: UInt32, _ value: Bool, _ first: Bool, _ second: Bool) -> Bool {
    guard let mutant = alive(point) else {
        mutation_note(point, 1 | (first != value ? 2 : 0) | (second != value ? 4 : 0), 7)
        return value
    }
    return mutant == 0 ? first : second
}

// MARK: Relations

/// `a < b`; mutants: `a <= b`, `a >= b`.
@inlinable @inline(__always)
public func isLess<T: Comparable>(_ point: UInt32, _ a: T, _ b: T) -> Bool {
    isQuiet(point) ? a < b : decide(point, a < b, a <= b, a >= b)
}

/// `a <= b`; mutants: `a < b`, `a > b`.
@inlinable @inline(__always)
public func isLessOrEqual<T: Comparable>(_ point: UInt32, _ a: T, _ b: T) -> Bool {
    isQuiet(point) ? a <= b : decide(point, a <= b, a < b, a > b)
}

/// `a > b`; mutants: `a >= b`, `a <= b`.
@inlinable @inline(__always)
public func isGreater<T: Comparable>(_ point: UInt32, _ a: T, _ b: T) -> Bool {
    isQuiet(point) ? a > b : decide(point, a > b, a >= b, a <= b)
}

/// `a >= b`; mutants: `a > b`, `a < b`.
@inlinable @inline(__always)
public func isGreaterOrEqual<T: Comparable>(_ point: UInt32, _ a: T, _ b: T) -> Bool {
    isQuiet(point) ? a >= b : decide(point, a >= b, a > b, a < b)
}

/// The same for integers of two types.
@inlinable @inline(__always) @_disfavoredOverload
public func isLess<A: BinaryInteger, B: BinaryInteger>(_ point: UInt32, _ a: A, _ b: B) -> Bool {
    isQuiet(point) ? a < b : decide(point, a < b, a <= b, a >= b)
}

/// The same for integers of two types.
@inlinable @inline(__always) @_disfavoredOverload
public func isLessOrEqual<A: BinaryInteger, B: BinaryInteger>(_ point: UInt32, _ a: A, _ b: B) -> Bool {
    isQuiet(point) ? a <= b : decide(point, a <= b, a < b, a > b)
}

/// The same for integers of two types.
@inlinable @inline(__always) @_disfavoredOverload
public func isGreater<A: BinaryInteger, B: BinaryInteger>(_ point: UInt32, _ a: A, _ b: B) -> Bool {
    isQuiet(point) ? a > b : decide(point, a > b, a >= b, a <= b)
}

/// The same for integers of two types.
@inlinable @inline(__always) @_disfavoredOverload
public func isGreaterOrEqual<A: BinaryInteger, B: BinaryInteger>(_ point: UInt32, _ a: A, _ b: B) -> Bool {
    isQuiet(point) ? a >= b : decide(point, a >= b, a > b, a < b)
}

/// `a == b`; mutant: `a != b`.
@inlinable @inline(__always)
public func isEqual<T: Equatable>(_ point: UInt32, _ a: T, _ b: T) -> Bool {
    isQuiet(point) ? a == b : negated(point, a == b)
}

/// `a != b`; mutant: `a == b`.
@inlinable @inline(__always)
public func isUnequal<T: Equatable>(_ point: UInt32, _ a: T, _ b: T) -> Bool {
    isQuiet(point) ? a != b : negated(point, a != b)
}

/// The same for integers of two types.
@inlinable @inline(__always) @_disfavoredOverload
public func isEqual<A: BinaryInteger, B: BinaryInteger>(_ point: UInt32, _ a: A, _ b: B) -> Bool {
    isQuiet(point) ? a == b : negated(point, a == b)
}

/// The same for integers of two types.
@inlinable @inline(__always) @_disfavoredOverload
public func isUnequal<A: BinaryInteger, B: BinaryInteger>(_ point: UInt32, _ a: A, _ b: B) -> Bool {
    isQuiet(point) ? a != b : negated(point, a != b)
}

/// `a == nil`; mutant: `a != nil`.
@inlinable @inline(__always)
public func isNil<T>(_ point: UInt32, _ a: T?) -> Bool {
    isQuiet(point) ? a == nil : negated(point, a == nil)
}

/// `a != nil`; mutant: `a == nil`.
@inlinable @inline(__always)
public func isThere<T>(_ point: UInt32, _ a: T?) -> Bool {
    isQuiet(point) ? a != nil : negated(point, a != nil)
}

@inlinable @inline(never)
func negated(_ point: UInt32, _ value: Bool) -> Bool {
    guard alive(point) != nil else {
        mutation_note(point, 3, 3)
        return value
    }
    return !value
}

// MARK: Conditions

/// A condition; mutant: its opposite.
@inlinable @inline(__always)
public func condition(_ point: UInt32, _ value: Bool) -> Bool {
    isQuiet(point) ? value : negated(point, value)
}

/// A condition, or a part of one; mutants: it always holds, it never does.
@inlinable @inline(__always)
public func whole(_ point: UInt32, _ value: Bool) -> Bool {
    isQuiet(point) ? value : decide(point, value, true, false)
}

/// A part of a condition, or of a guard's; mutant: it always holds.
@inlinable @inline(__always)
public func part(_ point: UInt32, _ value: Bool) -> Bool {
    isQuiet(point) ? value : dropped(point, value)
}

@inlinable @inline(never)
func dropped(_ point: UInt32, _ value: Bool) -> Bool {
    guard alive(point) != nil else {
        mutation_note(point, value ? 1 : 3, 3)
        return value
    }
    return true
}

/// `a && b`; mutants: `b`, `a`.
@inlinable @inline(__always)
public func and(_ point: UInt32, _ a: Bool, _ b: @autoclosure () -> Bool) -> Bool {
    if isQuiet(point) { return a && b() }
    guard let mutant = alive(point) else {
        guard a else {
            mutation_note(point, 3, 7)
            return false
        }
        let value = b()
        mutation_note(point, value ? 1 : 5, 7)
        return value
    }
    return mutant == 0 ? b() : a
}

/// `a || b`; mutants: `b`, `a`.
@inlinable @inline(__always)
public func or(_ point: UInt32, _ a: Bool, _ b: @autoclosure () -> Bool) -> Bool {
    if isQuiet(point) { return a || b() }
    guard let mutant = alive(point) else {
        guard !a else {
            mutation_note(point, 3, 7)
            return true
        }
        let value = b()
        mutation_note(point, value ? 5 : 1, 7)
        return value
    }
    return mutant == 0 ? b() : a
}

// MARK: Statements

/// Whether a statement is done; mutant: it is not.
@inlinable @inline(__always)
public func isKept(_ point: UInt32) -> Bool {
    if isQuiet(point) { return true }
    guard alive(point) != nil else {
        reach(point, mutants: 1)
        return true
    }
    return false
}

/// Whether a function goes back at once; its mutant does.
@inlinable @inline(__always)
public func goesBack(_ point: UInt32) -> Bool { !isKept(point) }

/// The answer that a question is given at once, where one of its two mutants is alive.
@inlinable @inline(__always)
public func answer(_ point: UInt32) -> Bool? {
    if isQuiet(point) { return nil }
    guard let mutant = alive(point) else {
        reach(point, mutants: 2)
        return nil
    }
    return mutant == 0
}

// MARK: Values

/// A number; mutants: one more, one less.
@inlinable @inline(__always)
public func number<T: FixedWidthInteger>(_ point: UInt32, _ value: T) -> T {
    if isQuiet(point) { return value }
    guard let mutant = alive(point) else {
        reach(point, mutants: 2)
        return value
    }
    return mutant == 0 ? value &+ 1 : value &- 1
}

/// A truth; mutant: the other one.
@inlinable @inline(__always)
public func truth(_ point: UInt32, _ value: Bool) -> Bool {
    if isQuiet(point) { return value }
    guard alive(point) != nil else {
        reach(point, mutants: 1)
        return value
    }
    return !value
}

/// A case of an enumeration; mutant: another one.
@inlinable @inline(__always)
public func choice<T>(_ point: UInt32, _ value: T, _ other: T) -> T {
    if isQuiet(point) { return value }
    guard alive(point) != nil else {
        reach(point, mutants: 1)
        return value
    }
    return other
}

/// One of two arguments; mutant: the other one.
@inlinable @inline(__always)
public func swapped<T>(_ point: UInt32, _ value: @autoclosure () -> T, _ other: @autoclosure () -> T) -> T {
    if isQuiet(point) { return value() }
    guard alive(point) != nil else {
        reach(point, mutants: 1)
        return value()
    }
    return other()
}

/// `min(a, b)`; mutant: `max(a, b)`.
@inlinable @inline(__always)
public func least<T: Comparable>(_ point: UInt32, _ a: T, _ b: T) -> T {
    if isQuiet(point) { return min(a, b) }
    guard alive(point) != nil else {
        mutation_note(point, a == b ? 1 : 3, 3)
        return min(a, b)
    }
    return max(a, b)
}

/// `max(a, b)`; mutant: `min(a, b)`.
@inlinable @inline(__always)
public func greatest<T: Comparable>(_ point: UInt32, _ a: T, _ b: T) -> T {
    if isQuiet(point) { return max(a, b) }
    guard alive(point) != nil else {
        mutation_note(point, a == b ? 1 : 3, 3)
        return max(a, b)
    }
    return min(a, b)
}

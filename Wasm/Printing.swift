// Compiled into each module for WebAssembly.

/// Compiled into each module for WebAssembly: what embedded Swift cannot print does not compile.
///
/// There, a value without a written-out description would become "(cannot print value in embedded Swift)" in the middle
/// of a trace. These overloads hide the standard library's for such values; using them is a warning, and warnings are
/// errors (`build`). "Unavailable" would not do: the compiler then takes the hidden one.
extension DefaultStringInterpolation {
    @available(*, deprecated, message: "embedded Swift cannot print this: give it a description")
    mutating func appendInterpolation<Value>(_ value: Value) {}
}

extension String {
    @available(*, deprecated, message: "embedded Swift cannot print this: give it a description")
    init<Value>(describing value: Value) { self = "" }
}

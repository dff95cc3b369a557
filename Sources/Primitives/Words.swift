// Numbers, times and other people's text as messages show them.

/// A value as people may see it in a message: quoted, short, on one line, without control characters.
public func quoted(_ text: some StringProtocol) -> String {
    var shown = "\""
    var count = 0
    for scalar in text.unicodeScalars {
        guard count < 60 else {
            shown += "…"
            break
        }
        count += 1
        switch scalar {
        case "\"", "\\": shown += "\\\(scalar)"
        case "\n": shown += "\\n"
        case "\t": shown += "\\t"
        case _ where scalar.isHarmful: shown += "\\u\(fourDigits(scalar.value))"
        default: shown.unicodeScalars.append(scalar)
        }
    }
    return shown + "\""
}

private func fourDigits(_ value: UInt32) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
}

/// `4_000_000`, as TOML and Swift write it; four digits stay as they are.
public func countText(_ number: Int) -> String {
    guard number >= 10_000 else { return String(number) }
    var groups: [String] = []
    var rest = number
    while rest >= 1000 {
        groups.append(String(String(1000 + rest % 1000).dropFirst()))
        rest /= 1000
    }
    return ([String(rest)] + groups.reversed()).joined(separator: "_")
}

/// `1h30m`; whole seconds.
public func durationText(_ seconds: Int) -> String {
    guard seconds > 0 else { return "0s" }
    var text = ""
    var rest = seconds
    for (name, length) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] where rest >= length {
        text += "\(rest / length)\(name)"
        rest %= length
    }
    return text
}

/// Text from a stranger, for a terminal: a line, without control characters, not too long.
public func shownText(_ bytes: some Sequence<UInt8>) -> String {
    let scalars = String(decoding: Array(bytes.prefix(1024)), as: UTF8.self).unicodeScalars.prefix(255)
    return String(String.UnicodeScalarView(scalars.map { $0.isHarmful ? "\u{FFFD}" : $0 }))
}

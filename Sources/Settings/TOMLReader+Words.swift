// Strings, numbers and the like: what stands for one value.

import Primitives

extension TOMLReader {
    // MARK: Strings

    /// `"…"` or `'…'` on one line; returns what it stands for.
    mutating func readString(_ quote: Unicode.Scalar) throws(TOMLFault) -> String {
        let start = position
        advance()
        var content = String.UnicodeScalarView()
        while let next = peek(), !isAtLineEnd {
            if next == quote {
                advance()
                return String(content)
            }
            try readCharacter(quote, into: &content)
        }
        throw fault("the string that begins here is not closed on its line", at: start)
    }

    /// A string over several lines, in three quotes or apostrophes.
    ///
    /// "A newline immediately following the opening delimiter will be trimmed"; one or two
    /// quotes may stand right before the closing three.
    mutating func readLongString(_ quote: Unicode.Scalar) throws(TOMLFault) -> String {
        let start = position
        advance(3)
        if isAtLineEnd { advance(peek() == "\r" ? 2 : 1) }
        var content = String.UnicodeScalarView()
        while let next = peek() {
            if next == quote, peek(1) == quote, peek(2) == quote {
                advance(3)
                for _ in 0..<2 where peek() == quote {
                    content.append(quote)
                    advance()
                }
                return String(content)
            } else if isAtLineEnd {
                content.append("\n")
                advance(next == "\r" ? 2 : 1)
            } else if next == "\\", quote == "\"", isLineFolded {
                // "it will be trimmed along with all whitespace (including newlines) up to the next non-whitespace"
                advance()
                while let blank = peek(), blank == " " || blank == "\t" || isAtLineEnd { advance() }
            } else {
                try readCharacter(quote, into: &content)
            }
        }
        throw fault("the string that begins here is not closed", at: start)
    }

    /// Whether a backslash is the last of its line, but for blanks.
    private var isLineFolded: Bool {
        var ahead = 1
        while let next = peek(ahead), next == " " || next == "\t" { ahead += 1 }
        return peek(ahead) == "\n" || (peek(ahead) == "\r" && peek(ahead + 1) == "\n")
    }

    /// One character or escape of a string.
    private mutating func readCharacter(
        _ quote: Unicode.Scalar, into content: inout String.UnicodeScalarView
    ) throws(TOMLFault) {
        guard let next = peek() else { return }
        guard !Self.isControl(next) else { throw fault("a string holds the control character \(quoted(String(next)))") }
        let start = position
        advance()
        guard next == "\\", quote == "\"" else {
            content.append(next)
            return
        }
        let escape = peek()
        advance()
        switch escape {
        case "b"?: content.append("\u{8}")
        case "t"?: content.append("\t")
        case "n"?: content.append("\n")
        case "f"?: content.append("\u{C}")
        case "r"?: content.append("\r")
        case "\""?: content.append("\"")
        case "\\"?: content.append("\\")
        case "u"?: content.append(try readDigits(4, start))
        case "U"?: content.append(try readDigits(8, start))
        default:
            throw fault("no escape begins like this; write \\\\ for a backslash, or put the text in '…'", at: start)
        }
    }

    /// The hexadecimal digits of `\u` and `\U`: "must be Unicode scalar values".
    private mutating func readDigits(_ count: Int, _ start: TextPosition) throws(TOMLFault) -> Unicode.Scalar {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let next = peek(), next.isASCII, let digit = Character(next).hexDigitValue else {
                throw fault("\\\(count == 4 ? "u" : "U") takes \(count) hexadecimal digits", at: start)
            }
            value = value << 4 | UInt32(digit)
            advance()
        }
        guard let scalar = Unicode.Scalar(value) else { throw fault("there is no such character", at: start) }
        return scalar
    }

    // MARK: Numbers and the like

    /// What a bare word stands for; nil where it stands for nothing.
    static func input(word: String) -> SettingInput? {
        switch word {
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        default: break
        }
        if let number = integer(word) { return .integer(number) }
        // Fractions, dates, and numbers beyond 64 bits: nothing that a setting takes, so nobody looks closer.
        let characters = Array(word.utf8)
        let unsigned = characters.first == UInt8(ascii: "+") || characters.first == UInt8(ascii: "-") ? 1 : 0
        guard characters.count <= 64, unsigned < characters.count else { return nil }
        let rest = characters[unsigned...]
        if rest.elementsEqual("inf".utf8) || rest.elementsEqual("nan".utf8) { return .other(word) }
        let isNumeric =
            (48...57).contains(rest[unsigned])
            && rest.enumerated().allSatisfy { index, byte in
                // "1979-05-27 07:32:00" has the only blank that a value may hold.
                byte == 32 ? index == 10 && rest[unsigned + 4] == UInt8(ascii: "-") : numeric.contains(byte)
            }
        return isNumeric ? .other(word) : nil
    }

    private static let numeric = Array("0123456789abcdefABCDEFxotTzZ+-_.:".utf8)

    /// `-17`, `1_000`, `0xdead_beef`, `0o17`, `0b1010`; "leading zeros are not allowed".
    private static func integer(_ word: String) -> Int? {
        let radices = ["0x": 16, "0o": 8, "0b": 2]
        var digits = word[...]
        let radix = radices[String(word.prefix(2))] ?? 10
        var sign = ""
        if radix != 10 {
            digits = digits.dropFirst(2)
        } else if let first = digits.first, first == "+" || first == "-" {
            sign = first == "-" ? "-" : ""
            digits = digits.dropFirst()
        }
        // "each underscore must be surrounded by at least one digit on each side"
        let groups = digits.split(separator: "_", omittingEmptySubsequences: false)
        guard groups.allSatisfy({ group in !group.isEmpty && group.allSatisfy { $0.isASCII && $0.isHexDigit } })
        else { return nil }
        let joined = groups.joined()
        guard radix != 10 || joined.count == 1 || !joined.hasPrefix("0") else { return nil }
        return Int(sign + joined, radix: radix)
    }
}

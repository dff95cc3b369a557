// What keeps pure logic compilable for WebAssembly, as far as words tell: embedded Swift has no key paths, no
// reflection, no coding and no `any Error`, and `Int` has 32 bits there. `make wasm` finds the rest.

extension PurityRules {
    /// What embedded Swift does not have, with what to write instead.
    static let unembeddable: [String: String] = {
        let reasons: [(String, [String])] = [
            (
                "is not there in embedded Swift; conform in the module that encodes",
                ["Codable", "Encodable", "Decodable", "CodingKey", "Encoder", "Decoder"]
            ),
            (
                "is not there in embedded Swift; take a closure",
                ["KeyPath", "WritableKeyPath", "ReferenceWritableKeyPath", "PartialKeyPath", "AnyKeyPath"]
            ),
            ("is not there in embedded Swift; write a description", ["Mirror", "CustomReflectable"]),
        ]
        var words: [String: String] = [:]
        for (reason, names) in reasons { for name in names { words[name] = reason } }
        return words
    }()

    /// The highest bit that a positive `Int` of 32 bits has.
    static let highestBit = 30

    /// What embedded Swift does not have, in code without comments.
    static func unembeddables(_ code: [SwiftToken]) -> [(line: Int, message: String)] {
        var found: [(line: Int, message: String)] = []
        for (index, token) in code.enumerated() {
            func text(_ ahead: Int) -> String? {
                let place = index + ahead
                return code.indices.contains(place) && code[place].kind != .string ? code[place].text : nil
            }
            // An escape is a part of its string; what is left begins a key path.
            if token.kind == .punctuation, token.text == "\\" {
                found.append((token.line, "a key path is not there in embedded Swift; write a closure"))
            }
            if token.kind == .number, isShiftedOut(code, index) {
                found.append((token.line, "a literal is shifted out of an Int of 32 bits; write UInt64(1) << 40"))
            }
            guard token.kind == .word else { continue }
            if let reason = unembeddable[token.text] { found.append((token.line, "\(token.text) \(reason)")) }
            switch token.text {
            case "throws" where text(1) != "(":
                found.append((token.line, "throws does not say what; write throws(…)"))
            case "any" where text(1) == "Error":
                found.append((token.line, "any Error is not there in embedded Swift; name the error"))
            case "do" where text(1) == "{" && isCaught(code, from: index + 1):
                found.append((token.line, "do does not say what is caught; write do throws(…)"))
            case "String" where text(1) == "(" && ["describing", "reflecting"].contains(text(2)):
                found.append((token.line, "String(\(text(2) ?? ""): has no reflection to read; write a description"))
            case "Int" where text(1) == "(" && text(2) == "UInt32" && text(3) == "." && text(4) == "max":
                found.append((token.line, "Int(UInt32.max overflows an Int of 32 bits"))
            default: break
            }
        }
        return found
    }

    /// Whether a block is followed by `catch`.
    private static func isCaught(_ code: [SwiftToken], from open: Int) -> Bool {
        var depth = 0
        for index in open..<code.count where code[index].kind == .punctuation {
            if code[index].text == "{" { depth += 1 }
            if code[index].text == "}" { depth -= 1 }
            if depth == 0 { return index + 1 < code.count && code[index + 1].text == "catch" }
        }
        return false
    }

    /// Whether a literal is shifted, by another, beyond an `Int` of 32 bits, and is not told to be wider.
    ///
    /// It is told so by what it is an argument of, `UInt64(1)`, or by the declaration that it begins the value of.
    private static func isShiftedOut(_ code: [SwiftToken], _ index: Int) -> Bool {
        let shift = code[(index + 1)...].prefix(4).map(\.text)
        let amount = shift.first == "&" ? shift.dropFirst() : shift[...]
        guard amount.count >= 3, amount.prefix(2).elementsEqual(["<", "<"]),
            let bits = amount.dropFirst(2).first.flatMap({ Int($0.filter { $0 != "_" }) }), bits > highestBit
        else { return false }
        let before = code[..<index].suffix(3).map(\.text)
        guard before.count == 3, before[0] == ":", before[2] == "=" else { return true }
        return !(["UInt64", "Int64"].contains(before[1]) || before[1] == "UInt32" && bits < 32)
    }
}

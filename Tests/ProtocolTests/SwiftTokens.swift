// Swift source in words: enough of a tokenizer to tell code from comments and strings.
//
// Interpolations are code. Regex literals are not known; the repository has none.

struct SwiftToken: Equatable {
    enum Kind: Equatable {
        case word
        case number
        /// The contents of a string literal, without its interpolations.
        case string
        case comment
        case punctuation
    }

    var kind: Kind
    var text: String
    /// Counted from 1.
    var line: Int
    /// Whether nothing stands between this token and the one before.
    var isAdjacent: Bool
}

struct SwiftTokenizer {
    private let bytes: [UInt8]
    private var offset = 0
    private var line = 1
    private var lastEnd = -1
    private var tokens: [SwiftToken] = []

    static func tokens(of source: String) -> [SwiftToken] {
        var tokenizer = SwiftTokenizer(bytes: Array(source.utf8))
        tokenizer.readCode(until: nil)
        return tokenizer.tokens
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private func byte(_ ahead: Int = 0) -> UInt8? {
        offset + ahead < bytes.count ? bytes[offset + ahead] : nil
    }

    private mutating func advance(_ count: Int = 1) {
        for _ in 0..<count where offset < bytes.count {
            if bytes[offset] == UInt8(ascii: "\n") { line += 1 }
            offset += 1
        }
    }

    private mutating func add(_ kind: SwiftToken.Kind, from start: Int, line: Int, text: String? = nil) {
        tokens.append(
            SwiftToken(
                kind: kind, text: text ?? String(decoding: bytes[start..<offset], as: UTF8.self), line: line,
                isAdjacent: start == lastEnd))
        lastEnd = offset
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
            true
        default: false
        }
    }

    /// Reads code to the end, or to a bracket that closes an interpolation.
    private mutating func readCode(until close: UInt8?) {
        var depth = 0
        while let next = byte() {
            let start = offset
            let startLine = line
            switch next {
            case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\t"), UInt8(ascii: "\r"):
                advance()
            case UInt8(ascii: "/") where byte(1) == UInt8(ascii: "/"):
                while let next = byte(), next != UInt8(ascii: "\n") { advance() }
                add(.comment, from: start, line: startLine)
            case UInt8(ascii: "/") where byte(1) == UInt8(ascii: "*"):
                skipBlockComment()
                add(.comment, from: start, line: startLine)
            case UInt8(ascii: "\""):
                readString(hashes: 0)
            case UInt8(ascii: "#"):
                var hashes = 0
                while byte(hashes) == UInt8(ascii: "#") { hashes += 1 }
                if byte(hashes) == UInt8(ascii: "\"") {
                    readString(hashes: hashes)
                } else {
                    advance()
                    add(.punctuation, from: start, line: startLine)
                }
            case UInt8(ascii: "`"):
                advance()
                while let next = byte(), next != UInt8(ascii: "`"), next != UInt8(ascii: "\n") { advance() }
                advance()
                add(.string, from: start, line: startLine)
            case _ where SwiftTokenizer.isWord(next):
                while let next = byte(), SwiftTokenizer.isWord(next) { advance() }
                let isNumber = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(next)
                add(isNumber ? .number : .word, from: start, line: startLine)
            default:
                if next == UInt8(ascii: "(") { depth += 1 }
                if next == close {
                    if depth == 0 { return }
                    depth -= 1
                }
                advance()
                add(.punctuation, from: start, line: startLine)
            }
        }
    }

    private mutating func skipBlockComment() {
        var depth = 0
        repeat {
            if byte() == UInt8(ascii: "/"), byte(1) == UInt8(ascii: "*") {
                depth += 1
                advance(2)
            } else if byte() == UInt8(ascii: "*"), byte(1) == UInt8(ascii: "/") {
                depth -= 1
                advance(2)
            } else {
                advance()
            }
        } while depth > 0 && offset < bytes.count
    }

    /// Reads a string literal from its first `#` or quote; its interpolations become tokens of their own.
    private mutating func readString(hashes: Int) {
        let start = offset
        let startLine = line
        advance(hashes)
        let quotes = byte(1) == UInt8(ascii: "\"") && byte(2) == UInt8(ascii: "\"") ? 3 : 1
        advance(quotes)
        var contents: [UInt8] = []
        while let next = byte() {
            if next == UInt8(ascii: "\""), closes(quotes, hashes) {
                advance(quotes + hashes)
                break
            }
            if next == UInt8(ascii: "\n"), quotes == 1 { break }
            if next == UInt8(ascii: "\\"), (0..<hashes).allSatisfy({ byte(1 + $0) == UInt8(ascii: "#") }) {
                let after = byte(1 + hashes)
                advance(2 + hashes)
                if after == UInt8(ascii: "(") {
                    readCode(until: UInt8(ascii: ")"))
                    advance()
                }
                continue
            }
            contents.append(next)
            advance()
        }
        add(.string, from: start, line: startLine, text: String(decoding: contents, as: UTF8.self))
    }

    private func closes(_ quotes: Int, _ hashes: Int) -> Bool {
        (0..<quotes).allSatisfy { byte($0) == UInt8(ascii: "\"") }
            && (0..<hashes).allSatisfy { byte(quotes + $0) == UInt8(ascii: "#") }
    }
}

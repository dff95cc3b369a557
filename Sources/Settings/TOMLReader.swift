// Reads TOML 1.0.

import Primitives

/// Reads TOML 1.0: headers, dotted and quoted keys, inline tables, arrays over several lines, all four kinds of
/// strings, comments.
///
/// Deviation: dates, times and fractions are recognised, not read (`SettingInput.other`), since no setting takes one.
struct TOMLReader {
    private let scalars: [Unicode.Scalar]
    private var offset = 0
    private var line = 1
    private var lineStart = 0

    /// Arrays and inline tables inside one another, and parts of a key.
    static let maxDepth = 64

    /// Reads a document.
    ///
    /// - Throws: the first thing that is not TOML, with its place.
    /// - Complexity: O(length of the text).
    static func read(_ text: String) throws(TOMLFault) -> TOMLTable {
        var reader = TOMLReader(text)
        return try reader.readDocument()
    }

    private init(_ text: String) { scalars = Array(text.unicodeScalars) }

    // MARK: Characters

    var position: TextPosition { TextPosition(line: line, column: offset - lineStart + 1) }
    var isAtEnd: Bool { offset >= scalars.count }

    func peek(_ ahead: Int = 0) -> Unicode.Scalar? {
        offset + ahead < scalars.count ? scalars[offset + ahead] : nil
    }

    /// Whether a line ends here, by LF or CR LF.
    var isAtLineEnd: Bool { peek() == "\n" || (peek() == "\r" && peek(1) == "\n") }

    mutating func advance() {
        if peek() == "\n" {
            line += 1
            lineStart = offset + 1
        }
        offset += 1
    }

    mutating func advance(_ count: Int) {
        for _ in 0..<count where !isAtEnd { advance() }
    }

    func fault(_ message: String, at place: TextPosition? = nil) -> TOMLFault {
        TOMLFault(position: place ?? position, message: message)
    }

    /// The next character, as a message shows it.
    private var nextShown: String {
        guard let next = peek() else { return "the end of the file" }
        return isAtLineEnd ? "the end of the line" : quoted(String(next))
    }

    private mutating func skipBlanks() {
        while let next = peek(), next == " " || next == "\t" { advance() }
    }

    /// "Control characters other than tab … are not permitted in comments": a lone carriage return would hide what
    /// follows.
    private mutating func skipComment() throws(TOMLFault) {
        guard peek() == "#" else { return }
        while let next = peek(), !isAtLineEnd {
            guard !Self.isControl(next) else {
                throw fault("a comment holds the control character \(quoted(String(next)))")
            }
            advance()
        }
    }

    /// Blanks, line ends and comments.
    private mutating func skipEmpty() throws(TOMLFault) {
        while true {
            skipBlanks()
            try skipComment()
            guard isAtLineEnd else { return }
            advance(peek() == "\r" ? 2 : 1)
        }
    }

    static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        (scalar.value < 32 && scalar != "\t") || scalar.value == 127
    }

    // MARK: The document

    private mutating func readDocument() throws(TOMLFault) -> TOMLTable {
        let root = TOMLTable(.header)
        var table = root
        if peek() == "\u{FEFF}" {
            offset += 1
            lineStart = 1
        }
        while true {
            try skipEmpty()
            guard !isAtEnd else { return root }
            if peek() == "[" {
                table = try readHeader(root)
            } else {
                try readPair(into: table, depth: 0)
            }
            skipBlanks()
            try skipComment()
            guard isAtEnd || isAtLineEnd else { throw fault("\(nextShown) is left over at the end of the line") }
        }
    }

    /// `[a.b]` or `[[a.b]]`.
    private mutating func readHeader(_ root: TOMLTable) throws(TOMLFault) -> TOMLTable {
        let isArray = peek(1) == "["
        advance(isArray ? 2 : 1)
        let path = try readKey()
        guard peek() == "]", !isArray || peek(1) == "]" else {
            throw fault("the table's name should end with \(isArray ? "]]" : "]"), not with \(nextShown)")
        }
        advance(isArray ? 2 : 1)
        return isArray ? try root.openNext(path) : try root.open(path)
    }

    /// `a.b = value`.
    private mutating func readPair(into table: TOMLTable, depth: Int) throws(TOMLFault) {
        let path = try readKey()
        guard peek() == "=" else { throw fault("after a key comes \"=\", not \(nextShown)") }
        advance()
        skipBlanks()
        try table.set(path, try readValue(depth: depth))
    }

    /// `a . "b" . 'c'`, and the blanks behind it.
    private mutating func readKey() throws(TOMLFault) -> [TOMLTable.Part] {
        var parts: [TOMLTable.Part] = []
        while true {
            skipBlanks()
            let start = position
            if let quote = peek(), quote == "\"" || quote == "'" {
                guard peek(1) != quote || peek(2) != quote else { throw fault("a key is a string on one line") }
                parts.append((try readString(quote), start))
            } else {
                var bare = String.UnicodeScalarView()
                while let next = peek(), Self.isBare(next) {
                    bare.append(next)
                    advance()
                }
                guard !bare.isEmpty else { throw fault("a key should stand here, not \(nextShown)") }
                parts.append((String(bare), start))
            }
            guard parts.count <= Self.maxDepth else { throw fault("the key has too many parts", at: start) }
            skipBlanks()
            guard peek() == "." else { return parts }
            advance()
        }
    }

    /// "Bare keys may only contain ASCII letters, ASCII digits, underscores, and dashes".
    private static func isBare(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "A"..."Z", "a"..."z", "0"..."9", "_", "-": true
        default: false
        }
    }

    // MARK: Values

    private mutating func readValue(depth: Int) throws(TOMLFault) -> TOMLValue {
        guard depth < Self.maxDepth else { throw fault("values are nested too deeply") }
        let start = position
        let content: TOMLValue.Content
        switch peek() {
        case let quote? where quote == "\"" || quote == "'":
            let isLong = peek(1) == quote && peek(2) == quote
            content = .single(.text(isLong ? try readLongString(quote) : try readString(quote)))
        case "["?: content = .array(try readArray(depth: depth))
        case "{"?: content = .table(try readInlineTable(depth: depth))
        default: content = .single(try readWord())
        }
        return TOMLValue(position: start, content: content)
    }

    private mutating func readArray(depth: Int) throws(TOMLFault) -> [TOMLValue] {
        let start = position
        var elements: [TOMLValue] = []
        advance()
        while true {
            try skipEmpty()
            guard !isAtEnd else { throw fault("the list that begins here is not closed with ]", at: start) }
            if peek() == "]" { break }
            elements.append(try readValue(depth: depth + 1))
            try skipEmpty()
            guard !isAtEnd else { throw fault("the list that begins here is not closed with ]", at: start) }
            if peek() == "]" { break }
            guard peek() == "," else {
                throw fault("between the elements of a list stands a comma, not \(nextShown)")
            }
            advance()
        }
        advance()
        return elements
    }

    /// "Inline tables are intended to appear on a single line … A terminating comma is not permitted".
    private mutating func readInlineTable(depth: Int) throws(TOMLFault) -> TOMLTable {
        let start = position
        let table = TOMLTable(.inline)
        advance()
        skipBlanks()
        if peek() == "}" {
            advance()
            return table
        }
        while true {
            skipBlanks()
            guard !isAtEnd, !isAtLineEnd, peek() != "#" else {
                throw fault("the table that begins here is not closed with } on its line", at: start)
            }
            try readPair(into: table, depth: depth + 1)
            skipBlanks()
            if peek() == "}" { break }
            guard peek() == "," else {
                throw isAtEnd || isAtLineEnd
                    ? fault("the table that begins here is not closed with } on its line", at: start)
                    : fault("between the pairs of a table stands a comma, not \(nextShown)")
            }
            advance()
        }
        advance()
        return table
    }

    /// A number, a date (which may hold a blank), true or false.
    private mutating func readWord() throws(TOMLFault) -> SettingInput {
        let start = position
        var word = String.UnicodeScalarView()
        while let next = peek(), !isAtLineEnd, !",]}#".unicodeScalars.contains(next) {
            word.append(next)
            advance()
        }
        while let last = word.last, last == " " || last == "\t" { word.removeLast() }
        guard !word.isEmpty else { throw fault("a value should stand here, not \(nextShown)", at: start) }
        guard let input = Self.input(word: String(word)) else {
            throw fault("\(quoted(String(word))) is no value; text goes in quotes", at: start)
        }
        return input
    }
}

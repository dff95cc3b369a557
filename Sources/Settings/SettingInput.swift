// Values as a source gave them, and how each kind of value is read from them.

import Primitives
import TrackerLogic

/// A value before anyone has looked at what it should be.
///
/// A file knows numbers, switches and lists; environment and flags know only text. Both are read by the same
/// functions, so that `30m` means the same wherever it stands.
public enum SettingInput: Sendable, Equatable {
    case text(String)
    case integer(Int)
    case boolean(Bool)
    case list([SettingInput])
    /// Something that no setting takes, as it would be shown: a table, a date, a fraction.
    case other(String)

    /// The value as messages show it: short, on one line.
    var shown: String {
        switch self {
        case .text(let text): quoted(text)
        case .integer(let number): String(number)
        case .boolean(let value): String(value)
        case .list(let elements):
            "[" + elements.prefix(3).map(\.shown).joined(separator: ", ") + (elements.count > 3 ? ", …]" : "]")
        case .other(let text): text
        }
    }
}

/// Why a value was not taken.
struct SettingRejection: Error {
    /// Continues a sentence that begins with the setting and its value: `is not a duration; write …`.
    var reason: String
    /// Which element of a list it was, with its value.
    var element: (index: Int, shown: String)?

    init(_ reason: String) { self.reason = reason }
}

/// What the meaning of a value depends on besides itself.
struct SettingContext {
    /// Where relative paths start; empty for the process's working directory.
    var directory = ""
    /// `$HOME`, for paths that begin with `~/`.
    var home: String?
}

/// How each kind of value is read.
enum SettingReader {
    /// Elements of a list: a list of the file, or text with commas; `none` and the empty text have none.
    static func list<Value>(
        _ input: SettingInput, atMost limit: Int, _ read: (SettingInput) throws(SettingRejection) -> Value
    ) throws(SettingRejection) -> [Value] {
        var elements: [SettingInput]
        switch input {
        case .list(let given): elements = given
        case .text("none"), .text(""): elements = []
        case .text(let text):
            elements = text.split(separator: ",", omittingEmptySubsequences: false).map {
                .text(String($0.drop(while: { $0 == " " })))
            }
        case .integer, .boolean, .other: elements = [input]
        }
        guard elements.count <= limit else {
            throw SettingRejection("has \(elements.count) values; write at most \(limit)")
        }
        var values: [Value] = []
        for (index, element) in elements.enumerated() {
            do throws(SettingRejection) {
                values.append(try read(element))
            } catch {
                var located = error
                located.element = (index, element.shown)
                throw located
            }
        }
        return values
    }

    static func boolean(_ input: SettingInput) throws(SettingRejection) -> Bool {
        switch input {
        case .boolean(let value): return value
        case .text(let text):
            switch text.lowercased() {
            case "true", "yes", "on", "1": return true
            case "false", "no", "off", "0": return false
            default: break
            }
        case .integer, .list, .other: break
        }
        throw SettingRejection("is neither true nor false")
    }

    /// A number of things: `4_000_000`, `4M`.
    static func count(_ input: SettingInput, in range: ClosedRange<Int>) throws(SettingRejection) -> Int {
        let example = "\(countText(range.contains(1_000_000) ? 1_000_000 : range.lowerBound))"
        let value: Int?
        switch input {
        case .integer(let number): value = number
        case .text(let text): value = count(text)
        case .boolean, .list, .other: value = nil
        }
        guard let value else {
            throw SettingRejection(
                range.contains(1_000_000)
                    ? "is not a number; write for example \(example) or \"1M\""
                    : "is not a number; write \(countText(range.lowerBound)) to \(countText(range.upperBound))")
        }
        guard range.contains(value) else {
            throw SettingRejection(
                "is out of range; write \(countText(range.lowerBound)) to \(countText(range.upperBound))")
        }
        return value
    }

    /// Reads `4_000_000`, `16k`, `4M`, `1G`: thousands, as one counts things.
    static func count(_ text: some StringProtocol) -> Int? {
        let factors: [Character: Int] = ["k": 1000, "K": 1000, "M": 1_000_000, "G": 1_000_000_000]
        var digits = text[...]
        var factor = 1
        if let last = text.last, let given = factors[last] {
            factor = given
            digits = digits.dropLast()
        }
        guard digits.utf8.count <= 32, let number = number(digits) else { return nil }
        let (product, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? nil : product
    }

    /// Decimal digits, in which single underscores may stand between two digits.
    private static func number(_ text: some StringProtocol) -> Int? {
        let groups = text.split(separator: "_", omittingEmptySubsequences: false)
        guard groups.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (48...57).contains($0) } }) else { return nil }
        return Int(groups.joined())
    }

    /// A span in whole seconds: `90s`, `1h30m`, or a bare number.
    static func seconds(_ input: SettingInput, in range: ClosedRange<Int>) throws(SettingRejection) -> Int {
        let value: Int?
        switch input {
        case .integer(let number): value = number
        case .text(let text): value = seconds(text)
        case .boolean, .list, .other: value = nil
        }
        guard let value else {
            throw SettingRejection("is not a duration; write for example \"30m\" or 1800")
        }
        guard range.contains(value) else {
            throw SettingRejection(
                "is out of range; write \(durationText(range.lowerBound)) to \(durationText(range.upperBound))")
        }
        return value
    }

    /// Reads `1d`, `1h30m`, `90s` (each unit once, the larger first) or a bare number of seconds.
    static func seconds(_ text: some StringProtocol) -> Int? {
        if let bare = number(text), text.utf8.count <= 32 { return bare }
        var units: [(name: Character, seconds: Int)] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)]
        var total = 0
        var rest = text[...]
        guard !rest.isEmpty, rest.utf8.count <= 32 else { return nil }
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isNumber }
            rest = rest.dropFirst(digits.count)
            guard let number = number(digits), let name = rest.first,
                let index = units.firstIndex(where: { $0.name == name })
            else { return nil }
            let (span, tooLong) = number.multipliedReportingOverflow(by: units[index].seconds)
            let (sum, overflow) = total.addingReportingOverflow(span)
            guard !tooLong, !overflow else { return nil }
            total = sum
            units.removeSubrange(...index)
            rest = rest.dropFirst()
        }
        return total
    }

    /// A path; relative ones start at the file's directory, or at the working directory for environment and flags.
    static func path(_ input: SettingInput, _ context: SettingContext) throws(SettingRejection) -> String {
        guard case .text(let text) = input else {
            throw SettingRejection("is not a path; write it in quotes")
        }
        guard !text.isEmpty else { throw SettingRejection("is empty; write a path") }
        guard text.utf8.count <= 4096, !text.unicodeScalars.contains(where: { $0.value < 32 }) else {
            throw SettingRejection("is not a path; write at most 4096 bytes without control characters")
        }
        guard text == "~" || text.hasPrefix("~/") else { return joinedPath(context.directory, text) }
        guard let home = context.home else {
            throw SettingRejection("begins with ~, but HOME is not set; write the whole path")
        }
        return joinedPath(home, String(text.dropFirst(2)))
    }

    /// One word of several.
    static func choice<Value>(
        _ input: SettingInput, of values: [(name: String, value: Value)]
    ) throws(SettingRejection) -> Value {
        let names = values.map(\.name)
        let list = names.dropLast().map { "\"\($0)\"" }.joined(separator: ", ") + " or \"\(names.last ?? "")\""
        guard case .text(let text) = input else { throw SettingRejection("is not known; write \(list)") }
        if let found = values.first(where: { $0.name == text }) { return found.value }
        let hint = nearest(text, among: names).map { "; did you mean \"\($0)\"?" } ?? ""
        throw SettingRejection("is not known; write \(list)\(hint)")
    }

    /// An IP address with a port: `0.0.0.0:6969`, `[::]:6969`.
    static func address(_ input: SettingInput) throws(SettingRejection) -> SocketAddress {
        guard case .text(let text) = input else { throw SettingRejection(notAnAddress) }
        if let address = SocketAddress(hostAndPort: text) { return address }
        if SocketAddress(host: text, port: 0) != nil {
            let bracketed = text.contains(":") ? "[\(text)]" : text
            throw SettingRejection("has no port; write for example \"\(bracketed):6969\"")
        }
        throw SettingRejection(notAnAddress)
    }

    private static let notAnAddress =
        "is not an IP address with a port; write for example \"0.0.0.0:6969\" or \"[::]:6969\""

    /// A block of addresses: `192.0.2.0/24`, `2001:db8::/32`.
    static func prefix(_ input: SettingInput) throws(SettingRejection) -> AddressPrefix {
        guard case .text(let text) = input, let prefix = AddressPrefix(text) else {
            throw SettingRejection(
                "is not a block of addresses; write for example \"192.0.2.0/24\" or \"2001:db8::1\"")
        }
        return prefix
    }
}

extension Duration {
    /// Reads `90s`, `1h30m`, `1d`, or a number of seconds.
    public init?(_ text: some StringProtocol) {
        guard let seconds = SettingReader.seconds(text), seconds <= Int64.max / 1_000_000_000 else { return nil }
        self = .seconds(Int64(seconds))
    }
}

extension SocketAddress {
    /// Reads `192.0.2.1:6969` or `[2001:db8::1]:6969`; names are not looked up, port 0 lets the kernel choose.
    public init?(hostAndPort text: some StringProtocol) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy({ (48...57).contains($0) }),
            let port = UInt16(digits)
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            guard host.contains(":") else { return nil }
        } else if host.contains(":") {
            return nil
        }
        self.init(host: host, port: port)
    }
}

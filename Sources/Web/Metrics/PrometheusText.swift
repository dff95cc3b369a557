// The text that Prometheus scrapes.

/// The text that Prometheus scrapes: exposition format 0.0.4.
///
/// Names and label values come from code *and* from strangers' words, so both are made safe here and nowhere else:
/// whatever goes in, each sample is one line and each line parses.
///
/// - SeeAlso: https://prometheus.io/docs/instrumenting/exposition_formats/
public struct PrometheusText: Sendable {
    /// The value of the `Content-Type` header.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// The kinds of metrics that are told here.
    public enum Kind: String, Sendable, Hashable {
        case counter
        case gauge
        case histogram
    }

    /// What was written so far.
    public private(set) var text = ""

    /// An empty text.
    public init() {}

    /// Opens a family; its samples follow at once.
    ///
    /// - Parameters:
    ///   - name: of the form `[a-zA-Z_:][a-zA-Z0-9_:]*`.
    ///   - kind: of all its samples.
    ///   - help: left out where empty.
    public mutating func family(_ name: String, _ kind: Kind, help: String = "") {
        if !help.isEmpty { text += "# HELP \(name) \(Self.escaped(help: help))\n" }
        text += "# TYPE \(name) \(kind.rawValue)\n"
    }

    /// Appends a whole number to the family that was opened.
    public mutating func sample(_ name: String, _ labels: PrometheusLabels, _ value: some BinaryInteger) {
        text += "\(name)\(labels.braced) \(value)\n"
    }

    /// Appends a number to the family that was opened.
    public mutating func sample(_ name: String, _ labels: PrometheusLabels, _ value: Double) {
        text += "\(name)\(labels.braced) \(Self.number(value))\n"
    }

    /// A family of one sample without labels.
    public mutating func single(_ name: String, _ kind: Kind, help: String, _ value: some BinaryInteger) {
        family(name, kind, help: help)
        sample(name, .none, value)
    }

    /// A family of one sample without labels.
    public mutating func single(_ name: String, _ kind: Kind, help: String, _ value: Double) {
        family(name, kind, help: help)
        sample(name, .none, value)
    }

    /// Appends families that were rendered elsewhere.
    public mutating func append(_ other: PrometheusText) { text += other.text }

    /// A name of the form `[a-zA-Z_:][a-zA-Z0-9_:]*`; every other character becomes an underscore.
    public static func sanitised(name: String) -> String { sanitised(name, colons: true) }

    static func sanitised(_ name: String, colons: Bool) -> String {
        var result: [UInt8] = []
        for scalar in name.unicodeScalars {
            switch scalar {
            case "a"..."z", "A"..."Z", "_": result.append(UInt8(ascii: scalar))
            case ":" where colons: result.append(UInt8(ascii: scalar))
            case "0"..."9":
                if result.isEmpty { result.append(UInt8(ascii: "_")) }
                result.append(UInt8(ascii: scalar))
            default: result.append(UInt8(ascii: "_"))
            }
        }
        return result.isEmpty ? "_" : String(decoding: result, as: UTF8.self)
    }

    private static func escaped(help: String) -> String {
        var result = ""
        for scalar in help.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// A number as Go reads it; whole ones without a point.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
        // Beyond 2^53 neighbours are more than 1 apart, so that digits would promise too much.
        if value == value.rounded(.towardZero), abs(value) < 0x1p53 { return String(Int64(value)) }
        return value.description
    }
}

/// A label set in one canonical form: sanitised, sorted by name, escaped.
public struct PrometheusLabels: Sendable, Hashable, Comparable {
    /// `a="b",c="d"`, without braces.
    let text: String

    /// No labels.
    public static let none = PrometheusLabels([])

    /// - Parameter pairs: of two labels with one name, the first counts. The names `le` and `quantile` belong to the
    ///   format, and get `exported_` before them, as Prometheus itself does; so do those that begin with `__`.
    public init(_ pairs: [(String, String)]) {
        var kept: [(name: String, value: String)] = []
        for (name, value) in pairs {
            var name = PrometheusText.sanitised(name, colons: false)
            if name == "le" || name == "quantile" || name.hasPrefix("__") { name = "exported_" + name }
            if !kept.contains(where: { $0.name == name }) { kept.append((name, value)) }
        }
        kept.sort { $0.name < $1.name }
        text = kept.map { "\($0.name)=\"\(Self.escaped(value: $0.value))\"" }.joined(separator: ",")
    }

    private init(text: String) { self.text = text }

    /// The same labels and the upper bound of a histogram's bucket.
    func with(upperBound: Double) -> PrometheusLabels {
        let bound = "le=\"\(PrometheusText.number(upperBound))\""
        return PrometheusLabels(text: text.isEmpty ? bound : "\(text),\(bound)")
    }

    var braced: String { text.isEmpty ? "" : "{\(text)}" }

    /// By the text of the sets.
    public static func < (left: PrometheusLabels, right: PrometheusLabels) -> Bool { left.text < right.text }

    private static func escaped(value: String) -> String {
        var result = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

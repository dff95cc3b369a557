// A TOML document as a tree of tables that knows where everything stands.

import Primitives

/// What is not TOML.
struct TOMLFault: Error {
    var position: TextPosition
    /// Continues "this is not TOML: ".
    var message: String
}

struct TOMLValue {
    var position: TextPosition
    var content: Content

    enum Content {
        case single(SettingInput)
        case array([TOMLValue])
        /// `[[name]]`, each time a further one.
        case tables([TOMLTable])
        case table(TOMLTable)
    }

    /// The value as a setting takes it.
    var input: SettingInput {
        switch content {
        case .single(let input): input
        case .array(let elements): .list(elements.map(\.input))
        case .tables, .table: .other("a table")
        }
    }

    /// Where an element of an array stands; where the value itself stands, if it is none.
    func position(ofElement index: Int) -> TextPosition {
        if case .array(let elements) = content, elements.indices.contains(index) { return elements[index].position }
        return position
    }
}

/// A table, built up while the document is read.
///
/// Why not a library: TOMLKit, the one that there is, tells no places, and the parser under it aborts the process on
/// some malformed files (`[[[a]]]`, `a = 1979-05-27T:`; marzer/tomlplusplus#301), where a tracker has to say what is
/// wrong.
///
/// - SeeAlso: https://toml.io/en/v1.0.0
final class TOMLTable {
    enum Origin {
        /// Named only as the parent of another: `a` in `[a.b]`.
        case implied
        /// `[a]`, or an element of `[[a]]`.
        case header
        /// `a` in `a.b = 1`.
        case dotted
        /// `{ … }`: whole as it stands.
        case inline
    }

    struct Entry {
        var key: String
        /// Where the key stands first.
        var position: TextPosition
        var value: TOMLValue
    }

    private(set) var origin: Origin
    /// In the order of the document.
    private(set) var entries: [Entry] = []
    private var indices: [String: Int] = [:]

    init(_ origin: Origin) { self.origin = origin }

    /// A part of a key, and where it stands.
    typealias Part = (name: String, position: TextPosition)

    private func append(_ part: Part, _ content: TOMLValue.Content, at position: TextPosition? = nil) {
        indices[part.name] = entries.count
        let value = TOMLValue(position: position ?? part.position, content: content)
        entries.append(Entry(key: part.name, position: part.position, value: value))
    }

    private func child(_ part: Part) -> TOMLValue.Content? { indices[part.name].map { entries[$0].value.content } }

    /// The table that `[path]` opens, seen from the root.
    ///
    /// "You cannot define a table more than once"; but parents may come after their children.
    func open(_ path: [Part]) throws(TOMLFault) -> TOMLTable {
        let parent = try parent(of: path)
        let last = path[path.count - 1]
        switch parent.child(last) {
        case nil:
            let table = TOMLTable(.header)
            parent.append(last, .table(table))
            return table
        case .table(let table)? where table.origin == .implied:
            table.origin = .header
            return table
        case .table?:
            throw TOMLFault(position: last.position, message: "the table \(quoted(last.name)) is there already")
        case .single?, .array?, .tables?: throw Self.taken(last)
        }
    }

    /// The next of the tables that `[[path]]` names, seen from the root.
    func openNext(_ path: [Part]) throws(TOMLFault) -> TOMLTable {
        let parent = try parent(of: path)
        let last = path[path.count - 1]
        let table = TOMLTable(.header)
        guard let index = parent.indices[last.name] else {
            parent.append(last, .tables([table]))
            return table
        }
        guard case .tables(var tables) = parent.entries[index].value.content else { throw Self.taken(last) }
        // Out of the enum while it grows, or each addition would copy them all.
        parent.entries[index].value.content = .tables([])
        tables.append(table)
        parent.entries[index].value.content = .tables(tables)
        return table
    }

    /// Walks a header's path up to its last part; makes what is missing.
    private func parent(of path: [Part]) throws(TOMLFault) -> TOMLTable {
        var table = self
        for part in path.dropLast() {
            switch table.child(part) {
            case nil:
                let next = TOMLTable(.implied)
                table.append(part, .table(next))
                table = next
            case .table(let next)? where next.origin != .inline: table = next
            case .tables(let tables)?: table = tables[tables.count - 1]
            case .table?, .single?, .array?: throw Self.taken(part)
            }
        }
        return table
    }

    /// Gives a value to `a.b.c`.
    ///
    /// "Dotted keys create and define a table for each key part before the last"; tables that were defined otherwise
    /// cannot be added to.
    func set(_ path: [Part], _ value: TOMLValue) throws(TOMLFault) {
        var table = self
        for part in path.dropLast() {
            switch table.child(part) {
            case nil:
                let next = TOMLTable(.dotted)
                table.append(part, .table(next))
                table = next
            case .table(let next)? where next.origin == .dotted: table = next
            case .table?, .tables?, .single?, .array?: throw Self.taken(part)
            }
        }
        let last = path[path.count - 1]
        guard table.child(last) == nil else { throw Self.taken(last) }
        table.append(last, value.content, at: value.position)
    }

    private static func taken(_ part: Part) -> TOMLFault {
        TOMLFault(position: part.position, message: "the key \(quoted(part.name)) is there already")
    }
}
